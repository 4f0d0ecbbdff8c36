//! Running a program over a source: the one loop that everything else hangs on.

use crate::clock::Clock;
use crate::counters::Ledger;
use crate::functions::Functions;
use crate::graph::{Lower, window_lengths};
use crate::limits::{JUMP_NS, LATENESS_NS, PROGRESS_BATCHES, WORKERS_MAX};
use crate::rows::Sink;
use crate::shard;
use crate::upper::Upper;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_packet::bits::Bits;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_plan::Program;
use weir_plan::place::{Partition, place};

/// How a program is run. `lateness_ns` and `jump_ns` say what is late. The number of workers
/// changes no row as long as no state reaches its bound.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that process packets; 1 means the calling thread. At most
    /// [`WORKERS_MAX`].
    pub workers: usize,
    /// How far the watermark stays behind the latest packet, in nanoseconds.
    pub lateness_ns: i64,
    /// How far ahead of the clock one packet may be and still move it, in nanoseconds.
    pub jump_ns: i64,
    /// Set from elsewhere to end the input early: windows close and everything is put out.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for Options {
    fn default() -> Options {
        Options { workers: 1, lateness_ns: LATENESS_NS, jump_ns: JUMP_NS, stop: None }
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
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Source(e) => write!(f, "{e}"),
            RunError::Sink(e) => write!(f, "writing rows: {e}"),
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RunError::Source(e) => Some(e),
            RunError::Sink(e) => Some(e),
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
/// order that depends neither on batches nor on workers. `progress` is called now and then.
pub fn run(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    options: &Options,
    progress: &mut dyn FnMut(&Account),
) -> Outcome {
    if let Err(e) = sink.open(&Lower::outputs(program)) {
        return Outcome { ledger: Ledger::default(), error: Some(RunError::Sink(e)) };
    }
    let placement = place(program);
    let workers = match placement.partition {
        Partition::None => 1,
        _ => options.workers.clamp(1, WORKERS_MAX),
    };
    let mut feed = Feed::new(program, source, options, progress);
    let lower = Lower::new(program, &placement, functions);
    let (mut ledger, mut error) = if workers == 1 {
        alone(&mut feed, Upper::new(program, &placement, functions), lower, sink)
    } else {
        shard::run(program, &placement, functions, workers, &mut feed, lower, sink)
    };
    let account = feed.source.account();
    (ledger.received, ledger.filtered) = (account.received, account.filtered);
    ledger.processed = feed.processed;
    ledger.wild = feed.clock.wild();
    if let Err(e) = sink.finish() {
        error.get_or_insert(RunError::Sink(e));
    }
    let error = error.or(feed.error.map(RunError::Source));
    Outcome { ledger, error }
}

/// Everything in one thread.
fn alone(
    feed: &mut Feed<'_>,
    mut upper: Upper,
    mut lower: Lower,
    sink: &mut dyn Sink,
) -> (Ledger, Option<RunError>) {
    let (mut closed, mut error) = (Vec::new(), None);
    while error.is_none() && !lower.is_done() && feed.fill(&mut upper.view.frames) {
        upper.view.classify();
        let times = feed.times(&upper.view.frames);
        for step in &times.steps {
            if let Some(w) = step.close {
                upper.watermark(w, &mut closed);
                lower.watermark(w, std::mem::take(&mut closed), sink);
                lower.spent.drain(..).for_each(|(p, groups)| upper.recycle(p, groups));
                lower.flush(sink);
            }
            upper.push(step.rows, times.clock.as_deref(), &mut |p, rows| lower.take(p, rows));
            lower.step(sink);
        }
        upper.watermark(feed.clock.watermark(), &mut closed);
        debug_assert!(closed.is_empty(), "steps end where windows do");
        if !upper.view.frames.is_full() {
            // The source may have to wait for more: what there is can be shown.
            lower.flush(sink);
        }
        error = lower.take_error();
    }
    if feed.began() {
        upper.finish(&mut closed);
        lower.finish(closed, sink);
    }
    error = error.or(lower.take_error());
    let mut ledger = Ledger::default();
    upper.count(&mut ledger);
    lower.count(&mut ledger);
    (ledger, error.map(RunError::Sink))
}

/// The source with everything that is decided packet by packet in capture order: event time.
pub(crate) struct Feed<'a> {
    source: &'a mut dyn Source,
    pub(crate) clock: Clock,
    /// Lengths of the windows over packet time.
    every: Vec<i64>,
    /// The watermark at which the next window ends; below it nothing closes.
    next_close: i64,
    stop: Option<Arc<AtomicBool>>,
    progress: &'a mut dyn FnMut(&Account),
    batches: u64,
    processed: u64,
    error: Option<SourceError>,
}

