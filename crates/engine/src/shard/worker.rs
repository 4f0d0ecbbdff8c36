//! One of the workers: its turns, what it waits for, and where its results go.

use super::closings::ClosingId;
use super::coordinator::Coordinator;
use super::gate::{Pass, Reader};
use super::results::{Results, WorkerResults};
use super::shared::SharedByWorkers;
use crate::counters::Ledger;
use crate::feed::Feed;
use crate::level::worker::{WorkerLevel, count_worker};
use crate::level::{Channel, Closed};
use crate::partitioning::Partitionings;
use crate::rows::Rows;
use crate::step::{Settle, StepOutput};

/// The work that a worker found to do.
#[derive(PartialEq, Eq)]
pub(super) enum Turn {
    /// Something, and it is done.
    Work,
    /// Nothing for now.
    Wait,
    /// Nothing ever again.
    End,
}

/// One worker.
pub(super) struct Worker<'a, 'f, 'c, 'e> {
    pub(super) me: usize,
    pub(super) shared: &'a SharedByWorkers<'f>,
    /// One for each of its lanes.
    pub(super) levels: &'a mut [WorkerLevel],
    /// With the calling thread.
    pub(super) coordinator: Option<Coordinator<'c, 'e>>,
    pub(super) closer: Closer<'a, 'f>,
    /// The number of the last request for statistics that it answered.
    answered: u64,
    /// Whether it sleeps on the bench if it finds nothing to do once more, and lets go of all that
    /// it has in hand.
    pub(super) rests: bool,
}

impl<'a, 'f, 'c, 'e> Worker<'a, 'f, 'c, 'e> {
    pub(super) fn new(
        me: usize,
        shared: &'a SharedByWorkers<'f>,
        levels: &'a mut [WorkerLevel],
        coordinator: Option<Coordinator<'c, 'e>>,
    ) -> Worker<'a, 'f, 'c, 'e> {
        let closer = Closer { shared, closes: 0, closed: Vec::new() };
        Worker { me, shared, levels, coordinator, closer, answered: 0, rests: false }
    }

    /// Takes turns until the end.
    pub(super) fn turns(
        &mut self,
        partitionings: &Partitionings,
        mut turn: impl FnMut(&mut Self) -> Turn,
    ) {
        let shared = self.shared;
        loop {
            let seen = shared.waiters.current();
            shared.assert_whole();
            self.answer_stats(partitionings);
            let drained = self.drain();
            match turn(self) {
                Turn::Work => self.rests = false,
                Turn::Wait if drained => {}
                Turn::Wait if self.rests => {
                    shared.waiters.sleep(seen);
                    self.rests = false;
                }
                Turn::Wait if self.may_rest() => self.rests = !shared.waiters.wait_for_feed(seen),
                Turn::Wait => shared.waiters.wait(seen),
                Turn::End => return,
            }
        }
    }

    /// Hands over what it still holds, and emits the rest of all results, if it is the calling
    /// thread; gives the coordinator back.
    pub(super) fn end(mut self) -> Option<Coordinator<'c, 'e>> {
        let shared = self.shared;
        if !shared.breaks() {
            self.levels.iter_mut().for_each(|level| level.finish(&mut self.closer.closed));
        }
        shared.closings.hand_over(ClosingId::Last, &mut self.closer.closed);
        shared.waiters.notify();
        let coordinator = self.coordinator.as_mut()?;
        loop {
            let seen = shared.waiters.current();
            shared.assert_whole();
            coordinator.drain(shared);
            if shared.closings.are_over() && shared.is_drained() {
                break;
            }
            shared.waiters.wait(seen);
        }
        self.coordinator
    }

    /// Whether the run goes on without this worker while it finds nothing to do: it has no packets
    /// of its own in what others read, and nothing to emit.
    fn may_rest(&self) -> bool {
        self.coordinator.is_none() && self.shared.exchange.is_none()
    }

    /// Adds what was counted to the ledger.
    fn count(&self, partitionings: &Partitionings, ledger: &mut Ledger) {
        count_worker(self.levels, &partitionings.numbers_of(self.me), self.me, ledger);
    }

