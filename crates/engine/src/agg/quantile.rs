//! `quantile(x, q)`, `percentile(x, p)` and `median(x)`: the value below which a given share lies.
//!
//! | | |
//! |---|---|
//! | Syntax | `quantile(x, 0.95)`, `percentile(x, 95)`, `median(x)`, each also with `where condition` |
//! | Takes | int, float, duration |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted |
//! | State | 16 to 64 bytes a different value of 11 significant bits: at most 1024 for each doubling of the range; quantiles of the same values share it |
//! | Merge | counts of equal values add |
//! | Exact? | the rank is exact; a value beyond 2047 (a float: any) is rounded to 11 significant bits, which is off by 1/2048 at most |
//!
//! The result is the smallest value that at least the share `q` of all values are not above: one
//! that came, never a mean of two. Sketches that bound the error of the rank instead (KLL) choose
//! at random what to keep and depend on the order of merging; rounding the values does neither.

use super::Finish;
use super::tally::{Reading, Rounding, Values, Work, total};
use crate::expr::Class;
use weir_packet::limits::BATCH;
use weir_plan::Type;

/// Significant bits that are kept.
const BITS: u32 = 11;

/// Bits of the fraction of a double that are dropped: it has 52, and one that is not written.
const DROPPED: u32 = 53 - BITS;

pub(super) struct Quantile {
    pub(super) millionths: u32,
    class: Class,
}

impl Quantile {
    pub(super) fn new(millionths: u32, ty: &Type) -> Quantile {
        Quantile { millionths, class: Class::of(ty) }
    }
}

/// Which of `n` values in their order is asked for, from 1.
pub(crate) fn rank(millionths: u32, n: u64) -> u64 {
    let rank = (n as u128 * millionths as u128).div_ceil(1_000_000);
    (rank as u64).clamp(1, n.max(1))
}

/// An integer rounded to the bits that are kept, half away from zero.
pub(crate) fn round_int(v: i64) -> i64 {
    let size = v.unsigned_abs();
    let drop = (u64::BITS - size.leading_zeros()).saturating_sub(BITS);
    let half = (1 << drop) >> 1;
    let size = ((size + half) >> drop) << drop;
    match v < 0 {
        true => 0i64.checked_sub_unsigned(size).unwrap_or(i64::MIN),
        false => i64::try_from(size).unwrap_or(i64::MAX),
    }
}

/// Rounds integers. Those that a double holds are rounded as one, which has the same bits to drop.
fn round_ints(from: &[u64; BATCH], to: &mut [u64; BATCH]) {
    let each = to.iter_mut().zip(from);
    match from.iter().all(|&word| word < 1 << 52) {
        true => each.for_each(|(to, &word)| *to = round_float(word as i64 as f64) as i64 as u64),
        false => each.for_each(|(to, &word)| *to = round_int(word as i64) as u64),
    }
}

/// A float rounded to the bits that are kept, half away from zero; the largest ones downwards.
pub(crate) fn round_float(v: f64) -> f64 {
    let bits = v.to_bits();
    let rounded = f64::from_bits((bits + (1 << DROPPED >> 1)) >> DROPPED << DROPPED);
    if rounded.is_finite() { rounded } else { f64::from_bits(bits >> DROPPED << DROPPED) }
}

impl Reading for Quantile {
    fn rounds(&self) -> Option<Rounding> {
        Some(match self.class {
            Class::Float => |from, to| {
                let each = to.iter_mut().zip(from);
                each.for_each(|(to, &word)| *to = round_float(f64::from_bits(word)).to_bits());
            },
            _ => round_ints,
        })
    }

