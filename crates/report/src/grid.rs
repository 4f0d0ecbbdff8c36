//! Values over time in a bounded number of steps, which grow where the time does.

use std::collections::BTreeMap;

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;
const D: i64 = 86_400 * S;

/// The lengths of steps; each is a multiple of the one before, so that steps can be put together.
const STEPS: [i64; 33] = [
    1,
    5,
    10,
    50,
    100,
    500,
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    MS,
    5 * MS,
    10 * MS,
    50 * MS,
    100 * MS,
    500 * MS,
    S,
    5 * S,
    10 * S,
    30 * S,
    60 * S,
    300 * S,
    600 * S,
    1_800 * S,
    3_600 * S,
    6 * 3_600 * S,
    12 * 3_600 * S,
    D,
    7 * D,
    28 * D,
    280 * D,
];

/// A value of a step, and how two become one.
pub(crate) trait Merge: Default {
    /// Puts another one in.
    fn merge(&mut self, other: Self);
}

/// Values by the start of their step.
#[derive(Clone, Debug)]
pub(crate) struct Grid<V> {
    /// Which of [`STEPS`] it has.
    step: usize,
    /// Steps that have a value, at most.
    most: usize,
    cells: BTreeMap<i64, V>,
}

impl<V: Merge> Grid<V> {
    /// No values; steps start with this length, or the shortest one that is no shorter.
    pub(crate) fn new(least_ns: i64, most: usize) -> Grid<V> {
        let step = STEPS.iter().position(|step| *step >= least_ns).unwrap_or(STEPS.len() - 1);
        Grid { step, most, cells: BTreeMap::new() }
    }

    /// The length of a step.
    pub(crate) fn step_ns(&self) -> i64 {
        STEPS[self.step]
    }

    /// The value of the step that a time is in.
    pub(crate) fn at(&mut self, ts: i64) -> &mut V {
        while self.cells.len() >= self.most && !self.cells.contains_key(&self.start(ts)) {
            if !self.widen() {
                break;
            }
        }
        let start = self.start(ts);
        self.cells.entry(start).or_default()
    }

    /// The start of the step of a time; of the first times there are, the first step's.
    fn start(&self, ts: i64) -> i64 {
        ts.saturating_sub(ts.rem_euclid(self.step_ns()))
    }

    /// Makes steps longer; `false` if they are as long as can be.
    pub(crate) fn widen(&mut self) -> bool {
        if self.step + 1 == STEPS.len() {
            return false;
        }
        self.step += 1;
        for (ts, value) in std::mem::take(&mut self.cells) {
            let start = self.start(ts);
            self.cells.entry(start).or_default().merge(value);
        }
        true
    }

    /// Widens until the time from the first step to the last has at most so many of them.
    pub(crate) fn fit(&mut self, most: usize) {
        while self.span().is_some_and(|(from, to)| self.steps(from, to) > most as i64) {
            if !self.widen() {
                break;
            }
        }
    }

    /// How many steps a time takes.
    fn steps(&self, from: i64, to: i64) -> i64 {
        (to.saturating_sub(from) / self.step_ns()).saturating_add(1)
    }

    /// The start of the first step that has a value, and of the last.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        Some((*self.cells.first_key_value()?.0, *self.cells.last_key_value()?.0))
    }

    /// Each step that has a value.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (i64, &V)> {
        self.cells.iter().map(|(ts, value)| (*ts, value))
    }

    /// The same, to be changed.
    pub(crate) fn cells_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.cells.values_mut()
    }

    /// Splits off what lies on the lighter side of a gap that is most of the time: a picture of the
    /// whole would show two strokes. `weight` says what a step weighs. The steps that are split off
    /// come back; the rest stays.
    pub(crate) fn split_off_far(&mut self, weight: impl Fn(&V) -> u64) -> Vec<(i64, V)> {
        let mut far = Vec::new();
        while let Some(after) = self.widest_gap() {
            let late = self.cells.split_off(&after);
            let total = |cells: &BTreeMap<i64, V>| -> u64 { cells.values().map(&weight).sum() };
            let late_is_lighter = total(&late) <= total(&self.cells);
            let lighter = match late_is_lighter {
                true => late,
                false => std::mem::replace(&mut self.cells, late),
            };
            far.extend(lighter);
        }
        far
    }

    /// The first step after a gap of more than nine tenths of the time, and of more than 60 steps.
    fn widest_gap(&self) -> Option<i64> {
        let (first, last) = self.span()?;
        let whole = last.saturating_sub(first);
        let starts = || self.cells.keys().copied();
        let gaps = starts().zip(starts().skip(1));
        let (gap, after) = gaps.map(|(a, b)| (b.saturating_sub(a), b)).max()?;
        let is_wide = gap > whole / 10 * 9 && gap / self.step_ns() > 60;
        (is_wide && self.cells.len() > 2).then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Merge for u64 {
        fn merge(&mut self, other: u64) {
            *self += other;
        }
    }

    #[test]
    fn each_step_is_a_multiple_of_the_one_before() {
        assert!(STEPS.windows(2).all(|pair| pair[1] > pair[0] && pair[1] % pair[0] == 0));
    }

    #[test]
    fn steps_widen_and_nothing_is_lost() {
        let mut grid = Grid::new(10 * MS, 4);
        for i in 0..100 {
            *grid.at(i * 10 * MS) += 1;
        }
        assert_eq!(grid.step_ns(), 500 * MS);
        let cells: Vec<_> = grid.cells().map(|(ts, n)| (ts, *n)).collect();
        assert_eq!(cells, [(0, 50), (500 * MS, 50)]);
    }

    #[test]
    fn a_far_packet_is_set_apart() {
        let mut grid = Grid::new(S, 100);
        for i in 0..10 {
            *grid.at(i * S) += 5;
        }
        *grid.at(3_650 * D) += 1;
        assert_eq!(grid.split_off_far(|n| *n), [(3_650 * D, 1)]);
        assert_eq!(grid.span(), Some((0, 9 * S)));
        // Two packets are a picture of two packets.
        let mut grid = Grid::new(S, 100);
        (*grid.at(0), *grid.at(D)) = (1, 1);
        assert!(grid.split_off_far(|n| *n).is_empty());
    }

    proptest! {
        #[test]
        fn any_times_have_a_step(
            times in proptest::collection::vec(
                prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), 0..1_000i64], 1..200),
            most in 1..50usize,
        ) {
            let mut grid = Grid::<u64>::new(1, most);
            times.iter().for_each(|ts| *grid.at(*ts) += 1);
            grid.fit(most);
            prop_assert_eq!(grid.cells().map(|(_, n)| *n).sum::<u64>(), times.len() as u64);
            // A step of 280 days gives the whole range of times some 760 steps.
            prop_assert!(grid.cells().count() <= most.max(800));
            let far = grid.split_off_far(|n| *n);
            let kept: u64 = grid.cells().map(|(_, n)| *n).sum();
            prop_assert_eq!(kept + far.iter().map(|(_, n)| n).sum::<u64>(), times.len() as u64);
        }
    }
}
