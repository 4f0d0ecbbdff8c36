//! The answer of a Weir that was built without Arrow and Parquet.

use super::titles::{ARROW_TITLE, PARQUET_TITLE};
use crate::options::RowOptions;
use std::io::{self, Write};
use weir_engine::rows::{Output, Rows, Sink};

/// The remedy.
const HOW: &str = "this weir was built without Arrow and Parquet: `cargo install --path \
                   crates/weir --features tables` builds one with them";

pub(super) fn check(_: &[Output]) -> Result<(), String> {
    Err(HOW.to_owned())
}

pub(super) fn stream<'a>(_: Box<dyn Write + 'a>, _: RowOptions) -> Box<dyn Sink + 'a> {
    Box::new(Unbuilt(ARROW_TITLE))
}

pub(super) fn parquet<'a>(_: Box<dyn Write + 'a>, _: RowOptions) -> Box<dyn Sink + 'a> {
    Box::new(Unbuilt(PARQUET_TITLE))
}

/// A sink that does not open.
struct Unbuilt(&'static str);

impl Sink for Unbuilt {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("{}: {HOW}", self.0)))
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
