//! The interface of all aggregates.

use super::cells::{Cells, CellsRef};
use super::fused::CellStep;
use super::input::Input;
use super::states::{StateKind, States};
use crate::rows::Arena;
use std::any::Any;
use weir_packet::column::Column;

/// Where finished values go.
pub(crate) struct Finish<'a> {
    /// The output column; row `i` is for the `i`th group asked for.
    pub column: &'a mut Column,
    /// Where texts go.
    pub arena: &'a mut Arena,
    /// Counts results outside their type.
    pub undefined: &'a mut u64,
    /// The number of the result, where [several](super::sharing) are read from one state.
    pub result: usize,
}

/// How an aggregate can be worked with faster.
#[derive(Clone, Copy)]
pub(crate) struct Hints {
    /// Its step for a row, if that is so simple that one loop can do those of several aggregates.
    pub step: Option<CellStep>,
    /// Whether `merge` needs all groups of the other table at once. The others are merged a batch
    /// of groups at a time.
    pub merges_whole: bool,
    /// Whether there is more to a group than its cells, which then do not stand for it in another
    /// table.
    pub keeps_aside: bool,
}

impl Default for Hints {
    fn default() -> Hints {
        Hints { step: None, merges_whole: false, keeps_aside: true }
    }
}

impl Hints {
    /// The hints of an aggregate whose cells are all there is to a group.
    pub(crate) const CELLS: Hints = Hints { step: None, merges_whole: false, keeps_aside: false };

    /// The hints of one whose groups stand in one table of values.
    pub(crate) const TABLE: Hints = Hints { step: None, merges_whole: true, keeps_aside: true };
}

/// One aggregate of one table. It keeps itself the values that do not fit in cells (sets, texts).
pub(crate) trait Aggregate: Send {
    /// Its properties that let its callers leave work out.
    fn hints(&self) -> Hints {
        Hints::default()
    }

    /// Cells per group.
    fn cells(&self) -> usize;

    /// Writes the state of a group without rows.
    fn fresh(&self, cells: &mut [u64]);

    /// Takes rows into their groups.
    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>);

    /// Takes the groups of another table in: `map[g]` is the group here of group `g` there. Where
    /// it [merges whole](Hints::merges_whole), [`NO_ROW`](crate::table::NO_ROW) leaves one out.
    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    );

    /// Makes ready for [`Aggregate::finish`]: all rows are in, and all other states merged.
    fn settle(&mut self, _: CellsRef<'_>) {}

    /// Writes the results of `groups` to rows `0..`: of those that are read from its state the one
    /// that `out` names.
    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>);

    /// How its states are written.
    fn kind(&self) -> StateKind;

    /// Writes the states of `groups`, each once, as bytes that [`Aggregate::decode`] reads back:
    /// in one pass over all that it keeps, however many groups there are.
    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States);

    /// Takes an encoded state of one group in, as `merge` does. `false`, having changed nothing, if
    /// the bytes are not one; else the bytes read are gone from `from`.
    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool;

    /// Forgets what it keeps beside the cells.
    fn clear(&mut self) {}

    /// Bytes that it keeps beside the cells, about.
    fn aside(&self) -> usize {
        0
    }

    /// Values that found no room.
    fn evicted(&self) -> u64 {
        0
    }

    /// For `merge`, to find the other's own type again.
    fn as_any(&self) -> &dyn Any;
}
