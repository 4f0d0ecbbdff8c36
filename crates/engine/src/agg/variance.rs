//! `variance(x)` and `stddev(x)`: how far values lie from their mean.
//!
//! | | |
//! |---|---|
//! | Syntax | `variance(x)`, `stddev(x)`, each also with `where condition` |
//! | Takes | int, float; `stddev` also duration |
//! | Type | float; `stddev` of durations a duration, towards zero |
//! | Over nothing | absent, as over a single value: these are of a sample, divided by n - 1 |
//! | State | 24 bytes a group of floats, else 48 |
//! | Merge | sums and counts add; floats as Chan, Golub and LeVeque (1979) say |
//! | Exact? | of integers the sums are exact, then divided as floats; floats in the order that rows came, by Welford's recurrence (1962) |

use super::fixed::{CellsResult, Fixed, Of, add_wide, wide};
use super::{Aggregate, Cells, Input, StateKind};
use weir_plan::Type;

/// `root`: the standard deviation.
pub(super) fn build(ty: &Type, root: bool) -> Box<dyn Aggregate> {
    let to = if root { To::Stddev } else { To::Variance };
    match ty {
        Type::Float => Box::new(Of(SpreadFloat { to })),
        Type::Duration => Box::new(Of(SpreadInt { to: To::Duration })),
        _ => Box::new(Of(SpreadInt { to })),
    }
}

/// The result that the variance is made into.
#[derive(Clone, Copy)]
enum To {
    Variance,
    Stddev,
    Duration,
}

impl To {
    fn outcome(self, variance: Option<f64>) -> CellsResult {
        let Some(variance) = variance else { return CellsResult::Absent };
        let result = match self {
            To::Variance => variance,
            To::Stddev | To::Duration => variance.sqrt(),
        };
        match self {
            // The largest double below 2^63 is the largest that fits.
            To::Duration if result < -(i64::MIN as f64) => {
                CellsResult::Value(result as u64 as u128)
            }
            To::Duration => CellsResult::Undefined,
            _ if result.is_finite() => CellsResult::Value(result.to_bits() as u128),
            _ => CellsResult::Undefined,
        }
    }
}

/// Count, sum and sum of squares of integers, exactly: the sum in two words, the squares in three.
#[derive(Clone, Copy, Default, Debug)]
struct Exact {
    n: u64,
    sum: [u64; 2],
    squares: [u64; 3],
}

impl Exact {
    fn of(&[n, s0, s1, q0, q1, q2]: &[u64; 6]) -> Exact {
        Exact { n, sum: [s0, s1], squares: [q0, q1, q2] }
    }

    fn cells(&self) -> [u64; 6] {
        let (s, q) = (self.sum, self.squares);
        [self.n, s[0], s[1], q[0], q[1], q[2]]
    }

    /// Takes a value in.
    #[inline(always)]
    fn add(&mut self, v: i64) {
        let square = (v.unsigned_abs() as u128).pow(2);
        self.n += 1;
        self.add_sums(v as i128, [square as u64, (square >> 64) as u64, 0]);
    }

    #[inline(always)]
    fn add_sums(&mut self, sum: i128, squares: [u64; 3]) {
        let [low, high] = &mut self.sum;
        add_wide(low, high, sum);
        let mut carry = 0;
        for (into, from) in self.squares.iter_mut().zip(squares) {
            let sum = *into as u128 + from as u128 + carry;
            (*into, carry) = (sum as u64, sum >> 64);
        }
    }

    fn merge(&mut self, other: &Exact) {
        self.n = self.n.saturating_add(other.n);
        self.add_sums(wide(other.sum[0], other.sum[1]), other.squares);
    }

