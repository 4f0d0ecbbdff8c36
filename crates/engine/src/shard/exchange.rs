//! The exchange between workers: one of them reads a block of batches and repartitions its packets,
//! so that every worker gets a part of each block.
//!
//! A part holds its packets in batches of its own, as full as can be, since operators take about as
//! long for a half-empty one. The worker that read the packets also fills these batches, while what
//! is copied, where frames lie and when they came, is still in its cache. Frames of different
//! chunks stay apart: sources that lend frames have a chunk for each batch. Where one worker gets
//! all packets, it gets them batch by batch, as the only worker of a run does: a full `scan` evicts
//! keys that no row of the batch has, so it must be the same batch.

use super::spread::{Recipients, Spread, fetch};
use crate::feed::{Step, Times};
use crate::limits::{BLOCK_MAX, BLOCKS};
use crate::partitioning::Partitionings;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;

/// How many batches a block has, so that what each worker gets of it fills some batches of its own,
/// and the last of these, which is not full, does not matter much. One only, where a row may become
/// many and each of these many again: all that is made of a block waits at once.
pub(super) fn block_len(workers: usize, is_nested: bool) -> usize {
    if is_nested { 1 } else { (4 * workers).min(BLOCK_MAX) }
}

/// Packets that one worker gets by one lane, and that follow one another, as a batch.
pub(super) struct PartBatch {
    pub(super) frames: FrameBatch,
    /// As in [`crate::ops::operator::Batch`].
    pub(super) clock: Vec<i64>,
    /// The steps of the block that they are of, each with where it ends.
    steps: Vec<(usize, usize)>,
    /// Where they are a batch as it was read: the watermark after it.
    pub(super) after: Option<i64>,
}

impl PartBatch {
    fn new() -> PartBatch {
        PartBatch {
            frames: FrameBatch::new(),
            clock: Vec::with_capacity(BATCH),
            steps: Vec::with_capacity(STEPS),
            after: None,
        }
    }

    /// How far the base of such frames lies beyond that of this batch, if it has room and can take
    /// them: they are of the same source, and so have everything else in common.
    fn fits(&self, frames: &FrameBatch, furthest: u32) -> Option<u32> {
        let ((chunk, base), (mine, my_base)) = (frames.chunk(), self.frames.chunk());
        let alike = Arc::ptr_eq(mine, chunk) && self.frames.link == frames.link;
        let shift = base.checked_sub(my_base).filter(|_| alike && !self.frames.is_full())?;
        // Positions have 32 bits.
        u32::try_from(shift + furthest as usize).ok()?;
        Some(shift as u32)
    }

    /// Takes packets of a step in.
    fn extend(&mut self, step: usize, batch: &TimedBatch, at: &[u16], shift: u32) {
        let clock = batch.times.clock(&batch.frames);
        self.frames.extend_from(&batch.frames, at, shift);
        self.clock.extend(at.iter().map(|&i| clock[usize::from(i)]));
        let end = self.frames.len();
        match self.steps.last_mut() {
            Some((last, so_far)) if *last == step => *so_far = end,
            _ => self.steps.push((step, end)),
        }
    }

    /// Forgets the packets and lets go of their memory.
    fn clear(&mut self) {
        self.frames.clear();
        self.clock.clear();
        self.steps.clear();
        self.after = None;
    }
}

/// Steps that there is room for from the start: more there are where windows are short.
const STEPS: usize = 4;

/// The packets that a worker gets of a block by one lane. The memory is used again and again.
#[derive(Default)]
pub(super) struct LanePart {
    batches: Vec<PartBatch>,
    /// How many of them are filled.
    len: usize,
}

impl LanePart {
    /// The packets in the order of the capture.
    fn batches(&self) -> &[PartBatch] {
        &self.batches[..self.len]
    }

    /// Adds packets at these positions of a batch, whose frames start at `furthest` at most.
    fn add(&mut self, step: usize, batch: &TimedBatch, furthest: u32, mut at: &[u16]) {
        while !at.is_empty() {
            let (part, shift) = self.room_for(&batch.frames, furthest);
            let (now, later) = at.split_at(at.len().min(BATCH - part.frames.len()));
            part.extend(step, batch, now, shift);
            at = later;
        }
    }

    /// The batch that such frames go to, which has room, and how far their base lies beyond its.
    fn room_for(&mut self, frames: &FrameBatch, furthest: u32) -> (&mut PartBatch, u32) {
        let last = self.batches().last();
        let shift = last.and_then(|last| last.fits(frames, furthest)).unwrap_or_else(|| {
            self.start(frames);
            0
        });
        (&mut self.batches[self.len - 1], shift)
    }

