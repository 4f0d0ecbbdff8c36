//! The findings of detectors: alerts, by rule.

use crate::limits::{FINDINGS_MAX, RULES_MAX};
use std::collections::BTreeMap;
use weir_base::alert::AlertSeverity;
use weir_plan::{Alert, Schema, Value};

/// Alerts of one key of a rule.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: AlertSeverity,
    pub(crate) message: String,
    /// How often it began.
    pub(crate) begun: u64,
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
    /// The measured value, and the threshold that it was compared with.
    pub(crate) measured: Option<Measured>,
    /// Names and values of what the row says beside the alert.
    pub(crate) evidence: Vec<(String, Value)>,
    /// The line that suppresses it.
    pub(crate) suppress: String,
}

/// The values that an alert compared.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Measured {
    pub(crate) field: String,
    pub(crate) peak: f64,
    pub(crate) threshold: f64,
}

/// The findings of a rule.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Rule {
    pub(crate) severity: AlertSeverity,
    findings: BTreeMap<String, Finding>,
    /// Keys in the order in which they came.
    order: Vec<String>,
    /// Alerts of further keys.
    pub(crate) further: u64,
}

impl Rule {
    /// The findings that are shown, in the order in which they began.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.order.iter().filter_map(|key| self.findings.get(key))
    }
}

/// The findings of all rules.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Findings {
    rules: BTreeMap<String, Rule>,
    /// Alerts of further rules.
    pub(crate) further: u64,
}

/// Whether rows of these columns are alerts.
pub(crate) fn are_alerts(schema: &Schema) -> bool {
    Alert::is_of(schema)
}

/// A row of an alert, by the names of its columns.
struct AlertRow<'a> {
    schema: &'a Schema,
    values: &'a [Value],
}

impl AlertRow<'_> {
    fn value(&self, name: &str) -> &Value {
        self.schema.position(name).and_then(|at| self.values.get(at)).unwrap_or(&Value::Absent)
    }

    fn text(&self, name: &str) -> String {
        if let Value::Str(text) = self.value(name) { text.to_string() } else { String::new() }
    }

    fn time(&self, name: &str) -> Option<i64> {
        if let Value::Time(ns) = self.value(name) { Some(*ns) } else { None }
    }

    fn float(&self, name: &str) -> Option<f64> {
        if let Value::Float(n) = self.value(name) { Some(*n) } else { None }
    }

    fn measured(&self) -> Option<Measured> {
        let (peak, threshold) = (self.float("alert.peak")?, self.float("alert.threshold")?);
        Some(Measured { field: self.text("alert.field"), peak, threshold })
    }

    fn evidence(&self) -> Vec<(String, Value)> {
        let columns = self.schema.columns.iter().zip(self.values);
        let own = columns.filter(|(c, _)| c.name != "ts" && !Alert::makes(&c.name));
        own.map(|(c, value)| (c.name.clone(), value.clone())).collect()
    }

    fn finding(&self) -> Finding {
        Finding {
            severity: AlertSeverity::of_name(&self.text("alert.severity"))
                .unwrap_or(AlertSeverity::Medium),
            message: self.text("alert.message"),
            begun: 0,
            first: self.time("alert.first"),
            last: self.time("alert.last"),
            measured: self.measured(),
            evidence: self.evidence(),
            suppress: self.text("alert.suppress"),
        }
    }
}

impl Findings {
    /// Takes a row of an alert. Rows that end an alert, or say at the end that it goes on, are
    /// those of its peak, and replace what was known.
    pub(crate) fn add(&mut self, schema: &Schema, values: &[Value]) {
        let row = AlertRow { schema, values };
        let (rule, key) = (row.text("alert.rule"), row.text("alert.key"));
        let begins = u64::from(row.text("alert.state") == "start");
        if self.rules.len() >= RULES_MAX && !self.rules.contains_key(&rule) {
            self.further += begins;
            return;
        }
        let found = row.finding();
        let rule = self.rules.entry(rule).or_insert_with(|| Rule {
            severity: found.severity,
            findings: BTreeMap::new(),
            order: Vec::new(),
            further: 0,
        });
        rule.severity = rule.severity.max(found.severity);
        if let Some(known) = rule.findings.get_mut(&key) {
            let first = known.first.min(found.first);
            *known = Finding { begun: known.begun + begins, first, ..found };
        } else if rule.order.len() < FINDINGS_MAX {
            rule.order.push(key.clone());
            rule.findings.insert(key, Finding { begun: begins, ..found });
        } else {
            rule.further += begins;
        }
    }

    /// Each rule with its name, the worst first.
    pub(crate) fn rules(&self) -> Vec<(&str, &Rule)> {
        let mut all: Vec<_> = self.rules.iter().map(|(name, rule)| (name.as_str(), rule)).collect();
        all.sort_by(|a, b| b.1.severity.cmp(&a.1.severity).then(a.0.cmp(b.0)));
        all
    }

    /// How many alerts began.
    pub(crate) fn count(&self) -> u64 {
        let of = |rule: &Rule| rule.findings().map(|f| f.begun).sum::<u64>() + rule.further;
        self.rules.values().map(of).sum::<u64>() + self.further
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::{Column, Type};

    fn schema() -> Schema {
        let column = |name: &str, ty| Column { name: name.to_owned(), ty };
        let columns = vec![
            column("ts", Type::Time),
            column("alert.rule", Type::Str),
            column("alert.state", Type::Str),
            column("alert.severity", Type::Str),
            column("alert.message", Type::Str),
            column("alert.key", Type::Str),
            column("server", Type::Int),
        ];
        Schema { columns }
    }

    fn row(rule: &str, state: &str, key: &str, n: i64) -> Vec<Value> {
        let text = |text: &str| Value::Str(text.into());
        vec![
            Value::Time(n),
            text(rule),
            text(state),
            text(if rule == "b" { "high" } else { "low" }),
            text(&format!("{n} found")),
            text(key),
            Value::Int(n),
        ]
    }

    #[test]
    fn an_alert_is_told_once_with_its_peak() {
        let (mut findings, schema) = (Findings::default(), schema());
        assert!(are_alerts(&schema));
        for (rule, state, key, n) in [
            ("a", "start", "x", 1),
            ("b", "start", "", 7),
            ("a", "end", "x", 5),
            ("a", "start", "x", 2),
            ("a", "open", "x", 3),
        ] {
            findings.add(&schema, &row(rule, state, key, n));
        }
        let rules = findings.rules();
        assert_eq!(rules.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["b", "a"]);
        let a: Vec<_> = rules[1].1.findings().collect();
        assert_eq!((a.len(), a[0].begun, a[0].message.as_str()), (1, 2, "3 found"));
        assert_eq!(a[0].evidence, [("server".to_owned(), Value::Int(3))]);
        assert_eq!(findings.count(), 3);
    }

    #[test]
    fn findings_and_rules_are_bounded() {
        let (mut findings, schema) = (Findings::default(), schema());
        for n in 0..200 {
            findings.add(&schema, &row("a", "start", &n.to_string(), n));
        }
        for n in 0..1_000 {
            findings.add(&schema, &row(&format!("r{n}"), "start", "", n));
        }
        assert_eq!(findings.rules().len(), RULES_MAX);
        assert_eq!(findings.count(), 1_200);
        let (_, rule) = findings.rules().into_iter().find(|(name, _)| *name == "a").expect("a");
        assert_eq!((rule.findings().count(), rule.further), (FINDINGS_MAX, 150));
    }
}
