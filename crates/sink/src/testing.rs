//! Rows for the tests of this crate.

use std::io;
use weir_engine::rows::{Output, Rows, set_cell};
use weir_plan::{Column, Schema, Type, Value};

/// An output with these columns.
pub(crate) fn output(name: Option<&str>, columns: &[(&str, Type)]) -> Output {
    let columns =
        columns.iter().map(|(n, ty)| Column { name: (*n).to_owned(), ty: ty.clone() }).collect();
    Output {
        name: name.map(str::to_owned),
        schema: Schema { columns },
        keys: Vec::new(),
        capture: None,
        metrics: Vec::new(),
    }
}

/// One batch of these rows.
pub(crate) fn rows(output: &Output, cells: &[Vec<Value>]) -> Rows {
    let mut rows = Rows::new(&output.schema);
    for (i, row) in cells.iter().enumerate() {
        for (column, value) in rows.columns.iter_mut().zip(row) {
            set_cell(column, i, value, &mut rows.arena);
        }
    }
    rows.len = cells.len();
    rows
}

/// An output with a column of each type, with a row of values, one of extremes, one of nothing.
pub(crate) fn every_type() -> (Output, Rows) {
    let columns = [
        ("bool", Type::Bool),
        ("int", Type::Int),
        ("float", Type::Float),
        ("string", Type::Str),
        ("bytes", Type::Bytes),
        ("ip.src", Type::Ip),
        ("mac", Type::Mac),
        ("ts", Type::Time),
        ("took", Type::Duration),
    ];
    let ip = |s: &str| Value::ip(s.parse().expect("an address"));
    let output = output(None, &columns);
    let cells = [
        vec![
            Value::Bool(true),
            Value::Int(42),
            Value::Float(1600.0 / 3.0),
            Value::Str("text".into()),
            Value::Bytes([0x0a, 0xff].into()),
            ip("10.0.0.1"),
            Value::Mac(0x0200_5e10_0001),
            Value::Time(1_714_564_800_250_000_000),
            Value::Duration(1_500_000_000),
        ],
        vec![
            Value::Bool(false),
            Value::Int(i64::MIN),
            Value::Float(-1e300),
            Value::Str("\u{1b}[31mé\n".into()),
            Value::Bytes([].into()),
            ip("2001:db8::1"),
            Value::Mac(0),
            Value::Time(1_714_564_800_123_456_789),
            Value::Duration(-1),
        ],
        vec![Value::Absent; columns.len()],
    ];
    let rows = rows(&output, &cells);
    (output, rows)
}

/// Cannot write a byte.
pub(crate) struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
