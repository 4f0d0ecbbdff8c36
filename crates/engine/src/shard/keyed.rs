//! A worker's turn where every worker gets packets of its own of every bundle.

use super::bundles::{Bundles, Cursor, Dealer, Outline, Share};
use super::gate::Pass;
use super::results::Part;
use super::{Shared, Stored, Turn, Worker};
use crate::feed::Feed;
use crate::lanes::Lanes;
use crate::level::Channel;
use crate::level::worker::WorkerLevel;
use crate::rows::Rows;
use crate::step::{StepInput, StepOutput, steps};
use crate::supply::Supply as _;
use std::sync::atomic::Ordering;

/// Where a worker stands.
pub(super) struct Keyed {
    dealer: Dealer,
    /// The next bundle that it takes its own packets of.
    next: u64,
    /// The worker's lanes, and how far it has come in each.
    lanes: Vec<(usize, Cursor)>,
}

impl Keyed {
    /// Where worker `me` stands at the beginning.
    pub(super) fn new(lanes: &Lanes, me: usize) -> Keyed {
        let own = lanes.of(me).map(|(lane, _)| (lane, Cursor::default())).collect();
        Keyed { dealer: Dealer::new(lanes), next: 0, lanes: own }
    }

    /// Takes its own of the next bundle if that is ready, or else reads one for all.
    pub(super) fn turn(&mut self, worker: &mut Worker<'_, '_, '_, '_>) -> Turn {
        let shared = worker.shared;
        let bundles = shared.bundles.as_ref().expect("packets are spread by key");
        if bundles.is_ready(self.next) {
            if shared.is_crowded(self.next) {
                return Turn::Wait;
            }
            self.take_own(worker, bundles);
            return Turn::Work;
        }
        if shared.has_ended() {
            // Somebody may still be reading.
            shared.gate.wait_until_free(&shared.bell);
            let over = self.next == shared.read.load(Ordering::Acquire);
            return if over { Turn::End } else { Turn::Wait };
        }
        self.read(worker, bundles)
    }

    /// Reads a bundle and deals its packets out.
    fn read(&mut self, worker: &mut Worker<'_, '_, '_, '_>, bundles: &Bundles) -> Turn {
        let shared = worker.shared;
        let Some(mut feed) = worker.enter() else { return Turn::Wait };
        if shared.has_ended() {
            return Turn::Work;
        }
        let number = shared.read.load(Ordering::Acquire);
        // Nobody waits for the source with packets in hand that others wait for.
        let behind = self.next != number && !feed.is_ready();
        if behind || !bundles.is_free(number) || !worker.may_read(&mut feed) {
            return Turn::Wait;
        }
        if let Some(hub) = &mut worker.hub {
            hub.progress.report(&feed);
        }
        let close = shared.closes.load(Ordering::Relaxed);
        let (n, more) = self.fill(shared, &mut feed);
        if n > 0 {
            bundles.claim(number);
            shared.read.store(number + 1, Ordering::Release);
        }
        drop(feed);
        if n > 0 {
            let outline = Outline { close, more, ..Outline::default() };
            self.dealer.deal(n, bundles, number, outline);
            bundles.publish(number);
            shared.bell.ring();
        }
        Turn::Work
    }

    /// Reads what the feed has; returns how many batches, and whether more can be had at once.
    fn fill(&mut self, shared: &Shared<'_>, feed: &mut Pass<'_, Feed<'_>>) -> (usize, bool) {
        let mut more = true;
        for n in 0..shared.bundle_len {
            let batch = self.dealer.batch(n);
            if !feed.fill(&mut batch.frames) {
                shared.end_of(feed);
                return (n, more);
            }
            feed.times(&batch.frames, &mut batch.times);
            shared.open_closings(&batch.times);
            more = feed.has_read();
            // What may be shown now must not wait for the source.
            let closes = batch.times.steps.iter().any(|step| step.close.is_some());
            if !more || closes {
                return (n + 1, more);
            }
        }
        (shared.bundle_len, more)
    }

    /// Pushes this worker's packets of the next bundle.
    fn take_own(&mut self, worker: &mut Worker<'_, '_, '_, '_>, bundles: &Bundles) {
        let (shared, number) = (worker.shared, self.next);
        let mut share = bundles.share(number, worker.me);
        let outline = share.outline;
        let all = match &shared.results {
            None => {
                self.push(worker, &share, None);
                share.clear();
                false
            }
            Some(results) => results.put(number, worker.me, |part| {
                part.begin(outline.more, outline.closes(), outline.close);
                self.push(worker, &share, Some(part));
                // Once the results are there, somebody may wait for what the kernel writes there.
                share.clear();
            }),
        };
        for ((lane, _), level) in self.lanes.iter().zip(&mut *worker.levels) {
            // What came batch by batch knows already.
            if !share.dealt(*lane).came_in_batches() {
                level.watermark(outline.watermark, &mut worker.closer.closed);
            }
        }
        debug_assert!(worker.closer.closed.is_empty(), "steps end where windows do");
        drop(share);
        self.next += 1;
        if bundles.leave(number) || all {
            shared.bell.ring();
        }
    }

    /// Pushes this worker's packets of a bundle; what comes out is kept in `part`.
    fn push(
        &mut self,
        worker: &mut Worker<'_, '_, '_, '_>,
        share: &Share,
        part: Option<&mut Part>,
    ) {
        for (lane, cursor) in &mut self.lanes {
            *cursor = Cursor::start(share.dealt(*lane));
        }
        let Worker { levels, closer, .. } = worker;
        let mut dealt = OwnShare { share, lanes: &mut self.lanes };
        steps(levels, &mut dealt, &mut Stored { closer, close: share.outline.close, part });
    }
}

/// A worker's share of a bundle, and how far it has come in each of its lanes.
struct OwnShare<'a> {
    share: &'a Share,
    lanes: &'a mut [(usize, Cursor)],
}

impl StepInput for OwnShare<'_> {
    fn steps(&self) -> usize {
        self.share.outline.steps
    }

    fn closes(&self, step: usize) -> bool {
        self.share.outline.closes_before(step)
    }

    fn push(&mut self, step: usize, levels: &mut [WorkerLevel], up: &mut impl StepOutput) {
        for ((lane, cursor), level) in self.lanes.iter_mut().zip(levels) {
            let dealt = self.share.dealt(*lane);
            while let Some((parcel, rows, [first, last])) = cursor.next(dealt, step) {
                if first {
                    level.classify(&parcel.frames);
                }
                let out = &mut |from: Channel, rows: &Rows| up.take(step, from, rows);
                level.push(&parcel.frames, rows, &parcel.clock, out);
                if let Some(watermark) = parcel.after.filter(|_| last) {
                    up.advance(level, watermark);
                }
            }
        }
    }
}
