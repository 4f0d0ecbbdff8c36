//! Expressions of the naive model: one row, one value at a time.

use super::row::Row;
use super::value::{of_type, unsigned_zero, word};
use regex::Regex;
use std::collections::BTreeMap;
use weir_plan::limits::TEXT_MAX;
use weir_plan::registered::Functions;
use weir_plan::{Agg, BinaryOp, Expr, ExprKind, Func, Member, Type, UnaryOp, Value};

/// Evaluates, and counts what is undefined.
pub(super) struct Eval<'a> {
    pub(super) functions: &'a Functions,
    pub(super) patterns: BTreeMap<Box<str>, Regex>,
    /// Results outside their type so far.
    pub(super) undefined: u64,
}

impl<'a> Eval<'a> {
    pub(super) fn new(functions: &'a Functions) -> Eval<'a> {
        Eval { functions, patterns: BTreeMap::new(), undefined: 0 }
    }

    /// Whether a condition holds; absent is false.
    pub(super) fn holds(&mut self, cond: &Expr, row: &Row, states: &[Value]) -> bool {
        self.eval(cond, row, states) == Value::Bool(true)
    }

    /// The argument of an aggregate: a tuple is there where any of its parts is.
    pub(super) fn argument(&mut self, e: &Expr, row: &Row) -> Value {
        let ExprKind::Tuple(parts) = &e.kind else { return self.eval(e, row, &[]) };
        let parts: Vec<_> = parts.iter().map(|p| self.argument(p, row)).collect();
        match parts.iter().any(Value::exists) {
            true => Value::Tuple(parts),
            false => Value::Absent,
        }
    }

    /// The value that an aggregate takes of a row, if it takes one.
    pub(super) fn taken(&mut self, agg: &Agg, row: &Row) -> Option<Value> {
        if !agg.cond.as_ref().is_none_or(|cond| self.holds(cond, row, &[])) {
            return None;
        }
        let value = agg.arg.as_ref().map_or(Value::Bool(true), |arg| self.argument(arg, row));
        value.exists().then_some(value)
    }

    /// The value of an expression for one row, as `weir_plan::expr` says.
    pub(super) fn eval(&mut self, e: &Expr, row: &Row, states: &[Value]) -> Value {
        match &e.kind {
            ExprKind::Const(Value::Float(f)) => unsigned_zero(*f),
            ExprKind::Const(v) => v.clone(),
            ExprKind::Field(id) => {
                row.packet.as_ref().expect("the row is a packet").fields[id].clone()
            }
            ExprKind::Column(i) => row.cells[*i].clone(),
            ExprKind::State(i) => states[*i].clone(),
            ExprKind::Unary(UnaryOp::Not, a) => Value::Bool(!self.holds(a, row, states)),
            ExprKind::Unary(op, a) => {
                let a = self.eval(a, row, states);
                self.unary(*op, a)
            }
            ExprKind::Binary(BinaryOp::And, a, b) => {
                Value::Bool(self.holds(a, row, states) && self.holds(b, row, states))
            }
            ExprKind::Binary(BinaryOp::Or, a, b) => {
                Value::Bool(self.holds(a, row, states) || self.holds(b, row, states))
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.eval(a, row, states), self.eval(b, row, states));
                match (a.exists() && b.exists(), op.is_comparison()) {
                    (both, true) => Value::Bool(both && compare(*op, &a, &b)),
                    (true, false) => self.arithmetic(*op, &e.ty, &a, &b),
                    (false, false) => Value::Absent,
                }
            }
            ExprKind::If(cond, yes, no) => match self.holds(cond, row, states) {
                true => self.eval(yes, row, states),
                false => self.eval(no, row, states),
            },
            ExprKind::In(a, members) => {
                let a = self.eval(a, row, states);
                Value::Bool(a.exists() && members.iter().any(|m| is_member(&a, m)))
            }
            ExprKind::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|p| self.eval(p, row, states)).collect();
                match parts.iter().all(Value::exists) {
                    true => Value::Tuple(parts),
                    false => Value::Absent,
                }
            }
            ExprKind::Call(Func::Coalesce, args) => match self.eval(&args[0], row, states) {
                Value::Absent => self.eval(&args[1], row, states),
                v => v,
            },
            ExprKind::Call(func, args) => {
                let args: Vec<_> = args.iter().map(|a| self.eval(a, row, states)).collect();
                self.call(func, &e.ty, &args)
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, a: Value) -> Value {
        match (op, &a) {
            (_, Value::Absent) => Value::Absent,
            (UnaryOp::Not, _) => unreachable!("takes absent for false, see eval"),
            (UnaryOp::BitNot, _) => Value::Int(!word(&a)),
            (UnaryOp::ToFloat, _) => Value::Float(word(&a) as f64),
            (UnaryOp::Neg, Value::Float(f)) => unsigned_zero(-f),
            (UnaryOp::Neg, _) => self.checked(&a.ty().expect("a value"), word(&a).checked_neg()),
        }
    }

