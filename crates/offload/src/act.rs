//! Packet functions whose decisions the kernel makes: which arm of a `branch` takes a frame, and
//! what is done with it.
//!
//! The program asks all pipelines first, and notes on the stack what they do: how often the frame
//! is dropped, and of each outlet whether it gets the frame. Only where none wants to see the
//! frame, and the kernel has a [route](Routes) to these outlets, that is done. An outlet takes
//! frames up to a length, and a VLAN tag besides, that the process keeps in shared memory, 0 while
//! it is away: longer frames go up, and the process does with them what it does with such frames.

mod arms;
mod routes;
mod write;

pub(crate) use arms::{SAME, TWICE};
pub(crate) use routes::Routes;
pub(crate) use write::{ActAll, ActEnds};

use crate::lower::Columns;
use crate::options::HandOut;
use crate::value::{Lowered, Test};
use arms::Reader;
use std::collections::BTreeSet;
use weir_plan::ends::Ends;

/// Outlets that the kernel knows, the first of a plan. Each has a bit of a word.
pub(crate) const OUTLETS_MAX: usize = 64;

/// What is done with a frame.
#[derive(Clone, PartialEq, Debug)]
enum Deed {
    Drop,
    /// The outlet of this number gets it, with a tag that has this VLAN identifier if any.
    Send(usize, Option<u16>),
    /// The key chooses who gets it: the [`text_word`](weir_plan::ends::text_word) of each output
    /// and its number. The tag is as above.
    Steer(Vec<Lowered>, Vec<(u64, usize)>, Option<u16>),
}

impl Deed {
    /// The tag with which an outlet gets the frame, of deeds by which one does.
    fn tag(&self) -> Option<Option<u16>> {
        match self {
            Deed::Drop => None,
            Deed::Send(_, tag) | Deed::Steer(_, _, tag) => Some(*tag),
        }
    }
}

/// What becomes of the frames of an arm.
#[derive(Clone, PartialEq, Debug)]
enum Outcome {
    /// They go up: workers decide.
    Up,
    /// This is done with all of them, and then later stages see them, or none does.
    Deeds { deeds: Vec<Deed>, goes_on: bool },
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
    /// so: one clause.
    ///
    /// # Errors
    /// Where it decides nothing: why.
    pub(crate) fn new(
        ends: &Ends,
        columns: &Columns,
        hand_out: Result<HandOut<'_>, &str>,
    ) -> Result<(Acting, Option<String>), String> {
        let mut reader = Reader { columns, hand_out: hand_out?, why: None };
        let mut arms = Vec::new();
        let mut rest = Outcome::Deeds { deeds: Vec::new(), goes_on: true };
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
        let decides = |outcome: &Outcome| match outcome {
            Outcome::Up => false,
            Outcome::Deeds { deeds, .. } => !deeds.is_empty(),
        };
        if acting.outcomes().any(decides) {
            return Ok((acting, reader.why));
        }
        Err(reader.why.unwrap_or_else(|| "it hands nothing out".to_owned()))
    }

    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.arms.iter().map(|arm| &arm.outcome).chain([&self.rest])
    }

    /// Whether no later stage sees the frames of some arm.
    pub(crate) fn ends_some(&self) -> bool {
        self.outcomes().any(|outcome| matches!(outcome, Outcome::Deeds { goes_on: false, .. }))
    }

    /// The outlets that may get frames: their bits.
    pub(crate) fn outlets(&self) -> u64 {
        self.choices().fold(0, |all, bits| all | bits)
    }

    /// The tags with which outlets may get frames; `None` is without one.
    pub(crate) fn tags(&self) -> BTreeSet<Option<u16>> {
        let deeds = self.outcomes().flat_map(|outcome| match outcome {
            Outcome::Up => &[][..],
            Outcome::Deeds { deeds, .. } => deeds,
        });
        deeds.filter_map(Deed::tag).collect()
    }

    /// The outlets that get a frame together, for each outcome and choice: their bits.
    fn choices(&self) -> impl Iterator<Item = u64> {
        self.outcomes().flat_map(|outcome| {
            let deeds = match outcome {
                Outcome::Up => &[][..],
                Outcome::Deeds { deeds, .. } => deeds,
            };
            let mut choices = vec![0];
            for deed in deeds {
                let bits: Vec<u64> = match deed {
                    Deed::Drop => continue,
                    Deed::Send(n, _) => vec![1 << n],
                    Deed::Steer(_, outputs, _) => outputs.iter().map(|(_, n)| 1 << n).collect(),
                };
                choices =
                    bits.iter().flat_map(|bit| choices.iter().map(move |c| c | bit)).collect();
            }
            choices
        })
    }
}
