//! Capture by libpcap (pcap(3PCAP)): for systems without AF_PACKET, and for devices that only
//! libpcap knows.
//!
//! libpcap lends a packet for the length of a call, so each is copied: into a buffer that batches
//! then refer to, and that is used again once none does. Up to a batch of them is taken from each
//! device at a time; devices are read in the order of their oldest packets.
//!
//! The capture filter is run here, on packets as they were on the wire, before they are copied. On
//! Ethernet the system gets it as well, so that it need not hand over what is not wanted.

mod device;

use super::driver::{Driver, Driving, Links, LiveDevice};
use super::error::{LiveError, PcapError};
use super::event::LinkState;
use super::options::{LiveOptions, check_names};
use crate::buffers::Buffers;
use crate::limits::{PCAP_FAILURES_MAX, REACHED_BEHIND_NS, RETIRE_MS, STREAM_BUFFER};
use crate::sys::libpcap::device as libpcap;
use device::CapturedDevice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_packet::ethernet::link_name;
use weir_packet::source::{Account, FrameBatch, LinkType, Lost, Source, SourceError};
use weir_packet::walk::supported;

/// A device that libpcap can capture from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct PcapDevice {
    /// Its name.
    pub name: String,
    /// The words of libpcap about it.
    pub description: Option<String>,
    /// Whether it is switched on, as far as libpcap knows.
    pub up: bool,
    /// Whether it is connected, or in use.
    pub running: bool,
    /// Whether it leads back to this machine.
    pub loopback: bool,
}

/// All devices that libpcap knows, interfaces among them, in its order.
///
/// # Errors
/// When libpcap can't be loaded, or does not tell.
pub fn devices() -> Result<Vec<PcapDevice>, PcapError> {
    let listed = libpcap::list().map_err(|reason| match libpcap::version() {
        Ok(_) => PcapError::NoList(reason),
        Err(reason) => PcapError::Missing(reason),
    })?;
    let device = |libpcap::Listed { name, description, flags }| PcapDevice {
        name,
        description,
        up: flags & libpcap::UP != 0,
        running: flags & libpcap::RUNNING != 0,
        loopback: flags & libpcap::LOOPBACK != 0,
    };
    Ok(listed.into_iter().map(device).collect())
}

/// Captures by libpcap from devices, by their names; [`ANY`](super::ANY) means all interfaces, as
/// cooked frames, where the system has that. It ends when [`LiveOptions::stop`] is set, or when the
/// last of them is removed. [`LiveOptions::rings`] is of no meaning here.
///
/// # Errors
/// When libpcap can't be loaded, there is no such device, the process may not, or libpcap refuses
/// what the options ask for.
pub fn open_pcap(names: &[String], options: LiveOptions) -> Result<PcapSource, SourceError> {
    check_names(names)?;
    let buffers = Buffers::new(STREAM_BUFFER);
    let devices = names.iter().map(|name| CapturedDevice::open(name, &options, &buffers));
    let devices = devices.collect::<Result<Vec<CapturedDevice>, SourceError>>()?;
    let snaplen = options.snaplen;
    let device = PcapDevices { devices, buffers, snaplen, oldest: 0, failed: None };
    let links = Links::new(names.iter().cloned(), options.events);
    let driving = Driving { stamps: options.stamps, stop: options.stop, ..Driving::default() };
    Ok(PcapSource(Driver::new(device, links, driving)))
}

/// Packets of some devices, by libpcap.
///
/// [`Source::account`] counts as lost in the ring what libpcap says was dropped (`ps_drop`), and by
/// the interface what the kernel's counters of it say, or, elsewhere than on Linux, libpcap
/// (`ps_ifdrop`).
pub struct PcapSource(Driver<PcapDevices>);

impl PcapSource {
    /// A line for each device: its name, libpcap's version, its link type, the unit of its times.
    pub fn describe(&self) -> Vec<String> {
        let version = libpcap::version().unwrap_or_default();
        let line = |device: &CapturedDevice| {
            let link = device.link;
            let unit = if device.handle.is_precise() { "nanoseconds" } else { "microseconds" };
            let known = match supported(link) {
                true => "",
                false => "; what is in its packets is not decoded",
            };
            format!("{}: {version}, {}, times in {unit}{known}", device.name, link_name(link))
        };
        self.0.device().devices.iter().map(line).collect()
    }

    /// The link type of the packets of each device.
    pub fn links(&self) -> Vec<LinkType> {
        self.0.device().devices.iter().map(|device| device.link).collect()
    }
}

impl Source for PcapSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        self.0.fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        self.0.is_ready()
    }

    fn account(&self) -> Account {
        self.0.account()
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.0.interfaces()
    }
}

/// The devices of a capture.
struct PcapDevices {
    devices: Vec<CapturedDevice>,
    buffers: Buffers,
    /// Bytes to keep of each packet at most.
    snaplen: u32,
    /// The device whose next packet is the oldest, as far as there are packets.
    oldest: usize,
    /// Why a device can't be read any more; reported after what was at hand of all of them.
    failed: Option<SourceError>,
}

impl LiveDevice for PcapDevices {
    const LOSSES_EVERY_MS: u32 = crate::limits::LOSSES_EVERY_MS;

