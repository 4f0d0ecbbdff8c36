//! The thread that makes and writes files of frames around alerts: a disk that is slow or hangs
//! does not stop the reading of frames.
//!
//! Tasks wait in a queue, in order: a file is opened, gets bytes, ends. Its bound is in bytes.
//! Where it is full, frames are [left out](WhenFull::LeaveOut) before they become bytes, so that
//! what is written of a file is always whole.

use super::counts::Tally;
use super::error::LookbackError;
use crate::limits::{LOOKBACK_PATIENCE_MS, LOOKBACK_TASK_BYTES};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;
use weir_base::full::WhenFull;

/// Makes a file of this name, which is a plain one; there must be none of that name.
pub(super) type Make = Box<dyn FnMut(&str) -> io::Result<Box<dyn Write>> + Send>;

/// Files in a folder.
pub(super) fn in_folder(folder: PathBuf) -> Make {
    Box::new(move |name| {
        let file = OpenOptions::new().write(true).create_new(true).open(folder.join(name))?;
        Ok(Box::new(file))
    })
}

/// How a file is, as the thread says.
#[derive(Default)]
pub(super) struct FileState(AtomicU8);

impl FileState {
    const OPEN: u8 = 1;
    const FAILED: u8 = 2;
    const NEVER_MADE: u8 = 3;

    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::Relaxed) == state
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Relaxed);
    }

    /// Whether frames are of no use to it any more.
    pub(super) fn has_failed(&self) -> bool {
        self.is(FileState::FAILED) || self.was_never_made()
    }

    /// Whether it could not be made.
    pub(super) fn was_never_made(&self) -> bool {
        self.is(FileState::NEVER_MADE)
    }
}

/// A file in the hands of the thread.
#[derive(Clone)]
pub(super) struct Handle {
    number: u64,
    pub(super) state: Arc<FileState>,
}

/// A file to be made.
pub(super) struct FileRequest {
    pub(super) name: String,
    /// Whether it may lack frames from its beginning.
    pub(super) is_short: bool,
}

/// Bytes for a file, how many frames they are, and how many bytes these have by themselves.
#[derive(Default)]
pub(super) struct FileChunk {
    pub(super) bytes: Vec<u8>,
    pub(super) frames: u64,
    pub(super) frame_bytes: u64,
}

enum Task {
    /// Make the file.
    Make(Handle, FileRequest),
    Write(u64, FileChunk),
    /// Write the last of it; how many frames found no room in the file.
    End {
        file: u64,
        last: FileChunk,
        left_out: u64,
    },
}

impl Task {
    fn size(&self) -> usize {
        match self {
            Task::Make(..) => LOOKBACK_TASK_BYTES,
            Task::Write(_, chunk) | Task::End { last: chunk, .. } => {
                LOOKBACK_TASK_BYTES + chunk.bytes.len()
            }
        }
    }

    fn frames(&self) -> u64 {
        match self {
            Task::Make(..) => 0,
            Task::Write(_, chunk) | Task::End { last: chunk, .. } => chunk.frames,
        }
    }
}

/// Hands files to the thread.
pub(super) struct Writer {
    shared: Arc<WriterQueue>,
    tally: Tally,
    when_full: WhenFull,
    bytes_max: usize,
    /// How long the end waits where nothing is written.
    pub(super) patience: Duration,
    /// Files that there were so far, with those that could not be made.
    files: u64,
}

struct WriterQueue {
    queue: Mutex<Queue>,
    /// There is something to do.
    came: Condvar,
    /// Something was done.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    /// Bytes of all tasks that are not done.
    bytes: usize,
    /// Frames of these.
    frames: u64,
    /// Tasks that were done.
    done: u64,
    /// Files that could not be made.
    unmade: u64,
    /// The file that is at work on.
    at: String,
    /// Whether nothing more comes.
    is_over: bool,
    /// Whether the thread has ended.
    has_ended: bool,
}

