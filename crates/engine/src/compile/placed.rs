//! A program whose stages have their places.

use crate::kernel::KernelFeed;
use crate::options::Options;
use crate::peers::BuildContext;
use std::sync::Arc;
use weir_plan::Program;
use weir_plan::physical::Physical;
use weir_plan::place::Placement;

/// A placed program that is compiled, level by level.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) program: &'a Program,
    pub(crate) plan: &'a Physical,
    pub(crate) with: BuildContext<'a>,
    /// Whether other stages may go on with what stages hold, once programs change.
    pub(crate) may_change: bool,
    /// The kernel level, which may hold states of the program.
    pub(crate) kernel: Option<&'a Arc<dyn KernelFeed>>,
}

/// A program and its physical plan.
pub(crate) struct PlacedProgram<'a> {
    program: &'a Program,
    plan: Physical,
    with: BuildContext<'a>,
    may_change: bool,
    kernel: Option<Arc<dyn KernelFeed>>,
}

impl<'a> PlacedProgram<'a> {
    /// Plans a program. `kernel` knows pipelines by the numbers that they have here.
    pub(crate) fn new(
        program: &'a Program,
        placement: &Placement,
        options: &Options,
        kernel: Option<Arc<dyn KernelFeed>>,
        with: BuildContext<'a>,
    ) -> PlacedProgram<'a> {
        let plan = Physical::placed(program, placement);
        let may_change = options.changes.is_some();
        PlacedProgram { program, plan, with, may_change, kernel }
    }

    /// The placed program, to be compiled level by level.
    pub(crate) fn placed(&self) -> Placed<'_> {
        let PlacedProgram { program, plan, with, may_change, kernel } = self;
        let kernel = kernel.as_ref();
        Placed { program, plan, with: *with, may_change: *may_change, kernel }
    }
}
