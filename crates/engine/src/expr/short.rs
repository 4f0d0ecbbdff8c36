//! Numbers and durations as people read them: four significant digits, and a factor or a unit.

/// Factors of the language, the largest first, with the power of ten that each stands for.
const FACTORS: [(&str, i32); 4] = [("T", 12), ("G", 9), ("M", 6), ("k", 3)];

/// Units of a duration, the largest first, with their nanoseconds.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A float with four significant digits, without zeros at its end: plain from 0.0001 to 10,000,
/// with a factor up to 10^15, else with an exponent.
pub(super) fn float(x: f64) -> String {
    // `1.235e4`: digits and exponent are those of the rounded number.
    let shown = format!("{:.3e}", x.abs());
    let parts = shown.split_once('e').and_then(|(m, e)| Some((m, e.parse::<i32>().ok()?)));
    let Some((mantissa, exponent)) = parts else { return x.to_string() };
    let sign = if x < 0.0 { "-" } else { "" };
    let digits = mantissa.replace('.', "");
    if !(-4..15).contains(&exponent) {
        return format!("{sign}{}e{exponent}", pointed(&digits, 1));
    }
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize);
        return format!("{sign}{}", pointed(&(zeros + &digits), 1));
    }
    let factor = FACTORS.iter().find(|(_, power)| exponent >= 4 && exponent >= *power);
    let (name, power) = factor.copied().unwrap_or(("", 0));
    format!("{sign}{}{name}", pointed(&digits, (exponent - power) as usize + 1))
}

/// A duration as one number of the largest unit that is not longer, with four significant digits
/// and all whole days.
pub(super) fn duration(ns: i64) -> String {
    let length = u128::from(ns.unsigned_abs());
    let sign = if ns < 0 { "-" } else { "" };
    let Some(at) = UNITS.iter().position(|(_, size)| length >= *size) else {
        return "0s".to_owned();
    };
    let (name, size) = UNITS[at];
    let whole = (length / size).to_string().len();
    let scale = 10u128.pow(4usize.saturating_sub(whole) as u32);
    let scaled = (length * scale + size / 2) / size;
    match at.checked_sub(1).map(|larger| UNITS[larger]) {
        // Rounded, it is one of the next unit.
        Some((name, next)) if scaled * size >= next * scale => format!("{sign}1{name}"),
        _ => {
            let digits = scaled.to_string();
            let point = (scaled / scale).to_string().len();
            format!("{sign}{}{name}", pointed(&digits, point))
        }
    }
}

/// Digits with a point after so many of them, without zeros at the end of the fraction.
fn pointed(digits: &str, point: usize) -> String {
    let (whole, fraction) = digits.split_at(point.min(digits.len()));
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_model::short as model;

    #[test]
    fn floats_have_four_digits() {
        let check = |x: f64, expected: &str| {
            assert_eq!(float(x), expected, "{x:e}");
            let negative = if x == 0.0 { expected.to_owned() } else { format!("-{expected}") };
            assert_eq!(float(-x), negative, "{x:e}");
        };
        check(0.0, "0");
        check(1.0, "1");
        check(0.5, "0.5");
        check(2.0 / 3.0, "0.6667");
        check(0.000_1, "0.0001");
        check(0.000_099_994, "9.999e-5");
        check(0.000_099_996, "0.0001");
        check(0.001_234_56, "0.001235");
        check(12.345_6, "12.35");
        check(999.96, "1000");
        check(1043.5, "1044");
        check(9999.4, "9999");
        check(9999.6, "10k");
        check(12_346.0, "12.35k");
        // Of two as near, the even one.
        check(12_345.0, "12.34k");
        check(100_000_102.4, "100M");
        check(999_960.0, "1M");
        check(1_043_251_200.0, "1.043G");
        check(999_940_000_000_000.0, "999.9T");
        check(999_960_000_000_000.0, "1e15");
        check(f64::MAX, "1.798e308");
        check(f64::MIN_POSITIVE, "2.225e-308");
        check(5e-324, "4.941e-324");
        check(f64::INFINITY, "inf");
        assert_eq!(float(f64::NAN), "NaN");
    }

    #[test]
    fn durations_have_one_unit() {
        let check = |ns: i64, expected: &str| {
            assert_eq!(duration(ns), expected, "{ns}");
            let negative = if ns == 0 { expected.to_owned() } else { format!("-{expected}") };
            assert_eq!(duration(-ns), negative, "{ns}");
        };
        check(0, "0s");
        check(1, "1ns");
        check(999, "999ns");
        check(1_000, "1us");
        check(59_998_000, "60ms");
        check(12_000_000, "12ms");
        check(999_949, "999.9us");
        check(999_950, "1ms");
        check(1_800_000_000, "1.8s");
        check(1_999_634_432, "2s");
        check(1_234_567_890, "1.235s");
        check(59_994_999_999, "59.99s");
        check(59_995_000_000, "1m");
        check(90_000_000_000, "1.5m");
        check(3_661_000_000_000, "1.017h");
        check(86_399_000_000_000, "1d");
        check(12_345 * 86_400_000_000_000 + 1, "12345d");
        check(i64::MAX, "106752d");
        assert_eq!(duration(i64::MIN), "-106752d");
    }

    proptest! {
        #[test]
        fn the_naive_model_writes_the_same(bits: u64, ns: i64, shift in 0u32..64) {
            let x = f64::from_bits(bits);
            for x in [x, ns as f64, (ns >> shift) as f64 / 2.0, (ns >> shift) as f64 / 1e9] {
                prop_assert_eq!(float(x), model::float(x));
            }
            for ns in [ns, ns >> shift, i64::MIN >> shift, i64::MAX >> shift] {
                prop_assert_eq!(duration(ns), model::duration(ns));
            }
        }
    }
}
