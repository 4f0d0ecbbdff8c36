//! Numbers: integers with their suffixes, floats, durations.

use super::literal::{LiteralRead, word};
use crate::diagnostic::{Code, Diagnostic, Span};
use weir_packet::time;
use weir_plan::Value;

/// The factors that letters after an integer multiply it by.
const SCALES: &[(&str, i128)] = &[
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// The units of durations, in nanoseconds.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];

/// Reads the number that `text` starts with. The first character is a digit.
pub(super) fn read(text: &str) -> LiteralRead {
    for (prefix, radix, what) in [("0x", 16, "hexadecimal"), ("0b", 2, "binary")] {
        if let Some(rest) = text.strip_prefix(prefix) {
            let len = 2 + word(rest);
            return (len, radix_digits(&text[..len], radix, what));
        }
    }
    let whole = digits(text);
    let mut number = whole;
    if text[number..].starts_with('.') && starts_with_digit(&text[number + 1..]) {
        number += 1 + digits(&text[number + 1..]);
    }
    let mantissa = number;
    if text[number..].starts_with(['e', 'E']) {
        let sign = text[number + 1..].starts_with(['+', '-']) as usize;
        if starts_with_digit(&text[number + 1 + sign..]) {
            number += 1 + sign + digits(&text[number + 1 + sign..]);
        }
    }
    let suffix = suffix(&text[number..]);
    let (len, plain) = (number + suffix.len(), text[..number].replace('_', ""));
    let value = match suffix {
        "" if number > whole => {
            plain.parse::<f64>().ok().filter(|x| x.is_finite()).map(Value::Float)
        }
        "" => plain.parse().ok().map(Value::Int),
        _ if number > mantissa => return (len, Err(bad_suffix(&text[..len], number))),
        unit if UNITS.iter().any(|(u, _)| *u == unit) => {
            let unit = if unit.ends_with('s') && !unit.is_ascii() { "us" } else { unit };
            return (len, duration(&plain, unit, &text[..len]));
        }
        _ => match SCALES.iter().find(|(s, _)| *s == suffix) {
            Some((_, scale)) => return (len, scaled(&plain, *scale, &text[..len])),
            None => return (len, Err(bad_suffix(&text[..len], number))),
        },
    };
    (len, value.ok_or_else(|| too_large(&text[..len])))
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len())
}

fn suffix(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !"_µμ".contains(c));
    &text[..end.unwrap_or(text.len())]
}

fn radix_digits(text: &str, radix: u32, what: &str) -> Result<Value, Diagnostic> {
    let digits = text[2..].replace('_', "");
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        let message = format!("`{text}` is not a {what} number");
        return Err(fault(text, message));
    }
    i64::from_str_radix(&digits, radix).map(Value::Int).map_err(|_| too_large(text))
}

fn duration(number: &str, unit: &str, text: &str) -> Result<Value, Diagnostic> {
    time::parse_duration(&format!("{number}{unit}")).map(Value::Duration).ok_or_else(|| {
        // It is finer than a nanosecond, or too long.
        let (_, ns) = UNITS.iter().find(|(u, _)| *u == unit).expect("the unit was recognized");
        match number.parse::<f64>() {
            Ok(n) if n * ns < i64::MAX as f64 => {
                fault(text, format!("`{text}` is not a whole number of nanoseconds"))
            }
            _ => fault(text, format!("`{text}` is out of range"))
                .note("a duration is at most 292 years: 106751 days"),
        }
    })
}

/// `number`, which may have a fraction, times `scale`; a whole number in the end.
fn scaled(number: &str, scale: i128, text: &str) -> Result<Value, Diagnostic> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if whole.len() + fraction.len() > 24 {
        return Err(too_large(text));
    }
    let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| too_large(text))?;
    let (product, tens) = (digits.checked_mul(scale), 10i128.pow(fraction.len() as u32));
    let product = product.ok_or_else(|| too_large(text))?;
    if product % tens != 0 {
        return Err(fault(text, format!("`{text}` is not a whole number")));
    }
    i64::try_from(product / tens).map(Value::Int).map_err(|_| too_large(text))
}

fn fault(text: &str, message: String) -> Diagnostic {
    Diagnostic::new(Code::BadNumber, Span::new(0, text.len()), message)
}

fn too_large(text: &str) -> Diagnostic {
    fault(text, format!("`{text}` does not fit into 64 bits"))
        .note("the largest integer is 9223372036854775807")
}

