//! Groups that are sessions: each is a row of its own, whatever its key, and is never looked up.

use super::{Groups, Variant, group_id};
use crate::agg::end_reason::SHIFT;
use crate::agg::{Cells, CellsRef};
use crate::key::{Layout, Pool};
use crate::ops::session_words::{LAST, META, START};
use crate::table::NO_ROW;
use std::collections::BTreeMap;
use weir_plan::{EndReason, Session};

impl Groups {
    /// Copies sessions of one layout of other groups, in this order.
    pub(in crate::ops) fn append(&mut self, other: &Groups, v: usize, rows: &[u32]) {
        let Groups { spec, variants, texts, map, .. } = self;
        let texts = (&other.texts, texts);
        variants[v].append(&other.variants[v], &spec.layouts[v], texts, rows, map);
        self.count_held();
    }

    /// Copies all sessions of other groups, in their order.
    pub(super) fn append_all(&mut self, other: &Groups) {
        for v in 0..self.variants.len() {
            let rows: Vec<u32> = (0..other.variants[v].table.len() as u32).collect();
            self.append(other, v, &rows);
        }
    }

    /// Sessions of a probe that were handed out at a tick, by the tick at which a run over the
    /// packets of all probes puts them out: its clock may find one idle before that of the probe.
    /// Sessions that lingered were handed out at the tick which finds that.
    pub(crate) fn by_due(&self, session: Session, tick: i64) -> BTreeMap<i64, Groups> {
        let mut all = BTreeMap::<i64, Groups>::new();
        for (v, variant) in self.variants.iter().enumerate() {
            let mut rows = BTreeMap::<i64, Vec<u32>>::new();
            for row in 0..variant.table.len() as u32 {
                let due = session.idle_tick(variant.last(row)).min(tick);
                rows.entry(due).or_default().push(row);
            }
            for (due, rows) in rows {
                let groups = all.entry(due).or_insert_with(|| Groups::new(&self.spec));
                groups.append(self, v, &rows);
            }
        }
        all
    }

    /// Ends the sessions as idle that were open when their probe ended.
    pub(crate) fn end_idle(&mut self) {
        for Variant { table, .. } in &mut self.variants {
            let at = table.key_words() + META;
            for row in 0..table.len() as u32 {
                let meta = &mut table.row_mut(row)[at];
                if *meta >> SHIFT == EndReason::Forced as u64 {
                    *meta = (EndReason::Idle as u64) << SHIFT;
                }
            }
        }
    }

    /// All sessions by their start, then by key, then in the order they ended.
    pub(super) fn by_start(&self, times: &mut Vec<(i64, u64)>, order: &mut Vec<u64>) {
        times.clear();
        for (v, variant) in self.variants.iter().enumerate() {
            let rows = 0..variant.table.len() as u32;
            times.extend(rows.map(|r| (variant.start(r), (v as u64) << 32 | u64::from(r))));
        }
        times.sort_unstable_by(|(a, x), (b, y)| {
            // Groups of one key are of one layout, where they stand in the order they ended.
            a.cmp(b).then_with(|| self.compare(group_id(*x), group_id(*y)).then(x.cmp(y)))
        });
        order.extend(times.iter().map(|(_, id)| *id));
    }
}

impl Variant {
    /// When a session started.
    #[inline(always)]
    pub(in crate::ops) fn start(&self, row: u32) -> i64 {
        self.table.row(row)[self.table.key_words() + START] as i64
    }

    /// When the latest row of a session came.
    #[inline(always)]
    pub(in crate::ops) fn last(&self, row: u32) -> i64 {
        self.table.row(row)[self.table.key_words() + LAST] as i64
    }

    /// Whether its rows are all there is to its groups.
    pub(in crate::ops) fn is_all_in_rows(&self, layout: &Layout) -> bool {
        layout.text_parts().next().is_none() && !self.aggs.iter().any(|a| a.hints().keeps_aside)
    }

    fn append(
        &mut self,
        theirs: &Variant,
        layout: &Layout,
        (their_texts, texts): (&Pool, &mut Pool),
        rows: &[u32],
        map: &mut Vec<u32>,
    ) {
        if rows.is_empty() {
            return;
        }
        let first = self.table.len() as u32;
        let has_texts = layout.text_parts().next().is_some();
        for &row in rows {
            let new = self.table.push_row();
            new.copy_from_slice(theirs.table.row(row));
            if has_texts {
                layout.move_texts(&mut new[..layout.words], their_texts, texts);
            }
        }
        let stride = self.table.stride();
        for (a, agg) in self.aggs.iter_mut().enumerate().filter(|(_, a)| a.hints().keeps_aside) {
            let at = self.at[a];
            let fresh = &self.fresh[at - layout.words..][..agg.cells()];
            for new in (first..).take(rows.len()) {
                self.table.row_mut(new)[at..at + fresh.len()].copy_from_slice(fresh);
            }
            let mut cells = Cells { rows: self.table.rows_mut(), stride, at };
            if agg.hints().merges_whole {
                map.clear();
                map.resize(theirs.table.len(), NO_ROW);
                rows.iter().zip(first..).for_each(|(&there, here)| map[there as usize] = here);
                agg.merge(&mut cells, &*theirs.aggs[a], theirs.cells(a), map);
                continue;
            }
            for (&there, here) in rows.iter().zip(first..) {
                let from = CellsRef { rows: theirs.table.row(there), stride, at };
                agg.merge(&mut cells, &*theirs.aggs[a], from, &[here]);
            }
        }
    }
}
