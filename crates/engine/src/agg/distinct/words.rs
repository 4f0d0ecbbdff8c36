//! A set of 64-bit words: open addressing over the words themselves, so that a look-up costs one
//! cache miss. Look-ups go a batch at a time, and a set grows a few slots at a time. Where a run of
//! slots is longer than chance makes it, the set draws a new [`HashKey`].

use crate::limits::{INDEX_START, RUN_MAX};
use crate::pages::Words;
use crate::processor::prefetch;
use crate::table::HashKey;
use weir_packet::limits::BATCH;

/// Times in a row that a set may be cleared nearly empty before it gives memory back.
const SMALL_MAX: u32 = 16;

/// Slots of a set that has grown which are moved before each batch: so few that no batch waits,
/// and so many that all are moved before it grows again.
const MOVED: usize = 1024;

/// Words other than `u64::MAX`.
pub(super) struct WordSet {
    /// Complements of the words, so that 0 is an empty slot.
    slots: Words,
    /// The slots before the set grew, as long as some were not moved; those that were moved stay
    /// there too.
    old: Words,
    /// How many of the old slots were moved.
    moved: usize,
    /// Words in the set.
    used: usize,
    max: usize,
    key: HashKey,
    /// Whether a search for a word ended more than [`RUN_MAX`] slots from its home.
    crowded: bool,
    /// Times in a row that it was cleared nearly empty.
    small: u32,
}

impl WordSet {
    /// An empty set for `max` words at most.
    pub(super) fn new(max: u64, key: HashKey) -> WordSet {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let (slots, old) = (Words::zeroed(INDEX_START), Words::new());
        WordSet { slots, old, moved: 0, used: 0, max, key, crowded: false, small: 0 }
    }

    /// Changes how many words there may be; returns how many it were before.
    pub(super) fn set_max(&mut self, max: usize) -> usize {
        std::mem::replace(&mut self.max, max)
    }

    /// The memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        8 * (self.slots.len() + self.old.len())
    }

    /// How many words there are.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// All words, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let all = self.slots.iter().chain(&self.old[self.moved..]);
        all.filter(|s| **s != 0).map(|s| !s)
    }

    /// Makes room for `more` words. Three slots of five are used at most.
    pub(super) fn reserve(&mut self, more: usize) {
        if (self.used + more) * 5 > self.slots.len() * 3 {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let words = (self.used + more).max(self.used * 2);
        let bigger = Words::zeroed((words * 5).div_ceil(3).next_power_of_two());
        self.move_old(usize::MAX);
        self.old = std::mem::replace(&mut self.slots, bigger);
        self.moved = 0;
    }

    /// Moves up to `n` of the old slots.
    #[cold]
    fn move_old(&mut self, n: usize) {
        let end = self.old.len().min(self.moved.saturating_add(n));
        for i in self.moved..end {
            let slot = self.old[i];
            if slot != 0 {
                self.crowded |= store(&mut self.slots, slot, self.key) > RUN_MAX;
            }
        }
        self.moved = end;
        if end == self.old.len() {
            (self.old, self.moved) = (Words::new(), 0);
        }
    }

    /// Finds all words by a new key from now on.
    #[cold]
    fn rekey(&mut self) {
        let (mut slots, key) = (Words::zeroed(self.slots.len()), HashKey::random());
        self.iter().for_each(|word| {
            store(&mut slots, !word, key);
        });
        (self.slots, self.key, self.crowded) = (slots, key, false);
        (self.old, self.moved) = (Words::new(), 0);
    }

    /// Adds at most [`BATCH`] words and calls `new` with each that was not there. Returns how many
    /// found no room.
    #[inline(always)]
    pub(super) fn add(&mut self, words: &[u64], mut new: impl FnMut(u64)) -> u64 {
        if self.crowded {
            self.rekey();
        }
        self.reserve(words.len());
        if !self.old.is_empty() {
            self.move_old(MOVED);
        }
        let (key, mut longest) = (self.key, 0);
        let mut homes = [0u32; BATCH];
        for (at, &word) in homes.iter_mut().zip(words) {
            *at = home(word, self.slots.len(), key) as u32;
            prefetch(&self.slots, *at as usize);
        }
        let (mut refused, slots) = (0, &mut self.slots[..]);
        let mask = slots.len() - 1;
        for (&home, &word) in homes.iter().zip(words) {
            let mut at = home as usize & mask;
            loop {
                #[cfg(test)]
                crate::table::probes::count(1);
                let slot = slots[at];
                if slot == !word {
                    break;
                }
                if slot == 0 {
                    longest = longest.max(at.wrapping_sub(home as usize) & mask);
                    if !self.old.is_empty() {
                        let (found, way) = holds(&self.old, word, key);
                        longest = longest.max(way);
                        if found {
                            break;
                        }
                    }
                    if self.used < self.max {
                        slots[at] = !word;
                        self.used += 1;
                        new(word);
                    } else {
                        refused += 1;
                    }
                    break;
                }
                at = (at + 1) & mask;
            }
        }
        self.crowded |= longest > RUN_MAX;
        refused
    }

    /// Forgets all words. Keeps the memory, unless it was far too much for some time.
    pub(super) fn clear(&mut self) {
        let small = self.used * 32 < self.slots.len() && self.slots.len() > INDEX_START;
        self.small = if small { self.small + 1 } else { 0 };
        (self.used, self.crowded) = (0, false);
        (self.old, self.moved) = (Words::new(), 0);
        if self.small > SMALL_MAX {
            self.slots = Words::zeroed((self.slots.len() / 8).max(INDEX_START));
            self.small = 0;
        } else {
            self.slots.fill(0);
        }
    }
}

