//! What the built-in functions take.

use weir_plan::{Func, Type};

/// How many arguments; of `prefix`, the fewest.
pub(super) fn arity(f: &Func) -> usize {
    match f {
        Func::Exists | Func::Lower | Func::Upper | Func::StrLen | Func::BytesLen => 1,
        Func::Trim | Func::Hex | Func::ToStr | Func::ToBytes | Func::ToText | Func::ToIp => 1,
        Func::ToFloat | Func::ToInt | Func::ToDuration | Func::ToTime | Func::Abs => 1,
        Func::Round(_) | Func::Math(_) | Func::Part(_) => 1,
        Func::IsIpv4 | Func::IsIpv6 | Func::IsIn(_) | Func::CommunityId { .. } => 1,
        Func::Coalesce | Func::Contains | Func::StartsWith | Func::EndsWith | Func::Matches => 2,
        Func::Concat | Func::MinOf | Func::MaxOf | Func::Bin | Func::Extract => 2,
        Func::Pow | Func::SeqDiff | Func::Prefix { .. } | Func::Anonymize(_) => 2,
        Func::Slice | Func::Replace | Func::Split | Func::Clamp => 3,
        Func::Lookup(_) | Func::User(_) => unreachable!("checked by the caller"),
    }
}

/// The types that a parameter takes, and how to say it.
pub(super) struct Wanted {
    pub(super) types: &'static [Type],
    pub(super) words: &'static str,
}

/// What parameter number `i` takes.
pub(super) fn wanted(f: &Func, i: usize) -> Wanted {
    use Type::{Bool, Bytes, Duration, Float, Int, Ip, Mac, Str, Time};
    const ANY: &[Type] = &[Bool, Int, Float, Str, Bytes, Ip, Mac, Time, Duration];
    let (types, words): (&[Type], _) = match (f, i) {
        (Func::Contains | Func::StartsWith | Func::EndsWith, _)
        | (Func::Matches | Func::Slice, 0) => (&[Str, Bytes], "a string or bytes"),
        (Func::Matches | Func::Replace | Func::Extract, _) | (Func::Split, 0 | 1) => {
            (&[Str], "a string")
        }
        (Func::Lower | Func::Upper | Func::Concat | Func::StrLen, _) => (&[Str], "a string"),
        (Func::Trim | Func::ToBytes | Func::ToIp, _) => (&[Str], "a string"),
        (Func::BytesLen | Func::ToText, _) => (&[Bytes], "bytes"),
        (Func::Hex, _) => (&[Int, Bytes], "an int or bytes"),
        (Func::IsIpv4 | Func::IsIpv6 | Func::IsIn(_), _)
        | (Func::Prefix { .. } | Func::Anonymize(_), 0) => (&[Ip], "an ip"),
        (Func::Anonymize(_), _) => (&[Str, Bytes], "a key: a string or bytes"),
        (Func::ToDuration | Func::ToTime | Func::SeqDiff, _) => (&[Int], "an int"),
        (Func::Split | Func::Slice | Func::Prefix { .. }, _) => (&[Int], "an int"),
        (Func::Round(_) | Func::Math(_) | Func::Pow, _) => (&[Int, Float], "an int or a float"),
        (Func::Part(_), _) => (&[Time], "a time"),
        (Func::Abs, _) => (&[Int, Float, Duration], "an int, a float or a duration"),
        (Func::ToFloat, _) => (&[Int, Float, Duration, Str], "an int, a duration or a string"),
        (Func::ToInt, _) => (
            &[Int, Float, Bool, Duration, Time, Mac, Str],
            "a float, a bool, a duration, a time, a mac or a string",
        ),
        (Func::MinOf | Func::MaxOf | Func::Clamp, _) => {
            (&[Int, Float, Str, Bytes, Ip, Mac, Time, Duration], "values that have an order")
        }
        (Func::Bin, 0) => (&[Time, Int, Duration], "a time, an int or a duration"),
        (Func::Bin, _) => (&[Int, Duration], "a duration or an int as its step"),
        _ => (ANY, "one plain value"),
    };
    Wanted { types, words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::functions::BUILTINS;

    #[test]
    fn each_function_has_parameters() {
        for (name, f, _) in BUILTINS {
            for i in 0..arity(f) {
                assert!(!wanted(f, i).types.is_empty(), "{name}");
            }
        }
    }
}
