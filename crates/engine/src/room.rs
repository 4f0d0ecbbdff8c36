//! The memory that keyed state of a run shares.
//!
//! A stage that keeps something by key has a bound: `max` in the query, or a default that suits a
//! large machine. Stages with defaults share the memory that the run gives them. Each is charged
//! for what it holds, and may take whatever the others leave. Only when all of it is used does a
//! level bound them: the number of bytes that any one stage may hold, drawn so that those below it
//! keep what they have and may grow up to it, and those above it give up the rest (max-min
//! fairness; Bertsekas and Gallager, *Data Networks*, 6.5.2). So a flood of keys takes room from
//! the stage that it flows into, never from one that holds less. A stage on one of several workers
//! counts by itself.
//!
//! A stage with `max` shares no memory, and a run that never fills its memory gives the same rows
//! as without a bound. The engine does not ask the system how much memory there is: its caller says
//! so.
//!
//! The memory of one key is reckoned from above: its row, its place in an index that is growing,
//! and what is needed to sort it. Texts, and the values that aggregates such as `distinct` and
//! `median` keep beside groups, are charged for as further keys; they also have bounds of their own
//! (see [`POOL_MAX`](crate::limits::POOL_MAX), [`VALUES_MAX`](crate::limits::VALUES_MAX)).

use crate::pages::row_words;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Bytes that a key takes beside its row: its slots in an index that is being doubled, and its
/// place in a sort.
const BESIDE_ROW: u64 = 48;

/// The memory is full up to this many of its [`PARTS`] when stages have given up what is above the
/// level: so that those below it may grow.
const FULL_PARTS: u64 = 15;

/// The level is lifted when stages hold this many of the [`PARTS`] or fewer.
const LIFTED_PARTS: u64 = 14;

/// Stages count what their keys take in from this many of the [`PARTS`] on.
const TRACKED_PARTS: u64 = 8;

/// Parts in which memory is divided.
const PARTS: u64 = 16;

/// Once it is full, the level is drawn anew whenever what stages hold has changed by one part in so
/// many of the memory.
const REDRAWN: u64 = 256;

/// Memory that the stages of a run share, or of several runs.
#[derive(Debug)]
pub struct MemoryRoom {
    /// In bytes.
    memory: u64,
    /// Bytes that all stages hold.
    total: AtomicU64,
    /// Bytes that one stage may hold; `u64::MAX` while there is room.
    level: AtomicU64,
    /// Bytes that all stages held when the level was last drawn.
    drawn_at: AtomicU64,
    holders: Mutex<Vec<Weak<RoomHolder>>>,
}

/// A stage of one worker.
#[derive(Debug)]
struct RoomHolder {
    room: Arc<MemoryRoom>,
    /// Bytes of one key.
    each: u64,
    /// Keys for which there is room where nobody else holds any.
    alone: u64,
    /// Keys that it holds.
    held: AtomicU64,
}

/// A stage's view of the memory that it shares.
#[derive(Clone, Debug)]
pub(crate) struct RoomShare {
    /// `None`: the stage holds as many keys as the query, or the default, says.
    holder: Option<Arc<RoomHolder>>,
    most: u64,
}

/// The keys of one table that a stage is charged for, until the table is dropped.
#[derive(Debug)]
pub(crate) struct RoomCharge {
    holder: Option<Arc<RoomHolder>>,
    keys: u64,
}

impl MemoryRoom {
    /// So many bytes.
    pub fn new(memory: u64) -> Arc<MemoryRoom> {
        Arc::new(MemoryRoom {
            memory,
            total: AtomicU64::new(0),
            level: AtomicU64::new(u64::MAX),
            drawn_at: AtomicU64::new(0),
            holders: Mutex::new(Vec::new()),
        })
    }

    fn parts(&self, parts: u64) -> u64 {
        (u128::from(self.memory) * u128::from(parts) / u128::from(PARTS)) as u64
    }

    /// Has another stage share it.
    fn add(self: &Arc<MemoryRoom>, each: u64) -> Arc<RoomHolder> {
        let (each, held) = (each.max(1), AtomicU64::new(0));
        let (room, alone) = (Arc::clone(self), self.memory / each);
        let holder = Arc::new(RoomHolder { room, each, alone, held });
        self.holders.lock().push(Arc::downgrade(&holder));
        holder
    }

    /// Draws the level where what stages hold calls for that.
    fn changed(&self, total: u64) {
        let is_bounded = self.level.load(Relaxed) != u64::MAX;
        if !is_bounded && total <= self.memory {
            return;
        }
        let moved = total.abs_diff(self.drawn_at.load(Relaxed));
        if !is_bounded || moved > self.memory / REDRAWN {
            self.draw();
        }
    }

