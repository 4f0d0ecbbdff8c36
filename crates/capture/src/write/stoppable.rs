//! Writing to a file that may take nothing for any time: a pipe whose reader stands still, a
//! terminal that is stopped.

use super::error::WriteError;
use crate::limits::{STALLED_MS, STALLED_STEP_MS};
use crate::live::clock::steady;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a pipe takes at once where it has room at all (`PIPE_BUF` of pipe(7)).
const ROOM: usize = 4096;

/// Writes to a file of any kind. Where it has to wait for a reader, it waits until it is asked to
/// end, and after that as long as the reader takes something every five seconds.
///
/// A call that waits within the kernel can't be ended without ending the process, so that what may
/// have to wait is asked for room first, and is given no more at a time than there surely is.
#[derive(Debug)]
pub struct StoppableWriter {
    file: File,
    /// Whether it may have to wait: plain files never do.
    waits: bool,
    stops: Vec<Arc<AtomicBool>>,
    /// Since when, in milliseconds, nothing was taken though one of them was set.
    stalled: Option<i64>,
}

impl StoppableWriter {
    /// Writes to `file` until it stalls once any of `stops` is set.
    pub fn new(file: File, stops: &[Arc<AtomicBool>]) -> StoppableWriter {
        let plain = file.metadata().is_ok_and(|meta| meta.is_file());
        let waits = !plain && !stops.is_empty();
        StoppableWriter { file, waits, stops: stops.to_vec(), stalled: None }
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

fn now_ms() -> i64 {
    steady() / 1_000_000
}

impl Write for StoppableWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.waits {
            return self.file.write(bytes);
        }
        self.wait_for_room()?;
        self.file.write(&bytes[..bytes.len().min(ROOM)])
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