impl Writer {
    /// Starts the thread. At most so many bytes wait for it, and a little.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(
        make: Make,
        when_full: WhenFull,
        bytes_max: usize,
        tally: Tally,
    ) -> io::Result<Writer> {
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(WriterQueue { queue, came: Condvar::new(), done: Condvar::new() });
        let (theirs, counts) = (Ended(Arc::clone(&shared)), tally.clone());
        thread::Builder::new().name("captures".to_owned()).spawn(move || {
            // Dropped at the end, whatever that is.
            let ended = theirs;
            Files { make, tally: counts, open: HashMap::new() }.work(&ended.0);
        })?;
        let patience = Duration::from_millis(LOOKBACK_PATIENCE_MS);
        Ok(Writer { shared, tally, when_full, bytes_max, patience, files: 0 })
    }

    /// Files that there are, or will be unless they can't be made.
    pub(super) fn files(&self) -> u64 {
        self.files - self.shared.queue.lock().unmade
    }

    /// Has a file made, unless there is no room for that. A writer that waits for room waits until
    /// it is known, too, whether it could be made.
    pub(super) fn make(&mut self, request: FileRequest) -> Option<Handle> {
        let handle = Handle { number: self.files, state: Arc::default() };
        self.put(Task::Make(handle.clone(), request)).ok()?;
        self.files += 1;
        if self.when_full == WhenFull::Wait {
            self.rest();
        }
        Some(handle)
    }

    /// Has bytes written; gives them back where there is no room.
    pub(super) fn write(&self, file: &Handle, chunk: FileChunk) -> Result<(), FileChunk> {
        self.put(Task::Write(file.number, chunk)).map_err(|task| match task {
            Task::Write(_, chunk) | Task::End { last: chunk, .. } => chunk,
            Task::Make(..) => FileChunk::default(),
        })
    }

    /// Ends a file, for which there is room always: there are few.
    pub(super) fn end(&self, file: &Handle, last: FileChunk, left_out: u64) {
        self.add(&mut self.shared.queue.lock(), Task::End { file: file.number, last, left_out });
    }

    fn put(&self, task: Task) -> Result<(), Task> {
        let mut queue = self.shared.queue.lock();
        if self.when_full == WhenFull::Wait && queue.bytes >= self.bytes_max {
            drop(queue);
            queue = self.wait_until(|queue| queue.bytes < self.bytes_max);
        }
        if queue.has_ended || queue.bytes >= self.bytes_max {
            return Err(task);
        }
        self.add(&mut queue, task);
        Ok(())
    }

    fn add(&self, queue: &mut Queue, task: Task) {
        queue.bytes += task.size();
        queue.frames += task.frames();
        queue.tasks.push_back(task);
        self.shared.came.notify_one();
    }

    /// Waits until all that was handed over is done.
    pub(super) fn rest(&self) {
        drop(self.wait_until(|queue| queue.bytes == 0));
    }

    fn wait_until(&self, is_so: impl Fn(&Queue) -> bool) -> MutexGuard<'_, Queue> {
        let mut queue = self.shared.queue.lock();
        while !is_so(&queue) && !queue.has_ended {
            self.shared.done.wait(&mut queue);
        }
        queue
    }

    /// Waits until everything is written, or, with [`WhenFull::LeaveOut`], as long as something is.
    pub(super) fn finish(&mut self) {
        let mut queue = self.shared.queue.lock();
        queue.is_over = true;
        self.shared.came.notify_one();
        while !queue.has_ended {
            let before = queue.done;
            let timeout = self.shared.done.wait_for(&mut queue, self.patience);
            let stands = timeout.timed_out() && queue.done == before && !queue.has_ended;
            if stands && self.when_full == WhenFull::LeaveOut {
                // Should the thread go on, what it still writes is not counted.
                let full = |task| match task {
                    Task::End { left_out, .. } => left_out,
                    _ => 0,
                };
                let full: Vec<u64> = queue.tasks.drain(..).map(full).filter(|n| *n > 0).collect();
                let (name, waited) = (queue.at.clone(), self.patience);
                self.tally.change(|counts| {
                    counts.full += full.len() as u64;
                    counts.left_out += full.iter().sum::<u64>();
                    counts.fail(LookbackError::Stalled { name, waited });
                });
                break;
            }
        }
        let missed = std::mem::take(&mut queue.frames);
        self.tally.change(|counts| counts.missed += missed);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.queue.lock().is_over = true;
        self.shared.came.notify_one();
    }
}

