//! The sink of record batches.

use super::titles::{ARROW_TITLE, PARQUET_TITLE};
use crate::options::RowOptions;
use crate::writer::RowWriter;
use std::io::{self, Write};
use weir_arrow::{Encoding, Gathering, ParquetFile, Stream};
use weir_engine::rows::{Output, Rows, Sink};

/// Columns of all types have a place.
pub(super) fn check(_: &[Output]) -> Result<(), String> {
    Ok(())
}

pub(super) fn stream<'a>(out: Box<dyn Write + 'a>, options: RowOptions) -> Box<dyn Sink + 'a> {
    Box::new(RecordBatches::<_, Stream>::new(out, options, ARROW_TITLE))
}

pub(super) fn parquet<'a>(out: Box<dyn Write + 'a>, options: RowOptions) -> Box<dyn Sink + 'a> {
    Box::new(RecordBatches::<_, ParquetFile>::new(out, options, PARQUET_TITLE))
}

/// Writes rows as record batches of an encoding.
struct RecordBatches<W, E> {
    out: RowWriter<W>,
    options: RowOptions,
    title: &'static str,
    /// The rows that are gathered and the bytes so far, between opening and the end.
    open: Option<(Gathering, E)>,
}

impl<W: Write, E: Encoding> RecordBatches<W, E> {
    fn new(out: W, options: RowOptions, title: &'static str) -> RecordBatches<W, E> {
        RecordBatches { out: RowWriter::new(out, 0), options, title, open: None }
    }

    /// Writes a record batch of the rows that were gathered.
    fn write_batch(&mut self) -> io::Result<()> {
        let Some((gathering, encoding)) = &mut self.open else { return Ok(()) };
        if gathering.rows() > 0 {
            let encoded = encoding.write(&gathering.take());
            encoded.inspect_err(|_| self.out.fail())?;
            self.out.buffer.append(encoding.bytes());
            if E::IS_READ_BEFORE_ITS_END {
                self.out.end_all();
            }
        }
        self.out.write_out()
    }
}

impl<W: Write, E: Encoding> Sink for RecordBatches<W, E> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let [output] = outputs else {
            let (format, n) = (self.title, outputs.len());
            let reason = format!("{format} has one schema, and the query has {n} outputs");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let gathering = Gathering::new(&output.schema, self.options.addresses);
        let mut encoding = E::begin(gathering.schema())?;
        self.out.buffer.append(encoding.bytes());
        self.open = Some((gathering, encoding));
        // A reader of a stream waits for the schema.
        self.flush()
    }

    fn rows(&mut self, _output: usize, rows: &Rows) -> io::Result<()> {
        let Some((gathering, _)) = &mut self.open else { return Ok(()) };
        self.out.give(rows.len);
        gathering.append(rows);
        if gathering.is_full() { self.write_batch() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !E::IS_READ_BEFORE_ITS_END || !self.options.stream {
            return Ok(());
        }
        self.write_batch()?;
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_batch()?;
        let Some((_, mut encoding)) = self.open.take() else { return Ok(()) };
        encoding.finish().inspect_err(|_| self.out.fail())?;
        self.out.buffer.append(encoding.bytes());
        if !E::IS_READ_BEFORE_ITS_END {
            self.out.end_all();
        }
        self.out.flush()
    }

    fn unwritten(&self) -> u64 {
        self.out.unwritten()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
