//! The groups of a `summarize`: one table per key layout, with the cells of all aggregates.

mod counted;
mod evicted;
mod saved;
mod sessions;
mod spec;
pub(crate) mod written;

use super::order::Sorter;
use super::session_words;
use crate::agg::{self, Aggregate, Cells, CellsRef};
use crate::key::{Layout, PACKED_WORDS_MAX, Pool};
use crate::peers::BuildContext;
use crate::room::RoomCharge;
use crate::table::{Keys, NO_ROW, Table};
pub(crate) use spec::Spec;
use std::cmp::Ordering;
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_plan::{Agg, AggFunc};

/// Windows in a row that may use less than an eighth of a table before its memory is given back.
const SMALL_WINDOWS_MAX: u32 = 16;

/// Groups by which those of one window may have changed before they are charged for, or a part of
/// them where they are few, ...
const CHARGED_AT_ONCE: usize = 256;
/// ...and batches that may have come, with values to keep beside the groups.
const CHARGED_AT_LEAST: u32 = 64;

/// Tables that never held more groups than this keep their memory.
const SMALL_TABLE: usize = 1 << 12;

/// Rows that came to the groups of a window.
#[derive(Clone, Copy, Default)]
pub(super) struct RowCounts {
    /// Rows that are in groups.
    pub(super) taken: u64,
    /// Rows that are in none, for want of room.
    pub(super) evicted: u64,
}

impl RowCounts {
    fn add(&mut self, other: RowCounts) {
        self.taken += other.taken;
        self.evicted += other.evicted;
    }

    /// The share of all that is in groups.
    pub(super) fn share(self) -> f64 {
        match self.evicted {
            0 => 1.0,
            evicted => self.taken as f64 / (self.taken + evicted) as f64,
        }
    }
}

/// Lets groups go of the one that is charged for most, where that is a part of `bound` that is
/// worth looking at all of its groups. Returns how many rows go.
pub(super) fn make_room<'a>(
    all: impl Iterator<Item = &'a mut Groups>,
    bound: u64,
    parts: u64,
) -> u64 {
    let largest = all.filter(|groups| !groups.is_stuck).max_by_key(|groups| groups.charged());
    let worth = |groups: &&mut Groups| groups.charged() >= bound.div_ceil(parts.max(1));
    largest.filter(worth).and_then(|groups| groups.evict(bound)).unwrap_or(0)
}

/// The groups of one window.
pub(crate) struct Groups {
    spec: Arc<Spec>,
    /// One for narrow keys, one for wide ones where there are addresses.
    pub(super) variants: Vec<Variant>,
    pub(super) texts: Pool,
    /// Where the groups of another worker went, one after the other.
    map: Vec<u32>,
    /// Rows that its groups took in, and those that found no room or went with their group.
    pub(super) rows: RowCounts,
    charge: RoomCharge,
    /// Groups that it was charged for, and batches since.
    charged: usize,
    uncharged: u32,
    /// Whether it gave little room back when groups went.
    is_stuck: bool,
}

pub(super) struct Variant {
    pub(super) table: Table,
    pub(super) aggs: Vec<Box<dyn Aggregate>>,
    /// Where in a row the cells of each aggregate start.
    pub(super) at: Vec<usize>,
    /// Whether all rows are of one group.
    pub(super) lone: bool,
    /// The cells of a new group.
    pub(super) fresh: Vec<u64>,
    /// How many rows each group took in, counted while room is short.
    taken: Vec<u32>,
    /// The most groups there were since the table was made.
    most: usize,
    /// Windows in a row with less than an eighth of that.
    small: u32,
}

