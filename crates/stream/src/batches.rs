//! The items of a stream, batch by batch, and how they are looked at twice.

use crate::time::Time;
use weir_packet::source::SourceError;

/// A stream of items with event time, in the order they come: what a stream has to say. The
/// operators on it stand in [`Stream`](crate::Stream).
pub trait Batches: Sized {
    /// An item as the closures see it. Packets are lent for the time of a call.
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

    /// Like [`Batches::batch`], for those who look something up for each item and would rather not
    /// wait for it: see [`Passes`]. Streams need not say how; one that can hand out its items twice
    /// lets many look-ups go on at once.
    ///
    /// # Errors
    /// As for [`Batches::batch`].
    fn batch_passes<P: Passes<Self>>(
        &mut self,
        passes: &mut P,
    ) -> Result<Option<i64>, SourceError> {
        self.batch(|t, item| once(passes, t, item))
    }
}

/// A look at the items of a batch in two passes: the first says what to look up, the second uses
/// it. See [`Batches::batch_passes`].
pub trait Passes<S: Batches> {
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
pub(crate) fn once<S: Batches>(passes: &mut impl Passes<S>, t: Time<'_>, item: S::Item<'_>) {
    if passes.first(t, &item) {
        passes.turn();
        passes.second(t, item);
        passes.done();
    }
}
