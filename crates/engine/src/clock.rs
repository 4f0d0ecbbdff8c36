//! Event time: from packet timestamps to a watermark.
//!
//! The watermark is a promise: rows older than it are late. It follows the largest believed
//! timestamp at a distance (`lateness`). A single frame with a wild timestamp must not pin it:
//!
//! - The clock starts at the smallest timestamp so far as soon as two are within `jump` of each
//!   other, with the fourth packet at the latest. It then follows all of them, in order. Traffic
//!   without such a fault starts it with the second packet, and gives the rows that a start with
//!   the first would give: before there is a second packet nothing can be late or closed.
//! - A packet more than `jump` ahead of the clock does not move it, unless it is the fourth such in
//!   a row: then the clock moves to the smallest of the four. Packets that are followed by a packet
//!   of the clock's own time are counted as wild: nothing confirmed them.
//!
//! So one record can move the clock by `jump` at most, a first record with a time far ahead (or far
//! back) does not keep the others late (or the clock back), and a real gap in the traffic costs
//! three packets of delay, no rows.
//!
//! A source that knows the time says what it has [reached](Clock::reach): the watermark follows at
//! once, since a promise needs neither witnesses nor distance.

use crate::limits::CORROBORATE;
use weir_packet::time::NO_TIME;

/// The clock of one stream of packets.
#[derive(Clone, Debug)]
pub struct Clock {
    lateness_ns: i64,
    jump_ns: i64,
    /// Where the watermark is reckoned from, once started.
    max: i64,
    /// The largest believed timestamp: after a gap later than that, since the clock moves to the
    /// smallest of the four.
    largest: i64,
    /// The time before which the source has promised no more packets.
    floor: i64,
    started: bool,
    /// Timestamps seen before the start, then timestamps ahead of the clock, in a row.
    held: [i64; CORROBORATE],
    held_len: usize,
    wild: u64,
    disordered: u64,
    untimed: u64,
    /// The greatest distance of a timestamp from the largest before it.
    behind: i64,
}

impl Clock {
    /// A clock that has seen nothing. Negative arguments count as 0.
    pub fn new(lateness_ns: i64, jump_ns: i64) -> Clock {
        Clock {
            lateness_ns: lateness_ns.max(0),
            jump_ns: jump_ns.max(0),
            max: i64::MIN,
            largest: i64::MIN,
            floor: i64::MIN,
            started: false,
            held: [0; CORROBORATE],
            held_len: 0,
            wild: 0,
            disordered: 0,
            untimed: 0,
            behind: 0,
        }
    }

    /// A clock that has come to a time; to none by [`i64::MIN`].
    pub(crate) fn resumed(lateness_ns: i64, jump_ns: i64, reached: i64) -> Clock {
        let started = reached > i64::MIN;
        Clock { max: reached, largest: reached, started, ..Clock::new(lateness_ns, jump_ns) }
    }

    /// The time that it has come to, [`i64::MIN`] if none, and times after it that it did not
    /// believe yet.
    pub(crate) fn stands_at(&self) -> (i64, &[i64]) {
        (if self.started { self.max } else { i64::MIN }, &self.held[..self.held_len])
    }

    /// No row older than this is on time any more; `i64::MIN` before the clock has started.
    #[inline]
    pub fn watermark(&self) -> i64 {
        if self.started { self.watermark_at(self.max) } else { i64::MIN }
    }

    /// The watermark where `max` is the largest believed timestamp.
    fn watermark_at(&self, max: i64) -> i64 {
        max.saturating_sub(self.lateness_ns).max(self.floor)
    }

    /// Takes the source's word that no packet before `ts` is still to come, and returns the
    /// watermark after it. Packets that waited for others to start the clock start it now.
    pub fn reach(&mut self, ts: i64) -> i64 {
        (self.max, self.largest) = (self.max.max(ts), self.largest.max(ts));
        self.floor = self.floor.max(ts);
        if !self.started {
            self.started = true;
            self.follow_held();
        }
        self.watermark()
    }

    /// Takes the next packet's timestamp and returns the watermark after it.
    #[inline]
    pub fn observe(&mut self, ts: i64) -> i64 {
        if ts == NO_TIME {
            self.untimed += 1;
        } else if self.started {
            self.advance(ts);
        } else {
            self.start(ts);
        }
        self.watermark()
    }

    /// Where a packet that was just [observed](Clock::observe) stands among those of other clocks:
    /// at the latest believed time, or at its own where that is too far ahead to be believed yet.
    /// So packets of one clock keep their order, but for those of times that turn out to be wild.
    #[inline]
    pub fn place(&self, ts: i64) -> i64 {
        self.max.max(ts)
    }

    /// The watermark that [`Clock::observe_all`] of a batch would move to, from the batch's latest
    /// timestamp; `None` where it would do nothing.
    pub fn watermark_after(&self, max: i64) -> Option<i64> {
        let plain =
            self.started && self.held_len == 0 && max <= self.max.saturating_add(self.jump_ns);
        plain.then(|| self.watermark_at(self.max.max(max)))
    }

