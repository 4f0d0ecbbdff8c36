//! One state a key that each item of it sees and changes.

use crate::batches::{Batches, Passes, once};
use crate::grouping::Grouping;
use crate::key::Key;
use crate::table::{KeyMap, Lookup};
use crate::time::Time;
use weir_engine::table::HashKey;
use weir_packet::source::SourceError;

/// See [`Keyed::map_with_state`](crate::Keyed::map_with_state).
pub struct MapWithState<S, F, I, G, K: Key, St> {
    input: S,
    key: F,
    init: I,
    f: G,
    states: KeyMap<K, St>,
    lookup: Box<Lookup<K>>,
    refused: u64,
}

impl<S, F, I, G, K, St, O> Batches for MapWithState<S, F, I, G, K, St>
where
    S: Batches,
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
    pub(super) fn new(grouping: Grouping<S, F>, init: I, f: G) -> Self {
        let Grouping { input, key, max_keys } = grouping;
        let hash_key = HashKey::random();
        let (states, lookup) = (KeyMap::new(max_keys, hash_key), Lookup::new(hash_key));
        MapWithState { input, key, init, f, states, lookup, refused: 0 }
    }

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
    S: Batches,
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
