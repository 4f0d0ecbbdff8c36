//! Streams grouped by key: one state a key.

use super::sliding::Sliding;
use super::table::{KeyMap, Lookup};
use super::time::Marks;
use super::windows::Windows;
use super::{Key, Passes, Stream, Time, once};
use crate::table::HashKey;
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

    /// Windows of `over_ns` nanoseconds, one from each multiple of `every_ns` since 1970 on. Panics
    /// unless `every_ns` is positive and at most `over_ns`, and where a window would be made of
    /// more than [`PANES_MAX`](weir_plan::limits::PANES_MAX) panes.
    pub fn sliding(self, over_ns: i64, every_ns: i64) -> Sliding<S, F> {
        Sliding::new(self, over_ns, every_ns)
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
        let hash_key = HashKey::random();
        MapWithState {
            input: self.input,
            key: self.key,
            init,
            f,
            states: KeyMap::new(self.max_keys, hash_key),
            lookup: Lookup::new(hash_key),
            refused: 0,
        }
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
    /// counted by [`Reduce::late`]. At most [`WINDOWS_MAX`](crate::limits::WINDOWS_MAX) windows are
    /// open at once.
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
pub struct Reduce<S, F, G, M, K: Key, V> {
    input: S,
    key: F,
    value: G,
    pub(super) merge: M,
    windows: Windows<K, V>,
    lookup: Box<Lookup<K>>,
    starts: Box<[i64; BATCH]>,
}

impl<S, F, G, M, K: Key, V> Reduce<S, F, G, M, K, V> {
    pub(super) fn new(keyed: Keyed<S, F>, every_ns: Option<i64>, value: G, merge: M) -> Self {
        let hash_key = HashKey::random();
        Reduce {
            input: keyed.input,
            key: keyed.key,
            value,
            merge,
            windows: Windows::new(every_ns, keyed.max_keys, hash_key),
            lookup: Lookup::new(hash_key),
            starts: Box::new([0; BATCH]),
        }
    }

    /// Items that came after their window had closed.
    pub fn late(&self) -> u64 {
        self.windows.late
    }

    /// Items whose key found no room, and items of one window more than
    /// [`WINDOWS_MAX`](crate::limits::WINDOWS_MAX).
    pub fn evicted(&self) -> u64 {
        self.windows.evicted
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

    fn batch(
        &mut self,
        mut f: impl FnMut(Time<'_>, Group<K, V>),
    ) -> Result<Option<i64>, SourceError> {
        let Reduce { input, key, value, merge, windows, lookup, starts } = self;
        let mut passes = Reducing { key, value, merge, windows, lookup, starts, mixed: false };
        let Some(watermark) = input.batch_passes(&mut passes)? else { return Ok(None) };
        Ok(Some(self.windows.close(watermark, |start, key, value| {
            f(Time::new(start, i64::MIN), Group { start, key, value });
        })))
    }

    fn finish(&mut self, mut f: impl FnMut(Time<'_>, Group<K, V>)) {
        let Reduce { input, key, value, merge, windows, lookup, starts } = self;
        let mut passes = Reducing { key, value, merge, windows, lookup, starts, mixed: false };
        input.finish(|t, item| once::<S>(&mut passes, t, item));
        self.windows.finish(|start, key, value| {
            f(Time::new(start, i64::MIN), Group { start, key, value });
        });
    }
}

/// The items of a batch on their way into groups.
struct Reducing<'r, F, G, M, K: Key, V> {
    key: &'r mut F,
    value: &'r mut G,
    merge: &'r mut M,
    windows: &'r mut Windows<K, V>,
    lookup: &'r mut Lookup<K>,
    /// The window of each key in the look-up, if there is more than one.
    starts: &'r mut [i64; BATCH],
    mixed: bool,
}

impl<F, G, M, K: Key, V> Reducing<'_, F, G, M, K, V> {
    /// Takes the window of an item to hand. Returns `false` if the item is left out.
    #[inline(never)]
    fn turn_to(&mut self, ts: i64, marks: Option<&Marks<'_>>, mark: i64) -> bool {
        let (before, n) = (self.windows.start(), self.lookup.len());
        let taken = self.windows.take_to_hand(Time::from_parts((ts, marks, mark)));
        if taken && !self.mixed && n > 0 && self.windows.start() != before {
            self.mixed = true;
            self.starts[..n].fill(before);
        }
        if self.mixed {
            // The others of this batch will have to say where they belong, too.
            self.windows.let_go();
            self.starts[n % BATCH] = self.windows.start();
        }
        taken
    }

    /// Prepares for a batch with items of several windows.
    #[inline(never)]
    fn turn_mixed(&mut self) {
        let starts = &self.starts[..self.lookup.len()];
        for same in starts.chunk_by(|a, b| a == b) {
            self.windows.of(same[0]).reserve(self.lookup);
        }
        self.lookup.skip_search();
    }
}

impl<F, G, M, K, V> Reducing<'_, F, G, M, K, V>
where
    K: Key,
    M: FnMut(&mut V, V),
{
    /// Takes the value of an item to its key, which is not where it was likely to be.
    #[inline(never)]
    fn second_elsewhere(&mut self, v: V) {
        let map = match self.mixed {
            false => self.windows.hand(),
            true => self.windows.of(self.starts[self.lookup.position()]),
        };
        let mut v = Some(v);
        match self.lookup.meet_elsewhere(map, || v.take().expect("it is asked for once")) {
            Some(old) => {
                if let Some(v) = v {
                    (self.merge)(old, v);
                }
            }
            None => self.windows.evicted += 1,
        }
    }
}

impl<S, F, G, M, K, V> Passes<S> for Reducing<'_, F, G, M, K, V>
where
    S: Stream,
    K: Key,
    F: FnMut(&S::Item<'_>) -> Option<K>,
    G: FnMut(S::Item<'_>) -> V,
    M: FnMut(&mut V, V),
{
    const TIMED: bool = false;

    #[inline(always)]
    fn first(&mut self, t: Time<'_>, item: &S::Item<'_>) -> bool {
        let Some(k) = (self.key)(item) else { return false };
        if !self.windows.at_hand(t) {
            let (ts, marks, mark) = t.parts();
            if !self.turn_to(ts, marks, mark) {
                return false;
            }
        }
        self.lookup.push(self.windows.hand(), k);
        true
    }

    #[inline(always)]
    fn turn(&mut self) {
        match self.mixed {
            false => self.lookup.search(self.windows.hand()),
            true => self.turn_mixed(),
        }
    }

    #[inline(always)]
    fn second(&mut self, _: Time<'_>, item: S::Item<'_>) {
        // Where windows are mixed no key is likely to be anywhere.
        if let Some(old) = self.lookup.meet(self.windows.hand()) {
            (self.merge)(old, (self.value)(item));
            return;
        }
        let v = (self.value)(item);
        self.second_elsewhere(v);
    }

    #[inline(always)]
    fn done(&mut self) {
        self.mixed = false;
        self.lookup.clear();
    }
}

/// See [`Keyed::map_with_state`].
pub struct MapWithState<S, F, I, G, K: Key, St> {
    input: S,
    key: F,
    init: I,
    f: G,
    states: KeyMap<K, St>,
    lookup: Box<Lookup<K>>,
    refused: u64,
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

    fn batch(&mut self, out: impl FnMut(Time<'_>, O)) -> Result<Option<i64>, SourceError> {
        let MapWithState { input, key, init, f, states, lookup, refused } = self;
        input.batch_passes(&mut Stepping { key, init, f, states, lookup, refused, out })
    }

    fn finish(&mut self, out: impl FnMut(Time<'_>, O)) {
        let MapWithState { input, key, init, f, states, lookup, refused } = self;
        let mut passes = Stepping { key, init, f, states, lookup, refused, out };
        input.finish(|t, item| once::<S>(&mut passes, t, item));
    }
}

impl<S, F, I, G, K: Key, St> MapWithState<S, F, I, G, K, St> {
    /// Items whose key found no room.
    pub fn evicted(&self) -> u64 {
        self.refused
    }
}

/// The items of a batch on their way to the states of their keys.
struct Stepping<'m, F, I, G, K: Key, St, W> {
    key: &'m mut F,
    init: &'m mut I,
    f: &'m mut G,
    states: &'m mut KeyMap<K, St>,
    lookup: &'m mut Lookup<K>,
    refused: &'m mut u64,
    out: W,
}

impl<S, F, I, G, K, St, O, W> Passes<S> for Stepping<'_, F, I, G, K, St, W>
where
    S: Stream,
    K: Key,
    F: FnMut(&S::Item<'_>) -> Option<K>,
    I: FnMut(&S::Item<'_>) -> St,
    G: FnMut(&mut St, S::Item<'_>) -> Option<O>,
    W: FnMut(Time<'_>, O),
{
    const TIMED: bool = true;

    #[inline(always)]
    fn first(&mut self, _: Time<'_>, item: &S::Item<'_>) -> bool {
        let Some(k) = (self.key)(item) else { return false };
        self.lookup.push(self.states, k);
        true
    }

    #[inline(always)]
    fn turn(&mut self) {
        self.lookup.search(self.states);
    }

    #[inline(always)]
    fn second(&mut self, t: Time<'_>, item: S::Item<'_>) {
        let o = if let Some(state) = self.lookup.meet(self.states) {
            (self.f)(state, item)
        } else {
            let init = &mut self.init;
            match self.lookup.meet_elsewhere(self.states, || init(&item)) {
                Some(state) => (self.f)(state, item),
                None => {
                    *self.refused += 1;
                    None
                }
            }
        };
        if let Some(o) = o {
            (self.out)(t, o);
        }
    }

    #[inline(always)]
    fn done(&mut self) {
        self.lookup.clear();
    }
}
