//! A program of a run.

use crate::overview::Listed;
use crate::pending::{NextProgram, ProgramSink};
use crate::rows::RowCounts;
use std::sync::Arc;
use std::time::SystemTime;
use weir_engine::rows::Output;
use weir_plan::Program;
use weir_plan::together::side_by_side;

/// A program that runs.
pub struct RunningProgram {
    /// Its name.
    pub name: String,
    /// Where its query comes from.
    pub source: String,
    /// The text of its query, if somebody may ask for it.
    pub text: String,
    /// The program itself.
    pub program: Arc<Program>,
    since: SystemTime,
    pub(crate) counts: Arc<RowCounts>,
}

impl RunningProgram {
    /// A program that runs from now on.
    #[expect(clippy::disallowed_methods, reason = "people ask since when it runs")]
    pub fn new(name: &str, source: &str, program: Program) -> RunningProgram {
        RunningProgram {
            name: name.to_owned(),
            source: source.to_owned(),
            text: String::new(),
            program: Arc::new(program),
            since: SystemTime::now(),
            counts: Arc::default(),
        }
    }

    /// The same, with the text of its query.
    #[must_use]
    pub fn with_text(self, text: &str) -> RunningProgram {
        RunningProgram { text: text.to_owned(), ..self }
    }

    /// Its name, and what it does.
    pub(crate) fn named(&self) -> (String, Program) {
        (self.name.clone(), Program::clone(&self.program))
    }

    /// The outputs that it has beside others.
    pub fn outputs(&self) -> Vec<Output> {
        let alone = vec![self.named()];
        side_by_side(alone).map_or_else(|_| Vec::new(), |program| Output::of(&program))
    }

    pub(crate) fn listed(&self) -> Listed {
        Listed {
            name: self.name.clone(),
            source: self.source.clone(),
            text: self.text.clone(),
            program: Arc::clone(&self.program),
            since: self.since,
            counts: Arc::clone(&self.counts),
        }
    }

    pub(crate) fn next(&self, own: Option<ProgramSink>) -> NextProgram {
        let (name, counts) = (self.name.clone(), Arc::clone(&self.counts));
        NextProgram { name, outputs: self.outputs().len(), own, counts }
    }
}
