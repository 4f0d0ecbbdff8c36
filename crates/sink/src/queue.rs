//! Rows on their way to a sink that may be slow: written in a thread of its own, so that packets
//! need not wait for a pipe, a terminal or a disk.

use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::thread;
use std::time::Duration;
use weir_base::full::WhenFull;
use weir_engine::rows::{Output, Rows, Sink};

/// How long the end waits for a sink that takes no row. A writer that gives up by itself, after
/// five seconds, does so first, and knows what it has written.
const PATIENCE: Duration = Duration::from_secs(6);

/// How long it waits before it looks again whether there is room in the queue.
const STEP: Duration = Duration::from_millis(10);

/// Hands rows to a sink in another thread.
pub struct Queue {
    messages: SyncSender<Message>,
    /// Memory of rows that were written, of the outputs of that opening.
    back: Receiver<(u64, usize, Rows)>,
    /// Such memory, by output.
    spare: Vec<Vec<Rows>>,
    /// How often it was opened.
    opened: u64,
    /// Outputs that the sink does not know yet, since the queue was full.
    unreported: Option<Vec<Output>>,
    ended: Receiver<()>,
    shared: Arc<SinkQueueState>,
    when_full: WhenFull,
    /// The same at the end, and how long that waits for a sink that takes no row.
    at_end: WhenFull,
    patience: Duration,
    /// Rows put into the queue.
    queued: u64,
    refused: u64,
    /// Rows that came to a thread that had ended.
    too_late: u64,
    /// Set once there is nothing more to come.
    ending: Arc<AtomicBool>,
}

/// The state that both threads see.
#[derive(Default)]
struct SinkQueueState {
    /// The error that the sink failed with.
    error: Mutex<Option<io::Error>>,
    /// Whether rows are to be shown as soon as no more are waiting.
    flush: AtomicBool,
    /// Rows that the sink was given, ...
    given: AtomicU64,
    /// ... those that it has taken, ...
    taken: AtomicU64,
    /// ... and those that it could not write.
    unwritten: AtomicU64,
}

impl SinkQueueState {
    /// Shows the rows that the sink holds, if that was asked for since it was last done.
    fn flush_if_asked(&self, sink: &mut dyn Sink) -> io::Result<()> {
        match self.flush.swap(false, Ordering::Relaxed) {
            true => sink.flush(),
            false => Ok(()),
        }
    }
}

enum Message {
    Open(Vec<Output>, Option<Sender<()>>),
    Rows(u64, usize, Rows),
    Flush,
    Finish,
}

