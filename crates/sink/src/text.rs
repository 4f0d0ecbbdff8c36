//! How single values are written. Everything appends to a byte buffer; nothing fails.

use crate::TimeFormat;
use std::fmt::Arguments;
use std::io::Write;
use std::net::IpAddr;
use weir_engine::rows::Arena;
use weir_plan::{Type, Value};

const NS_PER_S: u64 = 1_000_000_000;

/// Appends formatted text.
fn put(out: &mut Vec<u8>, text: Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory can't fail");
}

/// Appends a cell that is there, given in the raw form of its column: exact, without quotes.
pub(crate) fn cell(out: &mut Vec<u8>, raw: u128, ty: &Type, arena: &Arena, format: TimeFormat) {
    match ty {
        Type::Bool => put(out, format_args!("{}", raw != 0)),
        Type::Int => put(out, format_args!("{}", raw as i64)),
        Type::Float => float(out, f64::from_bits(raw as u64)),
        Type::Str => out.extend_from_slice(arena.get(raw as u64)),
        Type::Bytes => hex(out, arena.get(raw as u64)),
        Type::Ip => ip(out, raw),
        Type::Mac => put(out, format_args!("{}", Value::Mac(raw as u64))),
        Type::Time => time(out, raw as i64, format),
        Type::Duration => seconds(out, raw as i64),
        Type::Net | Type::Tuple(_) => unreachable!("no column has the type {ty}"),
    }
}

/// Appends a float as the shortest decimal that reads back as the same float.
pub(crate) fn float(out: &mut Vec<u8>, x: f64) {
    put(out, format_args!("{x:?}"));
}

/// Appends a float for people: at most three decimals, or the scientific form where these would
/// show nothing of it.
pub(crate) fn float_short(out: &mut Vec<u8>, x: f64) {
    let size = x.abs();
    if x == 0.0 || (1e-3..1e15).contains(&size) {
        put(out, format_args!("{:?}", (x * 1e3).round() / 1e3));
    } else {
        put(out, format_args!("{x:.3e}"));
    }
}

/// Appends bytes in hexadecimal.
fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    for b in bytes {
        put(out, format_args!("{b:02x}"));
    }
}

/// Appends an address given as 128 bits.
fn ip(out: &mut Vec<u8>, bits: u128) {
    match Value::to_ip(bits) {
        IpAddr::V4(a) => {
            let [a, b, c, d] = a.octets();
            put(out, format_args!("{a}.{b}.{c}.{d}"));
        }
        IpAddr::V6(a) => put(out, format_args!("{a}")),
    }
}

/// Appends a time given in nanoseconds since 1970.
fn time(out: &mut Vec<u8>, ns: i64, format: TimeFormat) {
    match format {
        TimeFormat::Rfc3339 => out.extend_from_slice(weir_packet::time::rfc3339(ns).as_bytes()),
        TimeFormat::Epoch => {
            let (sign, s, frac) = split(ns);
            put(out, format_args!("{sign}{s}.{frac:09}"));
        }
    }
}

/// Appends nanoseconds as seconds, with as many decimals as it takes to be exact.
fn seconds(out: &mut Vec<u8>, ns: i64) {
    let (sign, s, frac) = split(ns);
    put(out, format_args!("{sign}{s}"));
    decimals(out, frac, 9);
}

/// Appends nanoseconds for people: up to three decimals of the largest unit below a minute
/// (`1.5s`, `250ms`), whole seconds from there on (`2h3m4s`).
pub(crate) fn duration_short(out: &mut Vec<u8>, ns: i64) {
    let (sign, s, frac) = split(ns);
    out.extend_from_slice(sign.as_bytes());
    let total = s * NS_PER_S + frac;
    let (scale, unit) = match total {
        0 => (NS_PER_S, "s"),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..NS_PER_S => (1_000_000, "ms"),
        _ => (NS_PER_S, "s"),
    };
    // Thousandths of the unit, rounded; a result of 1000 units reads "1000ms", which is as true.
    let milli = (total as u128 * 1000 + scale as u128 / 2) / scale as u128;
    if milli < 60_000 || scale < NS_PER_S {
        put(out, format_args!("{}", milli / 1000));
        decimals(out, (milli % 1000) as u64, 3);
        out.extend_from_slice(unit.as_bytes());
        return;
    }
    let s = (milli + 500) / 1000;
    for (size, unit) in [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")] {
        let n = if size == 86_400 { s / size } else { s / size % next_above(size) };
        if n > 0 {
            put(out, format_args!("{n}{unit}"));
        }
    }
}