impl Variant {
    fn new(spec: &Spec, layout: &Layout) -> Variant {
        let lone = spec.plan.keys.is_empty() || spec.plan.fill.is_some();
        let Spec { functions, hash_key, peers, .. } = spec;
        let with = BuildContext { functions, hash_key: *hash_key, peers: *peers, room: None };
        let build = |state: &Vec<Agg>| agg::build(state, with, lone);
        let aggs: Vec<_> = spec.states.iter().map(build).collect();
        let (mut at, mut fresh) = (Vec::new(), vec![0; spec.head()]);
        for (agg, plan) in aggs.iter().zip(&spec.plan.aggs) {
            at.push(match plan.func {
                AggFunc::EndReason => layout.words + session_words::META,
                _ => layout.words + fresh.len(),
            });
            let mut cells = vec![0; agg.cells()];
            agg.fresh(&mut cells);
            fresh.extend(cells);
        }
        let lone = spec.plan.keys.is_empty() && spec.session().is_none();
        let table = Table::new(layout.words, fresh.len(), spec.max_rows(), spec.hash_key);
        Variant { table, aggs, at, lone, fresh, taken: Vec::new(), most: 0, small: 0 }
    }

    /// Forgets all groups. Keeps the memory, unless a burst left far more than is used.
    fn clear(&mut self, layout: &Layout, spec: &Spec) {
        let used = self.table.len();
        self.most = self.most.max(used);
        self.small = if used < self.most / 8 { self.small + 1 } else { 0 };
        if self.small > SMALL_WINDOWS_MAX && self.most > SMALL_TABLE {
            *self = Variant::new(spec, layout);
            return;
        }
        self.table.clear();
        self.taken.clear();
        self.aggs.iter_mut().for_each(|a| a.clear());
    }

    pub(super) fn cells(&self, agg: usize) -> CellsRef<'_> {
        CellsRef { rows: self.table.rows(), stride: self.table.stride(), at: self.at[agg] }
    }
}

impl Groups {
    /// No groups.
    pub(crate) fn new(spec: &Arc<Spec>) -> Groups {
        Groups {
            variants: spec.layouts.iter().map(|l| Variant::new(spec, l)).collect(),
            texts: Pool::default(),
            map: Vec::new(),
            rows: RowCounts::default(),
            charge: spec.share.charge(),
            charged: 0,
            uncharged: 0,
            is_stuck: false,
            spec: Arc::clone(spec),
        }
    }

    /// Makes room for so many groups of each layout. Memory is taken as they come.
    pub(super) fn reserve(&mut self, groups: usize) {
        self.variants.iter_mut().for_each(|v| v.table.reserve(groups));
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        self.variants.iter().map(|v| v.table.len()).sum()
    }

    /// Whether there is no group.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are groups, and nothing is kept of them but their keys and cells: then putting
    /// them out changes nothing.
    pub(super) fn are_cells(&self) -> bool {
        let mut aggs = self.variants.iter().flat_map(|v| &v.aggs);
        !self.is_empty() && !aggs.any(|agg| agg.hints().keeps_aside)
    }

    pub(super) fn evicted(&self) -> u64 {
        let values: u64 = self.variants.iter().flat_map(|v| &v.aggs).map(|a| a.evicted()).sum();
        values + self.texts.refused()
    }

    /// Takes the groups of another worker in. May exceed `max`: each worker held to it.
    pub(crate) fn merge(&mut self, other: &Groups) {
        if self.spec.session().is_some() {
            return self.append_all(other);
        }
        let Groups { spec, variants, texts, map, .. } = self;
        let both = variants.iter_mut().zip(&other.variants).zip(&spec.layouts);
        for ((mine, theirs), layout) in both {
            let before = mine.table.len();
            map.clear();
            mine.merge(theirs, layout, (&other.texts, &mut *texts), map);
            match before == 0 && map.is_empty() {
                true => mine.taken.clone_from(&theirs.taken),
                false => mine.count_merged(theirs, map, before),
            }
        }
        self.rows.add(other.rows);
        self.count_held();
    }

