//! The messages of the run of a partition: its rows, and how far it is.

use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;
use weir_engine::rows::{Output, Rows, Sink};
use weir_kafka::worker::{FromWorker, Mark};
use weir_sink::{KeyedRows, TimeFormat};

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The way to the process that carries rows. A clone is the same.
#[derive(Clone)]
pub struct Up(Arc<Mutex<Way>>);

struct Way {
    to: BufWriter<File>,
    /// Whether rows are new.
    is_live: bool,
    /// Whether the run that captured has ended, and by which record, if by one.
    closed: Option<Option<Mark>>,
}

impl Up {
    /// To the process that reads from this pipe.
    pub fn new(to: File) -> Up {
        let to = BufWriter::with_capacity(BUFFER_BYTES, to);
        Up(Arc::new(Mutex::new(Way { to, is_live: false, closed: None })))
    }

    /// Whether rows from now on are new, or are out already.
    pub fn set_live(&self, is_live: bool) {
        self.with(|way| way.is_live = is_live);
    }

    /// The run that captured has ended, by this record if there is one: once all rows are out, so
    /// has this one.
    pub fn set_closed(&self, last: Option<Mark>) {
        self.with(|way| way.closed = Some(last));
    }

    /// Says that all rows are out, if the run that captured has ended.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn finish(&self) -> io::Result<()> {
        match self.with(|way| way.closed.take()) {
            Some(last) => self.say(&FromWorker::Finished(last)),
            None => Ok(()),
        }
    }

    /// Whether rows are new.
    #[cfg(test)]
    pub fn is_live(&self) -> bool {
        self.with(|way| way.is_live)
    }

    /// Says something, at once.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn say(&self, what: &FromWorker) -> io::Result<()> {
        self.with(|way| what.write(&mut way.to).and_then(|()| way.to.flush()))
    }

    /// Hands a message of partial results on, if it is new.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn message(&self, message: &[u8]) -> io::Result<()> {
        self.with(|way| match way.is_live {
            true => FromWorker::write_message(message, &mut way.to),
            false => Ok(()),
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut Way) -> R) -> R {
        act(&mut self.0.lock())
    }
}

/// Rows on the way to the process that carries them.
pub struct RowsUp {
    up: Up,
    rows: KeyedRows,
    time: TimeFormat,
}

impl RowsUp {
    /// Rows by this way.
    pub fn new(up: Up, time: TimeFormat) -> RowsUp {
        RowsUp { up, rows: KeyedRows::default(), time }
    }
}

impl Sink for RowsUp {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.rows = KeyedRows::new(outputs, self.time);
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let keyed = &mut self.rows;
        self.up.with(|way| match way.is_live {
            true => keyed
                .each(output, rows, |key, value| FromWorker::write_row(key, value, &mut way.to)),
            false => Ok(()),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Rows of a run that reads no partition, on the way to the process that carries them.
pub struct RowsOut<W: io::Write> {
    to: BufWriter<W>,
    rows: KeyedRows,
    time: TimeFormat,
}

impl<W: io::Write> RowsOut<W> {
    /// Rows to this writer.
    pub fn new(to: W, time: TimeFormat) -> RowsOut<W> {
        let to = BufWriter::with_capacity(BUFFER_BYTES, to);
        RowsOut { to, rows: KeyedRows::default(), time }
    }
}

/// A process that takes no rows any more is no quiet end: all of them are wanted.
fn failed(e: io::Error) -> io::Error {
    io::Error::other(format!("--rows: {e}"))
}

impl<W: io::Write> Sink for RowsOut<W> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.rows = KeyedRows::new(outputs, self.time);
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let to = &mut self.to;
        let write = |key: Option<&[u8]>, value: &[u8]| FromWorker::write_row(key, value, to);
        self.rows.each(output, rows, write).map_err(failed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().map_err(failed)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}
