//! The rows of an output, as far as a page shows them.

use crate::limits::ROWS_MAX;
use weir_engine::rows::Rows;
use weir_plan::{Schema, TimeZone, Value};

/// Rows with the names of their columns.
#[derive(Clone, Default, Debug)]
pub(crate) struct KeptRows {
    schema: Schema,
    rows: Vec<Vec<Value>>,
}

impl KeptRows {
    /// No rows with these columns.
    pub(crate) fn new(schema: &Schema) -> KeptRows {
        KeptRows { schema: schema.clone(), rows: Vec::new() }
    }

    /// Keeps rows, up to the bound.
    pub(crate) fn push(&mut self, rows: &Rows) {
        let room = ROWS_MAX - self.rows.len();
        self.rows.extend((0..rows.len.min(room)).map(|i| values(rows, i, &self.schema)));
    }

    /// Each row.
    pub(crate) fn rows(&self) -> impl Iterator<Item = KeptRow<'_>> {
        self.rows.iter().map(|values| KeptRow { schema: &self.schema, values })
    }

    /// The first row.
    pub(crate) fn first(&self) -> Option<KeptRow<'_>> {
        self.rows().next()
    }

    /// The sum of a column of counts.
    pub(crate) fn sum(&self, name: &str) -> i64 {
        self.rows().fold(0, |sum, row| sum.saturating_add(row.count(name)))
    }
}

/// The values of a row.
pub(crate) fn values(rows: &Rows, i: usize, schema: &Schema) -> Vec<Value> {
    (0..schema.columns.len()).map(|c| rows.value(i, c, &schema.columns[c].ty)).collect()
}

/// A row, whose values are asked for by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptRow<'a> {
    schema: &'a Schema,
    values: &'a [Value],
}

impl<'a> KeptRow<'a> {
    /// The value of a column; absent where there is none.
    pub(crate) fn value(self, name: &str) -> &'a Value {
        self.schema.position(name).and_then(|at| self.values.get(at)).unwrap_or(&Value::Absent)
    }

    /// A count; 0 where there is none.
    pub(crate) fn count(self, name: &str) -> i64 {
        self.int(name).unwrap_or(0)
    }

    /// An int.
    pub(crate) fn int(self, name: &str) -> Option<i64> {
        if let Value::Int(n) = self.value(name) { Some(*n) } else { None }
    }

    /// A time or a duration, in nanoseconds.
    pub(crate) fn ns(self, name: &str) -> Option<i64> {
        match self.value(name) {
            Value::Time(ns) | Value::Duration(ns) => Some(*ns),
            _ => None,
        }
    }

    /// A value as people read it; a dash where there is none.
    pub(crate) fn shown(self, name: &str) -> String {
        shown(self.value(name), None)
    }
}

/// A value as people read it: a text as it is, a time in a zone.
pub(crate) fn shown(value: &Value, zone: Option<TimeZone>) -> String {
    match value {
        Value::Absent => "–".to_owned(),
        Value::Str(text) => text.to_string(),
        Value::Time(ns) => crate::number::moment(*ns, zone),
        Value::Duration(ns) => crate::number::length(*ns),
        Value::Float(n) => crate::number::short(*n),
        other => other.to_string(),
    }
}