    /// Has the groups that there are now charged for, with what is kept beside them.
    pub(super) fn charge(&mut self) {
        (self.charged, self.uncharged) = (self.len(), 0);
        if self.charge.is_asked() {
            let aggs = self.variants.iter().flat_map(|v| &v.aggs);
            let aside = self.texts.bytes() + aggs.map(|agg| agg.aside()).sum::<usize>();
            self.charge.set_with(self.len() as u64, aside as u64);
        }
    }

    /// The same, where it has become worth it: called as often as rows come.
    #[inline]
    pub(super) fn count_held(&mut self) {
        self.uncharged += 1;
        let few = (self.charged / 8).clamp(CHARGED_AT_ONCE / 16, CHARGED_AT_ONCE);
        let changed = self.len().abs_diff(self.charged) >= few;
        if changed || self.uncharged >= CHARGED_AT_LEAST {
            self.charge();
        }
    }

    /// Takes the groups of another worker in and gives back memory to be used again: no group is
    /// looked up where either side has none, and the fewer are looked up among the more.
    pub(crate) fn absorb(&mut self, mut other: Groups) -> Groups {
        if other.len() > self.len() {
            std::mem::swap(self, &mut other);
        }
        match other.is_empty() {
            true => self.rows.add(other.rows),
            false => self.merge(&other),
        }
        other
    }

    /// Makes all aggregates ready to be finished.
    pub(super) fn settle(&mut self) {
        for Variant { table, aggs, at, .. } in &mut self.variants {
            for (agg, &at) in aggs.iter_mut().zip(&*at) {
                agg.settle(CellsRef { rows: table.rows(), stride: table.stride(), at });
            }
        }
    }

    pub(super) fn clear(&mut self) {
        for (v, layout) in self.variants.iter_mut().zip(&self.spec.layouts) {
            v.clear(layout, &self.spec);
        }
        self.texts.clear();
        self.rows = RowCounts::default();
        self.charge.set(0);
        (self.charged, self.uncharged, self.is_stuck) = (0, 0, false);
        if self.spec.share.is_short() {
            // Others need the memory.
            *self = Groups::new(&self.spec);
        }
    }

    /// All groups in the order of their keys: [`group_id`]s.
    pub(super) fn sorted(&self, sorter: &mut Sorter, order: &mut Vec<u64>) {
        order.clear();
        if self.spec.session().is_some() {
            return self.by_start(sorter.times(), order);
        }
        for (v, (variant, layout)) in self.variants.iter().zip(&self.spec.layouts).enumerate() {
            sorter.sort(&variant.table, layout, &self.texts, (v as u64) << 32, order);
        }
        let narrow = self.variants[0].table.len();
        if narrow > 0 && narrow < order.len() {
            let compare = |a, b| self.compare(group_id(a), group_id(b));
            merge_sorted(order, narrow, sorter.aside(), compare);
        }
    }

    fn compare(&self, a: (usize, u32), b: (usize, u32)) -> Ordering {
        self.spec.layouts[a.0].compare(
            self.variants[a.0].table.key(a.1),
            &self.texts,
            &self.spec.layouts[b.0],
            self.variants[b.0].table.key(b.1),
            &self.texts,
        )
    }
}

