//! Aggregates of the naive model: all values of a group, as they came.

use super::eval::Eval;
use super::value::{declared, float, word};
use super::{paper, quantile, sketch, spread};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::limits::TEXT_MAX;
use weir_plan::place::rounds;
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type, Value};

impl Eval<'_> {
    /// The result of an aggregate over the values of a group, none of them absent. Over none the
    /// result is absent, but counts are 0 and a registered aggregate says itself what it is.
    pub(super) fn aggregate(&mut self, agg: &Agg, values: &[Value]) -> Value {
        let words = || values.iter().map(|v| word(v) as i128);
        match (agg.func, values) {
            (AggFunc::Count | AggFunc::Late, _) => Value::Int(values.len() as i64),
            (AggFunc::Distinct, _) => {
                Value::Int(values.iter().collect::<BTreeSet<_>>().len() as i64)
            }
            (AggFunc::DistinctUpTo(limit), _) => {
                let different: BTreeSet<&Value> = values.iter().collect();
                Value::Int(match different.len() as u64 {
                    n if n <= limit => n as i64,
                    _ => {
                        let items = different.into_iter().map(|v| item(v, agg));
                        sketch::count(items).max(limit + 1) as i64
                    }
                })
            }
            (AggFunc::ApproxDistinct, _) => {
                Value::Int(sketch::count(values.iter().map(|v| item(v, agg))) as i64)
            }
            (AggFunc::EndReason, _) => unreachable!("sessions know it"),
            (AggFunc::Completeness, _) => unreachable!("it is not of values"),
            (AggFunc::User(i), _) => {
                let mut state = self.functions.aggregate_at(i)();
                values.iter().for_each(|v| state.update(v));
                declared(&agg.ty, state.finish())
            }
            (AggFunc::Rate(window_ns), _) => {
                let one = |v: &Value| if agg.arg.is_some() { word(v) as i128 } else { 1 };
                Value::Float(per_second(values.iter().map(one).sum(), window_ns))
            }
            (func, []) => func.over_nothing(&agg.ty),
            (AggFunc::Quantile(q), _) => quantile::of(q, values),
            (AggFunc::Mad, _) => self.deviation(&agg.ty, values),
            (AggFunc::Entropy, _) => Value::Float(entropy(tally(values).into_values().collect())),
            (AggFunc::Histogram, _) => self.list(tally(values)),
            (AggFunc::Frequent(n), _) => {
                let mut all: Vec<_> = tally(values).into_iter().collect();
                // Stable: those equally frequent stay in the order of their values.
                all.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
                self.list(all.into_iter().take(n as usize))
            }
            (_, [Value::Float(_), ..]) if rounds(agg) => self.rounded(agg, &[values.to_vec()]),
            (AggFunc::Variance | AggFunc::Stddev, _) => {
                let values: Vec<i64> = values.iter().map(word).collect();
                self.spread(agg, spread::of_integers(&values))
            }
            (AggFunc::Sum, _) => self.checked(&agg.ty, i64::try_from(words().sum::<i128>()).ok()),
            (AggFunc::Avg, [Value::Duration(_), ..]) => {
                Value::Duration((words().sum::<i128>() / values.len() as i128) as i64)
            }
            (AggFunc::Avg, _) => Value::Float(words().sum::<i128>() as f64 / values.len() as f64),
            (AggFunc::Min, _) => values.iter().min().cloned().expect("there are values"),
            (AggFunc::Max, _) => values.iter().max().cloned().expect("there are values"),
            (AggFunc::MaxBy | AggFunc::MinBy, _) => chosen(agg.func, values),
            (AggFunc::First, [first, ..]) => first.clone(),
            (AggFunc::Last, [.., last]) => last.clone(),
            (AggFunc::Any, _) => Value::Bool(values.contains(&Value::Bool(true))),
            (AggFunc::All, _) => Value::Bool(!values.contains(&Value::Bool(false))),
            (AggFunc::BitOr, _) => Value::Int(values.iter().fold(0, |bits, v| bits | word(v))),
        }
    }

    /// The median of how far values lie from their median: of an even number of values the smaller
    /// one in the middle.
    fn deviation(&mut self, ty: &Type, values: &[Value]) -> Value {
        let middle = (values.len() - 1) / 2;
        if let Type::Float = ty {
            let mut floats: Vec<f64> = values.iter().map(float).collect();
            floats.sort_by(f64::total_cmp);
            let median = floats[middle];
            let mut far: Vec<f64> = floats.iter().map(|v| (v - median).abs()).collect();
            far.sort_by(f64::total_cmp);
            return self.checked_float(far[middle]);
        }
        let mut words: Vec<i128> = values.iter().map(|v| word(v).into()).collect();
        words.sort();
        let median = words[middle];
        let mut far: Vec<i128> = words.iter().map(|v| (v - median).abs()).collect();
        far.sort();
        self.checked(ty, i64::try_from(far[middle]).ok())
    }

    /// Values and how often each came, as text.
    fn list<'v>(&mut self, values: impl IntoIterator<Item = (&'v Value, u64)>) -> Value {
        let one = |(value, times): (&Value, u64)| match value {
            Value::Str(s) => format!("{s}={times}"),
            value => format!("{value}={times}"),
        };
        let text = values.into_iter().map(one).collect::<Vec<_>>().join(" ");
        if text.len() <= TEXT_MAX { Value::Str(text.into()) } else { self.undefined() }
    }

    /// An aggregate that rounds, of floats that came in several parts: what each part comes to, one
    /// after the other.
    pub(super) fn rounded(&mut self, agg: &Agg, parts: &[Vec<Value>]) -> Value {
        let n: usize = parts.iter().map(Vec::len).sum();
        let sum = |part: &Vec<Value>| part.iter().map(float).fold(0.0, |sum, v| sum + v);
        let sums = || parts.iter().map(sum).fold(0.0, |all, sum| all + sum);
        match agg.func {
            _ if n == 0 => Value::Absent,
            AggFunc::Sum => self.checked_float(sums()),
            AggFunc::Avg => self.checked_float(sums() / n as f64),
            _ => {
                let floats = |part: &Vec<Value>| part.iter().map(float).collect();
                let parts: Vec<Vec<f64>> = parts.iter().map(floats).collect();
                self.spread(agg, spread::of_floats(&parts))
            }
        }
    }

    /// A variance, or its root.
    fn spread(&mut self, agg: &Agg, variance: Option<f64>) -> Value {
        let Some(variance) = variance else { return Value::Absent };
        match (agg.func, &agg.ty) {
            (AggFunc::Variance, _) => self.checked_float(variance),
            (_, Type::Duration) => {
                let ns = variance.sqrt();
                self.checked(&agg.ty, (ns < -(i64::MIN as f64)).then_some(ns as i64))
            }
            _ => self.checked_float(variance.sqrt()),
        }
    }
}

