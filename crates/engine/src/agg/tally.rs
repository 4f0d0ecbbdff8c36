//! Which values came, and how often each: what quantiles, frequent values, entropy and histograms
//! are read from.
//!
//! As for `distinct`, the values of all groups live in one table, keyed by group and value: one
//! batched look-up a row, and no allocation a group. States merge by adding counts, so neither the
//! order of rows nor the number of workers can matter, and nothing is random.

use super::grouped::{
    Moving, columns, counted_rows, group_place, parts_and_layouts, read_key, write_key,
};
use super::{Aggregate, Cells, CellsRef, Finish, Input, read_words, write_words};
use crate::key::{Chosen, Layout, PACKED_WORDS_MAX, Part, Pool, narrow_rows, pack};
use crate::limits::VALUES_MAX;
use crate::table::{Keys, NO_ROW, Table};
use std::any::Any;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;

/// How a result is read from the values of a group.
pub(super) trait Reading: Send + 'static {
    /// The value that a word is counted as, where words are not counted as they are.
    fn rounds(&self) -> Option<fn(u64) -> u64> {
        None
    }

    /// Writes row `i` of the result: that of these values, of which there is one at least. `work`
    /// is scratch.
    fn read(&self, values: &Values<'_>, work: &mut Work, i: usize, out: &mut Finish<'_>);
}

/// Values in some order, and how often each came.
pub(super) type Work = Vec<(u128, u64)>;

/// The values of all groups. Nothing is kept in cells.
pub(super) struct Tally<R> {
    parts: Vec<Part>,
    sets: Vec<Set>,
    pool: Pool,
    /// The group of each row, as the last part of the key.
    group: Column,
    /// The values as they are counted, where that is not as they are.
    rounded: Column,
    evicted: u64,
    /// Set and row of all values, those of a group together, once all are in.
    order: Vec<u64>,
    /// Where in `order` each group starts; one more for the end.
    starts: Vec<u32>,
    reading: R,
}

/// Key: the value's parts, then the group; the only cell is how often it came.
struct Set {
    layout: Layout,
    /// Where the group stands in a key.
    group: (usize, u32),
    table: Table,
    keys: Keys,
    /// How often each of `keys` came.
    times: [u64; BATCH],
    rows: Vec<u16>,
}

/// The values of one group, in no order.
pub(super) struct Values<'a> {
    ids: &'a [u64],
    sets: &'a [Set],
    pool: &'a Pool,
}

impl Values<'_> {
    /// How often each value came.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.ids.iter().map(|&id| self.at(id).1)
    }

    /// Puts all values into `work`, as [`Column::raw`] has them, with how often each came.
    pub(super) fn all(&self, work: &mut Work) {
        work.clear();
        work.extend(self.ids.iter().map(|&id| {
            let (set, times) = self.at(id);
            (set.layout.part(set.table.key(id as u32), 0).unwrap_or(0), times)
        }));
    }

    #[inline(always)]
    fn at(&self, id: u64) -> (&Set, u64) {
        let set = &self.sets[(id >> 32) as usize];
        let (stride, words) = (set.table.stride(), set.table.key_words());
        (set, set.table.rows()[id as u32 as usize * stride + words])
    }

    /// The bytes of a value that is a text.
    pub(super) fn text(&self, raw: u128) -> &[u8] {
        self.pool.get(raw as u64)
    }
}

impl<R> Tally<R> {
    pub(super) fn new(parts: Vec<Part>, reading: R) -> Tally<R> {
        let (parts, layouts) = parts_and_layouts(parts);
        let sets = layouts.map(Set::new).collect();
        Tally {
            parts,
            sets,
            pool: Pool::default(),
            group: Column::new(Repr::Word),
            rounded: Column::new(Repr::Word),
            evicted: 0,
            order: Vec::new(),
            starts: Vec::new(),
            reading,
        }
    }
}

impl Set {
    fn new(layout: Layout) -> Set {
        Set {
            group: group_place(&layout),
            table: Table::new(layout.words, 1, VALUES_MAX),
            keys: Keys::new(layout.words),
            times: [1; BATCH],
            rows: Vec::with_capacity(BATCH),
            layout,
        }
    }

    /// Counts the keys at hand. Returns how many times a value found no room.
    fn add(&mut self) -> u64 {
        self.keys.hash();
        let mut found = [NO_ROW; BATCH];
        self.table.lookup(&self.keys, &[0], &mut found);
        let (stride, at) = (self.table.stride(), self.table.key_words());
        let rows = self.table.rows_mut();
        let mut refused = 0;
        for (&row, &times) in found[..self.keys.len].iter().zip(&self.times) {
            if row == NO_ROW {
                refused += times;
                continue;
            }
            let count = &mut rows[row as usize * stride + at];
            *count = count.saturating_add(times);
        }
        refused
    }

    /// Puts a key beside those at hand, and counts them if they are a batch.
    fn put(&mut self, key: &[u64], times: u64) -> u64 {
        let j = self.keys.len;
        self.keys.words.iter_mut().zip(key).for_each(|(plane, w)| plane[j] = *w);
        self.times[j] = times;
        self.keys.len += 1;
        if self.keys.len < BATCH { 0 } else { self.flush() }
    }

    /// Counts the keys that were put.
    fn flush(&mut self) -> u64 {
        let refused = self.add();
        self.keys.len = 0;
        self.times.fill(1);
        refused
    }

