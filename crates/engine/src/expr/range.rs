//! Facts about integers that are known before any packet comes: the range of an expression, and
//! comparisons that can do without arithmetic.

use weir_plan::{BinaryOp, Expr, ExprKind, Func, Type, UnaryOp, Value};

/// The smallest and the largest value that an expression of integers, times or durations can have
/// where it is present; such that no row of it is undefined. `None` if that is not known.
pub(crate) fn range(e: &Expr) -> Option<(i64, i64)> {
    match &e.kind {
        ExprKind::Const(Value::Int(n) | Value::Time(n) | Value::Duration(n)) => Some((*n, *n)),
        ExprKind::Field(id) => match id.info().bits {
            bits @ 1..=63 if e.ty == Type::Int => Some((0, ((1u64 << bits) - 1) as i64)),
            _ => None,
        },
        ExprKind::Unary(UnaryOp::BitNot, a) => range(a).map(|(lo, hi)| (!hi, !lo)),
        ExprKind::Binary(op, a, b) => binary(*op, range(a)?, range(b)?),
        ExprKind::If(_, a, b) => join(range(a)?, range(b)?),
        ExprKind::Call(Func::Coalesce | Func::MinOf | Func::MaxOf, args) => {
            join(range(&args[0])?, range(&args[1])?)
        }
        _ => None,
    }
}

fn join(a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    Some((a.0.min(b.0), a.1.max(b.1)))
}

fn binary(op: BinaryOp, a: (i64, i64), b: (i64, i64)) -> Option<(i64, i64)> {
    // The extremes lie where both sides are at theirs.
    let corners = |f: &dyn Fn(i128, i128) -> i128| {
        let all =
            [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| f(x.into(), y.into()));
        let (lo, hi) = (all.into_iter().min()?, all.into_iter().max()?);
        Some((i64::try_from(lo).ok()?, i64::try_from(hi).ok()?))
    };
    match op {
        BinaryOp::Add => corners(&|x, y| x + y),
        BinaryOp::Sub => corners(&|x, y| x - y),
        BinaryOp::Mul => corners(&|x, y| x * y),
        BinaryOp::Div if b.0 > 0 => corners(&|x, y| x / y),
        BinaryOp::Rem if b.0 > 0 && a.0 >= 0 => Some((0, a.1.min(b.1 - 1))),
        BinaryOp::BitAnd if a.0 >= 0 || b.0 >= 0 => {
            let bound = |r: (i64, i64)| if r.0 >= 0 { r.1 } else { i64::MAX };
            Some((0, bound(a).min(bound(b))))
        }
        BinaryOp::Shr if a.0 >= 0 && b.0 >= 0 && b.1 < 64 => Some((a.0 >> b.1, a.1 >> b.0)),
        _ => None,
    }
}

/// Whether an arithmetic expression has a result for all values of its operands.
pub(crate) fn fits(e: &Expr) -> bool {
    range(e).is_some()
}

/// A comparison with a constant that says the same of a smaller expression: constants that are
/// added, taken away or multiplied with go to the other side, as long as nothing can be undefined.
pub(crate) fn simpler(op: BinaryOp, e: &Expr, k: i64) -> (BinaryOp, &Expr, i64) {
    let ExprKind::Binary(arith, a, b) = &e.kind else { return (op, e, k) };
    if e.ty == Type::Float || !fits(e) {
        return (op, e, k);
    }
    // Not whatever has one value: that may be absent, and so the whole.
    let constant = |e: &Expr| match e.kind {
        ExprKind::Const(Value::Int(n) | Value::Time(n) | Value::Duration(n)) => Some(n),
        _ => None,
    };
    let moved = match (arith, constant(a), constant(b)) {
        (BinaryOp::Add, _, Some(c)) => k.checked_sub(c).map(|k| (op, &**a, k)),
        (BinaryOp::Add, Some(c), _) => k.checked_sub(c).map(|k| (op, &**b, k)),
        (BinaryOp::Sub, _, Some(c)) => k.checked_add(c).map(|k| (op, &**a, k)),
        (BinaryOp::Sub, Some(c), _) => c.checked_sub(k).map(|k| (op.mirrored(), &**b, k)),
        (BinaryOp::Mul, _, Some(c)) if c > 0 => divided(op, k, c).map(|k| (op, &**a, k)),
        (BinaryOp::Mul, Some(c), _) if c > 0 => divided(op, k, c).map(|k| (op, &**b, k)),
        _ => None,
    };
    match moved {
        Some((op, e, k)) => simpler(op, e, k),
        None => (op, e, k),
    }
}

