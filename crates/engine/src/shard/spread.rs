//! Packets spread by key: batches read by one worker, of which each takes its own packets.

use crate::lanes::{Lanes, Way};
use crate::limits::{BUNDLE_MAX, BUNDLES};
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
    pub(super) times: Times,
    workers: usize,
    /// The packets of each worker, lane by lane.
    parts: Vec<Bits>,
}

impl Batch {
    /// The packets that a worker gets by a lane.
    pub(super) fn part(&self, lane: usize, worker: usize) -> Bits {
        self.parts[lane * self.workers + worker]
    }
}

/// Batches that were read in one turn, one after the other. Windows close within the last only.
#[derive(Default)]
pub(super) struct Bundle {
    batches: Vec<Batch>,
    /// How many of them are filled.
    len: usize,
    /// The number of the first closing within it.
    pub(super) close: u64,
}

impl Bundle {
    /// Empties it; the memory stays.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Room for the next batch.
    pub(super) fn next(&mut self) -> &mut Batch {
        if self.len == self.batches.len() {
            self.batches.push(Batch::default());
        }
        &mut self.batches[self.len]
    }

    /// Says that the batch that there was room for is filled.
    pub(super) fn keep(&mut self) {
        self.len += 1;
    }

    /// The batches, to say whose their packets are.
    pub(super) fn batches_mut(&mut self) -> &mut [Batch] {
        &mut self.batches[..self.len]
    }

    /// The batches.
    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches[..self.len]
    }
}

/// How many batches a bundle has, so that what each worker takes of it fills some batches of its
/// own, and the last of these, which is not full, does not matter much. One only, where a row may
/// become many and each of these many again: all that is made of a bundle waits at once.
pub(super) fn bundle_len(workers: usize, is_nested: bool) -> usize {
    if is_nested { 1 } else { (4 * workers).min(BUNDLE_MAX) }
}

/// Bundles by number modulo [`BUNDLES`].
pub(super) struct Bundles {
    slots: Vec<Slot>,
}

struct Slot {
    bundle: RwLock<Bundle>,
    /// One more than the number of the bundle that stands here, ready for all.
    ready: AtomicU64,
    /// Workers that have not taken theirs of it.
    left: AtomicUsize,
}

impl Bundles {
    pub(super) fn new() -> Bundles {
        let slot = || Slot {
            bundle: RwLock::default(),
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

    /// Where bundle `number` goes, or stands.
    pub(super) fn bundle(&self, number: u64) -> &RwLock<Bundle> {
        &self.slot(number).bundle
    }

    /// Says that `workers` are to take theirs of bundle `number` once it is ready.
    pub(super) fn claim(&self, number: u64, workers: usize) {
        self.slot(number).left.store(workers, Ordering::Release);
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

/// Says which packets go to which worker, lane by lane. What lanes have in common, the layers of
/// packets and the fields of keys, is read once.
pub(super) struct Spread {
    workers: usize,
    lanes: Vec<Ways>,
    layers: Layers,
    view: View,
    /// Fields of keys that are texts, as hashes of these.
    texts: Vec<(FieldId, Column)>,
    hashes: Box<[u64; BATCH]>,
}

/// How the packets of a lane are spread.
enum Ways {
    /// The next batch to the next worker.
    Batches,
    /// By the values of these fields of the view and these texts, by position.
    Key { fields: Vec<usize>, texts: Vec<usize> },
    /// All to this worker.
    Worker(usize),
}

impl Spread {
    pub(super) fn new(lanes: &Lanes) -> Spread {
        let (mut fields, mut texts) = (Vec::new(), Vec::new());
        let position = |id: &FieldId, all: &mut Vec<FieldId>| {
            all.iter().position(|other| other == id).unwrap_or_else(|| {
                all.push(*id);
                all.len() - 1
            })
        };
        let is_text = |id: &&FieldId| id.info().ty.is_text();
        let mut way = |way: &Way| match way {
            Way::Batches => Ways::Batches,
            Way::Worker(worker) => Ways::Worker(*worker),
            Way::Key(key) => Ways::Key {
                fields: key
                    .iter()
                    .filter(|id| !is_text(id))
                    .map(|id| position(id, &mut fields))
                    .collect(),
                texts: key.iter().filter(is_text).map(|id| position(id, &mut texts)).collect(),
            },
        };
        let ways = lanes.lanes.iter().map(|lane| way(&lane.way)).collect();
        Spread {
            workers: lanes.workers,
            lanes: ways,
            layers: Layers::new(),
            view: View::new(&fields),
            texts: texts.into_iter().map(|id| (id, Column::new(id.info().ty.repr()))).collect(),
            hashes: Box::new([0; BATCH]),
        }
    }

    /// Fills in whose the packets of a batch are; `turn` rises from batch to batch.
    pub(super) fn share_out(&mut self, batch: &mut Batch, turn: usize) {
        let Spread { workers, lanes, layers, view, texts, hashes } = self;
        if lanes.iter().any(|lane| matches!(lane, Ways::Key { .. })) {
            classify(&batch.frames, layers);
        }
        let all = Bits::first(batch.frames.len());
        view.next_batch();
        let mut packets = view.packets(&batch.frames, layers);
        for (id, column) in texts.iter_mut() {
            packets.texts(*id, all, column, hash);
        }
        batch.workers = *workers;
        batch.parts.clear();
        batch.parts.resize(*workers * lanes.len(), Bits::NONE);
        for (lane, parts) in lanes.iter().zip(batch.parts.chunks_exact_mut(*workers)) {
            match lane {
                Ways::Batches => parts[turn % *workers] = all,
                Ways::Worker(worker) => parts[*worker] = all,
                Ways::Key { fields, texts: of_lane } => {
                    let n = batch.frames.len();
                    hashes.fill(0);
                    for &f in fields {
                        packets.ensure(f, all);
                        mix(packets.column(f), n, hashes);
                    }
                    of_lane.iter().for_each(|&t| mix(&texts[t].1, n, hashes));
                    for (i, h) in hashes[..n].iter().enumerate() {
                        let part = ((h >> 32) * *workers as u64) >> 32;
                        parts[part as usize].set(i);
                    }
                }
            }
        }
    }
}

/// Some hash of a text: [`mix`] does the rest.
fn hash(text: &[u8]) -> u64 {
    text.iter().fold(0, |h: u64, &byte| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
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
