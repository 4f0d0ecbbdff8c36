//! How single values are written. Everything appends to a byte buffer; nothing fails.

use crate::options::TimeFormat;
use std::fmt::Arguments;
use std::io::Write;
use std::net::IpAddr;
use weir_engine::rows::Arena;
use weir_plan::{TimeZone, Type, Value};

const NS_PER_S: u64 = 1_000_000_000;

/// The decimal digits of 0 to 99, two each.
const PAIRS: [u8; 200] = {
    let mut pairs = [b'0'; 200];
    let mut n = 0;
    while n < 100 {
        (pairs[2 * n], pairs[2 * n + 1]) = (b'0' + (n / 10) as u8, b'0' + (n % 10) as u8);
        n += 1;
    }
    pairs
};

/// The decimal digits of 0 to 255, and how many there are.
const OCTETS: [([u8; 3], u8); 256] = {
    let mut octets = [([b'0'; 3], 1); 256];
    let mut n = 0;
    while n < 256 {
        let (hundreds, tens, ones) = (n / 100, n / 10 % 10, n % 10);
        octets[n] = match n {
            0..10 => ([b'0' + ones as u8, b'0', b'0'], 1),
            10..100 => ([b'0' + tens as u8, b'0' + ones as u8, b'0'], 2),
            _ => ([b'0' + hundreds as u8, b'0' + tens as u8, b'0' + ones as u8], 3),
        };
        n += 1;
    }
    octets
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends formatted text.
fn put(out: &mut Vec<u8>, text: Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory can't fail");
}

/// Appends a cell that is there, given in the raw form of its column: exact, without quotes.
pub(crate) fn cell(out: &mut Vec<u8>, raw: u128, ty: &Type, arena: &Arena, format: TimeFormat) {
    match ty {
        Type::Bool => out.extend_from_slice(if raw != 0 { b"true" } else { b"false" }),
        Type::Int => int(out, raw as i64),
        Type::Float => float(out, f64::from_bits(raw as u64)),
        Type::Str => out.extend_from_slice(arena.get(raw as u64)),
        Type::Bytes => hex(out, arena.get(raw as u64)),
        Type::Ip => ip(out, raw),
        Type::Mac => mac(out, raw as u64),
        Type::Time => time(out, raw as i64, format),
        Type::Duration => seconds(out, raw as i64),
        Type::Net | Type::Tuple(_) => unreachable!("no column has the type {ty}"),
    }
}

/// Appends an integer.
fn int(out: &mut Vec<u8>, n: i64) {
    if n < 0 {
        out.push(b'-');
    }
    natural(out, n.unsigned_abs());
}

/// Appends a natural number.
fn natural(out: &mut Vec<u8>, mut n: u64) {
    let mut text = [0; 20];
    let mut at = text.len();
    while n >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(pair(n % 100));
        n /= 100;
    }
    if n >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(pair(n));
    } else {
        at -= 1;
        text[at] = b'0' + n as u8;
    }
    out.extend_from_slice(&text[at..]);
}

/// Two digits of a number below 100.
#[inline(always)]
fn pair(n: u64) -> &'static [u8] {
    &PAIRS[2 * n as usize..][..2]
}

/// Nine digits of a number below a thousand millions.
fn nine(n: u64) -> [u8; 9] {
    let mut digits = [b'0' + (n / 100_000_000 % 10) as u8; 9];
    for (at, scale) in [(1, 1_000_000), (3, 10_000), (5, 100), (7, 1)] {
        digits[at..at + 2].copy_from_slice(pair(n / scale % 100));
    }
    digits
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
        out.extend_from_slice(&[HEX[(b >> 4) as usize], HEX[(b & 15) as usize]]);
    }
}

/// Appends a link address given in the low 48 bits.
fn mac(out: &mut Vec<u8>, bits: u64) {
    let mut text = [b':'; 17];
    for (i, group) in text.chunks_mut(3).enumerate() {
        let byte = (bits >> (40 - 8 * i)) as usize;
        (group[0], group[1]) = (HEX[byte >> 4 & 15], HEX[byte & 15]);
    }
    out.extend_from_slice(&text);
}

