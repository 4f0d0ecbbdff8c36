//! Hands the rows of each program to its sink, while programs come and go.

use crate::pending::{NextProgram, PendingChanges, ProgramSink};
use crate::rows::RowCounts;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use weir_engine::rows::{Output, Rows, Sink};

/// How the sink of a program that was removed has ended.
struct EndedSink {
    name: String,
    result: io::Result<()>,
    counts: Arc<RowCounts>,
}

/// Where rows go.
pub enum RowTarget<'a> {
    /// The rows of all programs go to one sink.
    Shared(Box<dyn Sink + 'a>),
    /// The rows of each program go to a sink of its own.
    PerProgram,
}

/// Hands rows to the sinks of their programs, and counts them. Where programs have sinks of their
/// own, one that fails is reported once, and not used any more.
pub struct ProgramSinks<'a> {
    to: RowTarget<'a>,
    pending: Arc<PendingChanges>,
    active: Vec<ActiveSink>,
    /// For each output the position of its program, and its number among the program's outputs.
    places: Vec<(usize, usize)>,
    /// Sinks of removed programs that are still writing their last rows, and their counts so far.
    ending: Vec<(JoinHandle<EndedSink>, Arc<RowCounts>)>,
    /// Of removed programs: the rows that the sink did not take in time, the rows that could not be
    /// written, and the first failure.
    refused: u64,
    unwritten: u64,
    failed: Option<io::Error>,
    /// Reports something to the user.
    report: Box<dyn Fn(String) + 'a>,
}

struct ActiveSink {
    name: String,
    own: Option<ProgramSink>,
    counts: Arc<RowCounts>,
}

impl<'a> ProgramSinks<'a> {
    /// Hands rows to the sinks of the programs that `pending` lists.
    pub fn new(
        to: RowTarget<'a>,
        pending: Arc<PendingChanges>,
        report: Box<dyn Fn(String) + 'a>,
    ) -> ProgramSinks<'a> {
        let (active, places, ending) = (Vec::new(), Vec::new(), Vec::new());
        let (refused, unwritten, failed) = (0, 0, None);
        ProgramSinks { to, pending, active, places, ending, refused, unwritten, failed, report }
    }

    /// Calls a program's own sink. A failure is reported, and the sink is not used any more.
    fn call_own(
        sink: &mut ActiveSink,
        report: &dyn Fn(String),
        call: impl FnOnce(&mut dyn Sink) -> io::Result<()>,
    ) {
        let Some(own) = &mut sink.own else { return };
        let result = call(&mut **own);
        sink.counts.count(&**own);
        if let Err(e) = result {
            sink.counts.fail(&e);
            report(format!("{}: {e}; its rows are not written any more", sink.name));
            // No one waits for its end.
            sink.own = None;
        }
    }

    /// Collects the results of sinks that have ended; waits for the others if `all` says so.
    fn collect_ended(&mut self, all: bool) {
        for (thread, so_far) in std::mem::take(&mut self.ending) {
            if !all && !thread.is_finished() {
                self.ending.push((thread, so_far));
                continue;
            }
            let Ok(EndedSink { name, result, counts }) = thread.join() else {
                self.keep_counts(&so_far);
                self.lose_last_rows(&io::Error::other("its thread has panicked"));
                continue;
            };
            self.keep_counts(&counts);
            if let Err(e) = result {
                (self.report)(format!("{name}: {e}; its last rows are not written"));
                let named = || io::Error::new(e.kind(), format!("{name}: {e}"));
                self.failed.get_or_insert_with(named);
            }
        }
    }

    /// The counts of programs whose sinks have not ended.
    fn counts(&self) -> impl Iterator<Item = &RowCounts> {
        let active = self.active.iter().map(|sink| &*sink.counts);
        active.chain(self.ending.iter().map(|(_, counts)| &**counts))
    }

    /// Adds the counts of a removed program.
    fn keep_counts(&mut self, counts: &RowCounts) {
        self.refused += counts.refused();
        self.unwritten += counts.unwritten();
    }

    /// The last rows of a program whose sink is gone are not written: the run fails by that.
    fn lose_last_rows(&mut self, e: &io::Error) {
        let reason = format!("the last rows of a program are not written: {e}");
        (self.report)(reason.clone());
        self.failed.get_or_insert_with(|| io::Error::new(e.kind(), reason));
    }

    /// Ends sinks in threads of their own, so that the run does not wait for them.
    fn end(&mut self, removed: Vec<ActiveSink>) {
        for ActiveSink { name, own, counts } in removed {
            let Some(mut own) = own else {
                self.keep_counts(&counts);
                if let Some(reason) = counts.failed() {
                    let named = || io::Error::other(format!("{name}: {reason}"));
                    self.failed.get_or_insert_with(named);
                }
                continue;
            };
            let so_far = Arc::clone(&counts);
            let end = move || {
                let result = own.finish();
                counts.count(&*own);
                EndedSink { name, result, counts }
            };
            match thread::Builder::new().name("last rows".to_owned()).spawn(end) {
                Ok(thread) => self.ending.push((thread, so_far)),
                Err(e) => {
                    self.keep_counts(&so_far);
                    self.lose_last_rows(&e);
                }
            }
        }
    }
}

