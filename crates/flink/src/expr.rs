//! Expressions as [`Term`]s. Flink's own arithmetic wraps, throws or saturates, and its comparisons
//! are three-valued: functions of the job, `weir_…`, stand for the first, `IS TRUE` ends the
//! second.

use crate::term::Term;
use weir_plan::address::Block;
use weir_plan::functions::{Func, Math};
use weir_plan::{BinaryOp, Expr, ExprKind, Member, Schema, Type, UnaryOp, Value};

/// An expression as a condition: it is true or false, and an absent value is false.
///
/// # Errors
/// Names what a job does not do.
pub(crate) fn condition(e: &Expr, input: &Schema) -> Result<Term, String> {
    let term = value(e, input)?;
    Ok(if is_two_valued(e) { term } else { term.true_only() })
}

/// Whether the term of a bool is never NULL.
fn is_two_valued(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Const(v) => v.exists(),
        ExprKind::In(..) | ExprKind::Unary(UnaryOp::Not, _) => true,
        ExprKind::Binary(op, ..) => {
            op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or)
        }
        ExprKind::Call(Func::Exists, _) => true,
        _ => false,
    }
}

/// An expression as a value; an absent one is NULL.
///
/// # Errors
/// Names what a job does not do.
pub(crate) fn value(e: &Expr, input: &Schema) -> Result<Term, String> {
    let of = |a: &Expr| value(a, input);
    match &e.kind {
        ExprKind::Const(v) => constant(v, &e.ty),
        ExprKind::Column(at) => Ok(column(input, *at)),
        ExprKind::Unary(UnaryOp::Not, a) => Ok(Term::Not(Box::new(condition(a, input)?))),
        ExprKind::Unary(UnaryOp::Neg, a) => Ok(Term::call("weir_neg", of(a)?)),
        ExprKind::Unary(UnaryOp::BitNot, a) => Ok(Term::call("weir_bit_not", of(a)?)),
        ExprKind::Unary(UnaryOp::ToFloat, a) => Ok(Term::ToFloat(Box::new(of(a)?))),
        ExprKind::Binary(op, a, b) => binary(*op, a, b, input),
        ExprKind::If(cond, yes, no) => {
            Ok(Term::If(Box::new([condition(cond, input)?, of(yes)?, of(no)?])))
        }
        ExprKind::In(a, members) => contained(a, members, input),
        ExprKind::Call(func, args) => call(func, args, input),
        // Only an operator sees these, which has them after the columns.
        ExprKind::State(at) => {
            Ok(Term::Column { name: format!("state {at}"), at: input.columns.len() + at })
        }
        ExprKind::Tuple(_) => Err("tuples as values".to_owned()),
        ExprKind::Field(_) => Err("fields of packets".to_owned()),
    }
}

/// A column of rows.
pub(crate) fn column(rows: &Schema, at: usize) -> Term {
    Term::Column { name: rows.columns[at].name.clone(), at }
}

/// A value as something of which SQL's order is that of Weir.
///
/// # Errors
/// Names what a job does not do.
pub(crate) fn ordered(e: &Expr, input: &Schema) -> Result<Term, String> {
    if let ExprKind::Const(Value::Int(v) | Value::Time(v) | Value::Duration(v)) = &e.kind
        && (0..1 << 31).contains(v)
    {
        return Ok(Term::Small(*v));
    }
    let term = value(e, input)?;
    Ok(match e.ty {
        // By IEEE total order, and by bytes.
        Type::Float | Type::Str => Term::call("weir_order", term),
        _ => term,
    })
}

fn binary(op: BinaryOp, a: &Expr, b: &Expr, input: &Schema) -> Result<Term, String> {
    match op {
        BinaryOp::And => return Ok(Term::And(vec![condition(a, input)?, condition(b, input)?])),
        BinaryOp::Or => return Ok(Term::Or(vec![condition(a, input)?, condition(b, input)?])),
        _ => (),
    }
    if op.is_comparison() {
        let sign = match op {
            BinaryOp::Eq => "=",
            BinaryOp::Ne => "<>",
            other => other.symbol(),
        };
        let compared = match (&a.ty, op) {
            (Type::Tuple(_), _) => return Err("comparisons of tuples".to_owned()),
            (Type::Str, BinaryOp::Eq | BinaryOp::Ne) => {
                Term::compare(sign, value(a, input)?, value(b, input)?)
            }
            _ => Term::compare(sign, ordered(a, input)?, ordered(b, input)?),
        };
        return Ok(compared.true_only());
    }
    let name = match op {
        BinaryOp::Add => "weir_add",
        BinaryOp::Sub => "weir_sub",
        BinaryOp::Mul => "weir_mul",
        BinaryOp::Div if a.ty == Type::Duration && b.ty == Type::Duration => "weir_ratio",
        BinaryOp::Div => "weir_div",
        BinaryOp::Rem => "weir_rem",
        BinaryOp::BitAnd => "weir_bit_and",
        BinaryOp::BitOr => "weir_bit_or",
        BinaryOp::BitXor => "weir_bit_xor",
        BinaryOp::Shl => "weir_shl",
        BinaryOp::Shr => "weir_shr",
        _ => return Err(format!("`{}` of such values", op.symbol())),
    };
    if a.ty == Type::Bytes || b.ty == Type::Bytes {
        return Err(format!("`{}` of bytes", op.symbol()));
    }
    Ok(Term::Call(name, vec![value(a, input)?, value(b, input)?]))
}

