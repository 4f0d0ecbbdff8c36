//! `extend`, `project`, `project-away` and `rename`: new columns from old ones.
//!
//! | | |
//! |---|---|
//! | Syntax | `extend NAME = EXPR, …`; `project NAME, NAME = EXPR, …`; `project-away NAME, …`; `rename NEW = OLD, …`; in Rust, `extend_by` |
//! | Emits | on push |
//! | Order | kept |
//! | State | none |
//! | Full | cannot be |
//! | Late | rows pass as they come |
//! | Merge | rows of all workers, by packet number |
//! | Exact? | exact; a result outside its type is absent, and counted as undefined |

use super::operator::{Batch, Operator};
use crate::expr::Val;
use crate::hold::Hold;
use weir_packet::bits::Bits;

/// Computes columns for the selected rows. Columns that need no computing (a field, another column
/// under a new name) never come here: later stages read them where they stand.
pub(crate) struct Map {
    values: Vec<Val>,
}

impl Map {
    /// Computes `values`, each into its own register.
    pub(crate) fn new(values: Vec<Val>) -> Map {
        Map { values }
    }
}

impl Hold for Map {}

impl Operator for Map {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        for value in &self.values {
            batch.ctx.value(value, rows);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{binary, field, int};
    use crate::tests::check_stages;
    use weir_plan::{BinaryOp, Expr, Stage, Type};

    #[test]
    fn columns_build_on_columns() {
        let bits = binary(BinaryOp::Mul, field("len"), int(8));
        let more = binary(BinaryOp::Add, Expr::column(0, Type::Int), int(1));
        let rows = check_stages(vec![
            Stage::Extend { columns: vec![("bits".into(), 0, bits)] },
            Stage::Extend {
                columns: vec![("bits".into(), 0, more.clone()), ("old".into(), 1, more)],
            },
            Stage::Project {
                columns: vec![
                    ("bits".into(), Expr::column(0, Type::Int)),
                    ("old".into(), Expr::column(1, Type::Int)),
                    ("port".into(), field("dport")),
                ],
            },
        ]);
        assert_eq!(rows[0], "433 433 80");
        assert_eq!(rows[40], "481 481 absent");
    }

    #[test]
    fn overflow_is_absent_and_counted() {
        let square = |e: Expr| binary(BinaryOp::Mul, e.clone(), e);
        let huge = square(square(square(square(square(square(field("len")))))));
        let rows = check_stages(vec![Stage::Project { columns: vec![("huge".into(), huge)] }]);
        assert!(rows.iter().all(|r| r == "absent"));
    }
}
