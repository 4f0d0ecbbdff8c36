//! A program that is compiled and not at work yet.

use crate::continued::ContinuedFeed;
use crate::level::machine::MachinePipes;
use crate::level::worker::WorkerLevel;
use crate::partitioning::Partitionings;
use std::sync::Arc;
use weir_plan::Program;
use weir_plan::place::Placement;

/// All of a program that takes long to make, and that any thread can make.
pub(crate) struct ReadyProgram {
    pub(crate) program: Program,
    pub(crate) placement: Placement,
    pub(crate) partitionings: Arc<Partitionings>,
    /// Of each worker one for each of its lanes.
    pub(crate) workers: Vec<Vec<WorkerLevel>>,
    pub(crate) pipes: MachinePipes,
    /// The kernel level, if there is one.
    pub(crate) kernel: Option<ContinuedFeed>,
}
