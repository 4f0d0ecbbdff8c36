//! The deeds that are done with frames, and the edits that are done to them.

use crate::value::Lowered;
use weir_packet::vlan::TAG_LEN;

/// Outlets that the kernel knows, the first of a plan. Each has a bit of a word.
pub(crate) const OUTLETS_MAX: usize = 64;

/// A deed that is done with a frame.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Deed {
    Drop,
    /// The outlet of this number gets it.
    Send(usize, Edits),
    /// The key chooses who gets it: the [`text_word`](weir_plan::ends::text_word) of each output
    /// and its number.
    Steer(Vec<Lowered>, Vec<(u64, usize)>, Edits),
}

impl Deed {
    /// The outlets that may get the frame by it: their bits.
    pub(super) fn outlets(&self) -> u64 {
        match self {
            Deed::Drop => 0,
            Deed::Send(n, _) => 1 << n,
            Deed::Steer(_, outputs, _) => outputs.iter().fold(0, |all, (_, n)| all | 1 << n),
        }
    }

    /// The edits to the frame before an outlet gets it, of deeds by which one does.
    pub(super) fn edits(&self) -> Option<Edits> {
        match self {
            Deed::Drop => None,
            Deed::Send(_, edits) | Deed::Steer(_, _, edits) => Some(*edits),
        }
    }
}

/// The edits to a frame before it goes out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Edits {
    /// It gets a tag that has this VLAN identifier.
    pub(super) tag: Option<u16>,
    /// It is shortened to at most this many bytes, its tag included.
    pub(super) most: Option<u16>,
}

impl Edits {
    pub(super) const NONE: Edits = Edits { tag: None, most: None };

    /// Bytes by which it becomes longer.
    pub(super) fn tag_bytes(self) -> i32 {
        if self.tag.is_some() { TAG_LEN as i32 } else { 0 }
    }

    /// As a word of the stack: the tag as it stands in a frame, in the order of this machine's
    /// bytes, and above it how many bytes leave at most; 0 for none of these.
    pub(super) fn word(self) -> i64 {
        let tag = self.tag.map_or(0, |id| {
            let [high, low] = id.to_be_bytes();
            u32::from_ne_bytes([0x81, 0x00, high, low])
        });
        i64::from(tag) | i64::from(self.most.unwrap_or(0)) << MOST_SHIFT
    }
}

/// Where in the word of [`Edits`] the bytes stand that leave at most.
pub(super) const MOST_SHIFT: i32 = 32;

/// The fate of the frames of an arm.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Outcome {
    /// They go up: workers decide.
    Up,
    /// This is done with all of them, and then later stages see them, or none does.
    Deeds { deeds: Vec<Deed>, goes_on: bool },
}
