//! The work of grouping operators on the rows of a batch once these have their groups: conditions,
//! arguments, aggregates.

use super::groups::{Spec, Variant};
use super::operator::Batch;
use crate::agg::{CellStep, Cells, FUSED_MAX, Input, update_fused};
use crate::expr::{Cond, Ctx, Src, Val};
use crate::key::choose;
use crate::limits::PARTS_MAX;
use crate::table::{Keys, NO_ROW};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::AggFunc;

/// Scratch of one batch.
pub(super) struct GroupingScratch {
    pub(super) key_srcs: Vec<Src>,
    agg_srcs: Vec<(Vec<Src>, Bits)>,
    pub(super) positions: Vec<u16>,
    pub(super) ids: [u32; BATCH],
    /// One for each layout.
    pub(super) packed: Vec<Keys>,
    /// The rows whose keys are made directly.
    pub(super) direct: Bits,
}

/// The arguments of an aggregate, tuples taken apart, and its condition.
pub(super) type AggArgs = (Vec<Val>, Option<Cond>);

/// The columns that keys stand in.
pub(super) struct KeyColumns<'a> {
    columns: [&'a Column; PARTS_MAX],
    parts: usize,
}

impl KeyColumns<'_> {
    /// One for each part of the key.
    pub(super) fn get(&self) -> &[&Column] {
        &self.columns[..self.parts]
    }
}

/// Goes through rows of both layouts in the order that they came: `take` gets the runs of those of
/// one layout, with its number.
pub(super) fn in_turn(mut rows: Bits, narrow: Bits, mut take: impl FnMut(Bits, usize)) {
    let both = [narrow, rows.minus(narrow)];
    while let Some(first) = rows.iter().next() {
        let v = usize::from(!narrow.has(first));
        let end = rows.and(both[1 - v]).iter().next().unwrap_or(BATCH);
        take(rows.and(Bits::first(end)), v);
        rows = rows.minus(Bits::first(end));
    }
}

impl GroupingScratch {
    pub(super) fn new(spec: &Spec) -> Box<GroupingScratch> {
        Box::new(GroupingScratch {
            key_srcs: Vec::new(),
            agg_srcs: spec.plan.aggs.iter().map(|_| (Vec::new(), Bits::NONE)).collect(),
            positions: Vec::with_capacity(BATCH),
            ids: [NO_ROW; BATCH],
            packed: spec.layouts.iter().map(|l| Keys::new(l.words)).collect(),
            direct: Bits::NONE,
        })
    }

    /// The columns of keys that were evaluated.
    pub(super) fn key_columns<'a>(&self, batch: &'a Batch<'_>) -> KeyColumns<'a> {
        let mut columns = [batch.ctx.column(batch.time); PARTS_MAX];
        for (column, &src) in columns.iter_mut().zip(&self.key_srcs) {
            *column = batch.ctx.column(src);
        }
        KeyColumns { columns, parts: self.key_srcs.len() }
    }

    /// Evaluates the conditions and arguments of aggregates; `late` are the rows whose
    /// windows had closed when they came.
    pub(super) fn evaluate(
        &mut self,
        spec: &Spec,
        aggs: &[AggArgs],
        batch: &mut Batch<'_>,
        (rows, late): (Bits, Bits),
    ) {
        let aggs = aggs.iter().zip(&mut self.agg_srcs).zip(&spec.plan.aggs);
        for (((args, cond), (srcs, counted)), agg) in aggs {
            *counted = cond.as_ref().map_or(rows, |c| batch.ctx.condition(c, rows));
            if agg.func == AggFunc::Late {
                *counted = counted.and(late);
            }
            srcs.clear();
            for arg in args {
                let src = batch.ctx.value(arg, *counted);
                srcs.push(src);
            }
            // A value counts where it is there; a tuple where some part is.
            let there = srcs.iter().map(|&src| batch.ctx.column(src).present);
            if let Some(there) = there.reduce(Bits::or) {
                *counted = counted.and(there);
            }
        }
    }

    /// Makes these rows the ones at hand.
    pub(super) fn choose(&mut self, rows: Bits) {
        choose(rows, &mut self.positions);
    }
}

/// Updates the aggregates of the groups that the rows have.
pub(super) fn update_all(
    variant: &mut Variant,
    work: &GroupingScratch,
    batch: &Batch<'_>,
    rows: Bits,
) {
    let mut a = 0;
    while a < variant.aggs.len() {
        a += match update_together(a, variant, work, &batch.ctx, batch.time, rows) {
            0 => update_one(a, variant, work, batch, rows),
            n => n,
        };
    }
}

/// Updates aggregates from number `a` on that change one cell by one step each, if they count all
/// of the rows. Returns how many.
fn update_together(
    a: usize,
    variant: &mut Variant,
    work: &GroupingScratch,
    ctx: &Ctx<'_>,
    time: Src,
    rows: Bits,
) -> usize {
    let mut steps = [(CellStep::One, ctx.column(time).word()); FUSED_MAX];
    let mut n = 0;
    for (agg, (srcs, counted)) in variant.aggs.iter().zip(&work.agg_srcs).skip(a).take(FUSED_MAX) {
        let Some(step) = agg.hints().step.filter(|_| counted.covers(rows)) else { break };
        steps[n].0 = step;
        if let (CellStep::Add | CellStep::Least(_), [src]) = (step, &srcs[..]) {
            steps[n].1 = ctx.column(*src).word();
        }
        n += 1;
    }
    let (stride, at) = (variant.table.stride(), variant.at[a]);
    let ids = &work.ids[..work.positions.len()];
    let mut cells = Cells { rows: variant.table.rows_mut(), stride, at };
    update_fused(&steps[..n], &work.positions, ids, &mut cells)
}

/// Updates aggregate number `a`. Returns that it is one.
fn update_one(
    a: usize,
    variant: &mut Variant,
    work: &GroupingScratch,
    batch: &Batch<'_>,
    rows: Bits,
) -> usize {
    let ctx = &batch.ctx;
    let (srcs, counted) = &work.agg_srcs[a];
    let mut args: [&Column; PARTS_MAX] = [ctx.column(batch.time); PARTS_MAX];
    for (arg, &src) in args.iter_mut().zip(srcs) {
        *arg = ctx.column(src);
    }
    let input = Input {
        rows: &work.positions,
        groups: &work.ids[..work.positions.len()],
        columns: &args[..srcs.len()],
        counted: (!counted.covers(rows)).then_some(*counted),
        seq: batch.order,
        frames: batch.frames(),
        arena: &ctx.regs.arena,
        lone: variant.lone,
    };
    let (stride, at) = (variant.table.stride(), variant.at[a]);
    variant.aggs[a].update(&input, &mut Cells { rows: variant.table.rows_mut(), stride, at });
    1
}

/// Leaves only the rows that have a group; returns these, and how many had none.
#[cold]
pub(super) fn drop_refused(rows: Bits, at: &mut Vec<u16>, ids: &mut [u32; BATCH]) -> (Bits, u64) {
    let (mut n, mut left) = (0, rows);
    for j in 0..at.len() {
        if ids[j] == NO_ROW {
            left.put(at[j] as usize, false);
        } else {
            (at[n], ids[n]) = (at[j], ids[j]);
            n += 1;
        }
    }
    let refused = (at.len() - n) as u64;
    at.truncate(n);
    (left, refused)
}
