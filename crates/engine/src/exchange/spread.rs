//! A plan that is spread over several machines, made ready on one of them.

use super::print::Targets;
use super::refused::{Crossing, Refused, crossings};
use crate::compile::{Placed, PlacedProgram};
use crate::functions::Functions;
use crate::options::Options;
use crate::peers::{BuildContext, Peers};
use weir_plan::Program;
use weir_plan::physical::Physical;
use weir_plan::place::place;

/// A plan that is spread over several machines.
pub(super) struct SpreadPlan {
    pub(super) program: Program,
    /// The partial aggregations whose groups travel.
    pub(super) crossings: Vec<Crossing>,
    /// The targets of messages.
    pub(super) targets: Targets,
}

impl SpreadPlan {
    /// Makes a plan ready; `build` compiles a level of it, with bounds that fit into the memory of
    /// this machine.
    ///
    /// # Errors
    /// Where the plan can't be spread over several machines.
    pub(super) fn new<T>(
        plan: &Physical,
        functions: &Functions,
        options: &Options,
        peers: Peers,
        build: impl FnOnce(&Program, Placed<'_>) -> T,
    ) -> Result<(SpreadPlan, T), Refused> {
        let (crossings, _) = crossings(plan)?;
        let targets = Targets::of(plan, &crossings, functions.signatures())?;
        let program = plan.program();
        let placement = place(&program);
        if Physical::placed(&program, &placement) != *plan {
            return Err(Refused::OtherCut);
        }
        let room = options.memory.as_ref();
        let with = BuildContext { functions, hash_key: options.hash_key, peers, room };
        let kernel = options.kernel.clone();
        let planned = PlacedProgram::new(&program, &placement, options, kernel, with);
        let level = build(&program, planned.placed());
        drop(planned);
        Ok((SpreadPlan { program, crossings, targets }, level))
    }
}
