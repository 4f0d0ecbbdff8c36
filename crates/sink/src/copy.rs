//! Lines of PostgreSQL's `COPY … FROM STDIN` in its text format, and the types of its columns.
//!
//! A time is rounded to microseconds by PostgreSQL, a duration is `numeric` seconds, and a zero
//! byte in a text, which PostgreSQL can't have, is U+FFFD there.

use crate::lines::LineFormat;
use crate::options::TimeFormat;
use crate::text;
use std::io;
use weir_engine::rows::{Arena, Output, Rows};
use weir_plan::Type;

/// The lines of `COPY`, of several outputs.
#[derive(Debug, Default)]
pub struct CopyLines {
    outputs: Vec<Vec<Type>>,
}

impl LineFormat for CopyLines {
    fn open(&mut self, outputs: &[Output], _out: &mut Vec<u8>) -> io::Result<()> {
        let types = |output: &Output| output.schema.columns.iter().map(|c| c.ty.clone()).collect();
        self.outputs = outputs.iter().map(types).collect();
        Ok(())
    }

    fn row(&self, out: &mut Vec<u8>, output: usize, rows: &Rows, i: usize) {
        for (c, (ty, column)) in self.outputs[output].iter().zip(&rows.columns).enumerate() {
            if c > 0 {
                out.push(b'\t');
            }
            match column.present.has(i) {
                true => cell(out, column.raw(i), ty, &rows.arena),
                false => out.extend_from_slice(b"\\N"),
            }
        }
        out.push(b'\n');
    }
}

/// The type of a column, by the name that PostgreSQL gives it back by.
pub fn column_type(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int => "int8",
        Type::Float => "float8",
        Type::Time => "timestamptz",
        Type::Duration => "numeric",
        Type::Ip => "inet",
        Type::Mac => "macaddr",
        Type::Bytes => "bytea",
        _ => "text",
    }
}

fn cell(out: &mut Vec<u8>, raw: u128, ty: &Type, arena: &Arena) {
    match ty {
        Type::Str => escaped(out, &String::from_utf8_lossy(arena.get(raw as u64))),
        Type::Bytes => {
            // COPY takes the first backslash away, and the type reads the second.
            out.extend_from_slice(b"\\\\x");
            text::cell(out, raw, ty, arena, TimeFormat::Rfc3339);
        }
        _ => text::cell(out, raw, ty, arena, TimeFormat::Rfc3339),
    }
}

fn escaped(out: &mut Vec<u8>, text: &str) {
    for b in text.bytes() {
        match b {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            _ => out.push(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use weir_plan::Value;

    fn written(output: &Output, batch: &Rows) -> String {
        let (mut lines, mut out) = (CopyLines::default(), Vec::new());
        lines.open(std::slice::from_ref(output), &mut out).expect("opens");
        (0..batch.len).for_each(|i| lines.row(&mut out, 0, batch, i));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn every_type_and_absent() {
        let (output, batch) = every_type();
        let expected = [
            "true\t42\t533.3333333333334\ttext\t\\\\x0aff\t10.0.0.1\t02:00:5e:10:00:01\t\
             2024-05-01T12:00:00.250Z\t1.5\n",
            "false\t-9223372036854775808\t-1e300\t\u{1b}[31mé\\n\t\\\\x\t2001:db8::1\t\
             00:00:00:00:00:00\t2024-05-01T12:00:00.123456789Z\t-0.000000001\n",
            "\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n",
        ];
        assert_eq!(written(&output, &batch), expected.concat());
        let types: Vec<&str> = output.schema.columns.iter().map(|c| column_type(&c.ty)).collect();
        let all = [
            "bool",
            "int8",
            "float8",
            "text",
            "bytea",
            "inet",
            "macaddr",
            "timestamptz",
            "numeric",
        ];
        assert_eq!(types, all);
    }

    #[test]
    fn a_text_stays_in_its_cell() {
        let output = output(None, &[("s", Type::Str), ("x", Type::Float)]);
        let cells = vec![Value::Str("\\N\t\n\r\0é".into()), Value::Float(f64::INFINITY)];
        let line = written(&output, &rows(&output, &[cells]));
        assert_eq!(line, "\\\\N\\t\\n\\r\u{fffd}é\t\\N\n");
    }
}
