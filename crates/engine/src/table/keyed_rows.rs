//! Rows of state, found by key.

use super::index::{Index, NO_ROW, Prefetcher, Vacant};
use super::{HashKey, Keys};
use crate::limits::ROWS_START;
use crate::pages::{LINE_WORDS, Words, row_words};
use crate::processor::prefetch;
use weir_packet::limits::BATCH;

/// A new row of `S` words, but for its key of `W`.
fn template<const W: usize, const S: usize>(fresh: &[u64]) -> [u64; S] {
    let mut row = [0; S];
    row[W..].iter_mut().zip(fresh).for_each(|(to, word)| *to = *word);
    row
}

/// Rows of fixed width, found by key: first the words of the key, then cells for whoever keeps
/// state.
#[derive(Debug)]
pub(crate) struct Table {
    index: Index,
    /// All rows, one after the other.
    rows: Words,
    /// Words of rows that were in use at some time, and take memory.
    touched: usize,
    key_words: usize,
    stride: usize,
    max_rows: usize,
}

/// Words of a row that are fetched before it is looked at: more lines than these, for each row of a
/// batch, would not stay in the nearest cache.
const FETCHED_WORDS: usize = 4 * LINE_WORDS;

impl Table {
    /// An empty table for keys of `key_words` and `cells` words of state, for `max_rows` at most.
    /// Rows are padded so that a small one lies within one cache line. The hash key
    /// changes no row and no row's number.
    pub(crate) fn new(key_words: usize, cells: usize, max_rows: u64, hash_key: HashKey) -> Table {
        let stride = row_words(key_words + cells);
        Table {
            index: Index::new(hash_key),
            rows: Words::new(),
            touched: 0,
            key_words,
            stride,
            max_rows: max_rows.min(NO_ROW as u64 - 1) as usize,
        }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() / self.stride
    }

