//! An event count: how workers wait when they find nothing to do.
//!
//! A worker that changes what another may wait for notifies afterwards. A worker that waits
//! remembers how many events there had been *before* it looked for work, so it misses no change:
//! one that came after the look was followed by an event, too.

use crate::limits::SPINS;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, spin_loop};

/// Wakes all that wait.
#[derive(Default)]
pub(super) struct EventCount {
    events: AtomicU64,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

impl EventCount {
    /// How many events there were.
    pub(super) fn current(&self) -> u64 {
        self.events.load(Ordering::SeqCst)
    }

    /// Wakes all that wait, to look again.
    pub(super) fn notify(&self) {
        if self.has_sleepers_after_one_more() {
            self.wake.notify_all();
        }
    }

    /// Wakes one of those that sleep, and all that are about to.
    pub(super) fn notify_one(&self) {
        if self.has_sleepers_after_one_more() {
            self.wake.notify_one();
        }
    }

    /// Counts an event; whether somebody sleeps who may not have seen it.
    fn has_sleepers_after_one_more(&self) -> bool {
        self.events.fetch_add(1, Ordering::SeqCst);
        // A sleeper counts itself before it looks at the events for the last time: either it is
        // seen here, or it sees this one.
        let any = self.sleepers.load(Ordering::SeqCst) > 0;
        if any {
            drop(self.lock.lock().expect("no worker panicked with the lock"));
        }
        any
    }

    /// Waits until there were more events than `seen`: awake at first, since most waits are shorter
    /// than falling asleep.
    pub(super) fn wait(&self, seen: u64) {
        for _ in 0..SPINS {
            if self.current() != seen {
                return;
            }
            spin_loop();
        }
        self.sleep(seen);
    }

    /// The same, asleep from the beginning.
    pub(super) fn sleep(&self, seen: u64) {
        let mut lock = self.lock.lock().expect("no worker panicked with the lock");
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.current() == seen {
            lock = self.wake.wait(lock).expect("no worker panicked with the lock");
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
