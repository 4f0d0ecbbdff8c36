//! A bell that workers listen for when they find nothing to do.
//!
//! Whoever changes what another may wait for rings afterwards. Whoever waits remembers how often
//! the bell had rung *before* looking for work, so no change is missed: one that came after the
//! look also rang after it.

use crate::limits::SPINS;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, spin_loop};

/// Rings for everybody.
#[derive(Default)]
pub(super) struct Bell {
    rung: AtomicU64,
    sleepers: AtomicUsize,
    door: Mutex<()>,
    wake: Condvar,
}

impl Bell {
    /// How often it has rung.
    pub(super) fn heard(&self) -> u64 {
        self.rung.load(Ordering::SeqCst)
    }

    /// Tells all who wait to look again.
    pub(super) fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        // A sleeper counts itself before it looks at the bell for the last time: either it is
        // seen here, or it sees the ring.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.door.lock().expect("no worker panicked behind the door"));
            self.wake.notify_all();
        }
    }

    /// Waits until it has rung more often than `heard`: awake at first, since most waits are
    /// shorter than falling asleep.
    pub(super) fn wait(&self, heard: u64) {
        for _ in 0..SPINS {
            if self.heard() != heard {
                return;
            }
            spin_loop();
        }
        let mut door = self.door.lock().expect("no worker panicked behind the door");
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.heard() == heard {
            door = self.wake.wait(door).expect("no worker panicked behind the door");
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
