//! Row operators over one set of registers, from a run of stages.

use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::{Ctx, Regs, Src};
use crate::ops::operator::{ActionsId, Batch, Operator, Wanted};
use crate::rows::{Mover, Rows};
use crate::view::{Origin, Packets};
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;

/// Operators that pass rows on within a batch.
pub(crate) struct Chain {
    pub(crate) regs: Regs,
    pub(crate) ops: Vec<Box<dyn Operator>>,
    /// Where event time stands.
    pub(crate) time: Src,
    /// How many of the operators there are up to each stage, and with it.
    pub(crate) stages: Vec<usize>,
    /// Which of the operators hand out frames, and as what.
    pub(crate) actions: Vec<(usize, ActionsId)>,
    /// Where rows come with numbers that others have too.
    pub(crate) numbering: Option<Numbering>,
    pub(crate) undefined: u64,
    /// Rows that came through each of the operators, counted a batch at a time.
    pub(crate) passed: Vec<u64>,
}

/// Gives rows numbers of their own.
pub(crate) struct Numbering {
    /// How many rows came.
    count: u64,
    /// Scratch: the numbers of a batch.
    numbers: Vec<u64>,
}

impl Numbering {
    pub(crate) fn new() -> Numbering {
        Numbering { count: 0, numbers: Vec::with_capacity(BATCH) }
    }

    /// The numbers of the next `n` rows.
    fn next(&mut self, n: usize) -> &[u64] {
        let next = self.count + n as u64;
        self.numbers.clear();
        self.numbers.extend(self.count..next);
        self.count = next;
        &self.numbers
    }
}

/// Rows of a batch for the operators of a chain.
struct Arrived<'a> {
    view: Option<Packets<'a>>,
    origin: Option<Origin<'a>>,
    order: &'a [u64],
    clock: &'a [i64],
    rows: Bits,
}

impl Chain {
    /// Pushes some packets of a batch through the operators; `end` takes those that come through.
    /// `order` and `clock` as in [`Batch`].
    pub(crate) fn push_packets(
        &mut self,
        view: Packets<'_>,
        rows: Bits,
        order: &[u64],
        clock: &[i64],
        end: impl FnOnce(&mut Batch<'_>, Bits),
    ) {
        self.regs.next_batch();
        self.operate(Arrived { view: Some(view), origin: None, order, clock, rows }, end);
    }

    /// Pushes rows through the operators; `end` takes those that come through. `origin`: the batch
    /// of packets that they were made of, while it is at hand.
    pub(crate) fn push_rows(
        &mut self,
        rows: &Rows,
        origin: Option<Origin<'_>>,
        end: impl FnOnce(&mut Batch<'_>, Bits),
    ) {
        let Src::Slot(time) = self.time else { unreachable!("rows have their time in a register") };
        self.regs.next_batch();
        for (to, from) in self.regs.columns.iter_mut().zip(&rows.columns) {
            to.copy_first(from, rows.len);
        }
        self.regs.columns[time].copy_first(&rows.time, rows.len);
        if !rows.texts.is_empty() {
            let Regs { columns, arena, .. } = &mut self.regs;
            let mut mover = Mover::new(&rows.arena, arena);
            rows.texts.iter().for_each(|&c| mover.column(&mut columns[c], 0..rows.len));
        }
        let mut numbering = self.numbering.take();
        let order = match &mut numbering {
            Some(numbering) => numbering.next(rows.len),
            None => &rows.order,
        };
        let (clock, all) = (&rows.clock, Bits::first(rows.len));
        self.operate(Arrived { view: None, origin, order, clock, rows: all }, end);
        self.numbering = numbering;
    }

    fn operate(&mut self, arrived: Arrived<'_>, end: impl FnOnce(&mut Batch<'_>, Bits)) {
        let Arrived { view, origin, order, clock, mut rows } = arrived;
        let (regs, undefined) = (&mut self.regs, &mut self.undefined);
        let ctx = Ctx { view, regs, n: order.len(), undefined };
        let mut batch = Batch { ctx, time: self.time, order, clock, origin };
        for (op, passed) in self.ops.iter_mut().zip(&mut self.passed) {
            rows = op.push(&mut batch, rows);
            *passed += rows.count() as u64;
            if rows.is_empty() {
                return;
            }
        }
        end(&mut batch, rows);
    }

    /// Hands out the frames of the last push, with the stage that they come from.
    pub(crate) fn frames(&mut self, out: &mut dyn FnMut(ActionsId, &Rows)) {
        for (at, id) in &self.actions {
            self.ops[*at].frames(&mut |rows| out(*id, rows));
        }
    }

    /// Tells the operators that no row will come.
    pub(crate) fn finish(&mut self) {
        self.ops.iter_mut().for_each(|op| op.finish());
    }

    /// Tells the operators the watermark.
    pub(crate) fn watermark(&mut self, watermark: i64) {
        self.ops.iter_mut().for_each(|op| op.watermark(watermark));
    }

    /// How many stages it was made of.
    pub(crate) fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Takes over what the operators of `old` hold, whose first `same` stages are those of this
    /// one and come after the same ones; says which of these stages held anything.
    pub(crate) fn take_over(&mut self, old: &mut Chain, same: usize) -> Vec<usize> {
        if let (Some(mine), Some(theirs)) = (&mut self.numbering, &old.numbering) {
            mine.count = theirs.count;
        }
        let mut kept = Vec::new();
        // The same stage may come with other operators that hold nothing, for what comes after it.
        let (mut from, mut old_from) = (0, 0);
        let stages = self.stages.iter().zip(&old.stages).enumerate();
        for (stage, (&until, &old_until)) in stages.take(same) {
            let all = self.ops[from..until].iter_mut().zip(&mut old.ops[old_from..old_until]);
            // Each of them, and not only until one has something.
            if all.filter_map(|(op, old)| op.take_over(&mut **old).then_some(())).count() > 0 {
                kept.push(stage);
            }
            (from, old_from) = (until, old_until);
        }
        kept
    }

    /// Saves what its operators hold and have counted, or restores it.
    pub(crate) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        if let Some(numbering) = &mut self.numbering {
            at.count(&mut numbering.count)?;
        }
        at.count(&mut self.undefined)?;
        self.passed.iter_mut().try_for_each(|passed| at.count(passed))?;
        self.ops.iter_mut().try_for_each(|op| op.pass_state(at))
    }

    /// Says which frames are wanted.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        self.actions.iter().for_each(|(at, _)| self.ops[*at].want(wanted));
    }

    /// Whether no further row or frame can come through.
    pub(crate) fn is_done(&self) -> bool {
        let until = |n: usize| self.ops[..n].iter().any(|op| op.is_done());
        until(self.ops.len()) && self.actions.iter().all(|&(at, _)| until(at))
    }

    /// Whether stages of it hand out frames.
    pub(crate) fn sends_frames(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Of each stage that its operators are of, the rows that came through.
    pub(crate) fn flow(&self, came: u64) -> impl Iterator<Item = u64> {
        let through = move |until: &usize| match until {
            0 => came,
            until => self.passed[until - 1],
        };
        self.stages.iter().map(through)
    }

    /// Keys that its operators hold.
    pub(crate) fn held(&self) -> u64 {
        self.ops.iter().map(|op| op.held()).sum()
    }

    /// Adds what was counted to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        ledger.undefined += self.undefined;
        self.ops.iter().for_each(|op| op.count(ledger));
    }
}
