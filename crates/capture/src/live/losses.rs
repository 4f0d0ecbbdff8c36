//! The frames that a capture lost since it was last asked.

use super::clock::Stopwatch;
use crate::limits::{REACHED_BEHIND_NS, READ_PAUSE_MS, WAIT_MS};
use weir_packet::source::{FrameBatch, Gap, Lost, PauseLosses};

/// Makes gaps of counts that grow.
///
/// Where frames bear the times of a clock that is not the system's, it is unknown what that clock
/// says when counters are read: frames that were delivered are older, by as much as waits in the
/// rings. So a loss is reported at once, as a gap that is open. The gap ends with a frame that came
/// after the counters were read, which is any frame after a moment when the rings were empty.
#[derive(Debug)]
pub(super) struct Losses {
    asked: Stopwatch,
    /// The time before that.
    since: i64,
    /// The count then.
    counted: u64,
    /// How many of these interfaces had lost, and the ring.
    by_wires: u64,
    by_ring: u64,
    /// Frames that the ring lost while nothing was read.
    pub(super) unread: PauseLosses,
    /// The gap that batches have not said yet.
    pub(super) gap: Option<Gap>,
    /// Whether frames bear the times of another clock.
    foreign: bool,
    /// Of a foreign clock, whether a gap is open.
    open: OpenGap,
}

/// The end of an open gap, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpenGap {
    /// There is none.
    No,
    /// Frames in the rings may be older than it.
    Full,
    /// The rings were empty: what comes now is later.
    Empty,
}

impl Losses {
    /// From now on, as that is by the clock whose times frames bear, and which may be foreign.
    pub(super) fn since(now: i64, foreign: bool) -> Losses {
        let (asked, gap, open) = (Stopwatch::start(), None, OpenGap::No);
        let (by_wires, by_ring, unread) = (0, 0, PauseLosses::default());
        Losses { asked, since: now, counted: 0, by_wires, by_ring, unread, gap, foreign, open }
    }

    /// Whether it is time to ask again, so long after the last time.
    #[inline]
    pub(super) fn are_due(&self, every_ms: u32) -> bool {
        self.asked.elapsed_ms() >= every_ms
    }

    /// Takes what is lost so far, asked between these two times, as far as these are known.
    /// Counters of interfaces are read less often: what they add may be that much older.
    pub(super) fn take_all(&mut self, lost: Lost, (before, after): (Option<i64>, Option<i64>)) {
        if lost.interface > self.by_wires {
            self.since = self.since.saturating_sub(2 * WAIT_MS as i64 * 1_000_000);
        }
        self.by_wires = lost.interface;
        // While a source is read, it asks far more often.
        let since_asked_ms = self.asked.elapsed_ms();
        let by_ring = lost.ring.saturating_sub(self.by_ring);
        if by_ring > 0 && since_asked_ms >= READ_PAUSE_MS {
            self.unread.merge(PauseLosses { frames: by_ring, longest_ms: since_asked_ms });
        }
        self.by_ring = lost.ring;
        let after = after.filter(|_| !self.foreign).unwrap_or(Gap::OPEN);
        self.take(lost.total(), (before.unwrap_or(i64::MIN), after));
    }

    /// The rings were found empty.
    #[inline]
    pub(super) fn empty(&mut self) {
        if self.open == OpenGap::Full {
            self.open = OpenGap::Empty;
        }
    }

    /// A frame of this time is delivered, the next of all. It may have come a little before the
    /// moment when rings were found empty, in a block that the kernel had not handed over.
    #[inline]
    pub(super) fn saw(&mut self, ts: i64) {
        if self.open == OpenGap::Empty {
            self.open = OpenGap::No;
            let until = ts.saturating_add(REACHED_BEHIND_NS);
            let gap = self.gap.unwrap_or(Gap { frames: 0, since: ts, until });
            self.gap = Some(Gap { until, ..gap });
        }
    }

    /// Reports with a batch what was lost.
    pub(super) fn report(&mut self, batch: &mut FrameBatch) {
        if let Some(gap) = self.gap.take() {
            batch.set_gap(gap);
        }
    }

    /// Takes how many frames are lost so far, asked between these two times.
    fn take(&mut self, lost: u64, (before, after): (i64, i64)) {
        let more = lost.saturating_sub(self.counted);
        if more > 0 {
            let Gap { frames, since, .. } =
                self.gap.unwrap_or(Gap { frames: 0, since: self.since, until: after });
            self.gap = Some(Gap { frames: frames.saturating_add(more), since, until: after });
            if after == Gap::OPEN {
                self.open = OpenGap::Full;
            }
        }
        (self.asked, self.since, self.counted) = (Stopwatch::start(), before, lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_interfaces_lost_may_be_older() {
        let mut losses = Losses::since(0, false);
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

    /// Frames with times of another clock wait in the rings for two seconds, and later ones are
    /// lost.
    #[test]
    fn a_gap_of_a_foreign_clock_ends_with_a_frame_that_came_later() {
        const SECOND: i64 = 1_000_000_000;
        let mut losses = Losses::since(0, true);
        let lost = |ring| Lost { interface: 0, kernel: 0, ring };
        losses.saw(SECOND);
        losses.take_all(lost(5), (Some(SECOND), Some(SECOND + 1)));
        let open = |frames, since| Some(Gap { frames, since, until: Gap::OPEN });
        assert_eq!(losses.gap.take(), open(5, 0));
        // Frames that were in the rings then say nothing of its end.
        losses.saw(2 * SECOND);
        assert_eq!(losses.gap, None);
        losses.take_all(lost(8), (Some(2 * SECOND), Some(2 * SECOND + 1)));
        losses.saw(3 * SECOND);
        assert_eq!(losses.gap.take(), open(3, SECOND));
        losses.empty();
        assert_eq!(losses.gap, None);
        losses.saw(4 * SECOND);
        let until = 4 * SECOND + REACHED_BEHIND_NS;
        assert_eq!(losses.gap.take(), Some(Gap { frames: 0, since: 4 * SECOND, until }));
        losses.empty();
        losses.saw(5 * SECOND);
        assert_eq!(losses.gap, None);
        // It was not taken before its end was known.
        losses.take_all(lost(9), (Some(5 * SECOND), Some(5 * SECOND + 1)));
        losses.empty();
        losses.saw(6 * SECOND);
        let until = 6 * SECOND + REACHED_BEHIND_NS;
        assert_eq!(losses.gap.take(), Some(Gap { frames: 1, since: 2 * SECOND, until }));
    }

    #[test]
    fn gaps_reach_from_one_question_to_the_next() {
        let mut losses = Losses::since(10, false);
        losses.take(0, (20, 21));
        assert_eq!(losses.gap, None);
        losses.take(5, (30, 31));
        assert_eq!(losses.gap, Some(Gap { frames: 5, since: 20, until: 31 }));
        // It was not taken.
        losses.take(7, (40, 41));
        assert_eq!(losses.gap.take(), Some(Gap { frames: 7, since: 20, until: 41 }));
        losses.take(7, (50, 51));
        assert_eq!(losses.gap, None);
    }
}
