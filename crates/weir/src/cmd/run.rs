//! `weir run`: queries over a capture, to rows and a ledger.

mod ending;
mod job;
mod opening;
mod screen;
mod session;
mod sinks;
mod start;

pub(crate) use job::{Job, job, run};
pub(crate) use screen::show;
