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
//! be older, but for those that come late. Event time is that of packets, as in queries: an item is
//! late for a window if the window had closed when the item's packet came, however the packets were
//! cut into batches.
//!
//! A keyed operator sees each batch twice: first the keys of all items are made and looked up, then
//! each item meets the value of its key ([`Passes`]). Nothing is allocated per packet or batch; a
//! table grows without stopping the stream.

mod chain;
mod flow;
mod key;
mod keyed;
mod packet;
mod sliding;
mod table;
mod time;
mod windows;

pub use crate::table::HashKey;
pub use chain::{Filter, FlatMap, Map};
pub use flow::Flow;
pub use key::Key;
pub use keyed::{Group, Keyed, MapWithState, Reduce, Tumbling};
pub use packet::{Packet, Packets};
pub use sliding::{Sliding, SlidingReduce};
pub use time::Time;

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
    fn batch(
        &mut self,
        f: impl FnMut(Time<'_>, Self::Item<'_>),
    ) -> Result<Option<i64>, SourceError>;

    /// Calls `f` with what is left to say once there are no more batches.
    fn finish(&mut self, f: impl FnMut(Time<'_>, Self::Item<'_>));

    /// Like [`Stream::batch`], for those who look something up for each item and would rather not
    /// wait for it: see [`Passes`]. Streams need not say how; one that can hand out its items twice
    /// lets many look-ups go on at once.
    ///
    /// # Errors
    /// As for [`Stream::batch`].
    fn batch_passes<P: Passes<Self>>(
        &mut self,
        passes: &mut P,
    ) -> Result<Option<i64>, SourceError> {
        self.batch(|t, item| once(passes, t, item))
    }

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
        Self: for<'a> Stream<Item<'a> = T>,
    {
        let mut all = Vec::new();
        self.for_each(|_, item| all.push(item))?;
        Ok(all)
    }
}

/// What looks at the items of a batch in two passes: the first says what to look up, the second
/// uses it. See [`Stream::batch_passes`].
pub trait Passes<S: Stream> {
    /// Whether the second pass looks at the time.
    const TIMED: bool;

    /// Sees each item, in order; `false` leaves it out of the second pass.
    fn first(&mut self, t: Time<'_>, item: &S::Item<'_>) -> bool;

    /// Comes between the passes, after at most [`BATCH`](weir_packet::limits::BATCH) items were
    /// taken.
    fn turn(&mut self);

    /// Sees the items that the first pass took, in order.
    fn second(&mut self, t: Time<'_>, item: S::Item<'_>);

    /// Comes after the second pass.
    fn done(&mut self);
}

/// Both passes over a single item.
#[inline(always)]
fn once<S: Stream>(passes: &mut impl Passes<S>, t: Time<'_>, item: S::Item<'_>) {
    if passes.first(t, &item) {
        passes.turn();
        passes.second(t, item);
        passes.done();
    }
}

#[cfg(test)]
mod tests;
