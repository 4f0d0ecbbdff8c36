//! Values by key, looked up a batch at a time: what keyed streams keep.

use crate::key::Key;
use weir_engine::pages::Slab;
use weir_engine::table::{HashKey, Index, NO_ROW};
use weir_packet::limits::BATCH;

/// Values by key. Keys in their short form and other keys have tables of their own.
pub(super) struct KeyMap<K: Key, V> {
    short: Table<K::Short, V>,
    long: Table<K, V>,
    max: usize,
    hash_key: HashKey,
}

/// One form of keys.
struct Table<K, V> {
    index: Index,
    rows: Slab<Entry<K, V>>,
}

struct Entry<K, V> {
    key: K,
    value: V,
}

impl<K: Copy + Eq, V> Table<K, V> {
    fn new(hash_key: HashKey) -> Table<K, V> {
        Table { index: Index::new(hash_key), rows: Slab::new() }
    }

    /// The value of a row, if its key is this one.
    #[inline(always)]
    fn at(&mut self, row: u32, key: K) -> Option<&mut V> {
        let entry = self.rows.get_mut(row as usize)?;
        (entry.key == key).then_some(&mut entry.value)
    }

    /// The value of a key, or a new one if there may be `max` rows.
    fn find_or_add(
        &mut self,
        hash: u64,
        key: K,
        max: usize,
        new: impl FnOnce() -> V,
    ) -> Option<&mut V> {
        let Table { index, rows } = self;
        let same = |row| rows.get(row as usize).is_some_and(|entry| entry.key == key);
        let row = match index.find(hash, same) {
            Ok(row) => row as usize,
            Err(vacant) if rows.len() >= max => {
                index.note(vacant);
                return None;
            }
            Err(vacant) => {
                let row = rows.len();
                rows.push(Entry { key, value: new() }, max);
                index.insert(vacant, hash, row as u32);
                row
            }
        };
        rows.get_mut(row).map(|entry| &mut entry.value)
    }

    /// Finds all rows by this key from now on.
    fn rekey<W: Key>(&mut self, key: HashKey, whole: impl Fn(K) -> W) {
        let Table { index, rows } = self;
        let key_of = |row: u32| rows.get(row as usize).map(|entry| whole(entry.key));
        let hashed = |row: u32| key_of(row).map(|k| (row, k.hash(key)));
        index.rekey(key, (0..rows.len() as u32).filter_map(hashed));
    }

    /// All rows with their ranks, in the order of their keys.
    fn sorted<W: Key>(&self, whole: impl Fn(K) -> W) -> Vec<(u64, u32)> {
        let key = |row: u32| self.rows.get(row as usize).map(|entry| whole(entry.key));
        let ranked = |row| (key(row).map_or(0, |k| k.rank()), row);
        let mut order: Vec<_> = (0..self.rows.len() as u32).map(ranked).collect();
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(&key(b.1))));
        order
    }

    fn drain(&mut self, order: &[(u64, u32)], mut f: impl FnMut(K, V)) {
        self.rows.drain(order, |entry| f(entry.key, entry.value));
        self.index.clear();
    }
}

impl<K: Key, V> KeyMap<K, V> {
    /// An empty map for at most so many keys.
    pub(super) fn new(max: usize, hash_key: HashKey) -> KeyMap<K, V> {
        let (short, long) = (Table::new(hash_key), Table::new(hash_key));
        KeyMap { short, long, max: max.min(NO_ROW as usize - 1), hash_key }
    }

    /// Finds all rows by a new key from now on.
    #[cold]
    fn rekey(&mut self) {
        let key = HashKey::random();
        self.short.rekey(key, K::whole);
        self.long.rekey(key, |k| k);
        self.hash_key = key;
    }

    /// Makes room in the index for a batch, and moves some of it if it is growing. Where keys crowd
    /// in an index, gives both another key.
    pub(super) fn reserve(&mut self, lookup: &Lookup<K>) {
        if self.short.index.is_crowded() || self.long.index.is_crowded() {
            self.rekey();
        }
        self.short.index.reserve(lookup.len);
        if !lookup.longs.is_empty() {
            self.long.index.reserve(lookup.longs.len());
        }
    }

    /// Takes all values out, in the order of their keys. Keeps the memory.
    pub(super) fn drain(&mut self, mut f: impl FnMut(K, V)) {
        let (short, long) = (self.short.sorted(K::whole), self.long.sorted(|k| k));
        // Keys of both forms take turns: those of one that come before the next of the other.
        let mut longs = Vec::with_capacity(long.len());
        self.long.drain(&long, |k, v| longs.push((k, v)));
        let mut longs = longs.into_iter().peekable();
        self.short.drain(&short, |k, v| {
            let k = K::whole(k);
            while let Some((k, v)) = longs.next_if(|(long, _)| *long < k) {
                f(k, v);
            }
            f(k, v);
        });
        longs.for_each(|(k, v)| f(k, v));
    }
}

