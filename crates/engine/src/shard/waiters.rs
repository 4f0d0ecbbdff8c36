//! Workers that wait, and the events that wake them.
//!
//! A worker that processes faster than one can read finds the feed in another's hands. Were all of
//! them to wait for it awake, and be woken by each change, they would slow down the one that reads:
//! so just a few have a *seat* near the feed. The others go to the *bench*, where they sleep until
//! something concerns every worker, or a worker leaves the feed and nobody has a seat. So as many
//! workers are at work as reading keeps busy.
//!
//! None but the calling thread must ever come for the run to go on, so a worker that stays on the
//! bench a little too long costs time and nothing else. `tests/wake.rs` runs this file, too.

use super::event_count::EventCount;
use crate::limits::SEATS;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// All workers that wait.
#[derive(Default)]
pub(super) struct Waiters {
    events: EventCount,
    bench: EventCount,
    /// Workers that wait for the feed with a seat.
    seated: AtomicUsize,
}

/// The events that a worker has seen before it looked for work.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    events: u64,
    bench: u64,
}

impl Waiters {
    /// The events so far.
    pub(super) fn current(&self) -> Seen {
        Seen { events: self.events.current(), bench: self.bench.current() }
    }

    /// Wakes those that wait, but for the bench: there may be something to emit, or room again.
    pub(super) fn notify(&self) {
        self.events.notify();
    }

    /// Wakes every worker: there is something that each of them must do.
    pub(super) fn notify_all(&self) {
        self.events.notify();
        self.bench.notify();
    }

    /// Wakes those that wait for the feed, which was let go; one from the bench, if nobody else
    /// waits for it.
    pub(super) fn notify_free(&self) {
        self.events.notify();
        if self.seated.load(Ordering::SeqCst) == 0 {
            self.bench.notify_one();
        }
    }

    /// Waits for an event after those `seen`.
    pub(super) fn wait(&self, seen: Seen) {
        self.events.wait(seen.events);
    }

    /// Waits for the feed, if there is a seat; `false` at once if there is none.
    pub(super) fn wait_for_feed(&self, seen: Seen) -> bool {
        let has_seat = self.seated.fetch_add(1, Ordering::SeqCst) < SEATS;
        if has_seat {
            self.events.wait(seen.events);
        }
        self.seated.fetch_sub(1, Ordering::SeqCst);
        has_seat
    }

    /// Sleeps on the bench, which may be long: with nothing in hand that others wait for.
    pub(super) fn sleep(&self, seen: Seen) {
        self.bench.sleep(seen.bench);
    }
}