    /// Whether the packets came as the batches that were read, each with the watermark after it.
    pub(super) fn came_in_batches(&self) -> bool {
        self.batches().last().is_some_and(|batch| batch.after.is_some())
    }

    /// Starts a batch for such frames.
    fn start(&mut self, frames: &FrameBatch) {
        if self.len == self.batches.len() {
            self.batches.push(PartBatch::new());
        }
        let (chunk, base) = frames.chunk();
        self.batches[self.len].frames.restart(chunk, base, frames.link);
        self.len += 1;
    }

    /// The batch that was started last has all packets of the one that was read, which ended in
    /// this step with this watermark.
    fn end_batch(&mut self, step: usize, watermark: i64) {
        let last = &mut self.batches[self.len - 1];
        last.after = Some(watermark);
        if last.steps.is_empty() {
            last.steps.push((step, 0));
        }
    }
}

/// How far a worker has come in what it gets by one lane.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    batch: usize,
    /// Of the batch, how many steps were taken, and how many packets.
    steps: usize,
    packets: usize,
}

/// Packets of one step, all in one batch.
pub(super) struct StepPackets<'p> {
    pub(super) batch: &'p PartBatch,
    pub(super) rows: Bits,
    /// Whether they are the first of the batch, ...
    pub(super) is_first: bool,
    /// ... and the last.
    pub(super) is_last: bool,
}

impl Cursor {
    /// Before the first packets, whose headers are fetched.
    pub(super) fn start(part: &LanePart) -> Cursor {
        part.batches().first().into_iter().for_each(|first| fetch(&first.frames));
        Cursor::default()
    }

    /// The batch of which some packets were taken, and others were not.
    pub(super) fn at_hand<'p>(&self, part: &'p LanePart) -> Option<&'p PartBatch> {
        part.batches().get(self.batch).filter(|_| self.steps > 0)
    }

    /// The next packets of a step. With the first of a batch, the headers of the batch after it are
    /// fetched.
    pub(super) fn next<'p>(&mut self, part: &'p LanePart, step: usize) -> Option<StepPackets<'p>> {
        let (batch, later) = part.batches().get(self.batch..)?.split_first()?;
        let &(of, end) = batch.steps.get(self.steps)?;
        if of != step {
            return None;
        }
        let (from, is_first) = (self.packets, self.steps == 0);
        if is_first {
            later.first().into_iter().for_each(|next| fetch(&next.frames));
        }
        let is_last = self.steps + 1 == batch.steps.len();
        *self = match is_last {
            false => Cursor { steps: self.steps + 1, packets: end, ..*self },
            true => Cursor { batch: self.batch + 1, ..Cursor::default() },
        };
        Some(StepPackets { batch, rows: Bits::range(from, end), is_first, is_last })
    }
}

/// The part of a block that a worker gets.
pub(super) struct WorkerPart {
    /// By lane; of some a worker gets nothing.
    lanes: Vec<LanePart>,
    /// The outline of the block, which all workers get to know.
    pub(super) outline: BlockOutline,
}

impl WorkerPart {
    /// The packets that it gets by a lane.
    pub(super) fn lane(&self, lane: usize) -> &LanePart {
        &self.lanes[lane]
    }

    /// Forgets everything and lets go of the packets' memory.
    pub(super) fn clear(&mut self) {
        for part in &mut self.lanes {
            part.batches[..part.len].iter_mut().for_each(PartBatch::clear);
            part.len = 0;
        }
    }
}

/// The facts about a block besides its packets.
#[derive(Clone, Copy, Default)]
pub(super) struct BlockOutline {
    /// The number of the first closing within it.
    pub(super) close: u64,
    /// How many steps it has, within which no window closes; before each but the first some do.
    pub(super) steps: usize,
    /// Whether windows close before the first, too.
    pub(super) closes_first: bool,
    /// Whether the next block could be read at once.
    pub(super) more: bool,
    /// The watermark after it.
    pub(super) watermark: i64,
}

impl BlockOutline {
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

/// Repartitions packets.
pub(super) struct Partitioner {
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

impl Partitioner {
    pub(super) fn new(partitionings: &Partitionings) -> Partitioner {
        let list = || List { at: Box::new([0; BATCH]), len: 0 };
        let lists = (0..partitionings.workers).map(|_| list()).collect();
        Partitioner { spread: Spread::new(partitionings), batches: Vec::new(), lists }
    }

