//! The rows that a join emits.

use super::held::{SideRows, TimeBucket, bucket_of};
use crate::checkpoint::{Checkpoint, Passed};
use crate::rows::{Rows, set_cell};
use weir_packet::limits::BATCH;
use weir_packet::time::NO_TIME;
use weir_plan::{Column, Join as Plan, Schema, Value};

/// Rows on their way out.
pub(super) struct Fill {
    rows: Rows,
    /// Columns of the left side.
    left: usize,
    /// The value in each column of the right side where a left row met none.
    defaults: Vec<Value>,
    /// Rows that were emitted.
    emitted: u64,
}

impl Fill {
    /// Rows of a plan whose left side has these columns.
    pub(super) fn new(plan: &Plan, left: &Schema) -> Fill {
        let right = plan.columns.iter().map(|c| plan.schema.columns[c.from].clone());
        let columns: Vec<Column> = left.columns.iter().cloned().chain(right).collect();
        let default = |c: &weir_plan::JoinColumn| c.default.clone().unwrap_or(Value::Absent);
        Fill {
            // With room, so that nothing grows bit by bit.
            rows: Rows::new(&Schema { columns }).empty(),
            left: left.columns.len(),
            defaults: plan.columns.iter().map(default).collect(),
            emitted: 0,
        }
    }

    /// Adds a left row, beside the right row of this address, or alone.
    #[inline(always)]
    pub(super) fn row(
        &mut self,
        left: &SideRows,
        bucket: &TimeBucket,
        row: &[u64],
        right: &SideRows,
        partner: Option<u64>,
        out: &mut dyn FnMut(&Rows),
    ) {
        let j = self.rows.len;
        let Rows { columns, arena, time, order, clock, len, .. } = &mut self.rows;
        let (ours, theirs) = columns.split_at_mut(self.left);
        for (c, column) in ours.iter_mut().enumerate() {
            left.layout.get(row, c, &bucket.texts, (column, arena), j);
        }
        if left.layout.has_time(row) {
            time.word_mut()[j] = row[0];
            time.present.set(j);
        }
        match partner {
            Some(address) => {
                let (row, bucket) = (right.row(address), right.bucket(bucket_of(address)));
                for (c, column) in theirs.iter_mut().enumerate() {
                    right.layout.get(row, c, &bucket.texts, (column, arena), j);
                }
            }
            None => {
                for (column, value) in theirs.iter_mut().zip(&self.defaults) {
                    set_cell(column, j, value, arena);
                }
            }
        }
        order.push(self.emitted);
        clock.push(if left.layout.has_time(row) { row[0] as i64 } else { NO_TIME });
        self.emitted += 1;
        *len += 1;
        if *len == BATCH {
            self.flush(out);
        }
    }

    /// Saves how many rows came out, or restores it: between two windows, none is on its way.
    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.emitted)
    }

    /// Emits what there is.
    pub(super) fn flush(&mut self, out: &mut dyn FnMut(&Rows)) {
        if self.rows.len > 0 {
            out(&self.rows);
            self.rows.clear();
        }
    }
}
