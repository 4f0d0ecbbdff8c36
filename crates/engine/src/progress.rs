//! How far a run is, while it goes on.

use crate::counters::Ledger;
use crate::feed::Feed;
use crate::inquiry::Inquiry;
use crate::limits::PROGRESS_BATCHES;
use crate::outcome::RunError;
use crate::rows::Sink;
use weir_packet::source::Account;

/// Reports to the caller now and then how far the source is.
pub(crate) struct Progress<'a> {
    pub(crate) call: &'a mut dyn FnMut(&Account),
    /// Batches when it was last called, in units of [`PROGRESS_BATCHES`].
    pub(crate) batches: u64,
    /// May ask for statistics.
    pub(crate) inquiry: Option<&'a Inquiry>,
    /// Whether the sink gets the counts, too, when somebody asks.
    pub(crate) tells: bool,
    /// The counts of programs that ran before.
    pub(crate) past: &'a Ledger,
}

impl Progress<'_> {
    /// The same for a while.
    pub(crate) fn lend(&mut self) -> Progress<'_> {
        Progress { call: &mut *self.call, ..*self }
    }

    /// Calls if enough has been read since the last call.
    pub(crate) fn report(&mut self, feed: &Feed<'_>) {
        let batches = feed.batches() / PROGRESS_BATCHES;
        if batches != self.batches {
            self.batches = batches;
            (self.call)(&feed.account());
        }
    }

    /// Whether somebody asks what happened so far.
    pub(crate) fn is_asked(&self) -> bool {
        self.inquiry.is_some_and(Inquiry::was_asked)
    }

    /// Asks again, for others to answer.
    pub(crate) fn ask(&self) {
        if let Some(inquiry) = self.inquiry {
            inquiry.ask();
        }
    }

    /// Answers from what workers have counted. Gives the ledger, and the time that packets have
    /// come to.
    pub(crate) fn answer(
        &self,
        mut ledger: Ledger,
        feed: &Feed<'_>,
        sink: &dyn Sink,
    ) -> (Ledger, i64) {
        ledger.add(self.past);
        feed.count(&mut ledger);
        settle(&mut ledger, sink);
        if let Some(inquiry) = self.inquiry {
            inquiry.answer(&ledger, &feed.interfaces());
        }
        (ledger, feed.clock().stands_at().0)
    }

    /// Tells the sink of an answer; what went wrong there.
    pub(crate) fn tell(
        &self,
        (ledger, time): (Ledger, i64),
        sink: &mut dyn Sink,
    ) -> Option<RunError> {
        let told = if self.tells { sink.counted(&ledger, time) } else { Ok(()) };
        told.err().map(RunError::Sink)
    }
}

/// Settles what a ledger says of rows by what the sink says of them.
pub(crate) fn settle(ledger: &mut Ledger, sink: &dyn Sink) {
    ledger.rows += sink.own_rows();
    ledger.settle_rows(sink.refused(), sink.unwritten());
}
