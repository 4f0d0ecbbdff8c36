//! Capture by libpcap (pcap(3PCAP)): for systems without AF_PACKET, and for devices that only
//! libpcap knows.
//!
//! libpcap lends a packet for the length of a call, so each is copied: into a buffer that batches
//! then refer to, and that is used again once none does. Up to a batch of them is taken from each
//! device at a time; devices are read in the order of their oldest packets.
//!
//! The capture filter is run here, on packets as they were on the wire, before they are copied. On
//! Ethernet the system gets it as well, so that it need not hand over what nobody wants.

mod wire;

use super::clock::{Clock, Stopwatch};
use super::losses::Losses;
use super::{ANY, LiveOptions, Stamps, State, check_names, error};
use crate::buffers::Buffers;
use crate::limits::{
    DRAIN_MS, DRAIN_STEP_MS, PCAP_FAILURES_MAX, REACHED_BEHIND_NS, RETIRE_MS, STREAM_BUFFER,
    WAIT_MS,
};
use crate::sys::libpcap::device;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering;
use weir_packet::ethernet::link_name;
use weir_packet::source::{Account, FrameBatch, LinkType, Lost, Source, SourceError};
use weir_packet::walk::supported;
use wire::Wire;

/// A device that libpcap can capture from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What libpcap says of it.
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
pub fn devices() -> io::Result<Vec<Device>> {
    let listed = device::list().map_err(io::Error::other)?;
    let device = |device::Listed { name, description, flags }| Device {
        name,
        description,
        up: flags & device::UP != 0,
        running: flags & device::RUNNING != 0,
        loopback: flags & device::LOOPBACK != 0,
    };
    Ok(listed.into_iter().map(device).collect())
}

/// Captures by libpcap from devices, by their names; [`ANY`] means all interfaces, as cooked
/// frames, where the system has that. It ends when [`LiveOptions::stop`] is set, or when the last
/// of them is removed. [`LiveOptions::rings`] is of no meaning here.
///
/// # Errors
/// When libpcap can't be loaded, there is no such device, the process may not, or libpcap refuses
/// what the options ask for.
pub fn open_pcap(names: &[String], options: LiveOptions) -> Result<PcapSource, SourceError> {
    check_names(names)?;
    let buffers = Buffers::new(STREAM_BUFFER);
    let wires = names.iter().map(|name| Wire::open(name, &options, &buffers));
    let wires = wires.collect::<Result<Vec<Wire>, SourceError>>()?;
    let mut clock = Clock::new(options.stamps);
    let losses = Losses::since(clock.time().unwrap_or(i64::MIN), clock.is_foreign());
    Ok(PcapSource {
        wires,
        buffers,
        clock,
        options,
        seq: 0,
        losses,
        watched: Cell::new(Stopwatch::start()),
        ending: None,
        error: None,
        ended: false,
    })
}

/// Packets of some devices, by libpcap.
///
/// [`Source::account`] counts as lost in the ring what libpcap says was dropped (`ps_drop`), and by
/// the interface what the kernel's counters of it say, or, elsewhere than on Linux, libpcap
/// (`ps_ifdrop`).
pub struct PcapSource {
    wires: Vec<Wire>,
    buffers: Buffers,
    clock: Clock,
    options: LiveOptions,
    /// The number of the next packet.
    seq: u64,
    losses: Losses,
    /// Since when devices were not asked how they are.
    watched: Cell<Stopwatch>,
    /// Since when no more packets are taken, and the last moment whose packets still are.
    ending: Option<(Stopwatch, i64)>,
    /// Why a device can't be read any more; told behind what was at hand of all of them.
    error: Option<SourceError>,
    ended: bool,
}

impl PcapSource {
    /// What each device gives, in words.
    pub fn describe(&self) -> Vec<String> {
        let version = device::version().unwrap_or_default();
        let line = |wire: &Wire| {
            let link = wire.link;
            let unit = if wire.device.is_precise() { "nanoseconds" } else { "microseconds" };
            let known = match supported(link) {
                true => "",
                false => "; what is in its packets is not decoded",
            };
            format!("{}: {version}, {}, times in {unit}{known}", wire.name, link_name(link))
        };
        self.wires.iter().map(line).collect()
    }

