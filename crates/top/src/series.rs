//! Traffic over time, in a bounded number of points.

use crate::limits::POINTS_MAX;
use crate::measure::SECOND_NS;
use std::collections::VecDeque;

/// Packets and bytes of a stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Point {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Point {
    fn add(&mut self, other: Point) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The rule where there are more points than there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WhenLong {
    /// The oldest are forgotten.
    Forget,
    /// Each two become one, so that all of the time is there.
    Widen,
}

/// Points of equal lengths, one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// When the first one starts.
    start: i64,
    /// The length of each.
    step: i64,
    points: VecDeque<Point>,
    when_long: WhenLong,
}

impl Series {
    /// None yet, of a live run a second each.
    pub(crate) fn new(when_long: WhenLong) -> Series {
        let step = match when_long {
            WhenLong::Forget => SECOND_NS,
            WhenLong::Widen => SECOND_NS / 10,
        };
        Series { start: 0, step, points: VecDeque::new(), when_long }
    }

    /// Adds what a window had that starts at this time.
    pub(crate) fn add(&mut self, ts: i64, point: Point) {
        if self.points.is_empty() {
            self.start = ts.div_euclid(self.step).saturating_mul(self.step);
        }
        let Some(at) = self.place(ts) else { return };
        while self.points.len() <= at {
            self.points.push_back(Point::default());
        }
        self.points[at].add(point);
    }

    /// The number of the point of a time, for which room is made; `None` if it was forgotten.
    fn place(&mut self, ts: i64) -> Option<usize> {
        let number = |start: i64, step: i64| {
            (i128::from(ts) - i128::from(start)).div_euclid(i128::from(step))
        };
        let mut at = number(self.start, self.step);
        let most = POINTS_MAX as i128;
        match self.when_long {
            // Traffic before the first point is counted with it.
            WhenLong::Widen => {
                while at >= most {
                    self.widen();
                    at = number(self.start, self.step);
                }
                at = at.max(0);
            }
            WhenLong::Forget if at >= 2 * most => {
                self.points.clear();
                self.start = ts.div_euclid(self.step).saturating_mul(self.step);
                at = 0;
            }
            WhenLong::Forget => {
                while at >= most {
                    self.points.pop_front();
                    self.start = self.start.saturating_add(self.step);
                    at -= 1;
                }
            }
        }
        usize::try_from(at).ok()
    }

    /// Takes each two points together.
    fn widen(&mut self) {
        let pairs = self.points.len().div_ceil(2);
        for i in 0..pairs {
            let mut sum = self.points[2 * i];
            if let Some(next) = self.points.get(2 * i + 1) {
                sum.add(*next);
            }
            self.points[i] = sum;
        }
        self.points.truncate(pairs);
        self.step = self.step.saturating_mul(2);
    }

    /// When it starts, and when it ends; `None` of no points.
    pub fn span(&self) -> Option<(i64, i64)> {
        let length = self.step.saturating_mul(self.points.len() as i64);
        (!self.points.is_empty()).then(|| (self.start, self.start.saturating_add(length)))
    }

    /// The points.
    pub fn points(&self) -> impl ExactSizeIterator<Item = Point> + '_ {
        self.points.iter().copied()
    }

    /// Nanoseconds of each point.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// So many values for a picture of it: the last ones, the newest at the end, where old points
    /// are forgotten; else all of the time, each the mean of its part.
    pub(crate) fn fitted(&self, width: usize, value: impl Fn(Point) -> u64) -> Vec<f64> {
        let n = self.points.len();
        if self.when_long == WhenLong::Forget {
            let values = self.points.iter().skip(n.saturating_sub(width)).map(|p| value(*p) as f64);
            let missing = width.saturating_sub(n);
            return std::iter::repeat_n(0.0, missing).chain(values).collect();
        }
        let part = |i: usize| {
            let (from, to) = (i * n / width, ((i + 1) * n / width).max(i * n / width + 1));
            let sum: f64 = (from..to.min(n)).map(|j| value(self.points[j]) as f64).sum();
            sum / (to - from) as f64
        };
        if n == 0 { vec![0.0; width] } else { (0..width).map(part).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: Point = Point { packets: 1, bytes: 10 };

    fn packets(series: &Series) -> Vec<u64> {
        series.points().map(|p| p.packets).collect()
    }

    #[test]
    fn seconds_of_a_live_run() {
        let mut series = Series::new(WhenLong::Forget);
        for second in [100, 100, 102, 101, 99] {
            series.add(second * SECOND_NS + 7, ONE);
        }
        // Traffic before the first point is forgotten already.
        assert_eq!(packets(&series), [2, 1, 1]);
        assert_eq!(series.span(), Some((100 * SECOND_NS, 103 * SECOND_NS)));
        assert_eq!(series.fitted(2, |p| p.packets), [1.0, 1.0]);
        assert_eq!(series.fitted(5, |p| p.packets), [0.0, 0.0, 2.0, 1.0, 1.0]);
        series.add((100 + POINTS_MAX as i64) * SECOND_NS, ONE);
        assert_eq!((series.points().len(), packets(&series)[0]), (POINTS_MAX, 1));
        // A clock that was set ahead by years.
        series.add(1 << 62, ONE);
        assert_eq!(packets(&series), [1]);
    }

    #[test]
    fn a_capture_with_a_gap_of_years_fits() {
        let mut series = Series::new(WhenLong::Widen);
        series.add(0, ONE);
        series.add(SECOND_NS / 10, ONE);
        assert_eq!(packets(&series), [1, 1]);
        assert_eq!(series.fitted(4, |p| p.packets), [1.0, 1.0, 1.0, 1.0]);
        series.add(10 * 365 * 86_400 * SECOND_NS, ONE);
        let all = packets(&series);
        assert!(all.len() <= POINTS_MAX && all.iter().sum::<u64>() == 3 && all[0] == 2, "{all:?}");
        assert_eq!(Series::new(WhenLong::Widen).fitted(3, |p| p.bytes), [0.0; 3]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_of_a_capture(
            times in prop::collection::vec(
                prop_oneof![any::<i64>(), 0..9_000_000_000_i64,
                            Just(i64::MIN), Just(i64::MAX), Just(i64::MAX - 1)], 1..40),
            width in 1_usize..200,
        ) {
            let mut whole = Series::new(WhenLong::Widen);
            let mut live = Series::new(WhenLong::Forget);
            for &ts in &times {
                whole.add(ts, ONE);
                live.add(ts, ONE);
            }
            prop_assert_eq!(packets(&whole).iter().sum::<u64>(), times.len() as u64);
            prop_assert!(whole.points().len() <= POINTS_MAX && live.points().len() <= POINTS_MAX);
            for series in [&whole, &live] {
                prop_assert_eq!(series.fitted(width, |p| p.bytes).len(), width);
            }
        }
    }
}
