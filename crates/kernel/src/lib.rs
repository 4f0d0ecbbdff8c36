//! The part of a query that the kernel runs: how it is loaded, where it stores groups and counts,
//! and how these reach the machine level.

#![forbid(unsafe_code)]

mod opening;
mod outlets;
mod query;
mod tables;

pub use opening::{AtHook, not_offloaded, offloaded};
pub use query::{KernelQuery, KernelRun, WORKERS_COUNT, for_sockets, refusal_of};
pub use tables::KernelTables;