    /// Requests statistics if somebody asks for some, adds its own, and answers when all have.
    fn answer_stats(&mut self, partitionings: &Partitionings) {
        let shared = self.shared;
        if self.coordinator.as_ref().is_some_and(|c| c.progress.is_asked()) {
            shared.stats.begin();
            shared.waiters.notify_all();
        }
        let number = shared.stats.number();
        if self.answered == number {
            return;
        }
        let Some(coordinator) = &self.coordinator else {
            self.answered = number;
            shared.stats.add(|ledger| self.count(partitionings, ledger));
            return shared.waiters.notify();
        };
        // The calling thread is the last to add its own, which ends the request.
        if let Some(mut ledger) = shared.stats.end(shared.workers - 1) {
            coordinator.machine.count(&mut ledger);
            self.count(partitionings, &mut ledger);
            ledger.flows.waiting = shared.results.as_ref().map(Results::waiting);
            let answer =
                |feed: &Feed<'_>| coordinator.progress.answer(ledger, feed, &*coordinator.sink);
            let answer = shared.gate.look(&shared.waiters, answer);
            if let Some(Coordinator { progress, sink, error, .. }) = &mut self.coordinator {
                *error = error.take().or(progress.tell(answer, *sink));
            }
            self.answered = number;
        }
    }

    /// Emits what is ready, if this is the calling thread; returns whether there was anything.
    fn drain(&mut self) -> bool {
        let shared = self.shared;
        self.coordinator.as_mut().is_some_and(|coordinator| coordinator.drain(shared))
    }

    /// Waits until unit `number` may be processed. The calling thread emits meanwhile.
    pub(super) fn wait_while_crowded(&mut self, number: u64) {
        let shared = self.shared;
        loop {
            let seen = shared.waiters.current();
            shared.assert_whole();
            if !shared.is_crowded(number) {
                return;
            }
            if !self.drain() {
                shared.waiters.wait(seen);
            }
        }
    }

    /// The feed, if it is this worker's turn to go to it.
    pub(super) fn enter(&self) -> Option<Pass<'a, Feed<'f>>> {
        let reader = if self.coordinator.is_some() { Reader::Caller } else { Reader::Helper };
        self.shared.gate.enter(reader, &self.shared.waiters)
    }

    /// Whether this worker may read, which may mean to wait for the source.
    pub(super) fn may_read(&self, feed: &mut Pass<'_, Feed<'_>>) -> bool {
        self.shared.has_room() && feed.may_read(|| self.shared.is_drained())
    }

    /// Closes this worker's windows up to the closing before number `until`.
    pub(super) fn close_until(&mut self, until: u64) {
        // No batch is at hand whose packets could wait.
        self.closer.close_until(self.levels, until, &mut |_, _| {});
    }
}

/// Closes a worker's windows, and hands their groups over.
pub(super) struct Closer<'a, 'f> {
    shared: &'a SharedByWorkers<'f>,
    /// Closings that groups were handed over for.
    pub(super) closes: u64,
    /// The groups that closed just now.
    pub(super) closed: Vec<Closed>,
}

impl Closer<'_, '_> {
    fn close_until(&mut self, levels: &mut [WorkerLevel], until: u64, settle: &mut Settle<'_>) {
        while self.closes < until {
            let closings = &self.shared.closings;
            let id = ClosingId::Number(self.closes);
            let watermark = closings.watermark(id);
            settle(watermark, levels);
            for level in &mut *levels {
                level.close(watermark, &mut self.closed);
            }
            for Closed { pipeline, .. } in &self.closed {
                if let Some(level) = levels.iter_mut().find(|level| level.runs(pipeline.0))
                    && let Some(groups) = closings.take_spent(*pipeline)
                {
                    level.recycle(*pipeline, groups);
                }
            }
            let last = closings.hand_over(id, &mut self.closed);
            self.closes += 1;
            if last {
                self.shared.waiters.notify();
            }
        }
    }
}

/// Keeps what a worker emits until the coordinator emits it.
pub(super) struct StoredOutput<'w, 'a, 'f> {
    pub(super) closer: &'w mut Closer<'a, 'f>,
    /// The closing before the next step that has one.
    pub(super) close: u64,
    /// Takes rows; `None` where none leave at once.
    pub(super) results: Option<&'w mut WorkerResults>,
}

impl StepOutput for StoredOutput<'_, '_, '_> {
    fn close(&mut self, _step: usize, levels: &mut [WorkerLevel], settle: &mut Settle<'_>) {
        self.close += 1;
        self.closer.close_until(levels, self.close, settle);
    }

    fn advance(&mut self, lane: &mut WorkerLevel, watermark: i64) {
        lane.watermark(watermark, &mut self.closer.closed);
    }

    fn take(&mut self, step: usize, from: Channel, rows: &Rows) {
        let results = self.results.as_mut().expect("rows leave at once");
        results.hold(step, from, rows);
    }
}
