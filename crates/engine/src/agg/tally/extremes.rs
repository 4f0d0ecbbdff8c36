//! The smallest and the largest value of a group as they came, kept beside values that are rounded:
//! no result may lie outside them.

use super::rounding::Rounding;
use crate::agg::{Cells, CellsRef, Input};
use crate::expr::Class;
use crate::table::NO_ROW;

/// The smallest and the largest value of a group, as [`Class::ordered`] makes them numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::agg) struct Extremes(pub(super) [u64; Extremes::CELLS]);

impl Extremes {
    /// Cells of a group.
    pub(super) const CELLS: usize = 2;

    /// The cells of a group without values: an identity of merging.
    pub(super) const FRESH: [u64; Extremes::CELLS] = [u64::MAX, 0];

    /// The extremes of a group.
    pub(super) fn of(cells: CellsRef<'_>, group: u32) -> Extremes {
        Extremes(*cells.of(group))
    }

    /// The smallest value, in ordered form.
    pub(in crate::agg) fn least(self) -> u64 {
        self.0[0]
    }

    /// The largest value, in ordered form.
    pub(in crate::agg) fn most(self) -> u64 {
        self.0[1]
    }

    /// Takes them into those of a group.
    pub(super) fn offer(self, cells: &mut Cells<'_>, group: u32) {
        let [least, most] = cells.of(group);
        (*least, *most) = ((*least).min(self.0[0]), (*most).max(self.0[1]));
    }

    /// Whether they are those of a group that counts these values, each of which is rounded: bytes
    /// from elsewhere may say anything.
    pub(super) fn fit<V: Iterator<Item = u64>>(
        self,
        rounding: &Rounding,
        largest: u64,
        values: impl Fn() -> V,
    ) -> bool {
        if values().next().is_none() {
            return self.0 == Self::FRESH;
        }
        let unordered = self.0.map(|n| rounding.class.unordered(n));
        let rounded = |word: u64| (rounding.word)(word, largest);
        let [first, last] = unordered.map(|word| rounding.class.ordered(rounded(word)));
        let inside = |word: u64| {
            rounded(word) == word && (first..=last).contains(&rounding.class.ordered(word))
        };
        self.0[0] <= self.0[1] && unordered.iter().all(|w| *w <= largest) && values().all(inside)
    }
}

/// Takes the values of rows into their groups.
pub(super) fn update(class: Class, input: &Input<'_>, cells: &mut Cells<'_>) {
    let values = input.columns[0].word();
    let mut offer = |group, n: u64| {
        let [least, most] = cells.of(group);
        (*least, *most) = ((*least).min(n), (*most).max(n));
    };
    match class {
        Class::Signed => input.each(|g, i| offer(g, Class::Signed.ordered(values[i]))),
        _ => input.each(|g, i| offer(g, class.ordered(values[i]))),
    }
}

/// Takes the groups of another table in; `map` as [`crate::agg::Aggregate::merge`] has it.
pub(super) fn merge(cells: &mut Cells<'_>, theirs: CellsRef<'_>, map: &[u32]) {
    for (there, &here) in map.iter().enumerate().filter(|(_, here)| **here != NO_ROW) {
        Extremes::of(theirs, there as u32).offer(cells, here);
    }
}
