//! The physical plan: what of a program runs on which level, and what crosses between levels.
//!
//! A [`Program`](crate::Program) says what is computed. Here it is placed: each pipeline is cut
//! into fragments, one for each level that it runs on, and an [`Exchange`] stands wherever data
//! crosses from one level to the next. A `summarize` whose groups merge is two nodes then: its
//! partial half on the workers, its final half on the machine.
//!
//! The plan is a plain value. `weir explain` prints it, it can be [written](Physical::to_json) as
//! JSON and [read back](Physical::from_json), and it holds enough to give the
//! [program](Physical::program) back.

mod check;
mod columns;
mod conditions;
mod cut;
mod fault;
pub mod fingerprint;
mod json;
mod kernel;
mod plan;
mod program;
mod reads;
mod ticks;

pub use columns::columns_read;
pub use conditions::{Conditions, untested};
pub use fault::PlanFault;
pub use json::{Unreadable, Unwritable, VERSION, fuzz_physical};
pub use kernel::Prefix;
pub use plan::{
    Combine, Exchange, ExchangeId, Fragment, Half, Inlet, Level, LevelKind, Needs, Node, NodeId,
    OutputId, Payload, Physical, PipelineId, PipelineInfo, Target, Work,
};
pub use reads::{Carry, carried, fields_read, parts_read};
pub use ticks::{Tick, exact, tick_of, ticks};
