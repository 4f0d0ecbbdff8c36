//! Rows whose columns are exported as metrics.

use crate::limits::{METRIC_HELP_MAX, METRIC_SERIES_MAX};
use crate::schema::Schema;
use crate::types::Type;
use crate::value::Value;

/// Exports a column of its rows to whoever scrapes the run; rows pass on as they are. Among the
/// last stages of a printed pipeline.
///
/// Series are bounded: beyond `max_series` keys, those with the largest values have a series each,
/// and what the others have is added up in one whose labels are `_other`.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// Its name: of letters, digits and `_`, without `_total`.
    pub name: String,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// Position of the column of its value; without one, each row counts as one.
    pub value: Option<usize>,
    /// Names of labels, and the position of the column of each.
    pub labels: Vec<(String, usize)>,
    /// Series at once, but for the one of the others.
    pub max_series: u64,
    /// Its description, for people.
    pub help: String,
    /// Position of the column that says when a row was, if there is one.
    pub ts: Option<usize>,
    /// How long the windows are that rows come from; 0 where they come from none.
    pub over_ns: i64,
}

/// A kind of metric.
#[derive(Clone, PartialEq, Debug)]
pub enum MetricKind {
    /// The value of the latest row of each key.
    Gauge,
    /// The sum of the values of all rows of each key.
    Counter,
    /// How many values were up to some size: of rows of `histogram()` with this step, an int or a
    /// duration.
    Histogram(Value),
}

impl MetricKind {
    /// The word of the query.
    pub fn word(&self) -> &'static str {
        match self {
            MetricKind::Gauge => "gauge",
            MetricKind::Counter => "counter",
            MetricKind::Histogram(_) => "histogram",
        }
    }

    /// Whether a column of this type can be its value.
    pub fn takes(&self, ty: &Type) -> bool {
        match self {
            MetricKind::Gauge => {
                matches!(ty, Type::Int | Type::Float | Type::Duration | Type::Bool | Type::Time)
            }
            MetricKind::Counter => matches!(ty, Type::Int | Type::Float | Type::Duration),
            MetricKind::Histogram(_) => *ty == Type::Str,
        }
    }
}

/// Whether Prometheus takes this as the name of a metric that is no rule of its own, which have
/// colons.
pub fn is_metric_name(name: &str) -> bool {
    is_name(name) && !name.ends_with("_total")
}

/// Whether Prometheus takes this as the name of a label, and keeps it for nothing else.
pub fn is_label_name(name: &str) -> bool {
    is_name(name) && !name.starts_with("__")
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 200
}

/// The name of a label for a column.
pub fn label_name(column: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = column.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

impl Metric {
    /// Whether it can be made of rows with these columns.
    pub(crate) fn fits(&self, input: &Schema) -> bool {
        let ty = |at: usize| input.columns.get(at).map(|column| &column.ty);
        let value = match (self.value, &self.kind) {
            (Some(at), kind) => ty(at).is_some_and(|ty| kind.takes(ty)),
            (None, kind) => *kind == MetricKind::Counter,
        };
        let step = match &self.kind {
            MetricKind::Histogram(Value::Int(step) | Value::Duration(step)) => *step > 0,
            MetricKind::Histogram(_) => false,
            _ => true,
        };
        let mut names: Vec<&str> = self.labels.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        value
            && step
            && is_metric_name(&self.name)
            && names.windows(2).all(|pair| pair[0] != pair[1])
            && names.iter().all(|name| is_label_name(name))
            && self.labels.iter().all(|(_, at)| ty(*at).is_some())
            && self.ts.is_none_or(|at| ty(at) == Some(&Type::Time))
            && (1..=METRIC_SERIES_MAX).contains(&self.max_series)
            && self.help.len() <= METRIC_HELP_MAX
            && self.over_ns >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_prometheus_takes() {
        for (name, metric, label) in [
            ("dns_rtt_seconds", true, true),
            ("a", true, true),
            ("__x", true, false),
            ("", false, false),
            ("1a", false, false),
            ("a:b", false, false),
            ("ip.src", false, false),
            ("é", false, false),
            ("a_total", false, true),
        ] {
            assert_eq!((is_metric_name(name), is_label_name(name)), (metric, label), "{name}");
        }
        assert_eq!(["ip.src", "1x", "a-b"].map(label_name), ["ip_src", "_1x", "a_b"]);
    }
}
