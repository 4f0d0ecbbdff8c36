//! How packets are read: which packet of a tunnel fields mean, and whether later fragments get the
//! ports of their first.

use crate::fragments::{Counts, Fragments};
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_packet::walk::Headers;

/// A source whose frames are to be read in a certain way. Rows, their order and the ledger are
/// those of any source; it is the outermost one, next to the run.
pub struct Reading<S> {
    source: S,
    headers: Headers,
    fragments: Option<Box<Fragments>>,
}

impl<S: Source> Reading<S> {
    /// The frames of `source`, read plainly: the outermost packet, each fragment for itself.
    pub fn new(source: S) -> Reading<S> {
        Reading { source, headers: Headers::OUTER, fragments: None }
    }

    /// Says which packet fields mean where packets are in tunnels.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Reading<S> {
        self.headers = headers;
        self
    }

    /// Gives later fragments the ports of their first, where that came before them; see
    /// [`Fragments`].
    #[must_use]
    pub fn fragments(mut self) -> Reading<S> {
        self.fragments = Some(Box::default());
        self
    }

    /// The fate of later fragments, where they were looked after.
    pub fn counts(&self) -> Option<Counts> {
        self.fragments.as_ref().map(|f| f.counts())
    }
}

impl<S: Source> Source for Reading<S> {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let more = self.source.fill(batch)?;
        batch.headers = self.headers;
        if let Some(fragments) = &mut self.fragments {
            fragments.resolve(batch);
        }
        Ok(more)
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
