//! InfluxDB's line protocol, as versions 1 and 2 read it: one line per row.
//!
//! A row's output is the measurement, its keys are tags, its other columns are fields, and its time
//! is in nanoseconds. InfluxDB takes rows with the same measurement, tags and time for one, so what
//! tells rows apart has to be a key. See "Line protocol" in the documentation of InfluxDB 1.8 and
//! 2.7, and `models/points.go` of its source for what the words leave open.
//!
//! | type | as a field | as a tag |
//! |---|---|---|
//! | bool | `true` | `true` |
//! | int | `42i` | `42` |
//! | float | `0.5` | `0.5` |
//! | string | `"text"` | `text` |
//! | bytes | `"0aff"` | `0aff` |
//! | ip, mac | `"10.0.0.1"` | `10.0.0.1` |
//! | time | `1714564800250000000i` | `2024-05-01T12:00:00.250Z` |
//! | duration | `1.5`: seconds | `1.5` |
//! | absent, and an empty tag | left out | left out |

use crate::format::{Format, Holds};
use crate::lines::{LineFormat, Lines};
use crate::options::TimeFormat;
use crate::text;
use std::io::{self, Write};
use weir_engine::rows::{Output, Rows};
use weir_plan::{Schema, Type};

/// InfluxDB's line protocol.
pub static FORMAT: Format = Format {
    name: "influx",
    title: "InfluxDB's line protocol",
    about: "InfluxDB's line protocol: keys are tags, other columns are fields",
    ending: "lp",
    holds: Holds::Outputs,
    is_text: true,
    check: |_| Ok(()),
    make: |out, _| Box::new(Influx::new(out)),
};

/// The measurement of an output that has no name.
const UNNAMED: &str = "weir";

/// The times that InfluxDB takes.
const TIMES: std::ops::RangeInclusive<i64> = i64::MIN + 2..=i64::MAX - 1;

/// Writes rows as lines of InfluxDB's protocol. Rows without a field, or with a time that InfluxDB
/// does not take, are left out and counted as unwritten.
pub type Influx<W> = Lines<W, Points>;

impl<W: Write> Influx<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Influx<W> {
        Lines::of_format(out, Points { outputs: Vec::new() })
    }
}

/// The points of InfluxDB.
#[derive(Debug)]
pub struct Points {
    outputs: Vec<Measurement>,
}

/// The form of the lines of an output.
#[derive(Debug)]
struct Measurement {
    /// Its name, escaped.
    name: Vec<u8>,
    schema: Schema,
    /// The column of the time of a row.
    ts: Option<usize>,
    /// Columns with their escaped names and `=`: the tags in the order of their names, ...
    tags: Vec<(usize, Vec<u8>)>,
    /// ... and the fields.
    fields: Vec<(usize, Vec<u8>)>,
}

impl Measurement {
    fn new(output: &Output) -> Measurement {
        let schema = &output.schema;
        let is_time = |at: &usize| schema.columns[*at].ty == Type::Time;
        let ts = schema.position("ts").filter(is_time);
        let ts = ts.or_else(|| (0..schema.columns.len()).find(is_time));
        let key = |at: usize| {
            let mut key = Vec::new();
            let name = &schema.columns[at].name;
            // InfluxDB keeps these names for itself.
            if name == "time" || name.starts_with('_') {
                key.extend_from_slice(b"col_");
            }
            escape(&mut key, name.as_bytes(), b",= ");
            key.push(b'=');
            (at, key)
        };
        let others = (0..schema.columns.len()).filter(|at| Some(*at) != ts);
        let (tags, fields): (Vec<_>, Vec<_>) = others.partition(|at| output.keys.contains(at));
        let mut tags: Vec<_> = tags.into_iter().map(key).collect();
        tags.sort_by(|a, b| a.1.cmp(&b.1));
        let mut name = Vec::new();
        escape(&mut name, output.name.as_deref().unwrap_or(UNNAMED).as_bytes(), b", ");
        let fields = fields.into_iter().map(key).collect();
        Measurement { name, schema: schema.clone(), ts, tags, fields }
    }

