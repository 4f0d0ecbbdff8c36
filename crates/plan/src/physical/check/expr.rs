//! The types of expressions and aggregates.

use crate::aggregates::{Agg, AggFunc};
use crate::expr::{BinaryOp, Expr, ExprKind, Member, UnaryOp};
use crate::functions::{Func, Signatures};
use crate::limits::DEPTH_MAX;
use crate::pattern::{of_bytes, of_text};
use crate::stage::Schema;
use crate::table::{self, Table};
use crate::types::Type;
use crate::value::Value;

/// The columns, fields and states that an expression may read.
#[derive(Clone, Copy)]
pub(super) struct Reach<'a> {
    /// The columns.
    pub(super) input: &'a Schema,
    /// Whether packet fields can be read.
    pub(super) fields: bool,
    /// The types of states.
    pub(super) states: &'a [Type],
    pub(super) signatures: &'a Signatures,
}

impl Reach<'_> {
    /// Whether an expression is sound, and of a type that a column may have.
    pub(super) fn scalar(&self, e: &Expr) -> bool {
        e.ty.is_scalar() && self.sound(e)
    }

    pub(super) fn is(&self, e: &Expr, ty: &Type) -> bool {
        e.ty == *ty && self.sound(e)
    }

    /// Whether all of it has the type that it says, and reads what is there.
    pub(super) fn sound(&self, e: &Expr) -> bool {
        self.node(e, 2 * DEPTH_MAX)
    }

    fn node(&self, e: &Expr, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let all = |parts: &[Expr]| parts.iter().all(|part| self.node(part, depth));
        match &e.kind {
            ExprKind::Const(value) => constant(value, &e.ty),
            ExprKind::Field(id) => self.fields && e.ty == id.info().ty.into(),
            ExprKind::Column(i) => self.input.columns.get(*i).is_some_and(|c| c.ty == e.ty),
            ExprKind::State(i) => self.states.get(*i) == Some(&e.ty),
            ExprKind::Unary(op, a) => self.node(a, depth) && unary(*op, &a.ty) == Some(&e.ty),
            ExprKind::Binary(op, a, b) => {
                let sides = self.node(a, depth) && self.node(b, depth);
                sides && binary(*op, &a.ty, &b.ty).as_ref() == Some(&e.ty)
            }
            ExprKind::If(cond, yes, no) => {
                let parts = [cond, yes, no].iter().all(|part| self.node(part, depth));
                let same = yes.ty == e.ty && no.ty == e.ty;
                parts && cond.ty == Type::Bool && same && e.ty.is_scalar()
            }
            ExprKind::In(a, members) => {
                let fits = members.iter().all(|m| member(m, &a.ty));
                self.node(a, depth) && e.ty == Type::Bool && a.ty != Type::Net && fits
            }
            ExprKind::Call(func, args) => {
                all(args) && call(func, args, self.signatures).as_ref() == Some(&e.ty)
            }
            ExprKind::Tuple(parts) => {
                let types = parts.iter().map(|part| part.ty.clone()).collect();
                let scalar = parts.iter().all(|part| part.ty.is_scalar());
                all(parts) && scalar && !parts.is_empty() && e.ty == Type::Tuple(types)
            }
        }
    }

    /// Whether an aggregate takes what it gets, and gives what it says.
    pub(super) fn aggregate(&self, agg: &Agg) -> bool {
        let cond = agg.cond.as_ref().is_none_or(|cond| self.is(cond, &Type::Bool));
        let arg = agg.arg.as_ref().is_none_or(|arg| self.sound(arg));
        let ty = result(agg.func, agg.arg.as_ref().map(|arg| &arg.ty), self.signatures);
        cond && arg && ty.as_ref() == Some(&agg.ty)
    }
}

fn constant(value: &Value, ty: &Type) -> bool {
    match (value, ty) {
        (Value::Absent, ty) => ty.is_scalar(),
        (Value::Tuple(parts), Type::Tuple(types)) => {
            let fits = |(part, ty): (&Value, &Type)| ty.is_scalar() && constant(part, ty);
            parts.len() == types.len() && parts.iter().zip(types).all(fits)
        }
        (Value::Net(..) | Value::Tuple(_), _) => false,
        (value, ty) => value.ty().as_ref() == Some(ty),
    }
}

