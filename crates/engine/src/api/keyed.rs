//! Streams grouped by key: one state a key.

use super::{Key, Stream};
use crate::pages;
use crate::prefetch::prefetch;
use crate::table::{Index, Vacant};
use std::collections::BTreeMap;
use weir_packet::limits::BATCH;
use weir_packet::source::SourceError;
use weir_plan::limits::GROUPS_MAX;

/// See [`Stream::key_by`].
pub struct Keyed<S, F> {
    input: S,
    key: F,
    max_keys: usize,
}

impl<S, F> Keyed<S, F> {
    pub(super) fn new(input: S, key: F) -> Keyed<S, F> {
        Keyed { input, key, max_keys: GROUPS_MAX as usize }
    }

    /// Holds at most so many keys at once, in each window; 64 Mi unless told otherwise. Items of
    /// further keys are left out, and counted by `evicted`.
    #[must_use]
    pub fn max_keys(mut self, n: u32) -> Keyed<S, F> {
        self.max_keys = n as usize;
        self
    }

    /// Folds all items of a key into one value: `summarize` over the whole input. `value` makes
    /// the value of one item, `merge` takes a later one into an earlier one and must be
    /// associative. Groups come out at the end, in order of their keys.
    pub fn reduce<K, V, G, M>(self, value: G, merge: M) -> Reduce<S, F, G, M, K, V>
    where
        S: Stream,
        K: Key,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        G: FnMut(S::Item<'_>) -> V,
        M: FnMut(&mut V, V),
    {
        Reduce::new(self, None, value, merge)
    }

    /// Windows of `every_ns` nanoseconds, aligned to 1970. Panics unless `every_ns` is positive.
    pub fn tumbling(self, every_ns: i64) -> Tumbling<S, F> {
        assert!(every_ns > 0, "a window has a length");
        Tumbling { keyed: self, every_ns }
    }

    /// Calls `f` with the state of the item's key and the item, in order: `scan`. `init` makes the
    /// state from a key's first item. What `f` returns goes on, if it returns something. States
    /// are kept to the end of the stream.
    pub fn map_with_state<K, St, O, I, G>(self, init: I, f: G) -> MapWithState<S, F, I, G, K, St>
    where
        S: Stream,
        K: Key,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        I: FnMut(&S::Item<'_>) -> St,
        G: FnMut(&mut St, S::Item<'_>) -> Option<O>,
    {
        MapWithState { states: KeyMap::new(self.max_keys), keyed: self, init, f }
    }
}

/// See [`Keyed::tumbling`].
pub struct Tumbling<S, F> {
    keyed: Keyed<S, F>,
    every_ns: i64,
}

impl<S, F> Tumbling<S, F> {
    /// Folds the items of each key and window: `summarize … every`. See [`Keyed::reduce`]. A
    /// window's groups come out when the watermark has passed its end; late items are left out, and
    /// counted by [`Reduce::late`].
    pub fn reduce<K, V, G, M>(self, value: G, merge: M) -> Reduce<S, F, G, M, K, V>
    where
        S: Stream,
        K: Key,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        G: FnMut(S::Item<'_>) -> V,
        M: FnMut(&mut V, V),
    {
        Reduce::new(self.keyed, Some(self.every_ns), value, merge)
    }
}

/// One key's value, in one window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group<K, V> {
    /// Start of the window, nanoseconds since 1970; 0 without windows.
    pub start: i64,
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
}

/// See [`Keyed::reduce`] and [`Tumbling::reduce`].
pub struct Reduce<S, F, G, M, K, V> {
    keyed: Keyed<S, F>,
    every_ns: Option<i64>,
    value: G,
    merge: M,
    windows: BTreeMap<i64, KeyMap<K, V>>,
    /// Items of the batch, of one window, on their way into the table.
    held: Vec<(u64, K, V)>,
    watermark: i64,
    late: u64,
    evicted: u64,
}

impl<S, F, G, M, K: Key, V> Reduce<S, F, G, M, K, V>
where
    M: FnMut(&mut V, V),
{
    fn new(keyed: Keyed<S, F>, every_ns: Option<i64>, value: G, merge: M) -> Self {
        Reduce {
            keyed,
            every_ns,
            value,
            merge,
            windows: BTreeMap::new(),
            held: Vec::with_capacity(BATCH),
            watermark: i64::MIN,
            late: 0,
            evicted: 0,
        }
    }

    /// Items that came after their window had closed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Items whose key found no room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }
}

impl<S, F, G, M, K, V> Stream for Reduce<S, F, G, M, K, V>
where
    S: Stream,
    K: Key,
    F: FnMut(&S::Item<'_>) -> Option<K>,
    G: FnMut(S::Item<'_>) -> V,
    M: FnMut(&mut V, V),
{
    type Item<'a> = Group<K, V>;

    fn batch(&mut self, mut f: impl FnMut(i64, Group<K, V>)) -> Result<Option<i64>, SourceError> {
        let Reduce { keyed, every_ns, value, merge, windows, held, .. } = self;
        let Keyed { input, key, max_keys } = keyed;
        let (late, evicted, closed) = (&mut self.late, &mut self.evicted, self.watermark);
        let mut fold = |start: i64, held: &mut Vec<(u64, K, V)>| {
            let map = windows.entry(start).or_insert_with(|| KeyMap::new(*max_keys));
            *evicted += map.fold(held, merge);
        };
        let mut start = 0;
        let watermark = input.batch(
            #[inline(always)]
            |t, item| {
                let Some(k) = key(&item) else { return };
                if let Some(every) = every_ns {
                    let window = t.saturating_sub(t.rem_euclid(*every));
                    if window.saturating_add(*every) <= closed {
                        *late += 1;
                        return;
                    }
                    if window != start && !held.is_empty() {
                        fold(start, held);
                    }
                    start = window;
                }
                held.push((k.hash(), k, value(item)));
                if held.len() == BATCH {
                    fold(start, held);
                }
            },
        );
        if !held.is_empty() {
            fold(start, held);
        }
        let Some(watermark) = watermark? else { return Ok(None) };
        let Some(every) = self.every_ns else { return Ok(Some(i64::MIN)) };
        self.watermark = watermark;
        while let Some(first) = self.windows.first_entry() {
            if first.key().saturating_add(every) > watermark {
                break;
            }
            let (start, map) = first.remove_entry();
            map.into_groups(start, &mut f);
        }
        Ok(Some(watermark.saturating_sub(watermark.rem_euclid(every))))
    }

    fn finish(&mut self, mut f: impl FnMut(i64, Group<K, V>)) {
        while let Some((start, map)) = self.windows.pop_first() {
            map.into_groups(start, &mut f);
        }
    }
}

/// See [`Keyed::map_with_state`].
pub struct MapWithState<S, F, I, G, K, St> {
    keyed: Keyed<S, F>,
    init: I,
    f: G,
    states: KeyMap<K, St>,
}

impl<S, F, I, G, K, St, O> Stream for MapWithState<S, F, I, G, K, St>
where
    S: Stream,
    K: Key,
    F: FnMut(&S::Item<'_>) -> Option<K>,
    I: FnMut(&S::Item<'_>) -> St,
    G: FnMut(&mut St, S::Item<'_>) -> Option<O>,
{
    type Item<'a> = O;

    fn batch(&mut self, mut out: impl FnMut(i64, O)) -> Result<Option<i64>, SourceError> {
        let MapWithState { keyed: Keyed { input, key, .. }, init, f, states } = self;
        input.batch(|t, item| {
            if let Some(o) = step(key(&item), item, init, f, states) {
                out(t, o);
            }
        })
    }

    fn finish(&mut self, mut out: impl FnMut(i64, O)) {
        let MapWithState { keyed: Keyed { input, key, .. }, init, f, states } = self;
        input.finish(|t, item| {
            if let Some(o) = step(key(&item), item, init, f, states) {
                out(t, o);
            }
        });
    }
}

impl<S, F, I, G, K, St> MapWithState<S, F, I, G, K, St> {
    /// Items whose key found no room.
    pub fn evicted(&self) -> u64 {
        self.states.refused
    }
}

/// One item through the state of its key.
#[inline(always)]
fn step<K: Key, St, T, O>(
    key: Option<K>,
    item: T,
    init: &mut impl FnMut(&T) -> St,
    f: &mut impl FnMut(&mut St, T) -> Option<O>,
    states: &mut KeyMap<K, St>,
) -> Option<O> {
    let state = states.entry(key?, || init(&item))?;
    f(state, item)
}

/// Values by key, in the order that keys came.
struct KeyMap<K, V> {
    index: Index,
    entries: Vec<(K, V)>,
    max: usize,
    /// Look-ups of keys that found no room.
    refused: u64,
}

impl<K, V> KeyMap<K, V> {
    fn new(max: usize) -> KeyMap<K, V> {
        KeyMap { index: Index::with_capacity(0), entries: Vec::new(), max, refused: 0 }
    }
}

impl<K: Key, V> KeyMap<K, V> {
    /// Takes a batch of hashed values in, and leaves it empty. Returns how many found no room.
    fn fold(&mut self, held: &mut Vec<(u64, K, V)>, merge: &mut impl FnMut(&mut V, V)) -> u64 {
        let before = self.refused;
        self.index.reserve(held.len());
        held.iter().for_each(|(h, ..)| self.index.prefetch(*h));
        for (h, ..) in held.iter() {
            if let Some(row) = self.index.candidate(*h) {
                prefetch(&self.entries, row as usize);
            }
        }
        for (h, k, v) in held.drain(..) {
            match self.place(h, &k) {
                Ok(row) => merge(&mut self.entries[row].1, v),
                Err(Some(place)) => self.add(place, h, k, v),
                Err(None) => self.refused += 1,
            }
        }
        self.refused - before
    }

    fn entry(&mut self, k: K, new: impl FnOnce() -> V) -> Option<&mut V> {
        self.index.reserve(1);
        let h = k.hash();
        let row = match self.place(h, &k) {
            Ok(row) => row,
            Err(Some(place)) => {
                self.add(place, h, k, new());
                self.entries.len() - 1
            }
            Err(None) => {
                self.refused += 1;
                return None;
            }
        };
        Some(&mut self.entries[row].1)
    }

    /// The entry of a key, or where it would go if there is room.
    #[inline(always)]
    fn place(&self, h: u64, k: &K) -> Result<usize, Option<Vacant>> {
        match self.index.find(h, |row| self.entries[row as usize].0 == *k) {
            Ok(row) => Ok(row as usize),
            Err(place) => Err((self.entries.len() < self.max).then_some(place)),
        }
    }

    fn add(&mut self, place: Vacant, h: u64, k: K, v: V) {
        self.index.insert(place, h, self.entries.len() as u32);
        self.entries.push((k, v));
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve(self.entries.len());
            pages::advise(&mut self.entries);
        }
    }

    fn into_groups(mut self, start: i64, f: &mut impl FnMut(i64, Group<K, V>)) {
        self.entries.sort_unstable_by_key(|e| e.0);
        for (key, value) in self.entries {
            f(start, Group { start, key, value });
        }
    }
}
