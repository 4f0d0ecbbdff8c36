//! `short` of the naive model: numbers and durations as people read them.

/// A float of four significant digits, rounded from all of its decimal digits; of two numbers as
/// near, the one whose last digit is even.
pub fn float(x: f64) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    if x == 0.0 {
        return "0".to_owned();
    }
    let sign = if x < 0.0 { "-" } else { "" };
    // No float has more digits after the point.
    let exact = format!("{:.1100}", x.abs());
    let point = exact.find('.').expect("it has a fraction") as i32;
    let digits: Vec<u32> = exact.chars().filter_map(|c| c.to_digit(10)).collect();
    let first = digits.iter().position(|d| *d != 0).expect("it is not 0");
    let mut exponent = point - 1 - first as i32;
    let taken = &digits[first..first + 4];
    let mut number = taken.iter().fold(0, |n, d| n * 10 + d);
    let rest = &digits[first + 4..];
    let half = rest[0] == 5 && rest[1..].iter().all(|d| *d == 0);
    let is_up = if half { number % 2 == 1 } else { rest[0] >= 5 };
    number += u32::from(is_up);
    if number == 10_000 {
        (number, exponent) = (1_000, exponent + 1);
    }
    // The number that is shown is number / 1000 * 10^exponent.
    let (factor, power) = match exponent {
        -4..=3 => ("", 0),
        4..=5 => ("k", 3),
        6..=8 => ("M", 6),
        9..=11 => ("G", 9),
        12..=14 => ("T", 12),
        _ => return format!("{sign}{}e{exponent}", decimal(number.into(), 3)),
    };
    let places = 3 - (exponent - power);
    format!("{sign}{}{factor}", decimal(number.into(), places as usize))
}

/// A duration in the smallest unit of which it has, rounded, fewer than make the next one.
pub fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let length = i128::from(ns).abs();
    let units = [("ns", 1_000), ("us", 1_000), ("ms", 1_000), ("s", 60), ("m", 60), ("h", 24)];
    let mut size = 1i128;
    for (unit, next) in units.into_iter().chain([("d", i128::MAX)]) {
        let rounded = |places: u32| {
            let tens = 10i128.pow(places);
            (2 * length * tens + size) / (2 * size)
        };
        let places = (0..=3).rev().find(|p| rounded(*p) < 10_000).unwrap_or(0);
        if rounded(places) < next.saturating_mul(10i128.pow(places)) {
            let shown = decimal(rounded(places), places as usize);
            return if length == 0 { "0s".to_owned() } else { format!("{sign}{shown}{unit}") };
        }
        size *= next;
    }
    unreachable!("any number of days is fewer than the next unit")
}

/// A number that is counted in parts of ten to the power of `places`.
fn decimal(number: i128, places: usize) -> String {
    let digits = format!("{number:0>width$}", width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let shown = format!("{whole}.{fraction}");
    shown.trim_end_matches('0').trim_end_matches('.').to_owned()
}
