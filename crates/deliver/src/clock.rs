//! Real time: how long receivers may take, and when a mail or a webhook was sent.

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
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = since_1970.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let weekday = DAYS[(days % 7) as usize];
    let month = MONTHS[month as usize - 1];
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} +0000")
}

/// Year, month and day of a number of days since 1970 (Hinnant, `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
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
