//! Packets that one worker read and dealt out to all: bundles of batches, a share of each for every
//! worker.
//!
//! A share holds its packets in batches of its own, as full as can be, since operators take about
//! as long for a half-empty one. Who read the packets also puts these together, while what is
//! copied is still in its cache; where the frames lie stays the same.

use super::spread::{Spread, Whose};
use crate::lanes::Lanes;
use crate::limits::{BUNDLE_MAX, BUNDLES};
use crate::processor::prefetch;
use crate::run::{Step, Times};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;

/// How many batches a bundle has, so that what each worker gets of it fills some batches of its
/// own, and the last of these, which is not full, does not matter much. One only, where a row may
/// become many and each of these many again: all that is made of a bundle waits at once.
pub(super) fn bundle_len(workers: usize, is_nested: bool) -> usize {
    if is_nested { 1 } else { (4 * workers).min(BUNDLE_MAX) }
}

/// Packets that one worker gets by one lane, and that follow one another.
#[derive(Default)]
pub(super) struct Parcel {
    pub(super) lane: usize,
    /// The step of the bundle that they are of.
    pub(super) step: usize,
    pub(super) frames: FrameBatch,
    /// As in [`crate::ops::Batch`].
    pub(super) clock: Vec<i64>,
}

impl Parcel {
    /// How far the bases of these frames lie behind that of the parcel, if the parcel can take such
    /// frames and has room.
    fn fits(&self, step: usize, frames: &FrameBatch) -> Option<u32> {
        let ((chunk, base), (mine, my_base)) = (frames.chunk(), self.frames.chunk());
        let alike = self.step == step
            && !self.frames.is_full()
            && Arc::ptr_eq(mine, chunk)
            && self.frames.link == frames.link;
        let shift = base.checked_sub(my_base).filter(|_| alike)?;
        let furthest = frames.offsets().iter().copied().max().unwrap_or(0);
        (shift + furthest as usize).try_into().ok().map(|far: u32| far - furthest)
    }

    /// Forgets the packets and lets go of their memory.
    fn clear(&mut self) {
        self.frames.clear();
        self.clock.clear();
    }
}

/// What a worker gets of a bundle. Its memory is used again and again.
#[derive(Default)]
pub(super) struct Share {
    parcels: Vec<Parcel>,
    /// How many of them are filled.
    len: usize,
    /// For each lane the last that was opened.
    open: Vec<Option<usize>>,
    /// What everybody is told.
    pub(super) outline: Outline,
}

/// What there is to know of a bundle besides its packets.
#[derive(Clone, Copy, Default)]
pub(super) struct Outline {
    /// The number of the first closing within it.
    pub(super) close: u64,
    /// Parts of it within which no window closes. Windows close before each but the first,
    pub(super) steps: usize,
    /// and before the first if this says so.
    pub(super) closes_first: bool,
    /// Whether the last batch was full.
    pub(super) full: bool,
    /// The watermark after it.
    pub(super) watermark: i64,
}

impl Outline {
    /// Adds a step of the next batch: where no window closes between two batches, they are one.
    fn add(&mut self, step: &Step) {
        if self.steps == 0 {
            (self.steps, self.closes_first) = (1, step.close.is_some());
        } else {
            self.steps += usize::from(step.close.is_some());
        }
    }

    /// Of each step whether windows close before it.
    pub(super) fn closes(&self) -> impl Iterator<Item = bool> {
        let first = self.closes_first;
        (0..self.steps).map(move |step| step > 0 || first)
    }
}

impl Share {
    /// The packets step by step, and those of a lane in the order of the capture.
    pub(super) fn parcels(&self) -> &[Parcel] {
        &self.parcels[..self.len]
    }

    /// Forgets everything and lets go of the packets' memory.
    pub(super) fn clear(&mut self) {
        self.parcels[..self.len].iter_mut().for_each(Parcel::clear);
        self.len = 0;
        self.open.fill(None);
    }

    /// Adds packets at these positions of a batch.
    fn add(&mut self, lane: usize, step: usize, batch: &Batch, mut at: &[u16]) {
        let clock = batch.times.clock(&batch.frames);
        while !at.is_empty() {
            let (parcel, shift) = self.parcel(lane, step, &batch.frames);
            let some = at.len().min(BATCH - parcel.frames.len());
            let (now, later) = at.split_at(some);
            parcel.frames.extend_from(&batch.frames, now, shift);
            parcel.clock.extend(now.iter().map(|&i| clock[usize::from(i)]));
            at = later;
        }
    }

    /// The parcel that such frames go to, which has room, and how far their base lies behind its.
    fn parcel(&mut self, lane: usize, step: usize, frames: &FrameBatch) -> (&mut Parcel, u32) {
        if self.open.len() <= lane {
            self.open.resize(lane + 1, None);
        }
        if let Some(open) = self.open[lane]
            && let Some(shift) = self.parcels[open].fits(step, frames)
        {
            return (&mut self.parcels[open], shift);
        }
        if self.len == self.parcels.len() {
            self.parcels.push(Parcel::default());
        }
        self.open[lane] = Some(self.len);
        self.len += 1;
        let parcel = &mut self.parcels[self.len - 1];
        (parcel.lane, parcel.step) = (lane, step);
        let (chunk, base) = frames.chunk();
        parcel.frames.restart(chunk, base, frames.link);
        (parcel, 0)
    }
}

