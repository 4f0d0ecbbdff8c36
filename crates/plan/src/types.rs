//! The types of the language.

use std::fmt;
use weir_packet::column::Repr;
use weir_packet::fields::FieldType;

/// The type of an expression or a column. Any value may also be absent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// True or false.
    Bool,
    /// 64-bit signed integer; an overflow gives an absent value and is counted.
    Int,
    /// IEEE double.
    Float,
    /// UTF-8 text.
    Str,
    /// Any bytes.
    Bytes,
    /// An IPv4 or IPv6 address. An IPv4 address is the same value as its IPv4-mapped IPv6 form.
    Ip,
    /// A 48-bit link address.
    Mac,
    /// An address prefix (CIDR). Constants only: networks stand on the right of `in`.
    Net,
    /// A point in time: nanoseconds since 1970, UTC.
    Time,
    /// A span of time in nanoseconds; may be negative.
    Duration,
    /// Several values as one, to compare or to count. Never the type of a column: the language
    /// gives each part a column of its own.
    Tuple(Vec<Type>),
}

impl Type {
    /// How columns store the type. Panics on `net` and tuples, which no column has.
    pub fn repr(&self) -> Repr {
        match self {
            Type::Bool => Repr::Bit,
            Type::Int | Type::Float | Type::Str | Type::Bytes => Repr::Word,
            Type::Mac | Type::Time | Type::Duration => Repr::Word,
            Type::Ip => Repr::Pair,
            Type::Net | Type::Tuple(_) => panic!("no column has the type {self}"),
        }
    }

    /// Whether a column may have this type.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Type::Net | Type::Tuple(_))
    }

    /// Whether `<` and `>` are defined, and so `min`, `max` and `top`. Tuples compare part by
    /// part.
    pub fn is_ordered(&self) -> bool {
        match self {
            Type::Bool | Type::Net => false,
            Type::Tuple(parts) => parts.iter().all(Type::is_ordered),
            _ => true,
        }
    }

    /// Whether `+`, `sum` and `avg` are defined.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Type::Int | Type::Float | Type::Duration)
    }
}

impl From<FieldType> for Type {
    fn from(t: FieldType) -> Type {
        match t {
            FieldType::Bool => Type::Bool,
            FieldType::Int => Type::Int,
            FieldType::Time => Type::Time,
            FieldType::Ip => Type::Ip,
            FieldType::Mac => Type::Mac,
            FieldType::Str => Type::Str,
            FieldType::Bytes => Type::Bytes,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Float => "float",
            Type::Str => "string",
            Type::Bytes => "bytes",
            Type::Ip => "ip",
            Type::Mac => "mac",
            Type::Net => "net",
            Type::Time => "time",
            Type::Duration => "duration",
            Type::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(Type::to_string).collect();
                return write!(f, "({})", parts.join(", "));
            }
        };
        f.write_str(name)
    }
}
