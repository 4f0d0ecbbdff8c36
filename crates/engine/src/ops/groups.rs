//! The groups of a `summarize`: one table per key layout, with the cells of all aggregates.

use crate::agg::{Aggregate, Cells, CellsRef, build};
use crate::functions::Functions;
use crate::key::{Layout, Part, Pool};
use crate::limits::PARTS_MAX;
use crate::table::{Keys, NO_ROW, Table, hash};
use std::cmp::Ordering;
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_plan as plan;
use weir_plan::{Schema, Window};

/// What both halves know of a summarize.
pub struct Spec {
    pub(super) plan: plan::Summarize,
    functions: Functions,
    pub(super) parts: Vec<Part>,
    pub(super) layouts: Vec<Layout>,
    /// The columns put out.
    pub schema: Schema,
}

impl Spec {
    /// From the plan; `schema` is the stage's output.
    pub fn new(plan: &plan::Summarize, functions: &Functions, schema: Schema) -> Arc<Spec> {
        let parts: Vec<Part> = plan.keys.iter().map(|(_, e)| Part::of(e)).collect();
        assert!(parts.len() <= PARTS_MAX, "a key has at most {PARTS_MAX} parts");
        let (narrow, wide) = Layout::both(&parts);
        Arc::new(Spec {
            plan: plan.clone(),
            functions: functions.clone(),
            layouts: [Some(narrow), wide].into_iter().flatten().collect(),
            parts,
            schema,
        })
    }

    /// Length of the windows, if there are any.
    pub fn every(&self) -> Option<i64> {
        match self.plan.window {
            Window::All => None,
            Window::Tumbling(d) => Some(d),
        }
    }

    /// The watermark that rows put out by a close at `watermark` obey.
    pub fn downstream(&self, watermark: i64) -> i64 {
        match self.every() {
            Some(d) => window_start(watermark, d),
            None => i64::MIN,
        }
    }
}

/// The start of the window of length `d` that `t` lies in.
pub(super) fn window_start(t: i64, d: i64) -> i64 {
    t.checked_sub(t.rem_euclid(d)).unwrap_or(i64::MIN)
}

/// The groups of one window.
pub struct Groups {
    spec: Arc<Spec>,
    /// One for narrow keys, one for wide ones where there are addresses.
    pub(super) variants: Vec<Variant>,
    pub(super) texts: Pool,
}

pub(super) struct Variant {
    pub(super) table: Table,
    pub(super) aggs: Vec<Box<dyn Aggregate>>,
    /// Where in a row the cells of each aggregate start.
    pub(super) at: Vec<usize>,
    /// The cells of a new group.
    pub(super) fresh: Vec<u64>,
}

impl Variant {
    fn new(spec: &Spec, layout: &Layout) -> Variant {
        let lone = spec.plan.keys.is_empty();
        let aggs: Vec<_> = spec.plan.aggs.iter().map(|a| build(a, &spec.functions, lone)).collect();
        let (mut at, mut fresh) = (Vec::new(), Vec::new());
        for agg in &aggs {
            at.push(layout.words + fresh.len());
            let mut cells = vec![0; agg.cells()];
            agg.fresh(&mut cells);
            fresh.extend(cells);
        }
        let table = Table::new(layout.words, fresh.len(), spec.plan.max_groups);
        Variant { table, aggs, at, fresh }
    }

    pub(super) fn cells(&self, agg: usize) -> CellsRef<'_> {
        CellsRef { rows: self.table.rows(), stride: self.table.stride(), at: self.at[agg] }
    }
}

