//! Running a program over a source: the one loop that everything else hangs on.

mod change;
mod feed;
mod inquiry;
pub(crate) mod panicked;
mod running;

pub use change::{Change, Changes, Told};
pub(crate) use feed::{Feed, Step, Times};
pub use inquiry::Inquiry;
pub(crate) use running::Running;

use crate::counters::Ledger;
use crate::functions::Functions;
use crate::level::machine::MachineLevel;
use crate::level::machine::exits::Exits;
use crate::level::worker::WorkerLevel;
use crate::level::{Channel, Closed};
use crate::limits::{JUMP_NS, LATENESS_NS, PROGRESS_BATCHES};
use crate::rows::{Output, Rows, Sink};
use crate::shard::Supply as _;
use crate::step::{Portions, Upward, steps};
use crate::table::HashKey;
use panicked::caught;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_packet::egress::Egress;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_plan::Program;
use weir_plan::physical::ticks;

/// How a program is run. `lateness_ns` and `jump_ns` say what is late. The number of workers
/// changes no row as long as no state reaches its bound.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that process packets; 1 means the calling thread. At most
    /// [`WORKERS_MAX`](crate::limits::WORKERS_MAX).
    pub workers: usize,
    /// How far the watermark stays behind the latest packet, in nanoseconds.
    pub lateness_ns: i64,
    /// How far ahead of the clock one packet may be and still move it, in nanoseconds.
    pub jump_ns: i64,
    /// About how many groups a `summarize` over packets will hold: tables begin with room for so
    /// many, instead of growing to it. A wrong guess changes no row; 0 for no guess.
    pub groups_hint: usize,
    /// Bytes that the default bounds of keyed state [fit](crate::room) into; `None` leaves them as
    /// they are.
    pub memory: Option<u64>,
    /// Set from elsewhere to end the input early: windows close and everything is put out.
    pub stop: Option<Arc<AtomicBool>>,
    /// What tables hash keys with, and packets are spread by. It changes no row and no order of
    /// rows; but whoever knows it can slow the run down. Drawn by the system unless told otherwise.
    pub hash_key: HashKey,
    /// Asks from elsewhere what happened so far.
    pub inquiry: Option<Arc<Inquiry>>,
    /// Changes from elsewhere what runs.
    pub changes: Option<Arc<Changes>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 1,
            lateness_ns: LATENESS_NS,
            jump_ns: JUMP_NS,
            groups_hint: 0,
            memory: None,
            hash_key: HashKey::random(),
            stop: None,
            inquiry: None,
            changes: None,
        }
    }
}

