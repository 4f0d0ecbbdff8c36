//! Which values came, and how often each: what quantiles, frequent values, entropy and histograms
//! are read from.
//!
//! As for `distinct`, the values of all groups live together, keyed by group and value, so that
//! there is no allocation a group. Keys of one word are [sorted](log), others are looked up in a
//! table a batch at a time. States merge by adding counts, so neither the order of rows nor the
//! number of workers can matter, and nothing is random. Several results of the same values are read
//! from one state.

mod extremes;
mod log;
mod rounding;

use super::bytes::{read_words, write_words};
use super::grouped::{
    Moving, ReadKeys, columns, counted_rows, gather, group_place, parts_and_layouts,
};
use super::states::Gathered;
use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use crate::key::{Chosen, KeyPart, Layout, PACKED_WORDS_MAX, Pool, narrow_rows, pack};
use crate::limits::VALUES_MAX;
use crate::table::{HashKey, Keys, NO_ROW, Table};
use extremes::Extremes;
use log::{Counted, Log};
pub(super) use rounding::Rounding;
use std::any::Any;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;

/// How a result is read from the values of a group.
pub(super) trait ResultReader: Send {
    /// The rounding of words before they are counted, if any. All readings of one state say the
    /// same.
    fn rounds(&self) -> Option<Rounding> {
        None
    }

    /// The result of a group without values, where that is not absent.
    fn of_nothing(&self) -> Option<u128> {
        None
    }

    /// Writes row `i` of the result: that of these values, of which there is one at least. `work`
    /// is scratch.
    fn read(&self, values: &Values<'_>, work: &mut CountedValues, i: usize, out: &mut Finish<'_>);
}

/// Values in some order, and how often each came.
pub(super) type CountedValues = Vec<(u128, u64)>;

/// The values of all groups. Where they are rounded, the cells of a group keep its smallest and its
/// largest value as they came.
pub(super) struct Tally {
    parts: Vec<KeyPart>,
    sets: Vec<Set>,
    pool: Pool,
    /// The group of each row, as the last part of the key.
    group: Column,
    /// The rounding of values before they are counted, if any; and the rounded values.
    rounding: Option<Rounding>,
    rounded: Column,
    evicted: u64,
    readings: Vec<Box<dyn ResultReader>>,
}

/// Keys of one layout: the value's parts, then the group; and how often each came.
struct Set {
    layout: Layout,
    /// Where the group stands in a key.
    group: (usize, u32),
    kept: KeptKeys,
    keys: Keys,
    /// How often each of `keys` came.
    times: [u64; BATCH],
    rows: Vec<u16>,
}

/// How keys are kept.
enum KeptKeys {
    /// Sorted.
    Log(Log),
    /// In a table, whose only cell is how often one came.
    Table {
        table: Table,
        /// The rows of each group together, once all are in.
        order: Vec<u32>,
        /// Where in `order` each group starts; one more for the end.
        starts: Vec<u32>,
    },
}

/// The values of one group.
pub(super) struct Values<'a> {
    group: usize,
    /// The smallest and the largest value as they came, where the others are rounded.
    pub(super) extremes: Option<Extremes>,
    sets: &'a [Set],
    pool: &'a Pool,
}

impl<'a> Values<'a> {
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.sets
            .iter()
            .all(|set| set.logged(self.group).is_empty() && set.ids(self.group).is_empty())
    }

    /// How often each value came.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.sets.iter().flat_map(|set| {
            let logged = set.logged(self.group).iter().map(|&(_, times)| times);
            logged.chain(set.ids(self.group).iter().map(|&row| set.row(row).1))
        })
    }

    /// Puts all values into `work`, as [`Column::raw`] has them, with how often each came.
    pub(super) fn all(&self, work: &mut CountedValues) {
        work.clear();
        for set in self.sets {
            let raw = |key: &[u64]| set.layout.part(key, 0).unwrap_or(0);
            if let KeptKeys::Log(log) = &set.kept {
                let logged = log.of(self.group).iter();
                work.extend(logged.map(|&(key, times)| (raw(&[log.key(key)]), times)));
            }
            work.extend(set.ids(self.group).iter().map(|&row| {
                let (key, times) = set.row(row);
                (raw(key), times)
            }));
        }
    }

    /// The values as they rise, if they are at hand so and are integers: their parts of keys, to be
    /// made values by [`Values::logged`].
    pub(super) fn rising(&self) -> Option<&'a [Counted]> {
        match self.sets {
            [set] => Some(set.logged(self.group)).filter(|logged| !logged.is_empty()),
            _ => None,
        }
    }

    /// A value of [`Values::rising`], as [`Column::raw`] has it.
    pub(super) fn logged(&self, logged: u64) -> u128 {
        match &self.sets[0].kept {
            KeptKeys::Log(log) => self.sets[0].layout.part(&[log.key(logged)], 0).unwrap_or(0),
            KeptKeys::Table { .. } => 0,
        }
    }

    /// The bytes of a value that is a text.
    pub(super) fn text(&self, raw: u128) -> &[u8] {
        self.pool.get(raw as u64)
    }
}

