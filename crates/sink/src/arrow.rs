//! Rows as record batches: a stream of Apache Arrow, and a file of Apache Parquet.
//!
//! Both are columns, as [`weir_arrow`] makes them of rows. A stream can be read as it comes, record
//! batch by record batch. Of a Parquet file nothing can be read before its end is there, so its
//! rows count as written then.

mod encoding;

use crate::format::{Format, Holds};
use crate::options::RowOptions;
use crate::writer::RowWriter;
use encoding::{Encoding, ParquetFile, Stream};
use std::io::{self, Write};
use weir_arrow::Gathering;
use weir_engine::rows::{Output, Rows, Sink};

/// A stream of Arrow.
pub(crate) static STREAM: Format = Format {
    name: "arrow",
    title: Stream::TITLE,
    about: "A stream of Apache Arrow (IPC), in binary",
    ending: "arrows",
    holds: Holds::OneOutput,
    is_text: false,
    check: |_| Ok(()),
    make: |out, options| Box::new(RecordBatches::<_, Stream>::new(out, options)),
};

/// A Parquet file.
pub(crate) static PARQUET: Format = Format {
    name: "parquet",
    title: ParquetFile::TITLE,
    about: "A file of Apache Parquet, in binary; it can be read once the run has ended",
    ending: "parquet",
    holds: Holds::OneOutput,
    is_text: false,
    check: |_| Ok(()),
    make: |out, options| Box::new(RecordBatches::<_, ParquetFile>::new(out, options)),
};

/// Writes rows as record batches of an encoding.
struct RecordBatches<W, E> {
    out: RowWriter<W>,
    options: RowOptions,
    /// The rows that are gathered and the bytes so far, between opening and the end.
    open: Option<(Gathering, E)>,
}

impl<W: Write, E: Encoding> RecordBatches<W, E> {
    fn new(out: W, options: RowOptions) -> RecordBatches<W, E> {
        RecordBatches { out: RowWriter::new(out, 0), options, open: None }
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
            let (format, n) = (E::TITLE, outputs.len());
            let reason = format!("{format} has one schema, and the query has {n} outputs");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let gathering = Gathering::new(&output.schema, self.options.addresses);
        let encoding = E::begin(gathering.schema())?;
        self.open = Some((gathering, encoding));
        Ok(())
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
mod tests;
