//! JSON lines: one flat object per row, keys in column order, exactly the column names.
//!
//! A program with several outputs says which one a row is of: its first key is then `_pipeline`,
//! the name of the output or else its number from 1.

use crate::format::{Format, Holds};
use crate::lines::{LineFormat, Lines};
use crate::options::TimeFormat;
use crate::text;
use std::io::{self, Write};
use weir_engine::rows::{Arena, Output, Rows};
use weir_packet::column::Column;
use weir_plan::Type;

/// The key that names the output, where there are several.
pub const PIPELINE: &str = "_pipeline";

/// JSON lines.
pub static FORMAT: Format = Format {
    name: "json",
    title: "JSON",
    about: "One JSON object per line",
    ending: "jsonl",
    holds: Holds::Outputs,
    is_text: true,
    check: |_| Ok(()),
    make: |out, options| Box::new(JsonLines::new(out, options.time).named(options.titles)),
};

/// Writes rows as JSON lines.
pub type JsonLines<W> = Lines<W, Objects>;

/// The lines of JSON.
#[derive(Debug)]
pub struct Objects {
    time: TimeFormat,
    outputs: Vec<Shape>,
    named: bool,
}

/// The form of the rows of one output.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The text before the first cell: `{`, or `{"_pipeline":"name"`.
    open: Vec<u8>,
    /// Of each column: what stands before its cell (`,"name":`), and its type.
    columns: Vec<(Vec<u8>, Type)>,
}

impl<W: Write> JsonLines<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W, time: TimeFormat) -> JsonLines<W> {
        Lines::of_format(out, Objects::new(time))
    }

    /// Lets rows say which output they are of even where there is one only, since others may come.
    #[must_use]
    pub fn named(mut self, named: bool) -> JsonLines<W> {
        self.format.named = named;
        self
    }
}

impl Objects {
    /// Lines with times like this.
    pub fn new(time: TimeFormat) -> Objects {
        Objects { time, outputs: Vec::new(), named: false }
    }
}

/// Of each output, what its rows say of it, where there are several.
pub(crate) fn pipelines(outputs: &[Output]) -> Vec<Option<String>> {
    let name = |(i, o): (usize, &Output)| o.name.clone().unwrap_or_else(|| (i + 1).to_string());
    let several = outputs.len() > 1;
    outputs.iter().enumerate().map(|one| several.then(|| name(one))).collect()
}

impl LineFormat for Objects {
    fn open(&mut self, outputs: &[Output], _out: &mut Vec<u8>) -> io::Result<()> {
        let several = outputs.len() > 1 || self.named;
        let name = |(i, o): (usize, &Output)| o.name.clone().unwrap_or_else(|| (i + 1).to_string());
        let outputs = outputs.iter().enumerate();
        self.outputs =
            outputs.map(|o| Shape::new(o.1, several.then(|| name(o)).as_deref())).collect();
        Ok(())
    }

    fn row(&self, out: &mut Vec<u8>, output: usize, rows: &Rows, i: usize) {
        self.outputs[output].row(out, rows, i, self.time);
    }
}

impl Shape {
    pub(crate) fn new(output: &Output, pipeline: Option<&str>) -> Shape {
        let mut open = b"{".to_vec();
        if let Some(name) = pipeline {
            string(&mut open, PIPELINE);
            open.push(b':');
            string(&mut open, name);
        }
        let mut columns = Vec::with_capacity(output.schema.columns.len());
        for (c, column) in output.schema.columns.iter().enumerate() {
            let mut before = Vec::new();
            if c > 0 || pipeline.is_some() {
                before.push(b',');
            }
            string(&mut before, &column.name);
            before.push(b':');
            columns.push((before, column.ty.clone()));
        }
        Shape { open, columns }
    }

    /// Appends a row, to the end of its line.
    pub(crate) fn row(&self, out: &mut Vec<u8>, rows: &Rows, i: usize, time: TimeFormat) {
        self.cells(out, rows.columns.iter(), rows, i, time);
        out.push(b'\n');
    }

    /// Appends the object of these columns of a row.
    pub(crate) fn cells<'a>(
        &self,
        out: &mut Vec<u8>,
        columns: impl Iterator<Item = &'a Column>,
        rows: &Rows,
        i: usize,
        time: TimeFormat,
    ) {
        out.extend_from_slice(&self.open);
        for ((key, ty), column) in self.columns.iter().zip(columns) {
            out.extend_from_slice(key);
            if column.present.has(i) {
                value(out, column.raw(i), ty, &rows.arena, time);
            } else {
                out.extend_from_slice(b"null");
            }
        }
        out.push(b'}');
    }
}

/// Appends a cell that is there, given in the raw form of its column.
pub(crate) fn value(out: &mut Vec<u8>, raw: u128, ty: &Type, arena: &Arena, time: TimeFormat) {
    match ty {
        Type::Float => float(out, f64::from_bits(raw as u64)),
        Type::Str => {
            let text = arena.get(raw as u64);
            let plain = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\');
            if !text.iter().all(plain) {
                return string(out, &String::from_utf8_lossy(text));
            }
            out.push(b'"');
            out.extend_from_slice(text);
            out.push(b'"');
        }
        Type::Bool | Type::Int | Type::Duration => text::cell(out, raw, ty, arena, time),
        Type::Time if matches!(time, TimeFormat::Epoch | TimeFormat::EpochNs) => {
            text::cell(out, raw, ty, arena, time);
        }
        _ => {
            out.push(b'"');
            text::cell(out, raw, ty, arena, time);
            out.push(b'"');
        }
    }
}

