//! How frames are captured from interfaces, by whichever means.

use super::error::LiveError;
use super::event::{Event, ReportEvent};
use crate::bpf::Filter;
#[cfg(target_os = "linux")]
use crate::ebpf::Program;
use crate::limits::{LIVE_INTERFACES_MAX, RING_BUFFER};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::interface::InterfaceNames;
use weir_packet::limits::CAPLEN_MAX;
use weir_packet::source::SourceError;
#[cfg(target_os = "linux")]
use weir_packet::source::{KernelCounts, LinkType};

/// The name for all interfaces together, those to come included.
pub const ANY: &str = "any";

/// The directions of the frames that are captured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Directions {
    /// Frames that the machine receives.
    In,
    /// Frames that it sends.
    Out,
    /// Both.
    #[default]
    InOut,
}

/// The clock that says when a frame came, by tcpdump's names (pcap-tstamp(7)).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Stamps {
    /// The kernel's, as it takes the frame.
    #[default]
    Host,
    /// The network adapter's, which is kept in step with the system's.
    Adapter,
    /// The network adapter's, which goes its own way.
    AdapterUnsynced,
}

/// When the kernel hands frames over.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Handover {
    /// By blocks of frames that lie close together, when a block is full, or after some 20 ms. This
    /// takes the least memory, and wakes the fewest times.
    #[default]
    Blocks,
    /// Each as it comes: for frames that are sent on to a peer that waits for them. A frame takes a
    /// slot of its own, so that less of them find room in as much memory.
    AtOnce,
}

/// The facts that a program for the sockets of an interface depends on.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
pub struct SocketSite<'a> {
    /// The interface.
    pub interface: &'a str,
    /// The link type of its frames.
    pub link: LinkType,
    /// The frames that are wanted.
    pub direction: Directions,
    /// Frames that go out by the interface of this number come in by it too, and are wanted once.
    pub loopback: Option<u32>,
    /// Bytes to keep of each frame at most.
    pub snaplen: u32,
}

/// A loaded program.
#[cfg(target_os = "linux")]
pub struct KernelPart {
    /// Returns how many bytes of a frame go up; 0 for frames that are none of the capture's, or
    /// that it finishes.
    pub program: Program,
    /// Reads what the program has counted, without a system call.
    pub counts: Box<dyn Fn() -> KernelCounts + Send>,
}

/// Makes the program for some sockets, or says why there is none: one clause.
#[cfg(target_os = "linux")]
pub type MakeKernelPart = Box<dyn Fn(&SocketSite<'_>) -> Result<KernelPart, String>>;

/// How the kernel is to run a part of the query.
#[cfg(target_os = "linux")]
pub struct Offload {
    /// Makes the programs.
    pub make: MakeKernelPart,
    /// Whether a capture without them fails.
    pub required: bool,
}

/// How to capture.
pub struct LiveOptions {
    /// Deliver only the frames that match.
    pub filter: Option<Filter>,
    /// Bytes to keep of each frame at most.
    pub snaplen: u32,
    /// Bytes that the rings of an interface take together, in whole blocks.
    pub buffer: usize,
    /// Which frames.
    pub direction: Directions,
    /// Take frames that are meant for others too.
    pub promiscuous: bool,
    /// The clock that counts.
    pub stamps: Stamps,
    /// Rings of each interface; flows are spread over them.
    pub rings: usize,
    /// When the kernel hands frames over.
    pub handover: Handover,
    /// Where the names of interfaces go that frames come by.
    pub interfaces: InterfaceNames,
    /// Set from elsewhere to end the capture: what has come is delivered, and the source ends.
    pub stop: Option<Arc<AtomicBool>>,
    /// Called with what happens to interfaces, by the thread that reads.
    pub events: Option<ReportEvent>,
    /// The part of the query that the kernel is to run as the filter of packet sockets. There is no
    /// capture filter beside it.
    #[cfg(target_os = "linux")]
    pub offload: Option<Offload>,
}

impl Default for LiveOptions {
    fn default() -> LiveOptions {
        LiveOptions {
            filter: None,
            snaplen: CAPLEN_MAX,
            buffer: RING_BUFFER,
            direction: Directions::default(),
            promiscuous: true,
            stamps: Stamps::default(),
            rings: 1,
            handover: Handover::default(),
            interfaces: InterfaceNames::default(),
            stop: None,
            events: None,
            #[cfg(target_os = "linux")]
            offload: None,
        }
    }
}

impl LiveOptions {
    pub(super) fn report(&self, event: &Event) {
        if let Some(report) = &self.events {
            report(event);
        }
    }
}

/// Refuses too many names, and those that are given twice.
pub(crate) fn check_names(names: &[String]) -> Result<(), SourceError> {
    if names.is_empty() || names.len() > LIVE_INTERFACES_MAX {
        return Err(LiveError::Interfaces(names.len()).on(ANY));
    }
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(LiveError::Twice.on(name));
        }
        if name == ANY && names.len() > 1 {
            return Err(LiveError::BesideAll.on(name));
        }
    }
    Ok(())
}
