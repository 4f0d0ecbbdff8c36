//! `count()`: how many rows.
//!
//! | | |
//! |---|---|
//! | Syntax | `count()`, `count(x)`, `count(condition)`, `count() where condition` |
//! | Counts | all rows; rows where `x` has a value; rows where the condition holds |
//! | Type | int |
//! | Over nothing | 0 |
//! | State | 8 bytes a group |
//! | Merge | sum |
//! | Exact? | exact |

use super::fixed::{CellsResult, Fixed};
use super::{CellStep, Cells, Input, StateKind};

/// Counts rows. The cell is the count, which cannot overflow: 2^63 rows take centuries.
pub(super) struct Count;

impl Fixed<1> for Count {
    const FRESH: [u64; 1] = [0];
    const KIND: StateKind = StateKind::Add;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        match (input.lone, input.groups.first()) {
            (true, Some(&group)) => cells.of::<1>(group)[0] += input.len() as u64,
            _ => input.each(|group, _| cells.of::<1>(group)[0] += 1),
        }
    }

    fn step(&self) -> Option<CellStep> {
        Some(CellStep::One)
    }

    fn merge(&self, [into]: &mut [u64; 1], [from]: &[u64; 1]) {
        *into = into.saturating_add(*from);
    }

    fn finish(&self, [count]: &[u64; 1]) -> CellsResult {
        CellsResult::Value(*count as u128)
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

    #[test]
    fn counts_rows_with_a_value() {
        check(AggFunc::Count, &Type::Int, &[], Value::Int(0));
        check(
            AggFunc::Count,
            &Type::Int,
            &[Given::Int(5), Given::Absent, Given::Int(5)],
            Value::Int(2),
        );
    }
}
