//! Alerts.

use super::expr;
use super::text::list;
use crate::alert::{Alert, TextPart};
use crate::limits::{ALERT_KEYS_MAX, ALERT_STORM_KEYS};
use crate::stage::Schema;
use crate::value::Value;

/// As a query writes it.
pub(super) fn alert(a: &Alert, input: &Schema) -> String {
    let part = |part: &TextPart| match part {
        TextPart::Text(text) => text.replace('{', "{{").replace('}', "}}"),
        TextPart::Value(e) => format!("{{{}}}", expr(e, input, &[])),
    };
    let whole = |parts: &[TextPart]| parts.iter().map(part).collect::<String>();
    let mut out = format!("alert {:?} severity {}", whole(&a.text), a.severity.name());
    for (word, text) in [("category", &a.category), ("technique", &a.technique)] {
        out += &text.as_ref().map_or_else(String::new, |text| format!(" {word} {text:?}"));
    }
    if !a.next.is_empty() {
        out += &format!(" next {:?}", whole(&a.next));
    }
    if !a.keys.is_empty() {
        out += &format!(" key {}", keys(a));
    }
    out += &format!(" hold {}", Value::Duration(a.hold_ns));
    if let Some(ns) = a.repeat_ns {
        out += &format!(" repeat {}", Value::Duration(ns));
    }
    if a.storm_keys != ALERT_STORM_KEYS {
        out += &format!(" storm {}", a.storm_keys);
    }
    if a.max_keys != ALERT_KEYS_MAX {
        out += &format!(" max {}", a.max_keys);
    }
    out
}

/// The state that it holds.
pub(super) fn state(a: &Alert) -> String {
    let per = match a.keys.is_empty() {
        true => "one alert".to_owned(),
        false => format!("one alert per {}", keys(a)),
    };
    let over = match a.over_ns {
        0 => "its last row".to_owned(),
        ns => format!("the end of its last window of {}", Value::Duration(ns)),
    };
    let (hold, max) = (Value::Duration(a.hold_ns), a.max_keys);
    format!(
        "{per}, until {hold} after {over}; at most {max} that fire, ending the one asserted \
         longest ago beyond, and counting it as evicted"
    )
}

fn keys(a: &Alert) -> String {
    list(&a.keys, |(name, _)| name.clone())
}