/// Why a run ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The source could not go on. Everything before was processed and put out.
    Source(SourceError),
    /// The sink could not take rows.
    Sink(io::Error),
    /// An outlet could not take frames; the error names it.
    Egress(io::Error),
    /// A stage, or something else that the run is made of, panicked: a fault of this library, or of
    /// a registered function. What was put out before is written.
    Panicked {
        /// The pipeline whose stage it was, where that is known and has a name.
        pipeline: Option<String>,
        /// What it panicked with.
        words: String,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Source(e) => write!(f, "{e}"),
            RunError::Sink(e) => write!(f, "writing rows: {e}"),
            RunError::Egress(e) => write!(f, "{e}"),
            RunError::Panicked { pipeline, words } => {
                match pipeline {
                    Some(name) => write!(f, "a stage of `{name}` failed: {words}")?,
                    None => write!(f, "the run failed: {words}")?,
                }
                write!(
                    f,
                    "; this is a fault of the program, not of the packets: please report it. What \
                     was put out before is written, and the query goes no further"
                )
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Source(e) => Some(e),
            RunError::Sink(e) | RunError::Egress(e) => Some(e),
            RunError::Panicked { .. } => None,
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What happened to everything received.
    pub ledger: Ledger,
    /// Why it ended early, if it did.
    pub error: Option<RunError>,
}

/// Runs a program until the source ends, fails, or `options.stop` is set. Rows go to the sink in an
/// order that depends neither on batches nor on workers. `progress` is called now and then. Packets
/// that the program hands out are only counted; [`run_to`] takes them.
pub fn run(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    options: &Options,
    progress: &mut dyn FnMut(&Account),
) -> Outcome {
    start(program, functions, source, (sink, None), options, progress)
}

/// As [`run`], with a place for the packets that the program hands out.
pub fn run_to(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    ends: (&mut dyn Sink, &mut dyn Egress),
    options: &Options,
    progress: &mut dyn FnMut(&Account),
) -> Outcome {
    let (sink, egress) = ends;
    start(program, functions, source, (sink, Some(egress)), options, progress)
}

fn start(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    (sink, mut egress): (&mut dyn Sink, Option<&mut dyn Egress>),
    options: &Options,
    progress: &mut dyn FnMut(&Account),
) -> Outcome {
    let _closed = options.changes.as_deref().map(Closing);
    let egress = egress.as_mut().map(|egress| &mut **egress as &mut dyn Egress);
    let mut exits = Exits::new(program, egress);
    if let Err(e) = exits.open() {
        return Outcome { ledger: Ledger::default(), error: Some(RunError::Egress(e)) };
    }
    if let Err(e) = sink.open(&Output::of(program)) {
        // What went wrong first is told.
        drop(exits.finish());
        return Outcome { ledger: Ledger::default(), error: Some(RunError::Sink(e)) };
    }
    let feed = Feed::new(program, source, options);
    let mut running = Running::new(program.clone(), functions, options, &[], exits);
    running.want();
    running.machine.look_up(feed.losses());
    let mut past = Ledger::default();
    let ran =
        caught(|| turns((&mut running, &mut past), feed, sink, (functions, options), progress));
    let (error, mut feed) = match ran {
        Ok(ran) => ran,
        Err(panicked) => {
            let (ledger, error) = panicked.end(&mut running, sink, source, past);
            return Outcome { ledger, error: Some(error) };
        }
    };
    let error = error.or(running.machine.end());
    let mut ledger = past;
    running.count(&mut ledger);
    feed.count(&mut ledger);
    let finished = sink.finish().err();
    ledger.settle_rows(sink);
    let error = error.or(finished.map(RunError::Sink));
    let error = error.or(feed.take_error().map(RunError::Source));
    Outcome { ledger, error }
}

/// Runs a program, and those that take its place, until the end; gives the feed back.
fn turns<'f>(
    (running, past): (&mut Running<'_>, &mut Ledger),
    mut feed: Feed<'f>,
    sink: &mut dyn Sink,
    (functions, options): (&Functions, &Options),
    progress: &mut dyn FnMut(&Account),
) -> (Option<RunError>, Feed<'f>) {
    loop {
        let inquiry = options.inquiry.as_deref();
        let progress = Progress { call: &mut *progress, batches: 0, inquiry, past: &*past };
        let error;
        (error, feed) = running.run(feed, sink, progress);
        if !feed.breaks() {
            return (error, feed);
        }
        if error.is_some() {
            running.finish(&|_| true, sink);
            return (error, feed);
        }
        let next = options.changes.as_ref().and_then(|changes| changes.take());
        let Some(change) = next else {
            // Somebody else took it.
            feed.go_on(ticks(&running.program));
            continue;
        };
        match running.change(change, (functions, options), past, sink) {
            Ok(every) => {
                running.machine.look_up(feed.losses());
                feed.go_on(every);
            }
            Err(e) => {
                running.finish(&|_| true, sink);
                return (Some(e), feed);
            }
        }
    }
}

/// Closes what changes a run, however that ends.
struct Closing<'a>(&'a Changes);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Everything in one thread.
fn alone<'f>(
    running: &mut Running<'_>,
    mut feed: Feed<'f>,
    sink: &mut dyn Sink,
    mut progress: Progress<'_>,
) -> (Option<RunError>, Feed<'f>) {
    let Running { workers, machine, .. } = running;
    let lanes = &mut workers[0][..];
    debug_assert_eq!(lanes.len(), 1, "one worker has one lane");
    let (mut frames, mut times) = (FrameBatch::new(), Times::default());
    let (mut closed, mut error) = (Vec::new(), None);
    while error.is_none() && !machine.is_done() && feed.fill(&mut frames) {
        progress.report(&feed);
        if progress.is_asked() {
            let mut ledger = Ledger::default();
            count_worker(lanes, &[0], 0, &mut ledger);
            machine.count(&mut ledger);
            progress.answer(ledger, &feed, sink);
        }
        feed.times(&frames, &mut times);
        lanes[0].classify(&frames);
        let mut direct = Direct { times: &times, machine, sink, closed: &mut closed };
        steps(lanes, &mut WholeBatch { frames: &frames, times: &times }, &mut direct);
        lanes[0].watermark(times.watermark, &mut closed);
        debug_assert!(closed.is_empty(), "steps end where windows do");
        if !feed.is_ready() {
            // What there is can be shown while the source waits.
            machine.flush(sink);
        }
        error = machine.take_error();
    }
    if feed.began() && !feed.breaks() {
        lanes[0].finish(&mut closed);
        machine.finish(&mut closed, sink);
    }
    (error.or(machine.take_error()), feed)
}

