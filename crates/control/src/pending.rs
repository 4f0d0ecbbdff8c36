//! Which programs run after the next change.

use crate::rows::RowCounts;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_engine::rows::Sink;

/// The sink of one program.
pub type ProgramSink = Box<dyn Sink + Send>;

/// A program that runs after a change.
pub(crate) struct NextProgram {
    pub(crate) name: String,
    /// How many outputs it has.
    pub(crate) outputs: usize,
    /// Its own sink, where that is new.
    pub(crate) own: Option<ProgramSink>,
    pub(crate) counts: Arc<RowCounts>,
}

/// Changes that were sent to the run, for the time when it opens its sink again.
#[derive(Default)]
pub struct PendingChanges(Mutex<VecDeque<Vec<NextProgram>>>);

impl PendingChanges {
    /// Adds the programs that run after the next change.
    pub(crate) fn add(&self, programs: Vec<NextProgram>) {
        self.0.lock().push_back(programs);
    }

    /// Takes the latest back, whose change is not made.
    pub(crate) fn take_back(&self) {
        self.0.lock().pop_back();
    }

    /// The programs that run from now on.
    pub(crate) fn next(&self) -> Option<Vec<NextProgram>> {
        self.0.lock().pop_front()
    }
}
