//! The times that items carry.

use std::cell::Cell;
use weir_engine::clock::Clock;
use weir_packet::limits::BATCH;

/// When an item happened, and how far time had come when it was seen.
#[derive(Clone, Copy)]
pub struct Time<'a> {
    ts: i64,
    /// The watermarks of the batch that the item came with, if it is a packet's.
    marks: Option<&'a Marks<'a>>,
    /// The row of the packet, or else the watermark itself.
    mark: i64,
}

impl<'a> Time<'a> {
    /// An item that happened at `ts`, seen when the watermark had come to `watermark`; the latter
    /// is `i64::MIN` for items that can't be late. Both in nanoseconds since 1970.
    #[inline(always)]
    pub fn new(ts: i64, watermark: i64) -> Time<'a> {
        Time { ts, marks: None, mark: watermark }
    }

    #[inline(always)]
    pub(super) fn of_row(ts: i64, marks: &'a Marks<'a>, row: usize) -> Time<'a> {
        Time { ts, marks: Some(marks), mark: row as i64 }
    }

    /// When it happened, in nanoseconds since 1970.
    #[inline(always)]
    pub fn ts(&self) -> i64 {
        self.ts
    }

    /// The watermark after the packet that the item comes from; `i64::MIN` before there is one.
    pub fn watermark(&self) -> i64 {
        self.marks.map_or(self.mark, |marks| marks.of(self.mark as usize))
    }

    /// Where the watermark will be after the batch, at most: what lies ahead of that need not ask
    /// for the watermark of each item.
    pub(super) fn horizon(&self) -> i64 {
        match self.marks {
            Some(marks) => marks.last,
            None if self.mark == i64::MIN => i64::MIN,
            // The next item may be anything.
            None => i64::MAX,
        }
    }

    /// The parts, to be handed in registers to a function that is seldom called.
    #[inline(always)]
    pub(super) fn parts(&self) -> (i64, Option<&'a Marks<'a>>, i64) {
        (self.ts, self.marks, self.mark)
    }

    /// Of [`Time::parts`].
    pub(super) fn from_parts((ts, marks, mark): (i64, Option<&'a Marks<'a>>, i64)) -> Time<'a> {
        Time { ts, marks, mark }
    }
}

/// The watermarks after each packet of a batch. Only packets near the end of a window have them
/// looked up, so that most batches never work them out.
pub(super) struct Marks<'a> {
    ts: &'a [i64],
    /// The watermark before the batch, and after it.
    before: i64,
    last: i64,
    lateness_ns: i64,
    /// The watermarks, once `known`.
    rows: &'a [Cell<i64>; BATCH],
    known: Cell<bool>,
}

impl<'a> Marks<'a> {
    /// Moves the clock over the timestamps of a batch. `lateness_ns` is the clock's own.
    pub(super) fn new(
        clock: &mut Clock,
        lateness_ns: i64,
        ts: &'a [i64],
        rows: &'a [Cell<i64>; BATCH],
    ) -> Marks<'a> {
        let before = clock.watermark();
        let max = max(ts);
        let plain = clock.observe_all(max, max);
        if !plain {
            rows.iter().zip(ts).for_each(|(row, &t)| row.set(clock.observe(t)));
        }
        Marks { ts, before, last: clock.watermark(), lateness_ns, rows, known: Cell::new(!plain) }
    }

    /// The watermark after the batch.
    pub(super) fn last(&self) -> i64 {
        self.last
    }

    fn of(&self, row: usize) -> i64 {
        if !self.known.replace(true) {
            let mut mark = self.before;
            for (row, &t) in self.rows.iter().zip(self.ts) {
                mark = mark.max(t.saturating_sub(self.lateness_ns));
                row.set(mark);
            }
        }
        self.rows[row].get()
    }
}

/// The largest timestamp. Four at a time: one comparison need not wait for the one before.
fn max(ts: &[i64]) -> i64 {
    let mut most = [i64::MIN; 4];
    let (fours, rest) = ts.as_chunks::<4>();
    for four in fours {
        most = std::array::from_fn(|i| most[i].max(four[i]));
    }
    rest.iter().copied().chain(most).max().expect("four at least")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_row_has_the_watermark_after_it(
            times in proptest::collection::vec(0i64..2000, 1..300), cut in 1usize..40,
            lateness in -3i64..50,
        ) {
            let (mut one, mut all) = (Clock::new(lateness, 100), Clock::new(lateness, 100));
            let rows = [const { Cell::new(0) }; BATCH];
            for batch in times.chunks(cut) {
                let marks = Marks::new(&mut all, lateness.max(0), batch, &rows);
                let times = batch.iter().enumerate().map(|(i, &t)| Time::of_row(t, &marks, i));
                for time in times {
                    prop_assert_eq!(time.watermark(), one.observe(time.ts()));
                    prop_assert!(time.watermark() <= time.horizon());
                }
                prop_assert_eq!(marks.last(), one.watermark());
            }
        }
    }
}
