//! Any bytes as operations on tables whose keys collide.

use super::{HashKey, Index, Keys, NO_ROW, Table};
use std::collections::BTreeMap;
use weir_packet::limits::BATCH;

/// Hashes of the operations on an index: one home at each end and in the middle, and tags of which
/// some are equal.
const HASHES: [u64; 8] =
    [0, 1 << 32, 1 << 63, (1 << 63) | 1 << 32, u64::MAX, u64::MAX << 32, u64::MAX << 33, 7];

/// Takes each two bytes as one operation on an index, and as a key of a table, whose hashes are few
/// and much alike; a map says what must be found. Panics where something else is.
pub fn fuzz_collide(data: &[u8]) {
    index(data);
    table(data);
}

fn index(data: &[u8]) {
    let mut index = Index::new(HashKey::new(0, 1));
    index.take_for_chance(8);
    // Rows by number, with the number of their hash. A new key turns the hashes.
    let (mut model, mut turn) = (BTreeMap::<u32, u8>::new(), 0u8);
    let hash = |h: u8, turn: u8| HASHES[usize::from(h.wrapping_add(turn)) % HASHES.len()];
    for operation in data.chunks_exact(2) {
        let (row, h) = (u32::from(operation[1]), operation[1] / 7);
        match operation[0] % 8 {
            0 => {
                index.remove(hash(h, turn), row);
                model.remove(&row);
            }
            1 => index.grow_now(),
            2 => index.reserve(usize::from(operation[1])),
            3 if operation[1] == 0 => {
                index.clear();
                model.clear();
            }
            _ => {
                index.reserve(1);
                let found = index.find(hash(h, turn), |found| found == row);
                assert_eq!(found.is_ok(), model.contains_key(&row), "row {row}");
                if let Err(place) = found {
                    index.insert(place, hash(h, turn), row);
                    model.insert(row, h);
                }
            }
        }
        if index.is_crowded() {
            turn = turn.wrapping_add(1);
            let rows = model.iter().map(|(&row, &h)| (row, hash(h, turn)));
            index.rekey(HashKey::new(0, u64::from(turn)), rows);
        }
        for (&row, &h) in &model {
            let found = index.find(hash(h, turn), |found| found == row);
            assert_eq!(found.ok(), Some(row), "one of {} rows", model.len());
        }
        assert_eq!(index.len(), model.len());
    }
}

fn table(data: &[u8]) {
    // The hash is the word; all tags are one of sixteen.
    let key = |byte: u8| u64::from(byte % 16) << 60 | u64::from(byte / 16);
    let mut table = Table::new(1, 1, 200, HashKey::new(0, 1));
    table.take_for_chance(8);
    let (mut model, mut keys) = (BTreeMap::new(), Keys::new(1));
    for batch in data.chunks(BATCH) {
        keys.words[0].iter_mut().zip(batch).for_each(|(word, &byte)| *word = key(byte));
        keys.len = batch.len();
        let mut out = [NO_ROW; BATCH];
        table.lookup_words(&mut keys, &[0], &mut out);
        for (&row, &byte) in out.iter().zip(batch) {
            let next = model.len() as u32;
            let expected = match model.get(&byte) {
                Some(row) => *row,
                None if next >= 200 => NO_ROW,
                None => *model.entry(byte).or_insert(next),
            };
            assert_eq!(row, expected, "key {byte} of {next}");
        }
        assert_eq!(table.len(), model.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn colliding_keys_are_found_like_those_of_a_map(
            data in proptest::collection::vec(any::<u8>(), 0..if cfg!(miri) { 40 } else { 900 }),
        ) {
            fuzz_collide(&data);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "an index that grows by and by is too large for Miri")]
    fn a_crowded_index_that_is_growing_gets_another_key() {
        // Insertions of one home, and a growth in between that stays under way.
        let insert = (0..7u8).map(|row| [7, row]);
        let grows = insert.clone().chain([[1, 0]]).chain((7..255).map(|row| [7, row]));
        fuzz_collide(&grows.flatten().collect::<Vec<_>>());
    }
}
