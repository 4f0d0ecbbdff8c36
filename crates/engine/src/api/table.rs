//! Values by key, looked up a batch at a time: what keyed streams keep.

use super::key::Key;
use crate::pages::Slab;
use crate::table::{Index, NO_ROW};
use weir_packet::limits::BATCH;

/// Values by key. Keys in their short form and other keys have tables of their own.
pub(super) struct KeyMap<K: Key, V> {
    short: Table<K::Short, V>,
    long: Table<K, V>,
    max: usize,
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
    fn new() -> Table<K, V> {
        Table { index: Index::with_capacity(0), rows: Slab::new() }
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
            Err(_) if rows.len() >= max => return None,
            Err(vacant) => {
                let row = rows.len();
                rows.push(Entry { key, value: new() }, max);
                index.insert(vacant, hash, row as u32);
                row
            }
        };
        rows.get_mut(row).map(|entry| &mut entry.value)
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
    pub(super) fn new(max: usize) -> KeyMap<K, V> {
        KeyMap { short: Table::new(), long: Table::new(), max: max.min(NO_ROW as usize - 1) }
    }

    /// Makes room in the index for a batch, and moves some of it if it is growing.
    pub(super) fn reserve(&mut self, lookup: &Lookup<K>) {
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
    pub(super) fn new() -> Box<Lookup<K>> {
        Box::new(Lookup {
            hashes: [0; BATCH],
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
        let (n, hash) = (self.len % BATCH, key.hash());
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

    /// Searches for all keys.
    #[inline(always)]
    pub(super) fn search<V>(&mut self, map: &mut KeyMap<K, V>) {
        map.reserve(self);
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
        let hash = self.hashes[n];
        if n != self.next_long {
            let max = map.max - map.long.rows.len();
            return map.short.find_or_add(hash, self.keys[n], max, new);
        }
        let (_, key) = self.longs[self.long_met];
        self.long_met += 1;
        self.next_long = self.long_at(self.long_met);
        map.long.find_or_add(hash, key, map.max - map.short.rows.len(), new)
    }

    /// Forgets the keys.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.len, self.met, self.long_met) = (0, 0, 0);
        self.longs.clear();
    }
}
