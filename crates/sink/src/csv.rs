//! CSV (RFC 4180, with bare line feeds): a header line, then one line per row.
//!
//! A file has one header, so a program with several outputs is refused.

use crate::{TimeFormat, text};
use std::io::{self, Write};
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::Type;

/// Writes rows as CSV.
pub struct Csv<W: Write> {
    out: csv::Writer<W>,
    time: TimeFormat,
    types: Vec<Type>,
    field: Vec<u8>,
}

impl<W: Write> Csv<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W, time: TimeFormat) -> Csv<W> {
        Csv { out: csv::Writer::from_writer(out), time, types: Vec::new(), field: Vec::new() }
    }
}

impl<W: Write> Sink for Csv<W> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let [output] = outputs else {
            let n = outputs.len();
            let reason = format!("CSV has one header, and the query has {n} outputs");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let columns = &output.schema.columns;
        self.types = columns.iter().map(|c| c.ty.clone()).collect();
        self.out.write_record(columns.iter().map(|c| &c.name)).map_err(into_io)
    }

    fn rows(&mut self, _output: usize, rows: &Rows) -> io::Result<()> {
        for i in 0..rows.len {
            for (ty, column) in self.types.iter().zip(&rows.columns) {
                self.field.clear();
                if column.present.has(i) {
                    text::cell(&mut self.field, column.raw(i), ty, &rows.arena, self.time);
                }
                self.out.write_field(&self.field).map_err(into_io)?;
            }
            self.out.write_record(None::<&[u8]>).map_err(into_io)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}

/// The I/O error inside; the writer can have no other, as all rows of a schema are as long.
fn into_io(e: csv::Error) -> io::Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => e,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use weir_plan::Value;

    fn written(output: Output, batch: &Rows) -> String {
        let mut sink = Csv::new(Vec::new(), TimeFormat::Rfc3339);
        sink.open(&[output]).expect("opens");
        sink.rows(0, batch).expect("writes");
        sink.finish().expect("finishes");
        String::from_utf8(sink.out.into_inner().expect("flushed")).expect("text")
    }

    #[test]
    fn every_type_and_absent() {
        let (output, batch) = every_type();
        assert_snapshot!(written(output, &batch).replace('\u{1b}', "ESC"), @r#"
        bool,int,float,string,bytes,ip.src,mac,ts,took
        true,42,533.3333333333334,text,0aff,10.0.0.1,02:00:5e:10:00:01,2024-05-01T12:00:00.250Z,1.5
        false,-9223372036854775808,-1e300,"ESC[31mé
        ",,2001:db8::1,00:00:00:00:00:00,2024-05-01T12:00:00.123456789Z,-0.000000001
        ,,,,,,,,
        "#);
    }

    #[test]
    fn quotes_where_it_must() {
        let output = output(None, &[("a,b", Type::Str), ("c", Type::Str)]);
        let cells = ["say \"hi\"", "two\nlines"].map(|s| Value::Str(s.into())).to_vec();
        let batch = rows(&output, &[cells, vec![Value::Absent, Value::Absent]]);
        assert_snapshot!(written(output, &batch), @r#"
        "a,b",c
        "say ""hi""","two
        lines"
        ,
        "#);
    }

    #[test]
    fn an_only_absent_cell_is_still_a_row() {
        let output = output(None, &[("a", Type::Int)]);
        let batch = rows(&output, &[vec![Value::Absent], vec![Value::Int(1)]]);
        assert_eq!(written(output, &batch), "a\n\"\"\n1\n");
    }

    #[test]
    fn refuses_several_outputs() {
        let outputs = [output(None, &[]), output(None, &[])];
        let e = Csv::new(Vec::new(), TimeFormat::Rfc3339).open(&outputs).expect_err("refuses");
        assert_eq!(e.kind(), io::ErrorKind::InvalidInput);
    }
}