fn contained(a: &Expr, members: &[Member], input: &Schema) -> Result<Term, String> {
    if matches!(a.ty, Type::Tuple(_)) {
        return Err("`in` with tuples".to_owned());
    }
    let left = ordered(a, input)?;
    let constant = |v: &Value| {
        let ty = a.ty.clone();
        ordered(&Expr { ty, kind: ExprKind::Const(v.clone()) }, input)
    };
    let member = |member: &Member| {
        let left = left.clone();
        Ok(match member {
            Member::Value(v) => Term::compare("=", left, constant(v)?),
            Member::Range(from, to) => {
                Term::Between(Box::new([left, constant(from)?, constant(to)?]))
            }
            Member::Net(Value::Net(bits, len)) => {
                let net = Term::Bytes(bits.to_be_bytes().to_vec());
                Term::Call("weir_in_net", vec![left, net, Term::Bits(*len)])
            }
            Member::Net(_) => return Err("such a network".to_owned()),
        })
    };
    let all: Result<Vec<Term>, String> = members.iter().map(member).collect();
    any(all?)
}

/// Whether any of these is true.
fn any(all: Vec<Term>) -> Result<Term, String> {
    let none = all.is_empty();
    let any = Term::Or(all);
    Ok(if none { any } else { any.true_only() })
}

fn call(func: &Func, args: &[Expr], input: &Schema) -> Result<Term, String> {
    let all: Result<Vec<Term>, String> = args.iter().map(|arg| value(arg, input)).collect();
    let mut all = all?;
    let is = |ty: Type| args.first().is_some_and(|arg| arg.ty == ty);
    let name = match func {
        Func::Exists => return Ok(Term::Exists(Box::new(all.swap_remove(0)))),
        Func::Coalesce => return Ok(Term::Coalesce(all)),
        Func::ToFloat if is(Type::Int) => return Ok(Term::ToFloat(Box::new(all.swap_remove(0)))),
        Func::ToFloat if is(Type::Duration) => "weir_seconds",
        Func::ToInt if is(Type::Duration) || is(Type::Time) || is(Type::Mac) => {
            return Ok(all.swap_remove(0));
        }
        Func::ToInt if is(Type::Float) || is(Type::Bool) => "weir_int",
        Func::ToDuration | Func::ToTime => return Ok(all.swap_remove(0)),
        Func::Abs => "weir_abs",
        Func::MinOf if !is(Type::Str) && !is(Type::Bytes) && !is(Type::Ip) => "weir_min_of",
        Func::MaxOf if !is(Type::Str) && !is(Type::Bytes) && !is(Type::Ip) => "weir_max_of",
        Func::SeqDiff => "weir_seq_diff",
        Func::SeqAdd => "weir_seq_add",
        Func::Math(Math::Sqrt) => "weir_sqrt",
        Func::Math(Math::Exp) => "weir_exp",
        Func::Math(Math::Ln) => "weir_ln",
        Func::Math(Math::Log2) => "weir_log2",
        Func::Math(Math::Log10) => "weir_log10",
        Func::Pow => "weir_pow",
        Func::IsIn(block) => return within(*block, &args[0], &all[0]),
        Func::Prefix { v4, v6 } => {
            all.extend([Term::Bits(*v4), Term::Bits(*v6)]);
            "weir_prefix"
        }
        Func::CommunityId { seed } => {
            all.insert(0, Term::Int((*seed).into()));
            "weir_community_id"
        }
        Func::IsIpv4 => return Ok(Term::call("weir_is_ipv4", all.swap_remove(0)).true_only()),
        other => return Err(format!("the function `{}`", function_name(other))),
    };
    Ok(Term::Call(name, all))
}

/// Whether an address, which is this term, is of a kind.
fn within(block: Block, address: &Expr, term: &Term) -> Result<Term, String> {
    let end = |bits| constant(&Value::Ip(bits), &address.ty);
    let range =
        |(first, last)| Ok(Term::Between(Box::new([term.clone(), end(first)?, end(last)?])));
    let all: Result<Vec<Term>, String> = block.ranges().into_iter().map(range).collect();
    any(all?)
}

/// The name of a function in queries.
fn function_name(func: &Func) -> String {
    let kind = std::mem::discriminant(func);
    let mut all = weir_plan::functions::BUILTINS.iter();
    let found = all.clone().find(|row| row.func == *func);
    let found = found.or_else(|| all.find(|row| std::mem::discriminant(&row.func) == kind));
    found.map_or_else(|| "registered".to_owned(), |row| row.name().to_owned())
}

/// A constant; an absent one has a type.
///
/// # Errors
/// Names what a job does not do.
pub(crate) fn constant(v: &Value, ty: &Type) -> Result<Term, String> {
    Ok(match v {
        Value::Absent => Term::Null(sql_type(ty)?),
        Value::Bool(v) => Term::Bool(*v),
        Value::Int(v) | Value::Time(v) | Value::Duration(v) => Term::Int(*v),
        Value::Mac(v) => Term::Int((*v).cast_signed()),
        Value::Float(v) if v.is_finite() => Term::Float(*v),
        Value::Str(v) => Term::Text(v.to_string()),
        Value::Bytes(v) => Term::Bytes(v.to_vec()),
        Value::Ip(v) => Term::Bytes(v.to_be_bytes().to_vec()),
        other => return Err(format!("the constant {other}")),
    })
}

fn sql_type(ty: &Type) -> Result<&'static str, String> {
    Ok(match ty {
        Type::Bool => "BOOLEAN",
        Type::Int | Type::Time | Type::Duration | Type::Mac => "BIGINT",
        Type::Float => "DOUBLE",
        Type::Str => "STRING",
        Type::Bytes | Type::Ip => "BYTES",
        Type::Net | Type::Tuple(_) => return Err(format!("a value of type {ty}")),
    })
}
