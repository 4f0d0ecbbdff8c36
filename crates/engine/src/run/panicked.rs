//! Panics while a program runs: a fault of ours, or of a registered function, which is to cost
//! nothing that was put out before.
//!
//! Programs that run together are one, whose stages share workers and batches: what one of them
//! left half done is nothing that the others could go on with. So the run ends, and says whose
//! stage it was.

use super::RunError;
use crate::counters::Ledger;
use crate::rows::Sink;
use crate::run::Running;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use weir_packet::source::{Account, Source};
use weir_plan::Program;

thread_local! {
    /// The pipeline whose stages this thread runs.
    static AT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Says whose stages this thread runs from here on; `None` for nobody's.
#[inline(always)]
pub(crate) fn at(pipeline: Option<usize>) {
    AT.set(pipeline);
}

/// What is known of a panic.
#[derive(Debug)]
pub(crate) struct Panicked {
    /// Whose stage it was.
    pipeline: Option<usize>,
    words: String,
}

/// Calls something that may panic. What it worked on is not to be worked on any more then: it may
/// be counted, and closed.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    at(None);
    catch_unwind(AssertUnwindSafe(call)).map_err(Panicked::of)
}

impl Panicked {
    fn of(payload: Box<dyn Any + Send>) -> Panicked {
        let payload = match payload.downcast::<Panicked>() {
            Ok(panicked) => return *panicked,
            Err(other) => other,
        };
        let words = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(words), _) => (*words).to_owned(),
            (_, Some(words)) => words.clone(),
            _ => "no reason given".to_owned(),
        };
        Panicked { pipeline: AT.take(), words }
    }

    /// Whether its words contain these.
    pub(crate) fn says(&self, words: &str) -> bool {
        self.words.contains(words)
    }

    /// Goes on to whoever called this thread.
    pub(crate) fn go_on(self) -> ! {
        resume_unwind(Box::new(self))
    }

    /// Ends a run as far as that can be: what was put out before is written, and counted.
    pub(super) fn end(
        self,
        running: &mut Running<'_>,
        sink: &mut dyn Sink,
        source: &dyn Source,
        mut ledger: Ledger,
    ) -> (Ledger, RunError) {
        let Panicked { pipeline, words } = self;
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

#[cfg(test)]
mod tests;
