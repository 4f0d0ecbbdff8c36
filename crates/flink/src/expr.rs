//! Expressions as SQL. Flink's own arithmetic wraps, throws or saturates, and its comparisons are
//! three-valued: functions of the job, `weir_…`, stand for the first, `IS TRUE` ends the second.

use weir_plan::address::Block;
use weir_plan::functions::{Func, Math};
use weir_plan::{BinaryOp, Expr, ExprKind, Member, Schema, Type, UnaryOp, Value};

/// A name in SQL.
pub(crate) fn ident(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// An expression as a condition: it is true or false, and an absent value is false.
///
/// # Errors
/// Names what SQL does not do.
pub(crate) fn condition(e: &Expr, input: &Schema) -> Result<String, String> {
    let text = value(e, input)?;
    Ok(if is_two_valued(e) { text } else { format!("({text} IS TRUE)") })
}

/// Whether the SQL of a bool is never NULL.
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
/// Names what SQL does not do.
pub(crate) fn value(e: &Expr, input: &Schema) -> Result<String, String> {
    match &e.kind {
        ExprKind::Const(v) => constant(v, &e.ty),
        ExprKind::Column(i) => Ok(ident(&input.columns[*i].name)),
        ExprKind::Unary(UnaryOp::Not, a) => Ok(format!("(NOT {})", condition(a, input)?)),
        ExprKind::Unary(UnaryOp::Neg, a) => Ok(format!("weir_neg({})", value(a, input)?)),
        ExprKind::Unary(UnaryOp::BitNot, a) => Ok(format!("weir_bit_not({})", value(a, input)?)),
        ExprKind::Unary(UnaryOp::ToFloat, a) => Ok(format!("CAST({} AS DOUBLE)", value(a, input)?)),
        ExprKind::Binary(op, a, b) => binary(*op, a, b, input),
        ExprKind::If(cond, yes, no) => Ok(format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            condition(cond, input)?,
            value(yes, input)?,
            value(no, input)?
        )),
        ExprKind::In(a, members) => contained(a, members, input),
        ExprKind::Call(func, args) => call(func, args, input),
        ExprKind::Tuple(_) => Err("tuples as values".to_owned()),
        ExprKind::Field(_) | ExprKind::State(_) => Err("fields of packets".to_owned()),
    }
}

/// A value as something of which SQL's order is that of Weir.
///
/// # Errors
/// Names what SQL does not do.
pub(crate) fn ordered(e: &Expr, input: &Schema) -> Result<String, String> {
    if let ExprKind::Const(Value::Int(v) | Value::Time(v) | Value::Duration(v)) = &e.kind
        && (0..1 << 31).contains(v)
    {
        // Comparisons take a number of 32 bits as one of 64.
        return Ok(v.to_string());
    }
    let text = value(e, input)?;
    Ok(match e.ty {
        // By IEEE total order, and by bytes.
        Type::Float | Type::Str => format!("weir_order({text})"),
        _ => text,
    })
}