impl Sink for ProgramSinks<'_> {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        let next = self.pending.next().unwrap_or_default();
        let (mut before, mut first) = (std::mem::take(&mut self.active), 0);
        self.places.clear();
        for NextProgram { name, outputs: n, own, counts } in next {
            let mine = &outputs[first..first + n];
            first += n;
            let at = before.iter().position(|sink| sink.name == name && own.is_none());
            let own = match (at, own) {
                (Some(at), _) => before.swap_remove(at).own,
                (None, own) => own,
            };
            let is_new = at.is_none();
            let mut sink = ActiveSink { name, own, counts };
            if is_new {
                ProgramSinks::call_own(&mut sink, &self.report, |own| own.open(mine));
            }
            self.places.extend((0..n).map(|local| (self.active.len(), local)));
            self.active.push(sink);
        }
        self.collect_ended(false);
        self.end(before);
        match &mut self.to {
            RowTarget::Shared(sink) => sink.open(outputs),
            RowTarget::PerProgram => Ok(()),
        }
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        let (at, local) = self.places[output];
        let active = &mut self.active[at];
        active.counts.rows.fetch_add(rows.len as u64, Ordering::Relaxed);
        match &mut self.to {
            RowTarget::Shared(sink) => {
                let before = sink.refused();
                let result = sink.rows(output, rows);
                let refused = sink.refused() - before;
                active.counts.refused.fetch_add(refused, Ordering::Relaxed);
                result
            }
            RowTarget::PerProgram => {
                if active.own.is_none() {
                    active.counts.unwritten.fetch_add(rows.len as u64, Ordering::Relaxed);
                }
                ProgramSinks::call_own(active, &self.report, |own| own.rows(local, rows));
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let report = &self.report;
        self.active.iter_mut().for_each(|m| ProgramSinks::call_own(m, report, |own| own.flush()));
        match &mut self.to {
            RowTarget::Shared(sink) => sink.flush(),
            RowTarget::PerProgram => Ok(()),
        }
    }

    /// Ends all sinks; fails if one has failed, now or before.
    fn finish(&mut self) -> io::Result<()> {
        let active = std::mem::take(&mut self.active);
        self.end(active);
        self.collect_ended(true);
        let result = self.failed.take().map_or(Ok(()), Err);
        match &mut self.to {
            RowTarget::Shared(sink) => result.and(sink.finish()),
            RowTarget::PerProgram => result,
        }
    }

    fn refused(&self) -> u64 {
        match &self.to {
            RowTarget::Shared(sink) => sink.refused(),
            RowTarget::PerProgram => {
                self.refused + self.counts().map(RowCounts::refused).sum::<u64>()
            }
        }
    }

    fn unwritten(&self) -> u64 {
        match &self.to {
            RowTarget::Shared(sink) => sink.unwritten(),
            RowTarget::PerProgram => {
                self.unwritten + self.counts().map(RowCounts::unwritten).sum::<u64>()
            }
        }
    }
}