    /// Appends the line of a row; nothing, where it can be none.
    fn row(&self, out: &mut Vec<u8>, rows: &Rows, i: usize) {
        let start = out.len();
        out.extend_from_slice(&self.name);
        let mut value = Vec::new();
        for (at, key) in &self.tags {
            value.clear();
            if rows.columns[*at].present.has(i) {
                self.plain(&mut value, rows, i, *at);
            }
            if !value.is_empty() {
                out.push(b',');
                out.extend_from_slice(key);
                escape(out, &value, b",= ");
            }
        }
        let mut between = b' ';
        for (at, key) in self.fields.iter().filter(|(at, _)| rows.columns[*at].present.has(i)) {
            let length = out.len();
            out.push(between);
            out.extend_from_slice(key);
            match self.field(out, rows, i, *at) {
                true => between = b',',
                false => out.truncate(length),
            }
        }
        let ts = self.ts.filter(|at| rows.columns[*at].present.has(i));
        let ts = ts.map(|at| rows.columns[at].raw(i) as i64);
        if between == b' ' || ts.is_some_and(|ts| !TIMES.contains(&ts)) {
            return out.truncate(start);
        }
        if let Some(ts) = ts {
            out.push(b' ');
            out.extend_from_slice(ts.to_string().as_bytes());
        }
        out.push(b'\n');
    }

    /// Appends a value as CSV has it.
    fn plain(&self, out: &mut Vec<u8>, rows: &Rows, i: usize, at: usize) {
        let (column, ty) = (&rows.columns[at], &self.schema.columns[at].ty);
        text::cell(out, column.raw(i), ty, &rows.arena, TimeFormat::Rfc3339);
    }

    /// Appends the value of a field; `false` for one that InfluxDB has no form for.
    fn field(&self, out: &mut Vec<u8>, rows: &Rows, i: usize, at: usize) -> bool {
        let raw = rows.columns[at].raw(i);
        match self.schema.columns[at].ty {
            Type::Float if !f64::from_bits(raw as u64).is_finite() => return false,
            Type::Bool | Type::Float | Type::Duration => self.plain(out, rows, i, at),
            Type::Int | Type::Time => {
                out.extend_from_slice((raw as i64).to_string().as_bytes());
                out.push(b'i');
            }
            _ => {
                let mut value = Vec::new();
                self.plain(&mut value, rows, i, at);
                quote(out, &value);
            }
        }
        true
    }
}

/// Appends a name or the value of a tag. A backslash stands before what would end it. One at the
/// end would make what follows part of it, and there is no way to write that: it becomes a slash.
fn escape(out: &mut Vec<u8>, text: &[u8], special: &[u8]) {
    for (i, &b) in text.iter().enumerate() {
        match b {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\\' if i + 1 == text.len() => out.push(b'/'),
            b if special.contains(&b) => out.extend_from_slice(&[b'\\', b]),
            b => out.push(b),
        }
    }
}

/// Appends a text in quotes. A line stays one line: the ends of lines are written as `\n`.
fn quote(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &b in text {
        match b {
            b'\n' => out.extend_from_slice(b"\\\\n"),
            b'\r' => out.extend_from_slice(b"\\\\r"),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b => out.push(b),
        }
    }
    out.push(b'"');
}

impl LineFormat for Points {
    fn open(&mut self, outputs: &[Output], _out: &mut Vec<u8>) -> io::Result<()> {
        self.outputs = outputs.iter().map(Measurement::new).collect();
        Ok(())
    }