    fn look(&mut self, until: i64, links: &mut Links) -> Result<bool, SourceError> {
        if until == i64::MIN {
            self.devices.iter_mut().for_each(CapturedDevice::take_no_more);
        }
        if self.failed.is_none() {
            self.failed = self.load(until, links).err();
        }
        let heads = self.devices.iter().enumerate();
        let heads = heads.filter_map(|(number, device)| device.head().map(|ts| (ts, number)));
        match (heads.min(), self.failed.take()) {
            (Some((_, number)), failed) => {
                (self.oldest, self.failed) = (number, failed);
                Ok(true)
            }
            (None, Some(e)) => Err(e),
            (None, None) => Ok(false),
        }
    }

    fn is_fresh(&self) -> bool {
        self.devices[self.oldest].is_fresh()
    }

    fn lend(&mut self, batch: &mut FrameBatch, seq: u64) {
        self.devices[self.oldest].fill(batch, seq, &self.buffers);
    }

    /// Waits until something comes, or so long. Where a device has nothing to wait on, it is asked
    /// again before packets get old.
    fn wait(&mut self, most_ms: u32, links: &mut Links) -> Result<(), SourceError> {
        let fds: Vec<_> = self.devices.iter().map(|device| device.handle.fd()).collect();
        let blind = fds.iter().any(Option::is_none);
        let ms = if blind { most_ms.min(RETIRE_MS) } else { most_ms };
        let there = fds.iter().enumerate().filter(|(at, _)| links.state(*at) != LinkState::Gone);
        let mut fds: Vec<PollFd<'_>> = there
            .filter_map(|(_, fd)| fd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)))
            .collect();
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(ms.min(999)) * 1_000_000 };
        // A signal ends it too, and what else may go wrong the next call to libpcap will report.
        let _ = poll(&mut fds, Some(&time));
        Ok(())
    }

    /// Of devices that have brought nothing but what the filter refused, no more is known than the
    /// times of that.
    fn reached(&self, now: Option<i64>) -> Option<i64> {
        let busy = self
            .devices
            .iter()
            .filter(|device| device.calls.came > 0)
            .map(|device| device.calls.seen);
        Some(busy.chain(now).min()?.saturating_sub(REACHED_BEHIND_NS))
    }

    /// libpcap says what failed when it is read from.
    fn check(&mut self, _links: &mut Links) -> Result<(), SourceError> {
        Ok(())
    }

    fn watch(&mut self, links: &mut Links) {
        self.count_drops();
        for (number, device) in self.devices.iter().enumerate() {
            if links.state(number) == LinkState::Gone {
                continue;
            }
            if let Some(state) = device.now() {
                links.turn(number, state);
            }
        }
    }

    fn count_drops(&self) {
        self.devices.iter().for_each(CapturedDevice::count_drops);
    }

    fn lost(&self) -> Lost {
        let mut lost = Lost::default();
        self.devices.iter().for_each(|device| lost.merge(device.lost()));
        lost
    }

    /// Packets that came until then are still taken. Where times have nothing to do with the clock,
    /// all packets that are there are taken.
    fn close(&mut self, now: Option<i64>, _links: &Links) -> Result<i64, SourceError> {
        Ok(now.unwrap_or(i64::MAX))
    }

    fn is_drained(&self, ending_ms: u32) -> bool {
        // A system hands packets over within twice the time that they may wait for others.
        let quiet = ending_ms >= 3 * RETIRE_MS && self.devices.iter().all(CapturedDevice::is_quiet);
        quiet || self.devices.iter().all(|device| device.calls.beyond)
    }

    fn is_held_up(&mut self) -> bool {
        false
    }

    fn accounts(&self) -> Vec<Account> {
        let account = |device: &CapturedDevice| {
            let (received, filtered) = (device.delivered + device.refused, device.refused);
            Account { received, filtered, lost: device.lost(), ..Account::default() }
        };
        self.devices.iter().map(account).collect()
    }
}

impl PcapDevices {
    /// Takes packets of every device of which none are at hand, until one fails.
    fn load(&mut self, until: i64, links: &mut Links) -> Result<(), SourceError> {
        for number in 0..self.devices.len() {
            if let Err(message) = self.devices[number].load(self.snaplen, until) {
                self.failed(number, message, links)?;
            }
        }
        Ok(())
    }

    /// Learns what became of a device that libpcap can't read.
    fn failed(
        &mut self,
        number: usize,
        message: String,
        links: &mut Links,
    ) -> Result<(), SourceError> {
        if links.state(number) == LinkState::Gone {
            return Ok(());
        }
        let device = &mut self.devices[number];
        device.calls.failures += 1;
        match device.now() {
            Some(LinkState::Up) if device.calls.failures > PCAP_FAILURES_MAX => {}
            Some(LinkState::Up | LinkState::Down) => {
                links.turn(number, LinkState::Down);
                return Ok(());
            }
            Some(LinkState::Gone) => {
                links.turn(number, LinkState::Gone);
                return Ok(());
            }
            None => {}
        }
        Err(LiveError::Libpcap(PcapError::Unreadable(message)).on(&device.name))
    }
}
