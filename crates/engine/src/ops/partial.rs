//! Partial aggregation: rows become groups, which are handed on when their window closes.

use super::groups::Groups;
use super::operator::Batch;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::node::{End, Next};
use weir_packet::bits::Bits;

/// Takes rows into groups, and hands these out when they close.
pub(crate) trait Grouping: Send + 'static {
    /// Makes room for about so many groups.
    fn expect_groups(&mut self, groups: usize);

    /// Takes the rows of the selection in.
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits);

    /// Hands out what closes at this watermark, by time.
    fn watermark(&mut self, watermark: i64, out: &mut dyn FnMut(i64, Groups));

    /// Hands out all there is.
    fn finish(&mut self, out: &mut dyn FnMut(i64, Groups));

    /// Takes groups back that were emitted, to use their memory again.
    fn recycle(&mut self, groups: Groups);

    /// Takes over the open groups of another one of the same plan, and its counts.
    fn take_over(&mut self, old: &mut Self);

    /// As [`crate::node::Node::pass_state`].
    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed;

    /// Groups that it holds.
    fn held(&self) -> u64;

    /// Adds what it counted to the ledger.
    fn count(&self, ledger: &mut Ledger);
}

/// The partial half of a `summarize`.
pub(crate) struct Partial<G>(pub(crate) G);

impl<G: Grouping> End for Partial<G> {
    const HOLDS_ROWS: bool = true;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, _next: &mut Next<'_>) {
        self.0.push(batch, rows);
    }

    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        self.0.watermark(watermark, &mut |start, groups| next.groups(start, groups));
        watermark
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        self.0.finish(&mut |start, groups| next.groups(start, groups));
    }

    fn take_over(&mut self, old: &mut Partial<G>) -> bool {
        self.0.take_over(&mut old.0);
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.0.pass_state(at)
    }

    fn recycle(&mut self, groups: Groups) {
        self.0.recycle(groups);
    }

    fn expect_groups(&mut self, groups: usize) {
        self.0.expect_groups(groups);
    }

    fn held(&self) -> u64 {
        self.0.held()
    }

    fn count(&self, ledger: &mut Ledger) {
        self.0.count(ledger);
    }
}
