//! A worker's turn where every worker gets packets of its own of every bundle.

use super::bundles::{Bundles, Cursor, Dealer, Outline, Share};
use super::gate::{Pass, Supply as _};
use super::{Shared, Turn, Worker};
use crate::lanes::Lanes;
use crate::rows::Rows;
use crate::run::Feed;
use std::sync::atomic::Ordering;

/// Where a worker stands.
pub(super) struct Keyed {
    dealer: Dealer,
    /// The next bundle that it takes its own packets of.
    next: u64,
    /// The worker's lanes, and how far it has come in each.
    lanes: Vec<(usize, Cursor)>,
}

/// Takes what comes out of a push: step, pipeline, rows.
type Out<'a> = dyn FnMut(usize, usize, &Rows) + 'a;

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
                let out = &mut |_: usize, _: usize, _: &Rows| unreachable!("no rows leave at once");
                self.push(worker, &share, out);
                share.clear();
                false
            }
            Some(results) => results.put(number, worker.me, |part| {
                part.begin(outline.more, outline.closes(), outline.close);
                self.push(worker, &share, &mut |step, p, rows| part.put(step, p, rows));
                // Once the results are there, somebody may wait for what the kernel writes there.
                share.clear();
            }),
        };
        for ((lane, _), upper) in self.lanes.iter().zip(&mut *worker.uppers) {
            // What came batch by batch knows already.
            if !share.dealt(*lane).came_in_batches() {
                upper.watermark(outline.watermark, &mut worker.closed);
            }
        }
        debug_assert!(worker.closed.is_empty(), "steps end where windows do");
        drop(share);
        self.next += 1;
        if bundles.leave(number) || all {
            shared.bell.ring();
        }
    }

    /// Pushes this worker's packets of a bundle step by step.
    fn push(&mut self, worker: &mut Worker<'_, '_, '_, '_>, share: &Share, out: &mut Out<'_>) {
        for (lane, cursor) in &mut self.lanes {
            *cursor = Cursor::start(share.dealt(*lane));
        }
        let mut close = share.outline.close;
        for (step, closes) in share.outline.closes().enumerate() {
            close += u64::from(closes);
            worker.close_until(close);
            for ((lane, cursor), upper) in self.lanes.iter_mut().zip(&mut *worker.uppers) {
                let dealt = share.dealt(*lane);
                while let Some((parcel, rows, [first, last])) = cursor.next(dealt, step) {
                    if first {
                        upper.classify(&parcel.frames);
                    }
                    let out = &mut |p: usize, rows: &Rows| out(step, p, rows);
                    upper.push(&parcel.frames, rows, &parcel.clock, out);
                    if let Some(watermark) = parcel.after.filter(|_| last) {
                        upper.watermark(watermark, &mut worker.closed);
                    }
                }
            }
        }
    }
}