impl Variant {
    /// Takes the groups of the same layout of another worker in; `map` is scratch.
    fn merge(
        &mut self,
        theirs: &Variant,
        layout: &Layout,
        (their_texts, texts): (&Pool, &mut Pool),
        map: &mut Vec<u32>,
    ) {
        self.table.set_max(u64::MAX);
        let has_texts = layout.text_parts().next().is_some();
        if self.table.len() == 0 && !has_texts && !self.aggs.iter().any(|a| a.hints().keeps_aside) {
            // Nothing is to be merged with: their rows are all there is.
            return self.table.copy_from(&theirs.table);
        }
        let mut keys = Keys::new(layout.words);
        let mut out = [NO_ROW; BATCH];
        let (their_stride, len) = (theirs.table.stride(), theirs.table.len());
        map.clear();
        map.reserve(len);
        for first in (0..len).step_by(BATCH) {
            let n = BATCH.min(len - first);
            let rows = &theirs.table.rows()[first * their_stride..][..n * their_stride];
            for (w, plane) in keys.words.iter_mut().enumerate() {
                let words = rows.chunks_exact(their_stride).map(|row| row[w]);
                plane.iter_mut().zip(words).for_each(|(slot, word)| *slot = word);
            }
            if has_texts {
                let mut key = [0; PACKED_WORDS_MAX];
                for (j, row) in rows.chunks_exact(their_stride).enumerate() {
                    let key = &mut key[..layout.words];
                    key.copy_from_slice(&row[..layout.words]);
                    layout.move_texts(key, their_texts, texts);
                    keys.words.iter_mut().zip(key).for_each(|(plane, w)| plane[j] = *w);
                }
            }
            keys.len = n;
            self.table.lookup_words(&mut keys, &self.fresh, &mut out);
            map.extend_from_slice(&out[..n]);
            // While the rows of the batch are in the cache.
            let stride = self.table.stride();
            for (a, agg) in
                self.aggs.iter_mut().enumerate().filter(|(_, a)| !a.hints().merges_whole)
            {
                let mut cells = Cells { rows: self.table.rows_mut(), stride, at: self.at[a] };
                let from = CellsRef { rows, stride: their_stride, at: theirs.at[a] };
                agg.merge(&mut cells, &*theirs.aggs[a], from, &out[..n]);
            }
        }
        let stride = self.table.stride();
        for (a, agg) in self.aggs.iter_mut().enumerate().filter(|(_, a)| a.hints().merges_whole) {
            let mut cells = Cells { rows: self.table.rows_mut(), stride, at: self.at[a] };
            agg.merge(&mut cells, &*theirs.aggs[a], theirs.cells(a), map);
        }
    }
}

/// The variant and the row of a group that [`Groups::sorted`] names.
#[inline(always)]
pub(super) fn group_id(id: u64) -> (usize, u32) {
    ((id >> 32) as usize, id as u32)
}

/// Merges two sorted runs, the second from `middle` on. Runs of one side that come together are
/// found by doubling steps: addresses of one family mostly stand together.
fn merge_sorted(
    all: &mut [u64],
    middle: usize,
    aside: &mut Vec<u64>,
    compare: impl Fn(u64, u64) -> Ordering,
) {
    aside.clear();
    aside.extend_from_slice(&all[..middle]);
    let (mut at, mut a, mut b) = (0, 0, middle);
    while a < aside.len() && b < all.len() {
        let first = all[b];
        let run = gallop(&aside[a..], |x| compare(x, first).is_le());
        all[at..at + run].copy_from_slice(&aside[a..a + run]);
        (at, a) = (at + run, a + run);
        if a == aside.len() {
            break;
        }
        let first = aside[a];
        let run = gallop(&all[b..], |x| compare(x, first).is_lt());
        all.copy_within(b..b + run, at);
        (at, b) = (at + run, b + run);
    }
    all[at..at + aside.len() - a].copy_from_slice(&aside[a..]);
}