    /// The link type of the packets of each device.
    pub fn links(&self) -> Vec<LinkType> {
        self.wires.iter().map(|wire| wire.link).collect()
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let waited = Stopwatch::start();
        loop {
            self.end_if_asked();
            // What came until this moment is there, or on its way.
            let now = self.clock.now();
            self.load();
            if let Some(wire) = self.oldest() {
                self.deliver(wire, batch);
                return Ok(true);
            }
            if let Some(e) = self.error.take() {
                return Err(e);
            }
            self.losses.empty();
            if self.is_over() {
                return Ok(false);
            }
            let elapsed = waited.elapsed_ms();
            if elapsed >= WAIT_MS {
                if let Some(ts) = self.reached(now) {
                    batch.set_reached(ts);
                }
                self.watch();
                self.look_for_losses();
                self.losses.tell(batch);
                return Ok(true);
            }
            let most = if self.ending.is_none() { WAIT_MS } else { DRAIN_STEP_MS };
            self.wait(most.min(WAIT_MS - elapsed));
        }
    }

    /// Takes packets of every device of which none are at hand, unless one failed, or it is time to
    /// end.
    fn load(&mut self) {
        // Where times don't say when to stop, packets that keep coming would never end it.
        let drained = |(since, until): &(Stopwatch, i64)| {
            *until == i64::MAX && since.elapsed_ms() >= DRAIN_MS
        };
        if self.error.is_some() || self.ending.as_ref().is_some_and(drained) {
            return;
        }
        let until = self.ending.map(|(_, until)| until);
        for number in 0..self.wires.len() {
            if let Err(message) = self.wires[number].load(&self.options, until) {
                self.error = self.failed(number, message).err();
            }
            if self.error.is_some() {
                return;
            }
        }
    }

    /// The device whose next packet is the oldest.
    fn oldest(&self) -> Option<usize> {
        let heads = self.wires.iter().enumerate();
        let heads = heads.filter_map(|(number, wire)| wire.head().map(|ts| (ts, number)));
        heads.min().map(|(_, number)| number)
    }

    fn deliver(&mut self, wire: usize, batch: &mut FrameBatch) {
        if self.losses.are_due() {
            self.look_for_losses();
        }
        self.wires[wire].fill(batch, self.seq, &self.buffers);
        self.seq += batch.len() as u64;
        if let Some(&ts) = batch.ts().last() {
            self.clock.saw(ts);
        }
        if let Some(&ts) = batch.ts().first() {
            self.losses.saw(ts);
        }
        self.losses.tell(batch);
    }

    /// What time is reached where no packet is at hand: of devices that have brought nothing but
    /// what the filter refused, no more than that.
    fn reached(&self, now: Option<i64>) -> Option<i64> {
        let busy = self.wires.iter().filter(|wire| wire.came > 0);
        busy.map(|wire| wire.seen.saturating_sub(REACHED_BEHIND_NS)).chain(now).min()
    }