    /// The sample variance: (n * squares - sum^2) / n / (n - 1), the difference without rounding.
    fn variance(&self) -> Option<f64> {
        if self.n < 2 {
            return None;
        }
        let sum = wide(self.sum[0], self.sum[1]).unsigned_abs();
        let sum = [sum as u64, (sum >> 64) as u64];
        let (whole, part) = (product(&[self.n], &self.squares), product(&sum, &sum));
        let (mut borrow, mut words) = (false, [0; 4]);
        for ((word, a), b) in words.iter_mut().zip(whole).zip(part) {
            let (x, under) = a.overflowing_sub(b);
            let (x, again) = x.overflowing_sub(borrow as u64);
            (*word, borrow) = (x, under || again);
        }
        Some(nearest(&words) / self.n as f64 / (self.n - 1) as f64)
    }
}

/// The float nearest to a number given as words, the lowest first.
fn nearest(words: &[u64; 4]) -> f64 {
    let top = words.iter().rposition(|&w| w > 0).unwrap_or(0).max(1);
    let high = (words[top] as u128) << 64 | words[top - 1] as u128;
    // The bits below the highest 65 or more only say where to round.
    let rest = words[..top - 1].iter().any(|&w| w > 0);
    let unit = (1u128 << 64) as f64;
    (1..top).fold((high | u128::from(rest)) as f64, |x, _| x * unit)
}

/// The product of two numbers given as words, the lowest first; the factors have at most four.
fn product(a: &[u64], b: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, slot) in out[i..].iter_mut().enumerate() {
            let y = b.get(j).copied().unwrap_or(0);
            let sum = x as u128 * y as u128 + *slot as u128 + carry;
            (*slot, carry) = (sum as u64, sum >> 64);
        }
    }
    out
}

/// Count, mean, and the sum of squared distances from it, kept as floats.
#[derive(Clone, Copy, Default, Debug)]
struct RunningSpread {
    n: u64,
    mean: f64,
    spread: f64,
}

impl RunningSpread {
    fn of(&[n, mean, spread]: &[u64; 3]) -> RunningSpread {
        RunningSpread { n, mean: f64::from_bits(mean), spread: f64::from_bits(spread) }
    }

    fn cells(&self) -> [u64; 3] {
        [self.n, self.mean.to_bits(), self.spread.to_bits()]
    }

    /// Takes a value in.
    #[inline(always)]
    fn add(&mut self, x: f64) {
        self.n += 1;
        let before = x - self.mean;
        self.mean += before / self.n as f64;
        self.spread += before * (x - self.mean);
    }

    /// Takes other values in.
    fn merge(&mut self, other: &RunningSpread) {
        if self.n == 0 || other.n == 0 {
            if self.n == 0 {
                *self = *other;
            }
            return;
        }
        let n = self.n.saturating_add(other.n);
        let (share, apart) = (other.n as f64 / n as f64, other.mean - self.mean);
        self.mean += apart * share;
        self.spread += other.spread + apart * apart * share * self.n as f64;
        self.n = n;
    }

    /// The sample variance.
    fn variance(&self) -> Option<f64> {
        (self.n >= 2).then(|| self.spread / (self.n - 1) as f64)
    }
}

struct SpreadInt {
    to: To,
}

impl Fixed<6> for SpreadInt {
    const FRESH: [u64; 6] = [0; 6];
    const KIND: StateKind = StateKind::Spread;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| {
            let cells = cells.of(group);
            let mut state = Exact::of(cells);
            state.add(values[i] as i64);
            *cells = state.cells();
        });
    }

    fn merge(&self, into: &mut [u64; 6], from: &[u64; 6]) {
        let mut state = Exact::of(into);
        state.merge(&Exact::of(from));
        *into = state.cells();
    }

    fn finish(&self, cells: &[u64; 6]) -> CellsResult {
        self.to.outcome(Exact::of(cells).variance())
    }
}

struct SpreadFloat {
    to: To,
}

