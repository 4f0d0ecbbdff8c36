//! How messages speak of types and of pieces of the query.

use crate::diagnostic::Span;
use crate::foreign;
use crate::lex;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree};
use weir_packet::{fields, time};
use weir_plan::{Type, Value};

/// A type with its article: "an ip".
pub(super) fn a(ty: &Type) -> String {
    match ty {
        Type::Int | Type::Ip => format!("an {ty}"),
        Type::Bytes => "bytes".to_owned(),
        Type::Tuple(parts) => format!("a tuple of {}", parts.len()),
        _ => format!("a {ty}"),
    }
}

/// A set of values of a type.
pub(super) fn a_set(ty: &Type) -> String {
    match ty {
        Type::Ip => "a set of networks".to_owned(),
        _ => format!("a set of {ty}s"),
    }
}

/// A piece of the query, quoted; "this" if it is long.
pub(super) fn say(text: &str, span: Span) -> String {
    let piece = span.of(text);
    match piece.is_empty() || piece.contains('\n') || piece.chars().count() > 32 {
        true => "this".to_owned(),
        false => format!("`{piece}`"),
    }
}

/// A side of an operator: what is written there, and its type.
pub(super) struct Side<'a> {
    pub(super) tree: &'a TreeExpr,
    pub(super) ty: &'a Type,
}

impl Side<'_> {
    fn name(&self) -> &str {
        match self.tree.node.unbracketed() {
            Tree::Name(name) => name,
            _ => "",
        }
    }

    /// The time that was meant by a date without its `@`, which reads as a subtraction.
    fn date(&self) -> Option<String> {
        let Tree::Chain { first, rest } = self.tree.node.unbracketed() else { return None };
        let part = |e: &TreeExpr| match &e.node {
            Tree::Literal { text, .. } => Some(text.clone()),
            _ => None,
        };
        let parts = std::iter::once(first.as_ref()).chain(rest.iter().map(|(_, e)| e));
        let parts: Vec<String> = parts.map(part).collect::<Option<_>>()?;
        let date = format!("@{}", parts.join("-"));
        matches!(lex::literal(&date), Some(Value::Time(_))).then_some(date)
    }

    /// Whether it is the 0 or 1 that other tools have for false and true.
    fn is_flag(&self) -> bool {
        matches!(self.literal(), Some((Value::Int(0 | 1), _)))
    }

    fn literal(&self) -> Option<(&Value, &str)> {
        match self.tree.node.unbracketed() {
            Tree::Literal { value, text } => Some((value, text)),
            _ => None,
        }
    }
}

/// The likely meaning of a comparison of two types that do not compare.
pub(super) fn mismatch_help(a: &Side<'_>, b: &Side<'_>) -> Option<String> {
    one_way(a, b).or_else(|| one_way(b, a))
}

fn one_way(a: &Side<'_>, b: &Side<'_>) -> Option<String> {
    if let Some((Value::Str(s), _)) = b.literal() {
        if lex::literal(s).and_then(|v| v.ty()).as_ref() == Some(a.ty) {
            return Some(format!("write it without quotes: `{s}`"));
        }
        if *a.ty == Type::Time {
            return Some("a time is written `@2023-11-14T22:13:20Z`, or `@2023-11-14`".to_owned());
        }
        if let Some(help) = foreign::value(a.name(), s) {
            return Some(help);
        }
        if a.name() == "ip.proto" {
            let name = s.to_ascii_lowercase();
            return Some(match fields::by_name(&name) {
                Some(_) => format!("protocols are asked by their own name: `{name}`"),
                None => "protocols are asked by their own name: `tcp`, `udp`, `icmp`".to_owned(),
            });
        }
    }
    match (a.ty, b.ty) {
        (Type::Bool, Type::Int) if matches!(b.name(), "ip.proto" | "eth.type") => {
            Some(format!("`{}` alone asks for it", a.name())).filter(|_| !a.name().is_empty())
        }
        (Type::Time, Type::Int) if b.date().is_some() => {
            b.date().map(|date| format!("a time starts with `@`: `{date}`"))
        }
        (Type::Ip, Type::Int) => match a.name() {
            "ip.src" => Some("did you mean `sport`?".to_owned()),
            "ip.dst" => Some("did you mean `dport`?".to_owned()),
            _ => None,
        },
        (Type::Bool, Type::Int) if !a.name().is_empty() && b.is_flag() => {
            let not = matches!(b.literal(), Some((Value::Int(0), _)));
            Some(format!("write `{}{}`", if not { "not " } else { "" }, a.name()))
        }
        (Type::Bool, Type::Int) => {
            let port = format!("{}.dport", a.name());
            Some(match fields::by_name(&port) {
                Some(_) => format!("did you mean `{port}`?"),
                None if a.name() == "tcp.ack" => "did you mean `tcp.ackno`?".to_owned(),
                None => "a bool is asked by itself: `x`, or `not x`".to_owned(),
            })
        }
        (Type::Duration, Type::Int | Type::Float) => {
            b.literal().map(|(_, text)| format!("say the unit: `{text}s`"))
        }
        (Type::Time, Type::Duration) => {
            Some("a time less a time is a duration: `ts - first > 10s`".to_owned())
        }
        (Type::Time, Type::Int) => Some(match b.literal() {
            Some((Value::Int(n), text)) => match seconds(*n) {
                Some(time) => format!("{text} seconds after 1970 are written `@{time}`"),
                None => format!("`time_ns({text})` is the time of nanoseconds after 1970"),
            },
            _ => {
                let n = if b.name().is_empty() { "n" } else { b.name() };
                format!("`time_ns({n})` is the time of nanoseconds after 1970")
            }
        }),
        (Type::Str, Type::Bool) if a.name() == "protocol" && !b.name().is_empty() => {
            let alone = || Some(format!("`{}` alone asks for it", b.name()));
            foreign::value("protocol", b.name()).or_else(alone)
        }
        (Type::Bytes, Type::Str) => {
            b.literal().map(|(_, text)| format!("bytes are written `b{text}`"))
        }
        _ => None,
    }
}

/// The time that is so many seconds after 1970, if it is likely that seconds were meant: it lies
/// between 1990 and 2100.
fn seconds(n: i64) -> Option<String> {
    let ns = n.checked_mul(1_000_000_000)?;
    let (year, _, _) = time::date(ns);
    (1990..2100).contains(&year).then(|| time::rfc3339(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speaks_plainly() {
        assert_eq!(a(&Type::Ip), "an ip");
        assert_eq!(a(&Type::Tuple(vec![Type::Int, Type::Int])), "a tuple of 2");
        assert_eq!(say("where len", Span::new(6, 9)), "`len`");
        assert_eq!(say("a\nb", Span::new(0, 3)), "this");
    }
}
