//! Typed expressions.
//!
//! Meaning, in one place (the engine and the naive model both follow it):
//!
//! - An operand that is absent makes arithmetic and functions absent.
//! - A comparison, `in` or string predicate with an absent side is false, `!=` included.
//! - A tuple with an absent part is absent.
//! - Comparisons, `in`, `min_of` and `max_of` follow the order of [`Value`], so floats compare by
//!   IEEE total order.
//! - `and`, `or`, `not` and conditions take an absent boolean as false.
//! - An integer, time or duration result outside 64 bits, a division by zero, and a shift by less
//!   than 0 or more than 63 give an absent value, and each is counted.
//! - A float result that is not finite is absent too, and counted.
//! - Only what is needed is evaluated, row by row: the right side of `and` where the left is true,
//!   of `or` where it is false, the chosen branch of `if`, the second argument of `coalesce` where
//!   the first is absent. Nothing is counted for an operand that is not evaluated.

use crate::functions::Func;
use crate::types::Type;
use crate::value::Value;
use weir_packet::fields::FieldId;

/// A typed expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Its type, already checked.
    pub ty: Type,
    /// Its computation.
    pub kind: ExprKind,
}

/// The computation of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// A constant; `Value::Absent` too, whose type is the expression's.
    Const(Value),
    /// A field of the packet. Only in stages that still see packets.
    Field(FieldId),
    /// A column of the stage's input schema.
    Column(usize),
    /// In the update of a scan: the state of that number before this row.
    State(usize),
    /// One operand.
    Unary(UnaryOp, Box<Expr>),
    /// Two operands.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Condition, then, else: the two results have the expression's type. A condition that is
    /// absent counts as false.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Whether the value is one of the members. Tuples: all members are tuples of the same shape.
    In(Box<Expr>, Vec<Member>),
    /// A function call.
    Call(Func, Vec<Expr>),
    /// Several values, only as an operand of a comparison or `in`, an argument of `distinct`, or
    /// the update of a scan.
    Tuple(Vec<Expr>),
}

/// One operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOp {
    /// Boolean `not`.
    Not,
    /// Minus, of int, float, duration.
    Neg,
    /// `~`, of int.
    BitNot,
    /// int to float, inserted by the checker where the two meet.
    ToFloat,
}

/// Two operands. Types are given as left, right, result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOp {
    /// int int int; float float float; duration duration duration; time duration time.
    Add,
    /// As `Add`, and time time duration.
    Sub,
    /// int int int; float float float; duration int duration.
    Mul,
    /// int int int, towards zero; float float float; duration int duration; duration duration
    /// float.
    Div,
    /// int int int, with the sign of the dividend, and 0 by -1; duration duration duration.
    Rem,
    /// int int int.
    BitAnd,
    /// int int int.
    BitOr,
    /// int int int.
    BitXor,
    /// int int int; bits shifted out are lost.
    Shl,
    /// int int int; the sign is kept.
    Shr,
    /// Same types, bool.
    Eq,
    /// Same types, bool.
    Ne,
    /// Same ordered types, bool.
    Lt,
    /// Same ordered types, bool.
    Le,
    /// Same ordered types, bool.
    Gt,
    /// Same ordered types, bool.
    Ge,
    /// bool bool bool.
    And,
    /// bool bool bool.
    Or,
}

impl BinaryOp {
    /// The operator of the same comparison from the other side.
    pub fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Lt => BinaryOp::Gt,
            BinaryOp::Le => BinaryOp::Ge,
            BinaryOp::Gt => BinaryOp::Lt,
            BinaryOp::Ge => BinaryOp::Le,
            same => same,
        }
    }

    /// How queries write it.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
        }
    }

    /// Whether the result is a comparison: false where a side is absent.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}

/// A member of the set on the right of `in`.
#[derive(Clone, PartialEq, Debug)]
pub enum Member {
    /// A value of the left side's type.
    Value(Value),
    /// From the first to the second, both included; an ordered type.
    Range(Value, Value),
    /// A network (`Value::Net`), the left side being an ip.
    Net(Value),
}

impl Expr {
    /// A constant. Panics if the value is absent: an absent constant needs a type.
    pub fn constant(v: Value) -> Expr {
        Expr { ty: v.ty().expect("a present value"), kind: ExprKind::Const(v) }
    }

    /// A packet field.
    pub fn field(id: FieldId) -> Expr {
        Expr { ty: id.info().ty.into(), kind: ExprKind::Field(id) }
    }

    /// A column of the input.
    pub fn column(i: usize, ty: Type) -> Expr {
        Expr { ty, kind: ExprKind::Column(i) }
    }

    /// Calls `f` on this node and everything below it.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Const(_) | ExprKind::Field(_) | ExprKind::Column(_) | ExprKind::State(_) => {}
            ExprKind::Unary(_, a) | ExprKind::In(a, _) => a.visit(f),
            ExprKind::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            ExprKind::If(a, b, c) => {
                a.visit(f);
                b.visit(f);
                c.visit(f);
            }
            ExprKind::Call(_, args) | ExprKind::Tuple(args) => {
                args.iter().for_each(|a| a.visit(f));
            }
        }
    }

    /// Whether the result is never absent, as far as the expression alone can tell.
    pub fn always_present(&self) -> bool {
        match &self.kind {
            ExprKind::Const(v) => v.exists(),
            ExprKind::Field(id) => id.info().always,
            ExprKind::Column(_) | ExprKind::State(_) => false,
            ExprKind::Unary(UnaryOp::Not, _) | ExprKind::In(..) => true,
            ExprKind::Unary(UnaryOp::ToFloat | UnaryOp::BitNot, a) => a.always_present(),
            ExprKind::Unary(UnaryOp::Neg, _) => false,
            ExprKind::Binary(op, a, b) => match op {
                BinaryOp::And | BinaryOp::Or => true,
                op if op.is_comparison() => true,
                BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                    a.always_present() && b.always_present()
                }
                _ => false,
            },
            ExprKind::If(_, a, b) => a.always_present() && b.always_present(),
            ExprKind::Call(f, args) => f.always_present(args),
            ExprKind::Tuple(parts) => parts.iter().all(Expr::always_present),
        }
    }
}

impl Func {
    /// Whether the result of a call is never absent.
    pub fn always_present(&self, args: &[Expr]) -> bool {
        match self {
            Func::Exists
            | Func::Contains
            | Func::StartsWith
            | Func::EndsWith
            | Func::Matches
            | Func::IsIpv4
            | Func::IsIpv6
            | Func::IsIn(_) => true,
            Func::Coalesce => args.iter().any(Expr::always_present),
            Func::StrLen
            | Func::BytesLen
            | Func::EntropyOf
            | Func::Part(_)
            | Func::Prefix { .. }
            | Func::Anonymize(_) => args.iter().all(Expr::always_present),
            // Text made of text may become too long.
            Func::ToStr | Func::Short => {
                !matches!(args[..], [Expr { ty: Type::Str | Type::Bytes, .. }])
                    && args.iter().all(Expr::always_present)
            }
            Func::MinOf | Func::MaxOf | Func::Clamp | Func::SeqDiff | Func::SeqAdd => {
                args.iter().all(Expr::always_present)
            }
            _ => false,
        }
    }
}
