//! Expressions with constants put in: simplified, without changing what is counted.

use super::{Compiler, Ctx, Scope, Src, Val};
use crate::functions::Functions;
use crate::rows::cell;
use weir_packet::bits::Bits;
use weir_plan::{BinaryOp, Expr, ExprKind, Func, Type, UnaryOp, Value};

/// Simplifies expressions in which the states are known.
pub(crate) struct Folder<'a> {
    /// The registered functions.
    pub(crate) functions: &'a Functions,
    /// The value of each state.
    pub(crate) states: &'a [Value],
}

impl Folder<'_> {
    /// An expression with the same value for every row, which counts the same.
    pub(crate) fn fold(&self, e: &Expr) -> Expr {
        let kind = match &e.kind {
            ExprKind::State(i) => ExprKind::Const(self.states[*i].clone()),
            ExprKind::Const(_) | ExprKind::Field(_) | ExprKind::Column(_) => e.kind.clone(),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, Box::new(self.fold(a))),
            ExprKind::Binary(op, a, b) => match self.binary(*op, self.fold(a), self.fold(b)) {
                Ok(simple) => return simple,
                Err(kind) => kind,
            },
            ExprKind::If(c, a, b) => {
                let (c, a, b) = (self.fold(c), self.fold(a), self.fold(b));
                match truth(&c) {
                    Some(true) => return a,
                    Some(false) => return b,
                    None if a == b && is_total(&c) => return a,
                    None => ExprKind::If(Box::new(c), Box::new(a), Box::new(b)),
                }
            }
            ExprKind::In(a, members) => ExprKind::In(Box::new(self.fold(a)), members.clone()),
            ExprKind::Call(f, args) => {
                ExprKind::Call(f.clone(), args.iter().map(|a| self.fold(a)).collect())
            }
            ExprKind::Tuple(parts) => ExprKind::Tuple(parts.iter().map(|p| self.fold(p)).collect()),
        };
        self.evaluated(Expr { ty: e.ty.clone(), kind })
    }

    /// Logic that one known side decides, or a comparison with nothing; else the node as it is.
    fn binary(&self, op: BinaryOp, a: Expr, b: Expr) -> Result<Expr, ExprKind> {
        let known = |b: bool| Ok(Expr::constant(Value::Bool(b)));
        let absent = |e: &Expr| matches!(e.kind, ExprKind::Const(Value::Absent));
        match (op, truth(&a), truth(&b)) {
            (BinaryOp::And, Some(false), _) => known(false),
            (BinaryOp::And, _, Some(false)) if is_total(&a) => known(false),
            (BinaryOp::Or, Some(true), _) => known(true),
            (BinaryOp::Or, _, Some(true)) if is_total(&a) => known(true),
            (BinaryOp::And, Some(true), _) | (BinaryOp::Or, Some(false), _)
                if b.always_present() =>
            {
                Ok(b)
            }
            (BinaryOp::And, _, Some(true)) | (BinaryOp::Or, _, Some(false))
                if a.always_present() =>
            {
                Ok(a)
            }
            _ if op.is_comparison()
                && (absent(&a) || absent(&b))
                && is_total(&a)
                && is_total(&b) =>
            {
                known(false)
            }
            _ => Err(ExprKind::Binary(op, Box::new(a), Box::new(b))),
        }
    }

    /// The value of an expression over constants, evaluated as any other; the expression itself
    /// where it has other operands, or where its value is undefined, which counts for every row.
    fn evaluated(&self, e: Expr) -> Expr {
        let known = |e: &Expr| matches!(e.kind, ExprKind::Const(_));
        let all = match &e.kind {
            ExprKind::Unary(_, a) | ExprKind::In(a, _) => known(a),
            ExprKind::Binary(_, a, b) => known(a) && known(b),
            ExprKind::Call(Func::User(_), _) => false,
            ExprKind::Call(_, args) => args.iter().all(known),
            _ => false,
        };
        if !all || matches!(e.ty, Type::Net | Type::Tuple(_)) {
            return e;
        }
        let mut fields = Vec::new();
        let mut compiler = Compiler::new(self.functions, &mut fields);
        let value: Val = compiler.value(&e, &Scope::default());
        let (mut regs, mut undefined) = (compiler.regs, 0);
        let mut ctx = Ctx { view: None, regs: &mut regs, n: 1, undefined: &mut undefined };
        let src: Src = ctx.value(&value, Bits::first(1));
        let value = cell(ctx.column(src), 0, &e.ty, &ctx.regs.arena);
        if undefined == 0 { Expr { ty: e.ty, kind: ExprKind::Const(value) } } else { e }
    }
}

