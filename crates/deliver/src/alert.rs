//! An alert on its way to a target: a row with the columns of `alert`, as a line of JSON.

use crate::clean;
use crate::limits::{EVIDENCE_MAX, TEXT_MAX};
use serde_json::{Map, Value};
use std::time::Instant;
use weir_base::alert::{AlertSeverity, AlertState};

/// An alert that waits for a target. Its texts are cleaned; its JSON is as it came.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Alert {
    /// The same in each try, and of no other alert.
    pub(crate) id: String,
    pub(crate) json: String,
    pub(crate) rule: String,
    pub(crate) state: AlertState,
    pub(crate) severity: AlertSeverity,
    pub(crate) message: String,
    /// Empty where the rule has none.
    pub(crate) key: String,
    /// The time of its row, and those of the first and the latest row, as RFC 3339.
    pub(crate) ts: String,
    pub(crate) first: String,
    pub(crate) last: String,
    pub(crate) came: Instant,
}

impl Alert {
    /// Reads a line; `None` if it is none of an alert.
    pub(crate) fn parse(line: &str, id: String, came: Instant) -> Option<Alert> {
        let row: Map<String, Value> = serde_json::from_str(line).ok()?;
        let text = |name: &str| match row.get(name) {
            Some(Value::String(text)) => clean::line(text, TEXT_MAX),
            _ => String::new(),
        };
        let ts = text("ts");
        let or_ts = |time: String| if time.is_empty() { ts.clone() } else { time };
        Some(Alert {
            id,
            json: line.to_owned(),
            rule: text("alert.rule"),
            state: AlertState::of_name(&text("alert.state"))?,
            severity: AlertSeverity::of_name(&text("alert.severity"))?,
            message: text("alert.message"),
            key: text("alert.key"),
            first: or_ts(text("alert.first")),
            last: or_ts(text("alert.last")),
            ts,
            came,
        })
    }

    /// Its columns, by name.
    pub(crate) fn columns(&self) -> Map<String, Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// The columns of its key, with their values, cleaned.
    pub(crate) fn key_columns(&self) -> Vec<(String, String)> {
        let row = self.columns();
        let whole = row.get("alert.key").and_then(Value::as_str).unwrap_or_default();
        let known = |name: String| {
            let text = column_text(row.get(&name)?)?;
            Some((name, clean::line(&text, TEXT_MAX)))
        };
        key_names(whole).into_iter().filter_map(known).collect()
    }

    /// Why it came, by name: what the rule measured, other columns of the row, and the line that
    /// suppresses it. Texts are cleaned.
    pub(crate) fn evidence(&self) -> Vec<(String, String)> {
        let row = self.columns();
        let of = |name: &str| Some(clean::line(&column_text(row.get(name)?)?, TEXT_MAX));
        let keys = key_names(row.get("alert.key").and_then(Value::as_str).unwrap_or_default());
        let field = of("alert.field");
        let measured = field.as_ref().zip(of("alert.value")).map(|(field, value)| {
            let more = [("threshold", "alert.threshold"), ("peak", "alert.peak")];
            let more = more.into_iter().filter_map(|(word, name)| Some((word, of(name)?)));
            more.fold(format!("{field} {value}"), |text, (word, n)| format!("{text}, {word} {n}"))
        });
        let is_said = |name: &String| {
            let known = ["ts", "_pipeline"].contains(&name.as_str()) || name.starts_with("alert.");
            known || keys.contains(name) || field.as_ref() == Some(name)
        };
        let others = row.keys().filter(|name| !is_said(name)).take(EVIDENCE_MAX);
        let others = others.filter_map(|name| Some((clean::line(name, TEXT_MAX), of(name)?)));
        let named = |name: &str, text: Option<String>| text.map(|text| (name.to_owned(), text));
        let first = named("measured", measured).into_iter();
        first.chain(others).chain(named("suppress", of("alert.suppress"))).collect()
    }

    /// A line for people: `HIGH syn_flood started: 716 SYNs to 192.0.2.1`.
    pub(crate) fn headline(&self) -> String {
        let severity = self.severity.name().to_uppercase();
        format!("{severity} {} {}: {}", self.rule, self.state.words(), self.message)
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.json.len() + self.message.len() + self.key.len() + 512
    }
}

