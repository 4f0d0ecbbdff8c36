//! What only the calling thread does: putting out, in order, what workers have ready.

use super::Shared;
use super::closings::Which;
use super::results::Part;
use crate::graph::Lower;
use crate::rows::{Rows, Sink};
use crate::run::Progress;
use std::io;
use std::sync::atomic::Ordering;
use weir_packet::limits::BATCH;

/// The end of all workers' work. The sink belongs to the calling thread.
pub(super) struct Hub<'a> {
    pub(super) lower: Lower,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) progress: Progress<'a>,
    pub(super) error: Option<io::Error>,
    /// Results of the batch that is being put out; empty between batches.
    parts: Vec<Part>,
    taken: bool,
    /// The next step of it.
    step: usize,
    /// Where each lot of a pipeline's rows stands: part, lot, row.
    heads: Vec<(usize, usize, usize)>,
    /// Memory for the rows of several workers put together, by pipeline.
    merged: Vec<(usize, Rows)>,
}

impl<'a> Hub<'a> {
    pub(super) fn new(lower: Lower, sink: &'a mut dyn Sink, progress: Progress<'a>) -> Hub<'a> {
        Hub {
            lower,
            sink,
            progress,
            error: None,
            parts: Vec::new(),
            taken: false,
            step: 0,
            heads: Vec::new(),
            merged: Vec::new(),
        }
    }

    /// Puts out what is ready; returns whether there was anything.
    pub(super) fn drain(&mut self, shared: &Shared<'_>) -> bool {
        let mut any = false;
        while match shared.results {
            Some(_) => self.batch(shared),
            None => self.close(shared),
        } {
            any = true;
        }
        if any {
            self.after(shared);
        }
        any
    }

    /// Sees whether to go on.
    pub(super) fn after(&mut self, shared: &Shared<'_>) {
        self.error = self.error.take().or(self.lower.take_error());
        if (self.error.is_some() || self.lower.is_done()) && !shared.has_ended() {
            shared.end();
            self.lower.flush(self.sink);
        }
        shared.bell.ring();
    }

    /// Puts out the next closing, if all workers have come to it.
    fn close(&mut self, shared: &Shared<'_>) -> bool {
        let number = shared.closed.load(Ordering::Relaxed);
        if number == shared.closes.load(Ordering::Acquire) {
            return false;
        }
        let Some((watermark, mut closed)) = shared.closings.take(Which::Number(number)) else {
            return false;
        };
        self.lower.watermark(watermark, &mut closed, self.sink);
        shared.closings.give_back(self.lower.spent.drain(..));
        self.lower.flush(self.sink);
        shared.closed.store(number + 1, Ordering::Release);
        true
    }

    /// Puts out the results of the next batch, or as much of them as can be put out.
    fn batch(&mut self, shared: &Shared<'_>) -> bool {
        let Some(results) = &shared.results else { return false };
        let number = shared.done.load(Ordering::Relaxed);
        if !self.taken {
            if number == shared.read.load(Ordering::Acquire)
                || !results.take(number, &mut self.parts)
            {
                return false;
            }
            (self.taken, self.step) = (true, 0);
        }
        while let Some(&close) = self.parts[0].steps.get(self.step) {
            if close.is_some_and(|c| c >= shared.closed.load(Ordering::Relaxed))
                && !self.close(shared)
            {
                return false;
            }
            self.rows();
            self.lower.step(self.sink);
            self.step += 1;
        }
        self.taken = false;
        self.batch_done(shared, number, self.parts[0].full);
        true
    }

    /// Batch `number` has been put out.
    pub(super) fn batch_done(&mut self, shared: &Shared<'_>, number: u64, full: bool) {
        if !full {
            // The source may have to wait for more: what there is can be shown.
            self.lower.flush(self.sink);
        }
        shared.done.store(number + 1, Ordering::Release);
    }

    /// Takes the rows of a step, those of each pipeline in the order of their packets.
    fn rows(&mut self) {
        let Hub { lower, sink, parts, heads, merged, step, .. } = self;
        if let [part] = &parts[..] {
            let mine = part.rows.iter().filter(|(s, ..)| s == step);
            return mine.for_each(|(_, p, rows)| lower.take(*p, rows, *sink));
        }
        let pipelines = parts.iter().flat_map(|part| &part.rows).map(|(_, p, _)| p + 1).max();
        for p in 0..pipelines.unwrap_or(0) {
            heads.clear();
            for (n, part) in parts.iter().enumerate() {
                let lots = part.rows.iter().enumerate();
                let mine = lots.filter(|(_, (s, q, _))| (s, q) == (&*step, &p));
                heads.extend(mine.map(|(lot, _)| (n, lot, 0)));
            }
            match heads[..] {
                [] => {}
                [(n, lot, _)] => lower.take(p, &parts[n].rows[lot].2, *sink),
                _ => {
                    let into = memory(merged, p, parts, heads[0]);
                    merge(parts, heads, into, &mut |rows| lower.take(p, rows, *sink));
                }
            }
        }
    }
}

/// Memory for the merged rows of pipeline `p`; one lot of them stands at `head`.
fn memory<'m>(
    merged: &'m mut Vec<(usize, Rows)>,
    p: usize,
    parts: &[Part],
    head: (usize, usize, usize),
) -> &'m mut Rows {
    let at = merged.iter().position(|(q, _)| *q == p).unwrap_or_else(|| {
        merged.push((p, parts[head.0].rows[head.1].2.empty()));
        merged.len() - 1
    });
    &mut merged[at].1
}

/// Puts lots of rows of one step together, in the order of their packets; `out` takes them.
fn merge(
    parts: &[Part],
    heads: &mut Vec<(usize, usize, usize)>,
    into: &mut Rows,
    out: &mut dyn FnMut(&Rows),
) {
    into.clear();
    let order = |&(n, lot, at): &(usize, usize, usize)| parts[n].rows[lot].2.order[at];
    while let Some(first) = (0..heads.len()).min_by_key(|&h| order(&heads[h])) {
        let others = heads.iter().enumerate().filter(|(h, _)| *h != first);
        let bound = others.map(|(_, head)| order(head)).min();
        let (n, lot, at) = heads[first];
        let rows = &parts[n].rows[lot].2;
        // Up to the first row that another lot's comes before, as far as there is room.
        let most = rows.len.min(at + BATCH - into.len);
        let run = rows.order[at..most].iter().position(|&o| bound.is_some_and(|b| o > b));
        let end = run.map_or(most, |run| at + run);
        into.append(rows, at..end);
        if end == rows.len {
            heads.swap_remove(first);
        } else {
            heads[first].2 = end;
        }
        if into.len == BATCH {
            out(into);
            into.clear();
        }
    }
    if into.len > 0 {
        out(into);
    }
}
