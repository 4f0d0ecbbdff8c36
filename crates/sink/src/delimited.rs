//! Lines of cells: a header line, then one line per row. The base of CSV and TSV.
//!
//! A file has one header, so a program with several outputs is refused; [`crate::Split`] gives each
//! of them a sink of its own.

use crate::limits::BUFFER_BYTES;
use crate::writer::RowWriter;
use crate::{TimeFormat, text};
use std::io::{self, Write};
use std::marker::PhantomData;
use weir_engine::rows::{Output, Rows, Sink};
use weir_plan::Type;

/// How cells and lines are told apart.
pub trait Dialect {
    /// What the format is called.
    const TITLE: &'static str;
    /// Stands between two cells.
    const SEPARATOR: u8;

    /// Appends a text so that it reads back as one cell.
    fn text(out: &mut Vec<u8>, text: &[u8]);

    /// Ends the line that began at `start`.
    fn end_line(out: &mut Vec<u8>, start: usize);
}

/// Writes rows as lines of cells.
#[derive(Debug)]
pub struct Delimited<W, D> {
    out: RowWriter<W>,
    time: TimeFormat,
    types: Vec<Type>,
    dialect: PhantomData<D>,
}

impl<W: Write, D: Dialect> Delimited<W, D> {
    /// A sink that writes to `out`.
    pub fn new(out: W, time: TimeFormat) -> Delimited<W, D> {
        let out = RowWriter::new(out, 2 * BUFFER_BYTES);
        Delimited { out, time, types: Vec::new(), dialect: PhantomData }
    }

    /// The writer, with everything flushed so far.
    pub fn into_inner(self) -> W {
        self.out.into_inner()
    }
}

impl<W: Write, D: Dialect> Sink for Delimited<W, D> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let [output] = outputs else {
            let (format, n) = (D::TITLE, outputs.len());
            let reason = format!("{format} has one header, and the query has {n} outputs");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let columns = &output.schema.columns;
        self.types = columns.iter().map(|c| c.ty.clone()).collect();
        let buffer = &mut self.out.buffer;
        let start = buffer.len();
        for (c, column) in columns.iter().enumerate() {
            if c > 0 {
                buffer.push(D::SEPARATOR);
            }
            D::text(buffer, column.name.as_bytes());
        }
        D::end_line(buffer, start);
        Ok(())
    }

    fn rows(&mut self, _output: usize, rows: &Rows) -> io::Result<()> {
        self.out.give(rows.len);
        for i in 0..rows.len {
            let buffer = &mut self.out.buffer;
            let start = buffer.len();
            for (c, (ty, column)) in self.types.iter().zip(&rows.columns).enumerate() {
                if c > 0 {
                    buffer.push(D::SEPARATOR);
                }
                match ty {
                    _ if !column.present.has(i) => {}
                    Type::Str => D::text(buffer, rows.arena.get(column.raw(i) as u64)),
                    _ => text::cell(buffer, column.raw(i), ty, &rows.arena, self.time),
                }
            }
            D::end_line(buffer, start);
            self.out.end_row();
            if self.out.is_full() {
                self.out.write_out()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn unwritten(&self) -> u64 {
        self.out.unwritten()
    }
}

/// What a sink of this dialect writes.
#[cfg(test)]
pub(crate) fn written<D: Dialect>(output: Output, batch: &Rows) -> String {
    let mut sink = Delimited::<_, D>::new(Vec::new(), TimeFormat::Rfc3339);
    sink.open(&[output]).expect("opens");
    sink.rows(0, batch).expect("writes");
    sink.finish().expect("finishes");
    String::from_utf8(sink.into_inner()).expect("text")
}
