//! Keyed state: an index from hash to row number, and rows of fixed width that never move in
//! number. Look-ups go a batch at a time, so that one key's cache miss hides behind another's.

use crate::limits::INDEX_START;
use crate::pages;
use crate::prefetch::prefetch;
use weir_packet::limits::BATCH;

/// No row: the key is new and the table is full.
pub const NO_ROW: u32 = u32::MAX;

/// Mixes the words of a key with a 64 x 64 -> 128 bit multiplication folded in half (the core of
/// wyhash and its kin). Equal on every machine and in every run: partitions and tables may rely
/// on it.
#[inline(always)]
pub fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    let h = words.into_iter().fold(SEED, |h, w| fold(h ^ w, 0xd6e8_feb8_6659_fd93));
    h ^ h >> 32
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let m = a as u128 * b as u128;
    m as u64 ^ (m >> 64) as u64
}

/// Open addressing with linear probing over slots of `hash tag | row + 1`.
#[derive(Clone, Debug)]
pub struct Index {
    slots: Vec<u64>,
    mask: usize,
    used: usize,
}

const TAG: u64 = 0xffff_ffff_0000_0000;

impl Index {
    /// An empty index with room for `rows` before it grows.
    pub fn with_capacity(rows: usize) -> Index {
        let slots = (rows.saturating_mul(5) / 3).next_power_of_two().max(INDEX_START);
        let mut index = Index { slots: vec![0; slots], mask: slots - 1, used: 0 };
        pages::advise(&mut index.slots);
        index
    }

    /// Makes room for `more` rows, so that row numbers can be added without growing.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        if (self.used + more) * 5 > self.slots.len() * 3 {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let rows = (self.used + more).max(self.used * 2);
        let mut bigger = Index::with_capacity(rows);
        for &slot in self.slots.iter().filter(|s| **s != 0) {
            // The tag is the high half of the hash, from which the position comes too.
            let mut at = bigger.home(slot);
            while bigger.slots[at] != 0 {
                at = (at + 1) & bigger.mask;
            }
            bigger.slots[at] = slot;
        }
        bigger.used = self.used;
        *self = bigger;
    }

    /// The home position of a hash: its tag bits, mixed down, so that a slot's content is enough
    /// to move it.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> 32) as usize & self.mask
    }

    /// Fetches the slot of a hash into the cache.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, self.home(hash));
    }

    /// The first row whose tag agrees with the hash: the likely answer, to be prefetched.
    #[inline(always)]
    pub fn candidate(&self, hash: u64) -> Option<u32> {
        let slot = self.slots[self.home(hash)];
        (slot != 0 && (slot ^ hash) & TAG == 0).then_some((slot as u32).wrapping_sub(1))
    }

    /// The row for which `same` holds among those of this hash, or the place for a new one.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Result<u32, Vacant> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(Vacant(at));
            }
            if (slot ^ hash) & TAG == 0 && same((slot as u32).wrapping_sub(1)) {
                return Ok((slot as u32).wrapping_sub(1));
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Puts a row at the place that [`Index::find`] gave, right after it did.
    #[inline(always)]
    pub fn insert(&mut self, place: Vacant, hash: u64, row: u32) {
        self.slots[place.0] = hash & TAG | (row as u64 + 1);
        self.used += 1;
    }

    /// Removes a row, closing the gap it leaves in its run of slots.
    pub fn remove(&mut self, hash: u64, row: u32) {
        let mut at = self.home(hash);
        while self.slots[at] as u32 != row.wrapping_add(1) {
            if self.slots[at] == 0 {
                return;
            }
            at = (at + 1) & self.mask;
        }
        self.used -= 1;
        let mut next = at;
        loop {
            next = (next + 1) & self.mask;
            let slot = self.slots[next];
            if slot == 0 {
                break;
            }
            let home = self.home(slot);
            // The slot may move back to `at` unless its home lies behind the gap.
            if next.wrapping_sub(home) & self.mask >= next.wrapping_sub(at) & self.mask {
                self.slots[at] = slot;
                at = next;
            }
        }
        self.slots[at] = 0;
    }

    /// Forgets all rows; keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.used = 0;
    }
}

/// An empty slot found by [`Index::find`].
#[derive(Clone, Copy, Debug)]
pub struct Vacant(usize);

/// The words of the keys of a batch, by word: `words[w][j]` is word `w` of key `j`.
#[derive(Debug)]
pub struct Keys {
    /// One plane per word.
    pub words: Vec<[u64; BATCH]>,
    /// The hash of each key.
    pub hashes: Box<[u64; BATCH]>,
    /// How many keys.
    pub len: usize,
}

