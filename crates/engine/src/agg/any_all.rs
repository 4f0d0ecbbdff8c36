//! `any(c)` and `all(c)`: whether some value, or every value, is true.
//!
//! | | |
//! |---|---|
//! | Syntax | `any(c)`, `all(c)`, each also with `where condition` |
//! | Takes | bool; rows where `c` is absent do not count |
//! | Type | bool |
//! | Over nothing | absent |
//! | State | 8 bytes a group |
//! | Merge | or, of what was seen |
//! | Exact? | exact |

use super::fixed::{CellsResult, Fixed};
use super::{Cells, Input, StateKind};

/// The cell: bit 0, a false value was seen; bit 1, a true one.
pub(super) struct AnyAll {
    pub(super) all: bool,
}

impl Fixed<1> for AnyAll {
    const FRESH: [u64; 1] = [0];
    const KIND: StateKind = StateKind::Or;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let truth = input.columns[0].truth;
        input.each(|group, i| cells.of::<1>(group)[0] |= 1 << truth.has(i) as u64);
    }

    fn merge(&self, [into]: &mut [u64; 1], [from]: &[u64; 1]) {
        *into |= from;
    }

    fn finish(&self, &[seen]: &[u64; 1]) -> CellsResult {
        let result = if self.all { seen & 1 == 0 } else { seen & 2 != 0 };
        if seen == 0 { CellsResult::Absent } else { CellsResult::Value(result as u128) }
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

    #[test]
    fn some_and_every() {
        let (yes, no) = (Given::Bool(true), Given::Bool(false));
        for (rows, any, all) in [
            (vec![], Value::Absent, Value::Absent),
            (vec![Given::Absent], Value::Absent, Value::Absent),
            (vec![yes.clone(), no.clone()], Value::Bool(true), Value::Bool(false)),
            (vec![yes.clone(), yes], Value::Bool(true), Value::Bool(true)),
            (vec![no.clone(), no], Value::Bool(false), Value::Bool(false)),
        ] {
            check(AggFunc::Any, &Type::Bool, &rows, any);
            check(AggFunc::All, &Type::Bool, &rows, all);
        }
    }
}
