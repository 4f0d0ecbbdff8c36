//! `distinct(x)`: how many different values, exactly.
//!
//! | | |
//! |---|---|
//! | Syntax | `distinct(x)`, `distinct((x, y))`, `distinct(flow)`, each also with `where condition` |
//! | Takes | any type, tuples too; a tuple counts where any of its parts has a value |
//! | Type | int |
//! | Over nothing | 0 |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted |
//! | State | 8 bytes a group, and 14 to 64 bytes a different value |
//! | Merge | union |
//! | Exact? | exact |
//!
//! The values of all groups live in one table, keyed by group and value: one more batched look-up
//! a row, and no allocation a group. Where both fit in one word, as those of an IPv4 address do,
//! the word is all there is to it: it is made from the column, and stands in the index itself.
//! Beside an aggregate that counts the same values (`frequent`, `entropy`, …), they are kept once.

mod words;

use super::approx_distinct::item_of_key;
use super::grouped::{Moving, ReadKeys, columns, counted_rows, group_place, parts_and_layouts};
use super::states::Gathered;
use super::tally::{CountedValues, ResultReader, Values};
use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use crate::expr::Class;
use crate::key::{Chosen, KeyPart, Layout, PACKED_WORDS_MAX, Pool, narrow_rows, pack};
use crate::limits::VALUES_MAX;
use crate::table::{HashKey, Keys, NO_ROW, Table};
use std::any::Any;
use weir_base::address::is_v4;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;
use words::WordSet;

/// One cell: the count. The sets stand in `sets`: narrow, and wide where there are addresses.
pub(super) struct Distinct {
    parts: Vec<KeyPart>,
    sets: Vec<Set>,
    pool: Pool,
    /// The group of each row, as the last part of the key.
    group: Column,
    evicted: u64,
}

/// Key: the value's parts, then the group.
struct Set {
    layout: Layout,
    /// Where the group stands in a key.
    group: (usize, u32),
    store: Store,
    keys: Keys,
    rows: Vec<u16>,
}

enum Store {
    /// Keys of one word.
    Words(WordSet),
    /// Longer ones.
    Rows(Table),
}

/// Reads how many different values there are where they are counted for other results anyway.
pub(super) struct OfCounted;

impl ResultReader for OfCounted {
    fn read(&self, values: &Values<'_>, _: &mut CountedValues, i: usize, out: &mut Finish<'_>) {
        out.column.set_raw(i, values.counts().count() as u128);
    }

    fn of_nothing(&self) -> Option<u128> {
        Some(0)
    }
}

impl Distinct {
    pub(super) fn new(parts: Vec<KeyPart>, hash_key: HashKey) -> Distinct {
        let (parts, layouts) = parts_and_layouts(parts);
        let sets = layouts.map(|layout| Set::new(layout, hash_key)).collect();
        let group = Column::new(Repr::Word);
        Distinct { parts, sets, pool: Pool::default(), group, evicted: 0 }
    }

    /// The part of a key that is the group.
    fn group_part(&self) -> usize {
        self.parts.len() - 1
    }

    /// Calls `f` with the group of each value and what goes into a sketch for it.
    pub(super) fn each_item(&self, mut f: impl FnMut(u32, u64)) {
        for set in &self.sets {
            set.each(|key| {
                let group = (key[set.group.0] >> set.group.1) as u32;
                f(group, item_of_key(&set.layout, key, self.group_part(), &self.pool));
            });
        }
    }

    /// The values of some groups, on their way into bytes.
    pub(super) fn gathered(&self, groups: &[u32]) -> Gathered {
        let (mut all, value) = (Gathered::new(groups), &self.parts[..self.group_part()]);
        for set in &self.sets {
            set.each(|key| {
                let group = (key[set.group.0] >> set.group.1) as u32;
                all.add(group, 1, |out| set.layout.write_parts(value, key, &self.pool, out));
            });
        }
        all
    }

