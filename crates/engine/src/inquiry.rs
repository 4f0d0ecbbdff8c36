//! Requests for the statistics of a run while it goes on.

use crate::counters::Ledger;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_packet::source::Account;

/// The ledger so far, and what was received from each interface.
type Answer = dyn Fn(&Ledger, &[(String, Account)]) + Send + Sync;

/// Asks a run what happened so far, from any thread. The thread that runs answers soon after:
/// within some packets, or as soon as a source that waits returns.
pub struct Inquiry {
    asked: AtomicBool,
    answer: Box<Answer>,
}

impl Inquiry {
    /// `answer` gets the ledger. Workers count on while they are asked one after the other, so that
    /// its numbers may be some batches apart; only the ledger of the end adds up to the packet.
    pub fn new(answer: impl Fn(&Ledger, &[(String, Account)]) + Send + Sync + 'static) -> Inquiry {
        Inquiry { asked: AtomicBool::new(false), answer: Box::new(answer) }
    }

    /// Asks. Several questions before the answer get one answer.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether somebody asked since this was last called.
    pub(crate) fn was_asked(&self) -> bool {
        // A plain load most of the time: it is looked at for every batch.
        self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Acquire)
    }

    /// Answers.
    pub(crate) fn answer(&self, ledger: &Ledger, interfaces: &[(String, Account)]) {
        (self.answer)(ledger, interfaces);
    }
}

impl fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inquiry").field("asked", &self.asked).finish_non_exhaustive()
    }
}
