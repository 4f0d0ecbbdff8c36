//! Numbers and times as the screen writes them.

use weir_packet::time;
use weir_plan::TimeZone;

/// Three significant digits and the letter of the thousands: `0`, `999`, `1.23k`, `45.6M`. At most
/// five characters up to 999 E, and never more than six.
pub(crate) fn short(n: f64) -> String {
    if n.is_nan() || n < 0.0 {
        return "-".to_owned();
    }
    if n < 9.995 && n.fract() > 0.0 {
        return format!("{n:.1}");
    }
    let (mut n, mut letters) = (n, ["", "k", "M", "G", "T", "P", "E"].into_iter());
    let mut letter = letters.next().unwrap_or_default();
    while n >= 999.5 {
        let Some(next) = letters.next() else { return ">999E".to_owned() };
        (n, letter) = (n / 1000.0, next);
    }
    match (letter, n) {
        ("", n) => format!("{n:.0}"),
        (letter, n) if n < 9.995 => format!("{n:.2}{letter}"),
        (letter, n) if n < 99.95 => format!("{n:.1}{letter}"),
        (letter, n) => format!("{n:.0}{letter}"),
    }
}

/// A count with blanks between the thousands, so that its length can be seen.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A share in percent.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    match 100.0 * part / whole {
        share if share.is_nan() || whole <= 0.0 => "-".to_owned(),
        share if share > 0.0 && share < 0.05 => "<0.1".to_owned(),
        share => format!("{share:.1}"),
    }
}

/// How times are written: in which zone, and whether with their dates.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Times {
    zone: Option<TimeZone>,
    with_date: bool,
}

impl Times {
    /// Times within a span in a zone (`None` is UTC): with dates where the span has several.
    pub(crate) fn within(span: Option<(i64, i64)>, zone: Option<TimeZone>) -> Times {
        let times = Times { zone, with_date: false };
        let day = |ns| time::date(times.local(ns));
        Times { with_date: span.is_some_and(|(from, to)| day(from) != day(to)), ..times }
    }

    /// Local time, as if it were UTC.
    fn local(self, ns: i64) -> i64 {
        self.zone.map_or(ns, |zone| zone.span(ns).local(ns))
    }

    /// The name of the zone.
    pub(crate) fn zone(self) -> &'static str {
        self.zone.map_or("UTC", TimeZone::name)
    }

    /// A time to the second; `-` of a packet of which nobody knows it.
    pub(crate) fn to_second(self, ns: i64) -> String {
        if ns == time::NO_TIME {
            return "-".to_owned();
        }
        let local = self.local(ns);
        let second = local.div_euclid(1_000_000_000).rem_euclid(86_400);
        let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        match (self.with_date, time::date(local)) {
            (true, (year, month, day)) => format!("{year:04}-{month:02}-{day:02} {clock}"),
            (false, _) => clock,
        }
    }

    /// The same, with the part of a second after it: `digits` of it.
    pub(crate) fn to_part(self, ns: i64, digits: u32) -> String {
        let text = self.to_second(ns);
        let part = ns.rem_euclid(1_000_000_000) / 10_i64.pow(9 - digits);
        if ns == time::NO_TIME {
            return text;
        }
        format!("{text}.{part:0width$}", width = digits as usize)
    }
}

/// A length of time in at most two units.
pub(crate) fn length(ns: i64) -> String {
    let seconds = ns.div_euclid(1_000_000_000);
    match seconds {
        ..0 => "-".to_owned(),
        0..10 => format!("{:.1}s", ns as f64 / 1e9),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        for (n, expected) in [
            (0.0, "0"),
            (0.2, "0.2"),
            (7.0, "7"),
            (999.4, "999"),
            (999.5, "1.00k"),
            (1234.0, "1.23k"),
            (9995.0, "10.0k"),
            (99_949.0, "99.9k"),
            (99_951.0, "100k"),
            (999_500.0, "1.00M"),
            (1e18, "1.00E"),
            (u64::MAX as f64, "18.4E"),
            (1e30, ">999E"),
            (-1.0, "-"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(n), expected, "{n}");
        }
    }

    #[test]
    fn thousands_stand_apart() {
        for (n, expected) in
            [(0, "0"), (999, "999"), (1000, "1 000"), (u64::MAX, "18 446 744 073 709 551 615")]
        {
            assert_eq!(grouped(n), expected);
        }
    }

    #[test]
    fn times() {
        const DAY: i64 = 86_400_000_000_000;
        let utc = Times::within(Some((0, DAY - 1)), None);
        assert_eq!((utc, utc.zone()), (Times::default(), "UTC"));
        assert_eq!(utc.to_second(-1), "23:59:59");
        assert_eq!(utc.to_second(i64::MAX), "23:47:16");
        assert_eq!(utc.to_part(-1, 6), "23:59:59.999999");
        assert_eq!(utc.to_part(time::NO_TIME, 3), "-");
        // A second day is another date, in the zone where times are shown.
        let dated = Times::within(Some((0, DAY)), None);
        assert_eq!(dated.to_part(DAY + 1_000_000, 3), "1970-01-02 00:00:00.001");
        assert_eq!(dated.to_second(i64::MIN + 1), "1677-09-21 00:12:43");
        let zone = TimeZone::new("Asia/Kolkata", 19_800_000_000_000, &[]).expect("a zone");
        let there = Times::within(Some((0, DAY - 1)), Some(zone));
        assert_eq!(there.to_second(DAY - 1), "1970-01-02 05:29:59");
        assert_eq!(there.zone(), "Asia/Kolkata");
        assert_eq!(Times::within(None, Some(zone)).to_second(0), "05:30:00");
        for (ns, expected) in [
            (0, "0.0s"),
            (1_500_000_000, "1.5s"),
            (61_000_000_000, "1m01s"),
            (i64::MAX, "106751d23h"),
            (-1, "-"),
        ] {
            assert_eq!(length(ns), expected);
        }
        let shares = [percent(1.0, 3.0), percent(1.0, 0.0), percent(1.0, 1e6), percent(0.0, 1.0)];
        assert_eq!(shares, ["33.3", "-", "<0.1", "0.0"]);
    }
}