/// The slot of `slots` at which the search for a word begins.
#[inline(always)]
fn home(word: u64, slots: usize, key: HashKey) -> usize {
    (key.hash([word]) >> 32) as usize & (slots - 1)
}

/// Whether a word is among these slots, and how many slots from its home the search ended.
fn holds(slots: &[u64], word: u64, key: HashKey) -> (bool, usize) {
    let home = home(word, slots.len(), key);
    let mut at = home;
    while slots[at] != 0 && slots[at] != !word {
        at = (at + 1) & (slots.len() - 1);
    }
    let way = at.wrapping_sub(home) & (slots.len() - 1);
    #[cfg(test)]
    crate::table::probes::count(way + 1);
    (slots[at] != 0, way)
}

/// Stores a slot's content that is not there; returns how many slots from its home.
fn store(slots: &mut [u64], slot: u64, key: HashKey) -> usize {
    let (home, mask) = (home(!slot, slots.len(), key), slots.len() - 1);
    let mut at = home;
    while slots[at] != 0 {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
    let way = at.wrapping_sub(home) & mask;
    #[cfg(test)]
    crate::table::probes::count(way + 1);
    way
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_full_set_refuses_new_words_only() {
        let mut set = WordSet::new(2, HashKey::random());
        let mut new = Vec::new();
        assert_eq!(set.add(&[0, 7, 8, 7, 9], |w| new.push(w)), 2);
        assert_eq!((new, set.len()), (vec![0, 7], 2));
    }

    /// The cost of adding words, twice each, in looks at slots.
    fn cost(words: &[u64], key: HashKey) -> usize {
        let mut set = WordSet::new(u64::MAX, key);
        let all: BTreeSet<u64> = words.iter().copied().collect();
        let probes = crate::table::probes::during(|| {
            for words in [words, words].concat().chunks(BATCH) {
                set.add(words, |_| {});
            }
        });
        assert!(set.len() == all.len() && set.iter().collect::<BTreeSet<_>>() == all);
        probes
    }

    #[test]
    fn words_made_to_collide_do_not_crowd() {
        let hash = |word: u64| HashKey::KNOWN.hash([word]);
        let of_one_home = |word: &u64| hash(*word) >> 32 & 0xfff == 0x5a5;
        let attack: Vec<u64> = (0..).filter(of_one_home).take(2048).collect();
        let usual = cost(&(0..2048).map(hash).collect::<Vec<_>>(), HashKey::new(3, 0x1b873593));
        let known = cost(&attack, HashKey::KNOWN);
        let bound = 2 * (RUN_MAX + BATCH) * (RUN_MAX + BATCH);
        assert!(known > usual + RUN_MAX * RUN_MAX / 4, "no attack: {known} to {usual}");
        assert!(known <= 3 * usual + bound, "{known} under a known key, else {usual}");
        for _ in 0..5 {
            let unknown = cost(&attack, HashKey::random());
            assert!(unknown <= 3 * usual, "{unknown} under an unknown key, else {usual}");
        }
    }

    #[test]
    fn growing_goes_by_and_by() {
        let mut set = WordSet::new(u64::MAX, HashKey::random());
        let mut growing = 0;
        for from in (0..200_000u64).step_by(BATCH / 2) {
            // Half of each batch came before.
            let words: Vec<u64> = (from..from + BATCH as u64).map(|w| w * 7).collect();
            let mut new = 0;
            assert_eq!(set.add(&words, |_| new += 1), 0);
            assert_eq!(new, if from == 0 { BATCH } else { BATCH / 2 });
            growing += !set.old.is_empty() as u32;
            if from % 4096 == 0 {
                let all: BTreeSet<u64> = set.iter().collect();
                assert_eq!((all.len(), set.iter().count()), (set.len(), set.len()));
            }
        }
        assert!(growing > 100, "{growing} batches met a set that was growing");
    }

    #[test]
    fn a_burst_is_given_back() {
        let mut set = WordSet::new(u64::MAX, HashKey::random());
        for from in (0..100_000).step_by(BATCH) {
            set.add(&(from..from + BATCH as u64).collect::<Vec<_>>(), |_| {});
        }
        set.clear();
        let burst = set.slots.len();
        for round in 0..200 {
            assert_eq!(set.add(&[1, 2], |_| {}), 0, "round {round}");
            assert_eq!(set.len(), 2);
            set.clear();
        }
        assert!(set.slots.len() * 100 < burst, "{} of {burst}", set.slots.len());
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            batches in proptest::collection::vec(
                proptest::collection::vec(0u64..3000, 1..BATCH), 1..12),
            cleared: usize,
        ) {
            let (mut set, mut model) = (WordSet::new(u64::MAX, HashKey::random()), BTreeSet::new());
            for (b, batch) in batches.iter().enumerate() {
                if b == cleared % 16 {
                    set.clear();
                    model.clear();
                }
                let mut new = Vec::new();
                prop_assert_eq!(set.add(batch, |w| new.push(w)), 0);
                let expected: Vec<u64> =
                    batch.iter().copied().filter(|w| model.insert(*w)).collect();
                prop_assert_eq!(new, expected);
                prop_assert_eq!(set.iter().collect::<BTreeSet<_>>(), model.clone());
                prop_assert_eq!(set.len(), model.len());
            }
        }
    }
}
