//! Datagrams of exporters to flow records: IPFIX (RFC 7011, with RFC 5103), NetFlow version 9
//! (RFC 3954), NetFlow version 5, and sFlow version 5.
//!
//! A [`Collector`] takes one datagram after the other, with the address that it came from and the
//! time when it came, and hands out a [`FlowRecord`] for each flow record in it. It remembers
//! templates, sampling rates and sequence numbers of each exporter, all of it bounded ([`limits`]).
//! It makes no system call and reads no clock. Any bytes give an answer: what can't be read is
//! counted under a named [`Fault`], and what was read before it stays good.
//!
//! [`FlowRecord`]: weir_packet::record::FlowRecord

#![forbid(unsafe_code)]

mod bytes;
mod collector;
mod counts;
mod element;
mod export;
#[cfg(any(test, fuzzing))]
#[path = "tests/fuzz.rs"]
mod fuzz;
mod held;
mod ipfix;
pub mod limits;
mod netflow5;
mod netflow9;
mod reading;
mod senders;
mod sequence;
mod session;
mod sflow;
mod template;
mod totals;

pub use collector::{Collector, Datagram};
pub use counts::{Counts, Exporter, Fault};
#[cfg(any(test, fuzzing))]
pub use fuzz::fuzz_datagrams;
