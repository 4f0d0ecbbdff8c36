//! From which record on the state of a run could be rebuilt.

use std::collections::VecDeque;
use weir_kafka::limits::STARTS_MAX;

/// A record that a run could begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Start {
    /// Its offset.
    pub(super) offset: i64,
    /// The watermark before it; `None` before the first packet.
    pub(super) at: Option<i64>,
    /// The latest time of a packet from there to the next start.
    latest: i64,
}

/// Records that a run could begin with, the oldest first.
#[derive(Debug)]
pub(super) struct Starts {
    /// How much older than the watermark packets may be that still matter; `None` for any.
    reach: Option<i64>,
    all: VecDeque<Start>,
}

impl Starts {
    pub(super) fn new(reach: Option<i64>) -> Starts {
        Starts { reach, all: VecDeque::new() }
    }

    /// A record comes with the watermark `at`. A run can begin with the first one, and with those
    /// before which its clock has seen nothing that it does not believe yet.
    pub(super) fn record(&mut self, offset: i64, at: Option<i64>, is_sure: bool) {
        let first = self.all.is_empty();
        if first || self.reach.is_some() && is_sure && at.is_some() {
            if self.all.len() >= STARTS_MAX {
                self.thin_out();
            }
            self.all.push_back(Start { offset, at, latest: i64::MIN });
        }
    }

    /// A packet of this time came in the record.
    pub(super) fn packet(&mut self, ts: i64) {
        if let Some(last) = self.all.back_mut() {
            last.latest = last.latest.max(ts);
        }
    }

    /// From where state could be rebuilt, once the watermark is this.
    pub(super) fn oldest(&mut self, watermark: i64) -> Option<Start> {
        if let Some(reach) = self.reach {
            let matters = watermark.saturating_sub(reach);
            while self.all.len() > 1 && self.all.front().is_some_and(|s| s.latest < matters) {
                self.all.pop_front();
            }
        }
        self.all.front().copied()
    }

    /// Forgets every other one: then a little more is read than need be.
    fn thin_out(&mut self) {
        let mut kept: VecDeque<Start> = VecDeque::new();
        for (n, start) in self.all.drain(..).enumerate() {
            match kept.back_mut().filter(|_| n % 2 == 1) {
                Some(before) => before.latest = before.latest.max(start.latest),
                None => kept.push_back(start),
            }
        }
        self.all = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(reach: Option<i64>, packets: &[(i64, i64)]) -> Starts {
        let mut starts = Starts::new(reach);
        let mut watermark = None;
        for (offset, ts) in packets {
            starts.record(*offset, watermark, true);
            starts.packet(*ts);
            watermark = watermark.max(Some(*ts));
        }
        starts
    }

    #[test]
    fn what_windows_need_is_kept() {
        let packets = [(0, 0), (1, 10), (2, 20), (3, 30)];
        let oldest = |reach, watermark| {
            let start = starts(reach, &packets).oldest(watermark).expect("a start");
            (start.offset, start.at)
        };
        assert_eq!(oldest(Some(10), 30), (2, Some(10)));
        assert_eq!(oldest(Some(9), 30), (3, Some(20)));
        assert_eq!(oldest(Some(0), i64::MAX), (3, Some(20)), "the last one stays");
        assert_eq!(oldest(Some(i64::MAX), 30), (0, None));
        assert_eq!(oldest(Some(10), i64::MIN), (0, None));
        assert_eq!(oldest(None, 30), (0, None));
    }

    #[test]
    fn a_late_packet_keeps_its_record() {
        // An old packet in a later record, and a later one in an old record.
        let mut starts = starts(Some(10), &[(0, 0), (1, 100), (2, 5), (3, 100)]);
        assert_eq!(starts.oldest(100).map(|start| start.offset), Some(1));
    }

    #[test]
    fn a_clock_in_doubt_is_no_start() {
        let mut starts = Starts::new(Some(0));
        for (offset, is_sure) in [(0, false), (1, false), (2, true)] {
            starts.record(offset, Some(offset), is_sure);
            starts.packet(offset);
        }
        assert_eq!(starts.oldest(9).map(|start| start.offset), Some(2));
        starts.record(3, Some(3), false);
        starts.packet(3);
        assert_eq!(starts.oldest(99).map(|start| start.offset), Some(2));
    }

    #[test]
    fn memory_is_bounded() {
        let many: Vec<(i64, i64)> = (0..3 * STARTS_MAX as i64).map(|n| (n, n)).collect();
        let mut starts = starts(Some(i64::MAX), &many);
        assert!(starts.all.len() <= STARTS_MAX);
        let last = 3 * STARTS_MAX as i64 - 1;
        starts.reach = Some(100);
        let start = starts.oldest(last).expect("a start");
        assert!((last - 200..=last - 100).contains(&start.offset), "{start:?}");
    }
}
