//! The content of a value, where its type is known.

use weir_plan::{Type, Value};

/// A value from the form in which columns store it.
pub(super) fn of_type(ty: &Type, raw: u128) -> Value {
    match ty {
        Type::Bool => Value::Bool(raw != 0),
        Type::Int => Value::Int(raw as i64),
        Type::Time => Value::Time(raw as i64),
        Type::Duration => Value::Duration(raw as i64),
        Type::Ip => Value::Ip(raw),
        Type::Mac => Value::Mac(raw as u64),
        _ => unreachable!("no field has the type {ty}"),
    }
}

/// The value that a registered function returned: absent if not of the type it declared, or no
/// finite number.
pub(super) fn declared(ty: &Type, v: Value) -> Value {
    match v {
        v if v.ty().as_ref() != Some(ty) => Value::Absent,
        Value::Float(f) if !f.is_finite() => Value::Absent,
        Value::Float(f) => unsigned_zero(f),
        v => v,
    }
}

/// A float of a query, which has one zero.
pub(super) fn unsigned_zero(f: f64) -> Value {
    Value::Float(if f == 0.0 { 0.0 } else { f })
}

/// The number in a value that is one 64-bit word.
pub(super) fn word(v: &Value) -> i64 {
    match v {
        Value::Int(n) | Value::Time(n) | Value::Duration(n) => *n,
        _ => unreachable!("{v} is no integer"),
    }
}

pub(super) fn float(v: &Value) -> f64 {
    match v {
        Value::Float(f) => *f,
        _ => unreachable!("{v} is no float"),
    }
}

pub(super) fn text(v: &Value) -> &str {
    match v {
        Value::Str(s) => s,
        _ => unreachable!("{v} is no text"),
    }
}

/// The bytes of a text, too.
pub(super) fn bytes(v: &Value) -> &[u8] {
    match v {
        Value::Str(s) => s.as_bytes(),
        Value::Bytes(b) => b,
        _ => unreachable!("{v} is neither text nor bytes"),
    }
}
