//! One file of frames around an alert.

use crate::limits::WRITE_BUFFER;
use crate::write::Format;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use weir_packet::egress::Sent;
use weir_packet::source::FrameBatch;

/// Bytes of a file's name at most: what file systems take.
const NAME_MAX: usize = 255;

/// A file being written.
pub(super) struct CaptureFile {
    file: File,
    format: Format,
    /// Bytes that are not written yet.
    buffer: Vec<u8>,
    /// Bytes of frames so far.
    bytes: u64,
    frames: u64,
    /// Frames among them that are in the buffer.
    waiting: u64,
    left_out: u64,
    /// Whether writing failed; then nothing more is written.
    failed: bool,
}

/// What became of a file.
pub(super) struct Ended {
    pub(super) frames: u64,
    pub(super) left_out: u64,
    pub(super) written: io::Result<()>,
}

impl CaptureFile {
    /// A new file in a folder.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where there is one of that name, and what the system says.
    pub(super) fn create(folder: &Path, name: &str) -> io::Result<CaptureFile> {
        if !is_plain(name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(folder.join(name))?;
        let (format, buffer) = (Format::of(".pcapng"), Vec::new());
        let (bytes, frames, waiting, left_out) = (0, 0, 0, 0);
        Ok(CaptureFile { file, format, buffer, bytes, frames, waiting, left_out, failed: false })
    }

    /// Appends a frame, unless it would have more than so many bytes of frames.
    ///
    /// # Errors
    /// When it can't be written; told once.
    pub(super) fn put(&mut self, batch: &FrameBatch, i: usize, max: u64) -> io::Result<()> {
        let bytes = batch.frame(i);
        if self.failed || self.bytes + bytes.len() as u64 > max {
            self.left_out += 1;
            return Ok(());
        }
        let frame = Sent {
            outlet: 0,
            link: batch.link,
            ts: batch.ts()[i],
            len: batch.lens()[i],
            start: 0,
            caplen: bytes.len() as u32,
            trimmed: false,
        };
        if self.format.put(&mut self.buffer, &frame, bytes).is_err() {
            // Of one link type are the frames of pcap files only.
            self.left_out += 1;
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        (self.frames, self.waiting) = (self.frames + 1, self.waiting + 1);
        if self.buffer.len() >= WRITE_BUFFER { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        let waiting = std::mem::take(&mut self.waiting);
        if written.is_err() {
            // Some of them may be there.
            (self.frames, self.left_out) = (self.frames - waiting, self.left_out + waiting);
            self.failed = true;
        }
        written
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> Ended {
        self.format.end(&mut self.buffer);
        // A failure before was told.
        let written = if self.failed { Ok(()) } else { self.write() };
        Ended { frames: self.frames, left_out: self.left_out, written }
    }
}

/// Whether a name is that of a file in the folder, of plain characters.
fn is_plain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-+".contains(&b);
    (1..=NAME_MAX).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_within_their_folder() {
        assert!(is_plain("scan-2026-11-21T055053.227Z-192.0.2.1.pcapng"));
        for name in ["", ".", "..", ".x", "a/b", "a b", "ä", "a:b", "../x.pcapng"] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(!is_plain(&"x".repeat(256)));
    }
}
