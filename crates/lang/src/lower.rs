//! How what the language has and the plan has not becomes plan expressions: `match`, `not in`,
//! tuples that are chosen, long chains of `and`. All functions here take and give expressions
//! whose types are checked.

use weir_plan::{BinaryOp, Expr, ExprKind, Func, Member, Type, UnaryOp, Value};

/// Nodes of an expression.
pub(crate) fn size(e: &Expr) -> usize {
    let mut n = 0;
    e.visit(&mut |_| n += 1);
    n
}

/// Members of the sets of an expression.
pub(crate) fn members(e: &Expr) -> usize {
    let mut n = 0;
    e.visit(&mut |e| {
        if let ExprKind::In(_, members) = &e.kind {
            n += members.len();
        }
    });
    n
}

/// Levels of an expression: 1 for a constant, a field or a column.
pub(crate) fn depth(e: &Expr) -> usize {
    let below = match &e.kind {
        ExprKind::Const(_) | ExprKind::Field(_) | ExprKind::Column(_) | ExprKind::State(_) => 0,
        ExprKind::Unary(_, a) | ExprKind::In(a, _) => depth(a),
        ExprKind::Binary(_, a, b) => depth(a).max(depth(b)),
        ExprKind::If(a, b, c) => depth(a).max(depth(b)).max(depth(c)),
        ExprKind::Call(_, args) | ExprKind::Tuple(args) => {
            args.iter().map(depth).max().unwrap_or(0)
        }
    };
    1 + below
}

pub(crate) fn unary(op: UnaryOp, ty: Type, a: Expr) -> Expr {
    Expr { ty, kind: ExprKind::Unary(op, Box::new(a)) }
}

pub(crate) fn binary(op: BinaryOp, ty: Type, a: Expr, b: Expr) -> Expr {
    Expr { ty, kind: ExprKind::Binary(op, Box::new(a), Box::new(b)) }
}

pub(crate) fn not(a: Expr) -> Expr {
    unary(UnaryOp::Not, Type::Bool, a)
}

/// `a and b`, of which either may be missing.
pub(crate) fn both(a: Option<Expr>, b: Option<Expr>) -> Option<Expr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(binary(BinaryOp::And, Type::Bool, a, b)),
        (a, b) => a.or(b),
    }
}

/// All operands joined by `and` or `or`, as a balanced tree: a chain of a thousand is ten levels
/// deep. Panics without operands.
pub(crate) fn balanced(op: BinaryOp, mut operands: Vec<Expr>) -> Expr {
    while operands.len() > 1 {
        let mut pairs = operands.into_iter();
        let mut next = Vec::new();
        while let Some(a) = pairs.next() {
            next.push(match pairs.next() {
                Some(b) => binary(op, Type::Bool, a, b),
                None => a,
            });
        }
        operands = next;
    }
    operands.pop().expect("at least one operand")
}

/// `exists(e)`; of a tuple, whether all parts exist. `None` if it always does.
pub(crate) fn exists(e: &Expr) -> Option<Expr> {
    if let ExprKind::Tuple(parts) = &e.kind {
        return parts.iter().map(exists).fold(None, both);
    }
    let call = ExprKind::Call(Func::Exists, vec![e.clone()]);
    (!e.always_present()).then_some(Expr { ty: Type::Bool, kind: call })
}

/// `e in members`, and for `not in` that `e` has a value which is none of the members: like any
/// comparison it is false where a value is absent. Nothing is in a set without members.
pub(crate) fn membership(e: Expr, members: Vec<Member>, negated: bool) -> Expr {
    let there = if negated { exists(&e) } else { None };
    if members.is_empty() {
        return there.unwrap_or(Expr::constant(Value::Bool(negated)));
    }
    let within = Expr { ty: Type::Bool, kind: ExprKind::In(Box::new(e), members) };
    if !negated {
        return within;
    }
    both(there, Some(not(within))).expect("one side is given")
}

/// `if(cond, a, b)` of two results of one type. Of tuples: a tuple of choices, since a tuple is
/// never computed by itself.
pub(crate) fn choice(cond: Expr, a: Expr, b: Expr) -> Expr {
    let ty = a.ty.clone();
    if let Type::Tuple(types) = &ty {
        let (a, b) = (parts(a, types), parts(b, types));
        let each = a.into_iter().zip(b).map(|(a, b)| choice(cond.clone(), a, b)).collect();
        return Expr { ty, kind: ExprKind::Tuple(each) };
    }
    Expr { ty, kind: ExprKind::If(Box::new(cond), Box::new(a), Box::new(b)) }
}