/// Appends a float; JSON has no infinities, so they become `null`.
fn float(out: &mut Vec<u8>, x: f64) {
    if x.is_finite() {
        text::float(out, x);
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends a string in quotes.
pub(crate) fn string(out: &mut Vec<u8>, s: &str) {
    serde_json::to_writer(out, s).expect("writing a string to memory can't fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use std::slice::from_ref;
    use weir_engine::rows::Sink as _;
    use weir_plan::Value;

    fn written(outputs: &[Output], batches: &[(usize, Rows)], time: TimeFormat) -> String {
        let mut sink = JsonLines::new(Vec::new(), time);
        sink.open(outputs).expect("opens");
        for (n, batch) in batches {
            sink.rows(*n, batch).expect("writes");
        }
        sink.finish().expect("finishes");
        String::from_utf8(sink.into_inner()).expect("JSON is UTF-8")
    }

    #[test]
    fn every_type_and_absent() {
        let (output, batch) = every_type();
        assert_snapshot!(written(&[output], &[(0, batch)], TimeFormat::Rfc3339), @r#"
        {"bool":true,"int":42,"float":533.3333333333334,"string":"text","bytes":"0aff","ip.src":"10.0.0.1","mac":"02:00:5e:10:00:01","ts":"2024-05-01T12:00:00.250Z","took":1.5}
        {"bool":false,"int":-9223372036854775808,"float":-1e300,"string":"\u001b[31mé\n","bytes":"","ip.src":"2001:db8::1","mac":"00:00:00:00:00:00","ts":"2024-05-01T12:00:00.123456789Z","took":-0.000000001}
        {"bool":null,"int":null,"float":null,"string":null,"bytes":null,"ip.src":null,"mac":null,"ts":null,"took":null}
        "#);
    }

    #[test]
    fn epoch_times_are_numbers() {
        let output = output(None, &[("ts", Type::Time)]);
        let batch = rows(&output, &[vec![Value::Time(1_714_564_800_250_000_000)]]);
        assert_snapshot!(written(from_ref(&output), &[(0, batch.clone())], TimeFormat::Epoch), @r#"{"ts":1714564800.250000000}"#);
        assert_snapshot!(written(&[output], &[(0, batch)], TimeFormat::EpochNs), @r#"{"ts":1714564800250000000}"#);
    }

    #[test]
    fn the_largest_numbers_are_written_to_the_last_digit() {
        let output = output(None, &[("n", Type::Int), ("ts", Type::Time)]);
        let of = |n| vec![Value::Int(n), Value::Time(n)];
        let batch = rows(&output, &[of(i64::MAX), of(i64::MIN)]);
        assert_snapshot!(written(&[output], &[(0, batch)], TimeFormat::EpochNs), @r#"
        {"n":9223372036854775807,"ts":9223372036854775807}
        {"n":-9223372036854775808,"ts":-9223372036854775808}
        "#);
    }

    #[test]
    fn several_outputs_are_named() {
        let one = output(Some("a\"b"), &[("n", Type::Int)]);
        let two = output(None, &[("x", Type::Bool)]);
        let batches =
            [(1, rows(&two, &[vec![Value::Bool(true)]])), (0, rows(&one, &[vec![Value::Int(1)]]))];
        assert_snapshot!(written(&[one, two], &batches, TimeFormat::Rfc3339), @r#"
        {"_pipeline":"2","x":true}
        {"_pipeline":"a\"b","n":1}
        "#);
    }

    #[test]
    fn infinity_is_null() {
        let output = output(None, &[("x", Type::Float)]);
        let batch = rows(&output, &[vec![Value::Float(f64::INFINITY)]]);
        assert_eq!(written(&[output], &[(0, batch)], TimeFormat::Rfc3339), "{\"x\":null}\n");
    }

    #[test]
    fn nothing_is_held_back_after_a_flush() {
        let output = output(None, &[("n", Type::Int)]);
        let mut sink = JsonLines::new(Vec::new(), TimeFormat::Rfc3339);
        sink.open(from_ref(&output)).expect("opens");
        sink.rows(0, &rows(&output, &[vec![Value::Int(1)]])).expect("writes");
        assert!(sink.out.get_ref().is_empty());
        sink.flush().expect("flushes");
        assert_eq!(sink.out.get_ref(), b"{\"n\":1}\n");
    }

    proptest! {
        #[test]
        fn reads_back(name: String, s: String, n: i64) {
            let output = output(None, &[(&name, Type::Str), ("number", Type::Int)]);
            prop_assume!(name != "number");
            let cells = vec![Value::Str(s.as_str().into()), Value::Int(n)];
            let batch = rows(&output, &[cells]);
            let line = written(from_ref(&output), &[(0, batch)], TimeFormat::Epoch);
            let back: serde_json::Value = serde_json::from_str(&line).expect("valid JSON");
            prop_assert_eq!(back[&name].as_str(), Some(s.as_str()));
            prop_assert_eq!(back["number"].as_i64(), Some(n));
            prop_assert_eq!(line.matches('\n').count(), 1);
        }
    }
}
