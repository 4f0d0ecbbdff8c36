//! What can be told of programs, whatever else is being asked or done.

use super::message::{Counts, Reply, State};
use super::sink::Member;
use crate::stats::Stats;
use crate::wire::Notes;
use crate::{ledger, wire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// How long a question after the ledger waits: workers answer between batches.
const PATIENCE: Duration = Duration::from_secs(10);

/// A program as it is listed.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) since: SystemTime,
    pub(super) member: Arc<Member>,
}

/// Tells which programs run, and what happened so far.
#[derive(Clone)]
pub(crate) struct Desk {
    programs: Arc<Mutex<Vec<Listed>>>,
    stats: Stats,
}

impl Desk {
    pub(super) fn new(stats: Stats) -> Desk {
        Desk { programs: Arc::default(), stats }
    }

    /// These programs run from now on.
    pub(super) fn show(&self, programs: Vec<Listed>) {
        *self.programs() = programs;
    }

    fn programs(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn list(&self) -> Reply {
        let seconds = |t: SystemTime| {
            t.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
        };
        let state = |entry: &Listed| {
            let (rows, refused) = entry.member.rows();
            State {
                name: entry.name.clone(),
                source: entry.source.clone(),
                since: seconds(entry.since),
                rows,
                refused,
                failed: entry.member.failed(),
            }
        };
        Reply { programs: self.programs().iter().map(state).collect(), ..Reply::default() }
    }

    pub(super) fn stats(&self) -> Reply {
        let Some((counts, interfaces)) = self.stats.wait(PATIENCE) else {
            return Reply::refusal("the run does not answer: it may wait for its source");
        };
        let mut text = ledger::render(&counts);
        text += &ledger::workers(&counts);
        text += &wire::render(&interfaces, &Notes::default());
        let captures = self.stats.captures();
        if let Some(captures) = &captures {
            text += &ledger::captures(captures);
            text.push('\n');
        }
        let counts = Some(Counts::new(&counts, &interfaces, captures));
        Reply { text, counts, ..Reply::default() }
    }
}
