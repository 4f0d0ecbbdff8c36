//! Operators that end a chain in groups.

use super::Batch;
use super::groups::{Groups, Spec};
use super::summarize::Summarize;
use crate::counters::Ledger;
use std::any::Any;
use std::sync::Arc;
use weir_packet::bits::Bits;

/// An operator that takes rows into groups, and hands these out when they close.
pub trait Grouping: Send + Any {
    /// What is known of the groups.
    fn spec(&self) -> &Arc<Spec>;

    /// Makes room for about so many groups.
    fn expect_groups(&mut self, groups: usize);

    /// Takes the rows of the selection in.
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits);

    /// Hands out what closes at this watermark, by time.
    fn watermark(&mut self, watermark: i64, out: &mut Vec<(i64, Groups)>);

    /// Hands out all there is.
    fn finish(&mut self, out: &mut Vec<(i64, Groups)>);

    /// Takes groups back that were put out, to use their memory again.
    fn recycle(&mut self, groups: Groups);

    /// As [`Operator::resume`](super::Operator::resume).
    fn resume(&mut self, old: &mut dyn Grouping) -> bool;

    /// Adds what it counted to the ledger.
    fn count(&self, ledger: &mut Ledger);
}

/// A grouping as what it is, for [`Grouping::resume`].
pub(super) fn known<T: Grouping>(grouping: &mut dyn Grouping) -> Option<&mut T> {
    let any: &mut dyn Any = grouping;
    any.downcast_mut()
}

impl Grouping for Summarize {
    fn spec(&self) -> &Arc<Spec> {
        Summarize::spec(self)
    }

    fn expect_groups(&mut self, groups: usize) {
        Summarize::expect_groups(self, groups);
    }

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        Summarize::push(self, batch, rows);
    }

    fn watermark(&mut self, watermark: i64, out: &mut Vec<(i64, Groups)>) {
        Summarize::watermark(self, watermark, out);
    }

    fn finish(&mut self, out: &mut Vec<(i64, Groups)>) {
        Summarize::finish(self, out);
    }

    fn recycle(&mut self, groups: Groups) {
        Summarize::recycle(self, groups);
    }

    fn resume(&mut self, old: &mut dyn Grouping) -> bool {
        known(old).is_some_and(|old| Summarize::resume(self, old))
    }

    fn count(&self, ledger: &mut Ledger) {
        Summarize::count(self, ledger);
    }
}
