//! The upper levels of a physical plan as a job on Apache Flink.
//!
//! Probes run the worker level and send the groups of their windows ([`weir_engine::exchange`]). A
//! [`FlinkJob`] says what a job has to know to merge these groups and to make rows of them, and
//! gives the stages that come after as SQL, one view for each. What SQL can't do as Weir does it is
//! [refused](Unsupported) by name. Scans, joins, and alerts at the end are operators of their own.
//!
//! The job itself is the Java program in `flink/`; docs/flink.md has its use.

#![forbid(unsafe_code)]

mod aggregates;
mod alert;
mod expr;
mod job;
mod node;
mod rows;
mod scan;
mod sides;
mod sql;
mod term;
mod unsupported;
mod views;

pub use job::{FlinkJob, VERSION};
pub use unsupported::Unsupported;
