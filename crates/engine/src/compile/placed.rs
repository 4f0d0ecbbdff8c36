//! A program whose stages have their places.

use crate::kernel::KernelFeed;
use crate::options::Options;
use crate::peers::BuildContext;
use crate::room::fit;
use std::borrow::Cow;
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

/// A program with bounds that fit into the memory of this machine, and its physical plan.
pub(crate) struct FittedProgram<'a> {
    program: Cow<'a, Program>,
    plan: Physical,
    with: BuildContext<'a>,
    may_change: bool,
    kernel: Option<Arc<dyn KernelFeed>>,
}

impl<'a> FittedProgram<'a> {
    /// Fits the default bounds of a program for so many workers. Where its stages run depends on
    /// the bounds that queries name, not on those of this machine. `kernel` knows pipelines by the
    /// numbers that they have here.
    pub(crate) fn new(
        program: &'a Program,
        placement: &Placement,
        workers: usize,
        options: &Options,
        kernel: Option<Arc<dyn KernelFeed>>,
        with: BuildContext<'a>,
    ) -> FittedProgram<'a> {
        let program = match options.memory {
            Some(memory) => Cow::Owned(fit(program, with.functions, memory, workers).0),
            None => Cow::Borrowed(program),
        };
        let plan = Physical::placed(&program, placement);
        let may_change = options.changes.is_some();
        FittedProgram { program, plan, with, may_change, kernel }
    }

    /// What is compiled, level by level.
    pub(crate) fn placed(&self) -> Placed<'_> {
        let FittedProgram { program, plan, with, may_change, kernel } = self;
        let kernel = kernel.as_ref();
        Placed { program, plan, with: *with, may_change: *may_change, kernel }
    }
}