impl Queue {
    /// Starts the thread, which makes the sink (what goes wrong there, [`Sink::open`] says); at
    /// most `batches` batches of rows wait for it, of up to a batch each.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        make: impl FnOnce() -> io::Result<Box<dyn Sink>> + Send + 'static,
        when_full: WhenFull,
        batches: usize,
    ) -> io::Result<Queue> {
        let (messages, to_write) = mpsc::sync_channel(batches);
        let (written, back) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let shared = Arc::new(SinkQueueState::default());
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("sink".to_owned()).spawn(move || {
            // Dropped at the end, whatever that is.
            let _ended = end;
            let end = make().and_then(|mut sink| {
                let end = write(&mut *sink, &to_write, &written, &theirs);
                theirs.unwritten.store(sink.unwritten(), Ordering::Relaxed);
                end
            });
            if let Err(e) = end {
                *theirs.error.lock() = Some(e);
            }
        })?;
        Ok(Queue {
            messages,
            back,
            spare: Vec::new(),
            opened: 0,
            unreported: None,
            ended,
            shared,
            when_full,
            at_end: when_full,
            patience: PATIENCE,
            queued: 0,
            refused: 0,
            too_late: 0,
            ending: Arc::default(),
        })
    }

    /// Sets this once the last rows have come, for a writer that does not wait for ever then.
    #[must_use]
    pub fn ending_by(self, ending: Arc<AtomicBool>) -> Queue {
        Queue { ending, ..self }
    }

    /// Waits at the end, however long the sink takes for rows that it has kept, as one that puts
    /// them on a disk may.
    #[must_use]
    pub fn waited_for(self) -> Queue {
        Queue { at_end: WhenFull::Wait, ..self }
    }

    /// Why the thread ended before it was told to. Rows that wait are not written then.
    fn failure(&mut self) -> io::Error {
        // It says why before it ends.
        self.ended.recv().ok();
        self.leave_waiting();
        let mut error = self.shared.error.lock();
        error.take().unwrap_or_else(|| io::Error::other("the sink has ended"))
    }

    /// Counts the rows that wait for a thread that has ended.
    fn leave_waiting(&mut self) {
        let given = self.shared.given.load(Ordering::Relaxed);
        self.too_late += self.queued - given;
        self.queued = given;
    }

    /// Hands a message over, or gives it back where the queue is full and does not wait. `Err`
    /// where the thread has ended.
    fn put(&self, message: Message) -> Result<Option<Message>, ()> {
        match self.when_full {
            WhenFull::Wait => self.messages.send(message).map(|()| None).map_err(|_| ()),
            WhenFull::LeaveOut => match self.messages.try_send(message) {
                Ok(()) => Ok(None),
                Err(TrySendError::Full(message)) => Ok(Some(message)),
                Err(TrySendError::Disconnected(_)) => Err(()),
            },
        }
    }

    /// Reports outputs to the sink that it does not know; says whether it knows them now.
    fn report_outputs(&mut self) -> Result<bool, ()> {
        let Some(outputs) = self.unreported.take() else { return Ok(true) };
        if let Some(Message::Open(outputs, _)) = self.put(Message::Open(outputs, None))? {
            self.unreported = Some(outputs);
        }
        Ok(self.unreported.is_none())
    }

    /// A copy of rows, in memory that was used before if there is some.
    fn copy(&mut self, output: usize, rows: &Rows) -> Rows {
        for (opened, output, rows) in self.back.try_iter() {
            if opened == self.opened {
                self.spare[output].push(rows);
            }
        }
        let mut copy = self.spare[output].pop().unwrap_or_else(|| rows.empty());
        copy.copy_from(rows);
        copy
    }

    /// Waits until the sink has done `what`, as long as it takes rows meanwhile.
    fn wait(&mut self, what: impl Fn(&Queue) -> bool) -> io::Result<()> {
        let mut before = None;
        while !what(self) {
            let taken = self.shared.taken.load(Ordering::Relaxed);
            if before.replace(taken) == Some(taken) {
                let left = self.queued - taken;
                self.refused += left;
                let reason = format!("the sink stands still, {left} rows were not written");
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
        }
        Ok(())
    }
}

/// Writes what comes until the end.
fn write(
    sink: &mut dyn Sink,
    messages: &Receiver<Message>,
    back: &Sender<(u64, usize, Rows)>,
    shared: &SinkQueueState,
) -> io::Result<()> {
    loop {
        let message = match messages.try_recv() {
            Ok(message) => message,
            Err(_) => {
                shared.flush_if_asked(sink)?;
                match messages.recv() {
                    Ok(message) => message,
                    // The run has ended early: nobody asks for more.
                    Err(_) => return Ok(()),
                }
            }
        };
        match message {
            Message::Open(outputs, done) => {
                sink.open(&outputs)?;
                if let Some(done) = done {
                    done.send(()).ok();
                }
            }
            Message::Rows(opened, output, rows) => {
                shared.given.fetch_add(rows.len as u64, Ordering::Relaxed);
                sink.rows(output, &rows)?;
                shared.taken.fetch_add(rows.len as u64, Ordering::Relaxed);
                // At the end nobody needs the memory.
                drop(back.send((opened, output, rows)));
            }
            Message::Flush => {}
            Message::Finish => return sink.finish(),
        }
    }
}

