//! The times that the frames of a port bear, by the system's clock.

use crate::limits::{CLOCKS_APART_NS, REACHED_BEHIND_NS};
use rustix::event::poll;
use rustix::time::Timespec;

/// Does nothing for less than a second, or until a signal comes.
pub(crate) fn pause(ns: i64) {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: ns }));
}

/// Where the times of a port's frames come from.
#[derive(Debug)]
pub(crate) enum Times {
    /// The system's clock, when frames are taken.
    System,
    /// The device's clock, in ticks that are compared with the system's again and again.
    Ticks(Ticks),
    /// A file, which has microseconds since 1970: the latest, and when it was there.
    File(Option<(i64, i64)>),
}

impl Times {
    /// The time of a frame for which the device says this, taken now.
    pub(crate) fn of(&mut self, stamp: Option<u64>, now: i64) -> i64 {
        match (self, stamp) {
            (Times::Ticks(ticks), Some(stamp)) => ticks.time(stamp, now),
            (Times::File(latest), stamp) => {
                let read = stamp.and_then(|micros| i64::try_from(micros).ok()?.checked_mul(1000));
                let (before, _) = latest.unwrap_or((0, now));
                let ts = read.unwrap_or(before);
                *latest = Some((ts.max(before), now));
                ts
            }
            _ => now,
        }
    }

    /// The time that all frames to come are later than: where no frame waits (`empty`), time goes
    /// on by itself, else it is that of the frames that came.
    pub(crate) fn reached(&self, now: i64, empty: bool) -> Option<i64> {
        let at = match self {
            Times::System => return Some(now),
            Times::Ticks(_) if empty => now,
            Times::Ticks(ticks) => ticks.latest?,
            Times::File(latest) => {
                let (ts, then) = (*latest)?;
                if empty { ts.saturating_add(now.saturating_sub(then)) } else { ts }
            }
        };
        Some(at.saturating_sub(REACHED_BEHIND_NS))
    }

    /// Compares clocks.
    pub(crate) fn compare(&mut self, ticks: impl FnOnce() -> Option<u64>, now: i64) {
        if let Times::Ticks(clock) = self
            && let Some(ticks) = ticks()
        {
            clock.compare(ticks, now);
        }
    }
}

/// A clock of a device, in ticks whose length it does not tell.
#[derive(Debug)]
pub(crate) struct Ticks {
    first: (u64, i64),
    last: (u64, i64),
    /// The latest time of a frame that was believed.
    latest: Option<i64>,
}

impl Ticks {
    /// A clock that showed so many ticks at two times of the system's.
    pub(crate) fn new(first: (u64, i64), second: (u64, i64)) -> Ticks {
        Ticks { first, last: second, latest: None }
    }

    fn compare(&mut self, ticks: u64, now: i64) {
        if ticks > self.last.0 && now > self.last.1 {
            self.last = (ticks, now);
        } else {
            // One of them was set: what was known before says nothing any more.
            self.first = self.last;
            self.last = (ticks, now);
        }
    }

    /// The system's time at a number of ticks; now, where that can't be.
    fn time(&mut self, stamp: u64, now: i64) -> i64 {
        let passed = self.last.0.wrapping_sub(self.first.0) as f64;
        let each = (self.last.1 - self.first.1) as f64 / passed;
        let since = i128::from(stamp) - i128::from(self.last.0);
        let ts = self.last.1.saturating_add((since as f64 * each) as i64);
        let good = each.is_finite() && each > 0.0;
        if !good || !(now.saturating_sub(CLOCKS_APART_NS)..=now).contains(&ts) {
            return now;
        }
        self.latest = self.latest.max(Some(ts));
        ts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn ticks_become_times_of_the_system() {
        // 125 MHz: 8 ns a tick.
        let mut times = Times::Ticks(Ticks::new((1000, 50 * S), (1000 + 125_000_000, 51 * S)));
        assert_eq!(times.of(Some(1000 + 125_000_000 + 125), 52 * S), 51 * S + 1000);
        assert_eq!(times.of(Some(1000 + 125_000_000 - 125), 51 * S), 51 * S - 1000);
        // No stamp, one of the future, and one of long ago.
        for stamp in [None, Some(u64::MAX), Some(0)] {
            assert_eq!(times.of(stamp, 53 * S), 53 * S, "{stamp:?}");
        }
        let latest = Some(51 * S + 1000 - REACHED_BEHIND_NS);
        assert_eq!(times.reached(53 * S, false), latest, "by frames that are believed");
        // The device slows down by half a second in ten.
        times.compare(|| Some(1000 + 10 * 125_000_000), 60 * S + S / 2);
        let ts = times.of(Some(1000 + 10 * 125_000_000), 61 * S);
        assert_eq!(ts, 60 * S + S / 2);
        assert_eq!(times.reached(61 * S, true), Some(61 * S - REACHED_BEHIND_NS));
        // Frames that wait may be as old as those that came.
        assert_eq!(times.reached(61 * S, false), Some(60 * S + S / 2 - REACHED_BEHIND_NS));
    }

    #[test]
    fn a_clock_that_was_set_is_learnt_anew() {
        let mut times = Times::Ticks(Ticks::new((10, S), (20, 2 * S)));
        times.compare(|| Some(5), 3 * S);
        assert_eq!(times.of(Some(5), 3 * S), 3 * S);
        times.compare(|| Some(15), 4 * S);
        let ts = times.of(Some(15), 4 * S);
        assert!((3 * S..=4 * S).contains(&ts), "{ts}");
    }

    #[test]
    fn times_of_a_file_go_on_where_it_ends() {
        let mut times = Times::File(None);
        assert_eq!((times.reached(S, true), times.reached(S, false)), (None, None));
        assert_eq!(times.of(Some(7_000_000), 100 * S), 7 * S);
        assert_eq!(times.of(Some(6_000_000), 100 * S), 6 * S);
        assert_eq!(times.of(None, 100 * S), 7 * S);
        assert_eq!(times.reached(102 * S, true), Some(9 * S - REACHED_BEHIND_NS));
        assert_eq!(times.reached(102 * S, false), Some(7 * S - REACHED_BEHIND_NS));
    }
}
