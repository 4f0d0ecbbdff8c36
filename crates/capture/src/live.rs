//! Frames of interfaces, as they pass: by AF_PACKET on Linux, and by libpcap anywhere.
//!
//! What both have in common is here: options, what is told while frames come, time and losses. Only
//! what depends on AF_PACKET is of Linux alone.

#[cfg(target_os = "linux")]
mod block;
pub mod clock;
pub mod driver;
mod error;
mod indices;
#[cfg(target_os = "linux")]
mod interface;
mod losses;
#[cfg(target_os = "linux")]
mod open;
#[cfg(target_os = "linux")]
mod packet;
mod pcap;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
pub(crate) mod watch;

pub use error::{LiveError, PcapError};
#[cfg(target_os = "linux")]
pub use interface::{Interface, interfaces};
#[cfg(target_os = "linux")]
pub use packet::open_live;
pub use pcap::{Device, PcapSource, devices, open_pcap};

use crate::bpf::Filter;
use crate::cbpf::Instruction;
use crate::limits::{LIVE_INTERFACES_MAX, RING_BUFFER};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::interface::InterfaceNames;
use weir_packet::limits::CAPLEN_MAX;
use weir_packet::source::SourceError;

/// The name for all interfaces together, those to come included.
pub const ANY: &str = "any";

/// Which frames are captured.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Direction {
    /// Those that the machine receives.
    In,
    /// Those that it sends.
    Out,
    /// Both.
    #[default]
    InOut,
}

/// Whose clock says when a frame came, by tcpdump's names (pcap-tstamp(7)).
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
    /// Each as it comes: for frames that somebody waits for, as they are sent on. A frame takes a
    /// slot of its own, so that less of them find room in as much memory.
    AtOnce,
}

/// Is told of what happens.
pub type Tell = Box<dyn Fn(&Event) + Send>;

/// How to capture.
pub struct LiveOptions {
    /// Deliver only the frames that match.
    pub filter: Option<Filter>,
    /// Bytes to keep of each frame at most.
    pub snaplen: u32,
    /// Bytes that the rings of an interface take together, in whole blocks.
    pub buffer: usize,
    /// Which frames.
    pub direction: Direction,
    /// Take frames that are meant for others too.
    pub promiscuous: bool,
    /// Whose clock counts.
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
    pub events: Option<Tell>,
}

impl Default for LiveOptions {
    fn default() -> LiveOptions {
        LiveOptions {
            filter: None,
            snaplen: CAPLEN_MAX,
            buffer: RING_BUFFER,
            direction: Direction::default(),
            promiscuous: true,
            stamps: Stamps::default(),
            rings: 1,
            handover: Handover::default(),
            interfaces: InterfaceNames::default(),
            stop: None,
            events: None,
        }
    }
}

impl LiveOptions {
    fn tell(&self, event: &Event) {
        if let Some(tell) = &self.events {
            tell(event);
        }
    }
}

/// What happened to an interface while it was captured from.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// It was switched off, or was off when the capture began.
    Down(String),
    /// It was switched on again.
    Up(String),
    /// It was removed; nothing will come from it any more.
    Gone(String),
    /// The kernel does not take the capture filter; it is applied behind the ring.
    FilterBehind {
        /// The interface.
        interface: String,
        /// The kernel's words.
        reason: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Down(name) => write!(f, "{name} is down; frames come once it is up again"),
            Event::Up(name) => write!(f, "{name} is up again"),
            Event::Gone(name) => write!(f, "{name} was removed"),
            Event::FilterBehind { interface, reason } => write!(
                f,
                "{interface}: the kernel does not take the capture filter ({reason}); it is \
                 applied to what the ring holds, which takes more time"
            ),
        }
    }
}

/// How an interface is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// It is switched on, or its link is up.
    Up,
    /// It is there, and nothing comes by it.
    Down,
    /// It was removed.
    Gone,
}

impl LinkState {
    /// What is told when an interface comes to be so.
    fn event(self, name: String) -> Event {
        match self {
            LinkState::Up => Event::Up(name),
            LinkState::Down => Event::Down(name),
            LinkState::Gone => Event::Gone(name),
        }
    }
}

/// Refuses too many names, and those that are given twice.
fn check_names(names: &[String]) -> Result<(), SourceError> {
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

#[cfg(target_os = "linux")]
fn error(name: &str, source: std::io::Error) -> SourceError {
    SourceError::Io { name: name.to_owned(), source }
}

/// A capture filter as the system gets it from libpcap. On Linux, frames whose VLAN tag stands
/// beside them pass, since the filter would not see it there; elsewhere frames are whole.
fn program_of(filter: &[Instruction]) -> Vec<Instruction> {
    #[cfg(target_os = "linux")]
    return program::program(Direction::InOut, None, CAPLEN_MAX, Some(filter));
    #[cfg(not(target_os = "linux"))]
    filter.to_vec()
}
