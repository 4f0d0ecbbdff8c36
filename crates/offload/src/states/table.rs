//! The table of a `scan`, and what the process does with it.

use crate::frame::KEY_WORDS_MAX;
use crate::limits::STATE_KEYS_MAX;
use crate::table::{KeyLayout, ValueShape};
use std::sync::atomic::{AtomicU64, Ordering};
use weir_plan::physical::PipelineId;

/// Of a bucket, the word that is 1 while somebody holds its lock.
pub(super) const LOCK: usize = 0;
/// Of a bucket, when a frame last went up because its key found no room; 0 for never.
pub(super) const CROWDED: usize = 1;
/// Words of a bucket before its slots.
pub(super) const HEAD: usize = 2;
/// Slots of a bucket.
pub(super) const SLOTS: usize = 4;

/// Of a slot, the word of these bits; 0: it is free.
pub(super) const META: usize = 0;
/// The slot has a key.
pub(super) const USED: i32 = 1;
/// The workers hold the states of the key, or will take them.
pub(super) const UP: i32 = 1 << 1;
/// The slot has states.
pub(super) const STATES: i32 = 1 << 2;
/// Of a slot, the largest time of a frame of the key, in nanoseconds since 1970.
pub(super) const LAST: usize = 1;
/// Of a slot, the first word of the key; its states follow.
pub(super) const KEY: usize = 2;

/// How often the process looks at a lock before it lets others run.
const SPINS: u32 = 100;

/// The table of states that a `scan` over packets holds in the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateTable {
    /// The pipeline whose states they are.
    pub pipeline: PipelineId,
    /// The position of the stage in its pipeline.
    pub stage: usize,
    pub(super) keys: KeyLayout,
    pub(super) states: usize,
    pub(super) idle_ns: i64,
    /// The secret that keys are hashed with: a seed and a multiplier.
    pub(super) secret: [u64; 2],
    /// A power of two.
    pub(super) buckets: usize,
}

/// States of a key that the workers go on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TakenStates {
    /// The largest time of a frame of the key, in nanoseconds since 1970.
    pub last: i64,
    /// The states: numbers, and truths as 0 and 1.
    pub states: Vec<i64>,
}

impl StateTable {
    /// The table of a stage with so many states, by keys of these shapes, which are forgotten after
    /// `idle_ns` without a frame.
    pub(crate) fn new(
        (pipeline, stage): (PipelineId, usize),
        keys: &[ValueShape],
        states: usize,
        idle_ns: i64,
        secret: [u64; 2],
    ) -> StateTable {
        let keys = KeyLayout::new(keys);
        let buckets = STATE_KEYS_MAX / SLOTS;
        StateTable { pipeline, stage, keys, states, idle_ns, secret, buckets }
    }

    /// Words of 8 bytes that its memory has.
    pub fn words(&self) -> usize {
        self.buckets * self.bucket_words()
    }

    /// The layout of its keys.
    pub(crate) fn keys(&self) -> &KeyLayout {
        &self.keys
    }

    pub(super) fn slot_words(&self) -> usize {
        KEY + self.keys.words() + self.states
    }

    pub(super) fn bucket_words(&self) -> usize {
        HEAD + SLOTS * self.slot_words()
    }

    /// Where the states of a slot begin.
    pub(super) fn states_at(&self) -> usize {
        KEY + self.keys.words()
    }

    /// Says that the workers hold the states of a key from now on, of which a frame of this time is
    /// at hand; returns the states, if a program held them. `memory` are the
    /// [`words`](StateTable::words) of the table, `key` the parts of the key: numbers as their
    /// bits, addresses as 128 bits, `None` where a part is absent.
    ///
    /// It waits for the lock of a bucket, which programs hold while they decide about a frame.
    pub fn take(
        &self,
        memory: &[AtomicU64],
        key: &[Option<u128>],
        now: i64,
    ) -> Option<TakenStates> {
        let mut packed = [0; KEY_WORDS_MAX];
        let packed = packed.get_mut(..self.keys.words())?;
        self.keys.write(key, packed)?;
        let key = &*packed;
        let hash = KeyLayout::hash(self.secret, key);
        let bucket = (hash >> (u64::BITS - self.buckets.ilog2())) as usize;
        let words = self.bucket_words();
        let bucket = memory.get(bucket * words..(bucket + 1) * words)?;
        lock(&bucket[LOCK]);
        let taken = self.take_locked(bucket, key, now);
        bucket[LOCK].store(0, Ordering::Release);
        taken
    }

    fn take_locked(&self, bucket: &[AtomicU64], key: &[u64], now: i64) -> Option<TakenStates> {
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let set = |word: &AtomicU64, value: u64| word.store(value, Ordering::Relaxed);
        let is_idle = |last: u64| now.saturating_sub(last as i64) >= self.idle_ns;
        let slots = || bucket[HEAD..].chunks_exact(self.slot_words());
        let has_key = |slot: &&[AtomicU64]| {
            get(&slot[META]) != 0 && slot[KEY..].iter().zip(key).all(|(word, k)| get(word) == *k)
        };
        let held = u64::from((USED | UP) as u32);
        if let Some(slot) = slots().find(has_key) {
            let (meta, last) = (get(&slot[META]), get(&slot[LAST]));
            let has_states = meta & u64::from(STATES as u32) != 0 && !is_idle(last);
            set(&slot[META], held);
            set(&slot[LAST], last.max(now as u64));
            let states = slot[self.states_at()..].iter().map(|word| get(word) as i64);
            let states = has_states.then(|| states.collect());
            return states.map(|states| TakenStates { last: last as i64, states });
        }
        let crowded = get(&bucket[CROWDED]);
        let is_crowded = crowded != 0 && !is_idle(crowded);
        let is_free = |slot: &&[AtomicU64]| get(&slot[META]) == 0 || is_idle(get(&slot[LAST]));
        match slots().find(is_free) {
            Some(slot) if !is_crowded => {
                slot[KEY..].iter().zip(key).for_each(|(word, k)| set(word, *k));
                set(&slot[LAST], now as u64);
                set(&slot[META], held);
            }
            _ => set(&bucket[CROWDED], crowded.max(now as u64)),
        }
        None
    }
}

/// Waits for a lock and takes it.
pub(super) fn lock(word: &AtomicU64) {
    let mut spins = 0;
    while word.swap(1, Ordering::Acquire) != 0 {
        spins += 1;
        match spins < SPINS {
            true => std::hint::spin_loop(),
            false => std::thread::yield_now(),
        }
    }
}