/// The item that goes into a sketch for a value of the argument of `agg`, tuples within tuples
/// taken apart.
fn item(v: &Value, agg: &Agg) -> Value {
    let mut parts = Vec::new();
    if let Some(arg) = &agg.arg {
        flatten(v, arg, &mut parts);
    }
    match &parts[..] {
        [one] => one.clone(),
        _ => Value::Tuple(parts),
    }
}

fn flatten(v: &Value, e: &Expr, out: &mut Vec<Value>) {
    match (&e.kind, v) {
        (ExprKind::Tuple(parts), Value::Tuple(values)) => {
            parts.iter().zip(values).for_each(|(part, v)| flatten(v, part, out));
        }
        (ExprKind::Tuple(parts), _) => {
            parts.iter().for_each(|part| flatten(&Value::Absent, part, out));
        }
        _ => out.push(v.clone()),
    }
}

/// The first part of the pair with the largest or the smallest second part, of several such pairs
/// the smallest first part.
fn chosen(func: AggFunc, pairs: &[Value]) -> Value {
    let both = |pair: &Value| match pair {
        Value::Tuple(parts) if parts.iter().all(Value::exists) => {
            Some((parts[1].clone(), parts[0].clone()))
        }
        _ => None,
    };
    let mut pairs: Vec<(Value, Value)> = pairs.iter().filter_map(both).collect();
    pairs.sort();
    let last = pairs.last().map(|(by, _)| by.clone());
    let wanted = |(by, _): &&(Value, Value)| func == AggFunc::MinBy || last.as_ref() == Some(by);
    pairs.iter().find(wanted).map_or(Value::Absent, |(_, value)| value.clone())
}

