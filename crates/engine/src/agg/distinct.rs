//! `distinct(x)`: how many different values, exactly.
//!
//! | | |
//! |---|---|
//! | Syntax | `distinct(x)`, `distinct((x, y))`, `distinct(flow)`, each also with `where condition` |
//! | Takes | any type, tuples too; a tuple counts where any of its parts has a value |
//! | Type | int |
//! | Over nothing | 0 |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted |
//! | State | 8 bytes a group, and 16 to 64 bytes a different value |
//! | Merge | union |
//! | Exact? | exact |
//!
//! The values of all groups live in one table, keyed by group and value: one more batched look-up
//! a row, and no allocation a group.

use super::{
    Aggregate, Cells, CellsRef, Finish, Input, read_bytes, read_words, write_bytes, write_words,
};
use crate::key::{Chosen, Layout, Part, Pool, narrow_rows, pack};
use crate::limits::{PARTS_MAX, VALUES_MAX};
use crate::table::{Keys, NO_ROW, Table, hash};
use std::any::Any;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;

/// One cell: the count. The sets stand in `sets`: narrow, and wide where there are addresses.
pub(super) struct Distinct {
    parts: Vec<Part>,
    sets: Vec<Set>,
    pool: Pool,
    /// The group of each row, as the last part of the key.
    group: Column,
    evicted: u64,
}

/// Key: the value's parts, then the group.
struct Set {
    layout: Layout,
    table: Table,
    keys: Keys,
    rows: Vec<u16>,
}

impl Distinct {
    pub(super) fn new(parts: Vec<Part>) -> Distinct {
        // A single value is there in every row that counts; of a tuple some part is.
        let mut parts = match <[Part; 1]>::try_from(parts) {
            Ok([one]) => vec![one.present()],
            Err(parts) => parts,
        };
        parts.push(Part::row_number());
        assert!(parts.len() <= PARTS_MAX, "a tuple has at most {} parts", PARTS_MAX - 1);
        let (narrow, wide) = Layout::both(&parts);
        let sets = [Some(narrow), wide]
            .into_iter()
            .flatten()
            .map(|layout| Set {
                table: Table::new(layout.words, 0, VALUES_MAX),
                keys: Keys::new(layout.words),
                rows: Vec::with_capacity(BATCH),
                layout,
            })
            .collect();
        let group = Column::new(Repr::Word);
        Distinct { parts, sets, pool: Pool::default(), group, evicted: 0 }
    }

    /// The part of a key that is the group.
    fn group_part(&self) -> usize {
        self.parts.len() - 1
    }
}

impl Set {
    /// Adds the keys and counts the new ones in their groups.
    fn add(&mut self, group_part: usize, cells: &mut Cells<'_>) -> u64 {
        self.keys.hash();
        let mut out = [NO_ROW; BATCH];
        let before = self.table.len() as u32;
        let refused = self.table.lookup(&self.keys, &[], &mut out);
        for row in before..self.table.len() as u32 {
            let group = self.layout.part(self.table.key(row), group_part).expect("always there");
            cells.of::<1>(group as u32)[0] += 1;
        }
        refused as u64
    }

    /// The values of one group, as packed keys.
    fn of_group(&self, group: u32, group_part: usize) -> impl Iterator<Item = &[u64]> {
        (0..self.table.len() as u32)
            .map(|row| self.table.key(row))
            .filter(move |key| self.layout.part(key, group_part) == Some(group as u128))
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
        for (&i, &g) in input.rows.iter().zip(input.groups) {
            self.group.word_mut()[i as usize] = g as u64;
        }
        self.group.present = Bits::ALL;
        let rows: Bits = input.rows.iter().map(|&i| i as usize).collect();
        let there = input.columns.iter().fold(Bits::NONE, |some, c| some.or(c.present));
        let rows = rows.and(there);
        let rows = input.counted.map_or(rows, |counted| rows.and(counted));
        let columns: Vec<&Column> = input.columns.iter().copied().chain([&self.group]).collect();
        let narrow = narrow_rows(&self.parts, &columns, rows);
        let group_part = self.parts.len() - 1;
        for (set, rows) in self.sets.iter_mut().zip([narrow, rows.minus(narrow)]) {
            if rows.is_empty() {
                continue;
            }
            set.rows.clear();
            rows.each(|i| set.rows.push(i as u16));
            let chosen = Chosen { set: rows, positions: &set.rows };
            pack(&set.layout, &columns, chosen, &mut self.pool, input.arena, &mut set.keys);
            self.evicted += set.add(group_part, cells);
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
        let group_part = self.group_part();
        for (set, theirs) in self.sets.iter_mut().zip(&other.sets) {
            set.keys.len = 0;
            for row in 0..theirs.table.len() as u32 {
                let mut key = theirs.table.key(row).to_vec();
                let group = set.layout.part(&key, group_part).expect("always there");
                set.layout.replace(&mut key, group_part, map[group as usize] as u64);
                set.layout.move_texts(&mut key, &other.pool, &mut self.pool);
                push_key(&mut set.keys, &key);
                if set.keys.len == BATCH {
                    self.evicted += set.add(group_part, cells);
                    set.keys.len = 0;
                }
            }
            self.evicted += set.add(group_part, cells);
        }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        for (i, &group) in groups.iter().enumerate() {
            out.column.set_raw(i, cells.of::<1>(group)[0] as u128);
        }
    }

    fn encode(&self, _: CellsRef<'_>, group: u32, out: &mut Vec<u8>) {
        let group_part = self.group_part();
        for set in &self.sets {
            let keys: Vec<&[u64]> = set.of_group(group, group_part).collect();
            write_words(&[keys.len() as u64], out);
            for key in keys {
                let mut key = key.to_vec();
                set.layout.replace(&mut key, group_part, 0);
                write_words(&key, out);
                for text in set.layout.texts_of(&key, &self.pool) {
                    write_bytes(text, out);
                }
            }
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let group_part = self.group_part();
        let mut rest = *from;
        let mut read: Vec<(usize, Vec<u64>)> = Vec::new();
        for (s, set) in self.sets.iter().enumerate() {
            let Some([n]) = read_words(&mut rest) else { return false };
            for _ in 0..n {
                let mut key = Vec::with_capacity(set.layout.words);
                for _ in 0..set.layout.words {
                    let Some([word]) = read_words(&mut rest) else { return false };
                    key.push(word);
                }
                for p in set.layout.text_parts() {
                    if set.layout.part(&key, p).is_none() {
                        continue;
                    }
                    let Some(text) = read_bytes(&mut rest) else { return false };
                    set.layout.replace(&mut key, p, self.pool.intern(text));
                }
                set.layout.replace(&mut key, group_part, group as u64);
                read.push((s, key));
            }
        }
        *from = rest;
        for (s, key) in read {
            let set = &mut self.sets[s];
            set.keys.len = 0;
            push_key(&mut set.keys, &key);
            self.evicted += set.add(group_part, cells);
        }
        true
    }

    fn clear(&mut self) {
        self.sets.iter_mut().for_each(|s| s.table.clear());
        self.pool.clear();
        self.evicted = 0;
    }

    fn evicted(&self) -> u64 {
        self.evicted
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn push_key(keys: &mut Keys, key: &[u64]) {
    let j = keys.len;
    keys.words.iter_mut().zip(key).for_each(|(plane, w)| plane[j] = *w);
    keys.hashes[j] = hash(key.iter().copied());
    keys.len += 1;
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

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
}
