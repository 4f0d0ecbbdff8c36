//! `rate()` and `rate(x)`: so many a second.
//!
//! | | |
//! |---|---|
//! | Syntax | `rate()`, `rate(condition)`, `rate(x)`, each also with `where condition`; needs `every` |
//! | Counts | all rows; rows where the condition holds; the sum of `x`; by second of the window |
//! | Takes | int |
//! | Type | float |
//! | Over nothing | 0 |
//! | State | 16 bytes a group |
//! | Merge | sum |
//! | Exact? | the float nearest to the quotient |

use super::fixed::{CellsResult, Fixed, add_wide, wide};
use super::{Cells, Input, StateKind};

/// Cells: low and high half of the sum.
pub(super) struct Rate {
    /// Length of the windows.
    pub(super) window_ns: i64,
}

/// A sum over a window as so much a second: the nearest float.
fn per_second(sum: i128, window_ns: i64) -> f64 {
    let billionths = sum.unsigned_abs().saturating_mul(1_000_000_000);
    let window = window_ns as u128;
    // As many bits as there can be; those that a float has no room for only say where to round.
    let shift = billionths.leading_zeros().min(127);
    let shifted = billionths << shift;
    let quotient = (shifted / window) | u128::from(!shifted.is_multiple_of(window));
    let size = quotient as f64 / (1u128 << shift) as f64;
    if sum < 0 { -size } else { size }
}

impl Fixed<2> for Rate {
    const FRESH: [u64; 2] = [0, 0];
    const KIND: StateKind = StateKind::Wide;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let Some(column) = input.columns.first() else {
            return input.each(|group, _| {
                let [low, high] = cells.of(group);
                add_wide(low, high, 1);
            });
        };
        let values = column.word();
        input.each(|group, i| {
            let [low, high] = cells.of(group);
            add_wide(low, high, values[i] as i64 as i128);
        });
    }

    fn merge(&self, [low, high]: &mut [u64; 2], from: &[u64; 2]) {
        add_wide(low, high, wide(from[0], from[1]));
    }

    fn finish(&self, &[low, high]: &[u64; 2]) -> CellsResult {
        let rate = per_second(wide(low, high), self.window_ns);
        CellsResult::Value(rate.to_bits() as u128)
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Type, Value, Window};

    #[test]
    fn so_many_a_second() {
        let every_10s = AggFunc::Rate(10_000_000_000);
        check(every_10s, &Type::Int, &[], Value::Float(0.0));
        let rows = [Given::Int(25), Given::Absent, Given::Int(-5)];
        check(every_10s, &Type::Int, &rows, Value::Float(2.0));
        let max = Given::Int(i64::MAX);
        let twice = 2.0 * i64::MAX as f64;
        check(AggFunc::Rate(1_000_000_000), &Type::Int, &[max.clone(), max], Value::Float(twice));
    }

    /// The sum was multiplied by 10^9 and divided again, and rounded each time.
    #[test]
    fn a_rate_over_whole_seconds_was_off_in_its_last_digit() {
        let over = |s: i64| AggFunc::Rate(s * 1_000_000_000);
        let sum = [Given::Int(65_022_366_840)];
        check(over(1), &Type::Int, &sum, Value::Float(65_022_366_840.0));
        check(over(60), &Type::Int, &sum, Value::Float(65_022_366_840.0 / 60.0));
        check(over(1), &Type::Int, &[Given::Int(-1 << 60)], Value::Float(-(1i64 << 60) as f64));
    }

    #[test]
    fn packets_and_bytes_a_second() {
        let rate = AggFunc::Rate(2_000_000_000);
        let aggs = vec![agg(rate, None), agg(rate, Some(field("len")))];
        let rows = check_stages(vec![summarize(&["dport"], aggs, Window::Tumbling(2_000_000_000))]);
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert!(rows[0].ends_with("Z 80 7.0 444.5"), "{rows:?}");
    }
}
