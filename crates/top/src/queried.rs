//! The rows of a query of the library: the latest ones of each of its outputs.

use crate::clean::clean;
use crate::limits::{QUERY_BYTES_MAX, QUERY_ROWS_MAX};
use crate::number::Times;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_engine::rows::Output;
use weir_plan::Value;

/// A query that can be run for its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LibraryQuery {
    /// Its name.
    pub name: String,
    /// Its purpose, in one line.
    pub title: String,
    /// Its text.
    pub text: String,
}

/// A row of a query.
#[derive(Clone, PartialEq, Debug)]
pub struct QueryRow {
    /// How many rows of its output came before it.
    pub number: u64,
    /// The values of its columns, in the order of the program.
    pub values: Vec<Value>,
}

impl QueryRow {
    /// The memory that it takes, about.
    fn bytes(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Str(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        size_of::<QueryRow>()
            + self.values.iter().map(|value| size_of::<Value>() + of(value)).sum::<usize>()
    }
}

/// Columns of alerts that people read first.
const FIRST_OF_ALERTS: [&str; 4] = ["ts", "alert.state", "alert.severity", "alert.message"];

/// The latest rows of an output.
#[derive(Debug)]
pub(crate) struct QueryOutput {
    /// The name of the output, if its program has several.
    pub(crate) name: Option<String>,
    /// The names of its columns, in the order of the program.
    pub(crate) columns: Vec<String>,
    /// The numbers of the columns in the order in which they are shown.
    pub(crate) shown: Vec<usize>,
    /// The latest rows, the oldest first.
    pub(crate) rows: VecDeque<Arc<QueryRow>>,
    bytes: usize,
    /// How many rows have come.
    pub(crate) taken: u64,
}

impl QueryOutput {
    /// No rows yet.
    pub(crate) fn new(output: &Output) -> QueryOutput {
        let columns: Vec<String> =
            output.schema.columns.iter().map(|column| column.name.clone()).collect();
        let is_alert = columns.iter().any(|name| name == "alert.message");
        let first = |name: &str| match FIRST_OF_ALERTS.iter().position(|first| *first == name) {
            Some(at) if is_alert => at,
            _ => FIRST_OF_ALERTS.len(),
        };
        let mut shown: Vec<usize> = (0..columns.len()).collect();
        shown.sort_by_key(|at| first(&columns[*at]));
        let name = output.name.as_deref().and_then(|name| Some(name.split_once('.')?.1.to_owned()));
        QueryOutput { name, columns, shown, rows: VecDeque::new(), bytes: 0, taken: 0 }
    }

    /// Takes a row; of more than there is room for, the oldest go.
    pub(crate) fn take(&mut self, values: Vec<Value>) {
        let row = QueryRow { number: self.taken, values };
        self.taken += 1;
        self.bytes += row.bytes();
        self.rows.push_back(Arc::new(row));
        while self.rows.len() > QUERY_ROWS_MAX
            || self.bytes > QUERY_BYTES_MAX && self.rows.len() > 1
        {
            self.bytes -= self.rows.pop_front().map_or(0, |row| row.bytes());
        }
    }
}

/// A value as a cell shows it: of a time the milliseconds at most, of a float three decimals.
pub(crate) fn cell_text(value: &Value, times: Times) -> String {
    match value {
        Value::Time(ns) if ns.rem_euclid(1_000_000_000) < 1_000_000 => times.to_second(*ns),
        Value::Time(ns) => times.to_part(*ns, 3),
        Value::Float(x) if *x == 0.0 || (1e-3..1e15).contains(&x.abs()) => {
            format!("{:?}", (x * 1e3).round() / 1e3)
        }
        Value::Float(x) => format!("{x:.3e}"),
        other => whole_text(other),
    }
}

/// A value as rows have it, whole.
pub(crate) fn whole_text(value: &Value) -> String {
    match value {
        Value::Absent => "-".to_owned(),
        Value::Str(text) => clean(text),
        other => clean(&other.to_string()),
    }
}

/// Whether a cell is set to the right, as numbers are.
pub(crate) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::Duration(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::rows::Output;
    use weir_lang::{Options, Query, compile};

    fn output(text: &str) -> QueryOutput {
        let compiled = compile(&Query { name: "query", text }, &Options::default());
        QueryOutput::new(&Output::of(&compiled.expect("compiles").program)[0])
    }

    #[test]
    fn the_latest_rows_are_kept_within_bounds() {
        let mut kept = output("packets | project dns.qname");
        for n in 0..3 * QUERY_ROWS_MAX as i64 {
            kept.take(vec![Value::Int(n)]);
        }
        assert_eq!((kept.rows.len(), kept.taken), (QUERY_ROWS_MAX, 3 * QUERY_ROWS_MAX as u64));
        assert_eq!(kept.rows[0].number, 2 * QUERY_ROWS_MAX as u64);
        // Long texts leave room for fewer.
        for _ in 0..QUERY_ROWS_MAX {
            kept.take(vec![Value::Str("x".repeat(60_000).into())]);
        }
        assert!(kept.bytes <= QUERY_BYTES_MAX && kept.rows.len() < 80, "{}", kept.rows.len());
        kept.take(vec![Value::Str("x".repeat(2 * QUERY_BYTES_MAX).into())]);
        assert_eq!(kept.rows.len(), 1);
        kept.take(vec![Value::Int(1)]);
        assert_eq!((kept.rows.len(), kept.rows[0].values[0].clone()), (1, Value::Int(1)));
        assert_eq!(kept.bytes, kept.rows[0].bytes());
    }

    #[test]
    fn what_alerts_say_comes_first() {
        let alerts = output(
            "packets | summarize n = count() by ip.src every 1s | where n > 3 | alert \"{n}\"",
        );
        let shown: Vec<&str> = alerts.shown.iter().map(|at| &*alerts.columns[*at]).collect();
        assert_eq!(shown[..4], FIRST_OF_ALERTS);
        assert_eq!(shown.len(), alerts.columns.len());
        let plain = output("packets | summarize n = count() by ip.src, ip.dst every 1s");
        assert_eq!(plain.shown, [0, 1, 2, 3]);
    }

    #[test]
    fn cells_are_short_and_clean() {
        for (value, cell, whole) in [
            (Value::Absent, "-", "-"),
            (Value::Time(1_795_240_270_000_000_000), "05:51:10", "2026-11-21T05:51:10Z"),
            (Value::Time(-1_000_000), "23:59:59.999", "1969-12-31T23:59:59.999Z"),
            (Value::Float(0.123_456), "0.123", "0.123456"),
            (Value::Float(1e-9), "1.000e-9", "1e-9"),
            (Value::Float(f64::NAN), "NaN", "NaN"),
            (Value::Str("a\x1b[2J\u{202e}".into()), "a\u{fffd}[2J\u{fffd}", "a\u{fffd}[2J\u{fffd}"),
            (Value::Duration(1_500_000_000), "1500ms", "1500ms"),
        ] {
            assert_eq!(
                (&*cell_text(&value, Times::default()), &*whole_text(&value)),
                (cell, whole)
            );
        }
    }
}
