//! Numbers and times as pages and pictures write them.

use weir_packet::time;
use weir_plan::TimeZone;

/// A narrow blank that no line breaks at.
const BLANK: char = '\u{202f}';

/// Three significant digits and the letter of the thousands: `0`, `999`, `1.23k`, `-45.6M`.
pub(crate) fn short(n: f64) -> String {
    if !n.is_finite() {
        return "-".to_owned();
    }
    let sign = if n < 0.0 { "-" } else { "" };
    let mut n = n.abs();
    if n > 0.0 && n < 0.001 {
        return format!("{sign}{n:.1e}");
    }
    let mut letters = ["", "k", "M", "G", "T", "P", "E"].into_iter();
    let mut letter = letters.next().unwrap_or_default();
    while n >= 999.5 {
        let Some(next) = letters.next() else { return format!("{sign}{n:.0e}E") };
        (n, letter) = (n / 1000.0, next);
    }
    let places = match n {
        n if n >= 99.95 || n == 0.0 => 0,
        n if n >= 9.995 => 1,
        n if n >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{n:.places$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{sign}{text}{letter}")
}

/// A number and the letter of its thousands, with a blank before the unit.
pub(crate) fn with_unit(n: f64, unit: &str) -> String {
    let short = short(n);
    match short.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => {
            format!("{} {letter}{unit}", &short[..at])
        }
        _ => format!("{short} {unit}"),
    }
}

/// A count with narrow blanks between the thousands.
pub(crate) fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    if n < 0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(BLANK);
        }
        out.push(digit);
    }
    out
}

/// A share in percent.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    match 100.0 * part / whole {
        share if !share.is_finite() || whole <= 0.0 => "-".to_owned(),
        share if share > 0.0 && share < 0.05 => "<0.1 %".to_owned(),
        share => format!("{share:.1} %"),
    }
}

/// A length of time: `850 ns`, `1.23 ms`, `45.6 s`, `2 h 05 min`.
pub(crate) fn length(ns: i64) -> String {
    let (sign, n) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    let digits = |unit: u64| short(n as f64 / unit as f64);
    let seconds = n / 1_000_000_000;
    let text = match n {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{n} ns"),
        1_000..1_000_000 => format!("{} µs", digits(1_000)),
        1_000_000..1_000_000_000 => format!("{} ms", digits(1_000_000)),
        _ if seconds < 120 => format!("{} s", digits(1_000_000_000)),
        _ if seconds < 7_200 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ if seconds < 172_800 => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds / 3_600 % 24),
    };
    format!("{sign}{text}")
}

/// The name of a time zone.
pub(crate) fn zone_name(zone: Option<TimeZone>) -> &'static str {
    zone.map_or("UTC", TimeZone::name)
}

/// A time in a zone to the microsecond: `2026-11-21 05:51:10.006666`.
pub(crate) fn moment(ns: i64, zone: Option<TimeZone>) -> String {
    let text = time::rfc3339(zone.map_or(ns, |zone| zone.span(ns).local(ns)));
    let (date, clock) = text.trim_end_matches('Z').split_once('T').unwrap_or((&text, ""));
    let clock = &clock[..clock.len().min("00:00:00.000000".len())];
    format!("{date} {clock}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (n, expected) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (7.0, "7"),
            (999.4, "999"),
            (999.5, "1k"),
            (-1234.0, "-1.23k"),
            (99_951.0, "100k"),
            (1e18, "1E"),
            (1e24, "1e6E"),
            (1e-7, "1.0e-7"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(n), expected, "{n}");
        }
    }

    #[test]
    fn counts_shares_and_times() {
        assert_eq!(grouped(-1_234_567), "-1\u{202f}234\u{202f}567");
        assert_eq!(grouped(i64::MIN).chars().filter(char::is_ascii_digit).count(), 19);
        assert_eq!(percent(1.0, 3.0), "33.3 %");
        assert_eq!([percent(1.0, 0.0), percent(1.0, 1e6)], ["-", "<0.1 %"]);
        for (ns, expected) in [
            (0, "0 s"),
            (850, "850 ns"),
            (-1_230_000, "-1.23 ms"),
            (45_600_000_000, "45.6 s"),
            (7_500_000_000_000, "2 h 05 min"),
            (i64::MAX, "106751 d 23 h"),
            (i64::MIN, "-106751 d 23 h"),
        ] {
            assert_eq!(length(ns), expected);
        }
        assert_eq!(moment(0, None), "1970-01-01 00:00:00");
        assert_eq!(moment(1_234_567_891, None), "1970-01-01 00:00:01.234567");
        assert!(moment(i64::MIN, None).starts_with("1677-09-21 00:12:43"));
    }
}
