//! The side of the run: it hands alerts to the process that delivers, and never waits for long.

use crate::counts::DeliveryCounts;
use crate::limits::{ALERT_BYTES_MAX, DRAIN, FAREWELL, PIPE_BYTES_MAX, PIPE_PATIENCE};
use crate::message::{END, Report, Setup};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use weir_base::full::WhenFull;

/// Why alerts can't be delivered.
#[derive(Debug)]
#[non_exhaustive]
pub enum CourierError {
    /// The process could not be started, or has gone before it was ready.
    NotStarted(io::Error),
    /// It said that it can't begin.
    Fault(String),
}

impl fmt::Display for CourierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CourierError::NotStarted(e) => {
                write!(f, "starting the process that delivers alerts: {e}")
            }
            CourierError::Fault(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CourierError {}

/// Hands alerts to the process that delivers them. Clones are of the same.
#[derive(Clone)]
pub struct Courier(Arc<CourierData>);

struct CourierData {
    state: Mutex<CourierState>,
    /// Notified when an alert comes, when there is room, and when the process reports or ends.
    changed: Condvar,
}

#[derive(Default)]
struct CourierState {
    /// The process, until its threads are started.
    process: Option<Process>,
    waiting: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Rows that came, and those of them that the process was never given.
    alerts: u64,
    missed: u64,
    /// Its last report.
    report: Report,
    stage: Stage,
    /// Whether it keeps alerts that wait for the next run.
    keeps: bool,
    /// Whether it took nothing for so long that nobody waits for room any more.
    stuck: bool,
}

/// How far the process is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
enum Stage {
    #[default]
    Running,
    /// It was told that nothing more comes.
    Ending,
    /// It has ended as it should, ...
    Ended,
    /// ... or not, for this reason.
    Lost(String),
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Courier {
    /// Starts the process by a command, and waits until it is ready. No thread is started yet.
    ///
    /// # Errors
    /// If it can't be started, or can't begin.
    pub fn start(mut command: Command, setup: &Setup) -> Result<Courier, CourierError> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(CourierError::NotStarted)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut input, output) = pipes
            .ok_or_else(|| CourierError::NotStarted(io::Error::other("there are no pipes")))?;
        let mut output = BufReader::new(output);
        let mut line = serde_json::to_vec(setup).map_err(|e| CourierError::NotStarted(e.into()))?;
        line.push(b'\n');
        // Where this fails it may have said why.
        let sent = input.write_all(&line);
        let report = match (Report::read(&mut output), sent) {
            (Ok(Some(report)), _) => report,
            (Err(e), _) | (Ok(None), Err(e)) => return Err(CourierError::NotStarted(e)),
            (Ok(None), Ok(())) => {
                let e = io::Error::other("it ended before it was ready");
                return Err(CourierError::NotStarted(e));
            }
        };
        if let Some(fault) = report.fault {
            return Err(CourierError::Fault(fault));
        }
        let process = Some(Process { child, input, output });
        let keeps = setup.spill.is_some();
        let state = CourierState { process, report, keeps, ..CourierState::default() };
        Ok(Courier(Arc::new(CourierData { state: Mutex::new(state), changed: Condvar::new() })))
    }

    /// Starts the threads that write to the process and read what it reports. `say` tells the user.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn run(&self, say: impl Fn(&str) + Send + 'static) -> io::Result<()> {
        let Some(process) = self.0.state.lock().process.take() else { return Ok(()) };
        let Process { child, input, output } = process;
        let (writes, reads) = (self.clone(), self.clone());
        thread::Builder::new().name("alerts".to_owned()).spawn(move || writes.write(input))?;
        let read = move || reads.read(child, output, say);
        thread::Builder::new().name("delivered".to_owned()).spawn(read)?;
        Ok(())
    }

    /// Hands over an alert, a line of JSON without its end.
    pub fn give(&self, line: &[u8], when_full: WhenFull) {
        let mut state = self.0.state.lock();
        state.alerts += 1;
        let has_room = |state: &CourierState| state.bytes + line.len() < PIPE_BYTES_MAX;
        if when_full == WhenFull::Wait && !has_room(&state) && !state.stuck {
            let full = |state: &mut CourierState| !has_room(state) && state.stage == Stage::Running;
            let timeout = self.0.changed.wait_while_for(&mut state, full, PIPE_PATIENCE);
            state.stuck = timeout.timed_out();
        }
        if state.stage != Stage::Running || line.len() > ALERT_BYTES_MAX || !has_room(&state) {
            state.missed += 1;
            return;
        }
        state.bytes += line.len() + 1;
        state.waiting.push_back([line, b"\n"].concat().into());
        self.0.changed.notify_all();
    }

    /// The fate of the alerts so far.
    pub fn counts(&self) -> DeliveryCounts {
        let state = self.0.state.lock();
        let mut counts = DeliveryCounts {
            alerts: state.alerts,
            missed: state.missed,
            targets: state.report.targets.clone(),
            ended: None,
        };
        if let Stage::Ended | Stage::Lost(_) = &state.stage {
            // Alerts that it was given and did not report are lost with it.
            counts.missed = state.alerts.saturating_sub(state.report.seen).max(state.missed);
            for target in &mut counts.targets {
                let left = std::mem::take(&mut target.waiting);
                match state.keeps {
                    true => target.kept += left,
                    false => target.away += left,
                }
            }
        }
        if let Stage::Lost(why) = &state.stage {
            counts.ended = Some(why.clone());
        }
        counts
    }

    /// Says that nothing more comes, and waits until everything is delivered, for some seconds.
    /// `is_slow` is called if that takes longer than a moment.
    pub fn finish(&self, is_slow: impl FnOnce()) -> DeliveryCounts {
        let mut state = self.0.state.lock();
        if state.stage == Stage::Running {
            state.stage = Stage::Ending;
        }
        self.0.changed.notify_all();
        let lasts = |state: &mut CourierState| state.stage == Stage::Ending;
        let second = std::time::Duration::from_secs(1);
        self.0.changed.wait_while_for(&mut state, lasts, second);
        if state.stage == Stage::Ending {
            is_slow();
            self.0.changed.wait_while_for(&mut state, lasts, DRAIN + FAREWELL - second);
        }
        if state.stage == Stage::Ending {
            state.stage = Stage::Lost("it did not end in time".to_owned());
        }
        drop(state);
        self.counts()
    }

    /// Writes to the process what waits, until nothing more comes or it has gone.
    fn write(&self, mut input: ChildStdin) {
        loop {
            let mut state = self.0.state.lock();
            while state.waiting.is_empty() {
                if state.stage != Stage::Running {
                    drop(state);
                    // It may have gone.
                    let _ = input.write_all(END);
                    return;
                }
                self.0.changed.wait(&mut state);
            }
            let lines = std::mem::take(&mut state.waiting);
            drop(state);
            for line in lines {
                // The end of its output says why it does not read.
                if input.write_all(&line).is_err() {
                    return;
                }
                let mut state = self.0.state.lock();
                state.bytes -= line.len();
                state.stuck = false;
                self.0.changed.notify_all();
            }
        }
    }

    /// Reads reports until the process ends.
    fn read(&self, mut child: Child, mut output: BufReader<ChildStdout>, say: impl Fn(&str)) {
        while let Ok(Some(report)) = Report::read(&mut output) {
            report.say.iter().for_each(|line| say(line));
            self.0.state.lock().report = report;
            self.0.changed.notify_all();
        }
        let status = child.wait();
        let mut state = self.0.state.lock();
        let how = match status {
            Ok(status) if status.success() && state.stage == Stage::Ending => None,
            Ok(status) => Some(status.to_string()),
            Err(e) => Some(e.to_string()),
        };
        state.stage = match how {
            None => Stage::Ended,
            Some(how) => {
                let why = format!("the process that delivers alerts has ended: {how}");
                say(&format!("{why}; no further alert is delivered"));
                Stage::Lost(why)
            }
        };
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> Setup {
        Setup { targets: Vec::new(), host: String::new(), user: None, spill: None, confines: false }
    }

    /// A process that says that it is ready, and then does this.
    fn shell(then: &str) -> Courier {
        let mut command = Command::new("sh");
        let ready = "read setup; echo '{\"seen\":0,\"targets\":[]}'";
        command.args(["-c", &format!("{ready}; {then}")]);
        let courier = Courier::start(command, &setup()).expect("it starts");
        courier.run(|_| ()).expect("threads");
        courier
    }

    #[test]
    fn a_process_that_does_not_begin_is_told() {
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Courier::start(command, &setup()).map(drop).expect_err(script).to_string()
        };
        assert!(start("exit 3").contains("starting the process"));
        assert_eq!(start("echo '{\"fault\":\"no\",\"seen\":0,\"targets\":[]}'"), "no");
        assert!(start("echo what").contains("starting the process"));
        assert!(Courier::start(Command::new("/no/such/program"), &setup()).is_err());
    }

    #[test]
    fn what_a_process_never_reads_is_counted_and_nobody_waits() {
        let courier = shell("exec sleep 100 < /dev/null");
        let line = vec![b'x'; 100 << 10];
        for _ in 0..100 {
            courier.give(&line, WhenFull::LeaveOut);
        }
        courier.give(&vec![b'x'; ALERT_BYTES_MAX + 1], WhenFull::LeaveOut);
        let counts = courier.counts();
        assert!(counts.alerts == 101 && (50..=70).contains(&counts.missed), "{counts:?}");
    }

    #[test]
    fn what_a_process_had_not_seen_is_lost_with_it() {
        let courier = shell("read a; echo '{\"seen\":1,\"targets\":[]}'; kill -9 $$");
        for _ in 0..10 {
            courier.give(b"{}", WhenFull::Wait);
        }
        let counts = courier.finish(|| ());
        assert_eq!((counts.alerts, counts.undelivered()), (10, 9));
        assert!(counts.ended.expect("told").contains("signal: 9"));
    }

    #[test]
    fn a_process_that_reads_everything_ends_in_peace() {
        let courier = shell("n=$(wc -l); echo \"{\\\"seen\\\":$n,\\\"targets\\\":[]}\"");
        let line = vec![b'x'; 1000];
        for _ in 0..20_000 {
            courier.give(&line, WhenFull::Wait);
        }
        let counts = courier.finish(|| ());
        assert_eq!((counts.alerts, counts.undelivered(), counts.ended), (20_000, 0, None));
    }
}
