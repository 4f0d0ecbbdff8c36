//! The fate of what was asked for.

use super::error::LookbackError;
use parking_lot::Mutex;
use std::sync::Arc;

/// The fate of what was asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LookbackCounts {
    /// Files that were made.
    pub files: u64,
    /// Frames in them.
    pub frames: u64,
    /// Bytes of these frames, as many as were captured of them.
    pub bytes: u64,
    /// Files that may lack frames from their beginning, which were kept no more.
    pub short: u64,
    /// Files that were full before their time was over.
    pub full: u64,
    /// Frames that found no room in these.
    pub left_out: u64,
    /// Frames that are in no file since files were not written in time: once for each that they
    /// belong to.
    pub missed: u64,
    /// Asked for in vain: there were too many files, or too many at once.
    pub refused: u64,
    /// Asked for in vain: there was a file of that name.
    pub existed: u64,
    /// Files that could not be written, or not to their end.
    pub failed: u64,
    /// Why, of the first.
    pub error: Option<LookbackError>,
}

impl LookbackCounts {
    /// Counts a file that could not be written, or not to its end.
    pub(super) fn fail(&mut self, error: LookbackError) {
        self.failed += 1;
        self.error.get_or_insert(error);
    }
}

/// The fate of what was asked for so far, for any thread.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<LookbackCounts>>);

impl Tally {
    /// Now.
    pub fn now(&self) -> LookbackCounts {
        self.0.lock().clone()
    }

    /// Changes it.
    pub(super) fn change(&self, change: impl FnOnce(&mut LookbackCounts)) {
        change(&mut self.0.lock());
    }
}
