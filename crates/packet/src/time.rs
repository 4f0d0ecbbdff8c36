//! Times and durations as people write them: RFC 3339 and numbers with a unit.
//!
//! A time is nanoseconds since 1970 (UTC) in an `i64`, which reaches from 1677 to 2262. Dates are
//! those of the proleptic Gregorian calendar; there are no leap seconds, as in Unix time.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

/// The time of a packet of which the capture does not say when it was captured; no other packet has
/// it.
pub const NO_TIME: i64 = i64::MIN;

/// The latest time that a packet has; what a capture says of later ones is taken for this.
pub const LAST_TIME: i64 = i64::MAX - 1;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Units of a duration, largest first, with their nanoseconds.
const UNITS: [(&str, i64); 7] = [
    ("d", DAY),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Year, month and day of a time, in UTC.
pub fn date(ns: i64) -> (i64, i64, i64) {
    let date = civil(ns).date();
    (date.year().into(), date.month().into(), date.day().into())
}

/// Formats a time as RFC 3339 in UTC, such as `2023-11-14T22:13:20.123456789Z`. The fraction has
/// 0, 3, 6 or 9 digits: the fewest that are exact.
pub fn rfc3339(ns: i64) -> String {
    let time = civil(ns);
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let fraction = match time.subsec_nanosecond() {
        0 => String::new(),
        f if f % 1_000_000 == 0 => format!(".{:03}", f / 1_000_000),
        f if f % 1_000 == 0 => format!(".{:06}", f / 1_000),
        f => format!(".{f:09}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Reads a date (`2023-11-14`, midnight UTC) or an RFC 3339 date-time: `T`, `t` or a space between
/// date and time, an optional fraction of up to nine digits, then `Z` or `±hh:mm`. `None` for
/// anything else, dates that do not exist, leap seconds, and times beyond an `i64`.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let mut s = Scan(text.as_bytes());
    let (year, month, day) = (s.digits(4)?, s.then(b"-")?.digits(2)?, s.then(b"-")?.digits(2)?);
    let date = Date::new(year as i16, month as i8, day as i8).ok()?;
    let midnight = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_nanosecond();
    if s.0.is_empty() {
        return midnight.try_into().ok();
    }
    s.then(b"Tt ")?;
    let (hour, minute, second) = (s.digits(2)?, s.then(b":")?.digits(2)?, s.then(b":")?.digits(2)?);
    let fraction = if s.then(b".").is_some() { s.fraction()? } else { 0 };
    let east = s.offset()?;
    if hour > 23 || minute > 59 || second > 59 || !s.0.is_empty() {
        return None;
    }
    let of_day = (hour * 3_600 + minute * 60 + second - east) * SECOND + fraction;
    (midnight + i128::from(of_day)).try_into().ok()
}

/// Formats a duration as a query writes it: a whole number of the largest unit of d, h, m, s, ms,
/// us and ns that divides it exactly: `1500ms`, `1h`, `0s`, `-3us`.
pub fn duration(ns: i64) -> String {
    if ns == 0 {
        return "0s".to_string();
    }
    let (unit, size) =
        UNITS.iter().find(|(_, size)| ns % size == 0).expect("one nanosecond divides everything");
    format!("{}{unit}", ns / size)
}

/// Reads one number and a unit: `10s`, `250ms`, `1.5h`, `-3us`. `None` for anything else, for
/// what is not a whole number of nanoseconds, and beyond an `i64`.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let number_len = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = rest.split_at(number_len);
    let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (number, ""),
    };
    // An i64 has 19 digits, and no unit needs more than 14 after the point.
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 14 {
        return None;
    }
    let scale = 10i128.pow(fraction.len() as u32);
    let digits = format!("{whole}{fraction}").parse::<i128>().ok()?;
    let scaled = digits.checked_mul(i128::from(*size))?;
    if scaled % scale != 0 {
        return None;
    }
    (sign * (scaled / scale)).try_into().ok()
}

/// The rest of a text that is being read.
struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    /// Steps over one byte out of `any`.
    fn then(&mut self, any: &[u8]) -> Option<&mut Self> {
        let (first, rest) = self.0.split_first()?;
        any.contains(first).then(|| {
            self.0 = rest;
            self
        })
    }

    /// Reads a number of exactly `n` digits.
    fn digits(&mut self, n: usize) -> Option<i64> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        head.iter().try_fold(0, |v, d| d.is_ascii_digit().then(|| v * 10 + i64::from(d - b'0')))
    }

    /// Reads one to nine digits after a point, as nanoseconds.
    fn fraction(&mut self) -> Option<i64> {
        let n = self.0.iter().take_while(|d| d.is_ascii_digit()).count();
        if !(1..=9).contains(&n) {
            return None;
        }
        Some(self.digits(n)? * 10i64.pow(9 - n as u32))
    }

    /// Reads `Z` or `±hh:mm`: seconds east of Greenwich.
    fn offset(&mut self) -> Option<i64> {
        let (&sign, rest) = self.0.split_first()?;
        self.0 = rest;
        let sign = match sign {
            b'Z' | b'z' => return Some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, minutes) = (self.digits(2)?, self.then(b":")?.digits(2)?);
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
    }
}

