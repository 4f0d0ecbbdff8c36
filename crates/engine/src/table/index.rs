//! From hash to row number: open addressing with linear probing.
//!
//! A slot is `tag | row + 1`, the tag being the high half of the hash, from whose highest bits the
//! position comes too: so a slot's content is enough to move it, and slots keep their order when
//! the index doubles. Slots lie four by four, their tags first, so that four are compared at once.
//! There is no way around from the last slot to the first; the last run has room to grow instead. A
//! large index does not move at once but a few slots a batch: until it is done there are two, and a
//! hash is looked for in the one or the other, never in both.
//!
//! Linear probing bounds no run of slots, but chance does: only somebody who knows the [`HashKey`]
//! makes one of more than [`RUN_MAX`]. An index notes that it met such a run. Its owner, who has
//! the keys of the rows, then [gives it another key](Index::rekey), between two batches: hashes at
//! hand are those of the old key.

#[cfg(any(test, fuzzing))]
#[path = "index/tests/forced.rs"]
mod forced;
#[cfg(test)]
#[path = "index/tests/probes.rs"]
pub(crate) mod probes;

use super::HashKey;
use crate::limits::{INDEX_START, MOVE_SLOTS, REBUILD_MAX, RUN_MAX};
use crate::pages::Words;
use crate::processor::{equal, prefetch};
use weir_packet::limits::BATCH;

/// No row: the key is new and the table is full.
pub(crate) const NO_ROW: u32 = u32::MAX;

const TAG: u64 = 0xffff_ffff_0000_0000;

/// Slots from a home on that are looked at without asking whether that is needed. Homes are so many
/// slots apart that these do not overlap and lie in one cache line: few keys stand farther away.
const LIKELY: usize = 4;

/// Slots behind the last home, and how many are added when few are left.
const TAIL: usize = 16;

/// An index from hashes to row numbers.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    slots: Slots,
    used: usize,
    moving: Option<Moving>,
    key: HashKey,
    /// The longest way from a home to an empty slot that is taken for chance.
    run_max: usize,
    /// Whether a longer one was met.
    crowded: bool,
}

/// A power of two of slots, and behind them room for the last run, which ends in an empty slot like
/// all others.
#[derive(Clone, Debug)]
struct Slots {
    /// As many as there are slots, a slot's two halves in two places: see [`halves`].
    words: Words,
    /// How many there are without that room.
    size: usize,
}

/// An index half the size whose contents are on the way to the larger one.
#[derive(Clone, Debug)]
struct Moving {
    from: Slots,
    /// An empty slot, so that no run is torn: hashes at home before it stand in the larger index,
    /// the others here.
    done: usize,
}

/// An empty slot found by [`Index::find`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vacant {
    at: usize,
    moving: bool,
    /// Slots from the home of its hash to it, but for those of its four.
    way: usize,
}

/// Four slots: their tags, then their rows.
type Near = [u32; 2 * LIKELY];

/// Where the two halves of a slot stand, the tag and the row.
#[inline(always)]
fn halves(at: usize) -> (usize, usize) {
    let tag = at / LIKELY * 2 * LIKELY + at % LIKELY;
    (tag, tag + LIKELY)
}

/// The tags and the rows of four slots.
#[inline(always)]
fn parts(&[a, b, c, d, e, f, g, h]: &Near) -> [[u32; LIKELY]; 2] {
    [[a, b, c, d], [e, f, g, h]]
}

/// Which four of `size` slots a hash is at home in: its high half as a fraction of the whole, since
/// a shift by a variable takes longer.
#[inline(always)]
fn bucket(hash: u64, size: usize) -> usize {
    (((hash >> 32) * (size / LIKELY) as u64) >> 32) as usize
}

/// The row of the first of four slots with a hash's tag. Where none has it, it is some row or
/// [`NO_ROW`]: who asks compares keys anyhow.
#[inline(always)]
fn likely(near: &Near, hash: u64) -> u32 {
    let [tags, _] = parts(near);
    let alike = equal(tags, (hash >> 32) as u32);
    // Read in place, since `parts` would copy the rows; the remainder spares a check of bounds.
    let first = (alike | 1 << (LIKELY - 1)).trailing_zeros() as usize % LIKELY;
    near[LIKELY + first].wrapping_sub(1)
}

/// Fetches slots of an [`Index`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefetcher<'a> {
    near: &'a [Near],
    size: usize,
}

impl Prefetcher<'_> {
    /// Fetches the slot of a hash into the cache. While the index moves it may be another.
    #[inline(always)]
    pub(crate) fn prefetch(self, hash: u64) {
        prefetch(self.near, bucket(hash, self.size));
    }
}

impl Slots {
    fn new(size: usize) -> Slots {
        Slots { words: Words::zeroed(size + TAIL), size }
    }

