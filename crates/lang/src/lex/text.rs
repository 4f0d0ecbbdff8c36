//! Strings, bytes and times.

use super::literal::{LiteralRead, word};
use crate::diagnostic::{Code, Diagnostic, Span};
use weir_packet::time::parse_rfc3339;
use weir_plan::Value;

/// Reads the string that `text` starts with, from its quote.
pub(super) fn string(text: &str) -> LiteralRead {
    let (len, read) = quoted(text, 0);
    let value = read.and_then(|parts| {
        let mut out = String::new();
        for part in parts {
            match part {
                QuotedPiece::Char(c) => out.push(c),
                QuotedPiece::Byte(b, _) if b.is_ascii() => out.push(char::from(b)),
                QuotedPiece::Byte(b, span) => {
                    let message = format!("`\\x{b:02x}` is not a character by itself");
                    let help = format!("write `\\u{{{b:x}}}` for the character, or `b\"...\"`");
                    return Err(Diagnostic::new(Code::BadEscape, span, message).help(help));
                }
            }
        }
        Ok(Value::Str(out.into()))
    });
    (len, value)
}

/// Reads the bytes that `text` starts with, from the `b` before the quote.
pub(super) fn bytes(text: &str) -> LiteralRead {
    let (len, read) = quoted(text, 1);
    let value = read.map(|parts| {
        let mut out = Vec::new();
        for part in parts {
            match part {
                QuotedPiece::Char(c) => {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes())
                }
                QuotedPiece::Byte(b, _) => out.push(b),
            }
        }
        Value::Bytes(out.into())
    });
    (len, value)
}

/// A piece of what stands between quotes.
enum QuotedPiece {
    Char(char),
    /// `\xNN`, and where.
    Byte(u8, Span),
}

/// Reads from the quote at byte `open` to the closing one, on the same line.
fn quoted(text: &str, open: usize) -> (usize, Result<Vec<QuotedPiece>, Diagnostic>) {
    let mut parts = Vec::new();
    let mut fault = None;
    let mut at = open + 1;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => {
                let read = fault.map_or(Ok(parts), Err);
                return (at + 1, read);
            }
            '\n' => break,
            '\\' => {
                let (len, part) = escape(&text[at..]);
                match part {
                    Some(QuotedPiece::Byte(b, _)) => {
                        parts.push(QuotedPiece::Byte(b, Span::new(at, at + len)))
                    }
                    Some(part) => parts.push(part),
                    None => fault = fault.or_else(|| Some(bad_escape(text, at, len))),
                }
                at += len;
            }
            c => {
                parts.push(QuotedPiece::Char(c));
                at += c.len_utf8();
            }
        }
    }
    let end = text[..at].trim_end().len().max(open + 1);
    let d = Diagnostic::new(Code::OpenString, Span::new(open, end), "this string is never closed")
        .label("no `\"` before the end of the line")
        .help("a line break in a string is written `\\n`, a quote `\\\"`");
    (end, Err(d))
}

/// Reads the escape that `text` starts with. `None` for one that stands for nothing; the length is
/// then what to underline.
fn escape(text: &str) -> (usize, Option<QuotedPiece>) {
    let part = |c: char| (2, Some(QuotedPiece::Char(c)));
    match text[1..].chars().next() {
        Some('n') => part('\n'),
        Some('t') => part('\t'),
        Some('r') => part('\r'),
        Some('0') => part('\0'),
        Some(c @ ('"' | '\\')) => part(c),
        Some('x') => match text.get(2..4).map(|hex| u8::from_str_radix(hex, 16)) {
            Some(Ok(b)) if !text[2..].starts_with('+') => {
                (4, Some(QuotedPiece::Byte(b, Span::NOWHERE)))
            }
            _ => (2, None),
        },
        Some('u') => {
            let hex = text[2..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let hex = hex.map(|(hex, _)| hex).filter(|h| (1..=6).contains(&h.len()));
            let code = hex.and_then(|h| u32::from_str_radix(h.trim_start_matches('+'), 16).ok());
            match (hex, code.and_then(char::from_u32)) {
                (Some(hex), Some(c)) => (4 + hex.len(), Some(QuotedPiece::Char(c))),
                _ => (2, None),
            }
        }
        Some('\n') | None => (1, None),
        Some(c) => (1 + c.len_utf8(), None),
    }
}

fn bad_escape(text: &str, at: usize, len: usize) -> Diagnostic {
    let message = format!("`{}` means nothing in a string", &text[at..at + len]);
    Diagnostic::new(Code::BadEscape, Span::new(at, at + len), message)
        .help("a backslash itself is written `\\\\`")
        .note("escapes: \\\" \\\\ \\n \\t \\r \\0 \\xNN \\u{NNNN}")
}

/// Whether `text` starts with a date and a time of day that lack their `@`.
pub(super) fn is_bare_time(text: &str) -> bool {
    let shape = b"dddd-dd-ddTdd:".iter();
    let mut bytes = text.bytes();
    shape.copied().all(|wanted| match (wanted, bytes.next()) {
        (b'd', Some(c)) => c.is_ascii_digit(),
        (wanted, found) => found == Some(wanted),
    })
}

/// Refuses such a time.
pub(super) fn bare_time(text: &str) -> LiteralRead {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !":-+.".contains(c));
    let whole = text[..end.unwrap_or(text.len())].trim_end_matches('.');
    let message = format!("the time `{whole}` lacks its `@`");
    let d = Diagnostic::new(Code::BadTime, Span::new(0, whole.len()), message);
    (whole.len(), Err(d.help(format!("write `@{whole}`"))))
}

