//! Several probes, one result: the worker level of a query runs on each probe, and one process
//! merges what they have.
//!
//! A probe writes a *probe stream* ([`ProbeWriter`]): a [`ProbeHead`], which says who it is and how
//! it reads packets, then its [messages](weir_engine::exchange::Message), each with its length.
//! [`Merge`] reads the streams of all probes, in files or pipes, the slowest first, and feeds a
//! [`Receiver`](weir_engine::exchange::Receiver) with them. It waits for a probe as long as its
//! stream is open, and never goes on because of a clock. A stream may hold several lives of its
//! probe, which come while the merge goes on.
//!
//! docs/partials.md has the bytes, docs/cluster.md the use.

#![forbid(unsafe_code)]

mod framing;
mod head;
mod inbox;
mod lanes;
pub mod limits;
mod merge;
mod merging;
mod probes;
mod report;
mod skew;

#[cfg(any(test, fuzzing))]
pub use framing::fuzz_probe_stream;
pub use framing::{ProbeReader, ProbeWriter, StreamFault, StreamItem};
pub use head::{PacketRules, ProbeClock, ProbeHead};
pub use merge::Merge;
pub use probes::{Begin, ForeignStream, MixedProbes, OpenedStreams, ProbeInput, ProbeStream};
pub use report::{
    MergeControl, MergeOutcome, ProbeDelay, ProbeProgress, ProbeStanding, SkewWatch, StreamEnd,
    StreamReport,
};
pub use skew::ClockFault;
