//! When sessions may have been idle for too long.
//!
//! A ring of buckets, each for a span of time: a row waits in that of the moment at which its
//! session ends unless a further row comes. When the time is there the row is looked at, and put
//! again if its session goes on. So each row is looked at about once a gap, however often it is
//! touched, and touching it costs nothing.

use crate::limits::WHEEL_BUCKETS;

/// Rows by the time at which to look at them.
pub(super) struct Wheel {
    /// Nanoseconds of one bucket.
    width: i64,
    /// The ring; `first` is the position of the bucket of time `now`, counted in widths.
    buckets: Vec<Vec<u32>>,
    first: usize,
    now: i64,
}

impl Wheel {
    /// A wheel for times up to `gap` ahead, looked at every `tick`.
    pub(super) fn new(gap: i64, tick: i64) -> Wheel {
        let width = (gap / WHEEL_BUCKETS).max(tick);
        // The bucket of now, one for a gap that starts within it, one for what is beyond.
        let buckets = vec![Vec::new(); (gap / width) as usize + 3];
        Wheel { width, buckets, first: 0, now: i64::MIN }
    }

    /// Puts a row to be looked at when it is `due`, or before.
    pub(super) fn schedule(&mut self, row: u32, due: i64) {
        let ahead = due.div_euclid(self.width).saturating_sub(self.now).max(0);
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX).min(self.buckets.len() - 1);
        let at = (self.first + ahead) % self.buckets.len();
        self.buckets[at].push(row);
    }

    /// Moves to time `t`, and takes the rows out that are due by then; those due soon may be among
    /// them.
    pub(super) fn turn(&mut self, t: i64, due: &mut Vec<u32>) {
        let now = t.div_euclid(self.width);
        let steps = usize::try_from(now.saturating_sub(self.now).max(0)).unwrap_or(usize::MAX);
        let n = self.buckets.len();
        for ahead in 0..=steps.min(n - 1) {
            due.append(&mut self.buckets[(self.first + ahead) % n]);
        }
        self.first = (self.first + steps % n) % n;
        self.now = self.now.max(now);
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.buckets.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nobody_is_looked_at_late(
            gap in 1i64..5_000, tick in 1i64..50,
            steps in proptest::collection::vec((0i64..900, 0i64..5_000), 1..60),
        ) {
            let mut wheel = Wheel::new(gap, tick);
            let (mut t, mut waiting, mut looks) = (-3_000, Vec::new(), 0);
            for (step, ahead) in steps {
                t += step;
                let mut due = Vec::new();
                wheel.turn(t, &mut due);
                looks += due.len();
                for row in due {
                    let at = waiting.iter().position(|(r, _)| *r == row).expect("it was put once");
                    let (_, when) = waiting.swap_remove(at);
                    if when > t {
                        waiting.push((row, when));
                        wheel.schedule(row, when);
                    }
                }
                prop_assert!(waiting.iter().all(|(_, when)| *when > t));
                let row = waiting.iter().map(|(row, _)| row + 1).max().unwrap_or(0);
                waiting.push((row, t + ahead));
                wheel.schedule(row, t + ahead);
            }
            prop_assert!(looks < 3_600);
        }
    }

    #[test]
    fn the_ends_of_time_are_times() {
        let mut wheel = Wheel::new(i64::MAX, 1_000_000_000);
        let mut due = Vec::new();
        wheel.schedule(1, i64::MIN);
        wheel.schedule(2, i64::MAX);
        wheel.turn(i64::MIN, &mut due);
        wheel.turn(i64::MAX, &mut due);
        due.sort_unstable();
        assert_eq!(due, [1, 2]);
    }
}
