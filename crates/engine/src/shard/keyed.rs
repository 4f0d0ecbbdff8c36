//! A worker's turn where every worker gets packets of its own of every block.

use super::exchange::{BlockOutline, Cursor, Exchange, Partitioner, StepPackets, WorkerPart};
use super::gate::Pass;
use super::results::WorkerResults;
use super::shared::SharedByWorkers;
use super::worker::{StoredOutput, Turn, Worker};
use crate::feed::Feed;
use crate::level::Channel;
use crate::level::worker::WorkerLevel;
use crate::partitioning::Partitionings;
use crate::rows::Rows;
use crate::step::{StepInput, StepOutput, steps};
use crate::supply::Supply as _;
use std::sync::atomic::Ordering;

/// Where a worker stands.
pub(super) struct KeyedTurns {
    partitioner: Partitioner,
    /// The next block that it takes its own packets of.
    next: u64,
    /// The worker's lanes, and how far it has come in each.
    lanes: Vec<(usize, Cursor)>,
}

impl KeyedTurns {
    /// Where worker `me` stands at the beginning.
    pub(super) fn new(partitionings: &Partitionings, me: usize) -> KeyedTurns {
        let lanes = partitionings.of_worker(me).map(|(lane, _)| (lane, Cursor::default()));
        let lanes = lanes.collect();
        KeyedTurns { partitioner: Partitioner::new(partitionings), next: 0, lanes }
    }

    /// Takes its own of the next block if that is ready, or else reads one for all.
    pub(super) fn turn(&mut self, worker: &mut Worker<'_, '_, '_, '_>) -> Turn {
        let shared = worker.shared;
        let exchange = shared.exchange.as_ref().expect("packets are spread by key");
        if exchange.is_ready(self.next) {
            if shared.is_crowded(self.next) {
                return Turn::Wait;
            }
            self.take_own(worker, exchange);
            return Turn::Work;
        }
        if shared.has_ended() {
            // Somebody may still be reading.
            shared.gate.wait_until_free(&shared.waiters);
            let over = self.next == shared.read.load(Ordering::Acquire);
            return if over { Turn::End } else { Turn::Wait };
        }
        self.read(worker, exchange)
    }

    /// Reads a block and repartitions its packets.
    fn read(&mut self, worker: &mut Worker<'_, '_, '_, '_>, exchange: &Exchange) -> Turn {
        let shared = worker.shared;
        let Some(mut feed) = worker.enter() else { return Turn::Wait };
        if shared.has_ended() {
            return Turn::Work;
        }
        let number = shared.read.load(Ordering::Acquire);
        // No thread waits for the source with packets in hand that others wait for.
        let lags = self.next != number && !feed.is_ready();
        if lags || !exchange.is_free(number) || !worker.may_read(&mut feed) {
            return Turn::Wait;
        }
        if let Some(coordinator) = &mut worker.coordinator {
            coordinator.progress.report(&feed);
        }
        let close = shared.closes.load(Ordering::Relaxed);
        let (n, more) = self.fill(shared, &mut feed);
        if n > 0 {
            exchange.claim(number);
            shared.read.store(number + 1, Ordering::Release);
        }
        drop(feed);
        if n > 0 {
            let outline = BlockOutline { close, more, ..BlockOutline::default() };
            self.partitioner.partition(n, exchange, number, outline);
            exchange.publish(number);
            shared.waiters.notify();
        }
        Turn::Work
    }

    /// Reads what the feed has; returns how many batches, and whether more can be had at once.
    fn fill(
        &mut self,
        shared: &SharedByWorkers<'_>,
        feed: &mut Pass<'_, Feed<'_>>,
    ) -> (usize, bool) {
        let mut more = true;
        for n in 0..shared.block_len {
            let batch = self.partitioner.batch(n);
            if !feed.fill(&mut batch.frames) {
                shared.end_of(feed);
                return (n, more);
            }
            feed.times(&batch.frames, &mut batch.times);
            shared.open_closings(&batch.times);
            more = feed.has_read();
            // Rows that may be shown now must not wait for the source.
            let closes = batch.times.steps.iter().any(|step| step.close.is_some());
            if !more || closes {
                return (n + 1, more);
            }
        }
        (shared.block_len, more)
    }

    /// Pushes this worker's packets of the next block.
    fn take_own(&mut self, worker: &mut Worker<'_, '_, '_, '_>, exchange: &Exchange) {
        let (shared, number) = (worker.shared, self.next);
        let mut part = exchange.part(number, worker.me);
        let outline = part.outline;
        let all = match &shared.results {
            None => {
                self.push(worker, &part, None);
                part.clear();
                false
            }
            Some(results) => results.write(number, worker.me, |results| {
                results.begin(outline.more, outline.closes(), outline.close);
                self.push(worker, &part, Some(results));
                // Once the results are there, somebody may wait for what the kernel writes there.
                part.clear();
            }),
        };
        for ((lane, _), level) in self.lanes.iter().zip(&mut *worker.levels) {
            // A lane that came batch by batch knows the watermark already.
            if !part.lane(*lane).came_in_batches() {
                level.watermark(outline.watermark, &mut worker.closer.closed);
            }
        }
        debug_assert!(worker.closer.closed.is_empty(), "steps end where windows do");
        drop(part);
        self.next += 1;
        if exchange.leave(number) || all {
            shared.waiters.notify();
        }
    }

    /// Pushes this worker's packets of a block; what comes out is kept in `results`.
    fn push(
        &mut self,
        worker: &mut Worker<'_, '_, '_, '_>,
        part: &WorkerPart,
        results: Option<&mut WorkerResults>,
    ) {
        for (lane, cursor) in &mut self.lanes {
            *cursor = Cursor::start(part.lane(*lane));
        }
        let Worker { levels, closer, .. } = worker;
        let mut own = OwnPackets { part, lanes: &mut self.lanes };
        steps(levels, &mut own, &mut StoredOutput { closer, close: part.outline.close, results });
    }
}

/// A worker's part of a block, and how far it has come in each of its lanes.
struct OwnPackets<'a> {
    part: &'a WorkerPart,
    lanes: &'a mut [(usize, Cursor)],
}

impl StepInput for OwnPackets<'_> {
    fn steps(&self) -> usize {
        self.part.outline.steps
    }

    fn closes(&self, step: usize) -> bool {
        self.part.outline.closes_before(step)
    }

    fn push(&mut self, step: usize, levels: &mut [WorkerLevel], up: &mut impl StepOutput) {
        for ((lane, cursor), level) in self.lanes.iter_mut().zip(levels) {
            let part = self.part.lane(*lane);
            while let Some(StepPackets { batch, rows, is_first, is_last }) = cursor.next(part, step)
            {
                if is_first {
                    level.classify(&batch.frames);
                }
                let out = &mut |from: Channel, rows: &Rows| up.take(step, from, rows);
                level.push(&batch.frames, rows, &batch.clock, out);
                if is_last {
                    level.settle(&batch.frames, &batch.clock, None);
                }
                if let Some(watermark) = batch.after.filter(|_| is_last) {
                    up.advance(level, watermark);
                }
            }
        }
    }

    fn settle(&mut self, watermark: i64, levels: &mut [WorkerLevel]) {
        for ((lane, cursor), level) in self.lanes.iter().zip(levels) {
            if let Some(batch) = cursor.at_hand(self.part.lane(*lane)) {
                level.settle(&batch.frames, &batch.clock, Some(watermark));
            }
        }
    }
}