    /// Takes those rows in whose value and group fit in one word. Returns the other rows.
    fn take_words(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) -> Bits {
        let Set { layout, group: (_, group_shift), store: Store::Words(words), .. } =
            &mut self.sets[0]
        else {
            return counted_rows(input);
        };
        let ([column], (place, class)) = (input.columns, layout.place(0)) else {
            return counted_rows(input);
        };
        let (shift, group_shift) = (place.shift, *group_shift);
        let word = |group: u32, value: u64| {
            debug_assert!(value >> place.bits == 0, "{value} in {} bits", place.bits);
            value << shift | (group as u64) << group_shift
        };
        let (mut new, mut n, mut left) = ([0; BATCH], 0, Bits::NONE);
        match class {
            Class::Pair => {
                let (hi, lo) = column.pair();
                input.each(|group, i| {
                    let i = i & (BATCH - 1);
                    let v4 = is_v4(hi[i], lo[i]);
                    new[n & (BATCH - 1)] = word(group, lo[i] & 0xffff_ffff);
                    n += v4 as usize;
                    if !v4 {
                        left.set(i);
                    }
                });
            }
            Class::Bit => input.each(|group, i| {
                new[n & (BATCH - 1)] = word(group, column.truth.has(i) as u64);
                n += 1;
            }),
            _ => {
                let values = column.word();
                input.each(|group, i| {
                    new[n & (BATCH - 1)] = word(group, values[i & (BATCH - 1)]);
                    n += 1;
                });
            }
        }
        let count = |key: u64| cells.of::<1>((key >> group_shift) as u32)[0] += 1;
        self.evicted += words.add(&new[..n], count);
        left
    }

    /// Takes rows in, whatever their keys are.
    fn take_rows(&mut self, input: &Input<'_>, rows: Bits, cells: &mut Cells<'_>) {
        let columns = columns(input, &mut self.group);
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
            self.evicted += set.add(cells);
        }
    }
}

impl Store {
    /// The memory that it takes, about.
    fn bytes(&self) -> usize {
        match self {
            Store::Words(words) => words.bytes(),
            Store::Rows(table) => table.bytes(),
        }
    }
}

impl Set {
    fn new(layout: Layout, hash_key: HashKey) -> Set {
        let store = match layout.words {
            1 => Store::Words(WordSet::new(VALUES_MAX, hash_key)),
            words => Store::Rows(Table::new(words, 0, VALUES_MAX, hash_key)),
        };
        Set {
            group: group_place(&layout),
            store,
            keys: Keys::new(layout.words),
            rows: Vec::with_capacity(BATCH),
            layout,
        }
    }

    /// Adds the keys and counts the new ones in their groups. Returns how many found no room.
    fn add(&mut self, cells: &mut Cells<'_>) -> u64 {
        let (word, shift) = self.group;
        let mut count = |key: u64| cells.of::<1>((key >> shift) as u32)[0] += 1;
        match &mut self.store {
            Store::Words(words) => words.add(&self.keys.words[0][..self.keys.len], count),
            Store::Rows(table) => {
                let mut out = [NO_ROW; BATCH];
                let mut next = table.len() as u32;
                let refused = table.lookup_words(&mut self.keys, &[], &mut out);
                // New rows are numbered in the order of their keys.
                for (&row, &key) in out[..self.keys.len].iter().zip(&self.keys.words[word]) {
                    if row == next {
                        count(key);
                        next += 1;
                    }
                }
                refused as u64
            }
        }
    }

    /// Adds keys that stand one after the other.
    fn add_all(&mut self, keys: &[u64], cells: &mut Cells<'_>) -> u64 {
        let (mut refused, words) = (0, self.layout.words);
        for batch in keys.chunks(words * BATCH) {
            for (j, key) in batch.chunks_exact(words).enumerate() {
                self.keys.words.iter_mut().zip(key).for_each(|(plane, w)| plane[j] = *w);
            }
            self.keys.len = batch.len() / words;
            refused += self.add(cells);
        }
        refused
    }

    /// Calls `f` with each key.
    fn each(&self, mut f: impl FnMut(&[u64])) {
        match &self.store {
            Store::Words(words) => words.iter().for_each(|w| f(&[w])),
            Store::Rows(table) => (0..table.len() as u32).for_each(|row| f(table.key(row))),
        }
    }

    /// Takes the keys of another set in, `map` being the new numbers of their groups.
    fn merge(
        &mut self,
        theirs: &Set,
        texts: (&Pool, &mut Pool),
        map: &[u32],
        cells: &mut Cells<'_>,
    ) -> u64 {
        let mut max = None;
        if let (Store::Words(mine), Store::Words(theirs)) = (&mut self.store, &theirs.store) {
            // All at once: words that come in the order of one set's slots crowd in a smaller one.
            mine.reserve(theirs.len());
            // They come in an order that depends on the key of the hash, and which ones find room
            // must not: all do, since each worker held to the bound.
            max = Some(mine.set_max(usize::MAX));
        }
        let mut moving = Moving::new(&theirs.layout, map, texts);
        let (mut refused, mut moved) = (0, [0; PACKED_WORDS_MAX]);
        self.keys.len = 0;
        theirs.each(|key| {
            if !moving.takes(key) {
                return;
            }
            let moved = moving.key(key, &mut moved);
            let j = self.keys.len;
            self.keys.words.iter_mut().zip(moved).for_each(|(plane, w)| plane[j] = *w);
            self.keys.len += 1;
            if self.keys.len == BATCH {
                refused += self.add(cells);
                self.keys.len = 0;
            }
        });
        refused += self.add(cells);
        if let (Some(max), Store::Words(mine)) = (max, &mut self.store) {
            mine.set_max(max);
        }
        refused
    }

