//! When windows close: the multiples of their ticks that the watermark passes.

use crate::checkpoint::{Checkpoint, Passed, Saved};
use weir_plan::physical::Tick;

/// Finds at which watermarks windows close.
pub(crate) struct Closing {
    /// Where they do.
    every: Vec<Tick>,
    /// The watermark at which the next one does; below it nothing closes.
    next: i64,
}

impl Closing {
    /// At these ticks. The windows that close at the first watermark are not known yet: any may.
    pub(crate) fn new(every: Vec<Tick>) -> Closing {
        Closing { every, next: i64::MIN }
    }

    /// The watermark below which nothing closes.
    pub(crate) fn next(&self) -> i64 {
        self.next
    }

    /// Whether windows close at a watermark.
    pub(crate) fn is_due(&self, w: i64) -> bool {
        w >= self.next && w > i64::MIN
    }

    /// The same; finds when the next ones do.
    pub(crate) fn closes(&mut self, w: i64) -> bool {
        let closes = self.is_due(w);
        if closes {
            let ends = self.every.iter().filter_map(|&tick| next_end(w, tick));
            self.next = ends.min().unwrap_or(i64::MAX);
        }
        closes
    }
}

impl Saved for Closing {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.next.pass(at)
    }
}

/// The watermark beyond `w` at which the next window closes.
fn next_end(w: i64, tick: Tick) -> Option<i64> {
    let (w, d, late) = (i128::from(w), i128::from(tick.every_ns), i128::from(tick.lateness_ns));
    (((w - late).div_euclid(d) + 1) * d + late).try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_close_where_a_tick_is_passed() {
        let tick = |every_ns, lateness_ns| Tick { every_ns, lateness_ns };
        let mut closing = Closing::new(vec![tick(10, 0), tick(100, 5)]);
        let mut closed = |w| {
            let due = closing.is_due(w);
            assert_eq!(closing.closes(w), due);
            (due, closing.next())
        };
        assert_eq!(closed(i64::MIN), (false, i64::MIN));
        assert_eq!(closed(-1), (true, 0));
        assert_eq!(closed(-1), (false, 0));
        assert_eq!(closed(0), (true, 5));
        assert_eq!(closed(99), (true, 100));
        assert_eq!(closed(104), (true, 105));
        assert_eq!(closed(109), (true, 110));
        assert_eq!(closed(i64::MAX), (true, i64::MAX), "no later one has a time");
        let mut never = Closing::new(Vec::new());
        assert!(never.closes(0) && !never.closes(i64::MAX - 1));
    }
}
