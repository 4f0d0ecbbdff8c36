//! Frames that were lost: the section "Losses" of [the crate](crate).

use super::zones;
use weir_packet::source::Gap;
use weir_plan::{Session, Summarize, TimeZone, Value};

/// All frames that came and all gaps, in order.
#[derive(Default)]
pub(super) struct Losses {
    /// The time of each frame, and the watermark after it.
    came: Vec<(i64, i64)>,
    /// Each gap, and the watermark before it was reported.
    gaps: Vec<(Gap, i64)>,
}

impl Losses {
    pub(super) fn came(&mut self, ts: i64, watermark: i64) {
        self.came.push((ts, watermark));
    }

    pub(super) fn lost(&mut self, gap: Option<Gap>, watermark: i64) {
        let Some(mut gap) = gap else { return };
        if gap.until < Gap::OPEN {
            let ended = self.gaps.iter().map(|(gap, _)| gap.until).filter(|&end| end < Gap::OPEN);
            let before = ended.max().unwrap_or(i64::MIN);
            let last = self.gaps.last().map_or(i64::MIN, |(last, _)| last.since);
            let end = gap.until.max(watermark).max(last).max(before);
            let open = self.gaps.iter_mut().filter(|(gap, _)| gap.until == Gap::OPEN);
            open.for_each(|(gap, _)| gap.until = end);
        }
        if gap.frames == 0 {
            return;
        }
        gap.since = gap.since.max(watermark);
        if let Some((last, _)) = self.gaps.last() {
            gap.since = gap.since.max(last.since);
            gap.until = gap.until.max(last.until);
        }
        gap.until = gap.until.max(gap.since);
        self.gaps.push((gap, watermark));
    }

    /// The share seen of a window that starts here by its clock, or of the whole input.
    pub(super) fn of_window(&self, s: &Summarize, start: Option<i64>) -> Value {
        let (Some(start), Some(over), Some(pane)) = (start, s.window.over(), s.window.pane())
        else {
            return share(self.came.len(), self.gaps.iter().map(|(gap, _)| gap.frames).sum());
        };
        let start = start as i128;
        let end = start + over as i128;
        let seen = self.seen(s.zone, start..end, pane, s.lateness_ns);
        let real = |t: i128| match s.zone {
            None => t,
            Some(zone) => {
                zones::when(zone, t.clamp(i64::MIN.into(), i64::MAX.into()) as i64).into()
            }
        };
        share(seen, self.lost_within(real(start)..real(end), i64::MAX))
    }

    /// The share seen of a session that comes out at this tick, from the tick before its first row
    /// to that after its last. Frames of ticks that have not ended yet are not counted; where that
    /// would be all of them, those of the tick before are.
    pub(super) fn of_session(
        &self,
        (first, last): (i64, i64),
        session: Session,
        tick: i64,
    ) -> Value {
        let d = session.tick_ns() as i128;
        let floor = |t: i64| (t as i128).div_euclid(d) * d;
        let end = floor(last) + d;
        // At the end of input all have, though that need be no tick.
        let ended = if tick == i64::MAX { end } else { end.min(tick as i128) };
        let start = floor(first).min(ended - d);
        let seen = self.seen(None, start..ended, d as i64, 0);
        share(seen, self.lost_within(start..end, tick))
    }

    fn seen(
        &self,
        zone: Option<TimeZone>,
        time: std::ops::Range<i128>,
        pane: i64,
        lateness: i64,
    ) -> usize {
        let pane = pane as i128;
        let clock = |t: i64| i128::from(zone.map_or(t, |zone| zones::clock(zone, t)));
        let came_in_time = |(ts, watermark): &&(i64, i64)| {
            let end = (clock(*ts).div_euclid(pane) + 1) * pane;
            end > match zone {
                None => *watermark as i128 - lateness as i128,
                Some(_) => clock(watermark.saturating_sub(lateness)),
            }
        };
        let inside = |(ts, _): &&(i64, i64)| time.contains(&clock(*ts));
        self.came.iter().filter(inside).filter(came_in_time).count()
    }

    /// Frames of the gaps that were reported before the watermark was here.
    fn lost_within(&self, time: std::ops::Range<i128>, watermark: i64) -> u64 {
        let told = self.gaps.iter().filter(|(_, at)| *at < watermark).map(|(gap, _)| gap);
        let touches =
            |gap: &&Gap| (gap.since as i128) < time.end && gap.until as i128 >= time.start;
        told.filter(touches).map(|gap| gap.frames).sum()
    }
}

fn share(seen: usize, lost: u64) -> Value {
    Value::Float(if lost == 0 { 1.0 } else { seen as f64 / (seen as f64 + lost as f64) })
}
