//! The levels of a plan that run in this process: workers, and the machine above them.

mod conditions;
pub(crate) mod machine;
pub(crate) mod worker;

use crate::ops::groups::Groups;
use crate::ops::operator::ActionsId;
use weir_plan::physical::PipelineId;

/// The channel by which rows or frames leave the workers while packets come. Rows sort before
/// frames.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Channel {
    /// Rows of a pipeline.
    Rows(PipelineId),
    /// Frames of a stage that hands some out.
    Frames(ActionsId),
}

/// The groups of a window that has closed on a worker.
pub(crate) struct Closed {
    /// The pipeline that they are of.
    pub(crate) pipeline: PipelineId,
    /// When the window started; of sessions the tick that they come out at.
    pub(crate) start: i64,
    pub(crate) groups: Groups,
}
