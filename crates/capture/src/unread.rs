//! A capture that is to be read later.

use crate::open::{open, open_file, open_reader, opened};
use crate::options::Options;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use weir_packet::source::{Source, SourceError};

/// A capture that nothing was read of yet.
pub(crate) enum UnreadCapture {
    /// It is open.
    Open { name: String, file: File },
    /// It is to be opened by its name.
    Named(String),
}

/// Whether it can be read only once, and opening it may wait.
pub(crate) fn is_stream(name: &str) -> bool {
    name == "-" || std::fs::metadata(name).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

impl UnreadCapture {
    /// Begins to read it.
    pub(crate) fn open(self, options: &Options) -> Result<Box<dyn Source>, SourceError> {
        match self {
            UnreadCapture::Open { name, file } => open_file(&name, file, options),
            UnreadCapture::Named(name) => open(&name, options),
        }
    }

    /// Reads it from the beginning, and leaves it as it is. `None` where that can't be done.
    pub(crate) fn peek(&self, options: &Options) -> Result<Option<Box<dyn Source>>, SourceError> {
        let (name, file) = match self {
            UnreadCapture::Open { name, file } => (name, file.try_clone()),
            UnreadCapture::Named(name) if is_stream(name) => return Ok(None),
            UnreadCapture::Named(name) => (name, opened(name).map(Ok)?),
        };
        let file = file.map_err(|source| SourceError::Io { name: name.clone(), source })?;
        open_reader(name, PositionedReader { file, at: 0 }, options).map(Some)
    }
}

/// Reads a file from its beginning, wherever others read it.
struct PositionedReader {
    file: File,
    at: u64,
}

impl Read for PositionedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
