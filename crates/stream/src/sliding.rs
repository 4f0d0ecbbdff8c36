//! Windows that overlap, put together from panes.

use crate::batches::Batches;
use crate::grouping::Grouping;
use crate::key::Key;
use crate::reduce::{Group, Reduce};
use crate::time::Time;
use std::collections::BTreeMap;
use weir_packet::source::SourceError;
use weir_plan::Window;
use weir_plan::limits::PANES_MAX;

/// See [`Keyed::sliding`](crate::Keyed::sliding).
pub struct Sliding<S, F> {
    grouping: Grouping<S, F>,
    over: i64,
    every: i64,
}

impl<S, F> Sliding<S, F> {
    pub(super) fn new(grouping: Grouping<S, F>, over_ns: i64, every_ns: i64) -> Sliding<S, F> {
        assert!(0 < every_ns && every_ns <= over_ns, "windows have a length, and no gaps");
        let sliding = Sliding { grouping, over: over_ns, every: every_ns };
        assert!(over_ns / sliding.pane() <= PANES_MAX, "a window has at most {PANES_MAX} panes");
        sliding
    }

    /// The longest time that no window starts or ends within.
    fn pane(&self) -> i64 {
        let window = Window::Sliding { over: self.over, every: self.every };
        window.pane().unwrap_or(self.every)
    }