    fn clear(&mut self) {
        match &mut self.store {
            Store::Words(words) => words.clear(),
            Store::Rows(table) => table.clear(),
        }
    }
}

impl Aggregate for Distinct {
    fn cells(&self) -> usize {
        1
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells[0] = 0;
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let left = self.take_words(input, cells);
        if !left.is_empty() {
            self.take_rows(input, left, cells);
        }
    }

    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        _: CellsRef<'_>,
        map: &[u32],
    ) {
        let other = other.as_any().downcast_ref::<Self>().expect("the same aggregate");
        for (set, theirs) in self.sets.iter_mut().zip(&other.sets) {
            self.evicted += set.merge(theirs, (&other.pool, &mut self.pool), map, cells);
        }
    }

    fn hints(&self) -> Hints {
        Hints::TABLE
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let counts = out.column.word_mut();
        for (count, &group) in counts.iter_mut().zip(groups) {
            *count = cells.of::<1>(group)[0];
        }
        out.column.present = out.column.present.or(Bits::first(groups.len()));
    }

    fn kind(&self) -> StateKind {
        StateKind::Values
    }

    fn encode(&self, _: CellsRef<'_>, groups: &[u32], out: &mut States) {
        // In the order of the values: that of slots would tell of the secret that they are hashed
        // with.
        self.gathered(groups).write(false, out, |_, _| {});
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = *from;
        let layouts = self.sets.iter().map(|set| &set.layout).collect();
        let mut keys = ReadKeys::new(&self.parts, layouts, group);
        if keys.read(&mut self.pool, &mut rest, false).is_none() {
            return false;
        }
        *from = rest;
        let read = keys.into_keys();
        for (set, (keys, _)) in self.sets.iter_mut().zip(read) {
            self.evicted += set.add_all(&keys, cells);
        }
        true
    }

    fn clear(&mut self) {
        self.sets.iter_mut().for_each(Set::clear);
        self.pool.clear();
        self.evicted = 0;
    }

    fn aside(&self) -> usize {
        self.pool.bytes() + self.sets.iter().map(|set| set.store.bytes()).sum::<usize>()
    }

    fn evicted(&self) -> u64 {
        self.evicted + self.pool.refused()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use crate::agg::sharing;
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Type, Value, Window};

    #[test]
    fn counts_different_values() {
        let d = AggFunc::Distinct;
        check(d, &Type::Int, &[], Value::Int(0));
        let rows = [Given::Int(1), Given::Int(2), Given::Int(1), Given::Absent];
        check(d, &Type::Int, &rows, Value::Int(2));
        let v4 = 0xffff_0a00_0001;
        let rows = [Given::Ip(v4), Given::Ip(1 << 90), Given::Ip(v4), Given::Ip(v4 + 1)];
        check(d, &Type::Ip, &rows, Value::Int(3));
        let text = |s: &str| Given::Str(s.into());
        check(d, &Type::Str, &[text("a"), text(""), text("a")], Value::Int(2));
        check(d, &Type::Bool, &[Given::Bool(true), Given::Bool(true)], Value::Int(1));
    }

    #[test]
    fn values_that_are_counted_anyway_are_kept_once() {
        let of = |f, name: &str| agg(f, Some(field(name)));
        let aggs = vec![
            of(AggFunc::Distinct, "ip.src"),
            of(AggFunc::Distinct, "tcp.window"),
            of(AggFunc::Frequent(2), "ip.src"),
            of(AggFunc::Distinct, "dport"),
            of(AggFunc::Entropy, "dport"),
        ];
        let states: Vec<usize> = sharing(&aggs).iter().map(Vec::len).collect();
        assert_eq!(states, [2, 1, 2]);
        // Some groups have no port, and count none.
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["len"][..], &["ip.proto"], &[]] {
                check_stages(vec![summarize(key, aggs.clone(), window)]);
            }
        }
    }
}