/// The truth of a condition that is a constant; absent counts as false.
fn truth(e: &Expr) -> Option<bool> {
    match &e.kind {
        ExprKind::Const(Value::Bool(b)) => Some(*b),
        ExprKind::Const(Value::Absent) if e.ty == Type::Bool => Some(false),
        _ => None,
    }
}

/// Whether evaluating an expression can neither be undefined nor cost more than a few
/// comparisons: then it may be evaluated for rows that do not ask for it, or not at all.
pub(crate) fn is_total(e: &Expr) -> bool {
    let mut total = true;
    e.visit(&mut |e| {
        total &= match &e.kind {
            ExprKind::Unary(op, _) => *op != UnaryOp::Neg,
            ExprKind::Binary(op, ..) => {
                use BinaryOp::{And, BitAnd, BitOr, BitXor, Or};
                op.is_comparison() || matches!(op, And | Or | BitAnd | BitOr | BitXor)
            }
            ExprKind::Call(f, _) => matches!(
                f,
                Func::Exists
                    | Func::IsIpv4
                    | Func::IsIpv6
                    | Func::IsIn(_)
                    | Func::Prefix { .. }
                    | Func::Clamp
                    | Func::SeqDiff
                    | Func::SeqAdd
                    | Func::Coalesce
                    | Func::MinOf
                    | Func::MaxOf
                    | Func::StartsWith
                    | Func::EndsWith
            ),
            _ => true,
        }
    });
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{binary, compare, field, int, state};

    fn folded(e: &Expr, states: &[Value]) -> Expr {
        Folder { functions: &Functions::default(), states }.fold(e)
    }

    fn and(a: Expr, b: Expr) -> Expr {
        compare(BinaryOp::And, a, b)
    }

    #[test]
    fn known_states_decide() {
        let port = compare(BinaryOp::Eq, field("tcp.dport"), int(22));
        let stage = compare(BinaryOp::Eq, state(0, Type::Int), int(4));
        let both = and(stage, port.clone());
        assert_eq!(folded(&both, &[Value::Int(4)]), port);
        assert_eq!(folded(&both, &[Value::Int(3)]), Expr::constant(Value::Bool(false)));
        assert_eq!(folded(&both, &[Value::Absent]), Expr::constant(Value::Bool(false)));
        let next = binary(BinaryOp::Add, state(0, Type::Int), int(1));
        assert_eq!(folded(&next, &[Value::Int(4)]), int(5));
    }

    #[test]
    fn what_counts_stays() {
        let next = binary(BinaryOp::Add, state(0, Type::Int), int(1));
        let kept = folded(&next, &[Value::Int(i64::MAX)]);
        assert_eq!(kept, binary(BinaryOp::Add, int(i64::MAX), int(1)));
        assert!(!is_total(&kept));
        // The left side is evaluated, and counts, before the right one decides.
        let ratio = binary(BinaryOp::Div, field("len"), int(0));
        let left = compare(BinaryOp::Eq, ratio, int(1));
        let e = and(left.clone(), Expr::constant(Value::Bool(false)));
        assert_eq!(folded(&e, &[]), e);
        let e = and(Expr::constant(Value::Bool(false)), left);
        assert_eq!(folded(&e, &[]), Expr::constant(Value::Bool(false)));
    }
}
