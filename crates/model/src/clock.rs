//! From packet timestamps to the watermark.

use weir_packet::time::NO_TIME;

/// Packets that start the clock, and wild packets in a row that move it.
const WITNESSES: usize = 4;

/// How far the clock trusts timestamps. Below 0 counts as 0.
#[derive(Clone, Copy, Debug)]
pub struct TimeRules {
    /// How far the watermark stays behind the clock, in nanoseconds.
    pub lateness_ns: i64,
    /// How far ahead of the clock a packet may be and still be believed by itself, in nanoseconds.
    pub jump_ns: i64,
}

/// The clock: its rules are in the first section of [the crate](crate).
pub(super) struct PlainClock {
    rules: TimeRules,
    /// The first packets' times, until the clock starts.
    first: Vec<i64>,
    max: Option<i64>,
    /// The largest time of a packet that it believes; later than the clock after a gap.
    largest: i64,
    /// The time that the source says it has reached.
    reached: i64,
    /// The times of the wild packets that came directly before.
    run: Vec<i64>,
    /// Wild packets so far that no other confirmed.
    pub(super) wild: u64,
    /// Packets whose time is before that of a believed one that came earlier.
    pub(super) disordered: u64,
    /// Packets so far that have no time.
    pub(super) untimed: u64,
}

impl PlainClock {
    pub(super) fn new(rules: TimeRules) -> PlainClock {
        let rules =
            TimeRules { lateness_ns: rules.lateness_ns.max(0), jump_ns: rules.jump_ns.max(0) };
        PlainClock {
            rules,
            first: Vec::new(),
            max: None,
            largest: i64::MIN,
            reached: i64::MIN,
            run: Vec::new(),
            wild: 0,
            disordered: 0,
            untimed: 0,
        }
    }

    /// Takes the time of the next packet and returns the watermark after it.
    pub(super) fn observe(&mut self, ts: i64) -> i64 {
        if ts == NO_TIME {
            self.untimed += 1;
        } else if let Some(max) = self.max {
            self.follow(max, ts);
        } else {
            self.first.push(ts);
            let jump = self.rules.jump_ns;
            let near = |t: i64| t <= ts.saturating_add(jump) && ts <= t.saturating_add(jump);
            let agree = self.first.iter().filter(|&&t| near(t)).count() > 1;
            if agree || self.first.len() == WITNESSES {
                self.max = self.first.iter().copied().min();
                for ts in std::mem::take(&mut self.first) {
                    self.follow(self.max.expect("the clock has started"), ts);
                }
            }
        }
        self.watermark()
    }

    /// The time that it has come to; the least there is before it has started.
    pub(super) fn stands_at(&self) -> i64 {
        self.max.unwrap_or(i64::MIN)
    }

    /// Takes the source's word for a time and returns the watermark after it.
    pub(super) fn reach(&mut self, ts: i64) -> i64 {
        (self.reached, self.largest) = (self.reached.max(ts), self.largest.max(ts));
        self.max = Some(self.max.map_or(ts, |max| max.max(ts)));
        for ts in std::mem::take(&mut self.first) {
            self.follow(self.max.expect("the clock has started"), ts);
        }
        self.watermark()
    }

    pub(super) fn watermark(&self) -> i64 {
        let behind = |max: i64| max.saturating_sub(self.rules.lateness_ns);
        self.max.map_or(i64::MIN, |max| behind(max).max(self.reached))
    }

    fn follow(&mut self, max: i64, ts: i64) {
        if ts <= max.saturating_add(self.rules.jump_ns) {
            self.wild += self.run.len() as u64;
            self.believe(ts);
            self.run.clear();
            self.max = Some(max.max(ts));
            return;
        }
        self.run.push(ts);
        if self.run.len() == WITNESSES {
            let run = std::mem::take(&mut self.run);
            self.max = run.iter().copied().min();
            let near = self.max.map(|least| least.saturating_add(self.rules.jump_ns));
            run.into_iter().filter(|&ts| Some(ts) <= near).for_each(|ts| self.believe(ts));
        }
    }

    fn believe(&mut self, ts: i64) {
        self.disordered += u64::from(ts < self.largest);
        self.largest = self.largest.max(ts);
    }

    /// After the last packet, those that it does not believe yet count by their order, too.
    pub(super) fn end(&mut self) {
        let ahead: Vec<i64> = self.first.drain(..).chain(self.run.drain(..)).collect();
        ahead.into_iter().for_each(|ts| self.believe(ts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lateness 10, jump 100: the watermark after each packet, and how many were wild.
    fn check(times: &[i64], watermarks: &[i64], wild: u64) {
        let mut clock = PlainClock::new(TimeRules { lateness_ns: 10, jump_ns: 100 });
        let got: Vec<i64> = times.iter().map(|&ts| clock.observe(ts)).collect();
        assert_eq!((got.as_slice(), clock.wild), (watermarks, wild), "{times:?}");
    }

    const NONE: i64 = i64::MIN;

    #[test]
    fn two_packets_that_agree_start_it() {
        check(&[50], &[NONE], 0);
        check(&[50, 51, 60, 55], &[NONE, 41, 50, 50], 0);
        check(&[50, 40, 51], &[NONE, 40, 41], 0);
        // Exactly the jump apart, and more.
        check(&[50, 150, 151], &[NONE, 140, 141], 0);
        check(&[50, 151, 60], &[NONE, NONE, 50], 1);
        // 9000 came first, and is wild.
        check(&[9000, 50, 51], &[NONE, NONE, 41], 1);
        check(&[9000, 8000, 50, 51], &[NONE, NONE, NONE, 41], 2);
        // A first packet of long ago costs what a gap costs.
        check(&[0, 5000, 5001, 5002, 5003], &[NONE, NONE, -10, -10, 4990], 0);
    }

    #[test]
    fn the_fourth_packet_starts_it_where_none_agree() {
        check(&[4000, 3000, 2000, 1000], &[NONE, NONE, NONE, 990], 3);
        check(&[1000, 2000, 3000, 4000, 5000], &[NONE, NONE, NONE, 990, 1990], 0);
    }

    #[test]
    fn the_fourth_wild_packet_in_a_row_moves_it() {
        let start = [50; 4];
        let after = |times: &[i64]| [&start[..], times].concat();
        let marks = |marks: &[i64]| [&[NONE, 40, 40, 40], marks].concat();
        check(&after(&[150, 250]), &marks(&[140, 240]), 0);
        check(&after(&[151, 60]), &marks(&[40, 50]), 1);
        check(&after(&[900, 903, 901, 902]), &marks(&[40, 40, 40, 890]), 0);
        check(&after(&[900, 900, 900, 60, 900]), &marks(&[40, 40, 40, 50, 50]), 3);
    }

    #[test]
    fn sums_saturate() {
        const FIRST: i64 = NO_TIME + 1;
        check(&[FIRST; 4], &[i64::MIN; 4], 0);
        check(&[i64::MAX; 3], &[NONE, i64::MAX - 10, i64::MAX - 10], 0);
        check(&[FIRST, i64::MAX, i64::MAX], &[NONE, NONE, i64::MIN], 0);
    }
}
