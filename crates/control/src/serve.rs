//! Serves clients side by side and within bounds, whatever protocol they use.
//!
//! This file accepts clients and bounds how many there may be, how long each may take to ask and to
//! accept its answer, and how many bytes of questions are in memory. A [`Service`] defines
//! questions and answers.
//!
//! Each client has a thread. Where there are as many clients as allowed, one makes room: the first
//! of those that get what anybody gets ([`Taker::makes_room`]), or else the one that has been
//! asking for longest. So a client that connects and sends or takes nothing keeps no other out.
//! Where all clients are being answered, the next one is refused at once.

use crate::connection::{Connection, Listener};
use parking_lot::Mutex;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The bounds that clients are held to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Clients at a time.
    pub clients: usize,
    /// How long a client may take to ask.
    pub ask: Duration,
    /// How long a client may take to accept its answer, once there is one.
    pub accept: Duration,
    /// Bytes that a client sends or accepts in a second, at least: one that is as fast has as long
    /// as its bytes need, in addition.
    pub bytes_per_second: u64,
    /// Bytes of all questions together, those that are being answered included.
    pub bytes: u64,
}

/// How long a new client waits at most for those that have to make room. Each of them only gets a
/// refusal, as soon as its thread runs.
const LEAVING: Duration = Duration::from_secs(5);

/// How long a look takes whether a client is still there.
const GLANCE: Duration = Duration::from_millis(1);

/// How long a client that was answered may still send what nobody reads, ...
const DRAIN: Duration = Duration::from_millis(500);

/// ... and in how many parts.
const DRAIN_READS: usize = 64;

/// Bytes that are written at once.
const WRITE_MAX: usize = 64 << 10;

/// Answers questions. Several threads call it at a time.
pub trait Service: Send + Sync + 'static {
    /// A question.
    type Question;

    /// Reads a question, and nothing after it.
    ///
    /// # Errors
    /// If the bytes are no question, or do not come.
    fn read(&self, from: &mut dyn BufRead) -> io::Result<Self::Question>;

    /// Answers a question, or says why it could not be read.
    ///
    /// # Errors
    /// If the client does not take the answer.
    fn answer(&self, asked: io::Result<Self::Question>, to: &mut dyn Taker) -> io::Result<()>;

    /// Says that there are too many clients.
    ///
    /// # Errors
    /// If the client does not take that.
    fn refuse(&self, to: &mut dyn Write) -> io::Result<()>;
}

/// A client that takes its answer. All of the answer has to be taken within a time that begins with
/// its first byte, and grows with those that are taken, unless it is given more.
pub trait Taker: Write {
    /// Hands over what was written so far; what follows has this long from its own first byte.
    ///
    /// # Errors
    /// If the client does not take it.
    fn part(&mut self, time: Duration) -> io::Result<()>;

    /// Whether the client has closed its side of the connection: it wants no more.
    fn has_left(&self) -> bool;

    /// From now on others may have the place of this client: anybody can ask for its answer.
    fn makes_room(&mut self);
}

/// Answers clients of `listener`, for ever.
pub fn serve<L: Listener, S: Service>(listener: &L, service: S, bounds: Bounds) {
    let (service, bytes) = (Arc::new(service), Arc::new(AtomicU64::new(0)));
    let mut present: Vec<Arc<Present<L::Stream>>> = Vec::new();
    loop {
        // There may be too many open files, say; later there may be fewer.
        let Ok(stream) = listener.accept_next() else {
            thread::park_timeout(Duration::from_millis(100));
            continue;
        };
        let room = make_room(&mut present, bounds.clients);
        let (Some(()), Ok(again)) = (room, stream.again()) else {
            turn_away(&*service, &stream);
            continue;
        };
        let client = Arc::new(Present {
            stream: Mutex::new(Some(again)),
            stage: AtomicU8::new(Stage::Asks as u8),
        });
        let visit = Visit {
            client: Arc::clone(&client),
            service: Arc::clone(&service),
            bytes: Arc::clone(&bytes),
            acceptor: thread::current(),
            bounds,
        };
        match thread::Builder::new().name("client".to_owned()).spawn(move || visit.run(&stream)) {
            Ok(_) => present.push(client),
            Err(_) => {
                if let Some(stream) = client.take_stream() {
                    turn_away(&*service, &stream);
                }
            }
        }
    }
}