impl Keys {
    /// Room for a batch of keys of that many words.
    pub fn new(words: usize) -> Keys {
        Keys { words: vec![[0; BATCH]; words], hashes: Box::new([0; BATCH]), len: 0 }
    }

    /// Computes the hashes from the words.
    pub fn hash(&mut self) {
        match self.words.len() {
            1 => self.hash_fixed::<1>(),
            2 => self.hash_fixed::<2>(),
            5 => self.hash_fixed::<5>(),
            _ => {
                for j in 0..self.len {
                    self.hashes[j] = hash(self.words.iter().map(|w| w[j]));
                }
            }
        }
    }

    fn hash_fixed<const W: usize>(&mut self) {
        let words: &[[u64; BATCH]; W] = self.words[..].try_into().expect("so many words");
        for (j, h) in self.hashes[..self.len.min(BATCH)].iter_mut().enumerate() {
            *h = hash((0..W).map(|w| words[w][j]));
        }
    }
}

/// Rows of fixed width, found by key: first the words of the key, then cells for whoever keeps
/// state.
#[derive(Clone, Debug)]
pub struct Table {
    index: Index,
    /// All rows, one after the other.
    rows: Vec<u64>,
    key_words: usize,
    stride: usize,
    max_rows: usize,
}

impl Table {
    /// An empty table for keys of `key_words` and `cells` words of state, for `max_rows` at most.
    /// Rows are padded so that a small one lies within one cache line.
    pub fn new(key_words: usize, cells: usize, max_rows: u64) -> Table {
        let stride = match key_words + cells {
            0..=1 => 1,
            2 => 2,
            3..=4 => 4,
            n => n.next_multiple_of(8),
        };
        Table {
            index: Index::with_capacity(0),
            rows: Vec::new(),
            key_words,
            stride,
            max_rows: max_rows.min(NO_ROW as u64 - 1) as usize,
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len() / self.stride
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Words per row.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Words of the key at the start of each row.
    pub fn key_words(&self) -> usize {
        self.key_words
    }

    /// All rows as words, for kernels: row `r` starts at `r * stride`.
    #[inline(always)]
    pub fn rows_mut(&mut self) -> &mut [u64] {
        &mut self.rows
    }

    /// All rows as words.
    #[inline(always)]
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// The words of row `r`.
    #[inline(always)]
    pub fn row(&self, r: u32) -> &[u64] {
        &self.rows[r as usize * self.stride..][..self.stride]
    }

    /// The key of row `r`.
    pub fn key(&self, r: u32) -> &[u64] {
        &self.row(r)[..self.key_words]
    }

    /// Changes how many rows there may be; those that are there stay.
    pub fn set_max(&mut self, max_rows: u64) {
        self.max_rows = max_rows.min(NO_ROW as u64 - 1) as usize;
    }

    /// Forgets all rows; keeps the memory.
    pub fn clear(&mut self) {
        self.index.clear();
        self.rows.clear();
    }

    /// Finds or makes the row of each key. New rows start with the cells of `fresh`; their numbers
    /// follow one another. Keys that are new when the table is full get [`NO_ROW`]; returns how
    /// many did.
    pub fn lookup(&mut self, keys: &Keys, fresh: &[u64], out: &mut [u32; BATCH]) -> usize {
        match self.key_words {
            0 => self.lookup_fixed::<0>(keys, fresh, out),
            1 => self.lookup_fixed::<1>(keys, fresh, out),
            2 => self.lookup_fixed::<2>(keys, fresh, out),
            5 => self.lookup_fixed::<5>(keys, fresh, out),
            _ => self.lookup_any(keys, fresh, out),
        }
    }

    #[inline(always)]
    fn prefetch_all(&self, keys: &Keys) {
        let n = keys.len.min(BATCH);
        for &h in &keys.hashes[..n] {
            self.index.prefetch(h);
        }
        for &h in &keys.hashes[..n] {
            if let Some(r) = self.index.candidate(h) {
                prefetch(&self.rows, r as usize * self.stride);
            }
        }
    }

    fn lookup_fixed<const W: usize>(
        &mut self,
        keys: &Keys,
        fresh: &[u64],
        out: &mut [u32; BATCH],
    ) -> usize {
        let words: &[[u64; BATCH]; W] = keys.words[..].try_into().expect("so many words");
        self.lookup_by(
            keys,
            fresh,
            out,
            #[inline(always)]
            |row, j| (0..W).all(|w| row[w] == words[w][j]),
        )
    }

    fn lookup_any(&mut self, keys: &Keys, fresh: &[u64], out: &mut [u32; BATCH]) -> usize {
        self.lookup_by(keys, fresh, out, |row, j| {
            keys.words.iter().zip(row).all(|(w, k)| w[j] == *k)
        })
    }

    #[inline(always)]
    fn lookup_by(
        &mut self,
        keys: &Keys,
        fresh: &[u64],
        out: &mut [u32; BATCH],
        same: impl Fn(&[u64], usize) -> bool,
    ) -> usize {
        self.index.reserve(keys.len);
        self.prefetch_all(keys);
        let mut refused = 0;
        let hashes = &keys.hashes[..keys.len.min(BATCH)];
        for (j, (&h, out)) in hashes.iter().zip(out).enumerate() {
            let (rows, stride) = (&self.rows, self.stride);
            let found = self.index.find(h, |r| same(&rows[r as usize * stride..][..stride], j));
            *out = match found {
                Ok(row) => row,
                Err(place) => self.add(place, keys, j, fresh).unwrap_or_else(|| {
                    refused += 1;
                    NO_ROW
                }),
            };
        }
        refused
    }

    #[inline(never)]
    fn add(&mut self, place: Vacant, keys: &Keys, j: usize, fresh: &[u64]) -> Option<u32> {
        let row = self.len();
        if row >= self.max_rows {
            return None;
        }
        self.index.insert(place, keys.hashes[j], row as u32);
        if self.rows.capacity() - self.rows.len() < self.stride {
            self.rows.reserve(self.rows.len().max(INDEX_START * self.stride));
            pages::advise(&mut self.rows);
        }
        self.rows.extend(keys.words.iter().map(|w| w[j]));
        self.rows.extend_from_slice(fresh);
        self.rows.resize((row + 1) * self.stride, 0);
        Some(row as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn keys(batch: &[[u64; 2]]) -> Keys {
        let mut keys = Keys::new(2);
        for (j, k) in batch.iter().enumerate() {
            (keys.words[0][j], keys.words[1][j]) = (k[0], k[1]);
        }
        keys.len = batch.len();
        keys.hash();
        keys
    }

    #[test]
    fn a_key_has_one_row() {
        let mut table = Table::new(2, 1, 100);
        let mut out = [0; BATCH];
        assert_eq!(table.lookup(&keys(&[[1, 2], [3, 4], [1, 2]]), &[7], &mut out), 0);
        assert_eq!(out[..3], [0, 1, 0]);
        assert_eq!(table.row(1), [3, 4, 7, 0]);
    }

    #[test]
    fn a_full_table_refuses_new_keys_only() {
        let mut table = Table::new(2, 1, 2);
        let mut out = [0; BATCH];
        assert_eq!(table.lookup(&keys(&[[1, 0], [2, 0], [3, 0], [1, 0]]), &[0], &mut out), 1);
        assert_eq!(out[..4], [0, 1, NO_ROW, 0]);
    }

    proptest! {
        #[test]
        fn rows_are_numbered_like_a_map(
            batches in proptest::collection::vec(
                proptest::collection::vec([0u64..40, 0u64..40], 1..BATCH), 1..12),
        ) {
            let mut table = Table::new(2, 1, u64::MAX);
            let mut model = BTreeMap::new();
            for batch in batches {
                let mut out = [0; BATCH];
                table.lookup(&keys(&batch), &[0], &mut out);
                for (j, k) in batch.iter().enumerate() {
                    let next = model.len() as u32;
                    prop_assert_eq!(out[j], *model.entry(*k).or_insert(next));
                    prop_assert_eq!(table.key(out[j]), k);
                }
            }
            prop_assert_eq!(table.len(), model.len());
        }

        #[test]
        fn removing_keeps_the_others_reachable(
            hashes in proptest::collection::btree_set(0u64..200, 1..150), drop in any::<u64>(),
        ) {
            // Few tags, so that runs of slots collide.
            let all: Vec<(u64, u32)> =
                hashes.iter().enumerate().map(|(i, h)| ((h % 20) << 32, i as u32)).collect();
            let mut index = Index::with_capacity(0);
            for &(h, r) in &all {
                index.reserve(1);
                let place = index.find(h, |x| x == r).unwrap_err();
                index.insert(place, h, r);
            }
            let (gone, left): (Vec<_>, Vec<_>) =
                all.iter().partition(|(_, r)| drop >> (r % 64) & 1 == 1);
            gone.iter().for_each(|&&(h, r)| index.remove(h, r));
            for &&(h, r) in &left {
                prop_assert_eq!(index.find(h, |x| x == r).ok(), Some(r));
            }
            for &&(h, r) in &gone {
                prop_assert!(index.find(h, |x| x == r).is_err());
            }
        }
    }
}
