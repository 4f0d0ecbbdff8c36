//! The half of a `summarize` that puts rows out.

use super::groups::{Groups, Spec};
use crate::agg::Finish;
use crate::rows::Rows;
use crate::table::{Keys, NO_ROW};
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;

/// Turns groups into rows, in order.
pub struct Emitter {
    spec: Arc<Spec>,
    rows: Rows,
    /// Rows put out so far: their order number.
    emitted: u64,
}

impl Emitter {
    /// An emitter of the groups of `spec`.
    pub fn new(spec: &Arc<Spec>) -> Emitter {
        Emitter { spec: Arc::clone(spec), rows: Rows::new(&spec.schema), emitted: 0 }
    }

    /// What a summary of the whole input without keys puts out when no row came: one group.
    pub fn lone(&self) -> Option<Groups> {
        let lone = self.spec.plan.keys.is_empty() && self.spec.every().is_none();
        lone.then(|| Groups::new(&self.spec))
    }

    /// Puts out the groups of one window, in order of their keys.
    pub fn emit(
        &mut self,
        start: i64,
        groups: &mut Groups,
        undefined: &mut u64,
        out: &mut dyn FnMut(&Rows),
    ) {
        if groups.is_empty() && self.spec.plan.keys.is_empty() {
            let variant = &mut groups.variants[0];
            let mut keys = Keys::new(0);
            keys.len = 1;
            keys.hash();
            variant.table.lookup(&keys, &variant.fresh, &mut [NO_ROW; BATCH]);
        }
        let order = groups.sorted();
        for chunk in order.chunks(BATCH) {
            self.fill(start, groups, chunk, undefined);
            out(&self.rows);
        }
    }

    fn fill(&mut self, start: i64, groups: &Groups, chunk: &[(u8, u32)], undefined: &mut u64) {
        let rows = &mut self.rows;
        rows.arena.truncate(0);
        rows.len = chunk.len();
        rows.order.clear();
        rows.order.extend((self.emitted..).take(chunk.len()));
        self.emitted += chunk.len() as u64;
        rows.clock.clear();
        rows.clock.resize(chunk.len(), start);
        rows.columns.iter_mut().for_each(|c| c.present = Bits::NONE);
        rows.time.present = Bits::NONE;
        let mut c = 0;
        if self.spec.every().is_some() {
            for i in 0..chunk.len() {
                rows.columns[0].set_raw(i, start as u64 as u128);
                rows.time.set_raw(i, start as u64 as u128);
            }
            c = 1;
        }
        for p in 0..self.spec.parts.len() {
            for (i, &(v, row)) in chunk.iter().enumerate() {
                let key = groups.variants[v as usize].table.key(row);
                self.spec.layouts[v as usize].unpack(
                    key,
                    p,
                    &groups.texts,
                    &mut rows.columns[c + p],
                    i,
                    &mut rows.arena,
                );
            }
        }
        c += self.spec.parts.len();
        finish_aggs(groups, chunk, rows, c, undefined);
    }
}

/// Writes the results of all aggregates, the first to column `c`. Runs of groups of one variant
/// are finished together into a scratch column and moved to their place.
fn finish_aggs(
    groups: &Groups,
    chunk: &[(u8, u32)],
    rows: &mut Rows,
    c: usize,
    undefined: &mut u64,
) {
    let uniform = chunk.iter().all(|g| g.0 == chunk[0].0);
    let runs: Vec<(usize, Vec<u32>)> = if uniform {
        vec![(0, chunk.iter().map(|g| g.1).collect())]
    } else {
        chunk.iter().enumerate().map(|(i, g)| (i, vec![g.1])).collect()
    };
    for (i, ids) in runs {
        let variant = &groups.variants[chunk[i].0 as usize];
        for (a, agg) in variant.aggs.iter().enumerate() {
            let column = &mut rows.columns[c + a];
            if uniform {
                let arena = &mut rows.arena;
                agg.finish(variant.cells(a), &ids, &mut Finish { column, arena, undefined });
                continue;
            }
            let mut one = Column::new(column.repr());
            let arena = &mut rows.arena;
            agg.finish(variant.cells(a), &ids, &mut Finish { column: &mut one, arena, undefined });
            if one.present.has(0) {
                column.set_raw(i, one.raw(0));
            }
        }
    }
}
