//! What time it is on a wire: the one place of this crate that looks at clocks.

use super::Stamps;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Says what time frames have come up to.
pub(super) struct Clock {
    /// Whether frames bear times that have nothing to do with the system's clock.
    foreign: bool,
    /// Of foreign frames the latest, and when it was there at the latest.
    latest: Option<(i64, Option<Stopwatch>)>,
}

impl Clock {
    pub(super) fn new(stamps: Stamps) -> Clock {
        Clock { foreign: stamps == Stamps::AdapterUnsynced, latest: None }
    }

    /// Whether frames bear times that have nothing to do with the system's clock.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// A frame of this time was delivered.
    #[inline(always)]
    pub(super) fn saw(&mut self, ts: i64) {
        if self.foreign {
            let latest = self.latest.map_or(ts, |(latest, _)| latest.max(ts));
            self.latest = Some((latest, None));
        }
    }

    /// What time it is; `None` where a foreign clock was not seen yet. Of a foreign clock it is
    /// known only how far it went since a frame came.
    pub(super) fn time(&mut self) -> Option<i64> {
        Some(if self.foreign {
            let (ts, since) = self.latest.as_mut()?;
            ts.saturating_add(ns(since.get_or_insert_with(Stopwatch::start).0.elapsed()))
        } else {
            system()
        })
    }
}

/// How long something takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "how long a wire was quiet")]
    pub(super) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(super) fn elapsed_ms(self) -> u32 {
        u32::try_from(self.0.elapsed().as_millis()).unwrap_or(u32::MAX)
    }
}

/// Nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "frames bear the times of this clock")]
fn system() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ns)
}

fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
