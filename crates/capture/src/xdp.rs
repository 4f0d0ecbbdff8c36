//! Live capture by AF_XDP: frames come from the driver into memory of this process, before the
//! kernel makes packet buffers of them, and are read where they lie.
//!
//! [`open_xdp`] puts a small program on each interface that redirects the frames of each receive
//! queue to a socket bound to that queue, and gives an [`XdpSource`] over all of them. What it
//! redirects does not reach the kernel's own stack: the interface is the capture's alone. Program
//! and sockets go with the source, or with the process, however that ends.
//!
//! *Memory.* Each queue has memory for frames (a UMEM). The kernel takes frames to fill from one
//! ring and hands them out by another; a batch refers to them where they are, and when it is let
//! go they go back. Nothing is copied, allocated or asked of the kernel for a frame or batch
//! while frames come. If batches are held for long, fewer frames are there to be filled; when
//! there are none, the kernel drops what comes, and counts it.
//!
//! *Time.* AF_XDP gives no time stamps. The frames of a batch get the system's time at which the
//! batch was taken, which never runs backwards within a source. A batch has up to
//! [`BATCH`](weir_packet::limits::BATCH) frames of one queue, all that had come; those of one queue
//! are in the order they came, those of several queues in the order they were taken.
//!
//! *Loss.* Whatever the program saw is accounted for, see [`QueueCounts`].

mod error;
pub(crate) mod link;
mod mode;
mod open;
mod program;
mod queue;
pub(crate) mod ring;
mod source;
#[cfg(test)]
mod tests;
pub(crate) mod tx;

pub use crate::sys::bpf::Attach;
pub use error::{Refused, XdpError};
pub use mode::{Mode, WhyNot};
pub use open::open_xdp;
pub use source::{QueueCounts, XdpSource};

use crate::limits::{XDP_BUSY_POLL_BUDGET, XDP_MEMORY};
use weir_packet::interface::InterfaceNames;

/// How to capture by AF_XDP. The default takes the best that there is, and says what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdpOptions {
    /// Where the program goes; `None`: into the driver if it can, else into the stack.
    pub attach: Option<Attach>,
    /// Whether the driver puts frames into our memory itself; `None`: if it can, else the kernel
    /// copies them.
    pub zero_copy: Option<bool>,
    /// Bytes of memory for the frames of one interface, divided among its queues; each gets a
    /// power of two of frames, within [`XDP_FRAMES_MIN`](crate::limits::XDP_FRAMES_MIN) and
    /// [`XDP_FRAMES_MAX`](crate::limits::XDP_FRAMES_MAX).
    pub memory: usize,
    /// Bytes of each frame that are shown.
    pub snap: u32,
    /// Have the kernel look after the queues when this source asks, rather than by interrupts.
    pub busy_poll: Option<BusyPoll>,
    /// Where the names of interfaces go that frames come by.
    pub interfaces: InterfaceNames,
}

/// How the kernel polls a queue on behalf of its socket (Linux 5.11). It takes effect where the
/// interface defers interrupts: `napi_defer_hard_irqs` and `gro_flush_timeout` below
/// `/sys/class/net/`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BusyPoll {
    /// Microseconds at a time.
    pub micros: u32,
    /// Frames at a time.
    pub budget: u32,
}

impl Default for BusyPoll {
    fn default() -> BusyPoll {
        BusyPoll { micros: 20, budget: XDP_BUSY_POLL_BUDGET }
    }
}

impl Default for XdpOptions {
    fn default() -> XdpOptions {
        XdpOptions {
            attach: None,
            zero_copy: None,
            memory: XDP_MEMORY,
            snap: u32::MAX,
            busy_poll: None,
            interfaces: InterfaceNames::default(),
        }
    }
}
