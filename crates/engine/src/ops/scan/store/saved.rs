//! The keys of a store in a checkpoint: their parts, the time and the number of their last rows,
//! and their words.

use super::{GONE, LAST, META, MODE_BITS, Store};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::key::{KeyPart, PACKED_WORDS_MAX, Pool};

impl Store {
    /// Saves all keys of these parts, or restores them; the numbers of their last rows are below
    /// `rows`. `more` passes the parts of a key's state that its words do not hold themselves.
    pub(in crate::ops::scan) fn pass_state(
        &mut self,
        at: &mut Checkpoint<'_>,
        (parts, texts): (&[KeyPart], &mut Pool),
        rows: u64,
        mut more: impl FnMut(&mut [u64], &mut Checkpoint<'_>) -> Passed,
    ) -> Passed {
        let (key_words, stride) = (self.layout.words, self.stride);
        let n = at.len(self.live())?;
        let (mut bytes, mut cells) = (Vec::new(), vec![0; stride - key_words]);
        if !at.restores() {
            let live = (0..self.rows).filter(|&row| self.age(row).is_some());
            return live.into_iter().try_for_each(|row| {
                let words = &self.words[row * stride..][..stride];
                bytes.clear();
                self.layout.write_parts(parts, &words[..key_words], texts, &mut bytes);
                at.bytes(&mut bytes)?;
                cells.copy_from_slice(&words[key_words..]);
                at.words(&mut cells)?;
                more(&mut cells, at)
            });
        }
        let mut key = [0; PACKED_WORDS_MAX];
        let key = &mut key[..key_words];
        for _ in 0..n {
            at.bytes(&mut bytes)?;
            self.layout.read_key(parts, texts, &bytes, key)?;
            at.words(&mut cells)?;
            more(&mut cells, at)?;
            if cells[META] & GONE != 0 || cells[META] >> MODE_BITS >= rows {
                return Err(BadState("a key had no row"));
            }
            self.restore(key, &cells)?;
        }
        self.sweep.oldest_of_turn = self.sweep.oldest;
        Ok(())
    }

    /// Adds a key with its words, which is not there.
    fn restore(&mut self, key: &[u64], cells: &[u64]) -> Passed {
        let (stride, row) = (self.stride, self.rows);
        self.index.reserve(1);
        let hash = self.index.hash_key().hash(key.iter().copied());
        let words = &self.words[..];
        let place = self.index.find(hash, |row| words[row as usize * stride..].starts_with(key));
        let Err(place) = place else { return Err(BadState("a key comes twice")) };
        self.index.insert(place, hash, row as u32);
        let words = self.words.extend(stride, self.limit);
        words[..key.len()].copy_from_slice(key);
        words[key.len()..].copy_from_slice(cells);
        self.rows += 1;
        self.sweep.oldest = self.sweep.oldest.min(cells[LAST] as i64);
        Ok(())
    }
}
