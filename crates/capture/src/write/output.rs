//! One capture file being written.

use super::error::WriteError;
use super::format::Format;
use super::id::FileId;
use super::rotate::{Further, Turn};
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
    /// The file as long as its outlet is not open: it is as it was.
    pub(super) untouched: Option<Untouched>,
    /// Where its bytes go; nowhere as long as its outlet is not open.
    pub(super) out: Option<StoppableWriter>,
    /// Bytes that are not written yet.
    pub(super) buffer: Vec<u8>,
    /// Of each frame in them where it ends, and its length on the wire.
    pub(super) waiting: Vec<(usize, u32)>,
    pub(super) format: Format,
    /// Whether writing failed; then nothing more is written.
    pub(super) failed: bool,
    /// Frames that came into no file, and their lengths on the wire.
    pub(super) missing: (u64, u64),
    pub(super) stops: Vec<Arc<AtomicBool>>,
    /// The files that follow this one, where the capture is rotated.
    pub(super) further: Option<Further>,
    /// Bytes of this file, those that are not written yet among them.
    pub(super) bytes: u64,
    /// What came after the last of its files.
    pub(super) refused: Refused,
    /// Both when outlets were last opened.
    pub(super) missing_before: (u64, u64),
    pub(super) refused_before: Refused,
}

impl Output {
    /// An output that goes nowhere yet.
    pub(super) fn new(outlet: &Outlet, name: &str, format: Format, id: Option<FileId>) -> Output {
        Output {
            outlet: outlet.clone(),
            name: name.to_owned(),
            id,
            untouched: None,
            out: None,
            buffer: Vec::with_capacity(WRITE_BUFFER),
            waiting: Vec::new(),
            format,
            failed: false,
            missing: (0, 0),
            stops: Vec::new(),
            further: None,
            bytes: 0,
            refused: Refused::default(),
            missing_before: (0, 0),
            refused_before: Refused::default(),
        }
    }

    /// Empties its file, if it has one that is as it was, and writes there from here on.
    pub(super) fn begin(&mut self, stops: &[Arc<AtomicBool>]) -> io::Result<()> {
        self.stops = stops.to_vec();
        let Some(file) = self.untouched.take() else { return Ok(()) };
        let file = file.begin().map_err(|e| {
            self.failed = true;
            WriteError::of(&self.name)(e)
        })?;
        self.out = Some(StoppableWriter::new(file, stops));
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
        self.missing = (self.missing.0 + frames, self.missing.1 + bytes);
    }

    fn take(&mut self, frame: &Sent, bytes: &[u8], names: &InterfaceNames) -> io::Result<()> {
        match self.further.as_mut().map_or(Turn::Stay, |f| f.turn(self.bytes, frame.ts)) {
            Turn::Stay => {}
            Turn::GoOn => {
                if let Err(e) = self.go_on() {
                    self.miss(1, u64::from(frame.len));
                    return Err(e);
                }
            }
            Turn::Over => {
                self.refused.add(Refusal::Over, frame.len);
                return self.flush();
            }
        }
        let before = self.buffer.len();
        if let Err(first) = self.format.put(&mut self.buffer, frame, bytes, Some(names)) {
            self.miss(1, u64::from(frame.len));
            return Err(self.other_link(first, frame.link));
        }
        self.waiting.push((self.buffer.len(), frame.len));
        self.bytes += (self.buffer.len() - before) as u64;
        if self.buffer.len() >= WRITE_BUFFER { self.write() } else { Ok(()) }
    }

    /// Ends this file, and goes on in the next.
    fn go_on(&mut self) -> io::Result<()> {
        self.flush()?;
        let Some(further) = &mut self.further else { return Ok(()) };
        match further.next() {
            Ok((name, file, id)) => {
                let out = Some(StoppableWriter::new(file, &self.stops));
                (self.name, self.out, self.id) = (name, out, id);
            }
            Err(e) => {
                self.failed = true;
                return Err(e);
            }
        }
        (self.format, self.bytes) = (self.format.afresh(), 0);
        Ok(())
    }

    /// Refuses a frame of another link type than the first. What came before is kept.
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
        let (done, written) = match &mut self.out {
            Some(out) => write_counted(out, &self.buffer),
            None => (self.buffer.len(), Ok(())),
        };
        if written.is_err() {
            self.failed = true;
            let whole = self.waiting.partition_point(|&(end, _)| end <= done);
            let lens = self.waiting[whole..].iter().map(|&(_, len)| u64::from(len));
            self.miss(lens.len() as u64, lens.sum());
            let end = whole.checked_sub(1).map_or(0, |last| self.waiting[last].0);
            self.cut_off(done - end);
        }
        self.buffer.clear();
        self.waiting.clear();
        written.map_err(WriteError::of(&self.name))
    }

    /// Takes so many bytes off the end of the file, where that can be done: they are the beginning
    /// of a frame, or of what stands before the first.
    fn cut_off(&mut self, bytes: usize) {
        let Some(mut file) = self.out.as_ref().map(StoppableWriter::file) else { return };
        let plain = file.metadata().is_ok_and(|meta| meta.is_file());
        if let (true, Ok(end)) = (plain && bytes > 0, file.stream_position()) {
            // Where it can't be cut, readers find its last record torn.
            drop(file.set_len(end.saturating_sub(bytes as u64)));
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.failed || self.buffer.is_empty() {
            return Ok(());
        }
        // The system has it then: there is nothing else to flush.
        self.write()
    }

    /// Writes what is left.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.untouched.is_some() {
            return Ok(());
        }
        self.format.end(&mut self.buffer);
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
