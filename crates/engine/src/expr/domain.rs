//! Which part of a domain name somebody registered, by the public suffix list.

use psl::{Info, Psl};
use std::borrow::Cow;
use std::ops::Range;

/// Where the registered domain of a name is: its public suffix and the label before it. `None`
/// where there is no such label, and of what is no domain name.
pub(super) fn registered(name: &[u8]) -> Option<Range<usize>> {
    let name = match last_dot(name) {
        Some(dot) if dot + 1 == name.len() => &name[..dot],
        _ => name,
    };
    let lower = match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    let labels = || Labels { rest: Some(&lower) };
    let top = labels().next()?;
    if labels().any(|label| label.is_empty()) || top.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let Info { len, .. } = psl::List.find(labels());
    let before = name.get(..name.len().checked_sub(len + 1)?)?;
    let start = last_dot(before).map_or(0, |dot| dot + 1);
    Some(start..name.len())
}

/// The labels of a name, the last one first.
struct Labels<'a> {
    rest: Option<&'a [u8]>,
}

impl<'a> Iterator for Labels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let name = self.rest?;
        let dot = last_dot(name);
        self.rest = dot.map(|dot| &name[..dot]);
        Some(&name[dot.map_or(0, |dot| dot + 1)..])
    }
}

/// Where the last dot is that parts two labels: one after a backslash is part of a label, unless
/// that backslash itself comes after another.
fn last_dot(name: &[u8]) -> Option<usize> {
    let parts = |dot: &usize| {
        let slashes = name[..*dot].iter().rev().take_while(|b| **b == b'\\').count();
        name[*dot] == b'.' && slashes.is_multiple_of(2)
    };
    (0..name.len()).rev().find(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_label_comes_before_the_public_suffix() {
        let long = format!("{}co.uk", "a.".repeat(2000));
        for (name, expected) in [
            ("www.example.com", Some("example.com")),
            ("example.com", Some("example.com")),
            ("WWW.Example.CoM.", Some("Example.CoM")),
            ("com", None),
            ("a.b.co.uk", Some("b.co.uk")),
            ("B.CO.UK", Some("B.CO.UK")),
            ("co.uk", None),
            // A rule with a star, and an exception to it.
            ("a.foo.ck", Some("a.foo.ck")),
            ("foo.ck", None),
            ("a.www.ck", Some("www.ck")),
            ("a.b.kobe.jp", Some("a.b.kobe.jp")),
            ("a.city.kobe.jp", Some("city.kobe.jp")),
            // A suffix of a company.
            ("x.y.github.io", Some("y.github.io")),
            // One that the list does not know.
            ("x.printer.local", Some("printer.local")),
            ("local", None),
            ("1.0.0.127.in-addr.arpa", Some("127.in-addr.arpa")),
            ("2.0.8.b.d.0.1.0.0.2.ip6.arpa", Some("2.ip6.arpa")),
            ("a.xn--55qx5d.cn", Some("a.xn--55qx5d.cn")),
            // Dots within labels.
            (r"a\.b.co.uk", Some(r"a\.b.co.uk")),
            (r"x.a\\.co.uk", Some(r"a\\.co.uk")),
            (r"b.co\.uk", Some(r"b.co\.uk")),
            (r"x.b.co\.uk", Some(r"b.co\.uk")),
            (r"x.com\.", Some(r"x.com\.")),
            // No names.
            ("", None),
            (".", None),
            ("..", None),
            ("a..com", None),
            (".a.com", None),
            ("a.com..", None),
            ("192.0.2.1", None),
            ("1", None),
            (&long, Some("a.co.uk")),
        ] {
            let found = registered(name.as_bytes()).map(|part| &name[part]);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn any_bytes_have_a_part_or_none() {
        let mut state = 1u64;
        for length in 0..2000 {
            let bytes: Vec<u8> = (0..length % 40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    b".\\.ukcoUK\xff\0"[(state >> 33) as usize % 11]
                })
                .collect();
            if let Some(part) = registered(&bytes) {
                assert!(part.start < part.end && part.end <= bytes.len(), "{bytes:?}");
                assert_eq!(registered(&bytes[part.clone()]), Some(0..part.len()), "{bytes:?}");
            }
        }
    }
}
