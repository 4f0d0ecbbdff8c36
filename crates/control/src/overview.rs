//! Answers about the programs of a run, whatever change is being made meanwhile.

use crate::limits::COUNTS_PATIENCE;
use crate::message::{Counts, ProgramState, Reply};
use crate::rows::RowCounts;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A program as it is listed.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) since: SystemTime,
    pub(crate) counts: Arc<RowCounts>,
}

/// What has happened in a run so far.
pub struct Report {
    /// The ledger, for people.
    pub text: String,
    /// Its numbers.
    pub counts: Counts,
}

/// Asks the run for a report, and waits for it at most so long.
pub type AskReport = Arc<dyn Fn(Duration) -> Option<Report> + Send + Sync>;

/// Says which programs run, and what has happened so far.
#[derive(Clone)]
pub struct Overview {
    programs: Arc<Mutex<Vec<Listed>>>,
    report: AskReport,
}

impl Overview {
    pub(crate) fn new(report: AskReport) -> Overview {
        Overview { programs: Arc::default(), report }
    }

    /// Lists these programs from now on.
    pub(crate) fn show(&self, programs: Vec<Listed>) {
        *self.programs() = programs;
    }

    fn programs(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn list(&self) -> Reply {
        let seconds = |t: SystemTime| {
            t.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
        };
        let state = |program: &Listed| {
            let (rows, refused) = program.counts.emitted_and_lost();
            ProgramState {
                name: program.name.clone(),
                source: program.source.clone(),
                since: seconds(program.since),
                rows,
                refused,
                failed: program.counts.failed(),
            }
        };
        Reply { programs: self.programs().iter().map(state).collect(), ..Reply::default() }
    }

    pub(crate) fn stats(&self) -> Reply {
        match (self.report)(COUNTS_PATIENCE) {
            Some(Report { text, counts }) => {
                Reply { text, counts: Some(counts), ..Reply::default() }
            }
            None => Reply::refusal("the run does not answer: it may be waiting for its source"),
        }
    }
}