/// Appends an address given as 128 bits.
fn ip(out: &mut Vec<u8>, bits: u128) {
    match Value::to_ip(bits) {
        IpAddr::V4(a) => ipv4(out, a.octets()),
        IpAddr::V6(a) => match a.to_ipv4_mapped() {
            Some(four) => {
                out.extend_from_slice(b"::ffff:");
                ipv4(out, four.octets());
            }
            None => ipv6(out, a.segments()),
        },
    }
}

fn ipv4(out: &mut Vec<u8>, octets: [u8; 4]) {
    // Room for the three bytes that are copied whatever the number of digits.
    let mut text = [b'.'; 18];
    let mut at = 0;
    for octet in octets {
        let (digits, n) = OCTETS[octet as usize];
        text[at..at + 3].copy_from_slice(&digits);
        text[at + n as usize] = b'.';
        at += n as usize + 1;
    }
    out.extend_from_slice(&text[..at - 1]);
}

/// RFC 5952: the longest run of zeros, the first of several, is left out if there are two or more.
fn ipv6(out: &mut Vec<u8>, segments: [u16; 8]) {
    let (mut zeros, mut run) = (0..0, 0..0);
    for (i, &segment) in segments.iter().enumerate() {
        run = if segment == 0 { run.start..i + 1 } else { i + 1..i + 1 };
        if run.len() > zeros.len() {
            zeros = run.clone();
        }
    }
    if zeros.len() < 2 {
        return groups(out, &segments);
    }
    groups(out, &segments[..zeros.start]);
    out.extend_from_slice(b"::");
    groups(out, &segments[zeros.end..]);
}

/// Appends the groups of an IPv6 address.
fn groups(out: &mut Vec<u8>, segments: &[u16]) {
    for (i, &segment) in segments.iter().enumerate() {
        if i > 0 {
            out.push(b':');
        }
        let digits = [12, 8, 4, 0].map(|shift| HEX[(segment >> shift & 15) as usize]);
        // At least one digit.
        let skip = ((segment | 1).leading_zeros() / 4) as usize;
        out.extend_from_slice(&digits[skip..]);
    }
}

/// Appends a time given in nanoseconds since 1970.
fn time(out: &mut Vec<u8>, ns: i64, format: TimeFormat) {
    match format {
        TimeFormat::Rfc3339 => rfc3339(out, ns),
        TimeFormat::Local(zone) => local(out, ns, zone),
        TimeFormat::EpochNs => int(out, ns),
        TimeFormat::Epoch => {
            let (sign, s, frac) = split(ns);
            out.extend_from_slice(sign.as_bytes());
            natural(out, s);
            out.push(b'.');
            out.extend_from_slice(&nine(frac));
        }
    }
}

/// Appends a time in the local time of a zone, such as `2023-03-26T03:00:00+02:00`. RFC 3339 has no
/// seconds in the distance from UTC: a zone with any is written in UTC.
fn local(out: &mut Vec<u8>, ns: i64, zone: TimeZone) {
    let offset = zone.span(ns).offset;
    let minutes = offset / (60 * NS_PER_S as i64);
    let shown = ns.checked_add(offset).filter(|_| offset % (60 * NS_PER_S as i64) == 0);
    let Some(shown) = shown else { return rfc3339(out, ns) };
    rfc3339(out, shown);
    out.pop();
    out.push(if offset < 0 { b'-' } else { b'+' });
    let minutes = minutes.unsigned_abs();
    out.extend_from_slice(pair(minutes / 60));
    out.push(b':');
    out.extend_from_slice(pair(minutes % 60));
}

/// Appends a time as [`weir_packet::time::rfc3339`] writes it, without allocating.
fn rfc3339(out: &mut Vec<u8>, ns: i64) {
    let (s, frac) = (ns.div_euclid(NS_PER_S as i64), ns.rem_euclid(NS_PER_S as i64) as u64);
    let (day, of_day) = (s.div_euclid(86_400), s.rem_euclid(86_400) as u64);
    let (year, month, day) = date(day);
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    let fields = [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, of_day / 3600),
        (14, of_day / 60 % 60),
        (17, of_day % 60),
    ];
    for (at, n) in fields {
        text[at..at + 2].copy_from_slice(pair(n));
    }
    text[20..29].copy_from_slice(&nine(frac));
    // As many decimals as it takes, by threes.
    let end = match frac {
        0 => 19,
        f if f % 1_000_000 == 0 => 23,
        f if f % 1_000 == 0 => 26,
        _ => 29,
    };
    text[end] = b'Z';
    out.extend_from_slice(&text[..=end]);
}

