//! Packets that one worker read and dealt out to all: bundles of batches, a share of each for every
//! worker.
//!
//! A share holds its packets in batches of its own, as full as can be, since operators take about
//! as long for a half-empty one. Who read the packets also puts these together, while what is
//! copied, where frames lie and when they came, is still in its cache. Frames of different chunks
//! stay apart: sources that lend frames have a chunk for each batch. What one worker gets all
//! packets of, it gets batch by batch, as the only worker of a run does: a full `scan` gives up
//! keys that no row of the batch has, so it must be the same batch.

use super::spread::{Spread, Whose, fetch};
use crate::feed::{Step, Times};
use crate::lanes::Lanes;
use crate::limits::{BUNDLE_MAX, BUNDLES};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;

/// How many batches a bundle has, so that what each worker gets of it fills some batches of its
/// own, and the last of these, which is not full, does not matter much. One only, where a row may
/// become many and each of these many again: all that is made of a bundle waits at once.
pub(super) fn bundle_len(workers: usize, is_nested: bool) -> usize {
    if is_nested { 1 } else { (4 * workers).min(BUNDLE_MAX) }
}

/// Packets that one worker gets by one lane, and that follow one another.
pub(super) struct Parcel {
    pub(super) frames: FrameBatch,
    /// As in [`crate::ops::operator::Batch`].
    pub(super) clock: Vec<i64>,
    /// The steps of the bundle that they are of, each with where it ends.
    parts: Vec<(usize, usize)>,
    /// Where they are a batch as it was read: the watermark after it.
    pub(super) after: Option<i64>,
}

impl Parcel {
    fn new() -> Parcel {
        Parcel {
            frames: FrameBatch::new(),
            clock: Vec::with_capacity(BATCH),
            parts: Vec::with_capacity(PARTS),
            after: None,
        }
    }

    /// How far behind the base of the parcel that of such frames lies, if the parcel has room and
    /// can take them: they are of the same source, and so have everything else in common.
    fn fits(&self, frames: &FrameBatch, furthest: u32) -> Option<u32> {
        let ((chunk, base), (mine, my_base)) = (frames.chunk(), self.frames.chunk());
        let alike = Arc::ptr_eq(mine, chunk) && self.frames.link == frames.link;
        let shift = base.checked_sub(my_base).filter(|_| alike && !self.frames.is_full())?;
        // Positions have 32 bits.
        u32::try_from(shift + furthest as usize).ok()?;
        Some(shift as u32)
    }

    /// Takes packets of a step in.
    fn take(&mut self, step: usize, batch: &TimedBatch, at: &[u16], shift: u32) {
        let clock = batch.times.clock(&batch.frames);
        self.frames.extend_from(&batch.frames, at, shift);
        self.clock.extend(at.iter().map(|&i| clock[usize::from(i)]));
        let end = self.frames.len();
        match self.parts.last_mut() {
            Some((last, so_far)) if *last == step => *so_far = end,
            _ => self.parts.push((step, end)),
        }
    }

    /// Forgets the packets and lets go of their memory.
    fn clear(&mut self) {
        self.frames.clear();
        self.clock.clear();
        self.parts.clear();
        self.after = None;
    }
}

/// Steps that there is room for from the start: more there are where windows are short.
const PARTS: usize = 4;

/// What a worker gets of a bundle by one lane. The memory is used again and again.
#[derive(Default)]
pub(super) struct Dealt {
    parcels: Vec<Parcel>,
    /// How many of them are filled.
    len: usize,
}

impl Dealt {
    /// The packets in the order of the capture.
    fn parcels(&self) -> &[Parcel] {
        &self.parcels[..self.len]
    }

    /// Adds packets at these positions of a batch, whose frames start at `furthest` at most.
    fn add(&mut self, step: usize, batch: &TimedBatch, furthest: u32, mut at: &[u16]) {
        while !at.is_empty() {
            let (parcel, shift) = self.parcel(&batch.frames, furthest);
            let (now, later) = at.split_at(at.len().min(BATCH - parcel.frames.len()));
            parcel.take(step, batch, now, shift);
            at = later;
        }
    }

    /// The parcel that such frames go to, which has room, and how far their base lies behind its.
    fn parcel(&mut self, frames: &FrameBatch, furthest: u32) -> (&mut Parcel, u32) {
        let last = self.parcels[..self.len].last();
        let shift = last.and_then(|last| last.fits(frames, furthest)).unwrap_or_else(|| {
            self.start(frames);
            0
        });
        (&mut self.parcels[self.len - 1], shift)
    }

    /// Whether the packets came as the batches that were read, each with the watermark after it.
    pub(super) fn came_in_batches(&self) -> bool {
        self.parcels().last().is_some_and(|parcel| parcel.after.is_some())
    }

    /// Starts a parcel for such frames.
    fn start(&mut self, frames: &FrameBatch) {
        if self.len == self.parcels.len() {
            self.parcels.push(Parcel::new());
        }
        let (chunk, base) = frames.chunk();
        self.parcels[self.len].frames.restart(chunk, base, frames.link);
        self.len += 1;
    }