/// How many ids at the front `holds` holds for; it holds for none after one it does not hold for.
fn gallop(ids: &[u64], holds: impl Fn(u64) -> bool) -> usize {
    let mut step = 1;
    while step <= ids.len() && holds(ids[step - 1]) {
        step *= 2;
    }
    let (from, to) = (step / 2, ids.len().min(step.saturating_sub(1)));
    from + ids[from..to].partition_point(|&x| holds(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Functions;
    use crate::ops::testing::{agg, summarize};
    use crate::peers::Peers;
    use crate::table::HashKey;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use weir_plan::{AggFunc, Schema, Stage, Window};

    fn spec() -> Arc<Spec> {
        let count = vec![agg(AggFunc::Count, None)];
        let stage = summarize(&["dport", "ip.src"], count, Window::All);
        let schema = crate::tests::schema_after(std::slice::from_ref(&stage), &Schema::default());
        let Stage::Summarize(plan) = stage else { unreachable!() };
        let functions = &Functions::default();
        Spec::new(
            &plan,
            BuildContext { functions, hash_key: HashKey::random(), peers: Peers::None, room: None },
            schema,
        )
    }

    /// Counts a packet of this port and source.
    fn count(groups: &mut Groups, (port, ip): (u16, u128)) {
        let v = (ip >> 32 != 0xffff) as usize;
        let Groups { spec, variants, .. } = groups;
        let layout = &spec.layouts[v];
        let mut key = vec![0; layout.words];
        for (p, value) in [(0, port as u128), (1, ip)] {
            let (place, _) = layout.place(p);
            if let Some((word, shift)) = place.present {
                key[word] |= 1 << shift;
            }
            if place.bits == 128 {
                (key[place.word], key[place.word + 1]) = ((value >> 64) as u64, value as u64);
            } else {
                layout.replace(&mut key, p, value as u64);
            }
        }
        let mut keys = Keys::new(layout.words);
        keys.words.iter_mut().zip(&key).for_each(|(plane, w)| plane[0] = *w);
        keys.len = 1;
        let variant = &mut variants[v];
        let mut out = [NO_ROW; BATCH];
        variant.table.lookup_words(&mut keys, &variant.fresh, &mut out);
        let (stride, at) = (variant.table.stride(), variant.at[0]);
        let mut cells = Cells { rows: variant.table.rows_mut(), stride, at };
        cells.of::<1>(out[0])[0] += 1;
    }

    /// All groups in order.
    fn counts(groups: &Groups) -> Vec<((u16, u128), u64)> {
        let (mut sorter, mut order) = (Sorter::default(), Vec::new());
        groups.sorted(&mut sorter, &mut order);
        let group = |&id| {
            let (v, row) = group_id(id);
            let (layout, variant) = (&groups.spec.layouts[v], &groups.variants[v]);
            let part = |p| layout.part(variant.table.key(row), p).expect("always there");
            ((part(0) as u16, part(1)), variant.cells(0).of::<1>(row)[0])
        };
        order.iter().map(group).collect()
    }

    /// Packets of few ports and sources, of both families.
    fn packets() -> impl Strategy<Value = Vec<(u16, u128)>> {
        let ip = prop_oneof![
            (0u128..500).prop_map(|a| 0xffff_0a00_0000 + a),
            (0u128..500).prop_map(|a| a << 100 | 1),
            Just(1u128),
        ];
        proptest::collection::vec((0u16..3, ip), 0..1500)
    }

    proptest! {
        #[test]
        fn workers_merge_like_maps(mine in packets(), theirs in packets(), absorbed: bool) {
            let spec = spec();
            let (mut a, mut b) = (Groups::new(&spec), Groups::new(&spec));
            let mut model = BTreeMap::new();
            mine.iter().for_each(|&p| count(&mut a, p));
            theirs.iter().for_each(|&p| count(&mut b, p));
            mine.iter().chain(&theirs).for_each(|&p| *model.entry(p).or_insert(0) += 1);
            if absorbed {
                let spent = a.absorb(b);
                prop_assert!(spent.len() <= a.len());
            } else {
                a.merge(&b);
            }
            prop_assert_eq!(counts(&a), model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn memory_of_a_burst_is_given_back() {
        let mut groups = Groups::new(&spec());
        (0..2 * SMALL_TABLE).for_each(|i| count(&mut groups, (1, 0xffff_0000_0000 + i as u128)));
        groups.clear();
        let mut most = Vec::new();
        for _ in 0..2 * SMALL_WINDOWS_MAX {
            count(&mut groups, (1, 2));
            groups.clear();
            most.push(groups.variants[0].most);
        }
        assert_eq!(most.first(), Some(&(2 * SMALL_TABLE)));
        assert!(most.last() < Some(&2), "a new table after {} small windows", most.len());
    }
}
