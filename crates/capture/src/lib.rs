//! Where frames come from and go: capture files, plain or compressed, mapped or streamed, and the
//! filters that tcpdump users type; the interfaces of this machine ([`live`]).
//! [`records`] are the flow records of exporters.
//! [`outlets::Outlets`] takes the frames that a run hands out, to files ([`mod@write`]) and onto
//! wires ([`send`]).
//!
//! [`open`] takes what a user names and gives a [`Source`](weir_packet::source::Source). A plain
//! file is mapped and its frames stay where they are; standard input, pipes and compressed files
//! are read into buffers that are used again once no batch refers to them. Either way no byte of a
//! frame is copied, nothing is allocated per batch, and every record is delivered, filtered, or the
//! subject of an error that says where it stands.

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod adapter;
mod ahead;
pub mod bpf;
mod buffers;
mod captures;
pub mod cbpf;
mod chain;
mod compress;
mod decode;
#[cfg(target_os = "linux")]
pub mod ebpf;
mod file;
#[cfg(any(test, fuzzing))]
#[path = "tests/fuzz.rs"]
mod fuzz;
pub mod limits;
pub mod live;
pub mod loans;
pub mod lookback;
pub mod memory;
mod merge;
mod open;
mod options;
pub mod outlets;
#[cfg(target_os = "linux")]
pub mod records;
pub mod send;
mod stream;
mod sys;
#[cfg(target_os = "linux")]
pub mod tcx;
mod unread;
pub mod wrapped;
pub mod write;
#[cfg(target_os = "linux")]
pub mod xdp;

pub use captures::{Captures, open_all};
#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_file;
pub use open::{begins_as_capture, open, open_bytes, open_reader, size_hint};
pub use options::{Options, Order};
#[cfg(target_os = "linux")]
pub use sys::error::KernelError;
pub use sys::libpcap::device::version as libpcap_version;