/// The stage that a client is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Stage {
    /// It sends its question.
    Asks,
    /// It is being answered.
    Answered,
    /// It takes an answer that anybody gets.
    MakesRoom,
    /// It has to make room, and its thread says so; or it has its answer.
    Leaves,
    /// Its thread has ended.
    Gone,
}

/// A client, as the thread that accepts clients sees it.
struct Present<C> {
    /// Until it is gone: a connection is open as long as anybody has it.
    stream: Mutex<Option<C>>,
    stage: AtomicU8,
}

impl<C> Present<C> {
    fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Asks,
            1 => Stage::Answered,
            2 => Stage::MakesRoom,
            3 => Stage::Leaves,
            _ => Stage::Gone,
        }
    }

    /// Moves on from a stage, unless somebody else has done that.
    fn moves(&self, from: Stage, to: Stage) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.stage.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn take_stream(&self) -> Option<C> {
        self.stream.lock().take()
    }
}

/// Makes room for one more client, for which another may have to leave; `None` if all are being
/// answered. Connections that are gone are removed.
fn make_room<C: Connection>(present: &mut Vec<Arc<Present<C>>>, most: usize) -> Option<()> {
    let until = deadline(LEAVING);
    let leaving = loop {
        present.retain(|client| client.stage() != Stage::Gone);
        let leaving = present.iter().filter(|client| client.stage() == Stage::Leaves).count();
        // Until some of them have left, no other client may come: it waits, since clients that come
        // faster than these threads run must not keep it out.
        if leaving < most {
            break leaving;
        }
        thread::park_timeout(left(until).ok()?);
    };
    if present.len() - leaving < most {
        return Some(());
    }
    let first = |stage| present.iter().find(|client| client.moves(stage, Stage::Leaves));
    let (leaves, how) = match first(Stage::MakesRoom) {
        Some(client) => (client, Shutdown::Both),
        // This client is told that there is no room.
        None => (first(Stage::Asks)?, Shutdown::Read),
    };
    // Its thread sees the end.
    leaves.stream.lock().as_ref()?.end(how).ok()
}

/// Answers a client that there are too many, without waiting for it.
fn turn_away(service: &impl Service, stream: &impl Connection) {
    // A client that does not take the refusal gets none.
    let _ = service.refuse(&mut AtOnce(stream));
}

/// A stream that takes bytes at once or not at all.
struct AtOnce<'a, C>(&'a C);

impl<C: Connection> Write for AtOnce<'_, C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at_once(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time of a client in its thread.
struct Visit<S, C> {
    client: Arc<Present<C>>,
    service: Arc<S>,
    /// Bytes of all questions in memory.
    bytes: Arc<AtomicU64>,
    /// The thread that accepts clients, which may wait for this one to leave.
    acceptor: Thread,
    bounds: Bounds,
}

impl<S: Service, C: Connection> Visit<S, C> {
    fn run(self, stream: &C) {
        // A client that does not wait for its answer has asked all the same.
        let _ = self.converse(stream);
        // In this order: a client that sees the end may come again at once.
        self.client.stage.store(Stage::Gone as u8, Ordering::Release);
        self.acceptor.unpark();
        let _ = stream.end(Shutdown::Both);
        // Else the system would keep the connection, and what the client still sends, until the
        // next client comes.
        drop(self.client.take_stream());
    }

