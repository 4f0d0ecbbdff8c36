//! `weir run`: queries over a capture, to rows and a ledger.

mod carriers;
mod ending;
mod job;
mod opening;
mod partition;
mod publish;
mod report;
mod row_files;
mod row_packets;
mod screen;
mod serves;
mod serving;
mod session;
mod shown;
mod sinks;
mod start;

pub(crate) use carriers::order;
pub(crate) use job::{Job, Shows, job, run};
pub(crate) use report::{ReportForm, ReportJob, report};
pub(crate) use screen::show;