    /// Room for batch `n` of a block.
    pub(super) fn batch(&mut self, n: usize) -> &mut TimedBatch {
        if n == self.batches.len() {
            self.batches.push(TimedBatch::default());
        }
        &mut self.batches[n]
    }

    /// Repartitions the first `n` batches, those of block `number`; lets go of their memory. Of the
    /// outline is known the number of its first closing, and whether there was more.
    pub(super) fn partition(
        &mut self,
        n: usize,
        exchange: &Exchange,
        number: u64,
        mut outline: BlockOutline,
    ) {
        let Partitioner { spread, batches, lists } = self;
        for b in 0..n {
            let (batch, later) = batches[b..n].split_first_mut().expect("there is one");
            spread.find_recipients(&batch.frames, later.first().map(|next| &next.frames));
            let furthest = batch.frames.offsets().iter().copied().max().unwrap_or(0);
            for (lane, worker) in spread.single() {
                exchange.part(number, worker).lanes[lane].start(&batch.frames);
            }
            for step in &batch.times.steps {
                outline.add(step);
                for lane in 0..spread.lanes() {
                    lists.iter_mut().for_each(|list| list.len = 0);
                    match spread.recipients(lane) {
                        Recipients::All(worker) => step.rows.each(|i| lists[worker].push(i)),
                        Recipients::Each(owners) => {
                            step.rows.each(|i| lists[usize::from(owners[i])].push(i));
                        }
                    }
                    for (worker, list) in lists.iter().enumerate().filter(|(_, l)| l.len > 0) {
                        let part = &mut exchange.part(number, worker).lanes[lane];
                        part.add(outline.steps - 1, batch, furthest, list.of());
                    }
                }
            }
            outline.watermark = batch.times.watermark;
            for (lane, worker) in spread.single() {
                let part = &mut exchange.part(number, worker).lanes[lane];
                part.end_batch(outline.steps - 1, batch.times.watermark);
            }
            batch.frames.clear();
        }
        (0..lists.len()).for_each(|worker| exchange.part(number, worker).outline = outline);
    }
}

/// Blocks by number modulo [`BLOCKS`].
pub(super) struct Exchange {
    slots: Vec<Slot>,
}

struct Slot {
    /// One for each worker.
    parts: Vec<Mutex<WorkerPart>>,
    /// One more than the number of the block that stands here, ready for all.
    ready: AtomicU64,
    /// Workers that have not taken theirs of it.
    left: AtomicUsize,
}

impl Exchange {
    pub(super) fn new(workers: usize, lanes: usize) -> Exchange {
        let lanes = || (0..lanes).map(|_| LanePart::default()).collect();
        let part = || Mutex::new(WorkerPart { lanes: lanes(), outline: BlockOutline::default() });
        let slot = || Slot {
            parts: (0..workers).map(|_| part()).collect(),
            ready: AtomicU64::new(0),
            left: AtomicUsize::new(0),
        };
        Exchange { slots: (0..BLOCKS).map(|_| slot()).collect() }
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % BLOCKS]
    }

    /// Whether there is room for block `number`.
    pub(super) fn is_free(&self, number: u64) -> bool {
        self.slot(number).left.load(Ordering::Acquire) == 0
    }

    /// Whether block `number` is ready for all.
    pub(super) fn is_ready(&self, number: u64) -> bool {
        self.slot(number).ready.load(Ordering::Acquire) == number + 1
    }

    /// A worker's part of block `number`. No thread waits for the lock: a block is filled while
    /// there is room, and a worker takes its part once the block is ready.
    pub(super) fn part(&self, number: u64, worker: usize) -> MutexGuard<'_, WorkerPart> {
        self.slot(number).parts[worker].lock().expect("no worker panicked")
    }

    /// Notes that all workers are to take theirs of block `number` once it is ready.
    pub(super) fn claim(&self, number: u64) {
        let slot = self.slot(number);
        slot.left.store(slot.parts.len(), Ordering::Release);
    }

    /// Notes that block `number` is ready.
    pub(super) fn publish(&self, number: u64) {
        self.slot(number).ready.store(number + 1, Ordering::Release);
    }

    /// Notes that a worker has taken its own of block `number`; returns whether it was the last.
    pub(super) fn leave(&self, number: u64) -> bool {
        self.slot(number).left.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
