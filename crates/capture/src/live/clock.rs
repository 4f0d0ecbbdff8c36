//! The time: the one place where captures look at clocks, those by DPDK too.

use super::options::Stamps;
use rustix::event::{Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Says what time frames have come up to.
pub(crate) struct Clock {
    /// Whether frames bear times that have nothing to do with the system's clock.
    foreign: bool,
    /// Of foreign frames the latest, and when it was there at the latest.
    latest: Option<(i64, Option<Stopwatch>)>,
}

impl Clock {
    pub(crate) fn new(stamps: Stamps) -> Clock {
        Clock { foreign: stamps == Stamps::AdapterUnsynced, latest: None }
    }

    /// Whether frames bear times that have nothing to do with the system's clock.
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// A frame of this time was delivered.
    #[inline(always)]
    pub(crate) fn saw(&mut self, ts: i64) {
        if self.foreign {
            let latest = self.latest.map_or(ts, |(latest, _)| latest.max(ts));
            self.latest = Some((latest, None));
        }
    }

    /// The time; `None` where a foreign clock was not seen yet. Of a foreign clock it is known only
    /// how far it went since a frame came.
    pub(crate) fn time(&mut self) -> Option<i64> {
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
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "how long a wire was quiet")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(crate) fn elapsed_ms(self) -> u32 {
        u32::try_from(self.0.elapsed().as_millis()).unwrap_or(u32::MAX)
    }
}

/// Waits for so many nanoseconds, or until a signal comes.
pub(crate) fn pause_ns(ns: u64) {
    let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let time = Timespec { tv_sec: seconds as i64, tv_nsec: ns as i64 };
    // Other reasons for its end are of no interest: callers look again.
    let _ = poll(&mut [], Some(&time));
}

/// Waits for so many milliseconds, or until a signal comes.
pub(crate) fn pause_ms(ms: u32) {
    pause_ns(u64::from(ms) * 1_000_000);
}

/// By how much the system's clock is off at most, as the kernel knows from what keeps it in step
/// (NTP, PTP), by adjtimex(2); `None` where it is not synchronised, or the system does not say.
pub fn max_error() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    let known = crate::sys::clock::max_error();
    #[cfg(not(target_os = "linux"))]
    let known = None;
    known
}

/// Nanoseconds since some time, whoever sets the system's clock meanwhile.
pub fn steady() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Nanoseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "frames bear the times of this clock")]
pub fn system() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ns)
}

fn ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
