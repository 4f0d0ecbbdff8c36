//! `completeness()`: how much of the traffic of a window was seen.
//!
//! | | |
//! |---|---|
//! | Syntax | `completeness()`, in a `summarize` over packets |
//! | Is | of the frames that passed in the time of the window, the share that was seen: 1 where none is known to be lost |
//! | Type | float, from 0 to 1 |
//! | State | none of its own: the ledger of losses has the numbers |
//! | Full | frames of panes before the last 65,536 count as not seen; of more than 65,536 losses neighbours are taken as one |
//! | Late | late frames count as not seen |
//! | Merge | nothing to merge |
//! | Exact? | at least so much was seen: a loss counts for every window that it may have touched |

use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use std::any::Any;
use weir_packet::bits::Bits;

/// Holds the place of a result that is that of the window, and not of a group.
pub(super) struct Completeness;

impl Aggregate for Completeness {
    fn cells(&self) -> usize {
        0
    }

    fn fresh(&self, _: &mut [u64]) {}

    fn update(&mut self, _: &Input<'_>, _: &mut Cells<'_>) {}

    fn merge(&mut self, _: &mut Cells<'_>, _: &dyn Aggregate, _: CellsRef<'_>, _: &[u32]) {}

    fn hints(&self) -> Hints {
        Hints::CELLS
    }

    fn finish(&self, _: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        // Nothing was lost, unless whoever puts the rows out knows better.
        out.column.word_mut()[..groups.len()].fill(1f64.to_bits());
        out.column.present = out.column.present.or(Bits::first(groups.len()));
    }

    fn kind(&self) -> StateKind {
        StateKind::Completeness
    }

    /// A share does not merge: what it is made of goes in [messages](crate::exchange) of its own.
    fn encode(&self, _: CellsRef<'_>, groups: &[u32], out: &mut States) {
        groups.iter().for_each(|_| out.put(|_| {}));
    }

    fn decode(&mut self, _: &mut Cells<'_>, _: u32, _: &mut &[u8]) -> bool {
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
