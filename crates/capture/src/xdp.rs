//! Live capture by AF_XDP: frames come from the driver into memory of this process, before the
//! kernel makes packet buffers of them, and are read where they lie.
//!
//! [`open_xdp`] puts a small program on each interface that redirects the frames of each receive
//! queue to a socket bound to that queue, and gives an [`XdpSource`] over all of them. Frames that
//! it redirects do not reach the kernel's own stack: the interface is the capture's alone. Program
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
mod options;
mod outputs;
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
pub use open::{open_xdp, open_xdp_offloaded};
pub use options::{BusyPoll, XdpOptions};
pub use program::can_copy_frames;
pub use source::{QueueCounts, XdpSource};
