//! Rows as bytes on their way out: gathered, written in large pieces, and counted once they are
//! written.

use crate::limits::BUFFER_BYTES;
use std::io::{self, Write};

/// A writer that knows which of the rows it was given are written.
#[derive(Debug)]
pub(crate) struct RowWriter<W> {
    out: W,
    /// Bytes that are not written yet: whole rows, and what stands before and between them.
    pub(crate) buffer: Vec<u8>,
    /// Where each row ends in them.
    ends: Vec<usize>,
    /// Rows that end, all of them, where the bytes end.
    ending: u64,
    /// Rows given so far, and those of them that are written.
    given: u64,
    written: u64,
    failed: bool,
    /// Rows that the format has no way to write.
    left_out: u64,
}

impl<W: Write> RowWriter<W> {
    pub(crate) fn new(out: W, capacity: usize) -> RowWriter<W> {
        let (buffer, ends) = (Vec::with_capacity(capacity), Vec::new());
        RowWriter { out, buffer, ends, ending: 0, given: 0, written: 0, failed: false, left_out: 0 }
    }

    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    #[cfg(test)]
    pub(crate) fn get_ref(&self) -> &W {
        &self.out
    }

    /// Rows were given, some of which may not be in the buffer yet.
    pub(crate) fn give(&mut self, rows: usize) {
        self.given += rows as u64;
    }

    /// The last byte of the buffer is the last of a row.
    #[inline]
    pub(crate) fn end_row(&mut self) {
        self.ends.push(self.buffer.len());
    }

    /// The last byte of the buffer is the last of all rows that were given.
    #[cfg(feature = "tables")]
    pub(crate) fn end_all(&mut self) {
        self.ending = self.given - self.written;
    }

    /// Rows that were given could not be encoded: no more are written.
    #[cfg(feature = "tables")]
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// A row that was given has no form.
    pub(crate) fn leave_out(&mut self) {
        self.given -= 1;
        self.left_out += 1;
    }

    /// Whether so many bytes have gathered that they should be written.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() >= BUFFER_BYTES
    }

    /// Rows that were given and will never be written, since writing failed, or the format has no
    /// form for them.
    pub(crate) fn unwritten(&self) -> u64 {
        self.left_out + if self.failed { self.given - self.written } else { 0 }
    }

    /// Writes what has gathered. Of a row that is written in part, as by a disk that is full then,
    /// nothing counts.
    pub(crate) fn write_out(&mut self) -> io::Result<()> {
        let (bytes, result) = write_counted(&mut self.out, &self.buffer);
        self.written += self.ends.partition_point(|&end| end <= bytes) as u64;
        self.written += std::mem::take(&mut self.ending) * u64::from(result.is_ok());
        self.buffer.clear();
        self.ends.clear();
        self.failed |= result.is_err();
        result
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.out.flush().inspect_err(|_| self.failed = true)
    }
}

/// Writes bytes; how many were written, also where that failed before the last.
fn write_counted(out: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while done < bytes.len() {
        match out.write(&bytes[done..]) {
            Ok(0) => return (done, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return (done, Err(e)),
        }
    }
    (done, Ok(()))
}