/// Adds what a worker counted to the ledger; `lanes` are the numbers of its lanes. Each lane gets
/// all packets; how they were is counted in the first.
pub(crate) fn count_worker(
    levels: &[WorkerLevel],
    lanes: &[usize],
    worker: usize,
    ledger: &mut Ledger,
) {
    for (level, &lane) in levels.iter().zip(lanes) {
        level.count(ledger);
        ledger.shares.add(worker, lane, level.packets());
        if lane == 0 {
            level.count_packets(ledger);
        }
    }
}

/// A batch that one worker has as a whole, classified by its only lane.
pub(crate) struct WholeBatch<'a> {
    pub(crate) frames: &'a FrameBatch,
    pub(crate) times: &'a Times,
}

impl Portions for WholeBatch<'_> {
    fn steps(&self) -> usize {
        self.times.steps.len()
    }

    fn closes(&self, step: usize) -> bool {
        self.times.steps[step].close.is_some()
    }

    fn push(&mut self, step: usize, lanes: &mut [WorkerLevel], up: &mut impl Upward) {
        let (clock, rows) = (self.times.clock(self.frames), self.times.steps[step].rows);
        let out = &mut |from: Channel, rows: &Rows| up.take(step, from, rows);
        lanes[0].push(self.frames, rows, clock, out);
    }
}

/// Hands what a worker puts out straight to the machine level, on the thread of both.
pub(crate) struct Direct<'a, 'e> {
    pub(crate) times: &'a Times,
    pub(crate) machine: &'a mut MachineLevel<'e>,
    pub(crate) sink: &'a mut dyn Sink,
    /// Scratch: groups that close.
    pub(crate) closed: &'a mut Vec<Closed>,
}

impl Upward for Direct<'_, '_> {
    fn close(&mut self, step: usize, lanes: &mut [WorkerLevel]) {
        let Direct { times, machine, sink, closed } = self;
        let Some(watermark) = times.steps[step].close else { return };
        lanes[0].watermark(watermark, closed);
        machine.watermark(watermark, closed, *sink);
        machine.spent.drain(..).for_each(|(p, groups)| lanes[0].recycle(p, groups));
        machine.flush(*sink);
    }

    fn advance(&mut self, lane: &mut WorkerLevel, watermark: i64) {
        lane.watermark(watermark, self.closed);
    }

    fn take(&mut self, _step: usize, from: Channel, rows: &Rows) {
        self.machine.take(from, rows, self.sink);
    }

    fn end_step(&mut self) {
        self.machine.step(self.sink);
    }
}

/// Tells the caller now and then how far the source is.
pub(crate) struct Progress<'a> {
    call: &'a mut dyn FnMut(&Account),
    /// Batches when it was last called, in units of [`PROGRESS_BATCHES`].
    batches: u64,
    /// Who may ask for more.
    inquiry: Option<&'a Inquiry>,
    /// What was counted by programs that ran before.
    past: &'a Ledger,
}

impl Progress<'_> {
    /// The same for a while.
    pub(crate) fn lend(&mut self) -> Progress<'_> {
        Progress { call: &mut *self.call, ..*self }
    }

    /// Calls if enough has been read since the last call.
    pub(crate) fn report(&mut self, feed: &Feed<'_>) {
        let batches = feed.batches() / PROGRESS_BATCHES;
        if batches != self.batches {
            self.batches = batches;
            (self.call)(&feed.account());
        }
    }

    /// Whether somebody asks what happened so far.
    pub(crate) fn is_asked(&self) -> bool {
        self.inquiry.is_some_and(Inquiry::was_asked)
    }

    /// Lets it be asked again, where nobody answers any more.
    pub(crate) fn ask(&self) {
        if let Some(inquiry) = self.inquiry {
            inquiry.ask();
        }
    }

    /// Tells whoever asked, from what workers have counted.
    pub(crate) fn answer(&self, mut ledger: Ledger, feed: &Feed<'_>, sink: &dyn Sink) {
        ledger.add(self.past);
        feed.count(&mut ledger);
        ledger.settle_rows(sink);
        if let Some(inquiry) = self.inquiry {
            inquiry.answer(&ledger, &feed.interfaces());
        }
    }
}
