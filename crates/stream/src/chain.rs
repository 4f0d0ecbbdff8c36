//! Operators that look at one item at a time.

use crate::batches::{Batches, Passes};
use crate::time::Time;
use weir_packet::limits::BATCH;
use weir_packet::source::SourceError;

/// See [`Stream::filter`](crate::Stream::filter).
pub struct Filter<S, F> {
    input: S,
    keep: F,
}

impl<S, F> Filter<S, F> {
    pub(super) fn new(input: S, keep: F) -> Filter<S, F> {
        Filter { input, keep }
    }
}

impl<S: Batches, F: FnMut(&S::Item<'_>) -> bool> Batches for Filter<S, F> {
    type Item<'a> = S::Item<'a>;

    #[inline(always)]
    fn batch(
        &mut self,
        mut f: impl FnMut(Time<'_>, Self::Item<'_>),
    ) -> Result<Option<i64>, SourceError> {
        let keep = &mut self.keep;
        self.input.batch(
            #[inline(always)]
            |t, item| {
                if keep(&item) {
                    f(t, item);
                }
            },
        )
    }

    fn finish(&mut self, mut f: impl FnMut(Time<'_>, Self::Item<'_>)) {
        let keep = &mut self.keep;
        self.input.finish(|t, item| {
            if keep(&item) {
                f(t, item);
            }
        });
    }

    fn batch_passes<P: Passes<Self>>(
        &mut self,
        passes: &mut P,
    ) -> Result<Option<i64>, SourceError> {
        let Filter { input, keep } = self;
        input.batch_passes(&mut Filtered { passes, keep })
    }
}

/// Passes over what a filter keeps.
struct Filtered<'p, P, F> {
    passes: &'p mut P,
    keep: &'p mut F,
}

impl<S, P, F> Passes<S> for Filtered<'_, P, F>
where
    S: Batches,
    P: Passes<Filter<S, F>>,
    F: FnMut(&S::Item<'_>) -> bool,
{
    const TIMED: bool = P::TIMED;

    #[inline(always)]
    fn first(&mut self, t: Time<'_>, item: &S::Item<'_>) -> bool {
        (self.keep)(item) && self.passes.first(t, item)
    }

    #[inline(always)]
    fn turn(&mut self) {
        self.passes.turn();
    }

    #[inline(always)]
    fn second(&mut self, t: Time<'_>, item: S::Item<'_>) {
        self.passes.second(t, item);
    }

    #[inline(always)]
    fn done(&mut self) {
        self.passes.done();
    }
}

/// See [`Stream::map`](crate::Stream::map).
pub struct Map<S, F, T> {
    input: S,
    f: F,
    held: BetweenPasses<T>,
}

impl<S, F, T> Map<S, F, T> {
    pub(super) fn new(input: S, f: F) -> Map<S, F, T> {
        Map { input, f, held: BetweenPasses::new() }
    }
}

impl<S: Batches, T, F: FnMut(S::Item<'_>) -> T> Batches for Map<S, F, T> {
    type Item<'a> = T;

    #[inline(always)]
    fn batch(&mut self, mut f: impl FnMut(Time<'_>, T)) -> Result<Option<i64>, SourceError> {
        let map = &mut self.f;
        self.input.batch(
            #[inline(always)]
            |t, item| f(t, map(item)),
        )
    }

    fn finish(&mut self, mut f: impl FnMut(Time<'_>, T)) {
        let map = &mut self.f;
        self.input.finish(|t, item| f(t, map(item)));
    }

    fn batch_passes<P: Passes<Self>>(
        &mut self,
        passes: &mut P,
    ) -> Result<Option<i64>, SourceError> {
        let Map { input, f, held } = self;
        let watermark = input.batch(
            #[inline(always)]
            |t, item| held.push(passes, t, f(item)),
        );
        held.flush(passes);
        watermark
    }
}

/// See [`Stream::flat_map`](crate::Stream::flat_map).
pub struct FlatMap<S, F, T> {
    input: S,
    f: F,
    held: BetweenPasses<T>,
}

impl<S, F, T> FlatMap<S, F, T> {
    pub(super) fn new(input: S, f: F) -> FlatMap<S, F, T> {
        FlatMap { input, f, held: BetweenPasses::new() }
    }
}

impl<S, I, F> Batches for FlatMap<S, F, I::Item>
where
    S: Batches,
    I: IntoIterator,
    F: FnMut(S::Item<'_>) -> I,
{
    type Item<'a> = I::Item;

    #[inline(always)]
    fn batch(&mut self, mut f: impl FnMut(Time<'_>, I::Item)) -> Result<Option<i64>, SourceError> {
        let map = &mut self.f;
        self.input.batch(
            #[inline(always)]
            |t, item| map(item).into_iter().for_each(|x| f(t, x)),
        )
    }

    fn finish(&mut self, mut f: impl FnMut(Time<'_>, I::Item)) {
        let map = &mut self.f;
        self.input.finish(|t, item| map(item).into_iter().for_each(|x| f(t, x)));
    }

    fn batch_passes<P: Passes<Self>>(
        &mut self,
        passes: &mut P,
    ) -> Result<Option<i64>, SourceError> {
        let FlatMap { input, f, held } = self;
        let watermark =
            input.batch(|t, item| f(item).into_iter().for_each(|x| held.push(passes, t, x)));
        held.flush(passes);
        watermark
    }
}

/// Items between the two passes, with their times and watermarks.
struct BetweenPasses<T>(Vec<(i64, i64, T)>);

impl<T> BetweenPasses<T> {
    fn new() -> BetweenPasses<T> {
        BetweenPasses(Vec::with_capacity(BATCH))
    }

    /// Takes an item through the first pass, and all through the second when there are enough.
    #[inline(always)]
    fn push<S>(&mut self, passes: &mut impl Passes<S>, t: Time<'_>, item: T)
    where
        S: for<'a> Batches<Item<'a> = T>,
    {
        if passes.first(t, &item) {
            let watermark = if timed(passes) { t.watermark() } else { i64::MIN };
            self.0.push((t.ts(), watermark, item));
            if self.0.len() == BATCH {
                self.flush(passes);
            }
        }
    }

    /// Takes what is held through the second pass.
    fn flush<S>(&mut self, passes: &mut impl Passes<S>)
    where
        S: for<'a> Batches<Item<'a> = T>,
    {
        if self.0.is_empty() {
            return;
        }
        passes.turn();
        for (ts, watermark, item) in self.0.drain(..) {
            passes.second(Time::new(ts, watermark), item);
        }
        passes.done();
    }
}

fn timed<S: Batches, P: Passes<S>>(_: &P) -> bool {
    P::TIMED
}