fn binary(op: BinaryOp, a: &Expr, b: &Expr, input: &Schema) -> Result<String, String> {
    if matches!(op, BinaryOp::And | BinaryOp::Or) {
        let word = if op == BinaryOp::And { "AND" } else { "OR" };
        return Ok(format!("({} {word} {})", condition(a, input)?, condition(b, input)?));
    }
    if op.is_comparison() {
        let sign = match op {
            BinaryOp::Eq => "=",
            BinaryOp::Ne => "<>",
            other => other.symbol(),
        };
        return match (&a.ty, op) {
            (Type::Tuple(_), _) => Err("comparisons of tuples".to_owned()),
            (Type::Str, BinaryOp::Eq | BinaryOp::Ne) => {
                Ok(format!("(({} {sign} {}) IS TRUE)", value(a, input)?, value(b, input)?))
            }
            _ => Ok(format!("(({} {sign} {}) IS TRUE)", ordered(a, input)?, ordered(b, input)?)),
        };
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
    Ok(format!("{name}({}, {})", value(a, input)?, value(b, input)?))
}

fn contained(a: &Expr, members: &[Member], input: &Schema) -> Result<String, String> {
    if matches!(a.ty, Type::Tuple(_)) {
        return Err("`in` with tuples".to_owned());
    }
    let left = ordered(a, input)?;
    let constant = |v: &Value| {
        let ty = a.ty.clone();
        ordered(&Expr { ty, kind: ExprKind::Const(v.clone()) }, input)
    };
    let member = |member: &Member| {
        Ok(match member {
            Member::Value(v) => format!("{left} = {}", constant(v)?),
            Member::Range(from, to) => {
                format!("{left} BETWEEN {} AND {}", constant(from)?, constant(to)?)
            }
            Member::Net(Value::Net(bits, len)) => {
                format!("weir_in_net({left}, X'{bits:032X}', {len})")
            }
            Member::Net(_) => return Err("such a network".to_owned()),
        })
    };
    let all: Result<Vec<String>, String> = members.iter().map(member).collect();
    match all? {
        none if none.is_empty() => Ok("FALSE".to_owned()),
        all => Ok(format!("(({}) IS TRUE)", all.join(" OR "))),
    }
}

fn call(func: &Func, args: &[Expr], input: &Schema) -> Result<String, String> {
    let all: Result<Vec<String>, String> = args.iter().map(|arg| value(arg, input)).collect();
    let all = all?;
    let is = |ty: Type| args.first().is_some_and(|arg| arg.ty == ty);
    let name = match func {
        Func::Exists => return Ok(format!("({} IS NOT NULL)", all.join(", "))),
        Func::Coalesce => "COALESCE",
        Func::ToFloat if is(Type::Int) => return Ok(format!("CAST({} AS DOUBLE)", all[0])),
        Func::ToFloat if is(Type::Duration) => "weir_seconds",
        Func::ToInt if is(Type::Duration) || is(Type::Time) || is(Type::Mac) => {
            return Ok(all[0].clone());
        }
        Func::ToInt if is(Type::Float) => "weir_int",
        Func::ToDuration | Func::ToTime => return Ok(all[0].clone()),
        Func::Abs => "weir_abs",
        Func::MinOf if !is(Type::Str) && !is(Type::Bytes) && !is(Type::Ip) => "weir_min_of",
        Func::MaxOf if !is(Type::Str) && !is(Type::Bytes) && !is(Type::Ip) => "weir_max_of",
        Func::SeqDiff => "weir_seq_diff",
        Func::Math(Math::Sqrt) => "weir_sqrt",
        Func::Math(Math::Exp) => "weir_exp",
        Func::Math(Math::Ln) => "weir_ln",
        Func::Math(Math::Log2) => "weir_log2",
        Func::Math(Math::Log10) => "weir_log10",
        Func::IsIn(block) => return within(*block, &args[0], &all[0]),
        Func::CommunityId { seed } => {
            return Ok(format!("weir_community_id(CAST('{seed}' AS BIGINT), {})", all.join(", ")));
        }
        Func::IsIpv4 => return Ok(format!("(weir_is_ipv4({}) IS TRUE)", all[0])),
        other => return Err(format!("the function `{}`", function_name(other))),
    };
    Ok(format!("{name}({})", all.join(", ")))
}

/// Whether an address, which has this SQL, is of a kind.
fn within(block: Block, address: &Expr, text: &str) -> Result<String, String> {
    let end = |bits| constant(&Value::Ip(bits), &address.ty);
    let range = |(first, last)| Ok(format!("{text} BETWEEN {} AND {}", end(first)?, end(last)?));
    let all: Result<Vec<String>, String> = block.ranges().into_iter().map(range).collect();
    Ok(format!("(({}) IS TRUE)", all?.join(" OR ")))
}

/// The name of a function in queries.
fn function_name(func: &Func) -> String {
    let kind = std::mem::discriminant(func);
    let mut all = weir_plan::functions::BUILTINS.iter();
    let found = all.clone().find(|row| row.func == *func);
    let found = found.or_else(|| all.find(|row| std::mem::discriminant(&row.func) == kind));
    found.map_or_else(|| "registered".to_owned(), |row| row.name().to_owned())
}

fn constant(v: &Value, ty: &Type) -> Result<String, String> {
    Ok(match v {
        Value::Absent => format!("CAST(NULL AS {})", sql_type(ty)?),
        Value::Bool(v) => if *v { "TRUE" } else { "FALSE" }.to_owned(),
        // A bare number would be one of 32 bits, and choose other functions.
        Value::Int(v) | Value::Time(v) | Value::Duration(v) => format!("CAST('{v}' AS BIGINT)"),
        Value::Mac(v) => format!("CAST('{v}' AS BIGINT)"),
        Value::Float(v) if v.is_finite() => format!("CAST('{v:e}' AS DOUBLE)"),
        Value::Str(v) => format!("'{}'", v.replace('\'', "''")),
        Value::Bytes(v) => {
            let digits: String = v.iter().map(|b| format!("{b:02X}")).collect();
            format!("CAST(X'{digits}' AS BYTES)")
        }
        Value::Ip(v) => format!("CAST(X'{v:032X}' AS BYTES)"),
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
