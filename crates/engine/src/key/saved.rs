//! Keys in a checkpoint.

use super::bytes::read_parts;
use super::{KeyPart, Layout, PACKED_WORDS_MAX, Pool};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::table::{Keys, NO_ROW, Table};
use weir_packet::limits::BATCH;

impl Layout {
    /// Packs a key of these bytes, all of which belong to it.
    pub(crate) fn read_key(
        &self,
        parts: &[KeyPart],
        texts: &mut Pool,
        mut bytes: &[u8],
        key: &mut [u64],
    ) -> Passed {
        let mut raws = Vec::new();
        let narrow = read_parts(parts, texts, &mut bytes, &mut raws);
        if !bytes.is_empty() || !narrow.is_some_and(|narrow| narrow || !self.narrow) {
            return Err(BadState("a key is none"));
        }
        self.pack_one(&raws, key);
        Ok(())
    }
}

/// Passes the keys of all rows of a table, in the order of the rows. The keys that are restored
/// have the cells of `fresh`.
pub(crate) fn pass_keys(
    at: &mut Checkpoint<'_>,
    (table, fresh): (&mut Table, &[u64]),
    (layout, parts): (&Layout, &[KeyPart]),
    texts: &mut Pool,
) -> Passed {
    let n = at.len(table.len())?;
    let mut bytes = Vec::new();
    if !at.restores() {
        return (0..n as u32).try_for_each(|row| {
            bytes.clear();
            layout.write_parts(parts, table.key(row), texts, &mut bytes);
            at.bytes(&mut bytes)
        });
    }
    let (mut keys, mut key) = (Keys::new(layout.words), [0; PACKED_WORDS_MAX]);
    keys.len = 0;
    for row in 0..n {
        at.bytes(&mut bytes)?;
        let key = &mut key[..layout.words];
        layout.read_key(parts, texts, &bytes, key)?;
        keys.words.iter_mut().zip(&*key).for_each(|(plane, word)| plane[keys.len] = *word);
        keys.len += 1;
        if keys.len == BATCH || row + 1 == n {
            table.lookup_words(&mut keys, fresh, &mut [NO_ROW; BATCH]);
            keys.len = 0;
        }
    }
    if table.len() == n { Ok(()) } else { Err(BadState("a key comes twice")) }
}
