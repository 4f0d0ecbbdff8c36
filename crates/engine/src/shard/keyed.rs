//! A worker's turn where every worker takes its own packets of every batch.

use super::spread::{Batches, Spread};
use super::{Turn, Worker};
use crate::rows::Rows;
use std::sync::atomic::Ordering;
use weir_packet::fields::FieldId;

/// Where a worker stands.
pub(super) struct Keyed {
    spread: Spread,
    /// The next batch that it takes its own packets of.
    next: u64,
}

impl Keyed {
    /// Packets are spread by these fields.
    pub(super) fn new(fields: &[FieldId]) -> Keyed {
        Keyed { spread: Spread::new(fields), next: 0 }
    }

    /// Takes its own of the next batch if that is ready, or else reads one for all.
    pub(super) fn turn(&mut self, worker: &mut Worker<'_, '_, '_>) -> Turn {
        let shared = worker.shared;
        let batches = shared.batches.as_ref().expect("packets are spread by key");
        if batches.is_ready(self.next) {
            self.take_own(worker, batches);
            return Turn::Work;
        }
        if shared.has_ended() {
            // Somebody may still be reading.
            drop(shared.lock_feed());
            let over = self.next == shared.read.load(Ordering::Acquire);
            return if over { Turn::End } else { Turn::Wait };
        }
        self.read(worker, batches)
    }

    /// Reads a batch, classifies it, and says whose its packets are.
    fn read(&mut self, worker: &mut Worker<'_, '_, '_>, batches: &Batches) -> Turn {
        let shared = worker.shared;
        let Some(mut feed) = shared.try_feed() else { return Turn::Wait };
        if shared.has_ended() {
            return Turn::Work;
        }
        let number = shared.read.load(Ordering::Acquire);
        // Nobody waits for the source with packets in hand that others wait for.
        let behind = shared.quiet.load(Ordering::Acquire) && self.next != number;
        if behind || !batches.is_free(number) || !worker.may_read() {
            return Turn::Wait;
        }
        if let Some(hub) = &mut worker.hub {
            hub.progress.report(&feed);
        }
        let mut place = batches.batch(number).write().expect("no worker panicked");
        let batch = &mut *place;
        if !feed.fill(&mut batch.frames) {
            shared.end();
            return Turn::Work;
        }
        feed.times(&batch.frames, &mut batch.times);
        batch.close = shared.open_closings(&batch.times);
        shared.quiet.store(!batch.frames.is_full(), Ordering::Release);
        batches.claim(number, shared.workers);
        shared.read.store(number + 1, Ordering::Release);
        drop(feed);
        shared.bell.ring();
        self.spread.prepare(batch, shared.workers);
        drop(place);
        batches.publish(number);
        shared.bell.ring();
        Turn::Work
    }

    /// Pushes this worker's packets of the next batch.
    fn take_own(&mut self, worker: &mut Worker<'_, '_, '_>, batches: &Batches) {
        let (shared, number, me) = (worker.shared, self.next, worker.me);
        let batch = batches.batch(number).read().expect("no worker panicked");
        let (frames, times) = (&batch.frames, &batch.times);
        let (clock, mine) = (times.clock(frames), batch.parts[me]);
        worker.upper.next_batch();
        let mut push = |out: &mut dyn FnMut(usize, usize, &Rows)| {
            let mut close = batch.close;
            for (s, step) in times.steps.iter().enumerate() {
                if step.close.is_some() {
                    close += 1;
                    worker.close_until(close);
                }
                let rows = mine.and(step.rows);
                if !rows.is_empty() {
                    let out = &mut |p: usize, rows: &Rows| out(s, p, rows);
                    worker.upper.push_shared((frames, &batch.layers), rows, clock, out);
                }
            }
        };
        let all = match &shared.results {
            None => {
                push(&mut |_, _, _| unreachable!("no rows leave at once"));
                false
            }
            Some(results) => results.put(number, me, |part| {
                part.begin(frames, times, batch.close);
                push(&mut |step, p, rows| part.put(step, p, rows));
            }),
        };
        worker.upper.watermark(times.watermark, &mut worker.closed);
        debug_assert!(worker.closed.is_empty(), "steps end where windows do");
        drop(batch);
        self.next += 1;
        if batches.leave(number) || all {
            shared.bell.ring();
        }
    }
}