    /// Takes a batch of timestamps that do not fall at once if that can be done without looking at
    /// each: returns `false`, having done nothing, where [`Clock::observe`] must be called one by
    /// one.
    #[inline]
    pub fn observe_all(&mut self, min: i64, max: i64) -> bool {
        let plain = min >= self.largest && min != NO_TIME && self.watermark_after(max).is_some();
        if plain && min <= max {
            (self.max, self.largest) = (self.max.max(max), max);
        }
        plain
    }

    /// Packets that were too far ahead to be believed by themselves, and that no other confirmed.
    pub fn wild(&self) -> u64 {
        self.wild
    }

    /// Packets whose time is before that of a believed one that came earlier; of those that it does
    /// not believe yet, none before the [end](Clock::end).
    pub fn disordered(&self) -> u64 {
        self.disordered
    }

    /// Says that no packet comes any more: no other can tell whether those ahead of the clock are
    /// wild, and their order counts, too.
    pub fn end(&mut self) {
        let ahead = self.held;
        ahead[..self.held_len].iter().for_each(|&ts| self.believe(ts));
    }

    /// Packets without a time, which say nothing of it.
    pub fn untimed(&self) -> u64 {
        self.untimed
    }

    /// The lateness with which no packet would have been late, in nanoseconds; 0 if none was.
    ///
    /// [`Clock::observe_all`] is for batches without late packets, and has no part in it.
    pub fn behind_ns(&self) -> u64 {
        if self.behind > self.lateness_ns { self.behind.unsigned_abs() } else { 0 }
    }

    fn start(&mut self, ts: i64) {
        let before = &self.held[..self.held_len];
        let close = |&t: &i64| t.max(ts) <= t.min(ts).saturating_add(self.jump_ns);
        let agrees = before.iter().any(close);
        let smallest = before.iter().fold(ts, |least, &t| least.min(t));
        self.held[self.held_len] = ts;
        self.held_len += 1;
        if agrees || self.held_len == CORROBORATE {
            (self.max, self.started) = (smallest, true);
            self.follow_held();
        }
    }

    /// Follows the timestamps that waited for the start, in the order in which they came.
    fn follow_held(&mut self) {
        let (first, waited) = (self.held, std::mem::take(&mut self.held_len));
        first[..waited].iter().for_each(|&t| self.advance(t));
    }

    fn advance(&mut self, ts: i64) {
        if ts <= self.max.saturating_add(self.jump_ns) {
            self.behind = self.behind.max(self.max.saturating_sub(ts));
            self.believe(ts);
            self.max = self.max.max(ts);
            self.wild += self.held_len as u64;
            self.held_len = 0;
            return;
        }
        self.held[self.held_len] = ts;
        self.held_len += 1;
        if self.held_len == CORROBORATE {
            self.max = self.held.into_iter().min().expect("four timestamps");
            self.held_len = 0;
            let near = self.max.saturating_add(self.jump_ns);
            self.held.into_iter().filter(|&ts| ts <= near).for_each(|ts| self.believe(ts));
        }
    }

