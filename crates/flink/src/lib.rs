//! The work of a job on Apache Flink: the merge of the partial results of probes, and all stages
//! above it, by the engine that `weir merge` runs.
//!
//! A [`FlinkJob`] is what the job is told. A [`Tier`] takes the records of a topic one after the
//! other, gives rows out as lines, and saves all that it holds for a checkpoint. The job itself is
//! the Java program in `flink/`, which calls a tier by the crate `native`; docs/flink.md has its
//! use.

#![forbid(unsafe_code)]

mod fault;
mod job;
pub mod limits;
mod lines;
mod probe;
mod record;
mod saved;
mod tier;

pub use fault::TierFault;
pub use job::{FlinkJob, VERSION};
pub use lines::{EVENTS, Give, RowForm};
pub use record::TopicRecord;
pub use tier::{Tier, TierCounts, TierTerms};