    fn converse(&self, stream: &C) -> io::Result<()> {
        let rate = self.bounds.bytes_per_second;
        let until = deadline(self.bounds.ask);
        let (held, most) = (QuestionBytes { all: &self.bytes, own: 0 }, self.bounds.bytes);
        let mut asking = BufReader::new(Asking { stream, until, rate, held, most });
        let asked = self.service.read(&mut asking);
        // The client is not to blame for the time that the answer takes to make: its own time
        // begins with the first byte.
        let out = Answering { stream, until: None, rate };
        let mut accept = Accepting { out, time: self.bounds.accept, client: &self.client };
        if !self.client.moves(Stage::Asks, Stage::Answered) {
            return self.service.refuse(&mut accept);
        }
        let mut out = BufWriter::new(accept);
        self.service.answer(asked, &mut out)?;
        out.flush()?;
        self.drain(stream)
    }

    /// Reads what the client still sends, for a moment: a connection that is closed with unread
    /// bytes is reset, and the client may lose its answer.
    fn drain(&self, stream: &C) -> io::Result<()> {
        // Before the client sees the end, and may come again: it waits then, and is not refused.
        self.client.stage.store(Stage::Leaves as u8, Ordering::Release);
        stream.end(Shutdown::Write)?;
        let (until, mut rest) = (deadline(DRAIN), [0; 4096]);
        for _ in 0..DRAIN_READS {
            if stream.read_within(&mut rest, left(until)?)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Bytes of a question that is in memory, counted as long as this is there.
struct QuestionBytes<'a> {
    all: &'a AtomicU64,
    own: u64,
}

impl Drop for QuestionBytes<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// A stream that is read up to a time, which grows with what is read, and to a number of bytes.
struct Asking<'a, C> {
    stream: &'a C,
    until: Instant,
    rate: u64,
    held: QuestionBytes<'a>,
    most: u64,
}

impl<C: Connection> Read for Asking<'_, C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read_within(buffer, left(self.until)?).map_err(too_slow)?;
        self.until += time_of(n, self.rate);
        self.held.own += n as u64;
        if self.held.all.fetch_add(n as u64, Ordering::Relaxed) + n as u64 > self.most {
            let reason = format!("questions of more than {} MiB at a time", self.most >> 20);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason));
        }
        Ok(n)
    }
}

/// A stream that is written to up to a time, if there is one, which grows with what is written.
struct Answering<'a, C> {
    stream: &'a C,
    until: Option<Instant>,
    rate: u64,
}

impl<C: Connection> Write for Answering<'_, C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.until.map(left).transpose()?;
        // A system call ends when its time does, however much it has written.
        let bytes = &bytes[..bytes.len().min(WRITE_MAX)];
        let n = self.stream.write_within(bytes, left).map_err(too_slow)?;
        self.until = self.until.map(|until| until + time_of(n, self.rate));
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same, up to so long after the first byte.
struct Accepting<'a, C> {
    out: Answering<'a, C>,
    time: Duration,
    client: &'a Present<C>,
}

impl<C: Connection> Write for Accepting<'_, C> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.until.get_or_insert_with(|| deadline(self.time));
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<C: Connection> Taker for BufWriter<Accepting<'_, C>> {
    fn part(&mut self, time: Duration) -> io::Result<()> {
        self.flush()?;
        let accepting = self.get_mut();
        (accepting.out.until, accepting.time) = (None, time);
        Ok(())
    }

    fn has_left(&self) -> bool {
        let mut rest = [0; 64];
        let read = self.get_ref().out.stream.read_within(&mut rest, GLANCE);
        // Nothing to read yet is an error, too.
        matches!(read, Ok(0))
    }

    fn makes_room(&mut self) {
        self.get_ref().client.moves(Stage::Answered, Stage::MakesRoom);
    }
}

#[expect(clippy::disallowed_methods, reason = "a slow client keeps others waiting")]
fn deadline(time: Duration) -> Instant {
    Instant::now() + time
}

#[expect(clippy::disallowed_methods, reason = "a slow client keeps others waiting")]
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// How long so many bytes take at a rate.
fn time_of(bytes: usize, per_second: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / per_second as f64)
}

