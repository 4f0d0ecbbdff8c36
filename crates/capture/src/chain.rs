//! Several captures, one after the other, as one.

use crate::{Options, open};
use weir_packet::source::{Account, FrameBatch, Source, SourceError};

/// Reads captures in the order given. Packets are numbered through; link types may differ. A
/// capture is opened when the one before it has ended.
pub(crate) struct Chain {
    options: Options,
    /// The captures to come.
    names: std::vec::IntoIter<String>,
    current: Option<Box<dyn Source>>,
    /// What the captures before the current one came to.
    before: Account,
}

impl Chain {
    /// Opens the first of the captures.
    pub(crate) fn new(names: Vec<String>, options: &Options) -> Result<Chain, SourceError> {
        let mut names = names.into_iter();
        let first = names.next().map(|name| open(&name, options)).transpose()?;
        Ok(Chain { options: options.clone(), names, current: first, before: Account::default() })
    }

    fn next(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        while let Some(source) = &mut self.current {
            if source.fill(batch)? {
                batch.renumber(self.before.received);
                return Ok(true);
            }
            self.before = sum(self.before, source.account());
            self.current = None;
            self.current = self.names.next().map(|name| open(&name, &self.options)).transpose()?;
        }
        Ok(false)
    }
}

fn sum(a: Account, b: Account) -> Account {
    let mut lost = a.lost;
    lost.merge(b.lost);
    Account {
        received: a.received + b.received,
        filtered: a.filtered + b.filtered,
        lost,
        bytes_read: a.bytes_read + b.bytes_read,
    }
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

    fn account(&self) -> Account {
        let current = self.current.as_ref().map(|source| source.account());
        sum(self.before, current.unwrap_or_default())
    }
}
