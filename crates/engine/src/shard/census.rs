//! Counts asked of all workers while they work.

use crate::counters::Ledger;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What workers have counted so far, once each was asked. At most one census at a time.
#[derive(Default)]
pub(super) struct Census {
    /// Rises with each census.
    number: AtomicU64,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    open: bool,
    workers: usize,
    ledger: Ledger,
}

impl Census {
    /// Begins one, unless one goes on.
    pub(super) fn begin(&self) {
        let mut answers = self.answers.lock().expect("no worker panicked");
        if !answers.open {
            *answers = Answers { open: true, ..Answers::default() };
            self.number.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether one goes on.
    pub(super) fn is_open(&self) -> bool {
        self.answers.lock().expect("no worker panicked").open
    }

    /// The number of the last one that was begun.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Adds what a worker has counted; each is asked once.
    pub(super) fn answer(&self, count: impl FnOnce(&mut Ledger)) {
        let mut answers = self.answers.lock().expect("no worker panicked");
        answers.workers += 1;
        count(&mut answers.ledger);
    }

    /// The sums, if one goes on and all workers have answered: then it is over.
    pub(super) fn end(&self, workers: usize) -> Option<Ledger> {
        let mut answers = self.answers.lock().expect("no worker panicked");
        let over = answers.open && answers.workers == workers;
        over.then(|| {
            answers.open = false;
            std::mem::take(&mut answers.ledger)
        })
    }
}
