//! Groups that go while their window is open, because other stages need the room.

use super::{Groups, Variant};
use crate::limits::EVICT_GROUPS_SHARE;
use crate::table::NO_ROW;

/// Bits of a word.
const BITS: u32 = u64::BITS;

impl Variant {
    /// Notes that the groups of these rows took something in.
    pub(in crate::ops) fn note_used(&mut self, rows: &[u32]) {
        self.used.resize(self.table.len().div_ceil(BITS as usize), 0);
        for &row in rows.iter().filter(|&&row| row != NO_ROW) {
            if let Some(word) = self.used.get_mut((row / BITS) as usize) {
                *word |= 1 << (row % BITS);
            }
        }
    }

    /// So many rows that stay, in their order: first those that are in use, then the newest. Rows
    /// are numbered as their groups came.
    fn staying(&self, most: usize) -> Vec<u32> {
        let rows = 0..self.table.len() as u32;
        let is_used = |row: u32| {
            let word = self.used.get((row / BITS) as usize).copied().unwrap_or(0);
            word >> (row % BITS) & 1 == 1
        };
        let (used, idle): (Vec<u32>, Vec<u32>) = rows.partition(|&row| is_used(row));
        let newest = |rows: &[u32], n: usize| rows[rows.len() - n.min(rows.len())..].to_vec();
        let mut staying = newest(&used, most);
        staying.extend(newest(&idle, most - staying.len()));
        staying.sort_unstable();
        staying
    }
}

impl Groups {
    /// Lets about one group in [`EVICT_GROUPS_SHARE`] go, or as many as there are above `most`, and
    /// gives their memory back. Returns how many rows are lost for certain: one of each group, and
    /// those that had been refused.
    #[cold]
    pub(in crate::ops) fn evict(&mut self, most: u64) -> u64 {
        let all = self.len();
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(all) as u128;
        let staying = most * (EVICT_GROUPS_SHARE - 1) / EVICT_GROUPS_SHARE;
        let mut kept = Groups::new(&self.spec);
        for (v, variant) in self.variants.iter().enumerate() {
            let mine = staying * variant.table.len() as u128 / all.max(1) as u128;
            kept.append(self, v, &variant.staying(mine as usize));
        }
        kept.variants.iter_mut().for_each(|variant| variant.table.index_anew());
        let gone = (all - kept.len()) as u64 + self.evicted();
        *self = kept;
        gone
    }
}
