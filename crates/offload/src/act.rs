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
mod shorten;
mod write;

pub(crate) use arms::{SAME, TWICE};
pub(crate) use routes::Routes;
pub(crate) use write::{ActAll, ActEnds};

use crate::lower::Columns;
use crate::options::HandOut;
use crate::value::{Lowered, Test};
use arms::Reader;
use std::collections::BTreeSet;
use weir_packet::vlan::TAG_LEN;
use weir_plan::ends::Ends;

/// Outlets that the kernel knows, the first of a plan. Each has a bit of a word.
pub(crate) const OUTLETS_MAX: usize = 64;

/// What is done with a frame.
#[derive(Clone, PartialEq, Debug)]
enum Deed {
    Drop,
    /// The outlet of this number gets it.
    Send(usize, Edits),
    /// The key chooses who gets it: the [`text_word`](weir_plan::ends::text_word) of each output
    /// and its number.
    Steer(Vec<Lowered>, Vec<(u64, usize)>, Edits),
}

impl Deed {
    /// The outlets that may get the frame by it: their bits.
    fn outlets(&self) -> u64 {
        match self {
            Deed::Drop => 0,
            Deed::Send(n, _) => 1 << n,
            Deed::Steer(_, outputs, _) => outputs.iter().fold(0, |all, (_, n)| all | 1 << n),
        }
    }

    /// What is done to the frame before an outlet gets it, of deeds by which one does.
    fn edits(&self) -> Option<Edits> {
        match self {
            Deed::Drop => None,
            Deed::Send(_, edits) | Deed::Steer(_, _, edits) => Some(*edits),
        }
    }
}

/// What is done to a frame before it goes out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Edits {
    /// It gets a tag that has this VLAN identifier.
    tag: Option<u16>,
    /// It is shortened to at most this many bytes, its tag included.
    most: Option<u16>,
}

impl Edits {
    const NONE: Edits = Edits { tag: None, most: None };

    /// Bytes by which it becomes longer.
    fn tag_bytes(self) -> i32 {
        if self.tag.is_some() { TAG_LEN as i32 } else { 0 }
    }

    /// As a word of the stack: the tag as it stands in a frame, in the order of this machine's
    /// bytes, and above it how many bytes leave at most; 0 for none of these.
    fn word(self) -> i64 {
        let tag = self.tag.map_or(0, |id| {
            let [high, low] = id.to_be_bytes();
            u32::from_ne_bytes([0x81, 0x00, high, low])
        });
        i64::from(tag) | i64::from(self.most.unwrap_or(0)) << MOST_SHIFT
    }
}

/// Where in the word of [`Edits`] the bytes stand that leave at most.
const MOST_SHIFT: i32 = 32;

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

    fn deeds(&self) -> impl Iterator<Item = &Deed> {
        self.outcomes().flat_map(|outcome| match outcome {
            Outcome::Up => &[][..],
            Outcome::Deeds { deeds, .. } => deeds,
        })
    }

    /// What may be done to frames before outlets get them.
    pub(crate) fn edits(&self) -> BTreeSet<Edits> {
        self.deeds().filter_map(Deed::edits).collect()
    }

    /// To how many bytes frames may be shortened that some of these outlets get.
    pub(crate) fn lengths(&self, outlets: u64) -> BTreeSet<u16> {
        let gets = |deed: &&Deed| deed.outlets() & outlets != 0;
        self.deeds().filter(gets).filter_map(|deed| deed.edits()?.most).collect()
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
