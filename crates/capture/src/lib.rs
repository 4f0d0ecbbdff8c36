//! Where frames come from and go: capture files, plain or compressed, mapped or streamed, and the
//! filters that tcpdump users type; the interfaces of this machine ([`live`]).
//! [`outlets::Outlets`] takes the frames that a run hands out, to files ([`mod@write`]) and onto
//! wires ([`send`]).
//!
//! [`open`] takes what a user names and gives a [`Source`]. A plain file is mapped and its frames
//! stay where they are; standard input, pipes and compressed files are read into buffers that are
//! used again once no batch refers to them. Either way no byte of a frame is copied, nothing is
//! allocated per batch, and every record is delivered, filtered, or the subject of an error that
//! says where it stands.

#![deny(unsafe_code)]

#[cfg(target_os = "linux")]
pub mod adapter;
mod ahead;
pub mod bpf;
mod buffers;
mod captures;
pub mod cbpf;
mod chain;
mod compress;
mod decode;
#[cfg(target_os = "linux")]
pub mod ebpf;
mod file;
pub mod limits;
pub mod live;
pub mod loans;
pub mod lookback;
pub mod memory;
mod merge;
pub mod outlets;
pub mod send;
mod stream;
mod sys;
pub mod write;
#[cfg(target_os = "linux")]
pub mod xdp;

pub use captures::Captures;
pub use file::fuzz_file;

use bpf::{Filter, Filtered};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use weir_packet::interface::InterfaceNames;
use weir_packet::source::{Source, SourceError};

/// How to read a capture.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Deliver only the frames that match; the others are counted.
    pub filter: Option<Filter>,
    /// Deliver frames of link types that are not decoded too, instead of ending with
    /// [`SourceError::LinkType`] at the first of them.
    pub any_link: bool,
    /// Map all pages of a plain file when it is opened, instead of some ahead of the reader: for
    /// measuring the work apart from the mapping. Takes as much address space and, as far as the
    /// page cache goes, memory as the file is long.
    pub populate: bool,
    /// In which order several captures are read.
    pub order: Order,
    /// Captures that may be read at the same time, among which pages of mapped files are divided:
    /// 0 is as 1. [`Captures`] sets it where it merges.
    pub at_once: usize,
    /// Where the names of interfaces go that files say: one table for all of a run, its
    /// [outlets](outlets::Outlets::name_interfaces) among them.
    pub interfaces: InterfaceNames,
}

/// In which order several captures are read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Order {
    /// Merged by the times of their packets. Of equal times, the capture named first comes first;
    /// each keeps its own order. One that breaks off ends by itself: the others are read to their
    /// end, and then the error comes.
    #[default]
    Time,
    /// One after the other, as they are named. An error is the end of all.
    Given,
}

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
fn opened(name: &str) -> Result<File, SourceError> {
    let io_error = |source| SourceError::Io { name: name.to_owned(), source };
    let file = File::open(name).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.is_dir() {
        let reason = "is a directory, not a capture file".to_owned();
        return Err(SourceError::Format { name: name.to_owned(), reason });
    }
    Ok(file)
}

/// Opens a capture whose file is open; `name` stands in errors.
fn open_file(name: &str, file: File, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    match plain(&file) {
        Some(map) => {
            let source = file::Resident::mapped(name, map, options)?;
            Ok(filtered(source, name, options))
        }
        None => open_reader(name, file, options),
    }
}

/// Maps a plain file that is not compressed. One that can't be mapped (some special file systems)
/// can still be read.
fn plain(file: &File) -> Option<sys::map::Mapping> {
    let map = file.metadata().is_ok_and(|meta| meta.is_file());
    let map = map.then(|| sys::map::Mapping::new(file).ok()).flatten();
    map.filter(|map| compress::Compression::of(map.as_ref()).is_none())
}

/// Opens several captures as one, in the [order](Options::order) that is asked for, their packets
/// numbered through. Files are opened now, as far as they may be at the same time (see
/// [`Captures`]).
///
/// # Errors
/// As for [`open`], of the first, or where they are merged, of any; and where another is missing.
pub fn open_all(names: Vec<String>, options: &Options) -> Result<Box<dyn Source>, SourceError> {
    Captures::new(names, options)?.start()
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
    let source = stream::Stream::new(name, Box::new(input), options)?;
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
    if compress::Compression::of(&bytes).is_some() {
        return open_reader(name, Cursor::new(bytes), options);
    }
    let source = file::Resident::new(name, Arc::new(bytes), options)?;
    Ok(filtered(source, name, options))
}

/// Bytes of the file `name`, against which [`weir_packet::source::Account::bytes_read`] counts;
/// `None` where that is not known beforehand.
pub fn size_hint(name: &str) -> Option<u64> {
    let meta = std::fs::metadata(name).ok()?;
    (name != "-" && meta.is_file()).then_some(meta.len())
}

fn filtered(source: impl Source + 'static, name: &str, options: &Options) -> Box<dyn Source> {
    match &options.filter {
        Some(filter) => Box::new(Filtered::new(source, name, filter.clone())),
        None => Box::new(source),
    }
}
