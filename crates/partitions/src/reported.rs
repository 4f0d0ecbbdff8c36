//! Losses and times that the source of a run reports besides packets, and that travel with them.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use weir_kafka::packets::LostFrames;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// The report of a source. A clone is the same report.
#[derive(Clone, Default)]
pub struct SourceReport(Arc<Mutex<SourceState>>);

/// Losses and times that a source has reported.
#[derive(Default)]
pub struct SourceState {
    /// The time up to which everything has come, and has been handed on.
    pub reached: Option<i64>,
    /// The same of the batch that is being processed.
    next: Option<i64>,
    /// Losses, until somebody takes them.
    pub gaps: Vec<LostFrames>,
    /// Whether the source failed.
    pub has_failed: bool,
}

impl SourceReport {
    /// The state, to be read or changed.
    pub fn state(&self) -> MutexGuard<'_, SourceState> {
        self.0.lock()
    }
}

/// A source that fills a report. Its run has one worker, so that a batch is processed, and its
/// packets have gone where they go, before the next one is asked for.
pub struct Reported {
    source: Box<dyn Source>,
    report: SourceReport,
    /// Whether it captures from interfaces.
    is_live: bool,
}

/// How far the time that is reached stays behind the packets of a busy interface, whose rings are
/// read one after the other.
const BUSY_LAG_NS: i64 = 1_000_000_000;

impl Reported {
    /// A source that reports there.
    pub fn new(source: Box<dyn Source>, report: SourceReport, is_live: bool) -> Reported {
        Reported { source, report, is_live }
    }

    /// The time that is reached with a batch. An interface says it only where no packet waits; of
    /// one that is busy all the time packets do, since partitions without any have to hear of it.
    fn reached(&self, batch: &FrameBatch) -> Option<i64> {
        let latest = || batch.ts().iter().max().map(|ts| ts.saturating_sub(BUSY_LAG_NS));
        batch.reached().or_else(|| self.is_live.then(latest).flatten())
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
        if let Some(reached) = self.reached(batch) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weir_packet::source::{Chunk, LinkType};

    /// An interface that always has packets, one in each batch and a second.
    struct Busy(i64);

    impl Source for Busy {
        fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
            batch.clear();
            let chunk: Chunk = Arc::new(vec![0; 60]);
            batch.restart(&chunk, 0, LinkType::ETHERNET);
            batch.push(self.0 * 1_000_000_000, 0, 0, 60, 60);
            self.0 += 1;
            Ok(true)
        }

        fn is_ready(&mut self) -> bool {
            true
        }

        fn account(&self) -> Account {
            Account::default()
        }
    }

    /// Otherwise windows of partitions without packets would stay open while others are busy.
    #[test]
    fn a_busy_interface_reaches_times_too() {
        for (is_live, expected) in [(true, Some(8_000_000_000)), (false, None)] {
            let report = SourceReport::default();
            let mut source = Reported::new(Box::new(Busy(0)), report.clone(), is_live);
            let mut batch = FrameBatch::new();
            (0..11).for_each(|_| assert!(source.fill(&mut batch).expect("a batch")));
            // The batch at hand is not processed yet.
            assert_eq!(report.state().reached, expected);
        }
    }
}
