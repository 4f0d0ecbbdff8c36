//! Losses and times that the source of a run reports besides packets, and that travel with them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_kafka::packets::LostFrames;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// The report of a source. A clone is the same report.
#[derive(Clone, Default)]
pub(crate) struct SourceReport(Arc<Mutex<SourceState>>);

/// Losses and times that a source has reported.
#[derive(Default)]
pub(crate) struct SourceState {
    /// The time up to which everything has come, and has been handed on.
    pub(crate) reached: Option<i64>,
    /// The same of the batch that is being processed.
    next: Option<i64>,
    /// Losses, until somebody takes them.
    pub(crate) gaps: Vec<LostFrames>,
    /// Whether the source failed.
    pub(crate) has_failed: bool,
}

impl SourceReport {
    pub(crate) fn state(&self) -> MutexGuard<'_, SourceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source that fills a report. Its run has one worker, so that a batch is processed, and its
/// packets have gone where they go, before the next one is asked for.
pub(crate) struct Reported {
    source: Box<dyn Source>,
    report: SourceReport,
}

impl Reported {
    pub(crate) fn new(source: Box<dyn Source>, report: SourceReport) -> Reported {
        Reported { source, report }
    }
}

impl Source for Reported {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        {
            let mut state = self.report.state();
            state.reached = state.next.or(state.reached);
        }
        let filled = self.source.fill(batch);
        let mut state = self.report.state();
        state.has_failed |= filled.is_err();
        if let Some(reached) = batch.reached() {
            state.next = Some(state.next.map_or(reached, |before| before.max(reached)));
        }
        if let Some(gap) = batch.gap() {
            let (since, until, frames) = (gap.since, gap.until, gap.frames);
            LostFrames::add(&mut state.gaps, LostFrames { since, until, frames });
        }
        filled
    }

    fn is_ready(&mut self) -> bool {
        self.source.is_ready()
    }

    fn account(&self) -> Account {
        self.source.account()
    }

    fn interfaces(&self) -> Vec<(String, Account)> {
        self.source.interfaces()
    }
}
