//! Real time: how long receivers may take, and when a mail or a webhook was sent.

use jiff::Timestamp;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant, SystemTime};

/// Now, for deadlines.
#[expect(clippy::disallowed_methods, reason = "patience with receivers is real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time since 1970; zero where the clock is before that.
#[expect(clippy::disallowed_methods, reason = "mails and webhooks bear the time of sending")]
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A number that others can't foresee: the system's random numbers key each of these hashers.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// Between a half and the whole of a pause, so that clients that failed together don't come back
/// together.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    let more = u64::try_from(half.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
    half + Duration::from_millis(random() % more)
}

/// A date as mails have it (RFC 5322): `Wed, 25 Nov 2026 22:55:21 +0000`.
pub(crate) fn mail_date(since_1970: Duration) -> String {
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    time.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "Thu, 01 Jan 1970 00:00:00 +0000"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_795_647_321, "Wed, 25 Nov 2026 22:55:21 +0000"),
            (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 +0000"),
        ] {
            assert_eq!(mail_date(Duration::from_secs(seconds)), date);
        }
    }

    #[test]
    fn pauses_stay_within_their_bounds() {
        for pause in [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(60)] {
            let jittered = jittered(pause);
            assert!(pause / 2 <= jittered && jittered <= pause, "{jittered:?} of {pause:?}");
        }
    }
}
