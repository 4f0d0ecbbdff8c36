//! Packet functions whose decisions the kernel makes: which arm of a `branch` takes a frame, and
//! what is done with it.
//!
//! What is done is a *deed*: nothing (0), to drop the frame (1), or to hand it to the outlet of
//! number `n` (2 + `n`). The program asks all pipelines first. Only where none wants to see the
//! frame, and it has one way to go at most, the deeds are done. An outlet takes frames up to a
//! length, and a VLAN tag besides, that the process keeps in shared memory, 0 while it is away:
//! longer frames go up, and the process does with them what it does with such frames.

mod arms;
mod write;

pub(crate) use write::{ActAll, ActEnds};

use crate::lower::Columns;
use crate::options::KernelOutlet;
use crate::value::{Lowered, Test};
use arms::Reader;
use weir_plan::ends::Ends;

/// How many pipelines do something with frames in the kernel, at most.
pub(crate) const ACTING_MAX: usize = 4;

/// The deed that drops a frame; those of outlets follow.
pub(crate) const DROP: i32 = 1;

/// The deed that hands a frame to the outlet of this number.
pub(crate) fn deed_of(outlet: usize) -> i32 {
    DROP + 1 + outlet as i32
}

/// What becomes of the frames of an arm.
#[derive(Clone, PartialEq, Debug)]
enum Outcome {
    /// They go up: workers decide.
    Up,
    /// The pipeline does not want them.
    Nothing,
    /// This is done with all of them.
    Deed(i32),
    /// The key chooses what is done: the [`text_word`](weir_plan::ends::text_word) of each output
    /// and its deed.
    Steer(Vec<Lowered>, Vec<(u64, i32)>),
}

/// What becomes of those frames that no arm before takes and for which a condition holds.
#[derive(Clone, PartialEq, Debug)]
struct KernelArm {
    when: Test,
    outcome: Outcome,
}

/// A packet function in the kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Acting {
    arms: Vec<KernelArm>,
    /// What becomes of frames that no arm takes.
    rest: Outcome,
}

impl Acting {
    /// What the kernel decides of a stage over these columns, and why it does not decide all, if
    /// so: one clause. `goes_on`: rows that the stage does not end are wanted.
    ///
    /// # Errors
    /// Where it decides nothing: why.
    pub(crate) fn new(
        ends: &Ends,
        columns: &Columns,
        outlets: Result<&[KernelOutlet], &str>,
        goes_on: bool,
    ) -> Result<(Acting, Option<String>), String> {
        let mut reader = Reader { columns, outlets: outlets?, goes_on, why: None };
        let mut arms = Vec::new();
        let mut rest = reader.going_on();
        for arm in &ends.arms {
            let outcome = reader.outcome(arm);
            let Some(when) = &arm.when else {
                rest = outcome;
                break;
            };
            match reader.condition(when) {
                Some((when, is_exact)) => {
                    let outcome = if is_exact { outcome } else { Outcome::Up };
                    arms.push(KernelArm { when, outcome });
                }
                None => {
                    rest = Outcome::Up;
                    break;
                }
            }
        }
        let acting = Acting { arms, rest };
        let decides = |outcome: &Outcome| !matches!(outcome, Outcome::Up | Outcome::Nothing);
        if acting.outcomes().any(decides) {
            return Ok((acting, reader.why));
        }
        Err(reader.why.unwrap_or_else(|| "it hands nothing out".to_owned()))
    }

    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.arms.iter().map(|arm| &arm.outcome).chain([&self.rest])
    }
}
