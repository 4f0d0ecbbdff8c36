//! One device, and the packets of it that are at hand.

use crate::buffers::{Buffer, Buffers};
use crate::cbpf::{ClassicProgram, Instruction};
use crate::limits::{RETIRE_MS, RING_BUFFER_MAX, STREAM_BUFFER};
use crate::live::count::WrappingCount;
use crate::live::error::{LiveError, PcapError};
use crate::live::event::{Event, LinkState};
use crate::live::indices::Indices;
use crate::live::options::{ANY, Directions, Handover, LiveOptions, Stamps};
use crate::sys::libpcap::device::{self, PcapHandle, Refusal, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::c_int;
use std::sync::Arc;
use weir_packet::interface::{CapturePoint, Direction, InterfaceNames};
use weir_packet::limits::{BATCH, CAPLEN_MAX};
use weir_packet::source::{Chunk, FrameBatch, LinkType, Lost, SourceError};

/// A device that is captured from.
pub(super) struct CapturedDevice {
    pub(super) name: String,
    pub(super) handle: PcapHandle,
    pub(super) link: LinkType,
    pub(super) calls: Calls,
    /// Packets put into batches.
    pub(super) delivered: u64,
    /// Packets that the capture filter refused.
    pub(super) refused: u64,
    filter: Option<ClassicProgram>,
    came_by: Came,
    names: InterfaceNames,
    /// Whether it must be asked whether there is something to read: of netfilter, libpcap calls it
    /// an error that there is nothing.
    asks_first: bool,
    at_hand: PacketsAtHand,
    /// Packets that libpcap dropped.
    ring: WrappingCount,
    /// Packets that the interface dropped.
    interface: WrappingCount,
    /// The number of the interface; 0 where the system knows none by this name.
    #[cfg(target_os = "linux")]
    index: u32,
}

/// The results of calls of libpcap.
pub(super) struct Calls {
    /// How often libpcap failed since it last did not.
    pub(super) failures: u32,
    /// Packets that the last call brought, those that the filter refused among them.
    pub(super) came: usize,
    /// Packets that all calls brought.
    all: u64,
    /// Packets that are still taken, where those that come now are not.
    left: Option<u64>,
    /// The latest time of a packet.
    pub(super) seen: i64,
    /// Whether a packet came that is later than the end of the capture.
    pub(super) beyond: bool,
}

/// Packets that were copied and are not in a batch yet.
struct PacketsAtHand {
    /// The buffer that packets are copied to; earlier batches have others.
    buffer: Arc<Buffer>,
    packets: Vec<CopiedPacket>,
    /// The next of them.
    next: usize,
}

/// A packet in the buffer.
#[derive(Clone, Copy, Debug)]
struct CopiedPacket {
    ts: i64,
    start: u32,
    caplen: u32,
    len: u32,
    point: CapturePoint,
}

/// By which interface packets of a device come.
enum Came {
    /// By this one.
    By(CapturePoint),
    /// As the cooked header of each says.
    Cooked(Indices),
}

/// Where a header of LINKTYPE_LINUX_SLL2 has the number of the interface; the direction comes after
/// it.
const SLL2_INDEX: usize = 4;
const SLL2_PACKET_TYPE: usize = 10;

impl Came {
    fn new(name: &str, options: &LiveOptions) -> Came {
        if is_any(name) {
            return Came::Cooked(Indices::of_all(&options.interfaces));
        }
        let direction = match options.direction {
            Directions::In => Some(Direction::In),
            Directions::Out => Some(Direction::Out),
            Directions::InOut => None,
        };
        Came::By(CapturePoint::new(options.interfaces.number(name), direction))
    }

    fn point(&mut self, packet: &[u8]) -> CapturePoint {
        match self {
            Came::By(point) => *point,
            Came::Cooked(indices) => {
                let index = packet.get(SLL2_INDEX..).and_then(<[u8]>::first_chunk::<4>);
                let point = index
                    .map_or(CapturePoint::UNKNOWN, |at| indices.point(u32::from_be_bytes(*at)));
                point.with_direction(
                    packet.get(SLL2_PACKET_TYPE).map(|&kind| Direction::of_packet_type(kind)),
                )
            }
        }
    }
}

impl CapturedDevice {
    pub(super) fn open(
        name: &str,
        options: &LiveOptions,
        buffers: &Buffers,
    ) -> Result<CapturedDevice, SourceError> {
        if options.buffer > RING_BUFFER_MAX {
            return Err(LiveError::Buffer.on(name));
        }
        let settings = Settings {
            // A filter is to see all of a packet.
            snaplen: if options.filter.is_some() { CAPLEN_MAX } else { options.snaplen },
            promiscuous: options.promiscuous && !is_any(name),
            timeout_ms: RETIRE_MS,
            immediate: options.handover == Handover::AtOnce,
            buffer: options.buffer,
            stamps: match options.stamps {
                Stamps::Host => None,
                Stamps::Adapter => Some(device::STAMPS_ADAPTER),
                Stamps::AdapterUnsynced => Some(device::STAMPS_ADAPTER_UNSYNCED),
            },
            direction: match options.direction {
                Directions::In => Some(device::DIRECTION_IN),
                Directions::Out => Some(device::DIRECTION_OUT),
                Directions::InOut => None,
            },
            link: is_any(name).then_some(c_int::from(LinkType::LINUX_SLL2.0)),
        };
        let handle = PcapHandle::open(name, &settings).map_err(|refusal| refused(name, refusal))?;
        let link = link_type(handle.link());
        let filter = filter(name, &handle, link, options)?;
        let buffer = buffers.take(STREAM_BUFFER, 0);
        #[cfg(target_os = "linux")]
        let index = facts(|f| f.name == name).map_or(0, |f| f.index);
        let (came, all, left) = (0, 0, None);
        let calls = Calls { failures: 0, came, all, left, seen: i64::MIN, beyond: false };
        let device = CapturedDevice {
            name: name.to_owned(),
            handle,
            link,
            calls,
            delivered: 0,
            refused: 0,
            filter,
            came_by: Came::new(name, options),
            names: options.interfaces.clone(),
            #[cfg(target_os = "linux")]
            asks_first: index == 0 && !is_any(name),
            #[cfg(not(target_os = "linux"))]
            asks_first: false,
            at_hand: PacketsAtHand { buffer, packets: Vec::new(), next: 0 },
            ring: WrappingCount::new(0),
            interface: WrappingCount::new(0),
            #[cfg(target_os = "linux")]
            index,
        };
        // Packets lost before are no losses of this capture.
        let interface = WrappingCount::new(device.counted().unwrap_or(0));
        Ok(CapturedDevice { interface, ..device })
    }

    /// The time of the packet that comes next, of those at hand.
    pub(super) fn head(&self) -> Option<i64> {
        self.at_hand.packets.get(self.at_hand.next).map(|packet| packet.ts)
    }

    /// Whether it is the first of those that the last call brought.
    pub(super) fn is_fresh(&self) -> bool {
        self.at_hand.next == 0
    }

    /// Whether nothing came when libpcap was last asked, and nothing is at hand.
    pub(super) fn is_quiet(&self) -> bool {
        self.calls.came == 0 && self.head().is_none()
    }

    /// Takes no packets but those that have come when this is first called, by libpcap's count.
    pub(super) fn take_no_more(&mut self) {
        if self.calls.left.is_none() {
            // It counts modulo 2^32.
            let came =
                self.handle.statistics().map(|told| told.received.wrapping_sub(told.dropped));
            let left = came.map_or(0, |came| came.wrapping_sub(self.calls.all as u32));
            self.calls.left = Some(left.into());
        }
    }

    /// Takes packets that are there, unless there are some at hand; those later than `until`, if
    /// that is a time, are left out.
    ///
    /// # Errors
    /// In libpcap's words.
    pub(super) fn load(&mut self, snaplen: u32, until: i64) -> Result<(), String> {
        if self.head().is_some() {
            return Ok(());
        }
        self.at_hand.packets.clear();
        self.at_hand.next = 0;
        self.calls.came = 0;
        if self.calls.left == Some(0) || self.asks_first && !self.is_ready() {
            return Ok(());
        }
        let CapturedDevice { handle, filter, came_by, at_hand, refused, calls, .. } = self;
        let PacketsAtHand { buffer, packets, .. } = at_hand;
        let Some(buffer) = Arc::get_mut(buffer) else { return Ok(()) };
        if let Came::Cooked(indices) = came_by {
            indices.refresh();
        }
        let keep = snaplen as usize;
        let mut came = 0;
        let result = handle.dispatch(BATCH as c_int, |packet| {
            came += 1;
            calls.seen = calls.seen.max(packet.ts);
            if packet.ts > until && until != i64::MIN {
                calls.beyond = true;
                return;
            }
            if filter.as_ref().is_some_and(|filter| filter.run(packet.bytes, packet.len) == 0) {
                *refused += 1;
                return;
            }
            let bytes = &packet.bytes[..packet.bytes.len().min(keep).min(CAPLEN_MAX as usize)];
            let (start, caplen) = (buffer.len() as u32, bytes.len() as u32);
            buffer.extend(bytes);
            let point = came_by.point(packet.bytes);
            packets.push(CopiedPacket { ts: packet.ts, start, caplen, len: packet.len, point });
        });
        self.calls.came = came;
        self.calls.all += came as u64;
        self.calls.left = self.calls.left.map(|left| left.saturating_sub(came as u64));
        result?;
        self.calls.failures = 0;
        Ok(())
    }

    /// Whether something can be read.
    fn is_ready(&self) -> bool {
        let Some(fd) = self.handle.fd() else { return true };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&at_once)).is_ok_and(|n| n > 0)
    }

    /// Fills a batch from the packets at hand; the buffer goes with the last of them.
    pub(super) fn fill(&mut self, batch: &mut FrameBatch, seq: u64, buffers: &Buffers) {
        let PacketsAtHand { buffer, packets, next } = &mut self.at_hand;
        let chunk = Arc::clone(buffer) as Chunk;
        batch.restart(&chunk, 0, self.link);
        let to = packets.len().min(*next + BATCH);
        let those = &packets[*next..to];
        for (seq, packet) in (seq..).zip(those) {
            batch.push(packet.ts, seq, packet.start, packet.caplen, packet.len);
        }
        batch.set_capture_points(those.iter().map(|packet| packet.point), &self.names);
        self.delivered += those.len() as u64;
        *next = to;
        if to == packets.len() {
            let empty = buffers.take(STREAM_BUFFER, 0);
            buffers.put(std::mem::replace(buffer, empty));
        }
    }

    /// Packets lost so far.
    pub(super) fn lost(&self) -> Lost {
        if let Some(told) = self.handle.statistics() {
            self.ring.update(told.dropped);
        }
        Lost { interface: self.interface.grown(), kernel: 0, ring: self.ring.grown() }
    }

    /// Asks the system how many packets its interface dropped.
    pub(super) fn count_drops(&self) {
        if let Some(counted) = self.counted() {
            self.interface.update(counted);
        }
    }

    /// How the device is; `None` where that is unknown.
    #[cfg(target_os = "linux")]
    pub(super) fn now(&self) -> Option<LinkState> {
        if self.index == 0 {
            return None;
        }
        let known = crate::sys::interface::list().ok()?;
        let found = known.iter().find(|f| f.index == self.index);
        Some(found.map_or(LinkState::Gone, |f| match f.flags & libc::IFF_UP as u32 {
            0 => LinkState::Down,
            _ => LinkState::Up,
        }))
    }

    /// How the device is; `None` where that is unknown.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn now(&self) -> Option<LinkState> {
        let known = device::list().ok()?;
        let found = known.iter().find(|device| device.name == self.name);
        Some(found.map_or(LinkState::Gone, |device| match device.flags & device::UP {
            0 => LinkState::Down,
            _ => LinkState::Up,
        }))
    }

    /// Packets that the interface had no room for. libpcap reads this from files, which a run may
    /// not open once it has begun, and of another network namespace perhaps; so it is asked of the
    /// kernel.
    #[cfg(target_os = "linux")]
    fn counted(&self) -> Option<u32> {
        let index = Some(self.index).filter(|index| *index != 0)?;
        facts(|f| f.index == index).map(|f| f.dropped)
    }

    /// Packets that the interface had no room for, as far as libpcap knows.
    #[cfg(not(target_os = "linux"))]
    fn counted(&self) -> Option<u32> {
        self.handle.statistics().map(|told| told.interface)
    }
}

