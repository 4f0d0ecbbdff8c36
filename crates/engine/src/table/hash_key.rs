//! The secret that tables hash keys with.
//!
//! Keys of tables are strangers' bytes. With a hash that everybody knows, a sender finds addresses
//! and ports that all fall into one place of a table, and each of its packets costs as much as the
//! table is full. So every run hashes with a key of its own, drawn from the system's random numbers
//! and never shown. No row and no order of rows depends on it.
//!
//! Each word of a key is taken in by a 64 x 64 -> 128 bit multiplication whose halves are folded
//! together by exclusive or, the step of wyhash (Wang Yi, 2019) and of the hashes that follow it
//! (ahash, rapidhash, foldhash). Two things differ. The multiplier is secret as well as the seed:
//! with a known one there are differences `d` for which both halves of `d * multiplier` have high
//! bits of zero, so that keys `d` apart collide whatever the seed is. And the result is multiplied
//! once more: a position is made of the highest bits, and of keys that follow one another (ports,
//! addresses of a network) those of a single product are as uneven as the multiplier makes them,
//! which one random multiplier in a hundred makes bad.
//!
//! **What is promised:** a sender who does not know the key can choose no set of keys that costs
//! more than random ones; tests measure that for the sets that broke the unkeyed hash and for keys
//! in sequence. The top bits of a product with a random odd multiplier are known to be nearly
//! universal (Dietzfelbinger, Hagerup, Katajainen, Penttonen: A Reliable Randomized Algorithm for
//! the Closest-Pair Problem, 1997); of the folded product that is measured, not proven.
//!
//! **What is not:** this is no cryptographic function. Somebody who sees hashes can compute the
//! key, so no hash leaves the run, in rows or in partial results. Somebody who can time single
//! packets to nanoseconds might learn which keys collide. In both cases an index
//! [draws a new key](super::Index::rekey) where its runs are longer than chance makes them.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// A secret seed and a secret multiplier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    seed: u64,
    multiplier: u64,
}

impl HashKey {
    /// A key that nobody knows, of the system's random numbers.
    #[must_use]
    pub fn random() -> HashKey {
        // SipHash under a random key: each draw has another one.
        let state = RandomState::new();
        HashKey::new(state.hash_one(0u64), state.hash_one(1u64))
    }

    /// A known key, for tests that want the same one each time. The lowest bit of the multiplier is
    /// set: an even one would lose bits.
    #[must_use]
    pub const fn new(seed: u64, multiplier: u64) -> HashKey {
        HashKey { seed, multiplier: multiplier | 1 }
    }

    /// A key that everybody knows.
    #[cfg(test)]
    pub(crate) const KNOWN: HashKey = HashKey::new(0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93);

    /// The hash of the words of a key. Both halves are good for a position, their high bits first.
    #[inline(always)]
    pub fn hash(self, words: impl IntoIterator<Item = u64>) -> u64 {
        let HashKey { seed, multiplier } = self;
        let folded = words.into_iter().fold(seed, |h, w| fold(h ^ w, multiplier));
        folded.wrapping_mul(multiplier)
    }

    /// The hash of a text. Texts of different lengths differ in their words too.
    pub(crate) fn hash_text(self, text: &[u8]) -> u64 {
        self.hash(text_words(text))
    }
}

/// The words of a text: eight bytes each, the last filled up with zeros; then its length.
pub(crate) fn text_words(text: &[u8]) -> impl Iterator<Item = u64> {
    let words = text.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.chain([text.len() as u64])
}

/// Both halves of a product, folded together.
#[inline(always)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let m = a as u128 * b as u128;
    m as u64 ^ (m >> 64) as u64
}

/// Shows nothing: what prints options of a run must not tell its secret.
impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}