/// The time of a batch.
pub(crate) struct Times {
    /// In which steps the batch is to be pushed.
    pub(crate) steps: Vec<Step>,
    /// The later of each packet's time and the watermark when it came; `None` where that is the
    /// packet's own time, for all.
    pub(crate) clock: Option<Vec<i64>>,
}

/// A part of a batch within which no window closes.
pub(crate) struct Step {
    /// Windows to close before it.
    pub(crate) close: Option<i64>,
    /// The packets.
    pub(crate) rows: Bits,
}

impl<'a> Feed<'a> {
    fn new(
        program: &Program,
        source: &'a mut dyn Source,
        options: &Options,
        progress: &'a mut dyn FnMut(&Account),
    ) -> Feed<'a> {
        Feed {
            source,
            clock: Clock::new(options.lateness_ns, options.jump_ns),
            every: window_lengths(program),
            next_close: i64::MIN,
            stop: options.stop.clone(),
            progress,
            batches: 0,
            processed: 0,
            error: None,
        }
    }

    /// The next batch; `false` at the end.
    pub(crate) fn fill(&mut self, frames: &mut FrameBatch) -> bool {
        if self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed)) {
            return false;
        }
        self.batches += 1;
        if self.batches.is_multiple_of(PROGRESS_BATCHES) {
            (self.progress)(&self.source.account());
        }
        match self.source.fill(frames) {
            Ok(more) => {
                self.processed += frames.len() as u64;
                more
            }
            Err(e) => {
                self.error = Some(e);
                false
            }
        }
    }

    /// Whether there is an answer to give: not where the source failed before the first packet.
    pub(crate) fn began(&self) -> bool {
        self.processed > 0 || self.error.is_none()
    }

    /// Moves the clock over a batch.
    pub(crate) fn times(&mut self, frames: &FrameBatch) -> Times {
        let ts = frames.ts();
        let (min, max) =
            ts.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &t| (lo.min(t), hi.max(t)));
        let before = self.clock.clone();
        let all = Bits::first(ts.len());
        if self.clock.observe_all(min, max) {
            let w = self.clock.watermark();
            if w < self.next_close && w <= min {
                return Times { steps: vec![Step { close: None, rows: all }], clock: None };
            }
            self.clock = before;
        }
        self.times_by_packet(ts)
    }

    /// The same, packet by packet.
    fn times_by_packet(&mut self, ts: &[i64]) -> Times {
        let mut clock = Vec::with_capacity(ts.len());
        let (mut steps, mut from, mut close) = (Vec::new(), 0, None);
        for (i, &t) in ts.iter().enumerate() {
            let w = self.clock.observe(t);
            clock.push(t.max(w));
            if w >= self.next_close && w > i64::MIN {
                let ends = |d: &i64| w.checked_add(d - w.rem_euclid(*d));
                self.next_close = self.every.iter().filter_map(ends).min().unwrap_or(i64::MAX);
                if i > from || close.is_some() {
                    steps.push(Step { close, rows: Bits::range(from, i) });
                }
                (from, close) = (i, Some(w));
            }
        }
        steps.push(Step { close, rows: Bits::range(from, ts.len()) });
        Times { steps, clock: Some(clock) }
    }
}
