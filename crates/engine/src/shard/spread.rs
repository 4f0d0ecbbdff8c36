//! Packets spread by key: each batch is classified once, and every worker takes its own of it.

use crate::limits::RING;
use crate::run::Times;
use crate::view::View;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;
use weir_packet::walk::{Layers, classify};

/// A batch that all workers look at.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) frames: FrameBatch,
    pub(super) layers: Layers,
    pub(super) times: Times,
    /// The number of the first closing within it.
    pub(super) close: u64,
    /// The packets of each worker.
    pub(super) parts: Vec<Bits>,
}

/// Batches by number modulo [`RING`].
pub(super) struct Batches {
    slots: Vec<Slot>,
}

struct Slot {
    batch: RwLock<Batch>,
    /// One more than the number of the batch that stands here, ready for all.
    ready: AtomicU64,
    /// Workers that have not taken theirs of it.
    left: AtomicUsize,
}

impl Batches {
    pub(super) fn new() -> Batches {
        let slot = || Slot {
            batch: RwLock::default(),
            ready: AtomicU64::new(0),
            left: AtomicUsize::new(0),
        };
        Batches { slots: (0..RING).map(|_| slot()).collect() }
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize % RING]
    }

    /// Whether there is room for batch `number`.
    pub(super) fn is_free(&self, number: u64) -> bool {
        self.slot(number).left.load(Ordering::Acquire) == 0
    }

    /// Whether batch `number` is ready for all.
    pub(super) fn is_ready(&self, number: u64) -> bool {
        self.slot(number).ready.load(Ordering::Acquire) == number + 1
    }

    /// Where batch `number` goes, or stands.
    pub(super) fn batch(&self, number: u64) -> &RwLock<Batch> {
        &self.slot(number).batch
    }

    /// Says that `workers` are to take theirs of batch `number` once it is ready.
    pub(super) fn claim(&self, number: u64, workers: usize) {
        self.slot(number).left.store(workers, Ordering::Release);
    }

    /// Says that batch `number` is ready.
    pub(super) fn publish(&self, number: u64) {
        self.slot(number).ready.store(number + 1, Ordering::Release);
    }

    /// Says that a worker has taken its own of batch `number`; returns whether it was the last.
    pub(super) fn leave(&self, number: u64) -> bool {
        self.slot(number).left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// All batches, for their counts.
    pub(super) fn into_inner(self) -> impl Iterator<Item = Batch> {
        self.slots.into_iter().map(|s| s.batch.into_inner().expect("nobody panicked"))
    }
}

/// Says which packets go to which worker.
pub(super) struct Spread {
    view: View,
    fields: usize,
    hashes: Box<[u64; BATCH]>,
}

impl Spread {
    /// By the values of these fields.
    pub(super) fn new(fields: &[FieldId]) -> Spread {
        let hashes = Box::new([0; BATCH]);
        Spread { view: View::new(fields), fields: fields.len(), hashes }
    }

    /// Classifies the frames of a batch, and fills in whose they are.
    pub(super) fn prepare(&mut self, batch: &mut Batch, workers: usize) {
        classify(&batch.frames, &mut batch.layers);
        let n = batch.frames.len();
        self.view.next_batch();
        let mut packets = self.view.packets(&batch.frames, &batch.layers);
        self.hashes.fill(0);
        for f in 0..self.fields {
            packets.ensure(f, Bits::first(n));
            mix(packets.column(f), n, &mut self.hashes);
        }
        batch.parts.clear();
        batch.parts.resize(workers, Bits::NONE);
        for (i, h) in self.hashes[..n].iter().enumerate() {
            let part = (h >> 32) * workers as u64 >> 32;
            batch.parts[part as usize].set(i);
        }
    }
}

/// Mixes the values of a column into hashes. An absent value counts as 0: where it goes with those
/// that are 0 no answer is wrong. The multipliers are not those of the tables, so that the keys of
/// one worker spread in its tables like any others.
fn mix(column: &Column, n: usize, hashes: &mut [u64; BATCH]) {
    const ODD: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
    let there = |i| (column.present.has(i) as u64).wrapping_neg();
    let step = |h: &mut u64, w: u64| {
        let x = (*h ^ w).wrapping_mul(ODD[0]);
        *h = x ^ x >> 32;
    };
    let hashes = hashes[..n].iter_mut().enumerate();
    match column.repr() {
        Repr::Bit => {
            hashes.for_each(|(i, h)| step(h, column.truth.has(i) as u64 & there(i)));
        }
        Repr::Word => {
            let words = column.word();
            hashes.for_each(|(i, h)| step(h, words[i] & there(i)));
        }
        Repr::Pair => {
            let (hi, lo) = column.pair();
            hashes.for_each(|(i, h)| {
                let w = (lo[i] ^ hi[i].rotate_left(29).wrapping_mul(ODD[1])) & there(i);
                step(h, w);
            });
        }
    }
}