    /// The slot where a hash is at home.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        bucket(hash, self.size) * LIKELY
    }

    /// How many slots there are, with the room behind the last home.
    fn len(&self) -> usize {
        self.words.len()
    }

    /// The word in a slot; 0 in an empty one.
    #[inline(always)]
    fn slot(&self, at: usize) -> u64 {
        let (tag, row) = halves(at);
        let words = self.words.halves();
        u64::from(words[tag]) << 32 | u64::from(words[row])
    }

    /// Overwrites a slot.
    #[inline(always)]
    fn set(&mut self, at: usize, slot: u64) {
        let (tag, row) = halves(at);
        let words = self.words.halves_mut();
        (words[tag], words[row]) = ((slot >> 32) as u32, slot as u32);
    }

    /// Puts a slot's content in an empty slot, behind which there is another.
    #[inline(always)]
    fn put(&mut self, at: usize, slot: u64) {
        self.set(at, slot);
        if at + TAIL / 2 > self.words.len() {
            self.words.extend(TAIL, 0).fill(0);
        }
    }

    /// Adds a slot's content that is not there; returns how far from its home.
    fn add(&mut self, slot: u64) -> usize {
        let home = self.home(slot);
        let mut at = home;
        while self.slot(at) != 0 {
            at += 1;
        }
        #[cfg(test)]
        probes::count((at - home) / LIKELY + 1);
        self.put(at, slot);
        at - home
    }

    /// The row of a hash for which `same` holds; or the first empty slot after its home, and how
    /// far from there.
    #[inline(always)]
    fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Result<u32, (usize, usize)> {
        let (first, near) = (bucket(hash, self.size), self.near());
        // Some slot behind the last home is empty.
        for (four, slots) in (first..).zip(&near[first..]) {
            #[cfg(test)]
            probes::count(1);
            let [tags, rows] = parts(slots);
            let mut alike = equal(tags, (hash >> 32) as u32);
            while alike != 0 {
                let row = rows[alike.trailing_zeros() as usize].wrapping_sub(1);
                if row != NO_ROW && same(row) {
                    return Ok(row);
                }
                alike &= alike - 1;
            }
            let empty = equal(rows, 0);
            if empty != 0 {
                let at = four * LIKELY + empty.trailing_zeros() as usize;
                return Err((at, (four - first) * LIKELY));
            }
        }
        unreachable!("a run of slots ends in an empty one")
    }

    /// The slots, as many as have the same home at a time.
    #[inline(always)]
    fn near(&self) -> &[Near] {
        self.words.halves().as_chunks().0
    }

    #[inline(always)]
    fn likely(&self, hash: u64) -> u32 {
        likely(&self.near()[bucket(hash, self.size)], hash)
    }

    /// Removes a row, closing the gap it leaves in its run of slots. Returns how far from its home
    /// the run ends, or `None` if the row was not there.
    fn remove(&mut self, hash: u64, row: u32) -> Option<usize> {
        let home = self.home(hash);
        let mut at = home;
        while self.slot(at) as u32 != row.wrapping_add(1) {
            if self.slot(at) == 0 {
                return None;
            }
            at += 1;
        }
        let mut next = at + 1;
        while self.slot(next) != 0 {
            // A slot may move back as far as its home.
            if self.home(self.slot(next)) <= at {
                self.set(at, self.slot(next));
                at = next;
            }
            next += 1;
        }
        self.set(at, 0);
        #[cfg(test)]
        probes::count((next - home) / LIKELY + 1);
        Some(next - home)
    }
}

impl Moving {
    /// Whether a hash was at home among the slots that have moved.
    #[inline(always)]
    fn is_past(&self, hash: u64) -> bool {
        self.from.home(hash) < self.done
    }

    /// Moves some slots, and on to the end of their run. Returns whether all have moved.
    fn step(&mut self, slots: usize, into: &mut Slots) -> bool {
        let before = self.done;
        while self.done < self.from.len() {
            let slot = self.from.slot(self.done);
            if slot != 0 {
                into.add(slot);
            } else if self.done - before >= slots {
                break;
            }
            self.done += 1;
        }
        // The memory goes back to the kernel a large piece at a time: all at once would take long.
        const PIECE: usize = 1 << 18;
        for piece in before / PIECE..self.done / PIECE {
            self.from.words.release(piece * PIECE..(piece + 1) * PIECE);
        }
        self.done >= self.from.len()
    }
}

impl Index {
    /// An empty index for hashes made with this key.
    pub(crate) fn new(key: HashKey) -> Index {
        let slots = Slots::new(INDEX_START);
        Index { slots, used: 0, moving: None, key, run_max: RUN_MAX, crowded: false }
    }