/// The parts of a tuple. Panics if it is computed, which [`choice`] never leaves.
pub(crate) fn parts(e: Expr, types: &[Type]) -> Vec<Expr> {
    match e.kind {
        ExprKind::Tuple(parts) => parts,
        ExprKind::Const(Value::Tuple(values)) => values.into_iter().map(Expr::constant).collect(),
        ExprKind::Const(Value::Absent) => types.iter().cloned().map(absent).collect(),
        kind => unreachable!("a tuple is listed: {kind:?}"),
    }
}

/// A constant without a value.
pub(crate) fn absent(ty: Type) -> Expr {
    Expr { ty, kind: ExprKind::Const(Value::Absent) }
}

/// Whether `e` is equal to `value`, or one of `members`; the cheapest form that asks it.
pub(crate) fn test(e: &Expr, mut members: Vec<Member>) -> Expr {
    match (&members[..], members.len()) {
        ([Member::Value(_)], 1) => {
            let Some(Member::Value(v)) = members.pop() else { unreachable!("one value") };
            binary(BinaryOp::Eq, Type::Bool, e.clone(), Expr::constant(v))
        }
        _ => membership(e.clone(), members, false),
    }
}

/// The value of a constant.
pub(crate) fn constant(e: &Expr) -> Option<Value> {
    match &e.kind {
        ExprKind::Const(v) => Some(v.clone()),
        ExprKind::Tuple(parts) => {
            parts.iter().map(constant).collect::<Option<_>>().map(Value::Tuple)
        }
        _ => None,
    }
}

/// The type that values of both types have: an int that meets a float becomes one.
pub(crate) fn common_type(a: &Type, b: &Type) -> Option<Type> {
    match (a, b) {
        (a, b) if a == b => Some(a.clone()),
        (Type::Int, Type::Float) | (Type::Float, Type::Int) => Some(Type::Float),
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
            let parts = a.iter().zip(b).map(|(a, b)| common_type(a, b));
            parts.collect::<Option<_>>().map(Type::Tuple)
        }
        _ => None,
    }
}

/// Whether a value of the type `found` can be had as one of the type `wanted`.
pub(crate) fn fits(found: &Type, wanted: &Type) -> bool {
    common_type(found, wanted).as_ref() == Some(wanted)
}

/// `e` as a value of the type, which it [`fits`].
pub(crate) fn cast(e: Expr, wanted: &Type) -> Expr {
    match (&e.ty, wanted) {
        (found, wanted) if found == wanted => e,
        (Type::Tuple(found), Type::Tuple(wanted)) => {
            let found = found.clone();
            let parts = parts(e, &found).into_iter().zip(wanted);
            let kind = ExprKind::Tuple(parts.map(|(e, ty)| cast(e, ty)).collect());
            Expr { ty: Type::Tuple(wanted.clone()), kind }
        }
        _ => fold(unary(UnaryOp::ToFloat, Type::Float, e)),
    }
}

/// `v` as a value of the type, which it [`fits`].
pub(crate) fn cast_value(v: Value, wanted: &Type) -> Value {
    match (v, wanted) {
        (Value::Int(n), Type::Float) => Value::Float(n as f64),
        (Value::Tuple(values), Type::Tuple(types)) => {
            let parts = values.into_iter().zip(types);
            Value::Tuple(parts.map(|(v, ty)| cast_value(v, ty)).collect())
        }
        (v, _) => v,
    }
}

/// `e` with a constant computed now rather than per row, if all it needs are constants. One whose
/// result leaves 64 bits, or has none, stays as it is.
pub(crate) fn fold(e: Expr) -> Expr {
    let value = match &e.kind {
        ExprKind::Unary(op, a) => constant(a).and_then(|a| fold_unary(*op, a)),
        ExprKind::Binary(op, a, b) => {
            constant(a).zip(constant(b)).and_then(|(a, b)| fold_binary(*op, a, b))
        }
        _ => None,
    };
    value.map_or(e, Expr::constant)
}

