//! Which worker reads from the source, and which waits for it.
//!
//! One worker reads at a time. Where the source has nothing at once, the gate is *dry*: then only
//! the calling thread goes through, and waits for the source, provided that everything read before
//! was emitted. It is the only thread that emits, so whatever it left waiting would wait as long as
//! the source does; and a peer on the wire that gets no answer may send nothing more. Other
//! workers read only what is there at once, and none asks for more with packets in hand.
//!
//! A worker that finds another in the gate waits as [`Waiters`] say; one that leaves notifies
//! them. `tests/wake.rs` runs this file and theirs through all schedules of small cases.

use super::waiters::Waiters;
use crate::supply::Supply;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard, TryLockError};
use std::ops::{Deref, DerefMut};

/// A kind of worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reader {
    /// The calling thread, which emits, and waits for the source.
    Caller,
    /// Any other.
    Helper,
}

/// Lets one worker at a time read.
pub(super) struct Gate<F> {
    feed: Mutex<F>,
    /// Whether there was nothing more at once when a worker last left.
    dry: AtomicBool,
    /// Whether a worker found it occupied since one last left.
    turned_away: AtomicBool,
    /// Whether the calling thread is to get the feed before all others.
    wanted: AtomicBool,
}

/// The feed in the hands of a worker.
pub(super) struct Pass<'a, F: Supply> {
    gate: &'a Gate<F>,
    waiters: &'a Waiters,
    reader: Reader,
    /// `None` only while it is dropped.
    feed: Option<MutexGuard<'a, F>>,
    /// Whether something was read.
    has_read: bool,
    /// Whether reading on would not wait, if that was asked.
    more: Option<bool>,
}

impl<F: Supply> Gate<F> {
    pub(super) fn new(feed: F) -> Gate<F> {
        Gate {
            feed: Mutex::new(feed),
            dry: AtomicBool::new(false),
            turned_away: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
        }
    }

    /// The feed, unless another worker has it, or only the calling thread may go through. A worker
    /// that does not get it waits for an event after those that it had seen before it asked.
    pub(super) fn enter<'a>(&'a self, reader: Reader, waiters: &'a Waiters) -> Option<Pass<'a, F>> {
        if reader == Reader::Helper && (self.is_dry() || self.wanted.load(Ordering::Acquire)) {
            return None;
        }
        let feed = self.try_lock().or_else(|| {
            // A worker that leaves after this notifies; one that left before it left the gate open.
            self.turned_away.store(true, Ordering::SeqCst);
            self.try_lock()
        })?;
        Some(Pass { gate: self, waiters, reader, feed: Some(feed), has_read: false, more: None })
    }

    /// The feed for the calling thread, as soon as the worker that has it leaves: not to read, but
    /// to look at it. A lock goes to the first that comes, and its last owner comes again at once.
    pub(super) fn look<T>(&self, waiters: &Waiters, look: impl FnOnce(&F) -> T) -> T {
        self.wanted.store(true, Ordering::Release);
        let feed = self.feed.lock().expect("no worker panicked");
        self.wanted.store(false, Ordering::Release);
        let seen = look(&feed);
        drop(feed);
        waiters.notify();
        seen
    }

    /// Waits until no worker reads.
    pub(super) fn wait_until_free(&self, waiters: &Waiters) {
        drop(self.feed.lock().expect("no worker panicked"));
        self.notify_others(waiters, false);
    }

    /// Whether the source had nothing more at once when it was last read from.
    pub(super) fn is_dry(&self) -> bool {
        self.dry.load(Ordering::Acquire)
    }

    /// The feed, once all workers have ended.
    pub(super) fn into_inner(self) -> F {
        self.feed.into_inner().expect("no worker panicked")
    }

    /// Notifies after the feed was let go, where others found it occupied, or there is `more` to
    /// read.
    fn notify_others(&self, waiters: &Waiters, more: bool) {
        if self.turned_away.swap(false, Ordering::SeqCst) || more {
            waiters.notify_free();
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, F>> {
        match self.feed.try_lock() {
            Ok(feed) => Some(feed),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("a worker panicked while reading"),
        }
    }
}

impl<F: Supply> Pass<'_, F> {
    /// Whether this worker may read now, which may mean to wait for the source. `is_drained` says
    /// whether everything that was read has been emitted.
    pub(super) fn may_read(&mut self, is_drained: impl FnOnce() -> bool) -> bool {
        self.reader == Reader::Caller && is_drained() || self.has_more()
    }

    /// Says that something was read; whether more can be had at once.
    pub(super) fn has_read(&mut self) -> bool {
        self.has_read = true;
        self.has_more()
    }

    fn has_more(&mut self) -> bool {
        let more = self.is_ready();
        self.more = Some(more);
        more
    }
}

impl<F: Supply> Deref for Pass<'_, F> {
    type Target = F;

    fn deref(&self) -> &F {
        self.feed.as_ref().expect("it is not dropped yet")
    }
}

impl<F: Supply> DerefMut for Pass<'_, F> {
    fn deref_mut(&mut self) -> &mut F {
        self.feed.as_mut().expect("it is not dropped yet")
    }
}

impl<F: Supply> Drop for Pass<'_, F> {
    fn drop(&mut self) {
        if let Some(more) = self.more {
            self.gate.dry.store(!more, Ordering::Release);
        }
        drop(self.feed.take());
        let more = self.has_read && self.more == Some(true);
        self.gate.notify_others(self.waiters, more);
    }
}