impl Groups {
    /// No groups.
    pub fn new(spec: &Arc<Spec>) -> Groups {
        Groups {
            variants: spec.layouts.iter().map(|l| Variant::new(spec, l)).collect(),
            texts: Pool::default(),
            spec: Arc::clone(spec),
        }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.variants.iter().map(|v| v.table.len()).sum()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn evicted(&self) -> u64 {
        let values: u64 = self.variants.iter().flat_map(|v| &v.aggs).map(|a| a.evicted()).sum();
        values + self.texts.refused()
    }

    /// Takes the groups of another worker in. May exceed `max`: each worker held to it.
    pub fn merge(&mut self, other: &Groups) {
        for v in 0..self.variants.len() {
            let layout = &self.spec.layouts[v];
            let (mine, theirs) = (&mut self.variants[v], &other.variants[v]);
            mine.table.set_max(u64::MAX);
            let mut keys = Keys::new(layout.words);
            let mut map = Vec::with_capacity(theirs.table.len());
            let mut out = [NO_ROW; BATCH];
            let mut key = Vec::with_capacity(layout.words);
            for row in 0..theirs.table.len() as u32 {
                key.clear();
                key.extend_from_slice(theirs.table.key(row));
                layout.move_texts(&mut key, &other.texts, &mut self.texts);
                let j = keys.len;
                keys.words.iter_mut().zip(&key).for_each(|(plane, w)| plane[j] = *w);
                keys.hashes[j] = hash(key.iter().copied());
                keys.len += 1;
                if keys.len == BATCH || row as usize + 1 == theirs.table.len() {
                    mine.table.lookup(&keys, &mine.fresh, &mut out);
                    map.extend_from_slice(&out[..keys.len]);
                    keys.len = 0;
                }
            }
            let stride = mine.table.stride();
            for (a, agg) in mine.aggs.iter_mut().enumerate() {
                let mut cells = Cells { rows: mine.table.rows_mut(), stride, at: mine.at[a] };
                agg.merge(&mut cells, &*theirs.aggs[a], theirs.cells(a), &map);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        for v in &mut self.variants {
            v.table.clear();
            v.aggs.iter_mut().for_each(|a| a.clear());
        }
        self.texts.clear();
    }

    /// All groups in the order of their keys, as (variant, row).
    pub(super) fn sorted(&self) -> Vec<(u8, u32)> {
        let mut lists = self.variants.iter().zip(&self.spec.layouts).enumerate().map(
            |(v, (variant, layout))| {
                let mut list: Vec<(u128, u32, bool)> = (0..variant.table.len() as u32)
                    .map(|row| {
                        let (prefix, whole) =
                            layout.sort_prefix(variant.table.key(row), &self.texts);
                        (prefix, row, whole)
                    })
                    .collect();
                list.sort_unstable_by(|a, b| {
                    a.0.cmp(&b.0).then_with(|| {
                        if a.2 {
                            return Ordering::Equal;
                        }
                        let key = |row| variant.table.key(row);
                        layout.compare(key(a.1), &self.texts, layout, key(b.1), &self.texts)
                    })
                });
                list.into_iter().map(|(_, row, _)| (v as u8, row)).collect::<Vec<_>>()
            },
        );
        let narrow = lists.next().expect("there is a narrow table");
        let wide = lists.next().unwrap_or_default();
        if wide.is_empty() {
            return narrow;
        }
        if narrow.is_empty() {
            return wide;
        }
        let mut merged = Vec::with_capacity(narrow.len() + wide.len());
        let (mut a, mut b) = (narrow.into_iter().peekable(), wide.into_iter().peekable());
        while let (Some(&x), Some(&y)) = (a.peek(), b.peek()) {
            merged.extend(if self.compare(x, y).is_le() { a.next() } else { b.next() });
        }
        merged.extend(a);
        merged.extend(b);
        merged
    }

    fn compare(&self, a: (u8, u32), b: (u8, u32)) -> Ordering {
        let (x, y) = (a.0 as usize, b.0 as usize);
        self.spec.layouts[x].compare(
            self.variants[x].table.key(a.1),
            &self.texts,
            &self.spec.layouts[y],
            self.variants[y].table.key(b.1),
            &self.texts,
        )
    }
}
