//! What built-in functions take and give.

use crate::types::Type;
use Type::{Bool, Bytes, Duration, Float, Int, Ip, Mac, Str, Time};

/// What one argument may be.
#[derive(Debug)]
pub struct Parameter {
    /// Its types.
    pub types: &'static [Type],
    /// The same in words, for diagnostics.
    pub words: &'static str,
    /// What becomes of it.
    pub role: Role,
}

/// What becomes of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It is evaluated for each row.
    Value,
    /// The same, and an int becomes a float.
    Float,
    /// A regular expression, which is a constant.
    Pattern,
    /// A constant that becomes part of the [`Func`](super::Func): plans have no such argument.
    Constant,
    /// A tuple, or a key, whose parts become arguments.
    Connection,
}

/// How the types of arguments must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// Each is by itself.
    Free,
    /// All are the same.
    Same,
    /// An int goes in steps of an int, a time or a duration in steps of a duration.
    Step,
}

/// The type of a result.
#[derive(Debug)]
pub enum Gives {
    /// This one.
    Type(Type),
    /// That of the first argument.
    First,
    /// This one; an argument that has it already is the result, and plans have no such call.
    Conversion(Type),
}

const fn value(types: &'static [Type], words: &'static str) -> Parameter {
    Parameter { types, words, role: Role::Value }
}

pub(super) const ANY: Parameter =
    value(&[Bool, Int, Float, Str, Bytes, Ip, Mac, Time, Duration], "one plain value");
pub(super) const ORDERED: Parameter =
    value(&[Int, Float, Str, Bytes, Ip, Mac, Time, Duration], "values that have an order");
pub(super) const TEXT: Parameter = value(&[Str], "a string");
pub(super) const BYTES: Parameter = value(&[Bytes], "bytes");
pub(super) const TEXT_OR_BYTES: Parameter = value(&[Str, Bytes], "a string or bytes");
pub(super) const PATTERN: Parameter = Parameter { role: Role::Pattern, ..TEXT };
pub(super) const INT: Parameter = value(&[Int], "an int");
pub(super) const INT_OR_BYTES: Parameter = value(&[Int, Bytes], "an int or bytes");
pub(super) const NUMBER: Parameter = value(&[Int, Float], "an int or a float");
pub(super) const FLOAT: Parameter = Parameter { role: Role::Float, ..NUMBER };
pub(super) const SIGNED: Parameter =
    value(&[Int, Float, Duration], "an int, a float or a duration");
pub(super) const TO_FLOAT: Parameter =
    value(&[Int, Float, Duration, Str], "an int, a duration or a string");
pub(super) const TO_INT: Parameter = value(
    &[Int, Float, Bool, Duration, Time, Mac, Str],
    "a float, a bool, a duration, a time, a mac or a string",
);
pub(super) const BINNED: Parameter = value(&[Time, Int, Duration], "a time, an int or a duration");
pub(super) const STEP: Parameter = value(&[Int, Duration], "a duration or an int as its step");
pub(super) const TIME: Parameter = value(&[Time], "a time");
pub(super) const IP: Parameter = value(&[Ip], "an ip");
pub(super) const LENGTH: Parameter = Parameter { role: Role::Constant, ..INT };
pub(super) const KEY: Parameter =
    Parameter { types: &[Str, Bytes], words: "a key: a string or bytes", role: Role::Constant };
pub(super) const CONNECTION: Parameter = Parameter {
    types: &[],
    words: "`conn`, or a tuple of address, port, address, port and protocol",
    role: Role::Connection,
};
