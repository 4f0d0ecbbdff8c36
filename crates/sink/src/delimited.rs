//! Lines of cells: a header line, then one line per row. The base of CSV and TSV.
//!
//! A file has one header, so a program with several outputs is refused; [`crate::Split`] gives each
//! of them a sink of its own.

use crate::lines::{LineFormat, Lines};
use crate::options::TimeFormat;
use crate::text;
use std::io::{self, Write};
use std::marker::PhantomData;
#[cfg(test)]
use weir_engine::rows::Sink as _;
use weir_engine::rows::{Output, Rows};
use weir_plan::Type;

/// How cells and lines are told apart.
pub trait Dialect {
    /// The name of the format.
    const TITLE: &'static str;
    /// Stands between two cells.
    const SEPARATOR: u8;

    /// Appends a text so that it reads back as one cell.
    fn text(out: &mut Vec<u8>, text: &[u8]);

    /// Ends the line that began at `start`.
    fn end_line(out: &mut Vec<u8>, start: usize);
}

/// The lines of a dialect.
#[derive(Debug)]
pub struct Cells<D> {
    time: TimeFormat,
    types: Vec<Type>,
    dialect: PhantomData<D>,
}

impl<W: Write, D: Dialect> Lines<W, Cells<D>> {
    /// A sink that writes to `out`.
    pub fn new(out: W, time: TimeFormat) -> Lines<W, Cells<D>> {
        Lines::of_format(out, Cells { time, types: Vec::new(), dialect: PhantomData })
    }
}

impl<D: Dialect> LineFormat for Cells<D> {
    fn open(&mut self, outputs: &[Output], out: &mut Vec<u8>) -> io::Result<()> {
        let [output] = outputs else {
            let (format, n) = (D::TITLE, outputs.len());
            let reason = format!("{format} has one header, and the query has {n} outputs");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let columns = &output.schema.columns;
        self.types = columns.iter().map(|c| c.ty.clone()).collect();
        let start = out.len();
        for (c, column) in columns.iter().enumerate() {
            if c > 0 {
                out.push(D::SEPARATOR);
            }
            D::text(out, column.name.as_bytes());
        }
        D::end_line(out, start);
        Ok(())
    }

    fn row(&self, out: &mut Vec<u8>, _output: usize, rows: &Rows, i: usize) {
        let start = out.len();
        for (c, (ty, column)) in self.types.iter().zip(&rows.columns).enumerate() {
            if c > 0 {
                out.push(D::SEPARATOR);
            }
            match ty {
                _ if !column.present.has(i) => {}
                Type::Str => D::text(out, rows.arena.get(column.raw(i) as u64)),
                _ => text::cell(out, column.raw(i), ty, &rows.arena, self.time),
            }
        }
        D::end_line(out, start);
    }
}

/// The text that a sink of this dialect writes.
#[cfg(test)]
pub(crate) fn written<D: Dialect>(output: Output, batch: &Rows) -> String {
    let mut sink = Lines::<_, Cells<D>>::new(Vec::new(), TimeFormat::Rfc3339);
    sink.open(&[output]).expect("opens");
    sink.rows(0, batch).expect("writes");
    sink.finish().expect("finishes");
    String::from_utf8(sink.into_inner()).expect("text")
}
