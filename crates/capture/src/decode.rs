//! From bytes to batches, whatever the format: what files in memory and streams share.

use crate::options::Options;
use weir_packet::pcap::{self, FILE_HEADER, FileHeader, HeaderError, Step};
use weir_packet::pcapng;
use weir_packet::source::{Chunk, FrameBatch, LinkType, SourceError};
use weir_packet::walk;

/// Bytes that tell any format; no capture is shorter.
pub(crate) const HEAD: usize = FILE_HEADER;

/// Whether a capture begins so.
pub(crate) fn is_start(head: &[u8]) -> bool {
    head.starts_with(&pcapng::MAGIC) || !matches!(FileHeader::parse(head), Err(HeaderError::Magic))
}

/// Reads the records of one capture.
pub(crate) struct Decoder {
    name: String,
    format: Format,
    any_link: bool,
    /// The link type of the batch before, known to be decoded.
    link: Option<LinkType>,
    received: u64,
}

enum Format {
    Pcap(pcap::PcapReader),
    Pcapng(pcapng::PcapngReader),
}

impl Decoder {
    /// A decoder for a capture that begins with `head`, of [`HEAD`] bytes or all there are, and
    /// the position of its first record.
    pub(crate) fn new(
        name: &str,
        head: &[u8],
        options: &Options,
    ) -> Result<(Decoder, usize), SourceError> {
        let refuse = |reason: String| SourceError::Format { name: name.to_owned(), reason };
        let (format, start) = if head.starts_with(&pcapng::MAGIC) {
            (Format::Pcapng(pcapng::PcapngReader::naming(&options.interfaces)), 0)
        } else {
            match FileHeader::parse(head) {
                Ok(header) => (Format::Pcap(pcap::PcapReader::new(&header)), FILE_HEADER),
                Err(HeaderError::Magic) => return Err(refuse(describe(head).to_owned())),
                Err(error) => return Err(refuse(error.to_string())),
            }
        };
        let name = name.to_owned();
        let any_link = options.any_link;
        Ok((Decoder { name, format, any_link, link: None, received: 0 }, start))
    }

    /// Fills `batch` from `chunk` at `at`; `offset` is where the chunk starts in the capture.
    pub(crate) fn fill(
        &mut self,
        chunk: &Chunk,
        at: &mut usize,
        offset: u64,
        batch: &mut FrameBatch,
    ) -> Result<Step, SourceError> {
        let step = match &mut self.format {
            Format::Pcap(reader) => reader.fill(chunk, at, batch).map_err(|e| e.to_string()),
            Format::Pcapng(reader) => reader.fill(chunk, at, batch).map_err(|e| e.to_string()),
        };
        let step = step.map_err(|reason| self.corrupt(offset + *at as u64, reason))?;
        if step == Step::Frames {
            self.check_link(batch.link)?;
            self.received += batch.len() as u64;
        }
        Ok(step)
    }

    /// Frames delivered so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The error for a capture that ends `have` bytes into a record of `need` bytes at `offset`.
    pub(crate) fn torn(&self, offset: u64, have: usize, need: usize) -> SourceError {
        let reason = format!("the capture breaks off {have} bytes into a record of {need}");
        self.corrupt(offset, reason)
    }

    /// The error for a record at `offset` that can't be read.
    pub(crate) fn corrupt(&self, offset: u64, reason: String) -> SourceError {
        SourceError::Corrupt { name: self.name.clone(), offset, records: self.received, reason }
    }

    fn check_link(&mut self, link: LinkType) -> Result<(), SourceError> {
        if self.link != Some(link) && !self.any_link && !walk::supported(link) {
            return Err(SourceError::LinkType { name: self.name.clone(), link });
        }
        self.link = Some(link);
        Ok(())
    }
}

/// The description of a file that is no capture, and what to do about it where we know.
fn describe(head: &[u8]) -> &'static str {
    match head {
        [] => "the file is empty",
        [b'B', b'Z', b'h', ..] => {
            "the file is compressed with bzip2; decompress it first: bzip2 -dc FILE | weir … -r -"
        }
        [0xfd, b'7', b'z', b'X', b'Z', ..] => {
            "the file is compressed with xz; decompress it first: xz -dc FILE | weir … -r -"
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => {
            "the file is compressed with lz4; decompress it first: lz4 -dc FILE | weir … -r -"
        }
        [b's', b'n', b'o', b'o', b'p', 0, 0, 0, ..] => {
            "the file is a snoop capture; convert it first: editcap FILE new.pcapng"
        }
        [b'G', b'M', b'B', b'U', ..] | [b'R', b'T', b'S', b'S', ..] => {
            "the file is a Network Monitor capture; convert it first: editcap FILE new.pcapng"
        }
        _ => "the file is not a capture: it begins as neither pcap nor pcapng",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_capture_is_named() {
        let check = |head: &[u8], expected: &str| {
            let Err(error) = Decoder::new("x", head, &Options::default()) else {
                panic!("{head:?} is taken for a capture");
            };
            assert!(matches!(error, SourceError::Format { .. }));
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(b"", "x: the file is empty");
        check(b"BZh91AY", "bzip2");
        check(b"\xfd7zXZ\0", "xz -dc");
        check(b"snoop\0\0\0", "editcap");
        check(b"<!DOCTYPE html>", "neither pcap nor pcapng");
        check(b"\xd4\xc3\xb2\xa1\x02\x00", "cut short");
        check(b"\xd4\xc3\xb2\xa1\x07\x00\x04\x00................", "version 7.4");
    }
}
