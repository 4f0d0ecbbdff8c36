//! A worker's turn where every worker takes its own packets of every batch, lane by lane.

use super::spread::{Batch, Bundle, Bundles, Spread};
use super::{Shared, Turn, Worker};
use crate::lanes::Lanes;
use crate::processor::prefetch;
use crate::rows::Rows;
use crate::run::Feed;
use crate::upper::Upper;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;

/// Where a worker stands.
pub(super) struct Keyed {
    spread: Spread,
    /// The next bundle that it takes its own packets of.
    next: u64,
    /// For each of the worker's lanes.
    owns: Vec<Own>,
}

/// Packets that one worker gets by one lane, put together until they fill a batch: operators take
/// about as long for a batch that is half empty.
struct Own {
    lane: usize,
    frames: FrameBatch,
    clock: Vec<i64>,
    /// Scratch: positions in the batch that they are taken from.
    at: Vec<u16>,
}

/// Where the common headers of a frame end, about.
const HEADERS: usize = 48;

/// Takes what comes out of a push: step, pipeline, rows.
type Out<'a> = dyn FnMut(usize, usize, &Rows) + 'a;

impl Keyed {
    /// Where worker `me` stands at the beginning.
    pub(super) fn new(lanes: &Lanes, me: usize) -> Keyed {
        let own = |lane| Own { lane, frames: FrameBatch::new(), clock: Vec::new(), at: Vec::new() };
        let owns = lanes.of(me).map(|(lane, _)| own(lane)).collect();
        Keyed { spread: Spread::new(lanes), next: 0, owns }
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
            drop(shared.lock_feed());
            let over = self.next == shared.read.load(Ordering::Acquire);
            return if over { Turn::End } else { Turn::Wait };
        }
        self.read(worker, bundles)
    }

    /// Reads a bundle and says whose its packets are.
    fn read(&mut self, worker: &mut Worker<'_, '_, '_, '_>, bundles: &Bundles) -> Turn {
        let shared = worker.shared;
        let Some(mut feed) = shared.try_feed() else { return Turn::Wait };
        if shared.has_ended() {
            return Turn::Work;
        }
        let number = shared.read.load(Ordering::Acquire);
        // Nobody waits for the source with packets in hand that others wait for.
        let behind = shared.quiet.load(Ordering::Acquire) && self.next != number;
        if behind || !bundles.is_free(number) || !worker.may_read() {
            return Turn::Wait;
        }
        if let Some(hub) = &mut worker.hub {
            hub.progress.report(&feed);
        }
        let mut place = bundles.bundle(number).write().expect("no worker panicked");
        let filled = fill(&mut place, shared, &mut feed);
        if filled {
            bundles.claim(number, shared.workers);
            shared.read.store(number + 1, Ordering::Release);
        }
        drop(feed);
        shared.bell.ring();
        if filled {
            for (b, batch) in place.batches_mut().iter_mut().enumerate() {
                self.spread.share_out(batch, number as usize + b);
            }
            drop(place);
            bundles.publish(number);
            shared.bell.ring();
        }
        Turn::Work
    }

    /// Pushes this worker's packets of the next bundle.
    fn take_own(&mut self, worker: &mut Worker<'_, '_, '_, '_>, bundles: &Bundles) {
        let (shared, number) = (worker.shared, self.next);
        let bundle = bundles.bundle(number).read().expect("no worker panicked");
        let all = match &shared.results {
            None => {
                let out = &mut |_: usize, _: usize, _: &Rows| unreachable!("no rows leave at once");
                self.push(worker, &bundle, out);
                false
            }
            Some(results) => results.put(number, worker.me, |part| {
                let batches = bundle.batches().iter().map(|b| (&b.frames, &b.times));
                part.begin(batches, bundle.close);
                self.push(worker, &bundle, &mut |step, p, rows| part.put(step, p, rows));
            }),
        };
        if let Some(last) = bundle.batches().last() {
            for upper in &mut *worker.uppers {
                upper.watermark(last.times.watermark, &mut worker.closed);
            }
            debug_assert!(worker.closed.is_empty(), "steps end where windows do");
        }
        drop(bundle);
        self.next += 1;
        if bundles.leave(number) || all {
            shared.bell.ring();
        }
    }

    /// Pushes this worker's packets of a bundle step by step.
    fn push(&mut self, worker: &mut Worker<'_, '_, '_, '_>, bundle: &Bundle, out: &mut Out<'_>) {
        let (me, mut close, mut step) = (worker.me, bundle.close, 0);
        for (b, batch) in bundle.batches().iter().enumerate() {
            for (s, part) in batch.times.steps.iter().enumerate() {
                if part.close.is_some() {
                    self.push_all(worker, step, out);
                    close += 1;
                    worker.close_until(close);
                    step += (b > 0 || s > 0) as usize;
                }
                for (own, upper) in self.owns.iter_mut().zip(&mut *worker.uppers) {
                    let mut rows = batch.part(own.lane, me).and(part.rows);
                    while !rows.is_empty() {
                        rows = own.take(batch, rows);
                        if !rows.is_empty() || own.frames.is_full() {
                            own.push(upper, step, out);
                        }
                    }
                }
            }
        }
        self.push_all(worker, step, out);
    }

    /// Pushes what there is of every lane.
    fn push_all(&mut self, worker: &mut Worker<'_, '_, '_, '_>, step: usize, out: &mut Out<'_>) {
        for (own, upper) in self.owns.iter_mut().zip(&mut *worker.uppers) {
            own.push(upper, step, out);
        }
    }
}