/// The kernel's facts about the first interface that is wanted.
#[cfg(target_os = "linux")]
fn facts(
    wanted: impl Fn(&crate::sys::interface::Facts) -> bool,
) -> Option<crate::sys::interface::Facts> {
    crate::sys::interface::list().ok()?.into_iter().find(wanted)
}

/// The link type of a device, by the registry of files: systems number a few differently.
fn link_type(dlt: c_int) -> LinkType {
    let (raw, lo) = if cfg!(target_os = "openbsd") { (14, 12) } else { (12, 108) };
    match dlt {
        _ if dlt == raw => LinkType::RAW,
        _ if dlt == lo => LinkType::LOOP,
        other => LinkType(u16::try_from(other).unwrap_or(u16::MAX)),
    }
}

/// The capture filter for packets of a device, which the system gets too where it can do something
/// with it.
fn filter(
    name: &str,
    handle: &PcapHandle,
    link: LinkType,
    options: &LiveOptions,
) -> Result<Option<ClassicProgram>, SourceError> {
    let Some(filter) = &options.filter else { return Ok(None) };
    let wrong = |reason: String| SourceError::Filter { name: name.to_owned(), reason };
    let code = filter.instructions(link).map_err(|e| wrong(e.to_string()))?;
    let program = ClassicProgram::new(&code).map_err(|e| wrong(format!("capture filter: {e}")))?;
    if link == LinkType::ETHERNET
        && let Err(reason) = handle.filter(&program_of(&code))
    {
        options.report(&Event::FilterBehind { interface: name.to_owned(), reason });
    }
    Ok(Some(program))
}

