//! The rows that the sink took.

use crate::rows::{Rows, Sink};
use std::io;
use weir_plan::physical::OutputId;

/// The rows that the sink took, and the error if something went wrong with it. Once something has,
/// nothing more is written.
#[derive(Default)]
pub(super) struct Written {
    /// Rows that there were for the sink, and those of them that came after it had failed.
    pub(super) rows: u64,
    pub(super) late: u64,
    pub(super) failed: bool,
    pub(super) error: Option<io::Error>,
}

impl Written {
    /// Calls the sink unless it failed before.
    pub(super) fn guard(&mut self, call: impl FnOnce() -> io::Result<()>) {
        if !self.failed
            && let Err(e) = call()
        {
            self.failed = true;
            self.error = Some(e);
        }
    }

    pub(super) fn write(&mut self, sink: &mut dyn Sink, output: OutputId, rows: &Rows) {
        self.rows += rows.len as u64;
        if self.failed {
            self.late += rows.len as u64;
        }
        self.guard(|| sink.rows(output.0, rows));
    }
}
