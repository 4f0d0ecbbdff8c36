//! Several captures, one after the other, as one.

use crate::options::Options;
use crate::unread::UnreadCapture;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// Reads captures in the order given. Packets are numbered through; link types may differ.
pub(crate) struct Chain {
    options: Options,
    /// The captures to come.
    waiting: std::vec::IntoIter<UnreadCapture>,
    current: Option<Box<dyn Source>>,
    /// The account of the captures before the current one.
    before: Account,
}

impl Chain {
    /// Goes on from `first` to those that wait.
    pub(crate) fn new(
        first: Option<Box<dyn Source>>,
        waiting: std::vec::IntoIter<UnreadCapture>,
        options: Options,
    ) -> Chain {
        Chain { options, waiting, current: first, before: Account::default() }
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        while let Some(source) = &mut self.current {
            if source.fill(batch)? {
                batch.renumber(self.before.received);
                return Ok(true);
            }
            self.before = sum(self.before, source.account());
            self.current = None;
            self.current = self.waiting.next().map(|w| w.open(&self.options)).transpose()?;
        }
        Ok(false)
    }
}

fn sum(a: Account, b: Account) -> Account {
    let mut sum = a;
    sum.merge(b);
    sum
}

impl Source for Chain {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let next = self.next(batch);
        if next.is_err() {
            // An error is the end of all.
            self.before = self.account();
            self.current = None;
        }
        if !matches!(next, Ok(true)) {
            batch.clear();
        }
        next
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        let current = self.current.as_ref().map(|source| source.account());
        sum(self.before, current.unwrap_or_default())
    }
}