/// A batch as it was read.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) frames: FrameBatch,
    pub(super) times: Times,
}

/// Deals packets out.
pub(super) struct Dealer {
    spread: Spread,
    /// Batches as they were read.
    batches: Vec<Batch>,
    /// Scratch: for each worker positions in a batch.
    lists: Vec<List>,
}

/// Positions in a batch.
struct List {
    at: Box<[u16; BATCH]>,
    len: usize,
}

impl List {
    fn of(&self) -> &[u16] {
        &self.at[..self.len]
    }

    #[inline(always)]
    fn push(&mut self, i: usize) {
        self.at[self.len % BATCH] = i as u16;
        self.len += 1;
    }
}

impl Dealer {
    pub(super) fn new(lanes: &Lanes) -> Dealer {
        let list = || List { at: Box::new([0; BATCH]), len: 0 };
        let lists = (0..lanes.workers).map(|_| list()).collect();
        Dealer { spread: Spread::new(lanes), batches: Vec::new(), lists }
    }

    /// Room for batch `n` of a bundle.
    pub(super) fn batch(&mut self, n: usize) -> &mut Batch {
        if n == self.batches.len() {
            self.batches.push(Batch::default());
        }
        &mut self.batches[n]
    }

    /// Deals the first `n` batches out, those of bundle `number`, whose first closing has the
    /// number `close`; lets go of their memory.
    pub(super) fn deal(&mut self, n: usize, bundles: &Bundles, number: u64, close: u64) {
        let Dealer { spread, batches, lists } = self;
        let mut outline = Outline { close, ..Outline::default() };
        for b in 0..n {
            batches[..n].get(b + 1).into_iter().for_each(|next| fetch(&next.frames));
            let batch = &mut batches[b];
            spread.look(&batch.frames, number + b as u64);
            for step in &batch.times.steps {
                outline.add(step);
                for lane in 0..spread.lanes() {
                    lists.iter_mut().for_each(|list| list.len = 0);
                    match spread.whose(lane) {
                        Whose::All(worker) => step.rows.each(|i| lists[worker].push(i)),
                        Whose::Each(owners) => {
                            step.rows.each(|i| lists[usize::from(owners[i])].push(i));
                        }
                    }
                    for (worker, list) in lists.iter().enumerate().filter(|(_, l)| l.len > 0) {
                        bundles.share(number, worker).add(
                            lane,
                            outline.steps - 1,
                            batch,
                            list.of(),
                        );
                    }
                }
            }
            (outline.full, outline.watermark) = (batch.frames.is_full(), batch.times.watermark);
            batch.frames.clear();
        }
        (0..lists.len()).for_each(|worker| bundles.share(number, worker).outline = outline);
    }
}

/// Has the headers of packets fetched, which may be farther away than in the nearest cache.
pub(super) fn fetch(frames: &FrameBatch) {
    let bytes = frames.bytes();
    for &offset in frames.offsets() {
        // They reach into the next line as often as not.
        prefetch(bytes, offset as usize);
        prefetch(bytes, offset as usize + HEADERS);
    }
}

/// Where the common headers of a frame end, about.
const HEADERS: usize = 48;

/// Bundles by number modulo [`BUNDLES`].
pub(super) struct Bundles {
    slots: Vec<Slot>,
}

struct Slot {
    /// One for each worker.
    shares: Vec<Mutex<Share>>,
    /// One more than the number of the bundle that stands here, ready for all.
    ready: AtomicU64,
    /// Workers that have not taken theirs of it.
    left: AtomicUsize,
}

impl Bundles {
    pub(super) fn new(workers: usize) -> Bundles {
        let slot = || Slot {
            shares: (0..workers).map(|_| Mutex::default()).collect(),
            ready: AtomicU64::new(0),
            left: AtomicUsize::new(0),
        };
        Bundles { slots: (0..BUNDLES).map(|_| slot()).collect() }
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % BUNDLES]
    }

    /// Whether there is room for bundle `number`.
    pub(super) fn is_free(&self, number: u64) -> bool {
        self.slot(number).left.load(Ordering::Acquire) == 0
    }

    /// Whether bundle `number` is ready for all.
    pub(super) fn is_ready(&self, number: u64) -> bool {
        self.slot(number).ready.load(Ordering::Acquire) == number + 1
    }

    /// A worker's share of bundle `number`. Nobody waits for it: who deals does so while there is
    /// room, and a worker takes its own once it is ready.
    pub(super) fn share(&self, number: u64, worker: usize) -> MutexGuard<'_, Share> {
        self.slot(number).shares[worker].lock().expect("no worker panicked")
    }

    /// Says that all workers are to take theirs of bundle `number` once it is ready.
    pub(super) fn claim(&self, number: u64) {
        let slot = self.slot(number);
        slot.left.store(slot.shares.len(), Ordering::Release);
    }

    /// Says that bundle `number` is ready.
    pub(super) fn publish(&self, number: u64) {
        self.slot(number).ready.store(number + 1, Ordering::Release);
    }

    /// Says that a worker has taken its own of bundle `number`; returns whether it was the last.
    pub(super) fn leave(&self, number: u64) -> bool {
        self.slot(number).left.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