    /// Folds the items of each key and window: `summarize … over … every`. Items are folded into
    /// panes, and these into the windows that hold them, so `merge` must be associative. A window's
    /// groups come out when the watermark has passed its end. An item is late, and left out, once
    /// its pane has closed; `max_keys` are those of a pane.
    pub fn reduce<K, V, G, M>(self, value: G, merge: M) -> SlidingReduce<S, F, G, M, K, V>
    where
        S: Batches,
        K: Key,
        V: Clone,
        F: FnMut(&S::Item<'_>) -> Option<K>,
        G: FnMut(S::Item<'_>) -> V,
        M: FnMut(&mut V, V),
    {
        let (over, every, pane) = (self.over as i128, self.every as i128, self.pane());
        let panes = Reduce::new(self.grouping, Some(pane), value, merge);
        SlidingReduce {
            panes,
            closed: Closed { over, every, next: i128::MIN, held: BTreeMap::new() },
        }
    }
}

/// See [`Sliding::reduce`].
pub struct SlidingReduce<S, F, G, M, K: Key, V> {
    panes: Reduce<S, F, G, M, K, V>,
    closed: Closed<K, V>,
}

impl<S, F, G, M, K: Key, V> SlidingReduce<S, F, G, M, K, V> {
    /// Items that came after their pane had closed.
    pub fn late(&self) -> u64 {
        self.panes.late()
    }

    /// Items whose key found no room, and items of one pane more than
    /// [`WINDOWS_MAX`](crate::limits::WINDOWS_MAX).
    pub fn evicted(&self) -> u64 {
        self.panes.evicted()
    }
}

/// The panes that have closed, until no window needs them any more.
struct Closed<K, V> {
    over: i128,
    every: i128,
    /// No window that starts before this one comes out any more.
    next: i128,
    /// Values by start of the pane, in order of their keys.
    held: BTreeMap<i64, Vec<(K, V)>>,
}

impl<K: Key, V: Clone> Closed<K, V> {
    fn push(&mut self, group: Group<K, V>) {
        self.held.entry(group.start).or_default().push((group.key, group.value));
    }

    /// The start of the first window that ends after `t`.
    fn first_ending_after(&self, t: i64) -> i128 {
        (t as i128 - self.over).div_euclid(self.every) * self.every + self.every
    }

    /// Puts out the windows that end at or before `end`, or all. Returns the start of the first
    /// that did not come out, as far as time goes.
    fn put_out(
        &mut self,
        end: Option<i64>,
        merge: &mut impl FnMut(&mut V, V),
        f: &mut impl FnMut(Time<'_>, Group<K, V>),
    ) -> i64 {
        let open = end.map_or(i128::MAX, |end| self.first_ending_after(end));
        while let Some((&oldest, _)) = self.held.first_key_value() {
            let start = self.first_ending_after(oldest).max(self.next);
            if start >= open {
                break;
            }
            self.window(start, merge, f);
            self.next = start + self.every;
            self.held.retain(|&pane, _| pane as i128 >= start + self.every);
        }
        clamp(open)
    }

    /// Puts out a window, before which no pane is held.
    fn window(
        &self,
        start: i128,
        merge: &mut impl FnMut(&mut V, V),
        f: &mut impl FnMut(Time<'_>, Group<K, V>),
    ) {
        let end = start + self.over;
        let inside = self.held.iter().take_while(|(pane, _)| (**pane as i128) < end);
        let start = clamp(start);
        let mut all: Vec<&(K, V)> = inside.flat_map(|(_, values)| values).collect();
        // Stable: values of one key stay in the order of their panes.
        all.sort_by_key(|(key, _)| *key);
        for same in all.chunk_by(|a, b| a.0 == b.0) {
            let (key, mut value) = same[0].clone();
            same[1..].iter().for_each(|(_, v)| merge(&mut value, v.clone()));
            f(Time::new(start, i64::MIN), Group { start, key, value });
        }
    }
}

/// As far as time goes.
fn clamp(t: i128) -> i64 {
    t.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

impl<S, F, G, M, K, V> Batches for SlidingReduce<S, F, G, M, K, V>
where
    S: Batches,
    K: Key,
    V: Clone,
    F: FnMut(&S::Item<'_>) -> Option<K>,
    G: FnMut(S::Item<'_>) -> V,
    M: FnMut(&mut V, V),
{
    type Item<'a> = Group<K, V>;

    fn batch(
        &mut self,
        mut f: impl FnMut(Time<'_>, Group<K, V>),
    ) -> Result<Option<i64>, SourceError> {
        let SlidingReduce { panes, closed } = self;
        let Some(watermark) = panes.batch(|_, group| closed.push(group))? else { return Ok(None) };
        Ok(Some(closed.put_out(Some(watermark), &mut panes.merge, &mut f)))
    }

    fn finish(&mut self, mut f: impl FnMut(Time<'_>, Group<K, V>)) {
        let SlidingReduce { panes, closed } = self;
        panes.finish(|_, group| closed.push(group));
        closed.put_out(None, &mut panes.merge, &mut f);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batches, Packets, Stream};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use weir_engine::clock::Clock;
    use weir_model::Frames;
    use weir_packet::source::LinkType;

    proptest! {
        #[test]
        fn each_item_is_in_every_window_that_holds_it(
            times in proptest::collection::vec(0i64..300, 0..80),
            (over, every) in (1i64..50, 1i64..30), cut in 1usize..20,
        ) {
            let (over, pane) = (over.max(every), gcd(over.max(every), every));
            let (mut want, mut late) = (BTreeMap::<(i64, u8), Vec<i64>>::new(), 0);
            let mut clock = Clock::new(5, 1000);
            for &t in &times {
                let w = clock.observe(t);
                if t.div_euclid(pane) * pane + pane <= w {
                    late += 1;
                    continue;
                }
                let first = (t - over).div_euclid(every) * every + every;
                for start in (first..=t).step_by(every as usize) {
                    want.entry((start, (t % 3) as u8)).or_default().push(t);
                }
            }
            let frames: Vec<_> = times.iter().map(|&t| (t, vec![0; 60])).collect();
            let mut source = Frames::new(LinkType::ETHERNET, &frames).cut(&[cut]);
            let mut windows = Packets::new(&mut source)
                .time(5, 1000)
                .key_by(|p| Some((p.ts() % 3) as u8))
                .sliding(over, every)
                .reduce(|p| vec![p.ts()], |a, mut b| a.append(&mut b));
            let mut got = Vec::new();
            while let Some(mark) = windows.batch(|_, g| got.push(g)).unwrap() {
                let mark = mark as i128;
                prop_assert!(got.iter().all(|g| (g.start as i128) < mark));
            }
            windows.finish(|_, g| got.push(g));
            prop_assert_eq!(windows.late(), late);
            prop_assert!(got.is_sorted_by_key(|g| (g.start, g.key)));
            let sorted = |mut values: Vec<i64>| { values.sort_unstable(); values };
            let got: BTreeMap<_, _> =
                got.into_iter().map(|g| ((g.start, g.key), sorted(g.value))).collect();
            let want: BTreeMap<_, _> = want.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            prop_assert_eq!(got, want);
        }
    }

    fn gcd(a: i64, b: i64) -> i64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
}