    /// Waits until something comes, or so long. Where a device has nothing to wait on, it is asked
    /// again before packets get old.
    fn wait(&self, most_ms: u32) {
        let fds: Vec<_> = self.wires.iter().map(|wire| wire.device.fd()).collect();
        let blind = fds.iter().any(Option::is_none);
        let ms = if blind { most_ms.min(RETIRE_MS) } else { most_ms };
        let mut fds: Vec<PollFd<'_>> = self
            .wires
            .iter()
            .zip(&fds)
            .filter(|(wire, _)| wire.state != State::Gone)
            .filter_map(|(_, fd)| fd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)))
            .collect();
        let time = Timespec { tv_sec: 0, tv_nsec: i64::from(ms.min(999)) * 1_000_000 };
        // A signal ends it too, and what else may go wrong the next call to libpcap will tell.
        let _ = poll(&mut fds, Some(&time));
    }

    /// Ends the capture once that is asked for: what came until then is still taken. Of times that
    /// have nothing to do with the clock nobody can tell, and what is there is taken.
    fn end_if_asked(&mut self) {
        let asked = self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if self.ending.is_some() || !asked {
            return;
        }
        let known = self.options.stamps != Stamps::AdapterUnsynced;
        let until = self.clock.time().filter(|_| known).unwrap_or(i64::MAX);
        self.ending = Some((Stopwatch::start(), until));
    }

    /// Whether nothing will come any more.
    fn is_over(&mut self) -> bool {
        if self.ending.is_none() && self.wires.iter().all(|wire| wire.state == State::Gone) {
            self.ending = Some((Stopwatch::start(), i64::MAX));
        }
        let Some((ending, _)) = self.ending else { return false };
        // A system hands packets over within twice the time that they may wait for others.
        let quiet = ending.elapsed_ms() >= 3 * RETIRE_MS && self.wires.iter().all(Wire::is_quiet);
        quiet || ending.elapsed_ms() >= DRAIN_MS || self.wires.iter().all(|wire| wire.beyond)
    }

    /// Learns what became of a device that libpcap can't read.
    fn failed(&mut self, number: usize, message: String) -> Result<(), SourceError> {
        let wire = &mut self.wires[number];
        if wire.state == State::Gone {
            return Ok(());
        }
        wire.failures += 1;
        let fails = wire.failures > PCAP_FAILURES_MAX;
        match wire.now() {
            Some(State::Up) if fails => {}
            Some(State::Up | State::Down) => {
                self.turn(number, State::Down);
                return Ok(());
            }
            Some(State::Gone) => {
                self.turn(number, State::Gone);
                return Ok(());
            }
            None => {}
        }
        let reason = format!("libpcap can't read from it any more: {message}");
        Err(error(&self.wires[number].name, io::Error::other(reason)))
    }

    /// Asks devices how they are.
    fn watch(&mut self) {
        self.count_drops();
        for number in 0..self.wires.len() {
            if self.wires[number].state == State::Gone {
                continue;
            }
            if let Some(state) = self.wires[number].now() {
                self.turn(number, state);
            }
        }
    }

    /// Moves a device to a state, and tells of it if that is another.
    fn turn(&mut self, wire: usize, state: State) {
        let wire = &mut self.wires[wire];
        if wire.state != state && wire.state != State::Gone {
            wire.state = state;
            self.options.tell(&state.event(wire.name.clone()));
        }
    }

    fn count_drops(&self) {
        self.wires.iter().for_each(Wire::count_drops);
        self.watched.set(Stopwatch::start());
    }

    /// Asks what was lost until now.
    fn look_for_losses(&mut self) {
        if self.watched.get().elapsed_ms() >= WAIT_MS {
            self.watch();
        }
        let before = self.clock.time();
        let mut lost = Lost::default();
        self.wires.iter().for_each(|wire| lost.merge(wire.lost()));
        self.losses.take_all(lost, (before, self.clock.time()));
    }
}

impl Source for PcapSource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        // Lets go of its buffer.
        batch.clear();
        if self.ended {
            return Ok(false);
        }
        let more = self.next(batch);
        if !matches!(more, Ok(true)) {
            self.ended = true;
            batch.clear();
            self.count_drops();
            self.look_for_losses();
            if let (Ok(false), Some(gap)) = (&more, self.losses.gap.take()) {
                batch.set_gap(gap);
                return Ok(true);
            }
        }
        more
    }

    fn is_ready(&mut self) -> bool {
        self.load();
        self.ended || self.error.is_some() || self.oldest().is_some()
    }

    fn account(&self) -> Account {
        Account::of_all(self.interfaces())
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        if self.watched.get().elapsed_ms() >= WAIT_MS && !self.ended {
            self.count_drops();
        }
        let account = |wire: &Wire| {
            let (received, filtered) = (wire.delivered + wire.refused, wire.refused);
            let lost: Lost = wire.lost();
            (wire.name.clone(), Account { received, filtered, lost, ..Account::default() })
        };
        self.wires.iter().map(account).collect()
    }
}

/// Whether libpcap's name for all interfaces is meant.
fn is_any(name: &str) -> bool {
    name == ANY
}
