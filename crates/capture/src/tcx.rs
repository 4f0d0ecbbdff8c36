//! Live capture at the traffic control hook of interfaces (tcx, Linux 6.6): the host goes on
//! receiving and sending what is captured.
//!
//! [`open_tcx`] puts a small program before all others of the hook. It copies each packet into a
//! ring that the kernel and this process share, with the time when it came, and lets it pass. The
//! part that a query [offloads](crate::ebpf::Offloaded) runs before that, and what it finishes is
//! not copied. Program and ring go with the source, or with the process, however that ends.
//!
//! *Units.* The hook sees packet buffers: on the way in after receive offload (GRO) has joined
//! several frames, on the way out before the adapter cuts them up (TSO), as AF_PACKET does. The
//! outer VLAN tag stands beside them, and is put back.
//!
//! *Memory.* Batches refer to the ring; the room of records goes back in their order. Where there
//! is none, the packet is lost to the capture, and counted.

mod error;
mod open;
mod program;
pub(crate) mod ring;
mod source;
#[cfg(test)]
pub(crate) mod tests;

pub use error::TcxError;
pub use open::open_tcx;