/// The keys of a batch, looked up in three steps: all of them come in, all are searched for, and
/// then one after the other meets its value, when that has arrived in the cache.
pub(super) struct Lookup<K: Key> {
    hashes: [u64; BATCH],
    /// The key of the hashes: the key of the table that was searched last.
    hash_key: HashKey,
    /// Short forms; of keys that have none, anything.
    keys: [K::Short; BATCH],
    /// Where each short key probably is.
    likely: [u32; BATCH],
    len: usize,
    /// Keys without a short form, by their number in the batch.
    longs: Vec<(usize, K)>,
    /// Keys that have met their value.
    met: usize,
    long_met: usize,
    /// Where in the batch the next long key comes.
    next_long: usize,
}

impl<K: Key> Lookup<K> {
    pub(super) fn new(hash_key: HashKey) -> Box<Lookup<K>> {
        Box::new(Lookup {
            hashes: [0; BATCH],
            hash_key,
            keys: [K::Short::default(); BATCH],
            likely: [NO_ROW; BATCH],
            len: 0,
            longs: Vec::new(),
            met: 0,
            long_met: 0,
            next_long: usize::MAX,
        })
    }

    /// How many keys came in.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Takes a key in; there may be [`BATCH`] of them.
    #[inline(always)]
    pub(super) fn push<V>(&mut self, map: &KeyMap<K, V>, key: K) {
        let (n, hash) = (self.len % BATCH, key.hash(self.hash_key));
        self.hashes[n] = hash;
        self.len = n + 1;
        let Some(short) = key.short() else {
            map.long.index.prefetch(hash);
            self.longs.push((n, key));
            return;
        };
        self.keys[n] = short;
        map.short.index.prefetch(hash);
    }

    /// Hashes the keys at hand for a table with another key.
    #[cold]
    fn hash_again(&mut self, key: HashKey) {
        self.hash_key = key;
        let short = self.keys.iter().map(|k| K::whole(*k).hash(key));
        self.hashes.iter_mut().zip(short).take(self.len).for_each(|(hash, new)| *hash = new);
        for (n, long) in &self.longs {
            self.hashes[n % BATCH] = long.hash(key);
        }
    }

    /// Searches for all keys.
    #[inline(always)]
    pub(super) fn search<V>(&mut self, map: &mut KeyMap<K, V>) {
        map.reserve(self);
        if self.hash_key != map.hash_key {
            self.hash_again(map.hash_key);
        }
        let n = self.len.min(BATCH);
        let (index, rows) = (&map.short.index, &map.short.rows);
        index.likely(&self.hashes[..n], &mut self.likely, |row| rows.prefetch(row as usize));
        for &(n, _) in &self.longs {
            if let Some(row) = map.long.index.candidate(self.hashes[n % BATCH]) {
                map.long.rows.prefetch(row as usize);
            }
        }
        self.next_long = self.long_at(0);
    }

    /// Instead of [`Lookup::search`]: no key is likely to be anywhere.
    pub(super) fn skip_search(&mut self) {
        self.likely = [NO_ROW; BATCH];
        self.next_long = self.long_at(0);
    }

    /// Where in the batch a long key came.
    fn long_at(&self, i: usize) -> usize {
        self.longs.get(i).map_or(usize::MAX, |(n, _)| *n)
    }