/// The number that `x` is compared with where `x * c` is compared with `k`.
fn divided(op: BinaryOp, k: i64, c: i64) -> Option<i64> {
    let (floor, exact) = (k.div_euclid(c), k.rem_euclid(c) == 0);
    match op {
        BinaryOp::Gt | BinaryOp::Le => Some(floor),
        BinaryOp::Ge | BinaryOp::Lt => Some(if exact { floor } else { floor + 1 }),
        _ => exact.then_some(floor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{binary as node, compare, field, int};
    use proptest::prelude::*;

    #[test]
    fn what_may_be_absent_is_no_constant() {
        let zero = node(BinaryOp::Mul, field("tcp.window"), int(0));
        assert_eq!(range(&zero), Some((0, 0)));
        let sum = node(BinaryOp::Add, field("len"), zero);
        assert_eq!(simpler(BinaryOp::Gt, &sum, 0), (BinaryOp::Gt, &sum, 0));
    }

    #[test]
    fn ranges_of_fields_are_known() {
        assert_eq!(range(&field("ip.ttl")), Some((0, 255)));
        let sum = node(BinaryOp::Add, field("ip.ttl"), int(-300));
        assert_eq!(range(&sum), Some((-300, -45)));
        assert_eq!(range(&node(BinaryOp::Mul, sum, field("ip.ttl"))), Some((-76_500, 0)));
        assert_eq!(range(&node(BinaryOp::Div, field("ip.ttl"), int(0))), None);
        assert_eq!(range(&node(BinaryOp::Add, field("number"), int(1))), None);
        assert_eq!(range(&node(BinaryOp::BitAnd, field("number"), int(7))), Some((0, 7)));
        assert_eq!(range(&compare(BinaryOp::Lt, field("len"), int(1))), None);
    }

    #[test]
    fn constants_go_to_the_other_side() {
        let bits = node(BinaryOp::Mul, field("len"), int(8));
        let sum = node(BinaryOp::Add, bits, int(20));
        assert_eq!(simpler(BinaryOp::Gt, &sum, 500), (BinaryOp::Gt, &field("len"), 60));
        let rest = node(BinaryOp::Sub, int(100), field("len"));
        assert_eq!(simpler(BinaryOp::Lt, &rest, 3), (BinaryOp::Gt, &field("len"), 97));
        let wide = node(BinaryOp::Add, field("number"), int(1));
        assert_eq!(simpler(BinaryOp::Lt, &wide, 3), (BinaryOp::Lt, &wide, 3));
    }

    fn holds(op: BinaryOp, a: i64, b: i64) -> bool {
        match op {
            BinaryOp::Eq => a == b,
            BinaryOp::Ne => a != b,
            BinaryOp::Lt => a < b,
            BinaryOp::Le => a <= b,
            BinaryOp::Gt => a > b,
            _ => a >= b,
        }
    }

    proptest! {
        #[test]
        fn simpler_says_the_same(
            ttl in 0i64..256, c in -40i64..40, k in -3000i64..3000,
            which in 0usize..5, o in 0usize..6,
        ) {
            use BinaryOp::{Add, Eq, Ge, Gt, Le, Lt, Mul, Ne, Sub};
            let op = [Eq, Ne, Lt, Le, Gt, Ge][o];
            let x = || field("ip.ttl");
            let (e, value) = match which {
                0 => (node(Add, x(), int(c)), ttl + c),
                1 => (node(Sub, int(c), x()), c - ttl),
                2 => (node(Mul, int(c), x()), c * ttl),
                3 => (node(Sub, node(Mul, x(), int(c)), int(7)), ttl * c - 7),
                _ => (node(Sub, x(), int(c)), ttl - c),
            };
            let (lo, hi) = range(&e).expect("a range");
            prop_assert!((lo..=hi).contains(&value));
            let (new_op, rest, new_k) = simpler(op, &e, k);
            let rest = if *rest == x() { ttl } else if *rest == e { value } else { ttl * c };
            prop_assert_eq!(holds(new_op, rest, new_k), holds(op, value, k));
        }
    }
}
