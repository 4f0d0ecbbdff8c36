//! Metrics of rows that are no packets: they pass on.

use crate::choices::Choices;
use crate::plan::Rows;
use weir_plan::{Metric, MetricKind, Stage, Type, Value};

/// A metric of a column of numbers or texts, or of rows where there is none.
pub(crate) fn metric(c: &mut Choices, rows: &Rows) -> Stage {
    let columns = &rows.schema.columns;
    let of = |wanted: &[Type]| (0..columns.len()).find(|at| wanted.contains(&columns[*at].ty));
    let (kind, value) = match (of(&[Type::Int, Type::Float]), of(&[Type::Str]), c.below(3)) {
        (Some(at), _, 0) => (MetricKind::Gauge, Some(at)),
        (Some(at), _, 1) => (MetricKind::Counter, Some(at)),
        (_, Some(at), 2) => (MetricKind::Histogram(Value::Int(5)), Some(at)),
        _ => (MetricKind::Counter, None),
    };
    let labels = (0..columns.len().min(2)).map(|at| (format!("l{at}"), at)).collect();
    let is_time = |at: &usize| columns[*at].ty == Type::Time;
    Stage::Metric(Box::new(Metric {
        name: (*c.pick(&["a", "some_seconds"])).to_owned(),
        kind,
        value,
        labels,
        max_series: *c.pick(&[1, 100, 1_000]),
        help: "é \"x\"".to_owned(),
        ts: (0..columns.len()).find(is_time),
        over_ns: *c.pick(&[0, 1]),
    }))
}
