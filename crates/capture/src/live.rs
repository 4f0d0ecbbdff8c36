//! Frames of interfaces, as they pass: by AF_PACKET on Linux, and by libpcap anywhere.
//!
//! Options, events, time, losses and the driver are the same for both. Only what depends on
//! AF_PACKET is of Linux alone.

#[cfg(target_os = "linux")]
mod block;
#[cfg(target_os = "linux")]
mod bound;
pub mod clock;
mod count;
pub mod driver;
mod error;
mod event;
mod indices;
#[cfg(target_os = "linux")]
mod interface;
#[cfg(target_os = "linux")]
mod kernel;
mod losses;
#[cfg(target_os = "linux")]
mod open;
mod options;
#[cfg(target_os = "linux")]
mod packet;
mod pcap;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod spread;
#[cfg(target_os = "linux")]
pub(crate) mod watch;

pub use error::{LiveError, PcapError};
pub use event::{Event, LinkState, ReportEvent};
#[cfg(target_os = "linux")]
pub(crate) use interface::shape;
#[cfg(target_os = "linux")]
pub use interface::{Interface, interfaces};
#[cfg(target_os = "linux")]
pub(crate) use options::check_names;
pub use options::{ANY, Directions, Handover, LiveOptions, Stamps};
#[cfg(target_os = "linux")]
pub use options::{KernelPart, MakeKernelPart, Offload, SocketSite};
#[cfg(target_os = "linux")]
pub use packet::open_live;
pub use pcap::{PcapDevice, PcapSource, devices, open_pcap};
