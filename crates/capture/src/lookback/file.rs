//! One file of frames around an alert.

use super::writer::{FileChunk, Handle, Writer};
use crate::limits::WRITE_BUFFER;
use crate::write::Format;
use weir_packet::egress::Sent;
use weir_packet::source::FrameBatch;

/// Bytes of a file's name at most: what file systems take.
const NAME_MAX: usize = 255;

/// A file that takes frames.
pub(super) struct CaptureFile {
    file: Handle,
    format: Format,
    /// The bytes that the writer has not been given yet.
    waiting: FileChunk,
    /// Bytes of frames so far.
    bytes: u64,
    /// Frames that it had no room for.
    left_out: u64,
}

/// A frame was not put into a file because the writer was too slow.
pub(super) struct Missed;

impl CaptureFile {
    /// A file in the hands of a writer.
    pub(super) fn new(file: Handle) -> CaptureFile {
        let (format, waiting) = (Format::of(".pcapng"), FileChunk::default());
        CaptureFile { file, format, waiting, bytes: 0, left_out: 0 }
    }

    /// Whether it turned out that there can be no such file.
    pub(super) fn was_never_made(&self) -> bool {
        self.file.state.was_never_made()
    }

    /// Appends a frame, unless it would have more than so many bytes of frames.
    ///
    /// # Errors
    /// Where the writer is too slow.
    pub(super) fn put(
        &mut self,
        batch: &FrameBatch,
        i: usize,
        max: u64,
        writer: &Writer,
    ) -> Result<(), Missed> {
        let bytes = batch.frame(i);
        if self.file.state.has_failed() || self.bytes + bytes.len() as u64 > max {
            self.left_out += 1;
            return Ok(());
        }
        self.hand_over(writer)?;
        let frame = Sent {
            outlet: 0,
            link: batch.link,
            ts: batch.ts()[i],
            len: batch.lens()[i],
            start: 0,
            caplen: bytes.len() as u32,
            trimmed: false,
            capture_point: batch.capture_point(i),
        };
        let names = batch.interface_names();
        if self.format.put(&mut self.waiting.bytes, &frame, bytes, names).is_err() {
            // Of one link type are the frames of pcap files only.
            self.left_out += 1;
            return Ok(());
        }
        self.bytes += bytes.len() as u64;
        self.waiting.frames += 1;
        self.waiting.frame_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Gives the writer what waits, once it is enough.
    fn hand_over(&mut self, writer: &Writer) -> Result<(), Missed> {
        if self.waiting.bytes.len() < WRITE_BUFFER {
            return Ok(());
        }
        let chunk = std::mem::take(&mut self.waiting);
        if let Err(back) = writer.write(&self.file, chunk) {
            self.waiting = back;
            return Err(Missed);
        }
        // As much will come again.
        self.waiting.bytes.reserve(WRITE_BUFFER);
        Ok(())
    }

    /// Gives the writer the last of it.
    pub(super) fn end(mut self, writer: &Writer) {
        self.format.end(&mut self.waiting.bytes);
        writer.end(&self.file, self.waiting, self.left_out);
    }
}

/// Whether a name is that of a file in a folder, of plain characters.
pub(super) fn is_plain(name: &str) -> bool {
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