/// Says that the thread has ended, however it did.
struct Ended(Arc<WriterQueue>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.queue.lock().has_ended = true;
        self.0.done.notify_all();
    }
}

/// The files, in the thread.
struct Files {
    make: Make,
    tally: Tally,
    open: HashMap<u64, OpenFile>,
}

/// One of them.
struct OpenFile {
    name: String,
    file: Box<dyn Write>,
    state: Arc<FileState>,
    /// Frames that could not be written.
    unwritten: u64,
}

impl Files {
    fn work(mut self, shared: &WriterQueue) {
        let mut queue = shared.queue.lock();
        loop {
            let Some(task) = queue.tasks.pop_front() else {
                if queue.is_over {
                    return;
                }
                shared.came.wait(&mut queue);
                continue;
            };
            let (size, frames) = (task.size(), task.frames());
            self.name_of(&task).clone_into(&mut queue.at);
            drop(queue);
            let is_made = self.does(task);
            queue = shared.queue.lock();
            queue.bytes -= size;
            queue.frames = queue.frames.saturating_sub(frames);
            queue.unmade += u64::from(!is_made);
            queue.done += 1;
            shared.done.notify_all();
        }
    }

    fn name_of<'a>(&'a self, task: &'a Task) -> &'a str {
        match task {
            Task::Make(_, request) => &request.name,
            Task::Write(file, _) | Task::End { file, .. } => {
                self.open.get(file).map_or("", |open| open.name.as_str())
            }
        }
    }

    /// Does what is to be done; says whether the file could be made.
    fn does(&mut self, task: Task) -> bool {
        match task {
            Task::Make(handle, request) => return self.make(handle, request),
            Task::Write(file, chunk) => {
                if let Some(open) = self.open.get_mut(&file) {
                    open.write(&chunk, &self.tally);
                }
            }
            Task::End { file, last, left_out } => {
                if let Some(mut open) = self.open.remove(&file) {
                    open.write(&last, &self.tally);
                    let left_out = left_out + open.unwritten;
                    self.tally.change(|counts| {
                        counts.left_out += left_out;
                        counts.full += u64::from(left_out > 0);
                    });
                }
            }
        }
        true
    }

    fn make(&mut self, handle: Handle, request: FileRequest) -> bool {
        let FileRequest { name, is_short } = request;
        let made = (self.make)(&name);
        handle.state.set(if made.is_ok() { FileState::OPEN } else { FileState::NEVER_MADE });
        self.tally.change(|counts| match &made {
            Ok(_) => {
                counts.files += 1;
                counts.short += u64::from(is_short);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => counts.existed += 1,
            Err(e) => counts.fail(LookbackError::system(&name, e)),
        });
        let Ok(file) = made else { return false };
        let Handle { number, state } = handle;
        self.open.insert(number, OpenFile { name, file, state, unwritten: 0 });
        true
    }
}

impl OpenFile {
    fn write(&mut self, chunk: &FileChunk, tally: &Tally) {
        if self.state.has_failed() {
            self.unwritten += chunk.frames;
            return;
        }
        match self.file.write_all(&chunk.bytes) {
            Ok(()) => tally.change(|counts| {
                counts.frames += chunk.frames;
                counts.bytes += chunk.frame_bytes;
            }),
            Err(e) => {
                // Some of them may be there.
                self.unwritten += chunk.frames;
                self.state.set(FileState::FAILED);
                let error = LookbackError::system(&self.name, &e);
                tally.change(|counts| counts.fail(error));
            }
        }
    }
}
