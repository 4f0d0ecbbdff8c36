//! The functions of the language, built in and registered.

use crate::expr::Expr;
use crate::types::Type;

/// A scalar function. All built-in ones are absent where an argument is, except `exists` and
/// `coalesce`; predicates are false instead.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Func {
    /// `exists(x)`: whether `x` has a value. Any type, bool; always present.
    Exists,
    /// `coalesce(a, b)`: `a` where it has a value, else `b`. Two of one type.
    Coalesce,
    /// `contains(s, part)`. string string, bool; always present.
    Contains,
    /// `starts_with(s, part)`. string string, bool; always present.
    StartsWith,
    /// `ends_with(s, part)`. string string, bool; always present.
    EndsWith,
    /// `matches(s, "regex")`: whether the pattern (the `regex` crate's syntax, a constant) is found
    /// anywhere in `s`. string string, bool; always present.
    Matches,
    /// `lower(s)`. string, string.
    Lower,
    /// `upper(s)`. string, string.
    Upper,
    /// `concat(a, b)`. string string, string. Of all functions that make a text: one beyond 4096
    /// bytes is absent, and counted.
    Concat,
    /// `str_len(s)`: length in bytes. string, int.
    StrLen,
    /// `string(x)`: `x` as text, as CSV output would show it. Any scalar, string.
    ToStr,
    /// `float(x)`. int or duration (in seconds), float.
    ToFloat,
    /// `int(x)`: towards zero. float, bool (0 or 1), duration (nanoseconds), time (nanoseconds
    /// since 1970); int. A float outside 64 bits is absent and counted.
    ToInt,
    /// `duration_ns(x)`: a span of that many nanoseconds. int, duration.
    ToDuration,
    /// `abs(x)`. int, float or duration; the same.
    Abs,
    /// `min_of(a, b)`: the smaller. Two of one ordered type; the same.
    MinOf,
    /// `max_of(a, b)`: the larger. Two of one ordered type; the same.
    MaxOf,
    /// `bin(t, d)`: `t` rounded down to a multiple of `d` since 1970 (towards minus infinity).
    /// time duration time; int int int; duration duration duration. `d` at or below 0 gives an
    /// absent value, counted.
    Bin,
    /// `is_ipv4(a)`. ip, bool; always present.
    IsIpv4,
    /// A registered Rust function, by its position in [`Signatures::scalars`]. Called only where
    /// all arguments are there; a result of another type than its own is absent.
    User(usize),
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
            | Func::IsIpv4 => true,
            Func::Coalesce => args.iter().any(Expr::always_present),
            Func::Lower | Func::Upper | Func::Concat | Func::StrLen | Func::ToStr => {
                args.iter().all(Expr::always_present)
            }
            Func::MinOf | Func::MaxOf => args.iter().all(Expr::always_present),
            _ => false,
        }
    }
}

/// The built-in functions by name, with their sentence for the reference.
pub static BUILTINS: &[(&str, Func, &str)] = &[
    ("exists", Func::Exists, "Whether the value is there."),
    ("coalesce", Func::Coalesce, "The first value where it is there, else the second."),
    ("contains", Func::Contains, "Whether the text holds the part."),
    ("starts_with", Func::StartsWith, "Whether the text starts with the part."),
    ("ends_with", Func::EndsWith, "Whether the text ends with the part."),
    ("matches", Func::Matches, "Whether the regular expression is found in the text."),
    ("lower", Func::Lower, "The text in lower case."),
    ("upper", Func::Upper, "The text in upper case."),
    ("concat", Func::Concat, "Two texts, one after the other."),
    ("str_len", Func::StrLen, "Length of the text in bytes."),
    ("string", Func::ToStr, "The value as text."),
    ("float", Func::ToFloat, "The number as a float; a duration in seconds."),
    ("int", Func::ToInt, "The value as an integer; durations and times in nanoseconds."),
    ("duration_ns", Func::ToDuration, "A duration of so many nanoseconds."),
    ("abs", Func::Abs, "The magnitude."),
    ("min_of", Func::MinOf, "The smaller of two values."),
    ("max_of", Func::MaxOf, "The larger of two values."),
    ("bin", Func::Bin, "The value rounded down to a multiple."),
    ("is_ipv4", Func::IsIpv4, "Whether the address is IPv4."),
];

/// Name and types of a registered scalar function.
#[derive(Clone, PartialEq, Debug)]
pub struct ScalarSignature {
    /// Name in queries.
    pub name: String,
    /// Types of the arguments.
    pub args: Vec<Type>,
    /// Type of the result.
    pub ret: Type,
}

/// Name and types of a registered aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct AggSignature {
    /// Name in queries.
    pub name: String,
    /// Type of the argument.
    pub arg: Type,
    /// Type of the result.
    pub ret: Type,
}

/// The functions that a program registered beside the built-in ones, as the language sees them.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Signatures {
    /// Scalar functions; [`Func::User`] counts in this list.
    pub scalars: Vec<ScalarSignature>,
    /// Aggregates; [`crate::AggFunc::User`] counts in this list.
    pub aggregates: Vec<AggSignature>,
}