fn member(member: &Member, ty: &Type) -> bool {
    match member {
        Member::Value(value) => constant(value, ty),
        Member::Range(a, b) => ty.is_ordered() && constant(a, ty) && constant(b, ty),
        Member::Net(net) => *ty == Type::Ip && matches!(net, Value::Net(..)),
    }
}

fn unary(op: UnaryOp, a: &Type) -> Option<&Type> {
    match (op, a) {
        (UnaryOp::Not, Type::Bool) | (UnaryOp::BitNot, Type::Int) => Some(a),
        (UnaryOp::Neg, a) if a.is_numeric() => Some(a),
        (UnaryOp::ToFloat, Type::Int) => Some(&Type::Float),
        _ => None,
    }
}

fn binary(op: BinaryOp, a: &Type, b: &Type) -> Option<Type> {
    use BinaryOp::{Add, And, BitAnd, BitOr, BitXor, Div, Eq, Mul, Ne, Or, Rem, Shl, Shr, Sub};
    use Type::{Bool, Duration, Float, Int, Net, Time};
    Some(match (op, a, b) {
        (And | Or, Bool, Bool) => Bool,
        (Eq | Ne, a, b) if a == b && *a != Net => Bool,
        (op, a, b) if op.is_comparison() && a == b && a.is_ordered() => Bool,
        (Add | Sub | Mul | Div | Rem, Int, Int) => Int,
        (BitAnd | BitOr | BitXor | Shl | Shr, Int, Int) => Int,
        (Add | Sub | Mul | Div, Float, Float) => Float,
        (Add | Sub | Rem, Duration, Duration) => Duration,
        (Mul | Div, Duration, Int) => Duration,
        (Div, Duration, Duration) => Float,
        (Add | Sub, Time, Duration) => Time,
        (Sub, Time, Time) => Duration,
        _ => return None,
    })
}

/// The type of a call; `None` where the function does not take these.
fn call(func: &Func, args: &[Expr], signatures: &Signatures) -> Option<Type> {
    let types: Vec<&Type> = args.iter().map(|arg| &arg.ty).collect();
    match (func, &types[..]) {
        (Func::Matches | Func::Extract, _) if !pattern(args) => None,
        (Func::Prefix { v4: 33.., .. } | Func::Prefix { v6: 129.., .. }, _) => None,
        (Func::LocalTime(_), [Type::Time]) => Some(Type::Time),
        (Func::LocalBin(_), [Type::Time, Type::Duration]) => Some(Type::Time),
        (Func::Lookup(table), [key @ (Type::Ip | Type::Int | Type::Str | Type::Mac)]) => {
            is_table_of(&table.0, key).then_some(Type::Str)
        }
        (Func::User(i), types) => {
            let signature = signatures.scalars.get(*i)?;
            signature.args.iter().eq(types.iter().copied()).then(|| signature.ret.clone())
        }
        (func, types) => func.builtin()?.result(types),
    }
}

/// Whether the second argument is a constant pattern that can be read.
fn pattern(args: &[Expr]) -> bool {
    let [whole, Expr { kind: ExprKind::Const(Value::Str(pattern)), .. }] = args else {
        return false;
    };
    match whole.ty {
        Type::Bytes => of_bytes(pattern).is_ok(),
        _ => of_text(pattern).is_ok(),
    }
}

/// Whether a table has keys of this type; all are of one.
fn is_table_of(table: &Table, key: &Type) -> bool {
    table.entries.first().is_none_or(|(entry, _)| table::key_type(entry).as_ref() == Some(key))
}

/// The type of what an aggregate gives; `None` where it does not take the argument.
fn result(func: AggFunc, arg: Option<&Type>, signatures: &Signatures) -> Option<Type> {
    let AggFunc::User(i) = func else { return func.result(arg) };
    let signature = signatures.aggregates.get(i)?;
    (arg == Some(&signature.arg)).then(|| signature.ret.clone())
}
