//! Aggregates whose whole state is a fixed number of cells: most of them. Each says how one value
//! goes in, how two states merge, and what comes out; the rest is the same for all and stands here.

use super::bytes::{read_words, write_words};
use super::{Aggregate, CellStep, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use std::any::Any;

/// A state of `N` cells.
pub(super) trait Fixed<const N: usize>: Send + 'static {
    /// The state of a group without rows: an identity of `merge`.
    const FRESH: [u64; N];

    /// How states are written: as their cells, little-endian.
    const KIND: StateKind;

    /// Takes rows into their groups: the hot loop.
    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>);

    /// The same as one step of its one cell, if it is that.
    fn step(&self) -> Option<CellStep> {
        None
    }

    /// Takes another state in. Associative and commutative.
    fn merge(&self, into: &mut [u64; N], from: &[u64; N]);

    /// The result as [`weir_packet::column::Column::raw`] has it.
    fn finish(&self, cells: &[u64; N]) -> CellsResult;
}

/// The result of an aggregate.
pub(super) enum CellsResult {
    /// This.
    Value(u128),
    /// Nothing: there was no value.
    Absent,
    /// Nothing: the result lies outside its type.
    Undefined,
}

/// Makes an [`Aggregate`] of a [`Fixed`].
pub(super) struct Of<A, const N: usize>(pub(super) A);

impl<A: Fixed<N>, const N: usize> Aggregate for Of<A, N> {
    fn cells(&self) -> usize {
        N
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells.copy_from_slice(&A::FRESH);
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        self.0.update(input, cells);
    }

    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        _: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    ) {
        for (there, &here) in map.iter().enumerate() {
            self.0.merge(cells.of(here), theirs.of(there as u32));
        }
    }

    fn hints(&self) -> Hints {
        Hints { step: self.0.step(), ..Hints::CELLS }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        for (i, &group) in groups.iter().enumerate() {
            match self.0.finish(cells.of(group)) {
                CellsResult::Value(raw) => out.column.set_raw(i, raw),
                CellsResult::Absent => {}
                CellsResult::Undefined => *out.undefined += 1,
            }
        }
    }

    fn kind(&self) -> StateKind {
        A::KIND
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        for &group in groups {
            out.put(|out| write_words(cells.of::<N>(group), out));
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let Some(state) = read_words(from) else { return false };
        self.0.merge(cells.of(group), &state);
        true
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// 128 bits kept in two cells.
#[inline(always)]
pub(super) fn wide(low: u64, high: u64) -> i128 {
    ((high as u128) << 64 | low as u128) as i128
}

/// Adds to 128 bits kept in two cells.
#[inline(always)]
pub(super) fn add_wide(low: &mut u64, high: &mut u64, v: i128) {
    let sum = wide(*low, *high).wrapping_add(v);
    (*low, *high) = (sum as u64, (sum >> 64) as u64);
}
