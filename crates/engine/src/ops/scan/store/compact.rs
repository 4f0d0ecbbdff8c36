//! A store that gives memory back.

use super::{Store, Sweep};
use crate::table::Index;

impl Store {
    /// Gives the memory of rows that are free back.
    #[cold]
    pub(in crate::ops::scan) fn compact(&mut self) {
        let (stride, before) = (self.stride, self.words.len());
        let mut live = 0;
        for row in (0..self.rows).filter(|&row| self.age(row).is_some()).collect::<Vec<_>>() {
            self.words.copy_within(row * stride..(row + 1) * stride, live * stride);
            live += 1;
        }
        self.rows = live;
        self.words.clear();
        self.words.extend(live * stride, self.limit);
        self.words.release(live * stride..before);
        self.free = Vec::new();
        let Sweep { oldest, oldest_of_turn, added, .. } = self.sweep;
        let oldest = oldest.min(oldest_of_turn);
        self.sweep = Sweep { hand: 0, added, oldest, oldest_of_turn: oldest };
        (self.lag_until, self.lagging) = (i64::MIN, Some(Vec::new()));
        self.index = Index::new(self.index.hash_key());
        self.index.reserve(live);
        self.rekey();
    }
}
