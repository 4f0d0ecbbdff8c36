//! Rows of several printed pipelines that came in one step, until they are put in order.

use super::written::Written;
use crate::limits::SPARE_ROWS;
use crate::merge::{Merge, WaitingBatch, hand_on};
use crate::rows::{Rows, Sink};
use weir_packet::limits::BATCH;
use weir_plan::physical::OutputId;

/// Rows held back, each batch by its output and in the order of its packets.
#[derive(Default)]
pub(super) struct Pending {
    batches: Vec<WaitingBatch<OutputId>>,
    /// Memory of each output's batches that are written.
    spare: Vec<(OutputId, Rows)>,
    merge: Merge<(u64, OutputId)>,
}

impl Pending {
    /// Keeps a copy of rows.
    pub(super) fn hold(&mut self, output: OutputId, rows: &Rows) {
        let mut copy = self.memory(output, rows);
        copy.append(rows, 0..rows.len);
        self.batches.push(WaitingBatch::new(output, copy));
    }

    /// Writes all rows in the order of their packets, in runs as long as that order allows.
    pub(super) fn write(&mut self, written: &mut Written, sink: &mut dyn Sink) {
        let Pending { batches, spare, merge } = self;
        // Runs of one output, put together.
        let mut together: Option<(OutputId, Rows)> = None;
        hand_on(batches, merge, |output, rows, range| {
            if let Some((o, so_far)) = &mut together
                && (*o != output || so_far.len + range.len() > BATCH)
            {
                written.write(sink, *o, so_far);
                spare.extend(together.take());
            }
            if together.is_none() && range.len() == rows.len {
                return written.write(sink, output, rows);
            }
            let (_, to) = together.get_or_insert_with(|| (output, take(spare, output, rows)));
            to.append(rows, range);
        });
        if let Some((output, rows)) = &together {
            written.write(sink, *output, rows);
        }
        spare.extend(together);
        spare.extend(batches.drain(..).map(|batch| (batch.id, batch.rows)));
        spare.truncate(SPARE_ROWS);
    }

    fn memory(&mut self, output: OutputId, like: &Rows) -> Rows {
        take(&mut self.spare, output, like)
    }
}

/// Empty rows of an output.
fn take(spare: &mut Vec<(OutputId, Rows)>, output: OutputId, like: &Rows) -> Rows {
    match spare.iter().position(|(o, _)| *o == output) {
        Some(at) => {
            let mut rows = spare.swap_remove(at).1;
            rows.clear();
            rows
        }
        None => like.empty(),
    }
}
