//! One capture file being written.

use super::error::WriteError;
use super::format::Format;
use super::id::FileId;
use super::rotate::{RotatedFiles, Turn};
use super::stoppable::StoppableWriter;
use super::untouched::Untouched;
use crate::limits::WRITE_BUFFER;
use std::io::{self, Seek as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::egress::{Outlet, Refusal, Refused, Sent};
use weir_packet::interface::InterfaceNames;
use weir_packet::source::LinkType;

/// A file being written.
pub(super) struct Output {
    pub(super) outlet: Outlet,
    /// The name of the file that it writes now.
    pub(super) name: String,
    pub(super) id: Option<FileId>,
    target: Target,
    /// Frames that are not written yet.
    buffered: Buffered,
    format: Format,
    /// Whether writing failed; then nothing more is written.
    failed: bool,
    stops: Vec<Arc<AtomicBool>>,
    /// The files that follow this one, where the capture is rotated.
    pub(super) rotated: Option<RotatedFiles>,
    /// Bytes of this file, those that are not written yet among them.
    bytes: u64,
    counts: OutputCounts,
    /// The counts when outlets were last opened.
    counts_before: OutputCounts,
}

/// Where the bytes of an output go.
pub(super) enum Target {
    /// Nowhere: the first file of a rotated capture is made by the first frame.
    None,
    /// The file is as it was, as long as its outlet is not open.
    Untouched(Untouched),
    /// The file is written.
    Open(StoppableWriter),
}

/// The first file of an output.
pub(super) struct OutputFile<'a> {
    pub(super) name: &'a str,
    pub(super) id: Option<FileId>,
    pub(super) target: Target,
}

/// Frames as bytes that are not written yet.
struct Buffered {
    bytes: Vec<u8>,
    frames: Vec<BufferedFrame>,
}

/// A frame among bytes that are not written yet.
struct BufferedFrame {
    /// Where it ends among the bytes.
    end: usize,
    /// Its length on the wire.
    len: u32,
}

/// Frames that an output did not write.
#[derive(Clone, Copy, Default)]
struct OutputCounts {
    missing: Missing,
    /// Frames that came after the last file of a rotated capture.
    refused: Refused,
}

/// Frames that came into no file.
#[derive(Clone, Copy, Default)]
pub(crate) struct Missing {
    pub(crate) frames: u64,
    /// Their lengths on the wire.
    pub(crate) bytes: u64,
}

impl Output {
    /// An output that has written nothing yet.
    pub(super) fn new(
        outlet: &Outlet,
        file: OutputFile<'_>,
        format: Format,
        rotated: Option<RotatedFiles>,
    ) -> Output {
        let OutputFile { name, id, target } = file;
        let buffered = Buffered { bytes: Vec::with_capacity(WRITE_BUFFER), frames: Vec::new() };
        Output {
            outlet: outlet.clone(),
            name: name.to_owned(),
            id,
            target,
            buffered,
            format,
            failed: false,
            stops: Vec::new(),
            rotated,
            bytes: 0,
            counts: OutputCounts::default(),
            counts_before: OutputCounts::default(),
        }
    }

    /// Counts anew from here on, for outlets that were just opened.
    pub(super) fn count_anew(&mut self) {
        self.counts_before = self.counts;
    }

    /// Frames that came into no file since outlets were opened.
    pub(super) fn missing(&self) -> Missing {
        let (now, before) = (self.counts.missing, self.counts_before.missing);
        Missing { frames: now.frames - before.frames, bytes: now.bytes - before.bytes }
    }

    /// Frames that came after the last file since outlets were opened.
    pub(super) fn refused(&self) -> Refused {
        self.counts.refused.since(&self.counts_before.refused)
    }

    /// Whether all its files were written, and no frame has a place any more.
    pub(super) fn is_over(&self) -> bool {
        self.counts.refused.total().0 > 0
    }

    /// Empties its file, if it has one that is as it was, and writes there from here on.
    pub(super) fn begin(&mut self, stops: &[Arc<AtomicBool>]) -> io::Result<()> {
        self.stops = stops.to_vec();
        if !matches!(self.target, Target::Untouched(_)) {
            return Ok(());
        }
        let target = std::mem::replace(&mut self.target, Target::None);
        let Target::Untouched(file) = target else { return Ok(()) };
        let file = file.begin().map_err(|e| {
            self.failed = true;
            WriteError::of(&self.name)(e)
        })?;
        self.target = Target::Open(StoppableWriter::new(file, stops));
        Ok(())
    }