    /// The memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        8 * self.rows.len() + 16 * self.len()
    }

    /// Words per row.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Words of the key at the start of each row.
    pub(crate) fn key_words(&self) -> usize {
        self.key_words
    }

    /// All rows as words, for kernels: row `r` starts at `r * stride`.
    #[inline(always)]
    pub(crate) fn rows_mut(&mut self) -> &mut [u64] {
        &mut self.rows
    }

    /// All rows as words.
    #[inline(always)]
    pub(crate) fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// The words of row `r`.
    #[inline(always)]
    pub(crate) fn row(&self, r: u32) -> &[u64] {
        &self.rows[r as usize * self.stride..][..self.stride]
    }

    /// The words of row `r`, to be changed.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, r: u32) -> &mut [u64] {
        &mut self.rows[r as usize * self.stride..][..self.stride]
    }

    /// The key of row `r`.
    pub(crate) fn key(&self, r: u32) -> &[u64] {
        &self.row(r)[..self.key_words]
    }

    /// Changes how many rows there may be; those that are there stay.
    pub(crate) fn set_max(&mut self, max_rows: u64) {
        self.max_rows = max_rows.min(NO_ROW as u64 - 1) as usize;
    }

    /// Forgets all rows; keeps the memory, unless far less of it would do.
    pub(crate) fn clear(&mut self) {
        self.index.clear();
        let used = self.rows.len();
        if used < self.touched / 4 {
            self.rows.release(used..self.touched);
            self.touched = 0;
        }
        self.touched = self.touched.max(used);
        self.rows.clear();
    }

    /// Becomes a copy of a table of rows of the same width, but for how many there may be.
    pub(crate) fn copy_from(&mut self, other: &Table) {
        let limit = self.limit();
        self.touched = self.touched.max(self.rows.len());
        self.rows.clear();
        self.rows.extend(other.rows.len(), limit).copy_from_slice(&other.rows);
        self.index.copy_from(&other.index);
    }

    /// Finds or makes the row of each key. New rows start with the cells of `fresh`; their numbers
    /// follow one another. Keys that are new when the table is full get [`NO_ROW`]; returns how
    /// many did. Keys that were hashed with another key than the table's are hashed again.
    pub(crate) fn lookup(
        &mut self,
        keys: &mut Keys,
        fresh: &[u64],
        out: &mut [u32; BATCH],
    ) -> usize {
        if keys.hash_key != self.index.hash_key() {
            keys.hash(self.index.hash_key());
        }
        let refused = self.lookup_hashed(keys, fresh, out);
        if self.index.is_crowded() {
            self.rekey();
        }
        refused
    }

    /// As [`Table::lookup`], of keys that were not hashed yet.
    pub(crate) fn lookup_words(
        &mut self,
        keys: &mut Keys,
        fresh: &[u64],
        out: &mut [u32; BATCH],
    ) -> usize {
        self.hash_keys(keys);
        self.lookup(keys, fresh, out)
    }

    fn lookup_hashed(&mut self, keys: &Keys, fresh: &[u64], out: &mut [u32; BATCH]) -> usize {
        match (self.key_words, self.stride) {
            (0, _) => self.lookup_none(keys, fresh, out),
            (1, 2) => self.lookup_fixed::<1, 2>(keys, fresh, out),
            (1, 4) => self.lookup_fixed::<1, 4>(keys, fresh, out),
            (1, 8) => self.lookup_fixed::<1, 8>(keys, fresh, out),
            (2, 4) => self.lookup_fixed::<2, 4>(keys, fresh, out),
            (2, 8) => self.lookup_fixed::<2, 8>(keys, fresh, out),
            (5, 8) => self.lookup_fixed::<5, 8>(keys, fresh, out),
            (5, 16) => self.lookup_fixed::<5, 16>(keys, fresh, out),
            _ => self.lookup_any(keys, fresh, out),
        }
    }

    /// Draws a new key where runs are longer than this, for [`super::fuzz_collide`].
    #[cfg(any(test, fuzzing))]
    pub(super) fn take_for_chance(&mut self, run_max: usize) {
        self.index.take_for_chance(run_max);
    }

    /// Finds all rows by a new key from now on.
    #[cold]
    fn rekey(&mut self) {
        let Table { index, rows, key_words, stride, .. } = self;
        let rows = rows.chunks_exact(*stride).map(|row| row[..*key_words].iter().copied());
        let key = HashKey::random();
        index.rekey(key, (0..).zip(rows.map(|words| key.hash(words))));
    }

    /// Finds all rows by an index of their own, after rows were pushed that it does not know.
    pub(crate) fn index_anew(&mut self) {
        self.index = Index::new(self.index.hash_key());
        self.index.reserve(self.len());
        self.rekey();
    }

    /// Makes room for so many rows, so that the table need not grow until it has them.
    pub(crate) fn reserve(&mut self, rows: usize) {
        let rows = rows.min(self.max_rows);
        self.index.reserve(rows.saturating_sub(self.len()));
        self.rows.reserve(rows.saturating_sub(self.len()) * self.stride, self.limit());
    }

    /// Words that all rows there may be take.
    fn limit(&self) -> usize {
        self.max_rows.saturating_mul(self.stride)
    }

    /// The hash key of the keys that are looked up here.
    pub(crate) fn hash_key(&self) -> HashKey {
        self.index.hash_key()
    }

    /// The prefetcher of the memory that looking up a hash will need first.
    #[inline(always)]
    pub(crate) fn prefetcher(&self) -> Prefetcher<'_> {
        self.index.prefetcher()
    }

    /// Computes the hashes of keys and asks for what looking them up will need first.
    pub(crate) fn hash_keys(&self, keys: &mut Keys) {
        let prefetcher = self.prefetcher();
        keys.hash_with(
            self.index.hash_key(),
            #[inline(always)]
            |h| prefetcher.prefetch(h),
        );
    }

    /// The one key without words.
    fn lookup_none(&mut self, keys: &Keys, fresh: &[u64], out: &mut [u32; BATCH]) -> usize {
        let n = keys.len.min(BATCH);
        let row = if self.rows.is_empty() && n > 0 {
            self.index.reserve(1);
            self.find_or_add(keys, 0, fresh)
        } else {
            Some(0)
        };
        out[..n].fill(row.unwrap_or(NO_ROW));
        if row.is_none() { n } else { 0 }
    }

    /// For keys of `W` words in rows of `S`.
    fn lookup_fixed<const W: usize, const S: usize>(
        &mut self,
        keys: &Keys,
        fresh: &[u64],
        out: &mut [u32; BATCH],
    ) -> usize {
        let n = keys.len.min(BATCH);
        self.find_likely(keys, out, S);
        let words: &[[u64; BATCH]; W] = keys.words[..].try_into().expect("so many words");
        let template = template::<W, S>(fresh);
        let (mut j, mut refused) = (0, 0);
        loop {
            // Most are found at once: a loop for them alone.
            let (rows, _) = self.rows.as_chunks::<S>();
            while j < n
                && let Some(row) = rows.get(out[j] as usize)
                && (0..W).fold(0, |differ, w| differ | row[w] ^ words[w][j]) == 0
            {
                j += 1;
            }
            if j >= n {
                return refused;
            }
            let key = words.each_ref().map(|plane| plane[j]);
            out[j] = self.find_or_add_fixed::<W, S>(keys.hashes[j], key, &template);
            refused += usize::from(out[j] == NO_ROW);
            j += 1;
        }
    }

    /// The row of a key, which is not the likely one; [`NO_ROW`] where there is no room for it.
    #[inline(never)]
    fn find_or_add_fixed<const W: usize, const S: usize>(
        &mut self,
        hash: u64,
        key: [u64; W],
        template: &[u64; S],
    ) -> u32 {
        let (rows, _) = self.rows.as_chunks::<S>();
        let found = self.index.find(hash, |row| {
            rows.get(row as usize).is_some_and(|row| row.first_chunk::<W>() == Some(&key))
        });
        let place = match found {
            Ok(row) => return row,
            Err(place) => place,
        };
        let row = rows.len();
        if row >= self.max_rows {
            self.index.note(place);
            return NO_ROW;
        }
        self.index.insert(place, hash, row as u32);
        if let Some(to) = self.new_row().first_chunk_mut::<S>() {
            *to = *template;
            to[..W].copy_from_slice(&key);
        }
        row as u32
    }

    /// Adds a row that is not found by its key, of unspecified contents.
    pub(crate) fn push_row(&mut self) -> &mut [u64] {
        self.new_row()
    }

    /// Memory for one more row.
    #[inline(always)]
    fn new_row(&mut self) -> &mut [u64] {
        let limit = self.limit();
        if self.rows.is_empty() {
            self.rows.reserve(ROWS_START * self.stride, limit);
        }
        self.rows.extend(self.stride, limit)
    }

    fn lookup_any(&mut self, keys: &Keys, fresh: &[u64], out: &mut [u32; BATCH]) -> usize {
        self.find_likely(keys, out, self.stride);
        let mut refused = 0;
        for (j, out) in out.iter_mut().enumerate().take(keys.len) {
            if *out == NO_ROW || !self.is_key(*out, keys, j) {
                let row = self.find_or_add(keys, j, fresh);
                refused += row.is_none() as usize;
                *out = row.unwrap_or(NO_ROW);
            }
        }
        refused
    }

    /// Whether key `j` is that of a row.
    #[inline]
    fn is_key(&self, row: u32, keys: &Keys, j: usize) -> bool {
        keys.words.iter().zip(self.row(row)).all(|(plane, word)| plane[j] == *word)
    }

    /// For each key the row that is likely its own, and asks for that row, of `stride` words. The
    /// slots were asked for when the keys were hashed.
    #[inline(always)]
    fn find_likely(&mut self, keys: &Keys, out: &mut [u32; BATCH], stride: usize) {
        let n = keys.len.min(BATCH);
        self.index.reserve(n);
        let rows = &self.rows[..];
        self.index.likely(&keys.hashes[..n], out, |row| {
            let at = (row as usize).wrapping_mul(stride);
            for line in (0..stride.min(FETCHED_WORDS)).step_by(LINE_WORDS) {
                prefetch(rows, at.wrapping_add(line));
            }
        });
    }

    /// The row of key `j`, which is not the likely one.
    #[inline(never)]
    fn find_or_add(&mut self, keys: &Keys, j: usize, fresh: &[u64]) -> Option<u32> {
        match self.index.find(keys.hashes[j], |row| self.is_key(row, keys, j)) {
            Ok(row) => Some(row),
            Err(place) => self.add(place, keys, j, fresh),
        }
    }

    fn add(&mut self, place: Vacant, keys: &Keys, j: usize, fresh: &[u64]) -> Option<u32> {
        let row = self.len();
        if row >= self.max_rows {
            self.index.note(place);
            return None;
        }
        self.index.insert(place, keys.hashes[j], row as u32);
        let key_words = self.key_words;
        let (key, cells) = self.new_row().split_at_mut(key_words);
        key.iter_mut().zip(&keys.words).for_each(|(to, plane)| *to = plane[j]);
        // A few words, one by one: to call a copying function takes longer.
        for (n, cell) in cells.iter_mut().enumerate() {
            *cell = if n < fresh.len() { fresh[n] } else { 0 };
        }
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
        keys.hash(HashKey::KNOWN);
        keys
    }

    #[test]
    fn a_key_has_one_row() {
        let mut table = Table::new(2, 1, 100, HashKey::KNOWN);
        let mut out = [0; BATCH];
        assert_eq!(table.lookup(&mut keys(&[[1, 2], [3, 4], [1, 2]]), &[7], &mut out), 0);
        assert_eq!(out[..3], [0, 1, 0]);
        assert_eq!(table.row(1), [3, 4, 7, 0]);
    }

    #[test]
    fn a_full_table_refuses_new_keys_only() {
        let mut table = Table::new(2, 1, 2, HashKey::KNOWN);
        let mut out = [0; BATCH];
        assert_eq!(table.lookup(&mut keys(&[[1, 0], [2, 0], [3, 0], [1, 0]]), &[0], &mut out), 1);
        assert_eq!(out[..4], [0, 1, NO_ROW, 0]);
    }

    #[test]
    fn a_copy_goes_on_by_itself() {
        for rows in [0u64, 1, 300, 5_000] {
            let (mut one, mut out) = (Table::new(2, 1, u64::MAX, HashKey::random()), [0; BATCH]);
            let key = |i: u64| [i, i << 40];
            for i in 0..rows {
                one.lookup(&mut keys(&[key(i)]), &[i], &mut out);
            }
            let mut copy = Table::new(2, 1, u64::MAX, HashKey::random());
            copy.lookup(&mut keys(&[[7, 7]]), &[9], &mut out);
            copy.copy_from(&one);
            assert_eq!(copy.rows(), one.rows());
            for i in (0..rows + 10).rev() {
                let is_new = i >= rows;
                let next = copy.len() as u32;
                copy.lookup(&mut keys(&[key(i)]), &[i], &mut out);
                assert_eq!(out[0], if is_new { next } else { i as u32 });
                assert_eq!(copy.row(out[0])[..3], [i, i << 40, i]);
            }
            assert_eq!(one.len() as u64, rows);
        }
    }

    proptest! {
        #[test]
        fn rows_are_numbered_like_a_map(
            batches in proptest::collection::vec(
                proptest::collection::vec([0u64..40, 0u64..40], 1..BATCH), 1..12),
        ) {
            let mut table = Table::new(2, 1, u64::MAX, HashKey::random());
            let mut model = BTreeMap::new();
            for batch in batches {
                let mut out = [0; BATCH];
                table.lookup(&mut keys(&batch), &[0], &mut out);
                for (j, k) in batch.iter().enumerate() {
                    let next = model.len() as u32;
                    prop_assert_eq!(out[j], *model.entry(*k).or_insert(next));
                    prop_assert_eq!(table.key(out[j]), k);
                }
            }
            prop_assert_eq!(table.len(), model.len());
        }
    }
}
