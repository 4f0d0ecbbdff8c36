//! What a capture lost since it was last asked.

use super::clock::Stopwatch;
use crate::limits::{LOSSES_EVERY_MS, WAIT_MS};
use weir_packet::source::{FrameBatch, Gap, Lost};

/// Makes gaps of counts that grow.
#[derive(Debug)]
pub(super) struct Losses {
    asked: Stopwatch,
    /// What time it was before that.
    since: i64,
    /// The count then.
    told: u64,
    /// How many of these interfaces had lost.
    by_wires: u64,
    /// What batches have not said yet.
    pub(super) gap: Option<Gap>,
}

impl Losses {
    /// From now on.
    pub(super) fn since(now: i64) -> Losses {
        Losses { asked: Stopwatch::start(), since: now, told: 0, by_wires: 0, gap: None }
    }

    /// Whether it is time to ask again.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.asked.elapsed_ms() >= LOSSES_EVERY_MS
    }

    /// Takes what is lost so far, asked between these two times, as far as these are known.
    /// Counters of interfaces are read less often: what they add may be that much older.
    pub(super) fn take_all(&mut self, lost: Lost, (before, after): (Option<i64>, Option<i64>)) {
        if lost.interface > self.by_wires {
            self.since = self.since.saturating_sub(2 * WAIT_MS as i64 * 1_000_000);
        }
        self.by_wires = lost.interface;
        self.take(lost.total(), (before.unwrap_or(i64::MIN), after.unwrap_or(i64::MAX)));
    }

    /// Says with a batch what was lost.
    pub(super) fn tell(&mut self, batch: &mut FrameBatch) {
        if let Some(gap) = self.gap.take() {
            batch.set_gap(gap);
        }
    }

    /// Takes how many frames are lost so far, asked between these two times.
    fn take(&mut self, lost: u64, (before, after): (i64, i64)) {
        let more = lost.saturating_sub(self.told);
        if more > 0 {
            let Gap { frames, since, .. } =
                self.gap.unwrap_or(Gap { frames: 0, since: self.since, until: after });
            self.gap = Some(Gap { frames: frames.saturating_add(more), since, until: after });
        }
        (self.asked, self.since, self.told) = (Stopwatch::start(), before, lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_interfaces_lost_may_be_older() {
        let mut losses = Losses::since(0);
        let lost = |interface| Lost { interface, kernel: 0, ring: 1 };
        losses.take_all(lost(0), (Some(1_000_000_000), Some(1_000_000_001)));
        let gap = Gap { frames: 1, since: 0, until: 1_000_000_001 };
        assert_eq!(losses.gap.take(), Some(gap));
        losses.take_all(lost(2), (Some(2_000_000_000), None));
        let since = 1_000_000_000 - 2 * WAIT_MS as i64 * 1_000_000;
        assert_eq!(losses.gap.take(), Some(Gap { frames: 2, since, until: i64::MAX }));
        losses.take_all(lost(2), (Some(3_000_000_000), None));
        assert_eq!(losses.gap, None);
    }

    #[test]
    fn gaps_reach_from_one_question_to_the_next() {
        let mut losses = Losses::since(10);
        losses.take(0, (20, 21));
        assert_eq!(losses.gap, None);
        losses.take(5, (30, 31));
        assert_eq!(losses.gap, Some(Gap { frames: 5, since: 20, until: 31 }));
        // Nobody took it.
        losses.take(7, (40, 41));
        assert_eq!(losses.gap.take(), Some(Gap { frames: 7, since: 20, until: 41 }));
        losses.take(7, (50, 51));
        assert_eq!(losses.gap, None);
    }
}
