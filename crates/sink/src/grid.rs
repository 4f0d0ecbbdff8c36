//! Rows in aligned columns, for people. The base of plain tables and those of Markdown.
//!
//! Rows are held back until there are [`TABLE_ROWS_MAX`] of them, or, of a stream, until it pauses,
//! so that columns are as wide as their cells. Text from packets can't steer the terminal: control
//! characters are shown escaped.

use crate::limits::{TABLE_COLUMN_WIDTH_MAX, TABLE_ROWS_MAX};
use crate::options::{RowOptions, TimeFormat};
use crate::text;
use crate::writer::RowWriter;
use std::io::{self, Write};
use std::marker::PhantomData;
use weir_base::harmless::is_harmless;
use weir_engine::rows::{Arena, Output, Rows, Sink};
use weir_plan::{Column, Schema, Type};

/// How a table is drawn.
pub trait Style {
    /// Characters that a column has at least.
    const COLUMN_WIDTH_MIN: usize;
    /// Whether a new table begins where cells need more room than the columns have; otherwise
    /// lines are longer from there on.
    const BEGINS_ANEW: bool;

    /// Appends text that stands in a table.
    fn text(out: &mut Vec<u8>, text: &str);

    /// Appends the lines above the rows: a title, where there are several tables, and the names of
    /// the columns.
    fn heading(out: &mut Vec<u8>, title: Option<&str>, columns: &[Layout], color: bool);

    /// Appends a line of cells, each with its width.
    fn row<'a>(
        out: &mut Vec<u8>,
        columns: &[Layout],
        cells: impl Iterator<Item = (&'a [u8], usize)>,
    );
}

/// Writes rows as tables of a style.
#[derive(Debug)]
pub struct Tables<W, S> {
    pub(crate) out: RowWriter<W>,
    options: RowOptions,
    grids: Vec<Grid>,
    /// Rows held back, in all grids.
    held: usize,
    /// The output whose rows were written last.
    last: Option<usize>,
    style: PhantomData<S>,
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

/// A column.
#[derive(Debug)]
pub struct Layout {
    /// Its name, as it stands in the table.
    pub(crate) name: String,
    ty: Type,
    /// In characters.
    pub(crate) width: usize,
    /// The width that the held cells need.
    needed: usize,
}

impl<W: Write, S: Style> Tables<W, S> {
    /// A sink that writes to `out`.
    pub fn new(out: W, options: RowOptions) -> Tables<W, S> {
        let out = RowWriter::new(out, 0);
        Tables { out, options, grids: Vec::new(), held: 0, last: None, style: PhantomData }
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
        if widened && S::BEGINS_ANEW || !grid.shown || self.last != Some(i) {
            if self.last.is_some() {
                self.out.buffer.push(b'\n');
            }
            let title = grid.title.as_deref();
            S::heading(&mut self.out.buffer, title, &grid.columns, self.options.color);
            grid.shown = true;
        }
        grid.body::<W, S>(&mut self.out);
        self.last = Some(i);
    }
}

impl<W: Write, S: Style> Sink for Tables<W, S> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        if !self.grids.is_empty() {
            self.show()?;
            // Rows that come begin another table in any case.
            self.last = self.last.map(|_| usize::MAX);
        }
        let several = outputs.len() > 1 || self.options.titles;
        let title = |(i, o): (usize, &Output)| match &o.name {
            Some(name) => name.clone(),
            None => format!("output {}", i + 1),
        };
        let outputs = outputs.iter().enumerate();
        self.grids =
            outputs.map(|o| Grid::new::<S>(several.then(|| title(o)), &o.1.schema)).collect();
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.out.give(rows.len);
        for i in 0..rows.len {
            self.grids[output].hold::<S>(rows, i, self.options.time);
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
    fn new<S: Style>(title: Option<String>, schema: &Schema) -> Grid {
        let layout = |column: &Column| {
            let name = shown::<S>(&column.name);
            let width = width(name.as_bytes()).max(S::COLUMN_WIDTH_MIN);
            Layout { name, ty: column.ty.clone(), width, needed: 0 }
        };
        let title = title.map(|title| shown::<S>(&title));
        let columns = schema.columns.iter().map(layout).collect();
        Grid { title, columns, cells: Vec::new(), ends: Vec::new(), shown: false }
    }

    /// Keeps row `i` for later.
    fn hold<S: Style>(&mut self, rows: &Rows, i: usize, time: TimeFormat) {
        for (layout, column) in self.columns.iter_mut().zip(&rows.columns) {
            let start = self.cells.len();
            if column.present.has(i) {
                value::<S>(&mut self.cells, column.raw(i), &layout.ty, &rows.arena, time);
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

    /// Writes the held rows and forgets them.
    fn body<W: Write, S: Style>(&mut self, out: &mut RowWriter<W>) {
        let mut start = 0;
        for row in self.ends.chunks(self.columns.len()) {
            let cells = row.iter().map(|&(end, width)| {
                let cell = &self.cells[start..end];
                start = end;
                (cell, width)
            });
            S::row(&mut out.buffer, &self.columns, cells);
            out.end_row();
        }
        self.cells.clear();
        self.ends.clear();
    }
}

impl Layout {
    /// Numbers line up at their last digit.
    pub(crate) fn is_right(&self) -> bool {
        self.ty.is_numeric()
    }

    /// Appends a cell of this width with blanks before it, where it is a number; after it, where it
    /// is not and `pads`.
    pub(crate) fn cell(&self, out: &mut Vec<u8>, (cell, width): (&[u8], usize), pads: bool) {
        let room = self.width.saturating_sub(width);
        if self.is_right() {
            pad(out, room);
        }
        out.extend_from_slice(cell);
        if !self.is_right() && pads {
            pad(out, room);
        }
    }
}

/// The names of columns as cells.
pub(crate) fn names(columns: &[Layout]) -> impl Iterator<Item = (&[u8], usize)> {
    columns.iter().map(|c| (c.name.as_bytes(), width(c.name.as_bytes())))
}

/// A text as it stands in a table.
fn shown<S: Style>(text: &str) -> String {
    let mut out = Vec::new();
    S::text(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
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
pub(crate) fn value<S: Style>(
    out: &mut Vec<u8>,
    raw: u128,
    ty: &Type,
    arena: &Arena,
    time: TimeFormat,
) {
    match ty {
        Type::Float => text::float_short(out, f64::from_bits(raw as u64)),
        Type::Duration => text::duration_short(out, raw as i64),
        Type::Str | Type::Bytes if arena.get(raw as u64).is_empty() => {
            out.extend_from_slice(b"\"\"");
        }
        Type::Str => S::text(out, &String::from_utf8_lossy(arena.get(raw as u64))),
        _ => text::cell(out, raw, ty, arena, time),
    }
}

/// Appends text with the numbers of characters that would steer a terminal or hide something.
pub(crate) fn harmless(out: &mut Vec<u8>, s: &str) {
    for c in s.chars() {
        if is_harmless(c) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            out.extend(c.escape_default().map(|c| c as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_cannot_steer_the_terminal() {
        let mut out = Vec::new();
        harmless(&mut out, "a\x1b]0;title\x07\u{9b}\u{202e}é");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), r"a\u{1b}]0;title\u{7}\u{9b}\u{202e}é");
    }
}
