//! The keys of a batch, and their hashes.

use super::HashKey;
use weir_packet::limits::BATCH;

/// The words of the keys of a batch, by word: `words[w][j]` is word `w` of key `j`.
#[derive(Debug)]
pub(crate) struct Keys {
    /// One plane per word.
    pub words: Vec<[u64; BATCH]>,
    /// The hash of each key, ...
    pub hashes: Box<[u64; BATCH]>,
    /// ... and what the hashes were made with.
    pub hash_key: HashKey,
    /// How many keys.
    pub len: usize,
}

impl Keys {
    /// Room for a batch of keys of that many words.
    pub(crate) fn new(words: usize) -> Keys {
        Keys {
            words: vec![[0; BATCH]; words],
            hashes: Box::new([0; BATCH]),
            hash_key: HashKey::new(0, 0),
            len: 0,
        }
    }

    /// Computes the hashes from the words.
    pub(crate) fn hash(&mut self, key: HashKey) {
        self.hash_with(key, |_| {});
    }

    /// Computes the hashes from the words and hands out each.
    #[inline(always)]
    pub(super) fn hash_with(&mut self, key: HashKey, each: impl Fn(u64)) {
        self.hash_key = key;
        match self.words.len() {
            // The one key without words.
            0 => {
                let hash = key.hash(std::iter::empty());
                self.hashes[..self.len.min(BATCH)].fill(hash);
                each(hash);
            }
            1 => self.hash_fixed::<1>(key, each),
            2 => self.hash_fixed::<2>(key, each),
            5 => self.hash_fixed::<5>(key, each),
            _ => {
                for j in 0..self.len {
                    self.hashes[j] = key.hash(self.words.iter().map(|w| w[j]));
                    each(self.hashes[j]);
                }
            }
        }
    }

    #[inline(always)]
    fn hash_fixed<const W: usize>(&mut self, key: HashKey, each: impl Fn(u64)) {
        let words: &[[u64; BATCH]; W] = self.words[..].try_into().expect("so many words");
        for (j, h) in self.hashes[..self.len.min(BATCH)].iter_mut().enumerate() {
            *h = key.hash((0..W).map(|w| words[w][j]));
            each(*h);
        }
    }
}