impl Fixed<3> for SpreadFloat {
    const FRESH: [u64; 3] = [0; 3];
    const KIND: StateKind = StateKind::SpreadFloat;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| {
            let cells = cells.of(group);
            let mut state = RunningSpread::of(cells);
            state.add(f64::from_bits(values[i]));
            *cells = state.cells();
        });
    }

    fn merge(&self, into: &mut [u64; 3], from: &[u64; 3]) {
        let mut state = RunningSpread::of(into);
        state.merge(&RunningSpread::of(from));
        *into = state.cells();
    }

    fn finish(&self, cells: &[u64; 3]) -> CellsResult {
        self.to.outcome(RunningSpread::of(cells).variance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agg::laws::{Given, check};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use proptest::prelude::*;
    use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type, UnaryOp, Value, Window};

    #[test]
    fn of_a_sample() {
        let (v, s) = (AggFunc::Variance, AggFunc::Stddev);
        let ints = [2, 4, 4, 4, 5, 5, 7, 9].map(Given::Int);
        check(v, &Type::Int, &ints, Value::Float(32.0 / 7.0));
        check(s, &Type::Int, &ints, Value::Float((32.0f64 / 7.0).sqrt()));
        check(v, &Type::Float, &[Given::Float(1.0), Given::Float(2.0)], Value::Float(0.5));
        let gaps = [Given::Duration(10), Given::Duration(14)];
        check(s, &Type::Duration, &gaps, Value::Duration(2));
        for f in [v, s] {
            check(f, &Type::Int, &[], Value::Absent);
            check(f, &Type::Int, &[Given::Int(7), Given::Absent], Value::Absent);
            check(f, &Type::Float, &[Given::Float(7.0)], Value::Absent);
        }
    }

    #[test]
    fn nothing_is_lost_far_from_zero() {
        let far = [0, 1, 2].map(|d| Given::Int(i64::MAX - d));
        check(AggFunc::Variance, &Type::Int, &far, Value::Float(1.0));
        let far = [0.0, 1.0, 2.0].map(|d| Given::Float(1e15 + d));
        check(AggFunc::Variance, &Type::Float, &far, Value::Float(1.0));
        let ends = [Given::Int(i64::MIN), Given::Int(i64::MAX)];
        check(AggFunc::Stddev, &Type::Int, &ends, Value::Float(2f64.powf(63.5)));
        let ends = [Given::Duration(i64::MIN), Given::Duration(i64::MAX)];
        check(AggFunc::Stddev, &Type::Duration, &ends, Value::Absent);
    }

    /// The high and the low half of a large number were rounded each for itself.
    #[test]
    fn the_variance_of_large_integers_was_off_in_its_last_digit() {
        let (a, b) = (988_366_326_972, 1_000_506_172_259);
        let apart = i128::from(b - a).pow(2);
        let values = [Given::Int(a), Given::Int(b)];
        check(AggFunc::Variance, &Type::Int, &values, Value::Float(apart as f64 / 2.0));
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        let lens = || {
            let float = ExprKind::Unary(UnaryOp::ToFloat, Box::new(field("len")));
            [field("len"), Expr { ty: Type::Float, kind: float }]
        };
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |f| lens().map(|e| Agg { ty: Type::Float, ..agg(f, Some(e)) });
                let aggs = [of(AggFunc::Variance), of(AggFunc::Stddev)].concat();
                check_stages(vec![summarize(key, aggs, window)]);
            }
        }
    }

    proptest! {
        #[test]
        fn as_in_two_passes(values in proptest::collection::vec(-1_000_000i64..1_000_000, 2..60)) {
            let (mut exact, mut running) = (Exact::default(), RunningSpread::default());
            values.iter().for_each(|&v| exact.add(v));
            values.iter().for_each(|&v| running.add(v as f64));
            let n = values.len() as f64;
            let mean = values.iter().sum::<i64>() as f64 / n;
            let spread: f64 = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum();
            let want = spread / (n - 1.0);
            for got in [exact.variance(), running.variance()] {
                let got = got.expect("two values");
                prop_assert!((got - want).abs() <= 1e-9 * want.max(1.0), "{got} {want}");
            }
        }
    }
}
