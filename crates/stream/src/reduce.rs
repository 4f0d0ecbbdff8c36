//! One value a key: all items of a key, or of a key and window, folded together.

use crate::batches::{Batches, Passes, once};
use crate::grouping::Grouping;
use crate::key::Key;
use crate::table::Lookup;
use crate::time::{Marks, Time};
use crate::windows::Windows;
use weir_engine::table::HashKey;
use weir_packet::limits::BATCH;
use weir_packet::source::SourceError;

/// See [`Keyed::tumbling`](crate::Keyed::tumbling).
pub struct Tumbling<S, F> {
    grouping: Grouping<S, F>,
    every_ns: i64,
}

impl<S, F> Tumbling<S, F> {
    pub(super) fn new(grouping: Grouping<S, F>, every_ns: i64) -> Tumbling<S, F> {
        Tumbling { grouping, every_ns }
    }

    /// Folds the items of each key and window: `summarize … every`. See
    /// [`Keyed::reduce`](crate::Keyed::reduce). A window's groups come out when the watermark has
    /// passed its end; late items are left out, and counted by [`Reduce::late`]. At most
    /// [`WINDOWS_MAX`](crate::limits::WINDOWS_MAX) windows are open at once.
    pub fn reduce<K, V, G, M>(self, value: G, merge: M) -> Reduce<S, F, G, M, K, V>
    where
        S: Batches,
        K: Key,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        G: FnMut(S::Item<'_>) -> V,
        M: FnMut(&mut V, V),
    {
        Reduce::new(self.grouping, Some(self.every_ns), value, merge)
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

/// See [`Keyed::reduce`](crate::Keyed::reduce) and [`Tumbling::reduce`].
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
    pub(super) fn new(grouping: Grouping<S, F>, every_ns: Option<i64>, value: G, merge: M) -> Self {
        let Grouping { input, key, max_keys } = grouping;
        let hash_key = HashKey::random();
        Reduce {
            input,
            key,
            value,
            merge,
            windows: Windows::new(every_ns, max_keys, hash_key),
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

impl<S, F, G, M, K, V> Batches for Reduce<S, F, G, M, K, V>
where
    S: Batches,
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
    S: Batches,
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