fn bad_suffix(text: &str, number: usize) -> Diagnostic {
    let (digits, suffix) = text.split_at(number);
    let message = format!("`{suffix}` is not a unit of numbers");
    let d = Diagnostic::new(Code::BadNumber, Span::new(0, text.len()), message);
    match suffix {
        "sec" | "secs" | "second" | "seconds" => d.help(format!("write `{digits}s`")),
        "min" | "mins" | "minute" | "minutes" => d.help(format!("write `{digits}m`")),
        "hr" | "hrs" | "hour" | "hours" => d.help(format!("write `{digits}h`")),
        "day" | "days" => d.help(format!("write `{digits}d`")),
        "w" | "week" | "weeks" => d.help("weeks are written in days: `7d`"),
        "B" | "KB" | "kB" | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB" | "b" | "bit" | "bps" => {
            d.help("numbers have no unit but a factor: `k`, `M`, `G`, `T`, `Ki`, `Mi`, `Gi`, `Ti`")
        }
        _ => match one_unit(text) {
            Some(help) => d.help(help),
            None => d.note("durations: ns us ms s m h d; factors: k M G T Ki Mi Gi Ti"),
        },
    }
}

/// The advice for a duration of several units, such as `1h30m`: all of it in the largest unit that
/// holds a whole number of it, or a sum.
fn one_unit(text: &str) -> Option<String> {
    let (mut rest, mut total, mut parts) = (text, 0, Vec::new());
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let unit = rest[number..].find(|c: char| c.is_ascii_digit()).map(|n| number + n);
        let (part, after) = rest.split_at(unit.unwrap_or(rest.len()));
        total = time::parse_duration(part)?.checked_add(total)?;
        parts.push(part);
        rest = after;
    }
    let (one, sum) = (time::duration(total), parts.join(" + "));
    (parts.len() > 1).then(|| format!("a duration has one unit: `{one}`, or a sum: `{sum}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |text: &str, v: Value| {
            let (len, read) = read(text);
            assert_eq!((len, read.as_ref().ok()), (text.len(), Some(&v)), "{text}");
        };
        check("0", Value::Int(0));
        check("1_000", Value::Int(1000));
        check("0x1f", Value::Int(31));
        check("0b1_01", Value::Int(5));
        check("9223372036854775807", Value::Int(i64::MAX));
        check("1k", Value::Int(1000));
        check("1.5M", Value::Int(1_500_000));
        check("2Gi", Value::Int(2 << 30));
        check("1.5", Value::Float(1.5));
        check("1e-3", Value::Float(0.001));
        check("2E5", Value::Float(2e5));
        check("250ms", Value::Duration(250_000_000));
        check("1.5h", Value::Duration(5_400_000_000_000));
        check("3µs", Value::Duration(3_000));
        check("7d", Value::Duration(604_800_000_000_000));
    }

    #[test]
    fn a_duration_of_several_units_is_told_in_one_of_the_same_length() {
        let check = |bad: &str, wanted: &str| {
            let help = read(bad).1.expect_err(bad).help.unwrap_or_default();
            let mut pieces = help.split('`');
            let (one, sum) = (pieces.nth(1), pieces.nth(1).unwrap_or_default());
            assert_eq!(one, Some(wanted), "{bad}: {help}");
            let length = |text: &str| match read(text).1 {
                Ok(Value::Duration(ns)) => ns,
                other => panic!("{text}: {other:?}"),
            };
            assert_eq!(sum.split(" + ").map(length).sum::<i64>(), length(wanted), "{help}");
        };
        check("1m30s", "90s");
        check("1h30m", "90m");
        check("1d12h", "36h");
        check("1h0m30s", "3630s");
        check("1s500ms", "1500ms");
        check("1m60s", "2m");
        check("1.5h30m", "2h");
        for bad in ["12abc3", "5s9", "9223372036s9223372036s"] {
            assert_eq!(read(bad).1.expect_err(bad).help, None, "{bad}");
        }
    }

    #[test]
    fn faults() {
        for bad in [
            "9223372036854775808",
            "0xfffffffffffffffff",
            "0x",
            "0b2",
            "0xg",
            "1.5555k",
            "1.5ns",
            "9T9",
            "1h30m",
            "10seconds",
            "10MB",
            "1e999",
            "1e3s",
            "99999999999999T",
            "12abc",
            "99999999999999999999999999999d",
            "99999999999999999999999999999M",
        ] {
            let (len, read) = read(bad);
            let d = read.expect_err(bad);
            assert_eq!((len, d.code), (bad.len(), Code::BadNumber), "{bad}");
            assert!(d.span.end <= len, "{bad}");
        }
    }
}
