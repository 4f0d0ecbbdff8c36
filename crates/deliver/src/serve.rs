//! The process that delivers: it reads alerts from its input, a queue and a thread for each target
//! deliver them, and it reports on its output. It ends once its input has ended and everything is
//! delivered, or ten seconds later. Where the run was killed, and what waits is in files, too, it
//! ends at once: the next run delivers that, and could not while this process had the files.

use crate::alert::Alert;
use crate::choose::receiver;
use crate::clock;
use crate::journal::Journal;
use crate::limits::{ALERT_BYTES_MAX, DRAIN, ENDING_EVERY, REPORT_EVERY};
use crate::message::{END, Report, Setup};
use crate::receiver::{Receiver, Sender};
use crate::target::AlertFilter;
use crate::worker::{Pace, TargetState, deliver};
use parking_lot::Mutex;
use std::fs::DirBuilder;
use std::io::{self, BufRead, Read as _, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

/// All targets, and where reports go.
struct Office {
    lines: Vec<(AlertFilter, TargetState)>,
    seen: AtomicU64,
    output: Mutex<Output>,
}

struct Output {
    to: Box<dyn Write + Send>,
    last: Option<Report>,
}

/// How the process gives up what it does not need.
pub struct GiveUp<B, C> {
    /// Becomes the user that it should be.
    pub become_user: B,
    /// Gives up the rest, once everything is open.
    pub confine: C,
}

/// Delivers what comes.
///
/// # Errors
/// If a target can't be set up, nothing can be read, or there are no threads.
pub fn serve(
    setup: &Setup,
    input: &mut dyn BufRead,
    output: Box<dyn Write + Send>,
    give_up: GiveUp<impl FnOnce() -> Result<(), String>, impl FnOnce()>,
) -> io::Result<()> {
    let parent = parent_id();
    let sender = Sender { host: setup.host.clone(), process: std::process::id() };
    let lines = setup.targets.iter().map(|t| (t.filter, TargetState::new(&t.name))).collect();
    let output = Mutex::new(Output { to: output, last: None });
    let office = Arc::new(Office { lines, seen: AtomicU64::new(0), output });
    let receivers: Result<Vec<_>, String> = setup
        .targets
        .iter()
        .map(|t| receiver(t, &sender).map_err(|e| format!("{}: {e}", t.name)))
        .collect();
    let ready = receivers.and_then(|receivers| {
        (give_up.become_user)()?;
        office.keep(setup).map_err(|e| format!("--alert-spill: {e}"))?;
        (give_up.confine)();
        Ok(receivers)
    });
    let receivers = match ready {
        Ok(receivers) => receivers,
        Err(fault) => {
            let report = Report { fault: Some(fault.clone()), ..Report::default() };
            office.write(report)?;
            return Err(io::Error::other(fault));
        }
    };
    office.report(false)?;
    let delivered = start(&office, receivers, Pace::of(setup.spill.is_some()))?;
    let read = read(&office, input);
    if setup.spill.is_some() && !matches!(read, Ok(InputEnd::Told)) {
        return read.map(drop);
    }
    office.lines.iter().for_each(|(_, line)| line.queue.end());
    let by = clock::now() + DRAIN;
    let step = if setup.spill.is_some() { ENDING_EVERY } else { REPORT_EVERY };
    loop {
        let left = by.saturating_duration_since(clock::now());
        match delivered.recv_timeout(left.min(step)) {
            // The run was killed while it waited for this.
            Err(RecvTimeoutError::Timeout) if setup.spill.is_some() && parent_id() != parent => {
                break;
            }
            // The last of the threads has ended.
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if left.is_zero() => break,
            // Where the run has been killed, what it has handed over is delivered all the same.
            _ => drop(office.report(false)),
        }
    }
    drop(office.report(true));
    read.map(drop)
}

/// How the input ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InputEnd {
    /// The run said that nothing more comes.
    Told,
    /// The run was killed.
    Cut,
}

/// Starts the threads of all targets, and one that reports. The result ends with those of targets.
fn start(
    office: &Arc<Office>,
    receivers: Vec<Box<dyn Receiver>>,
    pace: Pace,
) -> io::Result<mpsc::Receiver<()>> {
    let (working, delivered) = mpsc::channel::<()>();
    for (n, mut receiver) in receivers.into_iter().enumerate() {
        let (office, working) = (Arc::clone(office), working.clone());
        thread::Builder::new().name(format!("target {}", n + 1)).spawn(move || {
            deliver(&office.lines[n].1, &mut *receiver, pace);
            drop(working);
        })?;
    }
    let theirs = Arc::downgrade(office);
    thread::Builder::new().name("reports".to_owned()).spawn(move || {
        loop {
            // No thread wakes it before its time.
            thread::park_timeout(REPORT_EVERY);
            match theirs.upgrade() {
                Some(office) if office.report(false).is_ok() => {}
                _ => return,
            }
        }
    })?;
    Ok(delivered)
}

