//! Numbers as the screen writes them.

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

/// The time of day (UTC) of nanoseconds since 1970, to the second.
pub(crate) fn clock(ns: i64) -> String {
    let second = ns.div_euclid(1_000_000_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
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
        assert_eq!(clock(-1), "23:59:59");
        assert_eq!(clock(i64::MAX), "23:47:16");
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
