//! Groups that go while their window is open, because other stages need the room.

use super::{Groups, Variant};
use crate::limits::EVICT_GROUPS_SHARE;
use std::cmp::Ordering;

/// What a group counts for that was there before anybody counted: more than one that took one row.
const UNCOUNTED: u8 = 2;

impl Variant {
    /// Counts the rows that groups take in, by the rows of the table that these are.
    pub(in crate::ops) fn count_rows(&mut self, rows: &[u32], before: usize) {
        if self.taken.len() < before {
            self.taken.resize(before, UNCOUNTED);
        }
        self.taken.resize(self.table.len(), 0);
        for &row in rows {
            if let Some(taken) = self.taken.get_mut(row as usize) {
                *taken = taken.saturating_add(1);
            }
        }
    }

    /// So many groups that stay, in their order: those that took most rows, and of equal ones the
    /// newest. A flood of keys comes to groups of a row or two; what is worth a window is in the
    /// others, even where they had no row lately.
    fn staying(&self, most: usize) -> Vec<u32> {
        let len = self.table.len();
        let taken = |row: u32| self.taken.get(row as usize).copied().unwrap_or(UNCOUNTED);
        let mut groups = [0usize; u8::MAX as usize + 1];
        (0..len as u32).for_each(|row| groups[usize::from(taken(row))] += 1);
        // All stay that took more than `least`, and the newest of those that took so many.
        let (mut least, mut left) = (u8::MAX, most);
        while least > 0 && groups[usize::from(least)] <= left {
            left -= groups[usize::from(least)];
            least -= 1;
        }
        let mut go = groups[usize::from(least)].saturating_sub(left);
        let stays = |row: &u32| match taken(*row).cmp(&least) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                let stays = go == 0;
                go = go.saturating_sub(1);
                stays
            }
        };
        (0..len as u32).filter(stays).collect()
    }
}

impl Groups {
    /// What it was charged for, in groups.
    pub(in crate::ops) fn charged(&self) -> u64 {
        self.charge.keys()
    }

    /// Lets about one group in [`EVICT_GROUPS_SHARE`] go, or so many that it may be charged for no
    /// more than `most`, and gives their memory back. Returns how many rows go with them, as far as
    /// these were counted, and those that had been refused.
    #[cold]
    pub(in crate::ops) fn evict(&mut self, most: u64) -> u64 {
        let all = self.len();
        let charged = u128::from(self.charged().max(1));
        let fitting = all as u128 * u128::from(most).min(charged) / charged;
        let staying = fitting * (EVICT_GROUPS_SHARE - 1) / EVICT_GROUPS_SHARE;
        let mut kept = Groups::new(&self.spec);
        let mut gone = 0;
        for (v, variant) in self.variants.iter().enumerate() {
            let mine = staying * variant.table.len() as u128 / all.max(1) as u128;
            let rows = variant.staying(mine as usize);
            kept.append(self, v, &rows);
            let taken = |row: u32| variant.taken.get(row as usize).copied();
            kept.variants[v].taken.extend(rows.iter().filter_map(|&row| taken(row)));
            let before =
                (0..variant.table.len() as u32).map(|row| u64::from(taken(row).unwrap_or(1)));
            let after = rows.iter().map(|&row| u64::from(taken(row).unwrap_or(1)));
            gone += before.sum::<u64>() - after.sum::<u64>();
        }
        kept.variants.iter_mut().for_each(|variant| variant.table.index_anew());
        kept.rows = self.rows;
        kept.rows.taken = kept.rows.taken.saturating_sub(gone);
        kept.rows.evicted += gone;
        let gone = gone + self.evicted();
        kept.charge();
        *self = kept;
        gone
    }
}
