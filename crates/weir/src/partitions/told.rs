//! What the source of a run says besides packets: it travels with them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_kafka::packets::LostFrames;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// What a source has said. A clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<Mutex<Said>>);

/// What a source has said.
#[derive(Default)]
pub(crate) struct Said {
    /// The time up to which everything has come, and has been handed on.
    pub(crate) reached: Option<i64>,
    /// The same of the batch that is being processed.
    next: Option<i64>,
    /// What was lost, until somebody takes it.
    pub(crate) gaps: Vec<LostFrames>,
    /// Whether the source failed.
    pub(crate) has_failed: bool,
}

impl Told {
    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source whose word is kept. Its run has one worker, so that a batch is processed, and its
/// packets have gone where they go, before the next one is asked for.
pub(crate) struct Telling {
    source: Box<dyn Source>,
    told: Told,
}

impl Telling {
    pub(crate) fn new(source: Box<dyn Source>, told: Told) -> Telling {
        Telling { source, told }
    }
}

impl Source for Telling {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        {
            let mut said = self.told.said();
            said.reached = said.next.or(said.reached);
        }
        let filled = self.source.fill(batch);
        let mut said = self.told.said();
        said.has_failed |= filled.is_err();
        if let Some(reached) = batch.reached() {
            said.next = Some(said.next.map_or(reached, |before| before.max(reached)));
        }
        if let Some(gap) = batch.gap() {
            let (since, until, frames) = (gap.since, gap.until, gap.frames);
            LostFrames::add(&mut said.gaps, LostFrames { since, until, frames });
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
