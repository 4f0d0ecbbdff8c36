//! A worker's turn where a batch belongs to the worker that read it.

use super::gate::Pass;
use super::results::WorkerResults;
use super::shared::SharedByWorkers;
use super::worker::{StoredOutput, Turn, Worker};
use crate::feed::{Feed, Times};
use crate::limits::TURN;
use crate::step::direct::{ToMachine, WholeBatch};
use crate::step::steps;
use std::sync::atomic::Ordering;
use weir_packet::source::FrameBatch;

/// The batches that a worker has in hand.
pub(super) struct WholeTurns {
    batches: [Batch; TURN],
}

#[derive(Default)]
struct Batch {
    frames: FrameBatch,
    times: Times,
    number: u64,
    /// The number of the first closing within it.
    close: u64,
    /// Whether the next one could be read at once.
    more: bool,
}

impl Default for WholeTurns {
    fn default() -> WholeTurns {
        WholeTurns { batches: std::array::from_fn(|_| Batch::default()) }
    }
}

impl WholeTurns {
    /// Reads a few batches and processes them.
    pub(super) fn turn(&mut self, worker: &mut Worker<'_, '_, '_, '_>) -> Turn {
        let shared = worker.shared;
        // With no batch in hand, all closings found lie before the next.
        worker.close_until(shared.closes.load(Ordering::Acquire));
        if shared.has_ended() {
            // Somebody may still be reading; what closes within that closes here too.
            shared.gate.wait_until_free(&shared.waiters);
            worker.close_until(shared.closes.load(Ordering::Acquire));
            return Turn::End;
        }
        self.let_go(shared);
        let feed = worker.enter().or_else(|| {
            shared.ahead.fetch(&self.batches[0].frames);
            worker.enter()
        });
        let Some(n) = feed.and_then(|feed| self.read(worker, feed)) else {
            match worker.rests {
                true => self.batches.iter_mut().for_each(|batch| batch.frames.clear()),
                false => self.let_go(shared),
            }
            return Turn::Wait;
        };
        for batch in &mut self.batches[..n] {
            batch.process(worker);
        }
        // The next turn may be long after this one, and may not fill as many. The first batch says
        // what to fetch meanwhile.
        self.batches.iter_mut().skip(1).for_each(|batch| batch.frames.clear());
        Turn::Work
    }

    /// Lets go of what was read, where somebody may wait for the source: memory of a wire that is
    /// not given back is missing there, and a ring that is not given back is full soon.
    fn let_go(&mut self, shared: &SharedByWorkers<'_>) {
        if shared.gate.is_dry() {
            self.batches.iter_mut().for_each(|batch| batch.frames.clear());
        }
    }

    /// Reads; returns how many batches, `None` where it may not.
    fn read(
        &mut self,
        worker: &mut Worker<'_, '_, '_, '_>,
        mut feed: Pass<'_, Feed<'_>>,
    ) -> Option<usize> {
        let shared = worker.shared;
        let closes = shared.closes.load(Ordering::Acquire);
        if shared.has_ended() || closes > worker.closer.closes {
            return Some(0);
        }
        if !worker.may_read(&mut feed) {
            return None;
        }
        if let Some(coordinator) = &mut worker.coordinator {
            coordinator.progress.report(&feed);
        }
        let n = self.fill(shared, &mut feed);
        if let (Some(first), Some(last)) = (self.batches.first(), self.batches[..n].last()) {
            shared.ahead.note(&first.frames, &last.frames);
        }
        drop(feed);
        if shared.closes.load(Ordering::Acquire) > closes {
            shared.waiters.notify_all();
        }
        Some(n)
    }

    /// Fills batches with what the feed has; returns how many.
    fn fill(&mut self, shared: &SharedByWorkers<'_>, feed: &mut Pass<'_, Feed<'_>>) -> usize {
        for (n, batch) in self.batches.iter_mut().enumerate() {
            if !feed.fill(&mut batch.frames) {
                shared.end_of(feed);
                return n;
            }
            feed.times(&batch.frames, &mut batch.times);
            batch.close = shared.open_closings(&batch.times);
            batch.number = shared.read.fetch_add(1, Ordering::AcqRel);
            batch.more = feed.has_read();
            let closes = batch.times.steps.len() > 1 || batch.times.steps[0].close.is_some();
            // Rows that may be shown now must not wait for the source.
            if !batch.more || closes {
                return n + 1;
            }
        }
        TURN
    }
}

impl Batch {
    fn process(&mut self, worker: &mut Worker<'_, '_, '_, '_>) {
        let shared = worker.shared;
        worker.wait_while_crowded(self.number);
        worker.levels[0].classify(&self.frames);
        match &shared.results {
            None => self.push(worker, None),
            Some(_) if self.is_next(worker) => self.emit(worker),
            Some(results) => {
                results.write(self.number, 0, |results| {
                    let closes = self.times.steps.iter().map(|step| step.close.is_some());
                    results.begin(self.more, closes, self.close);
                    self.push(worker, Some(results));
                    if shared.gate.is_dry() {
                        self.frames.clear();
                    }
                });
                shared.waiters.notify();
            }
        }
    }

    /// Pushes all packets; what comes out is kept in `results`.
    fn push(&self, worker: &mut Worker<'_, '_, '_, '_>, results: Option<&mut WorkerResults>) {
        let Worker { levels, closer, .. } = worker;
        let mut batch = WholeBatch::new(&self.frames, &self.times);
        steps(levels, &mut batch, &mut StoredOutput { closer, close: self.close, results });
    }

    /// Whether this is the calling thread, and everything before this batch was emitted, so that
    /// its rows need not wait.
    fn is_next(&self, worker: &Worker<'_, '_, '_, '_>) -> bool {
        let shared = worker.shared;
        worker.coordinator.is_some()
            && self.times.steps.iter().all(|step| step.close.is_none())
            && shared.done.load(Ordering::Relaxed) == self.number
            && shared.closed.load(Ordering::Relaxed) == self.close
    }

    /// Pushes all packets and emits what comes out.
    fn emit(&self, worker: &mut Worker<'_, '_, '_, '_>) {
        let Worker { shared, levels, coordinator, .. } = worker;
        let Some(coordinator) = coordinator else { return };
        let (times, closed) = (&self.times, &mut Vec::new());
        let mut batch = WholeBatch::new(&self.frames, times);
        let mut direct =
            ToMachine { times, machine: coordinator.machine, sink: coordinator.sink, closed };
        steps(levels, &mut batch, &mut direct);
        coordinator.unit_done(shared, self.number, self.more);
        coordinator.after(shared);
    }
}
