//! Requests that a user writes: one for the start of an alert, one for its end. A controller of a
//! network gets a rule by one, and loses it by the other.

use crate::alert::column_text;
use crate::clean;
use crate::limits::TEXT_MAX;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A request with names of columns in braces. Its first line is the method and the path.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestTemplate {
    pub(crate) method: String,
    path: Vec<TemplatePart>,
    body: Vec<TemplatePart>,
}

/// A part of a path or a body.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
enum TemplatePart {
    Text(String),
    Column(String),
}

impl RequestTemplate {
    const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

    /// Reads `METHOD PATH` and the body in the lines after it.
    pub(crate) fn parse(text: &str) -> Result<RequestTemplate, String> {
        let (first, body) = text.split_once('\n').unwrap_or((text, ""));
        let Some((method, path)) = first.trim().split_once(' ') else {
            return Err("its first line has to be a method and a path, as in POST /rules".into());
        };
        let path = path.trim();
        if !RequestTemplate::METHODS.contains(&method) {
            let all = RequestTemplate::METHODS.join(", ");
            return Err(format!("its first line has to begin with one of {all}"));
        }
        if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) {
            return Err("its path has to begin with `/` and to be of printable ASCII".into());
        }
        Ok(RequestTemplate { method: method.to_owned(), path: parts(path), body: parts(body) })
    }

    /// The path for an alert. Values are written as `%XX` where they are not letters or digits. A
    /// segment that would become `.` or `..` is refused: it names another resource (RFC 3986,
    /// section 5.2.4).
    pub(crate) fn path(&self, row: &Map<String, Value>) -> Result<String, String> {
        let path = fill(&self.path, row, &|value| {
            let mut out = String::new();
            for byte in value.bytes() {
                match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    true => out.push(char::from(byte)),
                    false => drop(write!(out, "%{byte:02X}")),
                }
            }
            out
        })?;
        let segments = path.split(['?', '#']).next().unwrap_or_default().split('/');
        match segments.into_iter().find(|one| [".", ".."].contains(one)) {
            Some(dots) => Err(format!("a segment of its path would be `{dots}`: {path}")),
            None => Ok(path),
        }
    }

    /// The body for an alert. Values are written as within a string of JSON.
    pub(crate) fn body(&self, row: &Map<String, Value>) -> Result<String, String> {
        fill(&self.body, row, &|value| {
            let quoted = Value::from(value).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        })
    }
}

/// Braces around letters, digits, `_` and `.` hold a column; others are those of JSON.
fn parts(text: &str) -> Vec<TemplatePart> {
    let (mut parts, mut rest, mut plain) = (Vec::new(), text, String::new());
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        let name = after[1..].split('}').next().unwrap_or_default();
        let is_column = !name.is_empty()
            && after.len() > name.len() + 1
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(&b));
        plain.push_str(before);
        if is_column {
            parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            parts.push(TemplatePart::Column(name.to_owned()));
            rest = &after[name.len() + 2..];
        } else {
            plain.push('{');
            rest = &after[1..];
        }
    }
    plain.push_str(rest);
    parts.push(TemplatePart::Text(plain));
    parts
}

fn fill(
    parts: &[TemplatePart],
    row: &Map<String, Value>,
    write: &dyn Fn(&str) -> String,
) -> Result<String, String> {
    let mut out = String::new();
    for part in parts {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Column(name) => {
                let value = row.get(name).and_then(column_text);
                let value = value.ok_or_else(|| format!("the alert has no value of {name}"))?;
                out.push_str(&write(&clean::line(&value, TEXT_MAX)));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: &str) -> Map<String, Value> {
        let row = serde_json::json!({"ip.src": "192.0.2.1", "n": 7, "name": value, "none": null});
        row.as_object().expect("an object").clone()
    }

    #[test]
    fn columns_are_filled_in_and_braces_of_json_stay() {
        let text =
            "POST /rules/{ip.src}?n={n}\n{\"m\": {\"src\": \"{ip.src}\"}, \"x\": {}, \"n\": {n}}\n";
        let template = RequestTemplate::parse(text).expect("a template");
        let row = row("");
        assert_eq!(template.path(&row).expect("filled"), "/rules/192.0.2.1?n=7");
        let body = template.body(&row).expect("filled");
        assert_eq!(body, "{\"m\": {\"src\": \"192.0.2.1\"}, \"x\": {}, \"n\": 7}\n");
    }

    #[test]
    fn values_of_strangers_name_no_other_resource() {
        let filled = |template: &str, value: &str| {
            let template = RequestTemplate::parse(template).expect("one");
            template.path(&row(value))
        };
        for dots in [".", ".."] {
            let refused = filled("DELETE /rules/{name}", dots).expect_err("another resource");
            assert!(refused.contains(&format!("`{dots}`")), "{refused}");
            filled("DELETE /rules/{name}/x", dots).expect_err("another resource");
            filled("DELETE /rules/{name}?now", dots).expect_err("another resource");
            assert_eq!(filled("PUT /a?n={name}", dots), Ok(format!("/a?n={dots}")));
            assert_eq!(filled("PUT /a/x-{name}", dots), Ok(format!("/a/x-{dots}")));
        }
        filled("PUT /a/.{name}", ".").expect_err("another resource");
        assert_eq!(filled("PUT /a/{name}", "..."), Ok("/a/...".to_owned()));
    }

    #[test]
    fn values_of_strangers_stay_within_their_place() {
        let template = RequestTemplate::parse("PUT /a/{name}\n{\"n\": \"{name}\"}").expect("one");
        let evil = "x\", \"admin\": \"/../b?c=d#\r\nX: y";
        let path = template.path(&row(evil)).expect("filled");
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/%-._~".contains(&b);
        assert!(path.bytes().all(plain) && path.matches('/').count() == 2, "{path}");
        let body: Value =
            serde_json::from_str(&template.body(&row(evil)).expect("filled")).expect("JSON");
        assert_eq!(body.as_object().map(Map::len), Some(1));
    }

    #[test]
    fn what_is_missing_is_named() {
        let template = RequestTemplate::parse("DELETE /{none}").expect("a template");
        assert_eq!(template.path(&row("")), Err("the alert has no value of none".to_owned()));
        for text in ["", "POST", "GET /x", "POST x", "POST /a b", "POST /\u{e4}"] {
            assert!(RequestTemplate::parse(text).is_err(), "{text}");
        }
    }
}