    /// The key that hashes are made with.
    #[inline(always)]
    pub(crate) fn hash_key(&self) -> HashKey {
        self.key
    }

    /// Whether a run of slots is longer than chance makes them, so that the index should get
    /// [another key](Index::rekey).
    #[inline(always)]
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Begins anew, for hashes made with another key. `rows` are all rows, with those hashes.
    ///
    /// Hashes of keys that are not made with the key, as applications may have them, crowd as
    /// before: then longer runs are taken for chance, so that this is done a few times, not again
    /// and again.
    #[cold]
    pub(crate) fn rekey(&mut self, key: HashKey, rows: impl Iterator<Item = (u32, u64)>) {
        let size = self.slots.size;
        (self.moving, self.used) = (None, 0);
        if size > REBUILD_MAX {
            // Never two of them at once.
            self.slots.words = Words::new();
            self.slots = Slots::new(size);
        } else {
            self.slots.words.fill(0);
        }
        (self.key, self.crowded) = (key, false);
        for (row, hash) in rows {
            let way = self.slots.add(hash & TAG | (row as u64 + 1));
            self.used += 1;
            while way > self.run_max {
                self.run_max *= 2;
            }
        }
    }

    /// Notes how far it was to a place, as [`Index::insert`] does.
    #[inline(always)]
    pub(crate) fn note(&mut self, place: Vacant) {
        self.crowded |= place.way > self.run_max;
    }

    /// Makes room for `more` rows, so that these can be added without growing.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.moving.is_some() || slots_for(self.used + more) > self.slots.size {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        if let Some(moving) = &mut self.moving {
            // Eight slots for each new row: done long before the larger index is full, too.
            if moving.step(MOVE_SLOTS.max(more.saturating_mul(8)), &mut self.slots) {
                self.moving = None;
            }
        }
        let (size, before) = (slots_for(self.used + more), self.slots.size);
        if size <= before {
            return;
        }
        let mut old = std::mem::replace(&mut self.slots, Slots::new(size));
        if self.moving.is_none() && size == before * 2 && before > REBUILD_MAX {
            self.moving = Some(Moving { from: old, done: 0 });
            return;
        }
        if let Some(mut moving) = self.moving.take() {
            moving.step(usize::MAX, &mut old);
        }
        let slots = (0..old.len()).map(|at| old.slot(at)).filter(|slot| *slot != 0);
        for slot in slots {
            self.slots.add(slot);
        }
    }

    /// Fetches the slot of a hash into the cache.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.prefetcher().prefetch(hash);
    }

    /// The prefetcher of slots, to be kept at hand in a loop.
    #[inline(always)]
    pub(crate) fn prefetcher(&self) -> Prefetcher<'_> {
        Prefetcher { near: self.slots.near(), size: self.slots.size }
    }

    /// The row whose tag agrees with the hash near its home: the likely answer, to be prefetched
    /// and compared. [`NO_ROW`] where there is none.
    #[inline(always)]
    pub(crate) fn candidate(&self, hash: u64) -> Option<u32> {
        let row = match &self.moving {
            Some(moving) if !moving.is_past(hash) => moving.from.likely(hash),
            _ => self.slots.likely(hash),
        };
        (row != NO_ROW).then_some(row)
    }

    /// For each hash [`Index::candidate`], [`NO_ROW`] where there is none; `each` is told it too.
    #[inline(always)]
    pub(crate) fn likely(&self, hashes: &[u64], rows: &mut [u32; BATCH], each: impl Fn(u32)) {
        if self.moving.is_some() {
            self.likely_while_moving(hashes, rows);
            rows[..hashes.len().min(BATCH)].iter().for_each(|&row| each(row));
            return;
        }
        let (near, size) = (self.slots.near(), self.slots.size);
        for (&hash, row) in hashes.iter().zip(rows) {
            *row = likely(&near[bucket(hash, size)], hash);
            each(*row);
        }
    }

    #[inline(never)]
    fn likely_while_moving(&self, hashes: &[u64], rows: &mut [u32; BATCH]) {
        for (&hash, row) in hashes.iter().zip(rows) {
            *row = self.candidate(hash).unwrap_or(NO_ROW);
        }
    }

    /// The row for which `same` holds among those of this hash, or the place for a new one.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, same: impl FnMut(u32) -> bool) -> Result<u32, Vacant> {
        match &self.moving {
            Some(moving) if !moving.is_past(hash) => {
                let found = moving.from.find(hash, same);
                found.map_err(|(at, way)| Vacant { at, moving: true, way })
            }
            _ => {
                let found = self.slots.find(hash, same);
                found.map_err(|(at, way)| Vacant { at, moving: false, way })
            }
        }
    }

    /// Puts a row at the place that [`Index::find`] gave, right after it did.
    #[inline(always)]
    pub(crate) fn insert(&mut self, place: Vacant, hash: u64, row: u32) {
        self.note(place);
        let slots = match &mut self.moving {
            Some(moving) if place.moving => &mut moving.from,
            _ => &mut self.slots,
        };
        slots.put(place.at, hash & TAG | (row as u64 + 1));
        self.used += 1;
    }

    /// Removes a row, if it is there.
    pub(crate) fn remove(&mut self, hash: u64, row: u32) {
        let slots = match &mut self.moving {
            Some(moving) if !moving.is_past(hash) => &mut moving.from,
            _ => &mut self.slots,
        };
        if let Some(way) = slots.remove(hash, row) {
            self.used -= 1;
            self.crowded |= way > self.run_max;
        }
    }

    /// Becomes a copy of another index.
    pub(super) fn copy_from(&mut self, other: &Index) {
        let Index { slots, used, moving, key, run_max, crowded } = other;
        if self.slots.words.len() == slots.words.len() {
            self.slots.words.copy_from_slice(&slots.words);
            self.slots.size = slots.size;
        } else {
            self.slots = slots.clone();
        }
        self.moving.clone_from(moving);
        (self.used, self.key, self.run_max, self.crowded) = (*used, *key, *run_max, *crowded);
    }

    /// Forgets all rows; keeps the memory, unless far less of it would do.
    pub(crate) fn clear(&mut self) {
        let size = self.slots.size;
        if size > REBUILD_MAX && slots_for(self.used) < size / 4 {
            self.slots = Slots::new(slots_for(self.used));
        } else {
            self.slots.words.fill(0);
        }
        (self.moving, self.used) = (None, 0);
        (self.run_max, self.crowded) = (RUN_MAX, false);
    }
}

