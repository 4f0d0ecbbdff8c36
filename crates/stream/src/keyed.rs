//! Streams grouped by key.

use crate::batches::Batches;
use crate::grouping::Grouping;
use crate::key::Key;
use crate::reduce::{Reduce, Tumbling};
use crate::sliding::Sliding;
use crate::states::MapWithState;
use weir_plan::limits::GROUPS_MAX;

/// See [`Stream::key_by`](crate::Stream::key_by).
pub struct Keyed<S, F>(Grouping<S, F>);

impl<S, F> Keyed<S, F> {
    pub(super) fn new(input: S, key: F) -> Keyed<S, F> {
        Keyed(Grouping { input, key, max_keys: GROUPS_MAX as usize })
    }

    /// Holds at most so many keys at once, in each window; 64 Mi unless told otherwise. Items of
    /// further keys are left out, and counted by `evicted`.
    #[must_use]
    pub fn max_keys(mut self, n: u32) -> Keyed<S, F> {
        self.0.max_keys = n as usize;
        self
    }

    /// Folds all items of a key into one value: `summarize` over the whole input. `value` makes
    /// the value of one item, `merge` takes a later one into an earlier one and must be
    /// associative. Groups come out at the end, in order of their keys.
    pub fn reduce<K, V, G, M>(self, value: G, merge: M) -> Reduce<S, F, G, M, K, V>
    where
        S: Batches,
        K: Key,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        G: FnMut(S::Item<'_>) -> V,
        M: FnMut(&mut V, V),
    {
        Reduce::new(self.0, None, value, merge)
    }

    /// Windows of `every_ns` nanoseconds, aligned to 1970. Panics unless `every_ns` is positive.
    pub fn tumbling(self, every_ns: i64) -> Tumbling<S, F> {
        assert!(every_ns > 0, "a window has a length");
        Tumbling::new(self.0, every_ns)
    }

    /// Windows of `over_ns` nanoseconds, one from each multiple of `every_ns` since 1970 on. Panics
    /// unless `every_ns` is positive and at most `over_ns`, and where a window would be made of
    /// more than [`PANES_MAX`](weir_plan::limits::PANES_MAX) panes.
    pub fn sliding(self, over_ns: i64, every_ns: i64) -> Sliding<S, F> {
        Sliding::new(self.0, over_ns, every_ns)
    }

    /// Calls `f` with the state of the item's key and the item, in order: `scan`. `init` makes the
    /// state from a key's first item. The value that `f` returns goes on, if there is one. States
    /// are kept to the end of the stream.
    pub fn map_with_state<K, St, O, I, G>(self, init: I, f: G) -> MapWithState<S, F, I, G, K, St>
    where
        S: Batches,
        K: Key,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        I: FnMut(&S::Item<'_>) -> St,
        G: FnMut(&mut St, S::Item<'_>) -> Option<O>,
    {
        MapWithState::new(self.0, init, f)
    }
}
