//! A sink without a reader.

use crate::rows::{Output, Rows, Sink};
use std::io;

/// A sink for rows that are not read.
#[derive(Debug)]
pub struct Discard;

impl Sink for Discard {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, _: usize, _: &Rows) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