fn fold_unary(op: UnaryOp, a: Value) -> Option<Value> {
    Some(match (op, a) {
        (UnaryOp::Neg, Value::Int(n)) => Value::Int(n.checked_neg()?),
        (UnaryOp::Neg, Value::Float(x)) => Value::Float(0.0 - x),
        (UnaryOp::Neg, Value::Duration(n)) => Value::Duration(n.checked_neg()?),
        (UnaryOp::ToFloat, Value::Int(n)) => Value::Float(n as f64),
        (UnaryOp::BitNot, Value::Int(n)) => Value::Int(!n),
        (UnaryOp::Not, Value::Bool(b)) => Value::Bool(!b),
        _ => return None,
    })
}

fn fold_binary(op: BinaryOp, a: Value, b: Value) -> Option<Value> {
    use Value::{Duration, Float, Int, Time};
    let ints = |a: i64, b: i64| match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => (b != 0).then(|| a.wrapping_rem(b)),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::BitXor => Some(a ^ b),
        BinaryOp::Shl if (0..64).contains(&b) => i64::try_from(i128::from(a) << b).ok(),
        BinaryOp::Shr => (0..64).contains(&b).then(|| a >> b),
        _ => None,
    };
    let floats = |a: f64, b: f64| match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        BinaryOp::Div if b != 0.0 => Some(a / b),
        _ => None,
    };
    Some(match (a, b) {
        (Int(a), Int(b)) => Int(ints(a, b)?),
        (Float(a), Float(b)) => Float(floats(a, b).filter(|x| x.is_finite())?),
        (Duration(a), Duration(b)) if op == BinaryOp::Div => {
            Float(floats(a as f64, b as f64).filter(|x| x.is_finite())?)
        }
        (Duration(a), Duration(b) | Int(b)) if !op.is_comparison() => Duration(ints(a, b)?),
        (Time(a), Duration(b)) => Time(ints(a, b)?),
        (Time(a), Time(b)) if op == BinaryOp::Sub => Duration(ints(a, b)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::fields::by_name;

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    #[test]
    fn chains_are_balanced() {
        let terms: Vec<Expr> = (0..1000).map(|_| field("tcp")).collect();
        assert_eq!(depth(&balanced(BinaryOp::Or, terms)), 11);
        assert_eq!(balanced(BinaryOp::And, vec![field("tcp")]), field("tcp"));
    }

    #[test]
    fn not_in_is_false_where_absent() {
        let set = vec![Member::Value(Value::Int(80))];
        let e = membership(field("tcp.dport"), set.clone(), true);
        let ExprKind::Binary(BinaryOp::And, there, _) = e.kind else { panic!("two conditions") };
        assert_eq!(Some(*there), exists(&field("tcp.dport")));
        let always = membership(field("len"), set, true);
        assert!(matches!(always.kind, ExprKind::Unary(UnaryOp::Not, _)));
    }

    #[test]
    fn tuples_are_chosen_part_by_part() {
        let pair = |a, b| {
            let parts = vec![Expr::constant(Value::Int(a)), Expr::constant(Value::Int(b))];
            Expr { ty: Type::Tuple(vec![Type::Int; 2]), kind: ExprKind::Tuple(parts) }
        };
        let e = choice(field("tcp"), pair(1, 2), absent(Type::Tuple(vec![Type::Int; 2])));
        let ExprKind::Tuple(parts) = e.kind else { panic!("a tuple") };
        assert!(parts.iter().all(|p| matches!(p.kind, ExprKind::If(..)) && p.ty == Type::Int));
    }

    #[test]
    fn constants_fold() {
        let int = |n| Expr::constant(Value::Int(n));
        let e = |op, a, b| fold(binary(op, Type::Int, int(a), int(b)));
        assert_eq!(e(BinaryOp::Mul, 6, 7), int(42));
        assert!(matches!(e(BinaryOp::Div, 1, 0).kind, ExprKind::Binary(..)));
        assert!(matches!(e(BinaryOp::Add, i64::MAX, 1).kind, ExprKind::Binary(..)));
        assert!(matches!(e(BinaryOp::Eq, 1, 1).kind, ExprKind::Binary(..)));
        let day =
            fold(binary(BinaryOp::Mul, Type::Duration, Expr::constant(Value::Duration(2)), int(3)));
        assert_eq!(day, Expr::constant(Value::Duration(6)));
    }
}