    #[cold]
    fn draw(&self) {
        let mut holders = self.holders.lock();
        holders.retain(|holder| holder.strong_count() > 0);
        let bytes = |holder: &Weak<RoomHolder>| holder.upgrade().map_or(0, |holder| holder.bytes());
        let mut held: Vec<u64> = holders.iter().map(bytes).collect();
        let total = held.iter().fold(0u64, |sum, &bytes| sum.saturating_add(bytes));
        let level = match total <= self.parts(LIFTED_PARTS) {
            true => u64::MAX,
            false => level(&mut held, self.parts(FULL_PARTS)),
        };
        self.level.store(level, Relaxed);
        self.drawn_at.store(total, Relaxed);
    }
}

/// The most that any of them may keep so that all of them keep `memory` together.
fn level(held: &mut [u64], memory: u64) -> u64 {
    held.sort_unstable();
    let mut left = memory;
    for (n, &bytes) in held.iter().enumerate() {
        let share = left / (held.len() - n) as u64;
        if bytes > share {
            return share;
        }
        left -= bytes;
    }
    // All fit in: none needs to give anything up, and the largest may not grow.
    held.last().copied().unwrap_or(memory)
}

impl RoomHolder {
    fn bytes(&self) -> u64 {
        self.held.load(Relaxed).saturating_mul(self.each)
    }

    fn change(&self, before: u64, after: u64) {
        let bytes = before.abs_diff(after).saturating_mul(self.each);
        let total = if after > before {
            self.held.fetch_add(after - before, Relaxed);
            self.room.total.fetch_add(bytes, Relaxed).saturating_add(bytes)
        } else {
            self.held.fetch_sub(before - after, Relaxed);
            self.room.total.fetch_sub(bytes, Relaxed).saturating_sub(bytes)
        };
        self.room.changed(total);
    }
}

impl RoomShare {
    /// That of a stage with this bound, of which each key takes so many bytes. One that a query
    /// bounds otherwise than by default shares no memory.
    pub(crate) fn of(
        room: Option<&Arc<MemoryRoom>>,
        (bound, default): (u64, u64),
        each: u64,
    ) -> RoomShare {
        let room = room.filter(|_| bound == default);
        RoomShare { holder: room.map(|room| room.add(each)), most: bound }
    }

    /// That of a stage which may always hold so many keys.
    #[cfg(test)]
    pub(crate) fn of_all(most: u64) -> RoomShare {
        RoomShare { holder: None, most }
    }

    /// Keys that there may be now, one at least.
    #[inline]
    pub(crate) fn bound(&self) -> u64 {
        let Some(holder) = &self.holder else { return self.most };
        match holder.room.level.load(Relaxed) {
            u64::MAX => self.most.min(holder.alone).max(1),
            level => self.most.min(level / holder.each).max(1),
        }
    }

    /// Keys that may come, where all that [`RoomShare::charge`] gave out hold together what is
    /// bounded.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        let Some(holder) = &self.holder else { return u64::MAX };
        let most = match holder.room.level.load(Relaxed) {
            u64::MAX => holder.alone,
            level => level / holder.each,
        };
        most.saturating_sub(holder.held.load(Relaxed))
    }

    /// Whether there may soon be too little room: then it is worth knowing which keys matter.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        let room = self.holder.as_ref().map(|holder| &holder.room);
        room.is_some_and(|room| room.total.load(Relaxed) > room.parts(TRACKED_PARTS))
    }

    /// A charge for another table of the stage, which holds no key yet.
    pub(crate) fn charge(&self) -> RoomCharge {
        RoomCharge { holder: self.holder.clone(), keys: 0 }
    }
}

impl RoomCharge {
    /// Charges for so many keys.
    #[inline]
    pub(crate) fn set(&mut self, keys: u64) {
        if let Some(holder) = self.holder.as_ref().filter(|_| keys != self.keys) {
            holder.change(self.keys, keys);
            self.keys = keys;
        }
    }

    /// Charges for so many keys, and for so many bytes that are kept beside them, as for further
    /// keys.
    pub(crate) fn set_with(&mut self, keys: u64, aside: u64) {
        let each = self.holder.as_ref().map_or(1, |holder| holder.each);
        self.set(keys + aside / each);
    }

    /// The keys that it charges for.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }

    /// Whether there is a bound for what it charges.
    pub(crate) fn is_asked(&self) -> bool {
        self.holder.is_some()
    }
}

impl Drop for RoomCharge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The most bytes that a key takes whose row has so many words.
pub(crate) fn row_bytes(words: usize) -> u64 {
    8 * row_words(words) as u64 + BESIDE_ROW
}

#[cfg(test)]
mod tests;
