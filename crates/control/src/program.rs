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
    /// What it does.
    pub program: Program,
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
            program,
            since: SystemTime::now(),
            counts: Arc::default(),
        }
    }

    /// The outputs that it has beside others.
    pub(crate) fn outputs(&self) -> Vec<Output> {
        let alone = vec![(self.name.clone(), self.program.clone())];
        side_by_side(alone).map_or_else(|_| Vec::new(), |program| Output::of(&program))
    }

    pub(crate) fn listed(&self) -> Listed {
        Listed {
            name: self.name.clone(),
            source: self.source.clone(),
            since: self.since,
            counts: Arc::clone(&self.counts),
        }
    }

    pub(crate) fn next(&self, own: Option<ProgramSink>) -> NextProgram {
        let (name, counts) = (self.name.clone(), Arc::clone(&self.counts));
        NextProgram { name, outputs: self.outputs().len(), own, counts }
    }
}
