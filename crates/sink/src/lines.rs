//! A line for each row: the base of JSON lines, CSV and TSV.

use crate::limits::BUFFER_BYTES;
use crate::writer::RowWriter;
use std::io::{self, Write};
use weir_engine::rows::{Output, Rows, Sink};

/// The form of the lines of a format.
pub trait LineFormat {
    /// Takes in the outputs that rows will be of, and appends what stands above the rows.
    ///
    /// # Errors
    /// Where the format cannot hold the rows of so many outputs.
    fn open(&mut self, outputs: &[Output], out: &mut Vec<u8>) -> io::Result<()>;

    /// Appends row `i` of an output, to the end of its line; nothing, where the format has no way
    /// to write it, which is counted.
    fn row(&self, out: &mut Vec<u8>, output: usize, rows: &Rows, i: usize);
}

/// Writes rows as lines of a format.
#[derive(Debug)]
pub struct Lines<W, F> {
    pub(crate) out: RowWriter<W>,
    pub(crate) format: F,
}

impl<W: Write, F> Lines<W, F> {
    pub(crate) fn of_format(out: W, format: F) -> Lines<W, F> {
        Lines { out: RowWriter::new(out, 2 * BUFFER_BYTES), format }
    }

    /// The writer, with everything flushed so far.
    pub fn into_inner(self) -> W {
        self.out.into_inner()
    }
}

impl<W: Write, F: LineFormat> Sink for Lines<W, F> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.format.open(outputs, &mut self.out.buffer)
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.out.give(rows.len);
        for i in 0..rows.len {
            let before = self.out.buffer.len();
            self.format.row(&mut self.out.buffer, output, rows, i);
            if self.out.buffer.len() == before {
                self.out.leave_out();
                continue;
            }
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
