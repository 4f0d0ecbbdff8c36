//! The keys of an alert that fire, and which of them was asserted longest ago.

use super::evidence::Evidence;
use crate::checkpoint::{BadState, Checkpoint, Passed};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use weir_plan::Value;

/// How a key that fires is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// By itself, if at all.
    Alone = 0,
    /// With others.
    Together = 1,
    /// It stands for those that are reported together.
    AsAll = 2,
}

impl Told {
    pub(super) const ALL: [Told; 3] = [Told::Alone, Told::Together, Told::AsAll];
}

/// The state of a key that fires.
#[derive(Debug)]
pub(super) struct Firing {
    /// The latest time that it was asserted.
    pub(super) at: i64,
    /// When the row came that was put out last.
    pub(super) put_at: i64,
    /// When the first packet was that counts for its first row.
    pub(super) first: Option<i64>,
    /// When the last packet was that counts for its rows.
    pub(super) last: Option<i64>,
    /// Whether a row of it was put out, so that its end is, too.
    pub(super) shown: bool,
    /// Whether it is reported by itself.
    pub(super) told: Told,
    /// How many rows asserted it.
    pub(super) rows: i64,
    /// The smallest share of a window that was seen.
    pub(super) least: Option<f64>,
    /// The row with the most extreme value.
    pub(super) peak: Evidence,
}

impl Firing {
    /// A key of which no row has come.
    pub(super) fn nothing() -> Firing {
        let peak = Evidence {
            ts: None,
            first: None,
            last: None,
            message: Value::Absent,
            value: None,
            threshold: None,
            completeness: None,
            community: Value::Absent,
            next_step: Value::Absent,
            rest: Vec::new(),
        };
        let (first, last, least) = (None, None, None);
        let (shown, told) = (false, Told::Alone);
        Firing { at: 0, put_at: 0, first, last, shown, told, rows: 0, least, peak }
    }

    /// Takes in a further row, whose last packet was then.
    pub(super) fn add(&mut self, seen: &Evidence, last: Option<i64>) {
        self.last = self.last.max(last);
        self.rows += 1;
        self.least = least(self.least, seen.completeness);
    }
}

/// The smaller of two shares, of which either may be missing.
fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.total_cmp(&a).is_lt() { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Keys that fire, in numbered slots.
///
/// Each has one entry in a heap, with the time and turn of an assertion of it, not always of the
/// latest: whoever takes an entry from the top puts it back with the latest ones, if they are
/// later. So an assertion costs no more than a look into the index.
#[derive(Debug, Default)]
pub(super) struct FiringKeys {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    index: HashMap<Box<[u8]>, u32>,
    heap: BinaryHeap<Reverse<(i64, u64, u32)>>,
    turns: u64,
}

#[derive(Debug)]
struct Slot {
    key: Box<[u8]>,
    /// Larger for the key that was asserted later.
    turn: u64,
    firing: Firing,
}

impl FiringKeys {
    /// Bytes that each key takes, beside its own bytes and what its row says: a slot, and entries
    /// in an index that is half full and in a heap.
    pub(super) const EACH: usize = size_of::<Option<Slot>>()
        + 2 * (size_of::<(Box<[u8]>, u32)>() + 1)
        + size_of::<Reverse<(i64, u64, u32)>>();

    /// Saves all keys, or restores them; `each` passes what is known of one.
    pub(super) fn pass_state(
        &mut self,
        at: &mut Checkpoint<'_>,
        mut each: impl FnMut(&mut Firing, &mut Checkpoint<'_>) -> Passed,
    ) -> Passed {
        at.count(&mut self.turns)?;
        let n = at.len(self.len())?;
        if !at.restores() {
            return self.slots.iter_mut().flatten().try_for_each(|Slot { key, turn, firing }| {
                at.pass(key)?;
                at.pass(turn)?;
                each(firing, at)
            });
        }
        for slot in 0..n as u32 {
            let mut new = Slot { key: Box::default(), turn: 0, firing: Firing::nothing() };
            at.pass(&mut new.key)?;
            at.pass(&mut new.turn)?;
            each(&mut new.firing, at)?;
            if self.index.insert(new.key.clone(), slot).is_some() {
                return Err(BadState("a key fires twice"));
            }
            self.heap.push(Reverse((new.firing.at, new.turn, slot)));
            self.slots.push(Some(new));
        }
        Ok(())
    }

    /// How many fire.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// The slot of a key that fires.
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.index.get(key).copied()
    }

    fn slot(&mut self, slot: u32) -> &mut Slot {
        self.slots[slot as usize].as_mut().expect("a key that fires has its slot")
    }

    /// The state of the key in a slot.
    pub(super) fn get(&self, slot: u32) -> &Firing {
        &self.slots[slot as usize].as_ref().expect("a key that fires has its slot").firing
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Firing {
        &mut self.slot(slot).firing
    }

    /// The same after a row of the key came.
    pub(super) fn assert_at(&mut self, slot: u32, at: i64) -> &mut Firing {
        self.turns += 1;
        let turn = self.turns;
        let slot = self.slot(slot);
        slot.turn = turn;
        slot.firing.at = slot.firing.at.max(at);
        &mut slot.firing
    }

    /// Lets a key begin to fire.
    pub(super) fn start(&mut self, key: &[u8], firing: Firing) -> u32 {
        self.turns += 1;
        let (turn, at) = (self.turns, firing.at);
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot as usize] = Some(Slot { key: key.into(), turn, firing });
        self.index.insert(key.into(), slot);
        self.heap.push(Reverse((at, turn, slot)));
        slot
    }

    /// Lets a key that has ended begin to fire again: what it was comes back.
    pub(super) fn restart(&mut self, slot: u32, firing: Firing) -> Firing {
        self.turns += 1;
        let turn = self.turns;
        let slot = self.slot(slot);
        slot.turn = turn;
        std::mem::replace(&mut slot.firing, firing)
    }

    /// The slot of the key whose latest assertion has the earliest time, of several the first.
    fn oldest(&mut self) -> Option<u32> {
        while let Some(mut top) = self.heap.peek_mut() {
            let Reverse((at, turn, slot)) = *top;
            let found = self.slots[slot as usize].as_ref().expect("an entry is of a slot");
            let latest = (found.firing.at, found.turn);
            if latest == (at, turn) {
                return Some(slot);
            }
            *top = Reverse((latest.0, latest.1, slot));
        }
        None
    }

    /// Takes the key out whose latest assertion has the earliest time, if that satisfies a
    /// condition.
    pub(super) fn take_oldest(&mut self, condition: impl Fn(i64) -> bool) -> Option<Firing> {
        let slot = self.oldest()?;
        if !condition(self.get(slot).at) {
            return None;
        }
        self.heap.pop();
        let Slot { key, firing, .. } = self.slots[slot as usize].take()?;
        self.index.remove(&key);
        self.free.push(slot);
        Some(firing)
    }
}