impl Sink for Queue {
    /// The first time it waits until the sink is open.
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.spare = outputs.iter().map(|_| Vec::new()).collect();
        self.opened += 1;
        if self.opened > 1 {
            self.unreported = Some(outputs.to_vec());
            return match self.report_outputs() {
                Ok(_) => Ok(()),
                Err(()) => Err(self.failure()),
            };
        }
        let (done, opened) = mpsc::channel();
        let sent = self.messages.send(Message::Open(outputs.to_vec(), Some(done)));
        match sent.is_ok() && opened.recv().is_ok() {
            true => Ok(()),
            false => Err(self.failure()),
        }
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        match self.report_outputs() {
            Ok(true) => {}
            Ok(false) => {
                self.refused += rows.len as u64;
                return Ok(());
            }
            Err(()) => {
                self.too_late += rows.len as u64;
                return Err(self.failure());
            }
        }
        let message = Message::Rows(self.opened, output, self.copy(output, rows));
        match self.put(message) {
            Ok(Some(Message::Rows(_, output, copy))) => {
                self.spare[output].push(copy);
                self.refused += rows.len as u64;
                Ok(())
            }
            Ok(_) => {
                self.queued += rows.len as u64;
                Ok(())
            }
            Err(()) => {
                self.too_late += rows.len as u64;
                Err(self.failure())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.shared.flush.store(true, Ordering::Relaxed);
        // Where the queue is full, rows are shown once it is empty.
        match self.messages.try_send(Message::Flush) {
            Err(TrySendError::Disconnected(_)) => Err(self.failure()),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.ending.store(true, Ordering::Relaxed);
        match self.at_end {
            WhenFull::Wait => drop(self.messages.send(Message::Finish)),
            WhenFull::LeaveOut => {
                let ends_within = |queue: &Queue, time| {
                    queue.ended.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
                };
                let told = |queue: &Queue| match queue.messages.try_send(Message::Finish) {
                    Ok(()) | Err(TrySendError::Disconnected(_)) => true,
                    Err(TrySendError::Full(_)) => ends_within(queue, STEP),
                };
                // There may be room long before the time is over.
                let patience = self.patience;
                self.wait(|queue| {
                    (0..patience.as_millis() / STEP.as_millis()).any(|_| told(queue))
                })?;
                self.wait(|queue| ends_within(queue, patience))?;
            }
        }
        self.ended.recv().ok();
        self.leave_waiting();
        let mut error = self.shared.error.lock();
        error.take().map_or(Ok(()), Err)
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn unwritten(&self) -> u64 {
        self.too_late + self.shared.unwritten.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Full, output, rows};
    use crate::{JsonLines, TimeFormat};
    use weir_plan::{Type, Value};

    /// Memory that a test looks into while a sink writes to it.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Memory {
        fn lines(&self) -> usize {
            self.0.lock().iter().filter(|&&b| b == b'\n').count()
        }
    }

    /// A sink that waits for leave before each lot.
    struct Gate {
        leave: Receiver<()>,
        sink: JsonLines<Memory>,
    }

    impl Sink for Gate {
        fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
            self.sink.open(outputs)
        }

        fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
            self.leave.recv().ok();
            self.sink.rows(output, rows)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.sink.flush()
        }

        fn finish(&mut self) -> io::Result<()> {
            self.sink.finish()
        }
    }

    /// A queue with room for two batches before such a sink.
    fn gated(when_full: WhenFull) -> (Queue, Sender<()>, Memory, Output) {
        let ((go, leave), memory) = (mpsc::channel(), Memory::default());
        let out = memory.clone();
        let sink = JsonLines::new(out, TimeFormat::Rfc3339);
        let queue = Queue::start(move || Ok(Box::new(Gate { leave, sink })), when_full, 2);
        let output = output(None, &[("n", Type::Int), ("text", Type::Str)]);
        let mut queue = queue.expect("a thread");
        queue.open(std::slice::from_ref(&output)).expect("opens");
        (queue, go, memory, output)
    }

    fn lot(output: &Output, n: i64) -> Rows {
        let text = |i: i64| Value::Str(format!("row {i}").into());
        rows(output, &(0..n).map(|i| vec![Value::Int(i), text(i)]).collect::<Vec<_>>())
    }

    #[test]
    fn a_wire_does_not_wait_for_a_sink_that_hangs() {
        let (mut queue, go, memory, output) = gated(WhenFull::LeaveOut);
        for _ in 0..50 {
            queue.rows(0, &lot(&output, 10)).expect("never fails");
        }
        // Two batches wait, and at most one is in the sink's hands.
        assert!((470..=480).contains(&queue.refused()), "{} refused", queue.refused());
        drop(go);
        queue.finish().expect("it goes on");
        assert_eq!(memory.lines() as u64 + queue.refused(), 500);
    }

    /// The rows that it has kept come when it ends.
    struct KeepsToTheEnd(Receiver<()>, Arc<AtomicU64>);

    impl Sink for KeepsToTheEnd {
        fn open(&mut self, _: &[Output]) -> io::Result<()> {
            Ok(())
        }

