//! `where`: keeps the rows for which a condition holds.
//!
//! | | |
//! |---|---|
//! | Syntax | `where CONDITION`; in Rust, `filter` and `filter_by` |
//! | Emits | on push |
//! | Order | kept |
//! | State | none |
//! | Full | cannot be |
//! | Late | rows pass as they come |
//! | Merge | rows of all workers, by packet number |
//! | Exact? | exact; a condition that is absent counts as false |

use super::operator::{Batch, Operator};
use crate::expr::Cond;
use crate::hold::Hold;
use weir_packet::bits::Bits;

/// Narrows the selection; touches no row.
pub(crate) struct Filter {
    condition: Cond,
}

impl Filter {
    /// Keeps the rows for which `condition` holds.
    pub(crate) fn new(condition: Cond) -> Filter {
        Filter { condition }
    }
}

impl Hold for Filter {}

impl Operator for Filter {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        batch.ctx.condition(&self.condition, rows)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{compare, field, int, project};
    use crate::tests::check_stages;
    use weir_plan::{BinaryOp, Expr, ExprKind, Stage, Type, UnaryOp};

    #[test]
    fn keeps_what_holds() {
        let kept = check_stages(vec![
            Stage::Where(compare(BinaryOp::Gt, field("number"), int(39))),
            project(&["number", "ip.proto"]),
        ]);
        assert_eq!(kept, ["40 6", "41 absent"]);
    }

    #[test]
    fn an_absent_condition_is_false() {
        let not_syn = Expr {
            ty: Type::Bool,
            kind: ExprKind::Unary(UnaryOp::Not, Box::new(field("tcp.syn"))),
        };
        let rows = |condition| check_stages(vec![Stage::Where(condition), project(&["number"])]);
        assert_eq!(rows(field("tcp.syn")).len(), 0);
        assert_eq!(rows(not_syn).len(), 41);
        assert_eq!(rows(compare(BinaryOp::Ne, field("ip.proto"), int(17))).len(), 40);
    }
}