/// Slots for so many rows: at most five in eight are used.
fn slots_for(rows: usize) -> usize {
    (rows.saturating_mul(8) / 5 + 1).next_power_of_two().max(INDEX_START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Hashes of rows, few of which share a home: spread over the whole range.
    fn hash(i: u32) -> u64 {
        u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn rows_stay_reachable_while_a_large_index_moves() {
        let n = if cfg!(miri) { 300 } else { 200_000 };
        let (mut index, mut moved) = (Index::new(HashKey::KNOWN), false);
        for i in 0..n {
            index.reserve(1);
            moved |= index.moving.is_some();
            let place = index.find(hash(i), |row| row == i).unwrap_err();
            index.insert(place, hash(i), i);
            // One that is new, one from long ago, and one in between that goes.
            for j in [i, i / 2, i / 7] {
                let gone = j % 3 == 0 && j < i / 5;
                assert_eq!(index.find(hash(j), |row| row == j).is_err(), gone, "{j} after {i}");
            }
            if i % 5 == 4 && i / 5 % 3 == 0 {
                index.remove(hash(i / 5), i / 5);
            }
        }
        assert!(moved || cfg!(miri));
        let kept = (0..n).filter(|&j| index.find(hash(j), |row| row == j).is_ok()).count();
        assert_eq!(kept, index.used);
        index.clear();
        assert!((0..n).all(|j| index.find(hash(j), |row| row == j).is_err()));
    }

    proptest! {
        /// Few homes, at the end above all, so that runs are long and reach beyond it.
        #[test]
        fn behaves_like_a_map(
            steps in proptest::collection::vec((0u32..60, 0u8..4), 1..if cfg!(miri) { 60 } else { 400 }),
            size in 3u32..8,
        ) {
            let slots = Slots::new(1 << size);
            let mut index = Index { slots, ..Index::new(HashKey::KNOWN) };
            let mut model = BTreeMap::new();
            for (row, step) in steps {
                let home = u64::from(row % 24 * (row % 3));
                let hash = home.wrapping_neg() << 56 | u64::from(row) << 32;
                match step {
                    0 => {
                        index.remove(hash, row);
                        model.remove(&(hash, row));
                    }
                    1 if index.moving.is_none() && index.used > 0 => {
                        // Starts to move, however small it is.
                        let bigger = Slots::new(index.slots.size * 2);
                        let from = std::mem::replace(&mut index.slots, bigger);
                        index.moving = Some(Moving { from, done: 0 });
                    }
                    2 => {
                        if let Some(moving) = &mut index.moving
                            && moving.step(3, &mut index.slots)
                        {
                            index.moving = None;
                        }
                    }
                    _ => {
                        if let Err(place) = index.find(hash, |r| r == row) {
                            index.insert(place, hash, row);
                            model.insert((hash, row), ());
                        }
                    }
                }
                for &(hash, row) in model.keys() {
                    prop_assert_eq!(index.find(hash, |r| r == row).ok(), Some(row));
                }
                prop_assert_eq!(index.used, model.len());
            }
        }
    }
}