    pub(super) fn frame(
        &mut self,
        frame: &Sent,
        bytes: &[u8],
        names: &InterfaceNames,
    ) -> io::Result<()> {
        if self.failed {
            self.miss(1, u64::from(frame.len));
            return Ok(());
        }
        self.take(frame, bytes, names)
    }

    /// Counts frames that come into no file.
    fn miss(&mut self, frames: u64, bytes: u64) {
        self.counts.missing.frames += frames;
        self.counts.missing.bytes += bytes;
    }

    fn take(&mut self, frame: &Sent, bytes: &[u8], names: &InterfaceNames) -> io::Result<()> {
        match self.rotated.as_mut().map_or(Turn::Stay, |f| f.turn(self.bytes, frame.ts)) {
            Turn::Stay => {}
            Turn::Next => {
                if let Err(e) = self.go_on() {
                    self.miss(1, u64::from(frame.len));
                    return Err(e);
                }
            }
            Turn::Over => {
                self.counts.refused.add(Refusal::Over, frame.len);
                return self.flush();
            }
        }
        let before = self.buffered.bytes.len();
        if let Err(first) = self.format.put(&mut self.buffered.bytes, frame, bytes, Some(names)) {
            self.miss(1, u64::from(frame.len));
            return Err(self.other_link(first, frame.link));
        }
        self.buffered.frames.push(BufferedFrame { end: self.buffered.bytes.len(), len: frame.len });
        self.bytes += (self.buffered.bytes.len() - before) as u64;
        if self.buffered.bytes.len() >= WRITE_BUFFER { self.write() } else { Ok(()) }
    }

    /// Ends this file, and goes on in the next.
    fn go_on(&mut self) -> io::Result<()> {
        self.flush()?;
        let Some(rotated) = &mut self.rotated else { return Ok(()) };
        match rotated.next() {
            Ok((name, file, id)) => {
                let target = Target::Open(StoppableWriter::new(file, &self.stops));
                (self.name, self.target, self.id) = (name, target, id);
            }
            Err(e) => {
                self.failed = true;
                return Err(e);
            }
        }
        (self.format, self.bytes) = (self.format.afresh(), 0);
        Ok(())
    }

    /// Refuses a frame of another link type than the first. Frames that came before are kept.
    fn other_link(&mut self, first: LinkType, other: LinkType) -> io::Error {
        if let Err(e) = self.flush() {
            return e;
        }
        self.failed = true;
        WriteError::OtherLink { name: self.name.clone(), first, other }.into()
    }

    /// Writes what waits. Where that fails, the file ends with the last frame that is whole, and
    /// frames after it count as missing.
    fn write(&mut self) -> io::Result<()> {
        let bytes = &self.buffered.bytes;
        let (done, written) = match &mut self.target {
            Target::Open(out) => write_counted(out, bytes),
            Target::None | Target::Untouched(_) => (bytes.len(), Ok(())),
        };
        if written.is_err() {
            self.failed = true;
            let frames = &self.buffered.frames;
            let whole = frames.partition_point(|frame| frame.end <= done);
            let end = whole.checked_sub(1).map_or(0, |last| frames[last].end);
            let lens = frames[whole..].iter().map(|frame| u64::from(frame.len));
            let (missing, bytes) = (lens.len() as u64, lens.sum());
            self.miss(missing, bytes);
            self.cut_off(done - end);
        }
        self.buffered.bytes.clear();
        self.buffered.frames.clear();
        written.map_err(WriteError::of(&self.name))
    }

    /// Takes so many bytes off the end of the file, where that can be done: they are the beginning
    /// of a frame, or of what stands before the first.
    fn cut_off(&mut self, bytes: usize) {
        let Target::Open(out) = &self.target else { return };
        let mut file = out.file();
        let plain = file.metadata().is_ok_and(|meta| meta.is_file());
        if let (true, Ok(end)) = (plain && bytes > 0, file.stream_position()) {
            // Where it can't be cut, readers find its last record torn.
            drop(file.set_len(end.saturating_sub(bytes as u64)));
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.failed || self.buffered.bytes.is_empty() {
            return Ok(());
        }
        // The system has it then: there is nothing else to flush.
        self.write()
    }

    /// Writes what is left.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if matches!(self.target, Target::Untouched(_)) {
            return Ok(());
        }
        self.format.end(&mut self.buffered.bytes);
        self.flush()
    }
}

/// Writes bytes; how many were written, also where that failed before the last.
fn write_counted(out: &mut StoppableWriter, bytes: &[u8]) -> (usize, io::Result<()>) {
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
