//! `sum(x)`: the sum of all values.
//!
//! | | |
//! |---|---|
//! | Syntax | `sum(x)`, `sum(x) where condition` |
//! | Takes | int, duration, float |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | Full | a sum of integers outside 64 bits is absent, and counted as undefined |
//! | State | 8 to 24 bytes a group |
//! | Merge | sum |
//! | Exact? | exact; floats in the order that rows came |

use super::fixed::{CellsResult, Fixed, add_wide, wide};
use super::{CellStep, Cells, Input, StateKind};

/// Sums values that are never negative, such as packet fields: the sum can only grow, so that it
/// may stick at the top and still not depend on order. Cells: the sum; and where groups may lack
/// values, whether there was one.
pub(super) struct SumUnsigned;

impl Fixed<1> for SumUnsigned {
    const FRESH: [u64; 1] = [0];
    const KIND: StateKind = StateKind::Add;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.merge(cells.of(group), &[values[i]]));
    }

    fn step(&self) -> Option<CellStep> {
        Some(CellStep::Add)
    }

    fn merge(&self, [into]: &mut [u64; 1], [from]: &[u64; 1]) {
        *into = into.saturating_add(*from);
    }

    fn finish(&self, &[sum]: &[u64; 1]) -> CellsResult {
        if sum > i64::MAX as u64 { CellsResult::Undefined } else { CellsResult::Value(sum as u128) }
    }
}

impl Fixed<2> for SumUnsigned {
    const FRESH: [u64; 2] = [0, 0];
    const KIND: StateKind = StateKind::AddSeen;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.merge(cells.of(group), &[values[i], 1]));
    }

    fn merge(&self, into: &mut [u64; 2], from: &[u64; 2]) {
        into[0] = into[0].saturating_add(from[0]);
        into[1] |= from[1];
    }

    fn finish(&self, &[sum, seen]: &[u64; 2]) -> CellsResult {
        if seen == 0 { CellsResult::Absent } else { Fixed::<1>::finish(self, &[sum]) }
    }
}

/// Sums any integers in 128 bits. Cells: low half, high half, whether there was a value.
pub(super) struct SumSigned;

impl Fixed<3> for SumSigned {
    const FRESH: [u64; 3] = [0, 0, 0];
    const KIND: StateKind = StateKind::WideSeen;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| {
            let [low, high, seen] = cells.of(group);
            add_wide(low, high, values[i] as i64 as i128);
            *seen = 1;
        });
    }

    fn merge(&self, [low, high, seen]: &mut [u64; 3], from: &[u64; 3]) {
        add_wide(low, high, wide(from[0], from[1]));
        *seen |= from[2];
    }

    fn finish(&self, &[low, high, seen]: &[u64; 3]) -> CellsResult {
        match i64::try_from(wide(low, high)) {
            _ if seen == 0 => CellsResult::Absent,
            Ok(sum) => CellsResult::Value(sum as u64 as u128),
            Err(_) => CellsResult::Undefined,
        }
    }
}

/// Sums floats. Cells: the sum's bits, whether there was a value.
pub(super) struct SumFloat;

impl Fixed<2> for SumFloat {
    const FRESH: [u64; 2] = [0, 0];
    const KIND: StateKind = StateKind::FloatSeen;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.merge(cells.of(group), &[values[i], 1]));
    }

    fn merge(&self, [sum, seen]: &mut [u64; 2], from: &[u64; 2]) {
        *sum = (f64::from_bits(*sum) + f64::from_bits(from[0])).to_bits();
        *seen |= from[1];
    }

    fn finish(&self, &[sum, seen]: &[u64; 2]) -> CellsResult {
        match f64::from_bits(sum).is_finite() {
            _ if seen == 0 => CellsResult::Absent,
            true => CellsResult::Value(sum as u128),
            false => CellsResult::Undefined,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

    #[test]
    fn sums() {
        let s = AggFunc::Sum;
        check(s, &Type::Int, &[], Value::Absent);
        check(s, &Type::Int, &[Given::Int(5), Given::Absent, Given::Int(-7)], Value::Int(-2));
        check(s, &Type::Float, &[Given::Float(0.5), Given::Float(0.25)], Value::Float(0.75));
    }

    #[test]
    fn a_sum_outside_64_bits_is_absent() {
        let max = Given::Int(i64::MAX);
        check(AggFunc::Sum, &Type::Int, &[max.clone(), max.clone()], Value::Absent);
        let back = [max, Given::Int(1), Given::Int(-1)];
        check(AggFunc::Sum, &Type::Int, &back, Value::Int(i64::MAX));
    }
}
