//! The counts of a program's rows.

use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_engine::rows::Sink;

/// How many rows a program has emitted, and what became of them. Several threads read it.
#[derive(Default, Debug)]
pub(crate) struct RowCounts {
    pub(crate) rows: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) unwritten: AtomicU64,
    failed: Mutex<Option<String>>,
}

impl RowCounts {
    /// Rows that the program has emitted, and those of them that are not written: the sink did not
    /// take them in time, or failed.
    pub(crate) fn emitted_and_lost(&self) -> (u64, u64) {
        (self.rows.load(Ordering::Relaxed), self.refused() + self.unwritten())
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Takes over the counts of the program's own sink.
    pub(crate) fn count(&self, sink: &dyn Sink) {
        self.refused.store(sink.refused(), Ordering::Relaxed);
        self.unwritten.store(sink.unwritten(), Ordering::Relaxed);
    }

    /// Why the program's rows are not written any more.
    pub(crate) fn failed(&self) -> Option<String> {
        self.failed.lock().clone()
    }

    /// Keeps the first reason.
    pub(crate) fn fail(&self, e: &io::Error) {
        let mut failed = self.failed.lock();
        failed.get_or_insert_with(|| e.to_string());
    }
}
