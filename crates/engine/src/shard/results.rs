//! Rows that leave the workers at once, until it is their turn to be emitted.
//!
//! A *unit* is what is numbered and emitted as one: a batch of the feed, or a block of them.

use crate::level::Channel;
use crate::limits::{RING, ROW_BATCHES_AHEAD, SPARE_ROWS};
use crate::rows::Rows;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_packet::limits::BATCH;

/// The results of units, by number modulo [`RING`]. A unit is read only when the one before in the
/// same place has been emitted.
pub(super) struct Results {
    slots: Vec<Slot>,
    /// Workers that each unit gets results from.
    from: usize,
    /// Batches of rows that were not emitted.
    waiting: AtomicUsize,
    /// The most there were.
    #[cfg(test)]
    pub(super) most: AtomicUsize,
}

struct Slot {
    /// Workers whose results are there.
    ready: AtomicUsize,
    /// One for each worker that a unit gets results from.
    parts: Vec<Mutex<WorkerResults>>,
}

/// The results of one worker for one unit. Its memory is used again and again.
#[derive(Default)]
pub(super) struct WorkerResults {
    /// Whether the next unit could be read at once.
    pub(super) more: bool,
    /// Of each step the closing before it, if any.
    pub(super) steps: Vec<Option<u64>>,
    /// Step, where they go, rows, in that order.
    pub(super) rows: Vec<(usize, Channel, Rows)>,
    /// Memory of rows that were emitted, and where they went.
    spare: Vec<(Channel, Rows)>,
}

impl WorkerResults {
    /// Forgets all results; keeps the memory.
    fn clear(&mut self) {
        self.steps.clear();
        self.spare.extend(self.rows.drain(..).map(|(_, to, rows)| (to, rows)));
        // One unit may make very many rows, the next ones few.
        self.spare.truncate(SPARE_ROWS);
    }

    /// Notes whether the next unit could be read at once, and of each of its steps whether windows
    /// close before it, the first time with number `close`.
    pub(super) fn begin(&mut self, more: bool, closes: impl Iterator<Item = bool>, close: u64) {
        let mut numbers = close..;
        self.more = more;
        self.steps.extend(closes.map(|closes| if closes { numbers.next() } else { None }));
    }

    /// Where the rows of a step stand.
    pub(super) fn of_step(&self, step: usize) -> Range<usize> {
        let before = |step| self.rows.partition_point(|(s, ..)| *s < step);
        before(step)..before(step + 1)
    }

    /// Keeps a copy of rows of a step, with those before where these leave room.
    pub(super) fn hold(&mut self, step: usize, to: Channel, rows: &Rows) {
        if rows.len == 0 {
            return;
        }
        let mut of_step = self.rows.iter_mut().rev().take_while(|(s, ..)| *s == step);
        if let Some((.., last)) = of_step.find(|(_, there, _)| *there == to)
            && last.len + rows.len <= BATCH
        {
            return last.append(rows, 0..rows.len);
        }
        let spare = self.spare.iter().position(|(there, _)| *there == to);
        let mut copy = match spare {
            Some(at) => self.spare.swap_remove(at).1,
            None => rows.empty(),
        };
        copy.clear();
        copy.append(rows, 0..rows.len);
        self.rows.push((step, to, copy));
    }
}

impl Results {
    /// Room for results that come from `from` workers for each unit.
    pub(super) fn new(from: usize) -> Results {
        let parts = || (0..from).map(|_| Mutex::default()).collect();
        let slot = || Slot { ready: AtomicUsize::new(0), parts: parts() };
        Results {
            slots: (0..RING).map(|_| slot()).collect(),
            from,
            waiting: AtomicUsize::new(0),
            #[cfg(test)]
            most: AtomicUsize::new(0),
        }
    }

    fn slot(&self, unit: u64) -> &Slot {
        &self.slots[unit as usize % RING]
    }

    /// Lets worker `from` write its results of a unit; returns whether all have now.
    pub(super) fn write(
        &self,
        unit: u64,
        from: usize,
        write: impl FnOnce(&mut WorkerResults),
    ) -> bool {
        let slot = self.slot(unit);
        let mut part = slot.parts[from].lock().expect("no worker panicked");
        write(&mut part);
        self.waiting.fetch_add(part.rows.len(), Ordering::AcqRel);
        #[cfg(test)]
        self.most.fetch_max(self.waiting.load(Ordering::Acquire), Ordering::AcqRel);
        drop(part);
        slot.ready.fetch_add(1, Ordering::AcqRel) + 1 == self.from
    }

    /// Whether so many batches of rows wait that no more should be made.
    pub(super) fn are_many(&self) -> bool {
        self.waiting.load(Ordering::Acquire) >= ROW_BATCHES_AHEAD
    }

    /// Batches of rows that wait to be emitted.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Notes that the rows of a unit were emitted.
    pub(super) fn emitted(&self, parts: &[WorkerResults]) {
        let batches = parts.iter().map(|part| part.rows.len()).sum();
        self.waiting.fetch_sub(batches, Ordering::AcqRel);
    }

    /// Exchanges the results of a unit for the memory of earlier ones, once all are there;
    /// returns whether they were.
    pub(super) fn take(&self, unit: u64, parts: &mut Vec<WorkerResults>) -> bool {
        let slot = self.slot(unit);
        if slot.ready.load(Ordering::Acquire) < self.from {
            return false;
        }
        parts.resize_with(self.from, WorkerResults::default);
        for (part, there) in parts.iter_mut().zip(&slot.parts) {
            part.clear();
            std::mem::swap(part, &mut *there.lock().expect("no worker panicked"));
        }
        slot.ready.store(0, Ordering::Release);
        true
    }
}