/// The value of a column as text; `None` where it is absent.
pub(crate) fn column_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The names in a key: `server=192.0.2.1 name="a b"` has `server` and `name`.
fn key_names(key: &str) -> Vec<String> {
    let (mut names, mut rest) = (Vec::new(), key.trim_start());
    while let Some((name, value)) = rest.split_once('=') {
        names.push(name.to_owned());
        rest = after_value(value).trim_start();
    }
    names
}

/// The text after a value, which may stand in quotes.
fn after_value(text: &str) -> &str {
    if !text.starts_with('"') {
        return text.find(' ').map_or("", |at| &text[at..]);
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock;
    use serde_json::json;

    /// The row of an alert whose message is from a stranger.
    pub(crate) fn row(state: &str, severity: &str, message: &str) -> String {
        let row = serde_json::json!({
            "ts": "2026-11-21T05:51:15.123456789Z",
            "alert.rule": "syn_flood",
            "alert.state": state,
            "alert.severity": severity,
            "alert.message": message,
            "alert.key": "server=198.51.100.2 name=\"a \\\" b\"",
            "alert.first": "2026-11-21T05:51:14Z",
            "alert.last": "2026-11-21T05:51:15Z",
            "server": "198.51.100.2",
            "name": "a \" b",
            "syns": 716,
        });
        row.to_string()
    }

    pub(crate) fn alert(state: &str, severity: &str, message: &str) -> Alert {
        let row = row(state, severity, message);
        Alert::parse(&row, "run-1".to_owned(), clock::now()).expect("an alert")
    }

    #[test]
    fn only_rows_of_alerts_are_alerts() {
        let parse = |line: &str| Alert::parse(line, String::new(), clock::now());
        for line in ["", "x", "[]", "{}", "{\"alert.state\":\"start\"}", "{\"alert.state\":1}"] {
            assert_eq!(parse(line), None, "{line}");
        }
        assert_eq!(parse(&row("begun", "high", "")), None);
        assert_eq!(parse(&row("start", "grave", "")), None);
        assert!(parse(&row("open", "info", "")).is_some());
    }

    #[test]
    fn evidence_is_what_was_measured_and_further_columns() {
        let of = |more: Value| {
            let mut row: Map<String, Value> =
                serde_json::from_str(&row("start", "high", "m")).expect("a row");
            row.extend(more.as_object().expect("an object").clone());
            let line = Value::from(row).to_string();
            Alert::parse(&line, String::new(), clock::now()).expect("an alert").evidence()
        };
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(of(json!({})), [pair("syns", "716")]);
        let whole = of(json!({
            "alert.field": "syns", "alert.value": 716.0, "alert.threshold": 100.0,
            "alert.peak": 812.5, "alert.suppress": "syn_flood server=198.51.100.2",
            "none": null, "note": "a\r\nb",
        }));
        let expected = [
            pair("measured", "syns 716.0, threshold 100.0, peak 812.5"),
            pair("note", "a\u{fffd}\u{fffd}b"),
            pair("suppress", "syn_flood server=198.51.100.2"),
        ];
        assert_eq!(whole, expected);
        let many: Map<String, Value> = (0..40).map(|n| (format!("c{n}"), n.into())).collect();
        assert_eq!(of(many.into()).len(), EVIDENCE_MAX);
    }

    #[test]
    fn texts_are_cleaned_and_the_json_is_not_changed() {
        let alert = alert("start", "high", "a\r\n.\u{202e}");
        assert_eq!(alert.message, "a\u{fffd}\u{fffd}.\u{fffd}");
        assert!(alert.json.contains("a\\r\\n"));
        assert_eq!(alert.headline(), "HIGH syn_flood started: a\u{fffd}\u{fffd}.\u{fffd}");
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let key = [pair("server", "198.51.100.2"), pair("name", "a \" b")];
        assert_eq!(alert.key_columns(), key);
    }

    #[test]
    fn keys_are_taken_apart() {
        for (key, names) in [
            ("", &[][..]),
            ("a=1", &["a"]),
            ("a=1 b=\"x y=z\" c=", &["a", "b", "c"]),
            ("a=\"\\\"\" b=2", &["a", "b"]),
            ("a=\"unended", &["a"]),
            ("nothing", &[]),
        ] {
            assert_eq!(key_names(key), names, "{key}");
        }
    }
}
