//! Quantiles of the naive model. It states what the engine rounds to in words of its own, from the
//! values as they came: nothing of the engine's arithmetic is used here.

use super::value::unsigned_zero;
use weir_plan::Value;

/// Integers and durations up to this one, on either side of 0, are exact.
const EXACT_MAX: i128 = 65_535;

/// The smallest of some values that at least so many millionths of all are not above. There is one
/// value at least.
pub(super) fn of(millionths: u32, values: &[Value]) -> Value {
    let mut rising: Vec<&Value> = values.iter().collect();
    rising.sort();
    let (least, most) = (rising[0], rising[rising.len() - 1]);
    // As many as `at` and one more are not above the value there.
    let enough = |at: &usize| (at + 1) * 1_000_000 >= millionths as usize * rising.len();
    let at = (0..rising.len()).find(enough).unwrap_or(rising.len() - 1);
    if at == 0 || at == rising.len() - 1 {
        return rising[at].clone();
    }
    let near = match rising[at] {
        Value::Float(f) => unsigned_zero(near_float(*f)),
        Value::Duration(ns) => Value::Duration(near_int(*ns, least, most)),
        v => Value::Int(near_int(int(v), least, most)),
    };
    near.max(least.clone()).min(most.clone())
}

fn int(v: &Value) -> i64 {
    match v {
        Value::Int(n) | Value::Duration(n) => *n,
        v => unreachable!("no quantile is of {v}"),
    }
}

/// The nearest of the integers of which there are 1,024 between a power of two and the next one,
/// the larger one of two as near; between the smallest and the largest value.
fn near_int(v: i64, least: &Value, most: &Value) -> i64 {
    let size = i128::from(v).abs();
    let mut step = 1;
    while size > EXACT_MAX && step * 2048 <= size {
        step *= 2;
    }
    let size = (size + step / 2) / step * step;
    let near = if v < 0 { -size } else { size };
    let near = near.max(int(least).into()).min(int(most).into());
    let off = (near - i128::from(v)).abs();
    assert!(off * 2048 <= i128::from(v).abs(), "{near} is not near {v}");
    near as i64
}

/// The same of floats. It may be infinite, which nothing between two values is.
fn near_float(v: f64) -> f64 {
    let size = v.abs();
    // The least distance of two floats that have 11 significant bits.
    let mut step = f64::MIN_POSITIVE / 1024.0;
    while step * 2048.0 <= size {
        step *= 2.0;
    }
    let near = (size / step + 0.5).floor() * step;
    assert!(near.is_infinite() || (near - size).abs() <= step / 2.0, "{near} is not near {size}");
    near.copysign(v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Duration, Float, Int};

    #[test]
    fn values_near_to_what_came() {
        let median = |a: Value, b: Value, c: Value| of(500_000, &[c, a, b]);
        for (values, want) in [
            ([Int(0), Int(65_535), Int(1 << 20)], Int(65_535)),
            ([Int(0), Int(65_569), Int(1 << 20)], Int(65_600)),
            ([Int(0), Int(65_569), Int(65_570)], Int(65_570)),
            ([Int(i64::MIN), Int(-65_569), Int(0)], Int(-65_600)),
            ([Int(0), Int(i64::MAX), Int(i64::MAX)], Int(i64::MAX)),
            ([Duration(0), Duration(1_000_000), Duration(2_000_000)], Duration(999_936)),
            ([Float(0.0), Float(0.1), Float(1.0)], Float(0.099_975_585_937_5)),
            ([Float(0.0), Float(8.0), Float(9.0)], Float(8.0)),
            ([Float(1.0), Float(f64::MAX), Float(f64::MAX)], Float(f64::MAX)),
            ([Float(-1.0), Float(0.0), Float(1.0)], Float(0.0)),
        ] {
            let [a, b, c] = values;
            assert_eq!(median(a, b, c), want);
        }
    }

    #[test]
    fn the_rank_is_exact() {
        let values: Vec<Value> = (1..=10).rev().map(Int).collect();
        for (q, want) in [(0, 1), (100_000, 1), (100_001, 2), (950_000, 10), (1_000_000, 10)] {
            assert_eq!(of(q, &values), Int(want));
        }
    }
}