/// Reads the time that `text` starts with, from its `@`. The next character is a digit.
pub(super) fn time(text: &str) -> LiteralRead {
    let body = &text[1..];
    let mut len = span_of(body, |c| c.is_ascii_digit() || c == '-').min(10);
    if body[len..].starts_with(['T', 't']) {
        len += 1 + span_of(&body[len + 1..], |c| c.is_ascii_digit() || c == ':');
        if body[len..].starts_with('.') && body[len + 1..].starts_with(|c: char| c.is_ascii_digit())
        {
            len += 1 + span_of(&body[len + 1..], |c| c.is_ascii_digit());
        }
        if body[len..].starts_with(['+', '-']) {
            len += 1 + span_of(&body[len + 1..], |c| c.is_ascii_digit() || c == ':').min(5);
        }
    }
    len += word(&body[len..]);
    let (body, whole) = (&body[..len], &text[..len + 1]);
    let value = parse_rfc3339(body).map(Value::Time).ok_or_else(|| {
        let message = format!("`{whole}` is not a time");
        let d = Diagnostic::new(Code::BadTime, Span::new(0, whole.len()), message);
        match parse_rfc3339(&format!("{body}Z")).or(parse_rfc3339(&format!("{body}:00Z"))) {
            Some(_) => d.help(format!(
                "say which zone: `{whole}{}Z` is UTC",
                if parse_rfc3339(&format!("{body}Z")).is_some() { "" } else { ":00" }
            )),
            None => d.help("a time is written `@2023-11-14T22:13:20Z`, or `@2023-11-14`"),
        }
    });
    (whole.len(), value)
}

fn span_of(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings() {
        let check = |text: &str, s: &str| {
            assert_eq!(string(text), (text.len(), Ok(Value::Str(s.into()))), "{text}");
        };
        check(r#""""#, "");
        check(r#""a \"b\" \\ \n\t\x41\u{e9}\u{1F600}""#, "a \"b\" \\ \n\tAé😀");
        check("\"ü # |\"", "ü # |");
        let raw = "b\"\\xff\\x00a\"";
        assert_eq!(bytes(raw), (raw.len(), Ok(Value::Bytes([0xff, 0, b'a'].into()))));
    }

    #[test]
    fn string_faults() {
        let check = |text: &str, code: Code, place: &str| {
            let (len, read) = string(text);
            let d = read.expect_err(text);
            assert_eq!((d.code, d.span.of(text)), (code, place), "{text}");
            assert!(len <= text.len() && text.is_char_boundary(len));
        };
        check("\"abc", Code::OpenString, "\"abc");
        check("\"abc \nx\"", Code::OpenString, "\"abc");
        check("\"", Code::OpenString, "\"");
        check("\"a\\", Code::OpenString, "\"a\\");
        check(r#""a\qb""#, Code::BadEscape, r"\q");
        check(r#""\xff""#, Code::BadEscape, r"\xff");
        check(r#""\xz""#, Code::BadEscape, r"\x");
        check(r#""\u{110000}""#, Code::BadEscape, r"\u");
        check("\"\\é\"", Code::BadEscape, "\\é");
    }

    #[test]
    fn times() {
        let check = |text: &str, len: usize, shown: &str| {
            let (n, read) = time(text);
            assert_eq!((n, read.expect(text).to_string().as_str()), (len, shown), "{text}");
        };
        check("@2023-11-14T22:13:20Z", 21, "2023-11-14T22:13:20Z");
        check("@2023-11-14", 11, "2023-11-14T00:00:00Z");
        check("@2023-11-14..@2023-11-15", 11, "2023-11-14T00:00:00Z");
        check("@2023-11-14-5s", 11, "2023-11-14T00:00:00Z");
        check("@2023-11-14T22:13:20.5Z-1s", 23, "2023-11-14T22:13:20.500Z");
        check("@2023-11-15T00:13:20+02:00", 26, "2023-11-14T22:13:20Z");
        for bad in ["@2023", "@2023-13-01", "@2023-11-14T22:13:20", "@2023-11-14T22:13", "@1-1-1é"]
        {
            let d = time(bad).1.expect_err(bad);
            assert_eq!(d.code, Code::BadTime, "{bad}");
        }
        let help = time("@2023-11-14T22:13").1.expect_err("no zone").help;
        assert_eq!(help.as_deref(), Some("say which zone: `@2023-11-14T22:13:00Z` is UTC"));
    }
}