    fn believe(&mut self, ts: i64) {
        self.disordered += u64::from(ts < self.largest);
        self.largest = self.largest.max(ts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(times: &[i64]) -> Clock {
        let mut clock = Clock::new(10, 100);
        times.iter().for_each(|&t| {
            clock.observe(t);
        });
        clock
    }

    #[test]
    fn follows_the_largest_timestamp() {
        let clock = after(&[1000, 1001, 1002, 1003, 1050, 1040]);
        assert_eq!((clock.watermark(), clock.wild()), (1040, 0));
    }

    #[test]
    fn knows_how_far_times_step_back() {
        assert_eq!(after(&[1000, 1001, 1050, 1060]).behind_ns(), 0);
        assert_eq!(after(&[1000, 1001, 1050, 1007, 1060, 1030]).behind_ns(), 43);
        // A packet within the lateness is not late, and one beyond it is.
        assert_eq!(after(&[1000, 1001, 1050, 1040]).behind_ns(), 0);
        assert_eq!(after(&[1000, 1001, 1050, 1039]).behind_ns(), 11);
        assert_eq!(after(&[1000, 1001, NO_TIME + 1]).behind_ns(), i64::MAX as u64);
    }

    #[test]
    fn what_has_no_time_says_nothing_of_it() {
        let clock = after(&[NO_TIME, 1000, NO_TIME, 1001, NO_TIME]);
        assert_eq!((clock.watermark(), clock.behind_ns(), clock.untimed()), (991, 0, 3));
    }

    #[test]
    fn follows_what_is_reached_at_once() {
        let mut clock = after(&[1000, 1001, 1002, 1003]);
        assert_eq!((clock.reach(1001), clock.reach(5000)), (1001, 5000));
        // Neither back, nor away from what comes after a gap.
        assert_eq!((clock.reach(4000), clock.observe(5050)), (5000, 5040));
        assert_eq!(clock.wild(), 0);
    }

    #[test]
    fn starts_with_what_is_reached() {
        let mut clock = Clock::new(10, 100);
        assert_eq!((clock.reach(1000), clock.observe(1001)), (1000, 1000));
        let mut clock = after(&[900, 1005, 9000]);
        assert_eq!((clock.reach(1000), clock.observe(1007), clock.wild()), (1000, 1000, 1));
    }

    #[test]
    fn two_packets_that_agree_start_it() {
        assert_eq!(after(&[1000]).watermark(), i64::MIN);
        assert_eq!(after(&[1000, 1001]).watermark(), 991);
        assert_eq!(after(&[1000, 900]).watermark(), 990);
        assert_eq!(after(&[1000, 1100]).watermark(), 1090);
        assert_eq!(after(&[1000, 1101]).watermark(), i64::MIN);
        assert_eq!(after(&[1000, 899]).watermark(), i64::MIN);
    }

    #[test]
    fn a_wild_first_frame_does_not_pin_it() {
        let clock = after(&[9_999_999, 1000, 1001]);
        assert_eq!((clock.watermark(), clock.wild()), (991, 1));
        // One of long ago costs what a gap costs.
        assert_eq!(after(&[5, 1000, 1001, 1002]).watermark(), -5);
        assert_eq!(after(&[5, 1000, 1001, 1002, 1003]).watermark(), 990);
        // Nor do two that do not agree.
        let clock = after(&[9_999_999, 5_000_000, 1000, 1001]);
        assert_eq!((clock.watermark(), clock.wild()), (991, 2));
    }

    #[test]
    fn four_packets_start_it_at_the_smallest() {
        assert_eq!(after(&[4000, 3000, 2000]).watermark(), i64::MIN);
        let clock = after(&[4000, 3000, 2000, 1000]);
        assert_eq!((clock.watermark(), clock.wild()), (990, 3));
        let clock = after(&[1000, 2000, 3000, 4000, 5000]);
        assert_eq!((clock.watermark(), clock.wild()), (1990, 0));
    }

    #[test]
    fn one_wild_frame_is_not_believed_four_are() {
        let start = [1000, 1000, 1000, 1000];
        let clock = after(&[&start[..], &[9000, 1001]].concat());
        assert_eq!((clock.watermark(), clock.wild()), (991, 1));
        let clock = after(&[&start[..], &[9000, 9003, 9001, 9002]].concat());
        assert_eq!((clock.watermark(), clock.wild()), (8990, 0));
        let clock = after(&[&start[..], &[9000, 9000, 9000, 1001, 9000]].concat());
        assert_eq!((clock.watermark(), clock.wild()), (991, 3));
    }

    #[test]
    fn what_came_out_of_order_counts_after_a_gap_too() {
        let after_gap = |times: &[i64]| {
            let mut clock = after(&[&[0, 1][..], times].concat());
            clock.end();
            clock.disordered()
        };
        assert_eq!(after_gap(&[5000, 5001, 5002, 5003, 5004]), 0);
        assert_eq!(after_gap(&[5001, 5000, 5003, 5002]), 2);
        // The last is after the clock, and before one of those that moved it.
        assert_eq!(after_gap(&[5000, 5003, 5001, 5002, 5002, 5004]), 3);
        // Fewer than four never move it; a wild one says nothing of the others.
        assert_eq!((after_gap(&[5001, 5000]), after_gap(&[9000, 5000, 5001, 5002, 5003])), (1, 0));
        assert_eq!(after_gap(&[9000, 2, 3]), 0);
        let mut clock = after(&[3000, 2000, 1000]);
        clock.end();
        assert_eq!(clock.disordered(), 2);
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        let clock = after(&[i64::MIN, i64::MAX, i64::MIN, i64::MAX, i64::MAX]);
        assert!(clock.watermark() <= i64::MAX - 10);
    }

    proptest! {
        #[test]
        fn a_batch_at_once_is_the_same_as_one_by_one(
            times in proptest::collection::vec(0i64..2000, 1..60), cut in 1usize..8,
        ) {
            let (mut one, mut all) = (Clock::new(10, 100), Clock::new(10, 100));
            for batch in times.chunks(cut) {
                let (min, max) = (*batch.iter().min().unwrap(), *batch.iter().max().unwrap());
                let after = all.watermark_after(max);
                if batch.is_sorted() && all.observe_all(min, max) {
                    prop_assert_eq!(after, Some(all.watermark()));
                } else {
                    batch.iter().for_each(|&t| { all.observe(t); });
                }
                batch.iter().for_each(|&t| { one.observe(t); });
                prop_assert_eq!(one.watermark(), all.watermark());
                prop_assert_eq!(one.wild(), all.wild());
                prop_assert_eq!(one.disordered(), all.disordered());
            }
        }

        #[test]
        fn the_watermark_never_falls(times in proptest::collection::vec(any::<i64>(), 1..60)) {
            let mut clock = Clock::new(10, 100);
            let mut last = i64::MIN;
            for t in times {
                let w = clock.observe(t);
                prop_assert!(w >= last);
                last = w;
            }
        }
    }
}