impl Tally {
    pub(super) fn new(
        parts: Vec<KeyPart>,
        readings: Vec<Box<dyn ResultReader>>,
        hash_key: HashKey,
    ) -> Tally {
        let (parts, layouts) = parts_and_layouts(parts);
        let sets = layouts.map(|layout| Set::new(layout, hash_key)).collect();
        Tally {
            parts,
            sets,
            pool: Pool::default(),
            group: Column::new(Repr::Word),
            rounding: readings[0].rounds(),
            rounded: Column::new(Repr::Word),
            evicted: 0,
            readings,
        }
    }

    /// The values of some groups, on their way into bytes.
    pub(super) fn gathered(&self, groups: &[u32]) -> Gathered {
        let (mut all, value) = (Gathered::new(groups), &self.parts[..self.parts.len() - 1]);
        for set in &self.sets {
            let (word, shift) = set.group;
            set.each(|key, times| {
                let group = (key[word] >> shift) as u32;
                all.add(group, times, |out| set.layout.write_parts(value, key, &self.pool, out));
            });
        }
        all
    }
}

impl KeptKeys {
    /// The memory that they take, about.
    fn bytes(&self) -> usize {
        match self {
            KeptKeys::Log(log) => log.bytes(),
            KeptKeys::Table { table, .. } => table.bytes(),
        }
    }
}

impl Set {
    fn new(layout: Layout, hash_key: HashKey) -> Set {
        let kept = match Log::new(&layout, VALUES_MAX) {
            Some(log) => KeptKeys::Log(log),
            None => KeptKeys::Table {
                table: Table::new(layout.words, 1, VALUES_MAX, hash_key),
                order: Vec::new(),
                starts: Vec::new(),
            },
        };
        Set {
            group: group_place(&layout),
            kept,
            keys: Keys::new(layout.words),
            times: [1; BATCH],
            rows: Vec::with_capacity(BATCH),
            layout,
        }
    }

    /// Counts the keys at hand and lets go of them. Returns how many times a value found no room.
    fn add(&mut self) -> u64 {
        let n = self.keys.len;
        let mut found = [NO_ROW; BATCH];
        let table = match &mut self.kept {
            KeptKeys::Log(log) => {
                log.extend(&self.keys.words[0][..n]);
                self.keys.len = 0;
                return 0;
            }
            KeptKeys::Table { table, .. } => table,
        };
        table.lookup_words(&mut self.keys, &[0], &mut found);
        self.keys.len = 0;
        let (stride, at) = (table.stride(), table.key_words());
        let rows = table.rows_mut();
        let mut refused: u64 = 0;
        for (&row, &times) in found[..n].iter().zip(&self.times) {
            if row == NO_ROW {
                refused = refused.saturating_add(times);
                continue;
            }
            let count = &mut rows[row as usize * stride + at];
            *count = count.saturating_add(times);
        }
        refused
    }

    /// Puts a key beside those at hand, and counts them if they are a batch.
    fn put(&mut self, key: &[u64], times: u64) -> u64 {
        if let KeptKeys::Log(log) = &mut self.kept {
            log.put(key[0], times);
            return 0;
        }
        let j = self.keys.len;
        self.keys.words.iter_mut().zip(key).for_each(|(plane, w)| plane[j] = *w);
        self.times[j] = times;
        self.keys.len += 1;
        if self.keys.len < BATCH { 0 } else { self.flush() }
    }

    /// Counts the keys that were put.
    fn flush(&mut self) -> u64 {
        let refused = self.add();
        self.times.fill(1);
        refused
    }

    /// Calls `f` with each key and how often it came; with some several times.
    fn each(&self, mut f: impl FnMut(&[u64], u64)) {
        match &self.kept {
            KeptKeys::Log(log) => log.each(|key, times| f(&[key], times)),
            KeptKeys::Table { table, .. } => {
                let (stride, words) = (table.stride(), table.key_words());
                let rows = table.rows().chunks_exact(stride.max(1)).take(table.len());
                rows.for_each(|row| f(&row[..words], row[words]));
            }
        }
    }

    /// Puts the values of each group together.
    fn settle(&mut self) {
        let (word, shift) = self.group;
        match &mut self.kept {
            KeptKeys::Log(log) => log.settle(),
            KeptKeys::Table { table, order, starts } => {
                let (stride, words) = (table.stride(), table.key_words());
                let rows = || table.rows().chunks_exact(stride.max(1)).take(table.len());
                gather(rows().map(|row| (row[..words][word] >> shift) as u32), order, starts);
            }
        }
    }