        fn rows(&mut self, _: usize, _: &Rows) -> io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            let _ = self.0.recv();
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn a_sink_that_keeps_rows_to_the_end_is_waited_for() {
        for is_waited_for in [false, true] {
            let ((go, gone), ends) = (mpsc::channel(), Arc::<AtomicU64>::default());
            let theirs = Arc::clone(&ends);
            let make = move || Ok(Box::new(KeepsToTheEnd(gone, theirs)) as Box<dyn Sink>);
            let queue = Queue::start(make, WhenFull::LeaveOut, 2).expect("a thread");
            let queue = if is_waited_for { queue.waited_for() } else { queue };
            let mut queue = Queue { patience: 2 * STEP, ..queue };
            let output = output(None, &[("n", Type::Int)]);
            queue.open(&[output]).expect("opens");
            let later = thread::spawn(move || {
                // Far longer than it is waited for otherwise.
                let _ = mpsc::channel::<()>().1.recv_timeout(50 * STEP);
                drop(go);
            });
            assert_eq!(queue.finish().is_ok(), is_waited_for);
            assert_eq!(ends.load(Ordering::Relaxed), u64::from(is_waited_for));
            later.join().expect("no panic");
        }
    }

    #[test]
    fn files_lose_nothing() {
        let (mut queue, go, memory, output) = gated(WhenFull::Wait);
        let hurry = thread::spawn(move || (0..50).for_each(|_| go.send(()).unwrap_or(())));
        for _ in 0..50 {
            queue.rows(0, &lot(&output, 10)).expect("waits");
        }
        queue.finish().expect("all is written");
        hurry.join().expect("no panic");
        assert_eq!((memory.lines(), queue.refused()), (500, 0));
        let text = String::from_utf8(memory.0.lock().clone()).expect("text");
        assert!(text.ends_with("{\"n\":9,\"text\":\"row 9\"}\n"), "{text}");
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (mut queue, go, memory, output) = gated(WhenFull::LeaveOut);
        for _ in 0..5 {
            queue.rows(0, &lot(&output, 1)).expect("never fails");
        }
        let error = queue.finish().expect_err("it hangs");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!((queue.refused(), memory.lines()), (5, 0));
        drop(go);
    }

    #[test]
    fn what_goes_wrong_is_told_to_whoever_makes_rows() {
        for when_full in [WhenFull::Wait, WhenFull::LeaveOut] {
            let sink = || Ok(Box::new(JsonLines::new(Full, TimeFormat::Rfc3339)) as Box<dyn Sink>);
            let mut queue = Queue::start(sink, when_full, 2).expect("a thread");
            let output = output(None, &[("n", Type::Int)]);
            queue.open(std::slice::from_ref(&output)).expect("writes later");
            let lot = rows(&output, &[vec![Value::Int(1)]]);
            let told =
                (0..1_000_000).find_map(|_| queue.rows(0, &lot).and_then(|()| queue.flush()).err());
            assert_eq!(told.expect("it is told").kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn rows_are_shown_when_windows_have_closed() {
        let (mut queue, go, memory, output) = gated(WhenFull::Wait);
        queue.rows(0, &lot(&output, 3)).expect("there is room");
        queue.flush().expect("goes on");
        go.send(()).expect("it waits");
        while memory.lines() < 3 {
            thread::yield_now();
        }
        drop(go);
        queue.finish().expect("all is written");
    }

    #[test]
    fn outputs_change_without_waiting_for_a_sink_that_hangs() {
        let (mut queue, go, memory, one) = gated(WhenFull::LeaveOut);
        for _ in 0..5 {
            queue.rows(0, &lot(&one, 1)).expect("never fails");
        }
        let other = output(Some("other"), &[("x", Type::Bool)]);
        queue.open(&[one.clone(), other.clone()]).expect("it is told later");
        let row = rows(&other, &[vec![Value::Bool(true)]]);
        queue.rows(1, &row).expect("never fails");
        assert!((3..=4).contains(&queue.refused()), "{} refused", queue.refused());
        let before = 5 - (queue.refused() as usize - 1);
        // It takes one at a time from here on.
        drop(go);
        while memory.lines() < before {
            queue.flush().expect("goes on");
            thread::yield_now();
        }
        while queue.queued == before as u64 {
            queue.rows(1, &row).expect("never fails");
        }
        queue.rows(0, &lot(&one, 1)).expect("never fails");
        queue.finish().expect("it goes on");
        let text = String::from_utf8(memory.0.lock().clone()).expect("text");
        let after: Vec<&str> = text.lines().skip(before).collect();
        let told = "{\"_pipeline\":\"other\",\"x\":true}";
        assert!(
            !after.is_empty() && after.iter().all(|l| l.starts_with("{\"_pipeline\"")),
            "{text}"
        );
        assert_eq!(after[0], told);
    }
}
