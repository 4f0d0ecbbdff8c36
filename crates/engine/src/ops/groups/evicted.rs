//! Groups that go while their window is open, because other stages need the room.

use super::{Groups, Spec, Variant};
use crate::limits::EVICT_GROUPS_SHARE;
use crate::table::NO_ROW;
use std::cmp::Ordering;
use std::sync::Arc;

/// The count of a group that came before rows were counted: it ranks above a group of one row.
const UNCOUNTED: u32 = 2;

/// Groups that took in so many rows, or more, are alike where some have to go.
const MANY: u32 = 255;

/// A window of fewer groups keeps them: what they hold is in their values.
const FEW_GROUPS: usize = 8;

/// Which groups stay: those that took in more rows than this, and all but so many of those that
/// took in as many.
struct Cut {
    least: u32,
    go: usize,
}

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

    /// The same of groups that were merged: those of the other table went to these rows.
    pub(super) fn count_merged(&mut self, theirs: &Variant, map: &[u32], before: usize) {
        if self.taken.is_empty() && theirs.taken.is_empty() {
            return;
        }
        self.taken.resize(before, UNCOUNTED);
        self.taken.resize(self.table.len(), 0);
        for (there, &here) in (0..).zip(map).filter(|(_, here)| **here != NO_ROW) {
            if let Some(taken) = self.taken.get_mut(here as usize) {
                *taken = taken.saturating_add(theirs.rows_of(there));
            }
        }
    }

    /// How many rows a group took in, as far as that was counted.
    fn rows_of(&self, row: u32) -> u32 {
        self.taken.get(row as usize).copied().unwrap_or(UNCOUNTED)
    }

    fn rank(&self, row: u32) -> u32 {
        self.rows_of(row).min(MANY)
    }

    /// The rows that stay, in their order, which is that in which groups came.
    fn staying(&self, cut: &mut Cut) -> Vec<u32> {
        let stays = |row: &u32| match self.rank(*row).cmp(&cut.least) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => {
                let stays = cut.go == 0;
                cut.go = cut.go.saturating_sub(1);
                stays
            }
        };
        (0..self.table.len() as u32).filter(stays).collect()
    }
}

impl Groups {
    /// The number of groups that the stage is charged for because of these.
    pub(in crate::ops) fn charged(&self) -> u64 {
        self.charge.keys()
    }

    /// Is charged to no stage on its way to the next: it can't give anything up there.
    pub(in crate::ops) fn leave(&mut self) {
        self.charge.set(0);
    }

    /// Is of this `spec` from now on, and charged to its share: groups wander between workers, and
    /// from programs to those that follow them.
    pub(in crate::ops) fn rehome(&mut self, spec: &Arc<Spec>) {
        if !Arc::ptr_eq(&self.spec, spec) {
            self.spec = Arc::clone(spec);
            self.charge = spec.share.charge();
            self.charge();
        }
    }

    /// Where the line is so that about so many groups stay: those that took in most rows, and of
    /// equal ones the newest. A flood of keys comes to groups of a row or two; what is worth a
    /// window is in the others, even where they had no row lately.
    fn cut(&self, staying: usize) -> Cut {
        let mut groups = [0usize; MANY as usize + 1];
        for variant in &self.variants {
            for row in 0..variant.table.len() as u32 {
                groups[variant.rank(row) as usize] += 1;
            }
        }
        let (mut least, mut left) = (MANY, staying);
        while least > 0 && groups[least as usize] <= left {
            left -= groups[least as usize];
            least -= 1;
        }
        Cut { least, go: groups[least as usize].saturating_sub(left) }
    }

    /// Lets about one group in [`EVICT_GROUPS_SHARE`] go, or so many that it may be charged for no
    /// more than `most`, and gives their memory back. Returns how many rows go with them, as far as
    /// these were counted, and those that had been refused; `None` where that would be no help.
    #[cold]
    pub(in crate::ops) fn evict(&mut self, most: u64) -> Option<u64> {
        let all = self.len();
        if all < FEW_GROUPS {
            return None;
        }
        self.charge();
        let before = self.charged().max(1);
        let fitting = all as u128 * u128::from(most.min(before)) / u128::from(before);
        let staying = fitting * (EVICT_GROUPS_SHARE - 1) / EVICT_GROUPS_SHARE;
        let mut cut = self.cut(staying.max(1) as usize);
        let mut kept = Groups::new(&self.spec);
        let mut gone = 0;
        for (v, variant) in self.variants.iter().enumerate() {
            let rows = variant.staying(&mut cut);
            kept.append(self, v, &rows);
            kept.variants[v].taken.extend(rows.iter().map(|&row| variant.rows_of(row)));
            let came = |row: u32| u64::from(variant.rows_of(row));
            gone += (0..variant.table.len() as u32).map(came).sum::<u64>();
            gone -= rows.iter().map(|&row| came(row)).sum::<u64>();
        }
        kept.variants.iter_mut().for_each(|variant| variant.table.index_anew());
        kept.rows = self.rows;
        kept.rows.taken = kept.rows.taken.saturating_sub(gone);
        kept.rows.evicted += gone;
        let gone = gone + self.evicted();
        kept.charge();
        *self = kept;
        // Values of few groups may be what takes the memory.
        let is_help = self.charged() <= before - before / (2 * EVICT_GROUPS_SHARE as u64);
        self.is_stuck = !is_help;
        Some(gone)
    }
}
