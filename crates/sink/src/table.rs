//! A table for people.
//!
//! Rows are held back until there are [`TABLE_ROWS_MAX`] of them, or, of a stream, until it
//! pauses, so that columns are as wide as their cells. Widths then stay: rows that need
//! more begin a new table. Text from packets can't steer the terminal: control characters are
//! shown escaped.

use crate::format::{Format, Holds, RowOptions};
use crate::limits::{TABLE_COLUMN_WIDTH_MAX, TABLE_ROWS_MAX};
use crate::writer::RowWriter;
use crate::{TimeFormat, text};
use std::io::{self, Write};
use weir_engine::rows::{Arena, Output, Rows, Sink};
use weir_plan::{Schema, Type};

/// What stands between two columns.
const GAP: &str = "  ";

/// Aligned columns.
pub static FORMAT: Format = Format {
    name: "table",
    title: "a table",
    about: "Aligned columns, for people",
    ending: "txt",
    holds: Holds::Outputs,
    make: |out, options| Box::new(Table::new(out, options)),
};

/// Writes rows as tables.
#[derive(Debug)]
pub struct Table<W> {
    out: RowWriter<W>,
    options: RowOptions,
    grids: Vec<Grid>,
    /// Rows held back, in all grids.
    held: usize,
    /// The output whose rows were written last.
    last: Option<usize>,
}

/// The layout and the held rows of one output.
#[derive(Debug)]
struct Grid {
    /// Stands above the header, where there are several outputs.
    title: Option<String>,
    columns: Vec<Layout>,
    /// The text of all held cells, and where each ends in it and how wide it is.
    cells: Vec<u8>,
    ends: Vec<(usize, usize)>,
    /// Whether the header was written.
    shown: bool,
}

#[derive(Debug)]
struct Layout {
    name: String,
    ty: Type,
    /// In characters.
    width: usize,
    /// The width that the held cells need.
    needed: usize,
}

impl<W: Write> Table<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W, options: RowOptions) -> Table<W> {
        let out = RowWriter::new(out, 0);
        Table { out, options, grids: Vec::new(), held: 0, last: None }
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.out.into_inner()
    }

    /// Writes the held rows, each output's together.
    fn show(&mut self) -> io::Result<()> {
        for i in 0..self.grids.len() {
            if !self.grids[i].ends.is_empty() {
                self.show_grid(i);
            }
        }
        self.held = 0;
        self.out.flush()
    }

    fn show_grid(&mut self, i: usize) {
        let grid = &mut self.grids[i];
        let widened = grid.widen();
        if widened || !grid.shown || self.last != Some(i) {
            if self.last.is_some() {
                self.out.buffer.push(b'\n');
            }
            grid.heading(&mut self.out.buffer, self.options.color);
        }
        grid.body(&mut self.out);
        self.last = Some(i);
    }
}

impl<W: Write> Sink for Table<W> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        if !self.grids.is_empty() {
            self.show()?;
            // What comes is another table in any case.
            self.last = self.last.map(|_| usize::MAX);
        }
        let several = outputs.len() > 1 || self.options.titles;
        let title = |(i, o): (usize, &Output)| match &o.name {
            Some(name) => name.clone(),
            None => format!("output {}", i + 1),
        };
        let outputs = outputs.iter().enumerate();
        self.grids = outputs.map(|o| Grid::new(several.then(|| title(o)), &o.1.schema)).collect();
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.out.give(rows.len);
        for i in 0..rows.len {
            self.grids[output].hold(rows, i, self.options.time);
            self.held += 1;
            if self.held == TABLE_ROWS_MAX {
                self.show()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.options.stream { self.show() } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.show()?;
        for i in 0..self.grids.len() {
            if !self.grids[i].shown {
                self.show_grid(i);
            }
        }
        self.show()
    }

    fn unwritten(&self) -> u64 {
        self.out.unwritten()
    }
}

impl Grid {
    fn new(title: Option<String>, schema: &Schema) -> Grid {
        let layout = |c: &weir_plan::Column| Layout {
            name: c.name.clone(),
            ty: c.ty.clone(),
            width: width(c.name.as_bytes()),
            needed: 0,
        };
        let columns = schema.columns.iter().map(layout).collect();
        Grid { title, columns, cells: Vec::new(), ends: Vec::new(), shown: false }
    }