/// How often each value came.
fn tally(values: &[Value]) -> BTreeMap<&Value, u64> {
    let mut times = BTreeMap::new();
    values.iter().for_each(|v| *times.entry(v).or_insert(0) += 1);
    times
}

/// Shannon's entropy of values that came so often each: for each, its share of all times the
/// logarithm of the whole over its part. They are added from the rarest value to the most frequent.
fn entropy(mut times: Vec<u64>) -> f64 {
    times.sort();
    let all = times.iter().sum::<u64>() as f64;
    let part = |&n: &u64| (n as f64 / all) * (all / n as f64).log2();
    times.iter().map(part).fold(0.0, |sum, bits| sum + bits)
}

/// So much a second, of a sum over a window: the nearest float.
fn per_second(sum: i128, window_ns: i64) -> f64 {
    let billionths = sum.unsigned_abs().checked_mul(1_000_000_000).expect("fewer than 2^33 rows");
    let size = paper::quotient(billionths, window_ns.unsigned_abs());
    if sum < 0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Absent, Bool, Duration, Float, Int};
    use weir_plan::registered::Functions;

    #[test]
    fn aggregates() {
        use AggFunc::*;
        let functions = Functions::default();
        let ints = [Int(3), Int(-1), Int(3)];
        let spans = [Duration(3), Duration(-4)];
        let most = [Int(i64::MAX), Int(i64::MAX)];
        for (func, ty, values, expected, undefined) in [
            (Count, Type::Int, &ints[..], Int(3), 0),
            (Sum, Type::Int, &ints, Int(5), 0),
            (Sum, Type::Int, &most, Absent, 1),
            (Avg, Type::Float, &ints[..2], Float(1.0), 0),
            (Avg, Type::Float, &most, Float(i64::MAX as f64), 0),
            (Avg, Type::Duration, &spans, Duration(0), 0),
            (Min, Type::Int, &ints, Int(-1), 0),
            (Max, Type::Int, &ints, Int(3), 0),
            (First, Type::Int, &ints[1..], Int(-1), 0),
            (Last, Type::Int, &ints[..2], Int(-1), 0),
            (Distinct, Type::Int, &ints, Int(2), 0),
            (BitOr, Type::Int, &ints[..1], Int(3), 0),
            (Any, Type::Bool, &[Bool(false)], Bool(false), 0),
            (All, Type::Bool, &[Bool(true), Bool(false)], Bool(false), 0),
            (Count, Type::Int, &[], Int(0), 0),
            (Distinct, Type::Int, &[], Int(0), 0),
            (Sum, Type::Int, &[], Absent, 0),
            (All, Type::Bool, &[], Absent, 0),
        ] {
            let agg = Agg { name: "x".into(), func, arg: None, cond: None, ty };
            let mut eval = Eval::new(&functions);
            let got = eval.aggregate(&agg, values);
            assert_eq!((got, eval.undefined), (expected, undefined), "{func:?} of {values:?}");
        }
    }

    #[test]
    fn entropies_and_rates() {
        for (times, want) in
            [(vec![7], 0.0), (vec![5, 5], 1.0), (vec![1; 8], 3.0), (vec![2, 1, 1], 1.5)]
        {
            assert_eq!(entropy(times), want);
        }
        // -p log2 p is the same but for rounding.
        let shares = [0.125f64, 0.375, 0.5];
        let want = -shares.iter().map(|p| p * p.log2()).sum::<f64>();
        assert!((entropy(vec![4, 3, 1]) - want).abs() < 1e-12);
        assert_eq!(per_second(-3, 100_000_000), -30.0);
        assert_eq!(per_second(65_022_366_840, 1_000_000_000), 65_022_366_840.0);
    }
}