    /// The rows of a group's values, where they are in a table.
    #[inline(always)]
    fn ids(&self, group: usize) -> &[u32] {
        match &self.kept {
            KeptKeys::Table { order, starts, .. } => match starts.get(group..group + 2) {
                Some(&[start, end]) => &order[start as usize..end as usize],
                _ => &[],
            },
            KeptKeys::Log(_) => &[],
        }
    }

    /// A group's values, where they are in a log.
    #[inline(always)]
    fn logged(&self, group: usize) -> &[Counted] {
        match &self.kept {
            KeptKeys::Log(log) => log.of(group),
            KeptKeys::Table { .. } => &[],
        }
    }

    /// The key in a row of the table, and how often it came.
    #[inline(always)]
    fn row(&self, row: u32) -> (&[u64], u64) {
        match &self.kept {
            KeptKeys::Table { table, .. } => {
                let words = table.key_words();
                (table.key(row), table.rows()[row as usize * table.stride() + words])
            }
            KeptKeys::Log(_) => (&[], 0),
        }
    }

    fn refused(&self) -> u64 {
        match &self.kept {
            KeptKeys::Log(log) => log.refused(),
            KeptKeys::Table { .. } => 0,
        }
    }

    fn clear(&mut self) {
        match &mut self.kept {
            KeptKeys::Log(log) => log.clear(),
            KeptKeys::Table { table, order, starts } => {
                table.clear();
                order.clear();
                starts.clear();
            }
        }
    }
}

/// How many all of some counts are. Counts that were read from bytes may be too large to add up.
pub(super) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

impl Aggregate for Tally {
    fn cells(&self) -> usize {
        if self.rounding.is_some() { Extremes::CELLS } else { 0 }
    }

    fn fresh(&self, cells: &mut [u64]) {
        if self.rounding.is_some() {
            cells.copy_from_slice(&Extremes::FRESH);
        }
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let rows = counted_rows(input);
        let mut columns = columns(input, &mut self.group);
        if let Some(Rounding { class, batch, .. }) = self.rounding {
            extremes::update(class, input, cells);
            batch(input.columns[0].word(), self.rounded.word_mut(), self.parts[0].largest());
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
        }
    }

    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    ) {
        let other = other.as_any().downcast_ref::<Self>().expect("the same aggregate");
        if self.rounding.is_some() {
            extremes::merge(cells, theirs, map);
        }
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

    fn hints(&self) -> Hints {
        Hints::TABLE
    }

    fn settle(&mut self, _: CellsRef<'_>) {
        self.sets.iter_mut().for_each(Set::settle);
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let mut work = CountedValues::new();
        for (i, &group) in groups.iter().enumerate() {
            let extremes = self.rounding.map(|_| Extremes::of(cells, group));
            let (sets, pool) = (&*self.sets, &self.pool);
            let values = Values { group: group as usize, extremes, sets, pool };
            let reading = &self.readings[out.result];
            if !values.is_empty() {
                reading.read(&values, &mut work, i, out);
            } else if let Some(raw) = reading.of_nothing() {
                out.column.set_raw(i, raw);
            }
        }
    }

    fn kind(&self) -> StateKind {
        if self.rounding.is_some() { StateKind::RoundedCounts } else { StateKind::Counts }
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        self.gathered(groups).write(true, out, |place, out| {
            if self.rounding.is_some() {
                write_words(&Extremes::of(cells, groups[place]).0, out);
            }
        });
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = *from;
        let mut extremes = Extremes::FRESH;
        if self.rounding.is_some() {
            let Some(words) = read_words(&mut rest) else { return false };
            extremes = words;
        }
        let layouts = self.sets.iter().map(|set| &set.layout).collect();
        let mut keys = ReadKeys::new(&self.parts, layouts, group);
        if keys.read(&mut self.pool, &mut rest, true).is_none() {
            return false;
        }
        if let Some(rounding) = self.rounding {
            if !Extremes(extremes).fit(&rounding, self.parts[0].largest(), || keys.words()) {
                return false;
            }
            Extremes(extremes).offer(cells, group);
        }
        *from = rest;
        let read = keys.into_keys();
        for (set, (keys, times)) in self.sets.iter_mut().zip(read) {
            let words = set.layout.words;
            let refused = total(keys.chunks_exact(words).zip(times).map(|(k, n)| set.put(k, n)));
            self.evicted = self.evicted.saturating_add(refused).saturating_add(set.flush());
        }
        true
    }

    fn clear(&mut self) {
        self.sets.iter_mut().for_each(Set::clear);
        self.pool.clear();
        self.evicted = 0;
    }

    fn aside(&self) -> usize {
        self.pool.bytes() + self.sets.iter().map(|set| set.kept.bytes()).sum::<usize>()
    }

    fn evicted(&self) -> u64 {
        let sets: u64 = self.sets.iter().map(Set::refused).sum();
        self.evicted + sets + self.pool.refused()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