    /// Keeps row `i` for later.
    fn hold(&mut self, rows: &Rows, i: usize, time: TimeFormat) {
        for (layout, column) in self.columns.iter_mut().zip(&rows.columns) {
            let start = self.cells.len();
            if column.present.has(i) {
                value(&mut self.cells, column.raw(i), &layout.ty, &rows.arena, time);
            } else {
                self.cells.push(b'-');
            }
            let width = match layout.ty {
                Type::Str => width(&self.cells[start..]),
                // All else is written in ASCII.
                _ => self.cells.len() - start,
            };
            if width <= TABLE_COLUMN_WIDTH_MAX {
                layout.needed = layout.needed.max(width);
            }
            self.ends.push((self.cells.len(), width));
        }
    }

    /// Makes room for the held cells; says whether a layout already shown had to change.
    fn widen(&mut self) -> bool {
        let mut widened = false;
        for layout in &mut self.columns {
            if layout.needed > layout.width {
                layout.width = layout.needed;
                widened |= self.shown;
            }
        }
        widened
    }

    fn heading(&mut self, out: &mut Vec<u8>, color: bool) {
        let (bold, plain) = if color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        if let Some(title) = &self.title {
            out.extend_from_slice(format!("{bold}{title}{plain}\n").as_bytes());
        }
        out.extend_from_slice(bold.as_bytes());
        let names = self.columns.iter().map(|c| (c.name.as_bytes(), width(c.name.as_bytes())));
        line(out, &self.columns, names);
        out.extend_from_slice(plain.as_bytes());
        out.push(b'\n');
        self.shown = true;
    }

    /// Writes the held rows and forgets them.
    fn body<W: Write>(&mut self, out: &mut RowWriter<W>) {
        let mut start = 0;
        for row in self.ends.chunks(self.columns.len()) {
            let cells = row.iter().map(|&(end, width)| {
                let cell = &self.cells[start..end];
                start = end;
                (cell, width)
            });
            line(&mut out.buffer, &self.columns, cells);
            out.buffer.push(b'\n');
            out.end_row();
        }
        self.cells.clear();
        self.ends.clear();
    }
}

impl Layout {
    /// Numbers line up at their last digit.
    fn right(&self) -> bool {
        self.ty.is_numeric()
    }
}

/// Appends cells of known widths, padded to their columns; nothing pads the end of the line.
fn line<'a>(out: &mut Vec<u8>, columns: &[Layout], cells: impl Iterator<Item = (&'a [u8], usize)>) {
    for (c, (layout, (cell, width))) in columns.iter().zip(cells).enumerate() {
        if c > 0 {
            out.extend_from_slice(GAP.as_bytes());
        }
        let room = layout.width.saturating_sub(width);
        if layout.right() {
            pad(out, room);
        }
        out.extend_from_slice(cell);
        if !layout.right() && c + 1 < columns.len() {
            pad(out, room);
        }
    }
}

/// Appends blanks.
fn pad(out: &mut Vec<u8>, n: usize) {
    const BLANKS: [u8; TABLE_COLUMN_WIDTH_MAX] = [b' '; TABLE_COLUMN_WIDTH_MAX];
    match BLANKS.get(..n) {
        Some(blanks) => out.extend_from_slice(blanks),
        // Beside a name that is wider than any cell may make its column.
        None => out.resize(out.len() + n, b' '),
    }
}

/// Characters of a UTF-8 text.
fn width(text: &[u8]) -> usize {
    text.iter().filter(|b| **b & 0xc0 != 0x80).count()
}

/// Appends a cell that is there, given in the raw form of its column.
fn value(out: &mut Vec<u8>, raw: u128, ty: &Type, arena: &Arena, time: TimeFormat) {
    match ty {
        Type::Float => text::float_short(out, f64::from_bits(raw as u64)),
        Type::Duration => text::duration_short(out, raw as i64),
        Type::Str | Type::Bytes if arena.get(raw as u64).is_empty() => {
            out.extend_from_slice(b"\"\"");
        }
        Type::Str => harmless(out, &String::from_utf8_lossy(arena.get(raw as u64))),
        _ => text::cell(out, raw, ty, arena, time),
    }
}

/// Appends text without the characters that move a cursor or turn the reading direction.
fn harmless(out: &mut Vec<u8>, s: &str) {
    for c in s.chars() {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            out.extend(c.escape_default().map(|c| c as u8));
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{every_type, output, rows};
    use insta::assert_snapshot;
    use weir_plan::Value;

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

    #[test]
    fn packets_cannot_steer_the_terminal() {
        let mut out = Vec::new();
        harmless(&mut out, "a\x1b]0;title\x07\u{9b}\u{202e}é");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), r"a\u{1b}]0;title\u{7}\u{9b}\u{202e}é");
    }
}