/// Puts alerts into the queues until the input ends. No two alerts of any run have the same id.
fn read(office: &Office, input: &mut dyn BufRead) -> io::Result<InputEnd> {
    let run = format!("{:016x}", clock::random());
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = (&mut *input).take(ALERT_BYTES_MAX as u64 + 2).read_until(b'\n', &mut line)?;
        if n == 0 || line.last() != Some(&b'\n') {
            // A line that was cut is of a run that was killed.
            return Ok(InputEnd::Cut);
        }
        if line == END {
            return Ok(InputEnd::Told);
        }
        let number = office.seen.fetch_add(1, Ordering::Relaxed) + 1;
        let text = String::from_utf8_lossy(&line[..n - 1]);
        let Some(alert) = Alert::parse(&text, format!("{run}-{number}"), clock::now()) else {
            continue;
        };
        let alert = Arc::new(alert);
        for (filter, line) in &office.lines {
            if filter.takes(&alert) && !line.queue.push(Arc::clone(&alert)) {
                line.count_full();
            }
        }
    }
}

impl Office {
    /// Keeps alerts that wait in files, if that is asked for, and takes those of earlier runs.
    fn keep(&self, setup: &Setup) -> io::Result<()> {
        let Some(folder) = &setup.spill else { return Ok(()) };
        let named = |e| io::Error::other(format!("{}: {e}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        for (target, (_, line)) in setup.targets.iter().zip(&self.lines) {
            let (journal, left) = Journal::open(folder, &target.identity())?;
            line.queue.keep(journal, left);
        }
        Ok(())
    }

    /// Reports what has changed.
    fn report(&self, is_last: bool) -> io::Result<()> {
        let mut report = Report { seen: self.seen.load(Ordering::Relaxed), ..Report::default() };
        for (_, line) in &self.lines {
            let (counts, say) = if is_last { line.last_counts() } else { line.counts() };
            report.targets.push(counts);
            report.say.extend(say);
        }
        self.write(report)
    }

    fn write(&self, report: Report) -> io::Result<()> {
        let mut output = self.output.lock();
        if output.last.as_ref() != Some(&report) {
            report.write(&mut *output.to)?;
            output.last = Some(report);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::tests::row;
    use crate::limits::QUEUE_ALERTS_MAX;
    use crate::target::Target;
    use std::io::BufReader;
    use std::net::UdpSocket;
    use std::path::Path;

    /// Memory that reports go to.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn served(lines: &[String], input: &[u8]) -> Report {
        let targets = lines.iter().map(|l| Target::parse(l, Path::new("")).expect(l)).collect();
        let setup =
            Setup { targets, host: "probe".to_owned(), user: None, spill: None, confines: false };
        let memory = Memory::default();
        let out = Box::new(memory.clone());
        let give_up = GiveUp { become_user: || Ok(()), confine: || () };
        serve(&setup, &mut BufReader::new(input), out, give_up).expect("it serves");
        let bytes = memory.0.lock().clone();
        let last = bytes.split(|b| *b == b'\n').rfind(|l| !l.is_empty()).expect("a report");
        serde_json::from_slice(last).expect("a report")
    }

    #[test]
    fn alerts_arrive_as_they_are_asked_for() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let to = socket.local_addr().expect("an address");
        let rows = [
            row("start", "high", "one"),
            "no alert".to_owned(),
            "x".repeat(1000),
            row("ongoing", "high", "two"),
            row("end", "low", "three"),
        ];
        let lines = [format!("syslog://{to} min=medium"), format!("syslog://{to} ongoing=yes")];
        let report = served(&lines, (rows.join("\n") + "\n").as_bytes());
        let delivered: Vec<u64> = report.targets.iter().map(|t| t.delivered).collect();
        assert_eq!((report.seen, delivered), (5, vec![1, 3]));
        let mut bytes = [0; 4096];
        let n = socket.recv(&mut bytes).expect("a message");
        assert!(str::from_utf8(&bytes[..n]).expect("text").ends_with("] one"));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_what_waits_at_the_end_too() {
        // No server listens there any more.
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let lines = [format!("syslog+tcp://{}", port.local_addr().expect("an address"))];
        drop(port);
        let more = QUEUE_ALERTS_MAX + 100;
        let report = served(&lines, (row("start", "high", "x") + "\n").repeat(more).as_bytes());
        let target = &report.targets[0];
        assert_eq!((target.delivered, target.undelivered()), (0, more as u64));
        assert!(target.full >= 100 && target.error.is_some(), "{target:?}");
    }

    #[test]
    fn input_that_is_none_ends_nothing() {
        let cut = row("start", "high", "x");
        for input in [&b""[..], b"\n\n", b"\xff\xfe\n", cut.as_bytes()] {
            let report = served(&["syslog://127.0.0.1:9".to_owned()], input);
            assert_eq!(report.targets[0].delivered, 0);
        }
    }
}