    fn row(&self, out: &mut Vec<u8>, output: usize, rows: &Rows, i: usize) {
        self.outputs[output].row(out, rows, i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use weir_engine::rows::Sink as _;
    use weir_plan::Value;

    /// The lines, and how many rows were left out.
    fn written(output: &Output, batch: &Rows) -> (String, u64) {
        let mut sink = Influx::new(Vec::new());
        sink.open(std::slice::from_ref(output)).expect("opens");
        sink.rows(0, batch).expect("writes");
        sink.finish().expect("finishes");
        let left_out = sink.unwritten();
        (String::from_utf8(sink.into_inner()).expect("text"), left_out)
    }

    #[test]
    fn every_type_and_absent() {
        let (mut output, batch) = every_type();
        let (text, left_out) = written(&output, &batch);
        assert_eq!(left_out, 1);
        assert_snapshot!(text.replace('\u{1b}', "ESC"), @r#"
        weir bool=true,int=42i,float=533.3333333333334,string="text",bytes="0aff",ip.src="10.0.0.1",mac="02:00:5e:10:00:01",took=1.5 1714564800250000000
        weir bool=false,int=-9223372036854775808i,float=-1e300,string="ESC[31mé\\n",bytes="",ip.src="2001:db8::1",mac="00:00:00:00:00:00",took=-0.000000001 1714564800123456789
        "#);
        output.name = Some("a b,c".to_owned());
        output.keys = vec![5, 0, 3, 4];
        let (text, _) = written(&output, &batch);
        assert_snapshot!(text.replace('\u{1b}', "ESC"), @r#"
        a\ b\,c,bool=true,bytes=0aff,ip.src=10.0.0.1,string=text int=42i,float=533.3333333333334,mac="02:00:5e:10:00:01",took=1.5 1714564800250000000
        a\ b\,c,bool=false,ip.src=2001:db8::1,string=ESC[31mé\n int=-9223372036854775808i,float=-1e300,mac="00:00:00:00:00:00",took=-0.000000001 1714564800123456789
        "#);
    }

    #[test]
    fn names_and_numbers_that_influxdb_does_not_take() {
        let columns = [("time", Type::Int), ("_x", Type::Float), ("ts", Type::Time)];
        let output = output(Some("m"), &columns);
        let row = |n, x, ts| vec![Value::Int(n), Value::Float(x), Value::Time(ts)];
        let batch = rows(
            &output,
            &[
                row(1, f64::NAN, 5),
                row(2, 0.5, i64::MAX),
                row(3, 0.5, i64::MIN + 1),
                vec![Value::Absent, Value::Float(f64::INFINITY), Value::Time(6)],
                vec![Value::Int(4), Value::Absent, Value::Absent],
            ],
        );
        assert_eq!(written(&output, &batch), ("m col_time=1i 5\nm col_time=4i\n".to_owned(), 3));
    }

    /// Reads a part up to one of the bytes that end it, as InfluxDB does: a backslash before one of
    /// `special` is dropped, any other stays.
    fn part<'a>(line: &'a str, ends: &str, special: &str) -> (String, &'a str) {
        let (mut out, mut rest) = (String::new(), line.chars());
        loop {
            let before = rest.as_str();
            match rest.next() {
                None => return (out, ""),
                Some('\\') if rest.as_str().starts_with(|c| special.contains(c)) => {
                    out.extend(rest.next());
                }
                Some(c) if ends.contains(c) => return (out, before),
                Some(c) => out.push(c),
            }
        }
    }

    proptest! {
        #[test]
        fn reads_back(
            name in "[a,= \\\\\"é]{0,5}",
            cells in proptest::collection::vec(("[a,= \\\\\"\n#é]{0,5}", "[a,= \\\\\"\né]{0,5}", any::<i64>()), 1..9),
        ) {
            let columns = [(name.as_str(), Type::Str), ("text", Type::Str), ("n", Type::Int)];
            let output = Output { keys: vec![0], ..output(Some(&format!("m{name}")), &columns) };
            let row = |(tag, text, n): &(String, String, i64)| {
                vec![Value::Str(tag.as_str().into()), Value::Str(text.as_str().into()), Value::Int(*n)]
            };
            let batch = rows(&output, &cells.iter().map(row).collect::<Vec<_>>());
            let (text, left_out) = written(&output, &batch);
            prop_assert_eq!((text.lines().count(), left_out), (cells.len(), 0));
            let last = |text: &str| match text.strip_suffix('\\') {
                Some(rest) => format!("{rest}/"),
                None => text.to_owned(),
            };
            for (line, (tag, field, n)) in text.lines().zip(&cells) {
                let (measurement, rest) = part(line, ", ", ", ");
                prop_assert_eq!(measurement, last(&format!("m{name}")));
                let rest = match tag.as_str() {
                    "" => rest,
                    tag => {
                        let (key, rest) = part(&rest[1..], "=", ",= ");
                        prop_assert_eq!(key, last(&name));
                        let (value, rest) = part(&rest[1..], ", ", ",= ");
                        prop_assert_eq!(value, last(&tag.replace('\n', "\\n")));
                        rest
                    }
                };
                let rest = rest.strip_prefix(" text=\"");
                let (value, rest) = part(rest.expect("a text"), "\"", "\"\\");
                prop_assert_eq!(value, field.replace('\n', "\\n"));
                prop_assert_eq!(rest, format!("\",n={n}i"));
            }
        }
    }
}
