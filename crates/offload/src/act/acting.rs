//! The arms of a `branch`, and what becomes of the frames that take them.

use super::arms::Reader;
use super::deed::{Deed, Edits, Outcome};
use crate::lower::Columns;
use crate::options::HandOut;
use crate::value::Test;
use std::collections::BTreeSet;
use weir_plan::ends::Ends;

/// The fate of those frames that no arm before takes and for which a condition holds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct KernelArm {
    pub(super) when: Test,
    pub(super) outcome: Outcome,
}

/// A packet function in the kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Acting {
    pub(super) arms: Vec<KernelArm>,
    /// The fate of frames that no arm takes.
    pub(super) rest: Outcome,
}

impl Acting {
    /// The part of a stage over these columns that the kernel decides, and why it does not decide
    /// all, if so: one clause.
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

    pub(super) fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
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

    pub(super) fn deeds(&self) -> impl Iterator<Item = &Deed> {
        self.outcomes().flat_map(|outcome| match outcome {
            Outcome::Up => &[][..],
            Outcome::Deeds { deeds, .. } => deeds,
        })
    }

    /// The edits that may be done to frames before outlets get them.
    pub(crate) fn edits(&self) -> BTreeSet<Edits> {
        self.deeds().filter_map(Deed::edits).collect()
    }

    /// To how many bytes frames may be shortened that some of these outlets get.
    pub(crate) fn lengths(&self, outlets: u64) -> BTreeSet<u16> {
        let gets = |deed: &&Deed| deed.outlets() & outlets != 0;
        self.deeds().filter(gets).filter_map(|deed| deed.edits()?.most).collect()
    }

    /// The outlets that get a frame together, for each outcome and choice: their bits.
    pub(super) fn choices(&self) -> impl Iterator<Item = u64> {
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
