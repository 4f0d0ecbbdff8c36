//! Writing to a file that may take nothing for any time: a pipe whose reader stands still, a
//! terminal that is stopped.

use super::error::WriteError;
use crate::limits::{STALLED_MS, STALLED_STEP_MS};
use crate::live::clock::steady;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes that a pipe takes at once where it has room at all (`PIPE_BUF` of pipe(7)).
const ROOM: usize = 4096;

/// Writes to a file of any kind. Where it has to wait for a reader, it waits until it is asked to
/// end, and after that as long as the reader takes something every five seconds.
///
/// A call that waits within the kernel can't be ended without ending the process, so that what may
/// have to wait is asked for room first, and is given no more at a time than there surely is.
///
/// A pipe is opened once more, so that calls by this writer never wait, while those of others who
/// have the pipe do. It is given everything, and takes as much as it has room for.
#[derive(Debug)]
pub struct StoppableWriter {
    file: File,
    /// Whether it may have to wait: plain files never do.
    waits: bool,
    /// How much it is given at a time, if it may have to wait.
    piece: usize,
    stops: Vec<Arc<AtomicBool>>,
    /// Since when, in milliseconds, nothing was taken though one of them was set.
    stalled: Option<i64>,
}

impl StoppableWriter {
    /// Writes to `file` until it stalls once any of `stops` is set.
    pub fn new(file: File, stops: &[Arc<AtomicBool>]) -> StoppableWriter {
        let kind = file.metadata().map(|meta| meta.file_type());
        let waits = !kind.as_ref().is_ok_and(fs::FileType::is_file) && !stops.is_empty();
        let is_pipe = kind.is_ok_and(|kind| kind.is_fifo());
        let (file, piece) = match waits && is_pipe {
            true => unblocked(&file).map_or((file, ROOM), |file| (file, usize::MAX)),
            false => (file, ROOM),
        };
        StoppableWriter { file, waits, piece, stops: stops.to_vec(), stalled: None }
    }

    /// The same for standard output.
    ///
    /// # Errors
    /// When the system has no further number for it.
    pub fn stdout(stops: &[Arc<AtomicBool>]) -> io::Result<StoppableWriter> {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(StoppableWriter::new(File::from(stdout), stops))
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Waits until there is room, or an error to be had.
    fn wait_for_room(&mut self) -> io::Result<()> {
        let step = Timespec { tv_sec: 0, tv_nsec: i64::from(STALLED_STEP_MS) * 1_000_000 };
        loop {
            let mut polled = [PollFd::new(&self.file, PollFlags::OUT)];
            match poll(&mut polled, Some(&step)) {
                Ok(0) => {}
                Ok(_) => {
                    self.stalled = None;
                    return Ok(());
                }
                // A signal; it may be the one that ends the run.
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            if !self.stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                continue;
            }
            let now = now_ms();
            if now - *self.stalled.get_or_insert(now) >= i64::from(STALLED_MS) {
                return Err(WriteError::Stalled { seconds: STALLED_MS / 1000 }.into());
            }
        }
    }
}

/// The same pipe, opened once more, so that calls do not wait; `None` where that is not possible:
/// a named pipe has no reader any more, say, or there is no `/proc`.
fn unblocked(pipe: &File) -> Option<File> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options.open(format!("/proc/self/fd/{}", pipe.as_raw_fd())).ok()
}

fn now_ms() -> i64 {
    steady() / 1_000_000
}

impl Write for StoppableWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.waits {
            return self.file.write(bytes);
        }
        let piece = &bytes[..bytes.len().min(self.piece)];
        loop {
            self.wait_for_room()?;
            match self.file.write(piece) {
                // Others may have filled it since.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// A pipe: its reading end, and a writer that ends at the flag.
    fn pipe() -> (File, StoppableWriter, Arc<AtomicBool>) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let stop = Arc::new(AtomicBool::new(false));
        let [reader, writer] =
            [reader.into(), writer.into()].map(|fd: std::os::fd::OwnedFd| File::from(fd));
        (reader, StoppableWriter::new(writer, &[Arc::clone(&stop)]), stop)
    }

    #[test]
    fn a_reader_that_stands_still_is_not_waited_for_once_the_run_is_to_end() {
        let (reader, mut writer, stop) = pipe();
        stop.store(true, Ordering::Relaxed);
        let error = writer.write_all(&[7; 1 << 20]).expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(reader);
        let error = writer.write_all(&[7]).expect_err("the reader has gone");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    /// The threads that have the same pipe go on waiting in their calls.
    #[test]
    fn a_pipe_takes_what_it_has_room_for() {
        let (mut reader, mut writer, _stop) = pipe();
        let taken = writer.write(&[7; 1 << 20]).expect("there is room");
        assert!(taken > ROOM, "{taken}");
        let mut bytes = vec![0; taken];
        reader.read_exact(&mut bytes).expect("reads");
        assert_eq!(bytes, vec![7; taken]);
        let (reader, pipe) = io::pipe().expect("a pipe");
        let file = |pipe: io::PipeWriter| File::from(std::os::fd::OwnedFd::from(pipe));
        let kept = pipe.try_clone().expect("a number for it");
        let writer = StoppableWriter::new(file(pipe), &[Arc::new(AtomicBool::new(false))]);
        assert_eq!(writer.piece, usize::MAX);
        let flags = |of: &File| rustix::fs::fcntl_getfl(of).expect("flags");
        assert!(flags(writer.file()).contains(OFlags::NONBLOCK));
        assert!(!flags(&file(kept)).contains(OFlags::NONBLOCK));
        drop(reader);
    }

    #[test]
    fn a_pipe_without_a_reader_is_told_when_it_is_written_to() {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let writer = File::from(std::os::fd::OwnedFd::from(writer));
        let mut writer = StoppableWriter::new(writer, &[Arc::new(AtomicBool::new(false))]);
        let error = writer.write(&[7]).expect_err("the reader has gone");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_reader_that_is_slow_gets_everything() {
        let (mut reader, mut writer, stop) = pipe();
        stop.store(true, Ordering::Relaxed);
        let bytes: Vec<u8> = (0..300_000u32).map(|n| n as u8).collect();
        let sent = bytes.clone();
        let thread = std::thread::spawn(move || writer.write_all(&sent));
        let (mut got, mut piece) = (Vec::new(), [0; 1000]);
        loop {
            match reader.read(&mut piece).expect("reads") {
                0 => break,
                n => got.extend_from_slice(&piece[..n]),
            }
            std::thread::yield_now();
        }
        thread.join().expect("no panic").expect("all is written");
        assert!(got == bytes, "{} bytes", got.len());
    }

    #[test]
    fn plain_files_take_all_at_once() {
        let file = tempfile::tempfile().expect("a file");
        let mut writer = StoppableWriter::new(file, &[Arc::new(AtomicBool::new(true))]);
        assert_eq!(writer.write(&[1; 100_000]).expect("writes"), 100_000);
    }
}
