//! The parameters and results of built-in functions.

use crate::types::Type;
use Type::{Bool, Bytes, Duration, Float, Int, Ip, Mac, Str, Time};

/// The values that one argument may have.
#[derive(Debug)]
pub struct Parameter {
    /// Its types.
    pub types: &'static [Type],
    /// The same in words, for diagnostics.
    pub words: &'static str,
    /// The fate of it.
    pub role: Role,
}

/// The fate of an argument.
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

pub(crate) const ANY: Parameter =
    value(&[Bool, Int, Float, Str, Bytes, Ip, Mac, Time, Duration], "one plain value");
pub(crate) const ORDERED: Parameter =
    value(&[Int, Float, Str, Bytes, Ip, Mac, Time, Duration], "values that have an order");
pub(crate) const TEXT: Parameter = value(&[Str], "a string");
pub(crate) const BYTES: Parameter = value(&[Bytes], "bytes");
pub(crate) const TEXT_OR_BYTES: Parameter = value(&[Str, Bytes], "a string or bytes");
pub(crate) const PATTERN: Parameter = Parameter { role: Role::Pattern, ..TEXT };
pub(crate) const INT: Parameter = value(&[Int], "an int");
pub(crate) const INT_OR_BYTES: Parameter = value(&[Int, Bytes], "an int or bytes");
pub(crate) const NUMBER: Parameter = value(&[Int, Float], "an int or a float");
pub(crate) const FLOAT: Parameter = Parameter { role: Role::Float, ..NUMBER };
pub(crate) const SIGNED: Parameter =
    value(&[Int, Float, Duration], "an int, a float or a duration");
pub(crate) const TO_FLOAT: Parameter =
    value(&[Int, Float, Duration, Str], "an int, a duration or a string");
pub(crate) const TO_INT: Parameter = value(
    &[Int, Float, Bool, Duration, Time, Mac, Str],
    "a float, a bool, a duration, a time, a mac or a string",
);
pub(crate) const BINNED: Parameter = value(&[Time, Int, Duration], "a time, an int or a duration");
pub(crate) const STEP: Parameter = value(&[Int, Duration], "a duration or an int as its step");
pub(crate) const TIME: Parameter = value(&[Time], "a time");
pub(crate) const IP: Parameter = value(&[Ip], "an ip");
pub(crate) const LENGTH: Parameter = Parameter { role: Role::Constant, ..INT };
pub(crate) const KEY: Parameter =
    Parameter { types: &[Str, Bytes], words: "a key: a string or bytes", role: Role::Constant };
pub(crate) const BOOL: Parameter = value(&[Bool], "a condition");
pub(crate) const INT_TO_RATE: Parameter = value(&[Int], "an int or a condition");
pub(crate) const INT_OR_DURATION: Parameter = value(&[Int, Duration], "an int or a duration");
pub(crate) const ONE_ORDERED: Parameter =
    Parameter { words: "a value that has an order", ..ORDERED };
pub(crate) const SHARE: Parameter = Parameter { role: Role::Constant, ..NUMBER };
pub(crate) const UP_TO: Parameter = LENGTH;
pub(crate) const DURATION_STEP: Parameter = Parameter { role: Role::Constant, ..INT_OR_DURATION };
pub(crate) const CONNECTION: Parameter = Parameter {
    types: &[],
    words: "`conn`, or a tuple of address, port, address, port and protocol",
    role: Role::Connection,
};
