//! Running a program over a source: the one loop that everything else hangs on.

mod running;

pub use crate::change::{Change, Changes, Told};
pub use crate::inquiry::Inquiry;
pub use crate::options::Options;
pub use crate::outcome::{Outcome, RunError};

use crate::counters::Ledger;
use crate::feed::{Feed, Times};
use crate::functions::Functions;
use crate::level::machine::exits::Exits;
use crate::level::worker::count_worker;
use crate::panics::{Panicked, caught};
use crate::progress::Progress;
use crate::rows::{Output, Sink};
use crate::step::direct::{ToMachine, WholeBatch};
use crate::step::steps;
use crate::supply::Supply as _;
use running::Running;
use weir_packet::egress::Egress;
use weir_packet::source::{Account, FrameBatch, Source};
use weir_plan::Program;
use weir_plan::physical::ticks;

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
            let (ledger, error) = end_broken(panicked, &mut running, sink, source, past);
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

/// Ends a run as far as that can be: what was put out before is written, and counted.
fn end_broken(
    panicked: Panicked,
    running: &mut Running<'_>,
    sink: &mut dyn Sink,
    source: &dyn Source,
    mut ledger: Ledger,
) -> (Ledger, RunError) {
    let Panicked { pipeline, words } = panicked;
    // Each by itself: any of them may be what is broken, and the first fault is to be told.
    let _ = caught(|| running.machine.flush(sink));
    let _ = caught(|| running.machine.end());
    let _ = caught(|| sink.finish());
    let _ = caught(|| running.count(&mut ledger));
    let account = caught(|| source.account()).unwrap_or_default();
    let Account { received, filtered, lost, .. } = account;
    (ledger.received, ledger.filtered, ledger.lost) = (received, filtered, lost);
    // Each packet once in each way, of programs that ran before as well.
    ledger.processed = ledger.shares.of_ways().first().copied().unwrap_or(0);
    ledger.abandoned = received.saturating_sub(filtered + ledger.processed);
    let _ = caught(|| ledger.settle_rows(sink));
    let pipeline = pipeline.and_then(|p| name(&running.program, p));
    (ledger, RunError::Panicked { pipeline, words })
}

/// The name of a pipeline, or of the first one with a name that takes its rows.
fn name(program: &Program, p: usize) -> Option<String> {
    let mut at = p;
    loop {
        let pipeline = program.pipelines.get(at)?;
        if pipeline.name.is_some() {
            return pipeline.name.clone();
        }
        // Who takes rows stands behind who gives them.
        let readers = program.pipelines.iter().enumerate().skip(at + 1);
        at = readers
            .filter(|(_, reader)| reader.sources().any(|i| i == at))
            .map(|(i, _)| i)
            .next()?;
    }
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
        let mut direct = ToMachine { times: &times, machine, sink, closed: &mut closed };
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

#[cfg(test)]
mod tests;
