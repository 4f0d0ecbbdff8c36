//! `avg(x)`: the mean.
//!
//! | | |
//! |---|---|
//! | Syntax | `avg(x)`, `avg(x) where condition` |
//! | Takes | int, float, duration |
//! | Type | float; of durations a duration, towards zero |
//! | Over nothing | absent |
//! | State | 16 or 24 bytes a group |
//! | Merge | sums and counts add |
//! | Exact? | the sum of integers is exact, then divided as floats; floats in the order that rows came |

use super::fixed::{CellsResult, Fixed, Of, add_wide, wide};
use super::{Aggregate, Cells, Input, StateKind};
use weir_plan::{Type, Value};

pub(super) fn build(ty: &Type) -> Box<dyn Aggregate> {
    match ty {
        Type::Float => Box::new(Of(AvgFloat)),
        _ => Box::new(Of(AvgInt { truncate: *ty == Type::Duration })),
    }
}

/// Cells: low and high half of the sum, count.
struct AvgInt {
    truncate: bool,
}

impl Fixed<3> for AvgInt {
    const FRESH: [u64; 3] = [0, 0, 0];
    const KIND: StateKind = StateKind::WideCount;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| {
            let [low, high, n] = cells.of(group);
            add_wide(low, high, values[i] as i64 as i128);
            *n += 1;
        });
    }

    fn merge(&self, [low, high, n]: &mut [u64; 3], from: &[u64; 3]) {
        add_wide(low, high, wide(from[0], from[1]));
        *n = n.saturating_add(from[2]);
    }

    fn finish(&self, &[low, high, n]: &[u64; 3]) -> CellsResult {
        let sum = wide(low, high);
        match n {
            0 => CellsResult::Absent,
            // A mean of 64-bit values fits in 64 bits.
            n if self.truncate => CellsResult::Value((sum / n as i128) as i64 as u64 as u128),
            n => CellsResult::Value((sum as f64 / n as f64).to_bits() as u128),
        }
    }
}

/// Cells: bits of the sum, count.
struct AvgFloat;

impl Fixed<2> for AvgFloat {
    const FRESH: [u64; 2] = [0, 0];
    const KIND: StateKind = StateKind::FloatCount;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.merge(cells.of(group), &[values[i], 1]));
    }

    fn merge(&self, [sum, n]: &mut [u64; 2], from: &[u64; 2]) {
        *sum = (f64::from_bits(*sum) + f64::from_bits(from[0])).to_bits();
        *n = n.saturating_add(from[1]);
    }

    fn finish(&self, &[sum, n]: &[u64; 2]) -> CellsResult {
        let mean = f64::from_bits(sum) / n as f64;
        match mean.is_finite() {
            _ if n == 0 => CellsResult::Absent,
            true => CellsResult::Value(Value::float_bits(mean) as u128),
            false => CellsResult::Undefined,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

    #[test]
    fn means() {
        let a = AggFunc::Avg;
        check(a, &Type::Int, &[], Value::Absent);
        check(a, &Type::Int, &[Given::Int(1), Given::Int(2)], Value::Float(1.5));
        check(a, &Type::Duration, &[Given::Duration(-1), Given::Duration(-2)], Value::Duration(-1));
        check(a, &Type::Float, &[Given::Float(1.0), Given::Float(4.0)], Value::Float(2.5));
        check(a, &Type::Float, &[Given::Float(-5e-324), Given::Float(0.0)], Value::Float(0.0));
        let max = Given::Int(i64::MAX);
        check(a, &Type::Int, &[max.clone(), max], Value::Float(i64::MAX as f64));
    }
}
