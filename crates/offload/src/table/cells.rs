//! The values that a slot keeps of each aggregate.

use super::shape::ValueShape;
use weir_plan::{Agg, AggFunc, Type};

/// The values that a slot keeps of an aggregate. Places are words of a slot; all are zero at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    /// Nothing: it is how many frames the slot counted, or does not depend on them.
    Frames,
    /// How many values there were.
    Count { at: usize },
    /// A sum, and which bit says that there was a value, if it may lack one.
    Sum { at: usize, seen: Option<u32> },
    /// A sum, and how many values there were, if not as many as frames.
    Mean { at: usize, values: Option<usize> },
    /// How far the least value is below one more than the greatest that there may be, as an
    /// unsigned number; 0 for none.
    Least { at: usize, beyond: i64 },
    /// How far the greatest value is above one less than the least that there may be, as an
    /// unsigned number; 0 for none.
    Greatest { at: usize, below: i64 },
    /// Bits: this one, that a false value was seen, and the one after it, that a true one was.
    Truth { bit: u32 },
    /// A value of one word or two, after the time of the frame that it is of by the kernel's
    /// monotonic clock; 0 for none. Of frames, the first or the last counts.
    Ordered { at: usize, words: usize, last: bool },
    /// All bits that were set in a value, and which bit says that there was one.
    Or { at: usize, seen: Option<u32> },
}

/// Hands out the words of a slot, and bits of a word of flags.
pub(super) struct Room {
    pub(super) words: usize,
    pub(super) flags: u32,
}

impl Room {
    fn word(&mut self) -> usize {
        self.words(1)
    }

    fn words(&mut self, n: usize) -> usize {
        self.words += n;
        self.words - n
    }

    fn bits(&mut self, n: u32) -> u32 {
        self.flags += n;
        self.flags - n
    }
}

/// The bits that a word of flags has.
const FLAGS: u32 = u64::BITS;

impl Cell {
    /// The cell of an aggregate whose argument has this shape, and the number of frames after which
    /// its sum might leave 63 bits; or why there is none: one clause.
    pub(super) fn new(
        agg: &Agg,
        arg: Option<ValueShape>,
        room: &mut Room,
    ) -> Result<(Cell, u64), String> {
        let is_nullable = agg.cond.is_some() || arg.is_some_and(ValueShape::is_nullable);
        let (mut least, mut greatest) = (0, 0);
        let takes_any = matches!(agg.func, AggFunc::Count | AggFunc::First | AggFunc::Last);
        match arg {
            Some(ValueShape::Address { .. }) if !takes_any => {
                return Err(format!("`{}` is of addresses", agg.name));
            }
            Some(ValueShape::Word { least: l, greatest: g, .. }) => (least, greatest) = (l, g),
            _ => {}
        }
        if agg.arg.as_ref().is_some_and(|arg| arg.ty == Type::Float) {
            return Err(format!("`{}` is of floats", agg.name));
        }
        let seen = |room: &mut Room| is_nullable.then(|| room.bits(1));
        // One more than the span must fit, since 0 stands for no value.
        let fits = greatest.wrapping_sub(least) as u64 != u64::MAX;
        let cell = match (agg.func, arg) {
            (AggFunc::Count, _) | (AggFunc::Rate(_), None) if !is_nullable => Cell::Frames,
            // It is of the window, and not of its groups.
            (AggFunc::Completeness, _) => Cell::Frames,
            (AggFunc::Count, _) | (AggFunc::Rate(_), None) => Cell::Count { at: room.word() },
            (AggFunc::Sum | AggFunc::Rate(_), Some(_)) => {
                Cell::Sum { at: room.word(), seen: seen(room) }
            }
            (AggFunc::Avg, Some(_)) => {
                Cell::Mean { at: room.word(), values: is_nullable.then(|| room.word()) }
            }
            (AggFunc::Min | AggFunc::Max, Some(_)) if !fits => {
                return Err(format!("`{}` is of all integers of 64 bits", agg.name));
            }
            (AggFunc::Min, Some(_)) => {
                Cell::Least { at: room.word(), beyond: greatest.wrapping_add(1) }
            }
            (AggFunc::Max, Some(_)) => {
                Cell::Greatest { at: room.word(), below: least.wrapping_sub(1) }
            }
            (AggFunc::Any | AggFunc::All, Some(_)) => Cell::Truth { bit: room.bits(2) },
            (AggFunc::First | AggFunc::Last, Some(arg)) => {
                let words = if matches!(arg, ValueShape::Address { .. }) { 2 } else { 1 };
                let last = agg.func == AggFunc::Last;
                Cell::Ordered { at: room.words(1 + words), words, last }
            }
            (AggFunc::BitOr, Some(_)) => Cell::Or { at: room.word(), seen: seen(room) },
            _ => return Err(format!("the kernel does not compute `{}`", agg.name)),
        };
        if room.flags > FLAGS {
            return Err(format!("`{}` is one aggregate too many", agg.name));
        }
        let largest = least.unsigned_abs().max(greatest.unsigned_abs());
        let frames_max = match cell {
            Cell::Sum { .. } | Cell::Mean { .. } => i64::MAX as u64 / largest.max(1),
            _ => u64::MAX,
        };
        Ok((cell, frames_max))
    }
}
