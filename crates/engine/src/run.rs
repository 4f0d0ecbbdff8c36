//! Running a program over a source: the one loop that everything else hangs on.

mod active;
mod ready;
mod single;

pub use crate::change::{Change, Changes, ReportChange};
pub use crate::inquiry::Inquiry;
pub use crate::options::Options;
pub use crate::outcome::{Outcome, RunError};

use crate::counters::Ledger;
use crate::feed::{Feed, read_rest};
use crate::functions::Functions;
use crate::level::machine::egress::EgressWriter;
use crate::panics::{Panicked, caught};
use crate::progress::{Progress, settle};
use crate::rows::{Output, Sink};
use crate::shard::WorkerThreads;
use active::ActiveProgram;
use std::thread;
use weir_packet::egress::Egress;
use weir_packet::source::{Account, Source};
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
    start(program, functions, source, sink, None, options, progress)
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
    start(program, functions, source, sink, Some(egress), options, progress)
}

fn start(
    program: &Program,
    functions: &Functions,
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    mut egress: Option<&mut dyn Egress>,
    options: &Options,
    progress: &mut dyn FnMut(&Account),
) -> Outcome {
    let _closed = options.changes.as_deref().map(Closing);
    let egress = egress.as_mut().map(|egress| &mut **egress as &mut dyn Egress);
    let mut egress = EgressWriter::new(program, egress);
    if let Err(e) = egress.open() {
        return Outcome { ledger: Ledger::default(), error: Some(RunError::Egress(e)) };
    }
    if let Err(e) = sink.open(&Output::of(program)) {
        // The first error is reported.
        drop(egress.finish());
        return Outcome { ledger: Ledger::default(), error: Some(RunError::Sink(e)) };
    }
    let feed = Feed::new(program, source, options);
    let mut active = ActiveProgram::first(program.clone(), functions, options, egress);
    active.want();
    active.machine.look_up_losses(feed.losses());
    let mut past = Ledger::default();
    past.flows.begin(program);
    let mut run = Run { active, past, functions, options };
    let turns =
        || thread::scope(|scope| run.turns(feed, sink, progress, WorkerThreads::new(scope)));
    match caught(turns) {
        Ok((error, feed)) => run.end(error, feed, sink),
        Err(panicked) => run.end_broken(panicked, sink, source),
    }
}

/// A run at work.
struct Run<'a, 'e> {
    active: ActiveProgram<'e>,
    /// The counts of the programs whose place this one took.
    past: Ledger,
    functions: &'a Functions,
    options: &'a Options,
}

impl Run<'_, '_> {
    /// Runs a program, and those that take its place, until the end; gives the feed back.
    fn turns<'scope, 'f: 'scope>(
        &mut self,
        mut feed: Feed<'f>,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Account),
        mut threads: WorkerThreads<'scope, '_>,
    ) -> (Option<RunError>, Feed<'f>) {
        let Run { active, past, functions, options } = self;
        loop {
            let inquiry = options.inquiry.as_deref();
            let tells = options.tell_counts;
            let progress =
                Progress { call: &mut *progress, batches: 0, inquiry, tells, past: &*past };
            let error;
            (error, feed) = active.run(feed, sink, progress, &mut threads);
            if !feed.breaks() {
                return (error, feed);
            }
            if error.is_some() {
                active.finish(&|_| true, feed.clock().stands_at().0, sink);
                return (error, feed);
            }
            let next = options.changes.as_ref().and_then(|changes| changes.take());
            let Some(change) = next else {
                // Somebody else took it.
                feed.go_on(ticks(&active.program));
                continue;
            };
            let known_until = feed.clock().stands_at().0;
            match active.change(change, functions, options, past, known_until, sink) {
                Ok(every) => {
                    active.machine.look_up_losses(feed.losses());
                    feed.go_on(every);
                }
                Err(e) => {
                    active.finish(&|_| true, feed.clock().stands_at().0, sink);
                    return (Some(e), feed);
                }
            }
        }
    }

    /// Ends a run as it should.
    fn end(mut self, error: Option<RunError>, mut feed: Feed<'_>, sink: &mut dyn Sink) -> Outcome {
        let error = error.or(self.active.machine.end());
        let mut ledger = self.past;
        self.active.count(&mut ledger);
        feed.end();
        feed.count(&mut ledger);
        if error.is_some() {
            feed.abandon_rest(&mut ledger);
        }
        let told = match error {
            None => sink.counted(&ledger, feed.clock().stands_at().0).err(),
            Some(_) => None,
        };
        let finished = sink.finish().err();
        settle(&mut ledger, sink);
        let error = error.or(told.map(RunError::Sink));
        let error = error.or(finished.map(RunError::Sink));
        let error = error.or(feed.take_error().map(RunError::Source));
        Outcome { ledger, error }
    }

    /// Ends a run in which something panicked as far as that can be: rows that were emitted before
    /// are written, and counted.
    fn end_broken(
        mut self,
        panicked: Panicked,
        sink: &mut dyn Sink,
        source: &mut dyn Source,
    ) -> Outcome {
        let (active, mut ledger) = (&mut self.active, self.past);
        // Each by itself: any of them may be what is broken, and the first fault is reported.
        let _ = caught(|| active.machine.flush(sink));
        let _ = caught(|| active.machine.end());
        let _ = caught(|| sink.finish());
        let _ = caught(|| active.count(&mut ledger));
        // Each packet counts once in each way of spreading, of programs that ran before as well.
        let _ = caught(|| read_rest(source));
        let processed = ledger.shares.of_ways().first().copied().unwrap_or(0);
        ledger.abandon_rest(caught(|| source.account()).unwrap_or_default(), processed);
        let _ = caught(|| settle(&mut ledger, sink));
        Outcome { ledger, error: Some(RunError::panicked(panicked, &active.program)) }
    }
}

/// Closes what changes a run, however that ends.
struct Closing<'a>(&'a Changes);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests;
