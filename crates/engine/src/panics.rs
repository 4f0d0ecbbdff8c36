//! Panics while a program runs: a fault of ours, or of a registered function. Rows that were
//! emitted before must not be lost.
//!
//! Programs that run together are one, whose stages share workers and batches: the others cannot go
//! on with what one of them left half done. So the run ends, and the error names the pipeline.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    /// The pipeline whose stages this thread runs.
    static AT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Notes whose stages this thread runs from here on; `None` for nobody's.
#[inline(always)]
pub(crate) fn note_pipeline(pipeline: Option<usize>) {
    AT.set(pipeline);
}

/// The details that are known of a panic.
#[derive(Debug)]
pub(crate) struct Panicked {
    /// The pipeline whose stage it was.
    pub(crate) pipeline: Option<usize>,
    pub(crate) words: String,
}

/// Calls something that may panic. The state that it worked on is not to be worked on any more
/// then: it may be counted, and closed.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    note_pipeline(None);
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

    /// Goes on to the thread that waits for this one.
    pub(crate) fn go_on(self) -> ! {
        resume_unwind(Box::new(self))
    }
}