/// The system reports the end of a socket's time-out by another name.
fn too_slow(e: io::Error) -> io::Error {
    match e.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => e,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Answers a line with `answer` once it is allowed to, and reports when it begins.
    struct Gate {
        began: Mutex<Sender<()>>,
        leave: Mutex<Receiver<()>>,
        answer: Vec<u8>,
        /// Locked while nobody may be refused.
        refusing: Arc<Mutex<()>>,
    }

    impl Service for Gate {
        type Question = Vec<u8>;

        fn read(&self, from: &mut dyn BufRead) -> io::Result<Vec<u8>> {
            let mut line = Vec::new();
            from.read_until(b'\n', &mut line)?;
            Ok(line)
        }

        fn answer(&self, asked: io::Result<Vec<u8>>, to: &mut dyn Taker) -> io::Result<()> {
            if let Err(e) = &asked {
                return to.write_all(format!("{:?}", e.kind()).as_bytes());
            }
            if asked.is_ok_and(|line| line.starts_with(b"free")) {
                to.makes_room();
            }
            self.began.lock().send(()).expect("the test waits");
            let _ = self.leave.lock().recv();
            to.write_all(&self.answer)
        }

        fn refuse(&self, to: &mut dyn Write) -> io::Result<()> {
            let _refusing = self.refusing.lock();
            to.write_all(b"busy")
        }
    }

    /// A server with such bounds, a channel that reports that an answer begins, and one that lets
    /// it go on.
    struct Served {
        folder: tempfile::TempDir,
        begins: Receiver<()>,
        leave: Sender<()>,
        refusing: Arc<Mutex<()>>,
    }

    impl Served {
        fn new(clients: usize, ask: Duration, answer: &[u8]) -> Served {
            let folder = tempfile::tempdir().expect("a folder");
            let listener = UnixListener::bind(folder.path().join("s")).expect("listens");
            let ((began, begins), (leave, left)) = (channel(), channel());
            let (began, leave_in) = (Mutex::new(began), Mutex::new(left));
            let refusing = Arc::default();
            let gate = Gate {
                began,
                leave: leave_in,
                answer: answer.to_vec(),
                refusing: Arc::clone(&refusing),
            };
            let accept = if ask == LONG { LONG } else { Duration::from_millis(100) };
            let (bytes, bytes_per_second) = (1 << 20, RATE);
            let bounds = Bounds { clients, ask, accept, bytes_per_second, bytes };
            // It ends with the tests.
            thread::spawn(move || serve(&listener, gate, bounds));
            Served { folder, begins, leave, refusing }
        }

        fn ask(&self, words: &[u8]) -> UnixStream {
            let mut stream = UnixStream::connect(self.folder.path().join("s")).expect("connects");
            // More than is read may be refused.
            let _ = stream.write_all(words);
            stream
        }
    }

    fn said(mut stream: UnixStream) -> String {
        let mut said = Vec::new();
        // A request that was not read to its end resets the connection, after the answer.
        let _ = stream.read_to_end(&mut said);
        String::from_utf8(said).expect("text")
    }

    const LONG: Duration = Duration::from_secs(600);

    /// So many bytes make up for any pause here, and the few of a word for none.
    const RATE: u64 = 100_000;

    #[test]
    fn a_client_is_refused_at_once_while_all_others_are_being_answered() {
        let served = Served::new(2, LONG, b"yes");
        let two = [served.ask(b"1\n"), served.ask(b"2\n")];
        // One has the lock of the gate; the other waits for it.
        served.begins.recv().expect("is answered");
        served.begins.recv().expect("is answered");
        assert_eq!(said(served.ask(b"3\n")), "busy");
        served.leave.send(()).expect("waits");
        served.leave.send(()).expect("waits");
        assert_eq!(two.map(said), ["yes", "yes"]);
    }

    /// The end of a connection came to nobody until the next client did.
    #[test]
    fn who_has_been_answered_is_let_go() {
        let served = Served::new(2, LONG, b"yes");
        let mut client = served.ask(b"1\n");
        served.begins.recv().expect("is answered");
        served.leave.send(()).expect("waits");
        assert_eq!(said(client.try_clone().expect("a handle")), "yes");
        // The server has closed its end, so that writing fails.
        while client.write_all(b"more").is_ok() {
            thread::yield_now();
        }
    }

    #[test]
    fn the_client_that_has_asked_for_longest_makes_room() {
        let served = Served::new(2, LONG, b"yes");
        let [first, second] = [served.ask(b"a"), served.ask(b"b")];
        served.leave.send(()).expect("waits");
        assert_eq!(said(served.ask(b"3\n")), "yes");
        assert_eq!(said(first), "busy");
        // The other one did not have to go.
        (&second).write_all(b"\n").expect("is there");
        served.leave.send(()).expect("waits");
        assert_eq!(said(second), "yes");
    }

    /// Clients that came faster than those before them left, as threads run on a busy machine, were
    /// refused, those that asked included. The test of a thousand idle clients saw it only there.
    #[test]
    fn a_client_that_came_while_others_were_leaving_was_refused() {
        let served = Served::new(1, LONG, b"yes");
        let refusing = served.refusing.lock();
        let first = served.ask(b"a");
        // The first has to leave, and can't yet.
        let second = served.ask(b"b");
        let third = served.ask(b"3\n");
        // Time for the third to be accepted, or refused.
        thread::park_timeout(Duration::from_millis(100));
        drop(refusing);
        served.leave.send(()).expect("waits");
        assert_eq!([said(first), said(second), said(third)], ["busy", "busy", "yes"]);
    }

    #[test]
    fn a_client_that_takes_too_long_is_refused_or_left() {
        let served = Served::new(1, Duration::from_millis(50), &[b'x'; 8 << 20]);
        assert_eq!(said(served.ask(b"a")), "TimedOut");
        // It never reads its answer; the next one is let in all the same.
        let deaf = served.ask(b"1\n");
        served.begins.recv().expect("is answered");
        served.leave.send(()).expect("waits");
        while said(served.ask(b"2")) != "TimedOut" {}
        assert!(said(deaf).len() < 8 << 20);
    }

    #[test]
    fn who_gets_what_anybody_gets_makes_room_for_those_who_ask() {
        let served = Served::new(2, LONG, &[b'x'; 8 << 20]);
        // Neither reads its answer.
        let [free, other] = [served.ask(b"free\n"), served.ask(b"1\n")];
        for _ in 0..2 {
            served.begins.recv().expect("is answered");
            served.leave.send(()).expect("waits");
        }
        let third = served.ask(b"3\n");
        served.begins.recv().expect("is answered, too");
        served.leave.send(()).expect("waits");
        assert_eq!(said(third).len(), 8 << 20);
        assert_eq!(said(other).len(), 8 << 20, "it did not have to go");
        assert!(said(free).len() < 8 << 20);
    }

    #[test]
    fn a_client_that_goes_on_has_as_long_as_its_bytes_need() {
        let ask = Duration::from_millis(500);
        let served = Served::new(1, ask, &[b'x'; 4 << 20]);
        let mut client = served.ask(b"");
        for _ in 0..8 {
            client.write_all(&[b'q'; 20_000]).expect("is there");
            thread::park_timeout(ask / 5);
        }
        client.write_all(b"\n").expect("is there");
        served.begins.recv().expect("is answered");
        served.leave.send(()).expect("waits");
        // Its time for the answer is a fifth of that: it pauses longer than that in all.
        let (mut taken, mut part) = (0, vec![0; 1 << 19]);
        while let Ok(n @ 1..) = client.read(&mut part) {
            taken += n;
            thread::park_timeout(Duration::from_millis(20));
        }
        assert_eq!(taken, 4 << 20);
    }

    #[test]
    fn questions_have_no_more_bytes_than_there_may_be() {
        let served = Served::new(4, LONG, b"yes");
        assert_eq!(said(served.ask(&[b'x'; 2 << 20])), "QuotaExceeded");
        // They are given back.
        served.leave.send(()).expect("waits");
        let mut line = vec![b'x'; 900_000];
        line.push(b'\n');
        assert_eq!(said(served.ask(&line)), "yes");
    }
}
