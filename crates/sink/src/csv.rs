//! CSV (RFC 4180, with bare line feeds): a header line, then one line per row.

use crate::delimited::{Cells, Dialect};
use crate::format::{Format, Holds};
use crate::lines::Lines;

/// Comma-separated values.
pub static FORMAT: Format = Format {
    name: "csv",
    title: Commas::TITLE,
    about: "Comma-separated values with a header line",
    ending: "csv",
    holds: Holds::OneOutput,
    is_text: true,
    check: |_| Ok(()),
    make: |out, options| Box::new(Csv::new(out, options.time)),
};

/// Writes rows as CSV.
pub type Csv<W> = Lines<W, Cells<Commas>>;

/// The lines of CSV.
#[derive(Debug)]
pub struct Commas;

impl Dialect for Commas {
    const TITLE: &'static str = "CSV";
    const SEPARATOR: u8 = b',';

    /// Appends a text, in quotes if it holds any of what separates cells, lines or quotes.
    fn text(out: &mut Vec<u8>, text: &[u8]) {
        if !text.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
            return out.extend_from_slice(text);
        }
        out.push(b'"');
        for &b in text {
            if b == b'"' {
                out.push(b'"');
            }
            out.push(b);
        }
        out.push(b'"');
    }

    /// An empty line would be no row for those who read it.
    fn end_line(out: &mut Vec<u8>, start: usize) {
        if out.len() == start {
            out.extend_from_slice(b"\"\"");
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use crate::{TimeFormat, delimited};
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use std::io;
    use weir_engine::rows::{Output, Rows, Sink as _};
    use weir_plan::{Type, Value};

    fn written(output: Output, batch: &Rows) -> String {
        delimited::written::<Commas>(output, batch)
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

    proptest! {
        #[test]
        fn reads_back(
            cells in proptest::collection::vec(("[a,\"\n\r é]{0,4}", any::<i64>()), 1..20),
        ) {
            let output = output(None, &[("text", Type::Str), ("n", Type::Int)]);
            let row = |(s, n): &(String, i64)| vec![Value::Str(s.as_str().into()), Value::Int(*n)];
            let batch = rows(&output, &cells.iter().map(row).collect::<Vec<_>>());
            let text = written(output, &batch);
            let mut expected = csv::Writer::from_writer(Vec::new());
            expected.write_record(["text", "n"]).expect("writes");
            for (s, n) in &cells {
                expected.write_record([s, &n.to_string()]).expect("writes");
            }
            let expected = expected.into_inner().expect("flushes");
            prop_assert_eq!(text.as_bytes(), &expected[..]);
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            let read: Vec<(String, i64)> =
                reader.deserialize().collect::<Result<_, _>>().expect("valid");
            prop_assert_eq!(read, cells);
        }
    }
}