    /// Calls `f` with each key and how often it came.
    fn each(&self, mut f: impl FnMut(&[u64], u64)) {
        let (stride, words) = (self.table.stride(), self.table.key_words());
        let rows = self.table.rows().chunks_exact(stride.max(1)).take(self.table.len());
        rows.for_each(|row| f(&row[..words], row[words]));
    }

    /// Which group a key is of.
    #[inline(always)]
    fn group_of(&self, key: &[u64]) -> u32 {
        (key[self.group.0] >> self.group.1) as u32
    }
}

impl<R: Reading> Aggregate for Tally<R> {
    fn cells(&self) -> usize {
        0
    }

    fn fresh(&self, _: &mut [u64]) {}

    fn update(&mut self, input: &Input<'_>, _: &mut Cells<'_>) {
        let rows = counted_rows(input);
        let mut columns = columns(input, &mut self.group);
        if let Some(round) = self.reading.rounds() {
            let (from, to) = (input.columns[0].word(), self.rounded.word_mut());
            to.iter_mut().zip(from).for_each(|(to, &word)| *to = round(word));
            self.rounded.present = input.columns[0].present;
            columns[0] = &self.rounded;
        }
        let columns = &columns[..self.parts.len()];
        let narrow = narrow_rows(&self.parts, columns, rows);
        for (set, rows) in self.sets.iter_mut().zip([narrow, rows.minus(narrow)]) {
            if rows.is_empty() {
                continue;
            }
            set.rows.clear();
            rows.each(|i| set.rows.push(i as u16));
            let chosen = Chosen { set: rows, positions: &set.rows };
            pack(&set.layout, columns, chosen, &mut self.pool, input.arena, &mut set.keys);
            self.evicted += set.add();
            set.keys.len = 0;
        }
    }

    fn merge(&mut self, _: &mut Cells<'_>, other: &dyn Aggregate, _: CellsRef<'_>, map: &[u32]) {
        let other = other.as_any().downcast_ref::<Self>().expect("the same aggregate");
        let Tally { sets, pool, evicted, .. } = self;
        for (set, theirs) in sets.iter_mut().zip(&other.sets) {
            let mut moved = [0; PACKED_WORDS_MAX];
            let mut moving = Moving::new(&theirs.layout, map, (&other.pool, &mut *pool));
            theirs.each(|key, times| {
                if moving.takes(key) {
                    *evicted += set.put(moving.key(key, &mut moved), times);
                }
            });
            *evicted += set.flush();
        }
    }

    fn merges_whole(&self) -> bool {
        true
    }

    /// Puts the values of each group together: a counting sort by group.
    fn settle(&mut self, _: CellsRef<'_>) {
        self.starts.clear();
        self.starts.push(0);
        for set in &self.sets {
            set.each(|key, _| {
                let group = set.group_of(key) as usize;
                if self.starts.len() < group + 2 {
                    self.starts.resize(group + 2, 0);
                }
                self.starts[group + 1] += 1;
            });
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.order.clear();
        self.order.resize(end as usize, 0);
        // Filled from the start of each group, which moves to its end; then all move back.
        for (s, set) in self.sets.iter().enumerate() {
            let mut row = 0;
            set.each(|key, _| {
                let at = &mut self.starts[set.group_of(key) as usize];
                self.order[*at as usize] = (s as u64) << 32 | row;
                *at += 1;
                row += 1;
            });
        }
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    fn finish(&self, _: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let mut work = Work::new();
        for (i, &group) in groups.iter().enumerate() {
            let group = group as usize;
            let [start, end] = match self.starts.get(group..group + 2) {
                Some(&[start, end]) => [start as usize, end as usize],
                _ => continue,
            };
            if start < end {
                let ids = &self.order[start..end];
                let values = Values { ids, sets: &self.sets, pool: &self.pool };
                self.reading.read(&values, &mut work, i, out);
            }
        }
    }

    fn encode(&self, _: CellsRef<'_>, group: u32, out: &mut Vec<u8>) {
        for set in &self.sets {
            let start = out.len();
            let mut n = 0u64;
            write_words(&[n], out);
            set.each(|key, times| {
                if set.group_of(key) != group {
                    return;
                }
                n += 1;
                write_words(&[times], out);
                write_key(&set.layout, key, &self.pool, out);
            });
            out[start..start + 8].copy_from_slice(&n.to_le_bytes());
        }
    }

    fn decode(&mut self, _: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = *from;
        let mut read: Vec<(usize, u64, Vec<u64>)> = Vec::new();
        for (s, set) in self.sets.iter().enumerate() {
            let Some([n]) = read_words(&mut rest) else { return false };
            for _ in 0..n {
                let Some([times]) = read_words(&mut rest) else { return false };
                let key = read_key(&set.layout, group, &mut self.pool, &mut rest);
                let Some(key) = key else { return false };
                read.push((s, times, key));
            }
        }
        *from = rest;
        for (s, times, key) in read {
            self.evicted += self.sets[s].put(&key, times);
        }
        self.evicted += self.sets.iter_mut().map(Set::flush).sum::<u64>();
        true
    }

    fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| set.table.clear());
        self.starts.clear();
        self.pool.clear();
        self.evicted = 0;
    }

    fn evicted(&self) -> u64 {
        self.evicted + self.pool.refused()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
