//! Rows of several printed pipelines that came in one step, until they are put in order.

use super::Written;
use crate::limits::SPARE_ROWS;
use crate::rows::{Rows, Sink};
use weir_packet::limits::BATCH;

/// Rows held back, each lot by its output and in the order of its packets.
#[derive(Default)]
pub(super) struct Pending {
    lots: Vec<Lot>,
    /// Memory of each output's lots that are written.
    spare: Vec<(usize, Rows)>,
}

struct Lot {
    output: usize,
    rows: Rows,
    /// Rows of it that were written.
    done: usize,
}

impl Lot {
    /// Where its next row belongs: by packet, then by output. `None` at its end.
    fn next(&self) -> Option<(u64, usize)> {
        (self.done < self.rows.len).then(|| (self.rows.order[self.done], self.output))
    }
}

impl Pending {
    /// Keeps a copy of rows.
    pub(super) fn hold(&mut self, output: usize, rows: &Rows) {
        let mut copy = self.memory(output, rows);
        copy.append(rows, 0..rows.len);
        self.lots.push(Lot { output, rows: copy, done: 0 });
    }

    /// Writes all rows in the order of their packets, in runs as long as that order allows.
    pub(super) fn write(&mut self, written: &mut Written, sink: &mut dyn Sink) {
        // A run that comes from several lots.
        let mut run: Option<(usize, Rows)> = None;
        while let Some((key, at)) =
            self.lots.iter().enumerate().filter_map(|(at, lot)| Some((lot.next()?, at))).min()
        {
            let others = self.lots.iter().enumerate().filter(|(other, _)| *other != at);
            let bound = others.filter_map(|(_, lot)| lot.next()).min();
            let lot = &mut self.lots[at];
            let (output, from) = (lot.output, lot.done);
            let waits = |order| bound.is_some_and(|bound| (order, output) > bound);
            let n = lot.rows.order[from..].iter().position(|&order| waits(order));
            lot.done = n.map_or(lot.rows.len, |n| from + n.max(1));
            debug_assert_eq!(key, (lot.rows.order[from], output));
            let range = from..lot.done;
            if let Some((o, rows)) = &mut run
                && (*o != output || rows.len + range.len() > BATCH)
            {
                written.write(sink, *o, rows);
                self.spare.extend(run.take());
            }
            if run.is_none() && range.len() == self.lots[at].rows.len {
                written.write(sink, output, &self.lots[at].rows);
                continue;
            }
            if run.is_none() {
                let rows = &self.lots[at].rows;
                run = Some((output, take(&mut self.spare, output, rows)));
            }
            if let Some((_, rows)) = &mut run {
                rows.append(&self.lots[at].rows, range);
            }
        }
        if let Some((output, rows)) = &run {
            written.write(sink, *output, rows);
        }
        self.spare.extend(run);
        self.spare.extend(self.lots.drain(..).map(|lot| (lot.output, lot.rows)));
        self.spare.truncate(SPARE_ROWS);
    }

    fn memory(&mut self, output: usize, like: &Rows) -> Rows {
        take(&mut self.spare, output, like)
    }
}

/// Empty rows of an output.
fn take(spare: &mut Vec<(usize, Rows)>, output: usize, like: &Rows) -> Rows {
    match spare.iter().position(|(o, _)| *o == output) {
        Some(at) => {
            let mut rows = spare.swap_remove(at).1;
            rows.clear();
            rows
        }
        None => like.empty(),
    }
}