    fn read(&self, values: &Values<'_>, work: &mut Work, i: usize, out: &mut Finish<'_>) {
        if let Some(rising) = values.rising() {
            let n = total(rising.iter().map(|(_, times)| *times));
            let mut left = rank(self.millionths, n);
            let there = rising.iter().find(|(_, times)| {
                let found = left <= *times;
                left = left.saturating_sub(*times);
                found
            });
            if let Some(&(value, _)) = there {
                out.column.set_raw(i, values.logged(value));
            }
            return;
        }
        values.all(work);
        work.iter_mut().for_each(|(raw, _)| *raw = self.class.ordered(*raw as u64) as u128);
        work.sort_unstable();
        let n = total(work.iter().map(|(_, times)| *times));
        let mut left = rank(self.millionths, n);
        for &(value, times) in &*work {
            if left <= times {
                out.column.set_raw(i, self.class.unordered(value as u64) as u128);
                return;
            }
            left -= times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agg::laws::{Given, check, fuzz_decode, split};
    use crate::conform::check_stages;
    use crate::ops::testing::{agg, field, summarize};
    use proptest::prelude::*;
    use weir_plan::{AggFunc, Value, Window};

    fn quantile(q: f64) -> AggFunc {
        AggFunc::Quantile((q * 1e6).round() as u32)
    }

    #[test]
    fn the_value_at_a_rank() {
        let ints: Vec<Given> = (1..=10).rev().map(Given::Int).collect();
        for (q, want) in [(0.0, 1), (0.1, 1), (0.11, 2), (0.5, 5), (0.95, 10), (1.0, 10)] {
            check(quantile(q), &Type::Int, &ints, Value::Int(want));
        }
        check(quantile(0.5), &Type::Int, &[], Value::Absent);
        check(quantile(0.5), &Type::Int, &[Given::Absent, Given::Int(-3)], Value::Int(-3));
        let floats = [-0.5, 0.25, 8.0].map(Given::Float);
        check(quantile(0.5), &Type::Float, &floats, Value::Float(0.25));
        check(quantile(0.3), &Type::Float, &floats, Value::Float(-0.5));
        let gaps = [Given::Duration(7), Given::Duration(-7)];
        check(quantile(0.5), &Type::Duration, &gaps, Value::Duration(-7));
    }

    #[test]
    fn values_are_kept_to_eleven_bits() {
        for (v, want) in [
            (2047, 2047),
            (2049, 2050),
            (-2049, -2050),
            (1_000_000, 999_936),
            (i64::MAX, i64::MAX),
            (i64::MIN, i64::MIN),
        ] {
            assert_eq!(round_int(v), want);
        }
        assert_eq!(round_float(0.1), 0.099_975_585_937_5);
        assert!(round_float(f64::MAX).is_finite() && round_float(f64::MIN).is_finite());
    }

    #[test]
    fn many_values_however_they_are_split() {
        let rows: Vec<Given> = (0..20_000).map(|i| Given::Int(i * 7919 % 20_000)).collect();
        for (q, want) in [(0.5, 10_000), (0.99, 19_800)] {
            let whole = split(quantile(q), &Type::Int, &rows, &[]);
            assert_eq!(split(quantile(q), &Type::Int, &rows, &[1, 300, 15_000]), whole);
            let Value::Int(got) = whole else { panic!("{whole}") };
            assert!((got - want).abs() <= want / 1024, "{got} for {want}");
        }
        fuzz_decode(quantile(0.5), &Type::Int, &rows[..300]);
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |q, name: &str| agg(quantile(q), Some(field(name)));
                let aggs = vec![of(0.5, "len"), of(0.9, "tcp.payload_len"), of(0.0, "tcp.seq")];
                check_stages(vec![summarize(key, aggs, window)]);
            }
        }
    }

    proptest! {
        #[test]
        fn integers_are_rounded_alike(words in proptest::collection::vec(any::<u64>(), BATCH), bits in 0u32..64) {
            let from = std::array::from_fn(|i| words[i] >> bits);
            let mut to = [0; BATCH];
            round_ints(&from, &mut to);
            for (from, to) in from.into_iter().zip(to) {
                prop_assert_eq!(round_int(from as i64) as u64, to);
            }
        }

        #[test]
        fn rounding_keeps_the_order_and_the_bound(a: i64, b: i64, x: f64, y: f64) {
            prop_assert!((a <= b) == (round_int(a) <= round_int(b)) || round_int(a) == round_int(b));
            let off = (round_int(a) as i128 - a as i128).unsigned_abs();
            prop_assert!(off * 2048 <= a.unsigned_abs() as u128);
            prop_assume!(x.is_normal() && y.is_normal());
            let (rx, ry) = (round_float(x), round_float(y));
            prop_assert!((x <= y) == (rx <= ry) || rx == ry);
            prop_assert!(((rx - x) / x).abs() <= 1.0 / 1024.0);
        }
    }
}
