//! A set of 64-bit words: open addressing over the words themselves, so that a look-up costs one
//! cache miss. Look-ups go a batch at a time, and a set grows a few slots at a time.

use crate::limits::INDEX_START;
use crate::pages::Words;
use crate::processor::prefetch;
use crate::table::hash;
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
    /// Times in a row that it was cleared nearly empty.
    small: u32,
}

impl WordSet {
    /// An empty set for `max` words at most.
    pub(super) fn new(max: u64) -> WordSet {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let (slots, old) = (Words::zeroed(INDEX_START), Words::new());
        WordSet { slots, old, moved: 0, used: 0, max, small: 0 }
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
                let mut at = home(!slot, self.slots.len());
                while self.slots[at] != 0 {
                    at = (at + 1) & (self.slots.len() - 1);
                }
                self.slots[at] = slot;
            }
        }
        self.moved = end;
        if end == self.old.len() {
            (self.old, self.moved) = (Words::new(), 0);
        }
    }

    /// Adds at most [`BATCH`] words and calls `new` with each that was not there. Returns how many
    /// found no room.
    #[inline(always)]
    pub(super) fn add(&mut self, words: &[u64], mut new: impl FnMut(u64)) -> u64 {
        self.reserve(words.len());
        if !self.old.is_empty() {
            self.move_old(MOVED);
        }
        let mut homes = [0u32; BATCH];
        for (at, &word) in homes.iter_mut().zip(words) {
            *at = home(word, self.slots.len()) as u32;
            prefetch(&self.slots, *at as usize);
        }
        let (mut refused, slots) = (0, &mut self.slots[..]);
        let mask = slots.len() - 1;
        for (&home, &word) in homes.iter().zip(words) {
            let mut at = home as usize & mask;
            loop {
                let slot = slots[at];
                if slot == !word {
                    break;
                }
                if slot == 0 {
                    if !self.old.is_empty() && holds(&self.old, word) {
                        break;
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
        refused
    }

    /// Forgets all words. Keeps the memory, unless it was far too much for some time.
    pub(super) fn clear(&mut self) {
        let small = self.used * 32 < self.slots.len() && self.slots.len() > INDEX_START;
        self.small = if small { self.small + 1 } else { 0 };
        self.used = 0;
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
fn home(word: u64, slots: usize) -> usize {
    (hash([word]) >> 32) as usize & (slots - 1)
}

/// Whether a word is among these slots.
fn holds(slots: &[u64], word: u64) -> bool {
    let mut at = home(word, slots.len());
    while slots[at] != 0 && slots[at] != !word {
        at = (at + 1) & (slots.len() - 1);
    }
    slots[at] != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_full_set_refuses_new_words_only() {
        let mut set = WordSet::new(2);
        let mut new = Vec::new();
        assert_eq!(set.add(&[0, 7, 8, 7, 9], |w| new.push(w)), 2);
        assert_eq!((new, set.len()), (vec![0, 7], 2));
    }

    #[test]
    fn growing_goes_by_and_by() {
        let mut set = WordSet::new(u64::MAX);
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
        let mut set = WordSet::new(u64::MAX);
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
            let (mut set, mut model) = (WordSet::new(u64::MAX), BTreeSet::new());
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
