//! Conditions of SQL in the language of Weir.
//!
//! A condition that is written here holds for the same packets as in SQL, where a comparison with a
//! null is neither true nor false: a packet passes `where` only if the condition is true.

use crate::functions::mac;
use crate::limits::DEPTH_MAX;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;
use std::net::IpAddr;
use weir_base::address;
use weir_plan::{Schema, Type};

/// A condition as the language writes it.
pub(crate) struct Condition {
    pub(crate) text: String,
    /// How many comparisons and their like it has.
    pub(crate) terms: usize,
}

/// A condition over the fields of packets, if the language can say it.
pub(crate) fn condition(filter: &Expr, fields: &Schema) -> Option<Condition> {
    within(filter, fields, DEPTH_MAX)
}

/// The same, of a condition that holds others no deeper than this.
fn within(filter: &Expr, fields: &Schema, depth: usize) -> Option<Condition> {
    let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = filter
    else {
        let text = term(filter, fields)?;
        let terms = if let Expr::InList(list) = filter { list.list.len() } else { 1 };
        return Some(Condition { text, terms });
    };
    // Long conditions lean to the left: they become one chain.
    let (mut parts, mut rest) = (Vec::new(), filter);
    while let Expr::BinaryExpr(BinaryExpr { left, op: same, right }) = rest
        && same == op
    {
        parts.push(within(right, fields, depth.checked_sub(1)?)?);
        rest = left;
    }
    parts.push(within(rest, fields, depth.checked_sub(1)?)?);
    let texts: Vec<&str> = parts.iter().rev().map(|part| part.text.as_str()).collect();
    let word = if *op == Operator::And { " and " } else { " or " };
    let terms = parts.iter().map(|part| part.terms).sum();
    Some(Condition { text: format!("({})", texts.join(word)), terms })
}

/// A condition that holds no others.
fn term(filter: &Expr, fields: &Schema) -> Option<String> {
    let field = |e: &Expr| field(e, fields);
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (field(left), field(right)) {
            (Some(field), None) => comparison(field, *op, right),
            (None, Some(field)) => comparison(field, op.swap()?, left),
            _ => None,
        },
        Expr::InList(InList { expr, list, negated }) => {
            let (name, ty) = field(expr)?;
            let members: Option<Vec<String>> = list.iter().map(|e| literal(e, ty, true)).collect();
            let op = if *negated { "not in" } else { "in" };
            Some(format!("{name} {op} {{{}}}", members?.join(", ")))
        }
        Expr::Between(between) => {
            let (name, ty) = field(&between.expr)?;
            let low = literal(&between.low, ty, false)?;
            let high = literal(&between.high, ty, false)?;
            Some(match between.negated {
                true => format!("({name} < {low} or {name} > {high})"),
                false => format!("({name} >= {low} and {name} <= {high})"),
            })
        }
        Expr::IsNull(e) => Some(format!("not exists({})", field(e)?.0)),
        Expr::IsNotNull(e) => Some(format!("exists({})", field(e)?.0)),
        Expr::Not(e) => match field(e)? {
            (name, Type::Bool) => Some(format!("(exists({name}) and not {name})")),
            _ => None,
        },
        Expr::ScalarFunction(call) if call.name() == crate::functions::IN_NET => {
            let (address, networks) = call.args.split_first()?;
            let (name, ty) = field(address)?;
            let networks: Option<Vec<String>> = networks.iter().map(network).collect();
            let networks = networks.filter(|all| !all.is_empty() && *ty == Type::Ip)?;
            Some(format!("{name} in {{{}}}", networks.join(", ")))
        }
        Expr::Column(_) => match field(filter)? {
            (name, Type::Bool) => Some(name.to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// The name and the type of the field that an expression is.
fn field<'a>(e: &Expr, fields: &'a Schema) -> Option<(&'a str, &'a Type)> {
    let Expr::Column(column) = e else { return None };
    let found = fields.columns.iter().find(|c| c.name == column.name)?;
    Some((&found.name, &found.ty))
}

fn comparison((name, ty): (&str, &Type), op: Operator, value: &Expr) -> Option<String> {
    let (op, is_order) = match op {
        Operator::Eq => ("==", false),
        Operator::NotEq => ("!=", false),
        Operator::Lt => ("<", true),
        Operator::LtEq => ("<=", true),
        Operator::Gt => (">", true),
        Operator::GtEq => (">=", true),
        _ => return None,
    };
    Some(format!("{name} {op} {}", literal(value, ty, !is_order)?))
}

/// A value as the language writes it, to compare with a field of this type. `is_equality` says that
/// only equality is asked for: texts have another order than the addresses that they are of.
fn literal(value: &Expr, ty: &Type, is_equality: bool) -> Option<String> {
    let Expr::Literal(value, _) = value else { return None };
    match (ty, value) {
        (Type::Int, ScalarValue::Int64(Some(n))) if *n > i64::MIN => Some(n.to_string()),
        (Type::Time, ScalarValue::TimestampNanosecond(Some(ns), _)) => time(*ns),
        (Type::Str, text) => quoted(text.try_as_str()??),
        (Type::Ip, ScalarValue::FixedSizeBinary(16, Some(bytes))) => {
            let number = u128::from_be_bytes(bytes.as_slice().try_into().ok()?);
            Some(address::address(number).to_string())
        }
        (Type::Mac, ScalarValue::FixedSizeBinary(6, Some(bytes))) => {
            let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(parts.join(":"))
        }
        (Type::Ip, text) if is_equality => {
            let text = text.try_as_str()??;
            let address: IpAddr = text.parse().ok()?;
            // Texts are equal where they are written alike.
            (address.to_string() == text).then(|| text.to_owned())
        }
        (Type::Mac, text) if is_equality => {
            let text = text.try_as_str()??;
            // Texts are equal where they are written alike.
            let is_alike = mac(text).is_some() && text.to_ascii_lowercase() == text;
            is_alike.then(|| text.to_owned())
        }
        _ => None,
    }
}

fn network(value: &Expr) -> Option<String> {
    let Expr::Literal(value, _) = value else { return None };
    crate::functions::Network::parse(value.try_as_str()??).map(|network| network.to_string())
}

/// A time, to the nanosecond.
fn time(ns: i64) -> Option<String> {
    let time = jiff::Timestamp::from_nanosecond(ns.into()).ok()?;
    Some(format!("@{time}"))
}

/// A text in quotes. Bytes that are no UTF-8 are shown as U+FFFD, which is not what they are.
fn quoted(text: &str) -> Option<String> {
    if text.contains(char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{{{:x}}}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Some(quoted)
}
