//! The same operators for those who would rather write code: streams and closures, put together
//! at compile time.
//!
//! ```
//! use weir_engine::api::{Packets, Stream};
//! # use weir_engine::conform::Frames;
//! # let mut source = Frames::sample();
//!
//! #[derive(Clone, Copy)]
//! struct Meter { packets: u64, bytes: u64, first: i64, last: i64 }
//!
//! let flows = Packets::new(&mut source)
//!     .key_by(|p| p.flow())
//!     .reduce(
//!         |p| Meter { packets: 1, bytes: p.len(), first: p.ts(), last: p.ts() },
//!         |a, b| {
//!             a.packets += b.packets;
//!             a.bytes += b.bytes;
//!             a.first = a.first.min(b.first);
//!             a.last = a.last.max(b.last);
//!         },
//!     )
//!     .collect()?;
//! for (flow, meter) in flows.iter().map(|g| (g.key, g.value)) {
//!     println!("{} -> {}: {} packets", flow.src(), flow.dst(), meter.packets);
//! }
//! # assert_eq!(flows.len(), 2);
//! # Ok::<(), weir_packet::source::SourceError>(())
//! ```
//!
//! A stream hands on its items batch by batch, and after each batch a watermark: no later item will
//! be older, but for those that come late. Event time is that of packets, as in queries.

mod keyed;
mod packet;

pub use keyed::{Group, Keyed, MapWithState, Reduce, Tumbling};
pub use packet::{Flow, Packet, Packets};

use weir_packet::source::SourceError;

/// A stream of items with event time, in the order they come.
pub trait Stream: Sized {
    /// What the closures see. Packets are lent for the time of a call.
    type Item<'a>;

    /// Calls `f` with the time and the item of each item of the next batch. Returns the watermark
    /// after it, or `None` when there are no more batches.
    ///
    /// # Errors
    /// When the source can't go on; everything before the fault was handed out.
    fn batch(&mut self, f: impl FnMut(i64, Self::Item<'_>)) -> Result<Option<i64>, SourceError>;

    /// Calls `f` with what is left to say once there are no more batches.
    fn finish(&mut self, f: impl FnMut(i64, Self::Item<'_>));

    /// Keeps the items for which `keep` holds: `where`.
    fn filter<F: FnMut(&Self::Item<'_>) -> bool>(self, keep: F) -> Filter<Self, F> {
        Filter { input: self, keep }
    }

    /// Makes another item of each: `extend` and `project`.
    fn map<T, F: FnMut(Self::Item<'_>) -> T>(self, f: F) -> Map<Self, F> {
        Map { input: self, f }
    }

    /// Makes any number of items of each.
    fn flat_map<I: IntoIterator, F: FnMut(Self::Item<'_>) -> I>(self, f: F) -> FlatMap<Self, F> {
        FlatMap { input: self, f }
    }

    /// Groups by key: `by`. Items without a key (`None`) are left out.
    fn key_by<K: Key, F: FnMut(&Self::Item<'_>) -> Option<K>>(self, key: F) -> Keyed<Self, F> {
        Keyed::new(self, key)
    }

    /// Runs the stream to its end: a sink.
    ///
    /// # Errors
    /// When the source could not go on; everything before the fault was processed, and windows
    /// were closed.
    fn for_each(mut self, mut f: impl FnMut(i64, Self::Item<'_>)) -> Result<(), SourceError> {
        let result = loop {
            match self.batch(&mut f) {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        self.finish(&mut f);
        result
    }

    /// Runs the stream to its end and collects its items.
    ///
    /// # Errors
    /// When the source could not go on.
    fn collect<T>(self) -> Result<Vec<T>, SourceError>
    where
        Self: for<'a> Stream<Item<'a> = T>,
    {
        let mut all = Vec::new();
        self.for_each(|_, item| all.push(item))?;
        Ok(all)
    }
}

/// What items can be grouped by: small, comparable, hashed by its words.
pub trait Key: Copy + Ord {
    /// A hash that is the same on every machine; equal keys have equal hashes.
    fn hash(&self) -> u64;
}

macro_rules! word_keys {
    ($($t:ty),*) => { $(
        impl Key for $t {
            #[inline(always)]
            fn hash(&self) -> u64 {
                crate::table::hash([*self as u64])
            }
        }
    )* };
}

word_keys!(bool, u8, u16, u32, u64, i64);

impl Key for u128 {
    #[inline(always)]
    fn hash(&self) -> u64 {
        crate::table::hash([(*self >> 64) as u64, *self as u64])
    }
}

impl Key for std::net::IpAddr {
    #[inline(always)]
    fn hash(&self) -> u64 {
        match weir_plan::Value::ip(*self) {
            weir_plan::Value::Ip(bits) => bits.hash(),
            _ => unreachable!("an address is an address"),
        }
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    #[inline(always)]
    fn hash(&self) -> u64 {
        crate::table::hash([self.0.hash(), self.1.hash()])
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    #[inline(always)]
    fn hash(&self) -> u64 {
        crate::table::hash([self.0.hash(), self.1.hash(), self.2.hash()])
    }
}

/// See [`Stream::filter`].
pub struct Filter<S, F> {
    input: S,
    keep: F,
}

impl<S: Stream, F: FnMut(&S::Item<'_>) -> bool> Stream for Filter<S, F> {
    type Item<'a> = S::Item<'a>;

    fn batch(
        &mut self,
        mut f: impl FnMut(i64, Self::Item<'_>),
    ) -> Result<Option<i64>, SourceError> {
        let keep = &mut self.keep;
        self.input.batch(|t, item| {
            if keep(&item) {
                f(t, item);
            }
        })
    }

    fn finish(&mut self, mut f: impl FnMut(i64, Self::Item<'_>)) {
        let keep = &mut self.keep;
        self.input.finish(|t, item| {
            if keep(&item) {
                f(t, item);
            }
        });
    }
}

/// See [`Stream::map`].
pub struct Map<S, F> {
    input: S,
    f: F,
}

impl<S: Stream, T, F: FnMut(S::Item<'_>) -> T> Stream for Map<S, F> {
    type Item<'a> = T;

    fn batch(&mut self, mut f: impl FnMut(i64, T)) -> Result<Option<i64>, SourceError> {
        let map = &mut self.f;
        self.input.batch(|t, item| f(t, map(item)))
    }

    fn finish(&mut self, mut f: impl FnMut(i64, T)) {
        let map = &mut self.f;
        self.input.finish(|t, item| f(t, map(item)));
    }
}

/// See [`Stream::flat_map`].
pub struct FlatMap<S, F> {
    input: S,
    f: F,
}

impl<S: Stream, I: IntoIterator, F: FnMut(S::Item<'_>) -> I> Stream for FlatMap<S, F> {
    type Item<'a> = I::Item;

    fn batch(&mut self, mut f: impl FnMut(i64, I::Item)) -> Result<Option<i64>, SourceError> {
        let map = &mut self.f;
        self.input.batch(|t, item| map(item).into_iter().for_each(|x| f(t, x)))
    }

    fn finish(&mut self, mut f: impl FnMut(i64, I::Item)) {
        let map = &mut self.f;
        self.input.finish(|t, item| map(item).into_iter().for_each(|x| f(t, x)));
    }
}

#[cfg(test)]
mod tests;
