//! The operators on streams.

use crate::batches::Batches;
use crate::chain::{Filter, FlatMap, Map};
use crate::key::Key;
use crate::keyed::Keyed;
use weir_packet::source::SourceError;

/// The operators: every stream has them.
pub trait Stream: Batches {
    /// Keeps the items for which `keep` holds: `where`.
    fn filter<F: FnMut(&Self::Item<'_>) -> bool>(self, keep: F) -> Filter<Self, F> {
        Filter::new(self, keep)
    }

    /// Makes another item of each: `extend` and `project`.
    fn map<T, F: FnMut(Self::Item<'_>) -> T>(self, f: F) -> Map<Self, F, T> {
        Map::new(self, f)
    }

    /// Makes any number of items of each.
    fn flat_map<I: IntoIterator, F: FnMut(Self::Item<'_>) -> I>(
        self,
        f: F,
    ) -> FlatMap<Self, F, I::Item> {
        FlatMap::new(self, f)
    }

    /// Groups by key: `by`. Items without a key (`None`) are left out.
    fn key_by<K: Key, F: FnMut(&Self::Item<'_>) -> Option<K>>(self, key: F) -> Keyed<Self, F> {
        Keyed::new(self, key)
    }

    /// Runs the stream to its end: a sink. `f` sees the time of each item, in nanoseconds since
    /// 1970, and the item.
    ///
    /// # Errors
    /// When the source could not go on; everything before the fault was processed, and windows
    /// were closed.
    fn for_each(mut self, mut f: impl FnMut(i64, Self::Item<'_>)) -> Result<(), SourceError> {
        let result = loop {
            match self.batch(|t, item| f(t.ts(), item)) {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        self.finish(|t, item| f(t.ts(), item));
        result
    }

    /// Runs the stream to its end and collects its items.
    ///
    /// # Errors
    /// When the source could not go on.
    fn collect<T>(self) -> Result<Vec<T>, SourceError>
    where
        Self: for<'a> Batches<Item<'a> = T>,
    {
        let mut all = Vec::new();
        self.for_each(|_, item| all.push(item))?;
        Ok(all)
    }
}

impl<S: Batches> Stream for S {}