/// A time as the calendar has it, in UTC.
fn civil(ns: i64) -> DateTime {
    let time = Timestamp::new(ns.div_euclid(SECOND), ns.rem_euclid(SECOND) as i32);
    Offset::UTC.to_datetime(time.expect("it is between the years 1677 and 2262"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_print_as_rfc3339() {
        let check = |ns: i64, text: &str| {
            assert_eq!(rfc3339(ns), text);
            assert_eq!(parse_rfc3339(text), Some(ns), "{text}");
        };
        check(0, "1970-01-01T00:00:00Z");
        check(-1, "1969-12-31T23:59:59.999999999Z");
        check(1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456789Z");
        check(1_700_000_000_123_456_000, "2023-11-14T22:13:20.123456Z");
        check(1_700_000_000_120_000_000, "2023-11-14T22:13:20.120Z");
        check(951_782_400_000_000_000, "2000-02-29T00:00:00Z");
        check(i64::MIN, "1677-09-21T00:12:43.145224192Z");
        check(i64::MAX, "2262-04-11T23:47:16.854775807Z");
    }

    #[test]
    fn times_are_read_as_written() {
        let check = |text: &str, same: &str| {
            assert_eq!(parse_rfc3339(text).map(rfc3339).as_deref(), Some(same), "{text}");
        };
        check("2023-11-14", "2023-11-14T00:00:00Z");
        check("2023-11-14T22:13:20+01:00", "2023-11-14T21:13:20Z");
        check("2023-11-14 22:13:20.5-02:30", "2023-11-15T00:43:20.500Z");
        check("2023-12-31t23:59:59.000000001z", "2023-12-31T23:59:59.000000001Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2023",
            "2023-1-14",
            "2023-02-29",
            "1900-02-29",
            "2023-13-01",
            "2023-00-01",
            "2023-11-14T",
            "2023-11-14T22:13:20",
            "2023-11-14T24:00:00Z",
            "2023-11-14T22:60:00Z",
            "2023-11-14T22:13:60Z",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13:20.0123456789Z",
            "2023-11-14T22:13:20Z ",
            "2023-11-14T22:13:20+0100",
            "2023-11-14T22:13:20+24:00",
            "1677-09-21T00:12:43.145224191Z",
            "2262-04-11T23:47:16.854775808Z",
            "9999-12-31",
            "２０２３-11-14",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn durations_print_in_their_largest_exact_unit() {
        for (ns, text) in [
            (0, "0s"),
            (-3_000, "-3us"),
            (1_500_000_000, "1500ms"),
            (3_600 * SECOND, "1h"),
            (90 * SECOND, "90s"),
            (120 * SECOND, "2m"),
            (2 * DAY, "2d"),
            (1_000_001, "1000001ns"),
            (i64::MIN, "-9223372036854775808ns"),
        ] {
            assert_eq!(duration(ns), text);
            assert_eq!(parse_duration(text), Some(ns));
        }
    }

    #[test]
    fn durations_are_read_exactly_or_not_at_all() {
        assert_eq!(parse_duration("1.5h"), Some(5_400 * SECOND));
        assert_eq!(parse_duration("0.25ms"), Some(250_000));
        assert_eq!(parse_duration("0.000000001s"), Some(1));
        for text in [
            "",
            "10",
            "s",
            ".5s",
            "1.s",
            "1..5s",
            "1.2.3s",
            "1 s",
            "+1s",
            "--1s",
            "1S",
            "1w",
            "0.1ns",
            "106752d",
            "99999999999999999999ns",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(ns: i64) {
            prop_assert_eq!(parse_rfc3339(&rfc3339(ns)), Some(ns));
            prop_assert_eq!(parse_duration(&duration(ns)), Some(ns));
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,40}") {
            let _ = parse_rfc3339(&text);
            let _ = parse_duration(&text);
        }
    }
}