    /// Arithmetic of values that are there.
    fn arithmetic(&mut self, op: BinaryOp, ty: &Type, a: &Value, b: &Value) -> Value {
        if let (Value::Float(a), Value::Float(b)) = (a, b) {
            return match op {
                BinaryOp::Add => self.checked_float(a + b),
                BinaryOp::Sub => self.checked_float(a - b),
                BinaryOp::Mul => self.checked_float(a * b),
                BinaryOp::Div => self.checked_float(a / b),
                _ => unreachable!("{} of floats", op.symbol()),
            };
        }
        let (a, b) = (word(a), word(b));
        if matches!(op, BinaryOp::Div | BinaryOp::Rem) && b == 0 {
            return self.undefined();
        }
        let shift = u32::try_from(b).ok().filter(|b| *b < 64);
        let result = match op {
            BinaryOp::Div if *ty == Type::Float => return unsigned_zero(a as f64 / b as f64),
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Sub => a.checked_sub(b),
            BinaryOp::Mul => a.checked_mul(b),
            BinaryOp::Div => a.checked_div(b),
            BinaryOp::Rem => Some(a.wrapping_rem(b)),
            BinaryOp::BitAnd => Some(a & b),
            BinaryOp::BitOr => Some(a | b),
            BinaryOp::BitXor => Some(a ^ b),
            BinaryOp::Shl => shift.and_then(|b| i64::try_from(i128::from(a) << b).ok()),
            BinaryOp::Shr => shift.map(|b| a >> b),
            _ => unreachable!("{} is no arithmetic", op.symbol()),
        };
        self.checked(ty, result)
    }

    /// A text that a function made: one that is too long is absent, and counted.
    pub(super) fn short(&mut self, text: String) -> Value {
        if text.len() > TEXT_MAX {
            self.undefined += 1;
            return Value::Absent;
        }
        Value::Str(text.into())
    }

    pub(super) fn checked(&mut self, ty: &Type, result: Option<i64>) -> Value {
        match result {
            Some(v) => of_type(ty, v as u128),
            None => self.undefined(),
        }
    }

    pub(super) fn checked_float(&mut self, f: f64) -> Value {
        if f.is_finite() { unsigned_zero(f) } else { self.undefined() }
    }

    pub(super) fn undefined(&mut self) -> Value {
        self.undefined += 1;
        Value::Absent
    }
}

/// Whether a comparison of two values holds.
fn compare(op: BinaryOp, a: &Value, b: &Value) -> bool {
    match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        _ => unreachable!("{} is no comparison", op.symbol()),
    }
}

