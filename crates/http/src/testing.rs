//! Rows for tests.

use crate::form::{RowForm, ShownOutput};
use crate::history::{Found, History};
use std::ops::Range;
use weir_engine::rows::{Output, Rows, set_cell};
use weir_plan::{Column, Schema, Type, Value};
use weir_sink::each_line;
use weir_sink::{LineWriter, Names, RowOptions};

/// A form of rows.
pub(crate) fn form() -> RowForm {
    RowForm { options: RowOptions::default(), names: Names::Native, alone: "alone".to_owned() }
}

/// An output of a program that has one, or another of it, whose name has a dot: its rows have a
/// number and a text.
pub(crate) fn output(name: &str) -> Output {
    output_of(name, &[("n", Type::Int), ("text", Type::Str)])
}

/// An output with these columns.
pub(crate) fn output_of(name: &str, columns: &[(&str, Type)]) -> Output {
    let columns = columns.iter().map(|(name, ty)| Column::new(name, ty)).collect();
    Output {
        name: Some(name.to_owned()),
        schema: Schema { columns },
        keys: Vec::new(),
        capture: None,
        metrics: Vec::new(),
    }
}

pub(crate) fn shown(name: &str) -> ShownOutput {
    form().shown(&[output(name)]).swap_remove(0)
}

pub(crate) fn writer(name: &str) -> LineWriter {
    form().writers(&[output(name)]).swap_remove(0)
}

/// A program with these outputs.
pub(crate) fn history(names: &[&str]) -> History {
    let mut history = History::new(0);
    for name in names {
        history.add_output(shown(name), writer(name));
    }
    history
}

/// Rows with these numbers, at most a batch, and a text of so many letters.
pub(crate) fn rows(numbers: Range<i64>, letters: usize) -> Rows {
    let mut rows = Rows::new(&output("a").schema);
    for (i, n) in numbers.enumerate() {
        let text = Value::Str("x".repeat(letters).into());
        for (column, value) in rows.columns.iter_mut().zip([Value::Int(n), text]) {
            set_cell(column, i, &value, &mut rows.arena);
        }
        rows.order.push(n as u64);
        rows.clock.push(n);
        rows.len += 1;
    }
    rows
}

/// The number of a row.
pub(crate) fn number(line: &[u8]) -> i64 {
    let row: serde_json::Value = serde_json::from_slice(line).expect("JSON");
    row["n"].as_i64().expect("a number")
}

/// The numbers of the rows that were found.
pub(crate) fn numbers(found: &Found) -> Vec<i64> {
    let of_block = |(_, seen, body): &(u64, u64, std::sync::Arc<crate::block::BlockBody>)| {
        let written = crate::block::without(body.written().lines, *seen);
        each_line(&written).map(number).collect::<Vec<_>>()
    };
    found.blocks.iter().flat_map(of_block).collect()
}
