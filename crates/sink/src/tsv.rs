//! TSV (IANA's text/tab-separated-values): a header line, then one line per row, of cells with tabs
//! between them.
//!
//! The format has no quotes, and a cell can hold neither a tab nor the end of a line. Such text is
//! escaped as in PostgreSQL, MySQL and ClickHouse: `\t`, `\n`, `\r`, and `\\` for a backslash. All
//! other bytes stay as they are. A line therefore ends where a row does, and `cut` and `awk -F'\t'`
//! find each cell.

use crate::delimited::{Cells, Dialect};
use crate::format::{Format, Holds};
use crate::lines::Lines;

/// Tab-separated values.
pub static FORMAT: Format = Format {
    name: "tsv",
    title: Tabs::TITLE,
    about: "Tab-separated values with a header line; tabs in texts are \\t, line feeds \\n",
    ending: "tsv",
    holds: Holds::OneOutput,
    is_text: true,
    check: |_| Ok(()),
    make: |out, options| Box::new(Tsv::new(out, options.time)),
};

/// Writes rows as TSV.
pub type Tsv<W> = Lines<W, Cells<Tabs>>;

/// The lines of TSV.
#[derive(Debug)]
pub struct Tabs;

impl Dialect for Tabs {
    const TITLE: &'static str = "TSV";
    const SEPARATOR: u8 = b'\t';

    fn text(out: &mut Vec<u8>, text: &[u8]) {
        let escape = |b: u8| match b {
            b'\t' => Some(b't'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\\' => Some(b'\\'),
            _ => None,
        };
        for &b in text {
            match escape(b) {
                Some(letter) => out.extend_from_slice(&[b'\\', letter]),
                None => out.push(b),
            }
        }
    }

    fn end_line(out: &mut Vec<u8>, _start: usize) {
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delimited::written;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use weir_engine::rows::{Output, Rows};
    use weir_plan::{Type, Value};

    fn tsv(output: Output, batch: &Rows) -> String {
        written::<Tabs>(output, batch)
    }

    #[test]
    fn every_type_and_absent() {
        let (output, batch) = every_type();
        let shown = tsv(output, &batch).replace('\t', "<TAB>").replace('\u{1b}', "<ESC>");
        assert_snapshot!(shown, @r"
        bool<TAB>int<TAB>float<TAB>string<TAB>bytes<TAB>ip.src<TAB>mac<TAB>ts<TAB>took
        true<TAB>42<TAB>533.3333333333334<TAB>text<TAB>0aff<TAB>10.0.0.1<TAB>02:00:5e:10:00:01<TAB>2024-05-01T12:00:00.250Z<TAB>1.5
        false<TAB>-9223372036854775808<TAB>-1e300<TAB><ESC>[31mé\n<TAB><TAB>2001:db8::1<TAB>00:00:00:00:00:00<TAB>2024-05-01T12:00:00.123456789Z<TAB>-0.000000001
        <TAB><TAB><TAB><TAB><TAB><TAB><TAB><TAB>
        ");
    }

    #[test]
    fn a_cell_cannot_end_its_cell_or_line() {
        let output = output(None, &[("a\tb", Type::Str), ("c", Type::Str)]);
        let cells = ["one\ttwo\r\nthree", r"C:\new\\t|,"].map(|s| Value::Str(s.into())).to_vec();
        let batch = rows(&output, &[cells, vec![Value::Absent, Value::Str("".into())]]);
        assert_eq!(
            tsv(output, &batch),
            "a\\tb\tc\none\\ttwo\\r\\nthree\tC:\\\\new\\\\\\\\t|,\n\t\n"
        );
    }

    /// Text that is no UTF-8 is passed on byte by byte, as CSV does.
    #[test]
    fn other_bytes_stay() {
        let mut out = Vec::new();
        Tabs::text(&mut out, b"\xff\x00\x1b[0m\xc3");
        assert_eq!(out, b"\xff\x00\x1b[0m\xc3");
    }

    /// The text of a cell, from what stands in the file.
    fn read(cell: &str) -> String {
        let (mut text, mut chars) = (String::new(), cell.chars());
        while let Some(c) = chars.next() {
            text.push(match c {
                '\\' => match chars.next() {
                    Some('t') => '\t',
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('\\') => '\\',
                    other => panic!("{other:?} was escaped"),
                },
                c => c,
            });
        }
        text
    }

    proptest! {
        #[test]
        fn reads_back(
            cells in proptest::collection::vec(("[a\t\\\\\n\r é\0|tn]{0,5}", any::<i64>()), 1..20),
        ) {
            let output = output(None, &[("text", Type::Str), ("n", Type::Int)]);
            let row = |(s, n): &(String, i64)| vec![Value::Str(s.as_str().into()), Value::Int(*n)];
            let batch = rows(&output, &cells.iter().map(row).collect::<Vec<_>>());
            let text = tsv(output, &batch);
            let mut lines = text.strip_suffix('\n').expect("a last line").split('\n');
            prop_assert_eq!(lines.next(), Some("text\tn"));
            let back: Vec<(String, i64)> = lines
                .map(|line| {
                    let (text, n) = line.split_once('\t').expect("two cells");
                    (read(text), n.parse().expect("a number"))
                })
                .collect();
            prop_assert_eq!(back, cells);
        }
    }
}