    /// The parcel that was started last has all packets of its batch, which ended in this step with
    /// this watermark.
    fn end_batch(&mut self, step: usize, watermark: i64) {
        let parcel = &mut self.parcels[self.len - 1];
        parcel.after = Some(watermark);
        if parcel.parts.is_empty() {
            parcel.parts.push((step, 0));
        }
    }
}

/// How far a worker has come in what it gets by one lane.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    parcel: usize,
    /// Of the parcel, how many parts were taken, and how many packets.
    parts: usize,
    packets: usize,
}

impl Cursor {
    /// Before the first packets, whose headers are fetched.
    pub(super) fn start(dealt: &Dealt) -> Cursor {
        dealt.parcels().first().into_iter().for_each(|first| fetch(&first.frames));
        Cursor::default()
    }

    /// The next packets of a step: their parcel, which they are, and whether they are its first and
    /// its last. The headers of the parcel behind it are fetched then.
    pub(super) fn next<'p>(
        &mut self,
        dealt: &'p Dealt,
        step: usize,
    ) -> Option<(&'p Parcel, Bits, [bool; 2])> {
        let (parcel, behind) = dealt.parcels().get(self.parcel..)?.split_first()?;
        let &(of, end) = parcel.parts.get(self.parts)?;
        if of != step {
            return None;
        }
        let (from, first) = (self.packets, self.parts == 0);
        if first {
            behind.first().into_iter().for_each(|next| fetch(&next.frames));
        }
        let last = self.parts + 1 == parcel.parts.len();
        *self = match last {
            false => Cursor { parts: self.parts + 1, packets: end, ..*self },
            true => Cursor { parcel: self.parcel + 1, ..Cursor::default() },
        };
        Some((parcel, Bits::range(from, end), [first, last]))
    }
}

/// What a worker gets of a bundle.
pub(super) struct Share {
    /// By lane; of some a worker gets nothing.
    lanes: Vec<Dealt>,
    /// What everybody is told.
    pub(super) outline: Outline,
}

impl Share {
    /// What it gets by a lane.
    pub(super) fn dealt(&self, lane: usize) -> &Dealt {
        &self.lanes[lane]
    }

    /// Forgets everything and lets go of the packets' memory.
    pub(super) fn clear(&mut self) {
        for dealt in &mut self.lanes {
            dealt.parcels[..dealt.len].iter_mut().for_each(Parcel::clear);
            dealt.len = 0;
        }
    }
}

/// What there is to know of a bundle besides its packets.
#[derive(Clone, Copy, Default)]
pub(super) struct Outline {
    /// The number of the first closing within it.
    pub(super) close: u64,
    /// How many parts it has within which no window closes; before each but the first some do.
    pub(super) steps: usize,
    /// Whether windows close before the first, too.
    pub(super) closes_first: bool,
    /// Whether the next bundle could be read at once.
    pub(super) more: bool,
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
        (0..self.steps).map(|step| self.closes_before(step))
    }

    /// Whether windows close before a step.
    pub(super) fn closes_before(&self, step: usize) -> bool {
        step > 0 || self.closes_first
    }
}

/// A batch as it was read.
#[derive(Default)]
pub(super) struct TimedBatch {
    pub(super) frames: FrameBatch,
    pub(super) times: Times,
}

/// Deals packets out.
pub(super) struct Dealer {
    spread: Spread,
    /// Batches as they were read.
    batches: Vec<TimedBatch>,
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
        // The remainder spares a check of bounds.
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
    pub(super) fn batch(&mut self, n: usize) -> &mut TimedBatch {
        if n == self.batches.len() {
            self.batches.push(TimedBatch::default());
        }
        &mut self.batches[n]
    }

    /// Deals the first `n` batches out, those of bundle `number`; lets go of their memory. Of the
    /// outline is known the number of its first closing, and whether there was more.
    pub(super) fn deal(&mut self, n: usize, bundles: &Bundles, number: u64, mut outline: Outline) {
        let Dealer { spread, batches, lists } = self;
        for b in 0..n {
            let (batch, later) = batches[b..n].split_first_mut().expect("there is one");
            spread.look(&batch.frames, later.first().map(|next| &next.frames));
            let furthest = batch.frames.offsets().iter().copied().max().unwrap_or(0);
            for (lane, worker) in spread.single() {
                bundles.share(number, worker).lanes[lane].start(&batch.frames);
            }
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
                        let dealt = &mut bundles.share(number, worker).lanes[lane];
                        dealt.add(outline.steps - 1, batch, furthest, list.of());
                    }
                }
            }
            outline.watermark = batch.times.watermark;
            for (lane, worker) in spread.single() {
                let dealt = &mut bundles.share(number, worker).lanes[lane];
                dealt.end_batch(outline.steps - 1, batch.times.watermark);
            }
            batch.frames.clear();
        }
        (0..lists.len()).for_each(|worker| bundles.share(number, worker).outline = outline);
    }
}

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
    pub(super) fn new(workers: usize, lanes: usize) -> Bundles {
        let dealt = || (0..lanes).map(|_| Dealt::default()).collect();
        let share = || Mutex::new(Share { lanes: dealt(), outline: Outline::default() });
        let slot = || Slot {
            shares: (0..workers).map(|_| share()).collect(),
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