/// Fills a bundle with what the feed has; returns whether it has anything.
fn fill(bundle: &mut Bundle, shared: &Shared<'_>, feed: &mut Feed<'_>) -> bool {
    bundle.clear();
    bundle.close = shared.closes.load(Ordering::Relaxed);
    for _ in 0..shared.bundle_len {
        let batch = bundle.next();
        if !feed.fill(&mut batch.frames) {
            shared.end_of(feed);
            break;
        }
        feed.times(&batch.frames, &mut batch.times);
        shared.open_closings(&batch.times);
        let full = batch.frames.is_full();
        shared.quiet.store(!full, Ordering::Release);
        let closes = batch.times.steps.iter().any(|step| step.close.is_some());
        bundle.keep();
        // What may be shown now must not wait for the source.
        if !full || closes {
            break;
        }
    }
    !bundle.batches().is_empty()
}

impl Own {
    /// Takes packets of a batch in; returns those for which there is no room until what is there
    /// was pushed.
    fn take(&mut self, batch: &Batch, rows: Bits) -> Bits {
        let (chunk, base) = batch.frames.chunk();
        if self.frames.is_empty() {
            self.frames.restart(chunk, base, batch.frames.link);
        }
        let (mine, my_base) = self.frames.chunk();
        // Frames stay where they are, only their offsets can count from elsewhere.
        let same = Arc::ptr_eq(mine, chunk) && self.frames.link == batch.frames.link;
        let furthest = batch.frames.offsets().iter().copied().max().unwrap_or(0) as usize;
        let shift = base.checked_sub(my_base).filter(|d| d + furthest <= u32::MAX as usize);
        let Some(shift) = shift.filter(|_| same) else { return rows };
        let (frames, clock) = (&batch.frames, batch.times.clock(&batch.frames));
        let (bytes, offsets) = (frames.bytes(), frames.offsets());
        let room = BATCH - self.frames.len();
        self.at.clear();
        rows.each(|i| self.at.push(i as u16));
        let some = self.at.len().min(room);
        self.at.truncate(some);
        for &i in &self.at {
            // Common headers reach into the next line as often as not.
            let offset = offsets[i as usize] as usize;
            prefetch(bytes, offset);
            prefetch(bytes, offset + HEADERS);
        }
        self.frames.extend_from(frames, &self.at, shift as u32);
        self.clock.extend(self.at.iter().map(|&i| clock[i as usize]));
        match self.at.last() {
            Some(&last) => rows.minus(Bits::first(last as usize + 1)),
            None => rows,
        }
    }

    /// Pushes what there is.
    fn push(&mut self, upper: &mut Upper, step: usize, out: &mut Out<'_>) {
        let Own { frames, clock, .. } = self;
        if !frames.is_empty() {
            upper.classify(frames);
            let rows = Bits::first(frames.len());
            upper.push(frames, rows, clock, &mut |p, rows| out(step, p, rows));
            frames.clear();
            clock.clear();
        }
    }
}
