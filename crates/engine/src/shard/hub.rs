//! What only the calling thread does: putting out, in order, what workers have ready.

use super::Shared;
use super::closings::Which;
use super::results::Part;
use crate::graph::Lower;
use crate::rows::{Rows, Sink};
use crate::run::{Progress, RunError};
use std::sync::atomic::Ordering;
use weir_packet::limits::BATCH;

/// How far the merging of several lots of rows is.
#[derive(Default)]
struct Merge {
    heads: Vec<Head>,
    /// The next rows: head, row.
    picks: Vec<(u32, u32)>,
}

/// How far one lot of rows was merged.
struct Head {
    part: usize,
    lot: usize,
    /// The next row.
    at: usize,
    is_over: bool,
}

/// The end of all workers' work. The sink belongs to the calling thread.
pub(super) struct Hub<'a> {
    pub(super) lower: Lower<'a>,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) progress: Progress<'a>,
    pub(super) error: Option<RunError>,
    /// Results of the batch that is being put out; empty between batches.
    parts: Vec<Part>,
    taken: bool,
    /// The next step of it.
    step: usize,
    /// Scratch for merging.
    merge: Merge,
    /// Memory for the rows of several workers put together, by pipeline.
    merged: Vec<(usize, Rows)>,
}

impl<'a> Hub<'a> {
    pub(super) fn new(lower: Lower<'a>, sink: &'a mut dyn Sink, progress: Progress<'a>) -> Hub<'a> {
        Hub {
            lower,
            sink,
            progress,
            error: None,
            parts: Vec::new(),
            taken: false,
            step: 0,
            merge: Merge::default(),
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
        let Hub { lower, sink, parts, merge: scratch, merged, step, .. } = self;
        if let [part] = &parts[..] {
            let mine = part.rows.iter().filter(|(s, ..)| s == step);
            return mine.for_each(|(_, p, rows)| lower.take(*p, rows, *sink));
        }
        let pipelines = parts.iter().flat_map(|part| &part.rows).map(|(_, p, _)| p + 1).max();
        for p in 0..pipelines.unwrap_or(0) {
            scratch.heads.clear();
            for (n, part) in parts.iter().enumerate() {
                let lots = part.rows.iter().enumerate();
                let mine = lots.filter(|(_, (s, q, _))| (s, q) == (&*step, &p));
                let head = |(lot, _)| Head { part: n, lot, at: 0, is_over: false };
                scratch.heads.extend(mine.map(head));
            }
            match &scratch.heads[..] {
                [] => {}
                [Head { part, lot, .. }] => lower.take(p, &parts[*part].rows[*lot].2, *sink),
                [Head { part, lot, .. }, ..] => {
                    let into = memory(merged, p, &parts[*part].rows[*lot].2);
                    merge(parts, scratch, into, &mut |rows| lower.take(p, rows, *sink));
                }
            }
        }
    }
}

/// Memory for the merged rows of pipeline `p`, which are like these.
fn memory<'m>(merged: &'m mut Vec<(usize, Rows)>, p: usize, like: &Rows) -> &'m mut Rows {
    let at = merged.iter().position(|(q, _)| *q == p).unwrap_or_else(|| {
        merged.push((p, like.empty()));
        merged.len() - 1
    });
    &mut merged[at].1
}

/// Puts lots of rows of one step together, in the order of their packets; `out` takes them.
fn merge(
    parts: &[Part],
    Merge { heads, picks }: &mut Merge,
    into: &mut Rows,
    out: &mut dyn FnMut(&Rows),
) {
    let lot = |head: &Head| &parts[head.part].rows[head.lot].2;
    let mut open = heads.len();
    while open > 0 {
        picks.clear();
        while open > 0 && picks.len() < BATCH {
            let ends = |head: &Head| lot(head).order[head.at];
            let (mut first, mut least, mut bound) = (0, u64::MAX, u64::MAX);
            for (h, head) in heads.iter().enumerate().filter(|(_, head)| !head.is_over) {
                let order = ends(head);
                if order < least {
                    (first, least, bound) = (h, order, least);
                } else {
                    bound = bound.min(order);
                }
            }
            let head = &mut heads[first];
            let rows = lot(head);
            // Up to the first row that another lot's comes before, as far as there is room.
            while head.at < rows.len && rows.order[head.at] <= bound && picks.len() < BATCH {
                picks.push((first as u32, head.at as u32));
                head.at += 1;
            }
            head.is_over = head.at == rows.len;
            open -= head.is_over as usize;
        }
        into.clear();
        into.pick(picks, |h| lot(&heads[h as usize]));
        out(into);
    }
}