/// A capture filter as the system gets it from libpcap. On Linux, frames whose VLAN tag stands
/// beside them pass, since the filter would not see it there; elsewhere frames are whole.
fn program_of(filter: &[Instruction]) -> Vec<Instruction> {
    #[cfg(target_os = "linux")]
    return crate::live::program::program(Directions::InOut, None, CAPLEN_MAX, Some(filter));
    #[cfg(not(target_os = "linux"))]
    filter.to_vec()
}

/// Whether libpcap's name for all interfaces is meant.
fn is_any(name: &str) -> bool {
    name == ANY
}

fn refused(name: &str, refusal: Refusal) -> SourceError {
    let error = match refusal {
        Refusal::Missing(why) => PcapError::Missing(why),
        Refusal::NoDevice => {
            let known = device::list().unwrap_or_default();
            PcapError::NoDevice { known: known.into_iter().map(|device| device.name).collect() }
        }
        Refusal::Permission(why) => PcapError::Permission(why),
        Refusal::Down => PcapError::Down { name: name.to_owned() },
        Refusal::Stamps => PcapError::NoTimes,
        Refusal::Direction(why) => PcapError::NoDirections(why),
        Refusal::Other(why) => PcapError::Refused(why),
    };
    LiveError::Libpcap(error).on(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_types_are_those_of_files() {
        assert_eq!(link_type(1), LinkType::ETHERNET);
        assert_eq!(link_type(12), LinkType::RAW);
        assert_eq!(link_type(276), LinkType::LINUX_SLL2);
    }
}
