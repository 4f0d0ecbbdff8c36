//! Keys of an alert that begin where many others have just begun: they are reported together.

use super::firing::Firing;
use weir_plan::limits::ALERT_STORM_NS;

/// Counts the keys that begin in a minute, and holds those that are reported together.
#[derive(Debug)]
pub(super) struct Storm {
    /// The latest minute in which one began.
    pub(super) minute: i64,
    /// How many were reported by themselves in it.
    pub(super) begun: u64,
    /// The keys that are reported together, as one: its rows are keys.
    pub(super) all: Option<Box<Firing>>,
}

impl Storm {
    /// No key has begun.
    pub(super) fn new() -> Storm {
        Storm { minute: i64::MIN, begun: 0, all: None }
    }

    /// Whether a key that begins now may be reported by itself, as at most `most` are in a minute;
    /// counts it if so.
    pub(super) fn admits(&mut self, now: i64, most: u64) -> bool {
        let minute = now.div_euclid(ALERT_STORM_NS);
        if minute > self.minute {
            (self.minute, self.begun) = (minute, 0);
        }
        let admits = self.begun < most;
        self.begun += u64::from(admits);
        admits
    }
}