/// Year, month and day of a day since 1970 within the reach of 64-bit nanoseconds.
fn date(day: i64) -> (u64, u64, u64) {
    // Days since the first of March of the year 1600, where a cycle of 400 years begins.
    let day = (day + 135_080) as u64;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (1600 + era * 400 + year + u64::from(month <= 2), month, day)
}

/// Appends nanoseconds as seconds, with as many decimals as it takes to be exact.
fn seconds(out: &mut Vec<u8>, ns: i64) {
    let (sign, s, frac) = split(ns);
    out.extend_from_slice(sign.as_bytes());
    natural(out, s);
    decimals(out, &nine(frac));
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
        natural(out, (milli / 1000) as u64);
        decimals(out, &nine((milli % 1000) as u64)[6..]);
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

/// Appends a decimal point and digits without their trailing zeros; nothing where all are zero.
fn decimals(out: &mut Vec<u8>, digits: &[u8]) {
    if let Some(last) = digits.iter().rposition(|d| *d != b'0') {
        out.push(b'.');
        out.extend_from_slice(&digits[..=last]);
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
    fn local_times_have_their_distance_from_utc() {
        const S: i64 = 1_000_000_000;
        // 2023-03-26 01:00 UTC, when Rome's clocks are set forward.
        const MARCH: i64 = 1_679_792_400 * S;
        let check = |first: i64, changes: &[(i64, i64)], ns: i64, expected: &str| {
            let zone = TimeZone::new("t", first * 60 * S, changes).expect("a zone");
            assert_eq!(shown(|o| time(o, ns, TimeFormat::Local(zone))), expected);
            assert_eq!(weir_packet::time::parse_rfc3339(expected), Some(ns));
        };
        let rome = [(MARCH, 7200 * S)];
        check(60, &rome, MARCH - 1, "2023-03-26T01:59:59.999999999+01:00");
        check(60, &rome, MARCH, "2023-03-26T03:00:00+02:00");
        check(-210, &[], 0, "1969-12-31T20:30:00-03:30");
        check(-30, &[], 0, "1969-12-31T23:30:00-00:30");
        check(0, &[], 0, "1970-01-01T00:00:00+00:00");
        check(0, &[(0, 45 * S)], 0, "1970-01-01T00:00:00Z");
        check(60, &[], i64::MAX, "2262-04-11T23:47:16.854775807Z");
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

    #[test]
    fn the_ends_of_time() {
        for ns in [i64::MIN, -1, 0, i64::MAX, 951_782_400_000_000_000, 951_868_799_999_999_999] {
            let text = shown(|o| time(o, ns, TimeFormat::Rfc3339));
            assert_eq!(text, weir_packet::time::rfc3339(ns));
        }
    }

    proptest! {
        #[test]
        fn times_are_those_of_queries(ns: i64, scale in 0u32..10) {
            let ns = ns / 10i64.pow(scale) * 10i64.pow(scale);
            let text = shown(|o| time(o, ns, TimeFormat::Rfc3339));
            prop_assert_eq!(text, weir_packet::time::rfc3339(ns));
        }

        #[test]
        fn numbers_and_addresses_are_those_of_the_standard_library(
            n: i64, shift in 0u32..64, segments: [u16; 8], zero: u8, v4: u32, m: u64,
        ) {
            prop_assert_eq!(shown(|o| int(o, n >> shift)), (n >> shift).to_string());
            let mut segments = segments;
            for (i, segment) in segments.iter_mut().enumerate() {
                *segment = if zero >> i & 1 == 1 { 0 } else { *segment >> (shift % 16) };
            }
            let v6 = std::net::Ipv6Addr::from(segments);
            prop_assert_eq!(shown(|o| ip(o, v6.into())), Value::Ip(v6.into()).to_string());
            let four = std::net::Ipv4Addr::from(v4);
            for address in [IpAddr::V4(four), IpAddr::V6(four.to_ipv6_mapped())] {
                let Value::Ip(bits) = Value::ip(address) else { unreachable!() };
                prop_assert_eq!(shown(|o| ip(o, bits)), address.to_string());
            }
            let m = m >> 16;
            prop_assert_eq!(shown(|o| mac(o, m)), Value::Mac(m).to_string());
        }

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
