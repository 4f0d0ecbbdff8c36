//! Rows of several printed pipelines that came in one step, until they are put in order.

use super::written::Written;
use crate::limits::SPARE_ROWS;
use crate::merge::{Merge, run};
use crate::rows::{Rows, Sink};
use weir_packet::limits::BATCH;
use weir_plan::physical::OutputId;

/// Rows held back, each batch by its output and in the order of its packets.
#[derive(Default)]
pub(super) struct Pending {
    batches: Vec<PendingBatch>,
    /// Memory of each output's batches that are written.
    spare: Vec<(OutputId, Rows)>,
    merge: Merge<(u64, OutputId)>,
}

struct PendingBatch {
    output: OutputId,
    rows: Rows,
    /// Rows of it that were written.
    done: usize,
}

impl PendingBatch {
    /// Where its next row belongs: by packet, then by output. `None` at its end.
    fn next(&self) -> Option<(u64, OutputId)> {
        (self.done < self.rows.len).then(|| (self.rows.order[self.done], self.output))
    }
}

impl Pending {
    /// Keeps a copy of rows.
    pub(super) fn hold(&mut self, output: OutputId, rows: &Rows) {
        let mut copy = self.memory(output, rows);
        copy.append(rows, 0..rows.len);
        self.batches.push(PendingBatch { output, rows: copy, done: 0 });
    }

    /// Writes all rows in the order of their packets, in runs as long as that order allows.
    pub(super) fn write(&mut self, written: &mut Written, sink: &mut dyn Sink) {
        for (at, batch) in self.batches.iter().enumerate() {
            batch.next().into_iter().for_each(|next| self.merge.add(at, next));
        }
        // Runs of one output, put together.
        let mut together: Option<(OutputId, Rows)> = None;
        while let Some((at, bound)) = self.merge.next() {
            let batch = &mut self.batches[at];
            let (output, from) = (batch.output, batch.done);
            batch.done += run(&batch.rows.order[from..], bound, |order| (order, output));
            batch.next().into_iter().for_each(|next| self.merge.add(at, next));
            let (rows, range) = (&batch.rows, from..batch.done);
            if let Some((o, so_far)) = &mut together
                && (*o != output || so_far.len + range.len() > BATCH)
            {
                written.write(sink, *o, so_far);
                self.spare.extend(together.take());
            }
            if together.is_none() && range.len() == rows.len {
                written.write(sink, output, rows);
                continue;
            }
            let spare = &mut self.spare;
            let (_, to) = together.get_or_insert_with(|| (output, take(spare, output, rows)));
            to.append(rows, range);
        }
        if let Some((output, rows)) = &together {
            written.write(sink, *output, rows);
        }
        self.spare.extend(together);
        self.spare.extend(self.batches.drain(..).map(|batch| (batch.output, batch.rows)));
        self.spare.truncate(SPARE_ROWS);
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
