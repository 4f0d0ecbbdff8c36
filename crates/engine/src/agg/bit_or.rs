//! `bit_or(x)`: bitwise or of all values, such as all TCP flags that a flow has shown.
//!
//! | | |
//! |---|---|
//! | Syntax | `bit_or(x)`, `bit_or(x) where condition` |
//! | Takes | int |
//! | Type | int |
//! | Over nothing | absent |
//! | State | 16 bytes a group |
//! | Merge | bitwise or |
//! | Exact? | exact |

use super::fixed::{CellsResult, Fixed};
use super::{Cells, Input, StateKind};

/// Cells: the bits, whether there was a value.
pub(super) struct BitOr;

impl Fixed<2> for BitOr {
    const FRESH: [u64; 2] = [0, 0];
    const KIND: StateKind = StateKind::OrSeen;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.merge(cells.of(group), &[values[i], 1]));
    }

    fn merge(&self, into: &mut [u64; 2], from: &[u64; 2]) {
        into[0] |= from[0];
        into[1] |= from[1];
    }

    fn finish(&self, &[bits, seen]: &[u64; 2]) -> CellsResult {
        if seen == 0 { CellsResult::Absent } else { CellsResult::Value(bits as u128) }
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

    #[test]
    fn ors() {
        check(AggFunc::BitOr, &Type::Int, &[], Value::Absent);
        check(AggFunc::BitOr, &Type::Int, &[Given::Int(2), Given::Int(16)], Value::Int(18));
    }
}