/// How many of a unit make the next larger one.
fn next_above(size: u128) -> u128 {
    if size == 3600 { 24 } else { 60 }
}

/// Sign, whole seconds, and the nanoseconds beyond them.
fn split(ns: i64) -> (&'static str, u64, u64) {
    let size = ns.unsigned_abs();
    (if ns < 0 { "-" } else { "" }, size / NS_PER_S, size % NS_PER_S)
}

/// Appends a decimal point and `frac`, a number of `digits` digits, without its trailing zeros;
/// nothing for 0.
fn decimals(out: &mut Vec<u8>, frac: u64, digits: usize) {
    if frac > 0 {
        put(out, format_args!(".{frac:0digits$}"));
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn durations() {
        let check = |ns: i64, exact: &str, short: &str| {
            assert_eq!(shown(|o| seconds(o, ns)), exact);
            assert_eq!(shown(|o| duration_short(o, ns)), short);
        };
        check(0, "0", "0s");
        check(1, "0.000000001", "1ns");
        check(1_500, "0.0000015", "1.5us");
        check(-250_000_000, "-0.25", "-250ms");
        check(999_999_999, "0.999999999", "1000ms");
        check(1_500_000_000, "1.5", "1.5s");
        check(12_345_678_901, "12.345678901", "12.346s");
        check(60_000_000_000, "60", "1m");
        check(59_999_999_999, "59.999999999", "1m");
        check(7_384_000_000_000, "7384", "2h3m4s");
        check(90_061_400_000_000, "90061.4", "1d1h1m1s");
        check(i64::MIN, "-9223372036.854775808", "-106751d23h47m17s");
    }

    #[test]
    fn floats() {
        let check = |x: f64, exact: &str, short: &str| {
            assert_eq!(shown(|o| float(o, x)), exact);
            assert_eq!(shown(|o| float_short(o, x)), short);
        };
        check(0.0, "0.0", "0.0");
        check(2.0, "2.0", "2.0");
        check(1600.0 / 3.0, "533.3333333333334", "533.333");
        check(-0.0004, "-0.0004", "-4.000e-4");
        check(1e300, "1e300", "1.000e300");
    }

    #[test]
    fn times() {
        assert_eq!(shown(|o| time(o, 1, TimeFormat::Epoch)), "0.000000001");
        assert_eq!(shown(|o| time(o, -1_500_000_000, TimeFormat::Epoch)), "-1.500000000");
        assert_eq!(shown(|o| time(o, 0, TimeFormat::Rfc3339)), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn addresses_and_bytes() {
        let Value::Ip(v4) = Value::ip("192.0.2.7".parse().expect("an address")) else {
            unreachable!()
        };
        assert_eq!(shown(|o| ip(o, v4)), "192.0.2.7");
        assert_eq!(shown(|o| ip(o, 1)), "::1");
        assert_eq!(shown(|o| hex(o, &[0, 255, 10])), "00ff0a");
    }

    proptest! {
        #[test]
        fn seconds_read_back_exactly(ns: i64) {
            let text = shown(|o| seconds(o, ns));
            let (whole, frac) = text.split_once('.').unwrap_or((&text, ""));
            let digits: i128 = format!("{whole}{frac:0<9}").parse().expect("digits");
            prop_assert_eq!(digits, ns as i128);
        }

        #[test]
        fn floats_read_back_exactly(x in proptest::num::f64::NORMAL) {
            prop_assert_eq!(shown(|o| float(o, x)).parse::<f64>().expect("a float"), x);
        }
    }
}
