//! A table for people: aligned columns with two blanks between them.
//!
//! Rows that need more room than the columns have begin a new table, so that each is aligned.

use crate::format::{Format, Holds};
use crate::grid::{Layout, Style, Tables, harmless, names};

/// The gap between two columns.
const GAP: &str = "  ";

/// Aligned columns.
pub static FORMAT: Format = Format {
    name: "table",
    title: "a table",
    about: "Aligned columns, for people",
    ending: "txt",
    holds: Holds::Outputs,
    is_text: true,
    check: |_| Ok(()),
    make: |out, options| Box::new(Table::new(out, options)),
};

/// Writes rows as tables.
pub type Table<W> = Tables<W, Plain>;

/// Columns with blanks between them.
#[derive(Debug)]
pub struct Plain;

impl Style for Plain {
    const COLUMN_WIDTH_MIN: usize = 0;
    const BEGINS_ANEW: bool = true;

    fn text(out: &mut Vec<u8>, text: &str) {
        harmless(out, text);
    }

    fn heading(out: &mut Vec<u8>, title: Option<&str>, columns: &[Layout], color: bool) {
        let (bold, plain) = if color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        if let Some(title) = title {
            out.extend_from_slice(format!("{bold}{title}{plain}\n").as_bytes());
        }
        out.extend_from_slice(bold.as_bytes());
        line(out, columns, names(columns));
        out.extend_from_slice(plain.as_bytes());
        out.push(b'\n');
    }

    fn row<'a>(
        out: &mut Vec<u8>,
        columns: &[Layout],
        cells: impl Iterator<Item = (&'a [u8], usize)>,
    ) {
        line(out, columns, cells);
        out.push(b'\n');
    }
}

/// Appends cells of known widths, padded to their columns; nothing pads the end of the line.
fn line<'a>(out: &mut Vec<u8>, columns: &[Layout], cells: impl Iterator<Item = (&'a [u8], usize)>) {
    for (c, (layout, cell)) in columns.iter().zip(cells).enumerate() {
        if c > 0 {
            out.extend_from_slice(GAP.as_bytes());
        }
        layout.cell(out, cell, c + 1 < columns.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{TABLE_COLUMN_WIDTH_MAX, TABLE_ROWS_MAX};
    use crate::options::RowOptions;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use weir_engine::rows::{Output, Rows, Sink as _};
    use weir_plan::{Type, Value};

    fn text(table: Table<Vec<u8>>) -> String {
        String::from_utf8(table.into_inner()).expect("UTF-8")
    }

    fn numbers(output: &Output, values: impl IntoIterator<Item = i64>) -> Rows {
        rows(output, &values.into_iter().map(|n| vec![Value::Int(n)]).collect::<Vec<_>>())
    }

    #[test]
    fn every_type_and_absent() {
        let (output, batch) = every_type();
        let mut table = Table::new(Vec::new(), RowOptions::default());
        table.open(&[output]).expect("opens");
        table.rows(0, &batch).expect("writes");
        table.finish().expect("finishes");
        assert_snapshot!(text(table), @r#"
        bool                    int       float  string         bytes  ip.src       mac                ts                              took
        true                     42     533.333  text           0aff   10.0.0.1     02:00:5e:10:00:01  2024-05-01T12:00:00.250Z        1.5s
        false  -9223372036854775808  -1.000e300  \u{1b}[31mé\n  ""     2001:db8::1  00:00:00:00:00:00  2024-05-01T12:00:00.123456789Z  -1ns
        -                         -           -  -              -      -            -                  -                                  -
        "#);
    }

    #[test]
    fn no_rows_still_name_the_columns() {
        let mut table = Table::new(Vec::new(), RowOptions::default());
        table.open(&[output(None, &[("ip.src", Type::Ip), ("n", Type::Int)])]).expect("opens");
        table.finish().expect("finishes");
        assert_eq!(text(table), "ip.src  n\n");
    }

    #[test]
    fn outputs_have_headings_and_stay_together() {
        let (one, two) =
            (output(Some("one"), &[("n", Type::Int)]), output(None, &[("m", Type::Int)]));
        let options = RowOptions { color: true, ..RowOptions::default() };
        let mut table = Table::new(Vec::new(), options);
        table.open(&[one.clone(), two.clone()]).expect("opens");
        table.rows(0, &numbers(&one, [1, 100])).expect("writes");
        table.rows(1, &numbers(&two, [5])).expect("writes");
        table.rows(0, &numbers(&one, [2])).expect("writes");
        table.finish().expect("finishes");
        assert_eq!(
            text(table),
            "\x1b[1mone\x1b[0m\n\x1b[1m  n\x1b[0m\n  1\n100\n  2\n\n\
             \x1b[1moutput 2\x1b[0m\n\x1b[1mm\x1b[0m\n5\n"
        );
    }

    #[test]
    fn a_stream_shows_each_window_and_a_file_waits() {
        let output = output(None, &[("n", Type::Int)]);
        let run = |stream| {
            let options = RowOptions { stream, ..RowOptions::default() };
            let mut table = Table::new(Vec::new(), options);
            table.open(std::slice::from_ref(&output)).expect("opens");
            for window in [1, 2, 300] {
                table.rows(0, &numbers(&output, [window])).expect("writes");
                table.flush().expect("flushes");
            }
            let early = table.out.get_ref().clone();
            table.finish().expect("finishes");
            (String::from_utf8(early).expect("UTF-8"), text(table))
        };
        // The third window needs more room than the layout has, so a new table begins.
        let streamed = "n\n1\n2\n\n  n\n300\n";
        assert_eq!(run(true), (streamed.to_owned(), streamed.to_owned()));
        assert_eq!(run(false), (String::new(), "  n\n  1\n  2\n300\n".to_owned()));
    }

    #[test]
    fn long_tables_are_not_held_back() {
        let output = output(None, &[("n", Type::Int)]);
        let mut table = Table::new(Vec::new(), RowOptions::default());
        table.open(std::slice::from_ref(&output)).expect("opens");
        for _ in 0..TABLE_ROWS_MAX / 100 {
            table.rows(0, &numbers(&output, 0..100)).expect("writes");
        }
        assert_eq!(table.out.get_ref().iter().filter(|b| **b == b'\n').count(), 1 + TABLE_ROWS_MAX);
        table.rows(0, &numbers(&output, [7])).expect("writes");
        table.finish().expect("finishes");
        assert!(text(table).ends_with("\n99\n 7\n"));
    }

    #[test]
    fn a_very_long_cell_only_moves_its_own_row() {
        let output = output(None, &[("s", Type::Str), ("n", Type::Int)]);
        let long = "x".repeat(TABLE_COLUMN_WIDTH_MAX + 1);
        let row = |s: &str| vec![Value::Str(s.into()), Value::Int(1)];
        let mut table = Table::new(Vec::new(), RowOptions::default());
        table.open(std::slice::from_ref(&output)).expect("opens");
        table.rows(0, &rows(&output, &[row("ab"), row(&long)])).expect("writes");
        table.finish().expect("finishes");
        assert_eq!(text(table), format!("s   n\nab  1\n{long}  1\n"));
    }
}
