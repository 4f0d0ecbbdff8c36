//! Reading a half of a table.

use super::cells::Cell;
use super::layout::{FRAMES, KEY, Table};
use std::sync::atomic::{AtomicU64, Ordering};

/// The value of a group's cell.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CellValue {
    /// The count, the sum, the least or greatest value, or the bits; of `any` and `all` bit 0 if a
    /// false value was seen, and bit 1 if a true one was; of `first` and `last` the value, of an
    /// address its lower half. As a signed word, where it is no bits.
    pub word: u64,
    /// How many values it is of; 1 where only whether there was one is kept.
    pub values: u64,
    /// Of `first` and `last` when the frame came, by the kernel's monotonic clock.
    pub at: u64,
    /// Of `first` and `last` of addresses the upper half.
    pub high: u64,
}

/// Groups of a window. A key may come once for each CPU.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TableGroups {
    /// How many groups there are.
    pub groups: usize,
    /// The parts of their keys, group by group. `None`: the part is absent.
    pub keys: Vec<Option<u128>>,
    /// The cells of their aggregates, group by group.
    pub cells: Vec<CellValue>,
    /// How many frames they count.
    pub frames: u64,
}

impl Table {
    /// Takes the groups out of a half (0 or 1) that no program writes to, and adds them to `out`.
    /// The half is empty then. `memory` are the [`words`](Table::words) of the table.
    pub fn take(&self, memory: &[AtomicU64], half: usize, out: &mut TableGroups) {
        let words = self.half_words();
        let Some(half) = memory.get(half * words..(half + 1) * words) else { return };
        let mut slot_words = vec![0; self.slot_words];
        for slot in half.chunks_exact(self.slot_words) {
            if slot[FRAMES].load(Ordering::Relaxed) == 0 {
                // It may have a key: it was found for a frame that another table had no room for.
                continue;
            }
            for (word, shared) in slot_words.iter_mut().zip(slot) {
                *word = shared.load(Ordering::Relaxed);
                shared.store(0, Ordering::Relaxed);
            }
            self.read_slot(&slot_words, out);
        }
    }

    fn read_slot(&self, slot: &[u64], out: &mut TableGroups) {
        out.keys.extend(self.keys.read(&slot[KEY..KEY + self.keys.words()]));
        let flags = self.flags.map_or(0, |at| slot[at]);
        out.cells.extend(self.cells.iter().map(|cell| cell.value(slot, flags)));
        out.frames += slot[FRAMES];
        out.groups += 1;
    }
}

impl Cell {
    fn value(self, slot: &[u64], flags: u64) -> CellValue {
        let is_seen = |bit: Option<u32>| bit.map_or(1, |bit| flags >> bit & 1);
        let (word, values) = match self {
            Cell::Frames => (slot[FRAMES], slot[FRAMES]),
            Cell::Count { at } => (slot[at], slot[at]),
            Cell::Sum { at, seen } | Cell::Or { at, seen } => (slot[at], is_seen(seen)),
            Cell::Mean { at, values } => (slot[at], slot[values.unwrap_or(FRAMES)]),
            Cell::Least { at, beyond } => {
                ((beyond as u64).wrapping_sub(slot[at]), u64::from(slot[at] > 0))
            }
            Cell::Greatest { at, below } => {
                ((below as u64).wrapping_add(slot[at]), u64::from(slot[at] > 0))
            }
            Cell::Truth { bit } => (flags >> bit & 3, u64::from(flags >> bit & 3 > 0)),
            Cell::Ordered { at, words, .. } => {
                let high = if words == 2 { slot[at + 1] } else { 0 };
                let values = u64::from(slot[at] > 0);
                return CellValue { word: slot[at + words], values, at: slot[at], high };
            }
        };
        CellValue { word, values, ..CellValue::default() }
    }
}
