//! `union`: the rows of several pipelines.
//!
//! | | |
//! |---|---|
//! | Syntax | `union NAME, …` |
//! | Emits | on push, once all rows of the step have come |
//! | Order | rows that come at once by their packets, then by side; others by side |
//! | State | the rows of a step, a few batches |
//! | Full | cannot be |
//! | Late | rows pass as they come |
//! | Merge | runs after the rows of all workers are merged |
//! | Exact? | exact |

use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::hold::{Hold, known};
use crate::limits::SPARE_ROWS;
use crate::node::{Next, Node, NodeInput};
use crate::rows::{Mover, Rows};
use weir_packet::limits::BATCH;
use weir_packet::time::NO_TIME;
use weir_plan::{Schema, Union as Plan};

/// Holds the rows of a step until those of all sides are there.
pub(crate) struct Union {
    plan: Plan,
    /// Whether each row's clock is that of its packet: all sides have the watermark of packets.
    exact: bool,
    like: Rows,
    batches: Vec<SideBatch>,
    spare: Vec<Rows>,
    /// Scratch: what each row is sorted by, and where it is.
    sorted: Vec<(u64, u32, u32, u32)>,
    picks: Vec<(u32, u32)>,
    watermark: i64,
}

struct SideBatch {
    side: u32,
    rows: Rows,
}

impl Union {
    /// The union of a plan, whose rows have these columns.
    pub(crate) fn new(plan: &Plan, schema: &Schema, exact: bool) -> Union {
        Union {
            plan: plan.clone(),
            exact,
            like: Rows::new(schema),
            batches: Vec::new(),
            spare: Vec::new(),
            sorted: Vec::new(),
            picks: Vec::with_capacity(BATCH),
            watermark: i64::MIN,
        }
    }

    /// Takes rows of a side in.
    fn take(&mut self, side: usize, rows: &Rows) {
        let mut to = self.spare.pop().unwrap_or_else(|| self.like.empty());
        to.clear();
        to.len = rows.len;
        to.order.extend_from_slice(&rows.order);
        let Rows { columns, arena, texts, .. } = &mut to;
        let mut mover = Mover::new(&rows.arena, arena);
        for (c, (column, plan)) in columns.iter_mut().zip(&self.plan.columns).enumerate() {
            let Some(from) = plan.from[side] else { continue };
            column.copy_first(&rows.columns[from], rows.len);
            if texts.contains(&c) {
                mover.column(column, 0..rows.len);
            }
        }
        if !self.plan.timed {
            to.clock.resize(rows.len, NO_TIME);
        } else {
            to.time.copy_first(&rows.time, rows.len);
            to.clock.extend_from_slice(&rows.clock);
            if !self.exact {
                // Its own watermark is earlier than that of the packets.
                let present = to.time.present;
                let times = to.time.word();
                for (i, clock) in to.clock.iter_mut().enumerate() {
                    let time = if present.has(i) { times[i] as i64 } else { NO_TIME };
                    *clock = time.max(self.watermark);
                }
            }
        }
        self.batches.push(SideBatch { side: side as u32, rows: to });
    }

    fn merge(&mut self, by_packet: bool, out: &mut dyn FnMut(&Rows)) {
        let Union { batches, sorted, picks, spare, like, .. } = self;
        sorted.clear();
        for (b, batch) in (0..).zip(&*batches) {
            let order = batch.rows.order.iter().map(|&o| if by_packet { o } else { 0 });
            sorted.extend(order.zip(0..).map(|(order, i)| (order, batch.side, b, i)));
        }
        sorted.sort_unstable();
        let mut rows = spare.pop().unwrap_or_else(|| like.empty());
        for chunk in sorted.chunks(BATCH) {
            picks.clear();
            picks.extend(chunk.iter().map(|&(.., batch, i)| (batch, i)));
            rows.clear();
            rows.pick(picks, |batch| &batches[batch as usize].rows);
            out(&rows);
        }
        spare.push(rows);
    }
}

impl Hold for Union {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Union>(old) else { return false };
        std::mem::swap(&mut self.batches, &mut old.batches);
        self.watermark = old.watermark;
        true
    }

    /// Between two windows, no row waits.
    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.watermark)
    }
}

impl Node for Union {
    fn push(&mut self, input: NodeInput<'_>, _next: &mut Next<'_>) {
        let NodeInput::Rows { side, rows } = input else { unreachable!("a union takes rows") };
        self.take(side, rows);
    }

    /// Emits what has come: in the order of packets, or else of sides.
    fn step(&mut self, by_packet: bool, next: &mut Next<'_>) {
        if let [batch] = &self.batches[..] {
            next.rows(&batch.rows);
        } else if !self.batches.is_empty() {
            self.merge(by_packet, &mut |rows| next.rows(rows));
        }
        self.spare.extend(self.batches.drain(..).map(|batch| batch.rows));
        self.spare.truncate(SPARE_ROWS);
    }

    fn watermark(&mut self, watermark: i64, _next: &mut Next<'_>) -> i64 {
        self.watermark = watermark;
        watermark
    }

    fn finish(&mut self, _next: &mut Next<'_>) {}

    fn holds_rows(&self) -> bool {
        true
    }

    fn count(&self, _ledger: &mut Ledger) {}
}
