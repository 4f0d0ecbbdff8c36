//! A request for statistics: all workers add what they have counted, while they work.

use crate::counters::Ledger;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of the workers so far, once each was asked. At most one request is open at a time.
#[derive(Default)]
pub(super) struct StatsRequest {
    /// Rises with each request.
    number: AtomicU64,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    open: bool,
    workers: usize,
    ledger: Ledger,
}

impl StatsRequest {
    /// Opens a request, unless one is open.
    pub(super) fn begin(&self) {
        let mut answers = self.answers.lock().expect("no worker panicked");
        if !answers.open {
            *answers = Answers { open: true, ..Answers::default() };
            self.number.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether a request is open.
    pub(super) fn is_open(&self) -> bool {
        self.answers.lock().expect("no worker panicked").open
    }

    /// The number of the last request that was opened.
    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Adds what a worker has counted; each is asked once.
    pub(super) fn add(&self, count: impl FnOnce(&mut Ledger)) {
        let mut answers = self.answers.lock().expect("no worker panicked");
        answers.workers += 1;
        count(&mut answers.ledger);
    }

    /// The sums, if a request is open and so many workers have answered, which closes it.
    pub(super) fn end(&self, workers: usize) -> Option<Ledger> {
        let mut answers = self.answers.lock().expect("no worker panicked");
        let over = answers.open && answers.workers == workers;
        over.then(|| {
            answers.open = false;
            std::mem::take(&mut answers.ledger)
        })
    }
}