    /// The value of the next key, if it is where it was likely to be. If not, see
    /// [`Lookup::meet_elsewhere`].
    #[inline(always)]
    pub(super) fn meet<'m, V>(&mut self, map: &'m mut KeyMap<K, V>) -> Option<&'m mut V> {
        let n = self.met % BATCH;
        self.met = n + 1;
        if n == self.next_long {
            return None;
        }
        map.short.at(self.likely[n], self.keys[n])
    }

    /// Where the key that was met last came among those of the batch.
    pub(super) fn position(&self) -> usize {
        self.met.saturating_sub(1)
    }

    /// The value of the key that was met last, or a `new` one; `None` where there is no room for
    /// it.
    pub(super) fn meet_elsewhere<'m, V>(
        &mut self,
        map: &'m mut KeyMap<K, V>,
        new: impl FnOnce() -> V,
    ) -> Option<&'m mut V> {
        let n = self.position();
        // In a batch of several windows a table may have another key than the others.
        let own = self.hash_key == map.hash_key;
        if n != self.next_long {
            let max = map.max - map.long.rows.len();
            let whole = K::whole(self.keys[n]);
            let hash = if own { self.hashes[n] } else { whole.hash(map.hash_key) };
            return map.short.find_or_add(hash, self.keys[n], max, new);
        }
        let (_, key) = self.longs[self.long_met];
        self.long_met += 1;
        self.next_long = self.long_at(self.long_met);
        let hash = if own { self.hashes[n] } else { key.hash(map.hash_key) };
        map.long.find_or_add(hash, key, map.max - map.short.rows.len(), new)
    }

    /// Forgets the keys.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.len, self.met, self.long_met) = (0, 0, 0);
        self.longs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::cmp::Ordering;
    use std::net::{IpAddr, Ipv6Addr};
    use weir_engine::limits::RUN_MAX;
    use weir_model::HASH_SECRETS;

    const KEYS: usize = 2048;

    /// Counts each key of a batch where a table has it, or makes it.
    fn count<K: Key>(lookup: &mut Lookup<K>, map: &mut KeyMap<K, u32>, n: usize) {
        for _ in 0..n {
            match lookup.meet(map) {
                Some(count) => *count += 1,
                None => *lookup.meet_elsewhere(map, || 0).expect("room") += 1,
            }
        }
    }

    fn hash_key(n: usize) -> HashKey {
        let (a, b) = HASH_SECRETS[n];
        HashKey::new(a, b)
    }

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A key that counts how often keys are compared.
    #[derive(Clone, Copy, Default, Debug)]
    struct Counted<K>(K);

    impl<K: PartialEq> PartialEq for Counted<K> {
        fn eq(&self, other: &Counted<K>) -> bool {
            COMPARED.with(|all| all.set(all.get() + 1));
            self.0 == other.0
        }
    }

    impl<K: Eq> Eq for Counted<K> {}

    impl<K: Ord> PartialOrd for Counted<K> {
        fn partial_cmp(&self, other: &Counted<K>) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl<K: Ord> Ord for Counted<K> {
        fn cmp(&self, other: &Counted<K>) -> Ordering {
            self.0.cmp(&other.0)
        }
    }

    impl<K: Key> Key for Counted<K> {
        type Short = Counted<K::Short>;

        fn short(&self) -> Option<Self::Short> {
            self.0.short().map(Counted)
        }

        fn whole(short: Self::Short) -> Self {
            Counted(K::whole(short.0))
        }

        fn hash(&self, with: HashKey) -> u64 {
            self.0.hash(with)
        }

        fn rank(&self) -> u64 {
            self.0.rank()
        }
    }

    /// The cost of counting keys, in comparisons: one for each slot with the upper half of a key's
    /// hash.
    fn cost<K: Key + std::fmt::Debug>(keys: &[K], hash_key: HashKey) -> usize {
        let keys: Vec<Counted<K>> = keys.iter().copied().map(Counted).collect();
        let mut map: KeyMap<Counted<K>, u32> = KeyMap::new(1 << 20, hash_key);
        let mut lookup = Lookup::new(hash_key);
        let before = COMPARED.with(Cell::get);
        for batch in [&keys[..], &keys].concat().chunks(BATCH) {
            batch.iter().for_each(|&key| lookup.push(&map, key));
            lookup.search(&mut map);
            count(&mut lookup, &mut map, batch.len());
            lookup.clear();
        }
        let compared = COMPARED.with(Cell::get) - before;
        let (mut got, mut expected) = (Vec::new(), keys);
        map.drain(|key, n| got.push((key, n)));
        expected.sort();
        assert!(got.into_iter().eq(expected.into_iter().map(|key| (key, 2))));
        compared
    }

    fn withstands<K: Key + std::fmt::Debug>(key: impl Fn(u64) -> K) {
        let chosen: Vec<K> = (0..KEYS as u64).map(&key).collect();
        let random = (0..KEYS as u64).map(|n| hash_key(2).hash([n]));
        let random: Vec<K> = random.map(key).collect();
        let usual = cost(&random, hash_key(3));
        // Of no seed and a multiplier of one: the hash of small numbers has no high bits.
        let known = cost(&chosen, hash_key(0));
        assert!(known > usual + RUN_MAX * RUN_MAX / 4, "no attack: {known} to {usual}");
        let bound = 2 * (RUN_MAX + BATCH) * (RUN_MAX + BATCH);
        assert!(known <= 3 * usual + bound, "{known} under a known key, else {usual}");
        let unknown = cost(&chosen, HashKey::random());
        assert!(unknown <= 3 * usual, "{unknown} under an unknown key, else {usual}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "so many keys take Miri too long")]
    fn keys_that_collide_do_not_crowd() {
        withstands(|n| n);
        withstands(|n| IpAddr::V6(Ipv6Addr::from(u128::from(n))));
    }

    #[test]
    fn windows_whose_tables_drew_other_keys_share_a_batch() {
        let mut lookup = Lookup::new(hash_key(1));
        let mut maps = [1, 2, 3].map(|n| KeyMap::<u64, u32>::new(100, hash_key(n)));
        for _ in 0..2 {
            (0..30).for_each(|key| lookup.push(&maps[0], key));
            maps.iter_mut().for_each(|map| map.reserve(&lookup));
            lookup.skip_search();
            maps.iter_mut().for_each(|map| count(&mut lookup, map, 10));
            lookup.clear();
        }
        for (n, map) in (0..).zip(&mut maps) {
            let mut got = Vec::new();
            map.drain(|key, count| got.push((key, count)));
            assert_eq!(got, (10 * n..10 * (n + 1)).map(|key| (key, 2)).collect::<Vec<_>>());
        }
    }
}
