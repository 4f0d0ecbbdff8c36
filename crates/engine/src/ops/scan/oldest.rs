//! Which key of a full scan goes: the one whose last row has the earliest time, and of several the
//! one whose row came first.
//!
//! Rows are not kept in that order: this would cost each of them, and most scans are never full.
//! Instead all keys up to some age are chosen at once, and go one after the other. A key that has a
//! row after it was chosen is younger than it was, never older, so that it is enough to look at it
//! again when its turn comes. A key that comes later may be older than some that were chosen, since
//! packets lag the clock; the stores note these.

use super::store::{Age, Store};
use crate::limits::{EVICT_AHEAD, EVICT_SAMPLE, EVICT_SHARE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A key in a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Aged {
    pub(super) age: Age,
    pub(super) store: u8,
    pub(super) row: u32,
}

/// The keys that go next.
#[derive(Default)]
pub(super) struct Oldest {
    /// All keys up to the age `until` as they were when they were chosen, the oldest last, ...
    chosen: Vec<Aged>,
    /// ...but for those that had a row since, and those that came since.
    later: BinaryHeap<Reverse<Aged>>,
    until: Option<Age>,
    /// How often keys were chosen.
    choices: usize,
}

impl Oldest {
    /// The oldest key of all stores; `None` if these hold none.
    pub(super) fn pop(&mut self, stores: &mut [Store]) -> Option<Aged> {
        self.take_lagging(stores);
        loop {
            while let Some(was) = self.next(stores) {
                match stores[usize::from(was.store)].age(was.row as usize) {
                    Some(age) if age == was.age => return Some(was),
                    Some(age) if Some(age) <= self.until => {
                        self.later.push(Reverse(Aged { age, ..was }));
                    }
                    _ => {}
                }
            }
            if !self.choose(stores) {
                return None;
            }
        }
    }

    /// The next of those that were chosen. Fetches what the ones after it will need: all of them
    /// stand at random places.
    fn next(&mut self, stores: &[Store]) -> Option<Aged> {
        if let (Some(one), Some(Reverse(other))) = (self.chosen.last(), self.later.peek())
            && other < one
        {
            return self.later.pop().map(|Reverse(other)| other);
        }
        let ahead = |n| self.chosen.len().checked_sub(n).map(|at| self.chosen[at]);
        if let Some(aged) = ahead(2 * EVICT_AHEAD) {
            stores[usize::from(aged.store)].prefetch_row(aged.row);
        }
        if let Some(aged) = ahead(EVICT_AHEAD) {
            stores[usize::from(aged.store)].prefetch_slot(aged.row);
        }
        self.chosen.pop().or_else(|| self.later.pop().map(|Reverse(other)| other))
    }

    /// Chooses those that came since and are as old.
    fn take_lagging(&mut self, stores: &mut [Store]) {
        for (store, s) in stores.iter_mut().zip(0..) {
            let Some(rows) = store.take_lagging() else {
                self.chosen.clear();
                self.later.clear();
                return;
            };
            for row in rows {
                let age = store.age(row as usize).filter(|&age| Some(age) <= self.until);
                self.later.extend(age.map(|age| Reverse(Aged { age, store: s, row })));
            }
        }
    }

    /// Chooses about one key in [`EVICT_SHARE`]; `false` if there is none.
    #[cold]
    fn choose(&mut self, stores: &mut [Store]) -> bool {
        let until = self.age_of_share(stores);
        for (store, s) in stores.iter_mut().zip(0..) {
            for row in 0..store.rows() {
                let age = store.age(row).filter(|age| *age <= until);
                self.chosen.extend(age.map(|age| Aged { age, store: s, row: row as u32 }));
            }
            store.note_lagging(until.last);
        }
        self.chosen.sort_unstable_by(|a, b| b.cmp(a));
        self.until = Some(until);
        !self.chosen.is_empty()
    }

    /// An age that about one key in [`EVICT_SHARE`] has or exceeds, and one key at least.
    fn age_of_share(&mut self, stores: &[Store]) -> Age {
        let step = stores.iter().map(Store::rows).sum::<usize>().div_ceil(EVICT_SAMPLE).max(1);
        self.choices += 1;
        let rows = |store: &Store| (self.choices % step..store.rows()).step_by(step);
        let ages = stores.iter().flat_map(|store| rows(store).filter_map(|r| store.age(r)));
        let mut ages: Vec<Age> = ages.collect();
        if ages.is_empty() {
            return Age { last: i64::MAX, turn: u64::MAX };
        }
        let share = ages.len() / EVICT_SHARE;
        *ages.select_nth_unstable(share).1
    }
}
