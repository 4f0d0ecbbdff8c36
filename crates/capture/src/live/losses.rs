//! What a capture lost since it was last asked.

use super::clock::Stopwatch;
use crate::limits::LOSSES_EVERY_MS;
use weir_packet::source::Gap;

/// Makes gaps of counts that grow.
#[derive(Debug)]
pub(super) struct Losses {
    asked: Stopwatch,
    /// What time it was before that.
    since: i64,
    /// The count then.
    told: u64,
    /// What batches have not said yet.
    pub(super) gap: Option<Gap>,
}

impl Losses {
    /// From now on.
    pub(super) fn since(now: i64) -> Losses {
        Losses { asked: Stopwatch::start(), since: now, told: 0, gap: None }
    }

    /// Whether it is time to ask again.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.asked.elapsed_ms() >= LOSSES_EVERY_MS
    }

    /// Lets what is taken next have been lost so much earlier, in nanoseconds.
    pub(super) fn reach_back(&mut self, ns: i64) {
        self.since = self.since.saturating_sub(ns);
    }

    /// Takes how many frames are lost so far, asked between these two times.
    pub(super) fn take(&mut self, lost: u64, (before, after): (i64, i64)) {
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
