//! Lists of alerts that are not to be reported: `RULE COLUMN=VALUE … until TIME # comment`.

use crate::limits::{SUPPRESSED_IF_MAX, SUPPRESSIONS_MAX};
use std::fmt;
use weir_packet::time::parse_rfc3339;
use weir_plan::{SuppressedIf, Suppression};

/// A mistake in a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSuppression {
    /// The number of the line, from 1.
    pub line: usize,
    /// The mistake, and what to write.
    pub cause: String,
}

impl fmt::Display for BadSuppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.cause)
    }
}

impl std::error::Error for BadSuppression {}

/// Reads a list, a line each; empty ones and comments are left out.
///
/// # Errors
/// With the first line that cannot be read.
pub fn suppressions(text: &str) -> Result<Vec<Suppression>, BadSuppression> {
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let bad = |cause: String| BadSuppression { line: i + 1, cause };
        all.extend(suppression(line).map_err(bad)?);
        if all.len() > SUPPRESSIONS_MAX {
            return Err(bad(format!("a list has at most {SUPPRESSIONS_MAX} lines")));
        }
    }
    Ok(all)
}

/// Reads a line; `None` if there is nothing but a comment.
///
/// # Errors
/// With what is wrong.
pub fn suppression(line: &str) -> Result<Option<Suppression>, String> {
    let words = words(line)?;
    let Some((rule, rest)) = words.split_first() else { return Ok(None) };
    let rule = match rule {
        Word { text, quoted: false, .. } if text == "*" => None,
        Word { value: Some(_), text, .. } => {
            return Err(format!("`{text}=…` stands before the rule: `RULE {text}=…`, or `* …`"));
        }
        Word { text, .. } => Some(text.clone()),
    };
    let mut out = Suppression { rule, conditions: Vec::new(), until: None };
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match &word.value {
            Some(_) if word.quoted || !is_name(&word.text) => {
                return Err(format!("`{}` is not the name of a column", word.text));
            }
            Some((value, quoted)) => {
                let (column, value, quoted) = (word.text.clone(), value.clone(), *quoted);
                let condition = SuppressedIf { column, value, quoted };
                if !quoted && condition.value.contains('/') && looks_like_network(&condition) {
                    return Err(format!("`{}` is no network", condition.value));
                }
                out.conditions.push(condition);
            }
            None if word.text == "until" && !word.quoted => {
                let time = rest.next().map_or("", |time| time.text.as_str());
                if out.until.is_some() {
                    return Err("`until` is given twice".to_owned());
                }
                out.until = Some(parse_rfc3339(time.trim_start_matches('@')).ok_or_else(|| {
                    format!("`until {time}`: a time is written 2026-11-21T05:51:15Z")
                })?);
            }
            None => {
                return Err(format!("`{}` is neither COLUMN=VALUE nor `until TIME`", word.text));
            }
        }
    }
    if out.conditions.len() > SUPPRESSED_IF_MAX {
        return Err(format!("a line has at most {SUPPRESSED_IF_MAX} conditions"));
    }
    Ok(Some(out))
}

/// Whether a column can have this name.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    !text.is_empty() && text.chars().all(plain)
}

/// Whether a value was meant as a network, and is none.
fn looks_like_network(condition: &SuppressedIf) -> bool {
    let address = condition.value.split('/').next().unwrap_or("");
    address.parse::<std::net::IpAddr>().is_ok() && condition.network().is_none()
}

/// A word of a line, and what stands after a `=` in it.
struct Word {
    text: String,
    quoted: bool,
    /// The value, and whether it stood in quotes.
    value: Option<(String, bool)>,
}

/// The words of a line up to its comment.
fn words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (text, quoted, after) = piece(rest, true)?;
        rest = after;
        let mut value = None;
        if let Some(after) = rest.strip_prefix('=') {
            let (text, quoted, after) = piece(after, false)?;
            if text.is_empty() && !quoted {
                return Err("a value is missing after `=`; an empty text is `\"\"`".to_owned());
            }
            (value, rest) = (Some((text, quoted)), after);
        }
        if !rest.is_empty() && !rest.starts_with(|c: char| c.is_whitespace() || c == '#') {
            return Err(format!("a blank is missing before `{}`", first(rest)));
        }
        words.push(Word { text, quoted, value });
        rest = rest.trim_start();
    }
    Ok(words)
}

fn first(text: &str) -> String {
    text.chars().take(10).collect()
}