fn is_member(v: &Value, member: &Member) -> bool {
    match (member, v) {
        (Member::Value(m), _) => v == m,
        (Member::Range(from, to), _) => from <= v && v <= to,
        (Member::Net(Value::Net(net, len)), Value::Ip(a)) => {
            let is_ipv4 = Value::to_ip(*a).is_ipv4();
            let holds_ipv4 = Value::to_ip(*net).is_ipv4() && *len >= 96;
            is_ipv4 == holds_ipv4 && (a ^ net).leading_zeros() >= *len as u32
        }
        _ => unreachable!("a network holds addresses"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Value::{Absent, Bool, Duration, Float, Int, Time};
    use weir_plan::functions::Part;

    fn constant(v: Value) -> Expr {
        // An absent int stands for any absent value: nothing here looks at its type.
        Expr { ty: v.ty().unwrap_or(Type::Int), kind: ExprKind::Const(v) }
    }

    fn text(s: &str) -> Value {
        Value::Str(s.into())
    }

    /// Evaluates one node over constants; the last is how many results were undefined.
    fn check(ty: Type, kind: ExprKind, expected: Value, undefined: u64) {
        let functions = Functions::default();
        let mut eval = Eval::new(&functions);
        let row = Row { ts: None, packet: None, cells: Vec::new() };
        let e = Expr { ty, kind };
        let got = eval.eval(&e, &row, &[]);
        assert_eq!((&got, eval.undefined), (&expected, undefined), "{:?}", e.kind);
    }

    #[test]
    fn binary_operators() {
        use BinaryOp::*;
        let (int, bool) = (Type::Int, Type::Bool);
        for (a, op, b, ty, expected) in [
            (Int(7), Div, Int(-2), &int, Int(-3)),
            (Int(-7), Rem, Int(2), &int, Int(-1)),
            (Int(i64::MIN), Rem, Int(-1), &int, Int(0)),
            (Int(-1), Shl, Int(63), &int, Int(i64::MIN)),
            (Int(-8), Shr, Int(1), &int, Int(-4)),
            (Int(1), Add, Absent, &int, Absent),
            (Time(5), Sub, Time(7), &Type::Duration, Duration(-2)),
            (Duration(6), Mul, Int(2), &Type::Duration, Duration(12)),
            (Duration(3), Div, Duration(2), &Type::Float, Float(1.5)),
            (Absent, Eq, Absent, &bool, Bool(false)),
            (Absent, Ne, Int(1), &bool, Bool(false)),
            (Int(1), Ne, Int(2), &bool, Bool(true)),
            (
                Value::Tuple(vec![Int(1), Int(2)]),
                Lt,
                Value::Tuple(vec![Int(1), Int(3)]),
                &bool,
                Bool(true),
            ),
            (Absent, Or, Bool(true), &bool, Bool(true)),
            (Bool(true), And, Absent, &bool, Bool(false)),
        ] {
            let kind = ExprKind::Binary(op, Box::new(constant(a)), Box::new(constant(b)));
            check(ty.clone(), kind, expected, 0);
        }
    }

    #[test]
    fn results_outside_their_type_are_absent_and_counted() {
        use BinaryOp::*;
        for (a, op, b) in [
            (Int(i64::MAX), Add, Int(1)),
            (Int(i64::MIN), Div, Int(-1)),
            (Int(1), Div, Int(0)),
            (Int(1), Rem, Int(0)),
            (Int(1), Shl, Int(63)),
            (Int(0), Shl, Int(64)),
            (Int(i64::MIN), Shl, Int(1)),
            (Int(1), Shr, Int(-1)),
            (Float(1.0), Div, Float(0.0)),
            (Float(1e300), Mul, Float(1e300)),
            (Time(i64::MIN), Sub, Duration(1)),
        ] {
            let ty = a.ty().expect("a value");
            let kind = ExprKind::Binary(op, Box::new(constant(a)), Box::new(constant(b)));
            check(ty, kind, Absent, 1);
        }
        let least = || Box::new(constant(Int(i64::MIN)));
        check(Type::Int, ExprKind::Unary(UnaryOp::Neg, least()), Absent, 1);
        check(Type::Int, ExprKind::Call(Func::Abs, vec![*least()]), Absent, 1);
    }

    #[test]
    fn only_what_is_needed_is_evaluated() {
        let undefined = || {
            let (one, zero) = (Box::new(constant(Int(1))), Box::new(constant(Int(0))));
            Expr { ty: Type::Int, kind: ExprKind::Binary(BinaryOp::Div, one, zero) }
        };
        let one = || constant(Int(1));
        let no = || Box::new(constant(Bool(false)));
        let exists = Expr { ty: Type::Bool, kind: ExprKind::Call(Func::Exists, vec![undefined()]) };
        let if_not = ExprKind::If(no(), Box::new(undefined()), Box::new(one()));
        check(Type::Int, if_not, Int(1), 0);
        check(Type::Int, ExprKind::Call(Func::Coalesce, vec![one(), undefined()]), Int(1), 0);
        check(Type::Int, ExprKind::Call(Func::Coalesce, vec![undefined(), one()]), Int(1), 1);
        let and = ExprKind::Binary(BinaryOp::And, no(), Box::new(exists));
        check(Type::Bool, and, Bool(false), 0);
    }

    #[test]
    fn functions() {
        for (f, args, ty, expected) in [
            (Func::Exists, vec![Absent], Type::Bool, Bool(false)),
            (Func::Contains, vec![text("weir"), text("ei")], Type::Bool, Bool(true)),
            (Func::Contains, vec![Absent, text("")], Type::Bool, Bool(false)),
            (Func::Matches, vec![text("weir"), text("^w.*r$")], Type::Bool, Bool(true)),
            (Func::Upper, vec![text("weir")], Type::Str, text("WEIR")),
            (Func::ToStr, vec![text("a\"b")], Type::Str, text("a\"b")),
            (Func::ToStr, vec![Float(2.0)], Type::Str, text("2.0")),
            (Func::Short, vec![Float(100_000_102.4)], Type::Str, text("100M")),
            (Func::Short, vec![Duration(1_999_634_432)], Type::Str, text("2s")),
            (Func::Short, vec![Int(100_000_102)], Type::Str, text("100000102")),
            (Func::ToFloat, vec![Duration(1_500_000_000)], Type::Float, Float(1.5)),
            (Func::ToInt, vec![Float(-1.9)], Type::Int, Int(-1)),
            (Func::ToInt, vec![Bool(true)], Type::Int, Int(1)),
            (Func::MinOf, vec![Int(2), Absent], Type::Int, Absent),
            (Func::Bin, vec![Time(-1), Duration(10)], Type::Time, Time(-10)),
            (Func::IsIpv4, vec![Value::ip([10, 0, 0, 1].into())], Type::Bool, Bool(true)),
            (Func::Slice, vec![text("weir"), Int(-2), Int(9)], Type::Str, text("ir")),
            (Func::Slice, vec![text("ÉaÉ"), Int(1), Int(3)], Type::Str, text("a")),
            (Func::Split, vec![text("a.b.c"), text("."), Int(-2)], Type::Str, text("b")),
            (Func::Split, vec![text("a.b"), text("."), Int(2)], Type::Str, Absent),
            (Func::Replace, vec![text("aXbX"), text("X"), text("-")], Type::Str, text("a-b-")),
            (Func::Extract, vec![text("id=17;"), text("id=([0-9]+)")], Type::Str, text("17")),
            (Func::EntropyOf, vec![text("aabc")], Type::Float, Float(1.5)),
            (Func::EntropyOf, vec![text("")], Type::Float, Float(0.0)),
            (Func::RegisteredDomain, vec![text("a.B.co.uk.")], Type::Str, text("b.co.uk")),
            (Func::RegisteredDomain, vec![text(r"a\.b.co.uk")], Type::Str, text(r"a\.b.co.uk")),
            (Func::RegisteredDomain, vec![text("co.uk")], Type::Str, Absent),
            (Func::RegisteredDomain, vec![text("192.0.2.1")], Type::Str, Absent),
            (Func::Hex, vec![Int(-1)], Type::Str, text("ffffffffffffffff")),
            (Func::ToInt, vec![text("-12")], Type::Int, Int(-12)),
            (Func::ToInt, vec![text("12 ")], Type::Int, Absent),
            (Func::SeqDiff, vec![Int(3), Int(0xffff_fffe)], Type::Int, Int(5)),
            (Func::Clamp, vec![Int(7), Int(0), Int(5)], Type::Int, Int(5)),
            (Func::Part(Part::Weekday), vec![Time(0)], Type::Int, Int(4)),
            (Func::Part(Part::Hour), vec![Time(-1)], Type::Int, Int(23)),
        ] {
            let args = args.into_iter().map(constant).collect();
            check(ty, ExprKind::Call(f, args), expected, 0);
        }
    }

    #[test]
    fn membership() {
        let ip = |s: &str| Value::ip(s.parse().expect("an address"));
        let Value::Ip(ten) = ip("10.0.0.0") else { unreachable!() };
        for (v, member, expected) in [
            (Int(5), Member::Value(Int(5)), true),
            (Int(5), Member::Range(Int(1), Int(5)), true),
            (Int(5), Member::Range(Int(6), Int(9)), false),
            (Absent, Member::Range(Int(i64::MIN), Int(i64::MAX)), false),
            (ip("10.255.0.1"), Member::Net(Value::Net(ten, 104)), true),
            (ip("11.0.0.1"), Member::Net(Value::Net(ten, 104)), false),
            (ip("::1"), Member::Net(Value::Net(0, 0)), true),
            (ip("10.0.0.1"), Member::Net(Value::Net(0, 0)), false),
        ] {
            let kind = ExprKind::In(Box::new(constant(v)), vec![member]);
            check(Type::Bool, kind, Bool(expected), 0);
        }
    }
}
