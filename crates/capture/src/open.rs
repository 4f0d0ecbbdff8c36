//! Opening a capture: mapped, streamed or in memory, with a filter around it.

use crate::bpf::Filtered;
use crate::compress::Compression;
use crate::decode::{HEAD, is_start};
use crate::file::Resident;
use crate::options::Options;
use crate::stream::Stream;
use crate::sys::map::Mapping;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use weir_packet::source::{Source, SourceError};

/// Opens the capture file `name`, or standard input for `-`. The format (pcap or pcapng) and the
/// compression (none, gzip or zstd) are told by the first bytes, never by the name.
///
/// # Errors
/// When there is no such file, it can't be read, or its first bytes are of no known format.
pub fn open(name: &str, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    if name == "-" {
        return open_reader(name, io::stdin(), options);
    }
    open_file(name, opened(name)?, options)
}

/// The file of this name, which is no directory.
pub(crate) fn opened(name: &str) -> Result<File, SourceError> {
    let io_error = |source| SourceError::Io { name: name.to_owned(), source };
    let file = File::open(name).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.is_dir() {
        let reason = "it is a directory, not a capture file".to_owned();
        return Err(SourceError::Format { name: name.to_owned(), reason });
    }
    Ok(file)
}

/// Opens a capture whose file is open; `name` stands in errors.
pub(crate) fn open_file(
    name: &str,
    file: File,
    options: &Options,
) -> Result<Box<dyn Source>, SourceError> {
    match map_plain(&file) {
        Some(map) => {
            let source = Resident::mapped(name, map, options)?;
            Ok(filtered(source, name, options))
        }
        None => open_reader(name, file, options),
    }
}

/// Whether the file begins as a capture does, or as what captures are compressed with; nothing but
/// plain files is opened.
pub fn begins_as_capture(path: &Path) -> bool {
    if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut head = Vec::with_capacity(HEAD);
    let read = File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    read.is_ok() && (Compression::of(&head).is_some() || is_start(&head))
}

/// Maps a plain file that is not compressed. One that can't be mapped (some special file systems)
/// can still be read.
pub(crate) fn map_plain(file: &File) -> Option<Mapping> {
    let map = file.metadata().is_ok_and(|meta| meta.is_file());
    let map = map.then(|| Mapping::new(file).ok()).flatten();
    map.filter(|map| Compression::of(map.as_ref()).is_none())
}

/// Reads a capture from `input`; `name` stands in errors. Frames are delivered as soon as they
/// have arrived whole.
///
/// # Errors
/// When `input` fails, or its first bytes are of no known format.
pub fn open_reader(
    name: &str,
    input: impl Read + Send + 'static,
    options: &Options,
) -> Result<Box<dyn Source>, SourceError> {
    let source = Stream::new(name, Box::new(input), options)?;
    Ok(filtered(source, name, options))
}

/// Reads a capture file held in memory, compressed or not; `name` stands in errors.
///
/// # Errors
/// When its first bytes are of no known format.
pub fn open_bytes(
    name: &str,
    bytes: Vec<u8>,
    options: &Options,
) -> Result<Box<dyn Source>, SourceError> {
    if Compression::of(&bytes).is_some() {
        return open_reader(name, Cursor::new(bytes), options);
    }
    let source = Resident::new(name, Arc::new(bytes), options)?;
    Ok(filtered(source, name, options))
}

/// Bytes of the file `name`, against which [`weir_packet::source::Account::bytes_read`] counts;
/// `None` where that is not known beforehand.
pub fn size_hint(name: &str) -> Option<u64> {
    let meta = std::fs::metadata(name).ok()?;
    (name != "-" && meta.is_file()).then_some(meta.len())
}

pub(crate) fn filtered(
    source: impl Source + 'static,
    name: &str,
    options: &Options,
) -> Box<dyn Source> {
    match &options.filter {
        Some(filter) => Box::new(Filtered::new(source, name, filter.clone())),
        None => Box::new(source),
    }
}