/// The text that stands first, in quotes or up to a blank, whether it is in quotes, and the rest.
/// A name also ends before `=`.
fn piece(text: &str, is_name: bool) -> Result<(String, bool, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let ends = |c: char| c.is_whitespace() || matches!(c, '#' | '"') || is_name && c == '=';
        let end = text.find(ends).unwrap_or(text.len());
        return Ok((text[..end].to_owned(), false, &text[end..]));
    };
    let (mut out, mut rest) = (String::new(), quoted);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Ok((out, true, rest)),
            '\\' => {
                let (len, c) = escape(rest)?;
                out.push(c);
                rest = &rest[len..];
            }
            c => out.push(c),
        }
    }
    Err("a quote is never closed".to_owned())
}

/// The escape after a backslash: its length, and the character that it is.
fn escape(text: &str) -> Result<(usize, char), String> {
    let bad = || format!("`\\{}` means nothing: write \\\" \\\\ \\n \\r \\t \\u{{…}}", first(text));
    Ok(match text.chars().next().ok_or_else(bad)? {
        c @ ('"' | '\\') => (1, c),
        'n' => (1, '\n'),
        'r' => (1, '\r'),
        't' => (1, '\t'),
        'u' => {
            let hex = text[1..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let (hex, _) = hex.filter(|(hex, _)| (1..=6).contains(&hex.len())).ok_or_else(bad)?;
            let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
            (hex.len() + 3, code.ok_or_else(bad)?)
        }
        _ => return Err(bad()),
    })
}

/// Reads any bytes as a list; each line that is one is the same when it is written and read again.
#[cfg(any(test, fuzzing))]
pub fn fuzz_suppressions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(all) = suppressions(text) else { return };
    for one in all {
        let again = suppression(&one.to_string());
        assert_eq!(again, Ok(Some(one)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Suppression {
        suppression(line).expect("a line").expect("more than a comment")
    }

    #[test]
    fn lines_say_what_is_not_reported() {
        let one = read("syn_flood server=192.0.2.0/24 port=80 until 2026-11-21T05:51:15Z # ours");
        assert_eq!(one.rule.as_deref(), Some("syn_flood"));
        let conditions: Vec<_> =
            one.conditions.iter().map(|c| (c.column.as_str(), c.value.as_str())).collect();
        assert_eq!(conditions, [("server", "192.0.2.0/24"), ("port", "80")]);
        assert_eq!(one.until, Some(1_795_240_275_000_000_000));
        assert_eq!(
            one.to_string(),
            "syn_flood server=192.0.2.0/24 port=80 until 2026-11-21T05:51:15Z"
        );
        assert_eq!(read("* ip.src=10.0.0.1#x").to_string(), "* ip.src=10.0.0.1");
        let quoted = read(r#""a rule" dns.qname="a \"b\" \n\u{e9}#=" x="80""#);
        assert_eq!(quoted.rule.as_deref(), Some("a rule"));
        assert_eq!(quoted.conditions[0].value, "a \"b\" \n\u{e9}#=");
        assert!(quoted.conditions[1].quoted);
        assert_eq!(read(&quoted.to_string()), quoted);
        assert_eq!(suppression("  # nothing"), Ok(None));
        let list = suppressions("# ours\n\n* a=1\nx\n").expect("a list");
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (line, cause) in [
            ("server=192.0.2.1", "stands before the rule"),
            ("x server", "neither COLUMN=VALUE nor"),
            ("x server=", "a value is missing"),
            ("x server=192.0.2.0/33", "is no network"),
            ("x until tomorrow", "a time is written"),
            ("x until", "a time is written"),
            ("x until 2026-01-01T00:00:00Z until 2026-01-01T00:00:00Z", "given twice"),
            ("x a=\"b", "never closed"),
            ("x a=\"b\"c=d", "a blank is missing"),
            ("x a=\"\\q\"", "means nothing"),
            ("x a=\"\\u{110000}\"", "means nothing"),
            ("x \"a b\"=c", "not the name of a column"),
            ("x =c", "not the name of a column"),
        ] {
            let told = suppressions(&format!("# first\n{line}\n")).expect_err(line);
            assert!(told.line == 2 && told.cause.contains(cause), "{line}: {told}");
        }
    }

    #[test]
    fn damaged_lines_are_refused_or_read_as_others() {
        let text =
            "syn_flood server=192.0.2.0/24 a=\"x\\u{e9} \\\"\" until 2026-11-21T05:51:15Z # o";
        fuzz_suppressions(text.as_bytes());
        for at in 0..text.len() {
            fuzz_suppressions(&text.as_bytes()[..at]);
            for byte in *b"\"\\=# u{*\n\xff" {
                let mut damaged = text.as_bytes().to_vec();
                damaged[at] = byte;
                fuzz_suppressions(&damaged);
            }
        }
    }
}
