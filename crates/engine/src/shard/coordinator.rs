//! The coordinator: the calling thread alone emits, in order, what workers have ready.

use super::closings::ClosingId;
use super::results::WorkerResults;
use super::shared::SharedByWorkers;
use crate::level::Channel;
use crate::level::machine::MachineLevel;
use crate::merge::{Merge, run};
use crate::outcome::RunError;
use crate::progress::Progress;
use crate::rows::{Rows, Sink};
use std::sync::atomic::Ordering;
use weir_packet::limits::BATCH;

/// Scratch for merging.
#[derive(Default)]
struct Scratch {
    merge: Merge<u64>,
    /// The next rows: head, row.
    picks: Vec<(u32, u32)>,
}

/// How far one batch of rows was merged. The results for one channel and of one worker follow one
/// another.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    channel: Channel,
    part: usize,
    batch: usize,
    /// The next row.
    at: usize,
}

/// Merges what workers emit, and owns the sink.
pub(super) struct Coordinator<'a, 'e> {
    pub(super) machine: &'a mut MachineLevel<'e>,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) progress: Progress<'a>,
    pub(super) error: Option<RunError>,
    /// Results of the unit that is being emitted; empty between units.
    parts: Vec<WorkerResults>,
    taken: bool,
    /// The next step of it.
    step: usize,
    /// Scratch: the batches of rows of a step.
    heads: Vec<Head>,
    scratch: Scratch,
    /// Memory for the merged rows of several workers, by where they go.
    merged: Vec<(Channel, Rows)>,
}

impl<'a, 'e> Coordinator<'a, 'e> {
    pub(super) fn new(
        machine: &'a mut MachineLevel<'e>,
        sink: &'a mut dyn Sink,
        progress: Progress<'a>,
    ) -> Coordinator<'a, 'e> {
        Coordinator {
            machine,
            sink,
            progress,
            error: None,
            parts: Vec::new(),
            taken: false,
            step: 0,
            heads: Vec::new(),
            scratch: Scratch::default(),
            merged: Vec::new(),
        }
    }

    /// Emits what is ready; returns whether there was anything.
    pub(super) fn drain(&mut self, shared: &SharedByWorkers<'_>) -> bool {
        let mut any = false;
        while match shared.results {
            Some(_) => self.unit(shared),
            None => self.close(shared),
        } {
            any = true;
        }
        if any {
            self.after(shared);
        }
        any
    }

    /// Ends the run where nothing more can come of it.
    pub(super) fn after(&mut self, shared: &SharedByWorkers<'_>) {
        self.error = self.error.take().or(self.machine.take_error());
        if (self.error.is_some() || self.machine.is_done()) && !shared.has_ended() {
            shared.end();
            self.machine.flush(self.sink);
        }
        shared.waiters.notify();
    }

    /// Emits the next closing, if all workers have come to it.
    fn close(&mut self, shared: &SharedByWorkers<'_>) -> bool {
        let number = shared.closed.load(Ordering::Relaxed);
        if number == shared.closes.load(Ordering::Acquire) {
            return false;
        }
        let Some((watermark, mut closed)) = shared.closings.take_closed(ClosingId::Number(number))
        else {
            return false;
        };
        self.machine.watermark(watermark, &mut closed, self.sink);
        shared.closings.give_back(self.machine.spent.drain(..));
        self.machine.flush(self.sink);
        shared.closed.store(number + 1, Ordering::Release);
        true
    }

    /// Emits the results of the next unit, or as much of them as can be emitted.
    fn unit(&mut self, shared: &SharedByWorkers<'_>) -> bool {
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
            self.machine.step(self.sink);
            self.step += 1;
        }
        self.taken = false;
        results.emitted(&self.parts);
        self.unit_done(shared, number, self.parts[0].more);
        true
    }

    /// Unit `number` has been emitted; `more` says whether the next could be read at once.
    pub(super) fn unit_done(&mut self, shared: &SharedByWorkers<'_>, number: u64, more: bool) {
        if !more {
            // The rows so far can be shown while the source waits.
            self.machine.flush(self.sink);
        }
        shared.done.store(number + 1, Ordering::Release);
    }

    /// Takes the rows of a step, those of each pipeline in the order of their packets.
    fn rows(&mut self) {
        let Coordinator { machine, sink, parts, heads, scratch, merged, step, .. } = self;
        if let [part] = &parts[..] {
            let mine = &part.rows[part.of_step(*step)];
            return mine.iter().for_each(|(_, p, rows)| machine.take(*p, rows, *sink));
        }
        heads.clear();
        for (n, part) in parts.iter().enumerate() {
            let head = |batch: usize| Head { channel: part.rows[batch].1, part: n, batch, at: 0 };
            heads.extend(part.of_step(*step).map(head));
        }
        heads.sort_unstable();
        for heads in heads.chunk_by_mut(|a, b| a.channel == b.channel) {
            let (channel, first) = (heads[0].channel, &parts[heads[0].part].rows[heads[0].batch].2);
            if heads.len() == 1 {
                machine.take(channel, first, *sink);
                continue;
            }
            let into = memory(merged, channel, first);
            merge_rows(parts, heads, scratch, into, &mut |rows| machine.take(channel, rows, *sink));
        }
    }
}

/// Memory for the merged rows that go to `to`, which are like these.
fn memory<'m>(merged: &'m mut Vec<(Channel, Rows)>, to: Channel, like: &Rows) -> &'m mut Rows {
    let at = merged.iter().position(|(there, _)| *there == to).unwrap_or_else(|| {
        merged.push((to, like.empty()));
        merged.len() - 1
    });
    &mut merged[at].1
}

/// Merges batches of rows of one step, in the order of their packets; `out` takes them.
fn merge_rows(
    parts: &[WorkerResults],
    heads: &mut [Head],
    Scratch { merge, picks }: &mut Scratch,
    into: &mut Rows,
    out: &mut dyn FnMut(&Rows),
) {
    let batch = |head: &Head| &parts[head.part].rows[head.batch].2;
    heads.iter().enumerate().for_each(|(h, head)| merge.add(h, batch(head).order[0]));
    picks.clear();
    while let Some((h, bound)) = merge.next() {
        let head = &mut heads[h];
        let rows = batch(head);
        // Up to where the next row of another batch comes first, as far as there is room.
        let n = run(&rows.order[head.at..], bound, |order| order).min(BATCH - picks.len());
        picks.extend((head.at..head.at + n).map(|row| (h as u32, row as u32)));
        head.at += n;
        rows.order.get(head.at).into_iter().for_each(|&next| merge.add(h, next));
        if picks.len() == BATCH {
            hand_out(parts, heads, picks, into, out);
        }
    }
    if !picks.is_empty() {
        hand_out(parts, heads, picks, into, out);
    }
}

/// Hands out picked rows.
fn hand_out(
    parts: &[WorkerResults],
    heads: &[Head],
    picks: &mut Vec<(u32, u32)>,
    into: &mut Rows,
    out: &mut dyn FnMut(&Rows),
) {
    into.clear();
    into.pick(picks, |h| &parts[heads[h as usize].part].rows[heads[h as usize].batch].2);
    out(into);
    picks.clear();
}
