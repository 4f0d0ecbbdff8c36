//! The texts of keys.

use crate::limits::POOL_MAX;
use crate::rows::Arena;

/// Bytes of a text in the map beside its own, about: its slot, and what the allocator adds.
const MAP_ENTRY: usize = 56;

/// Texts by handle, each stored once: keys and states of strings in a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    arena: Arena,
    handles: std::collections::HashMap<Box<[u8]>, u64>,
    refused: u64,
}

impl Pool {
    /// The handle of a text; equal texts have equal handles.
    pub(crate) fn intern(&mut self, text: &[u8]) -> u64 {
        if let Some(&h) = self.handles.get(text) {
            return h;
        }
        if self.arena.len() + text.len() > POOL_MAX {
            self.refused += 1;
            return 0;
        }
        let h = self.arena.put(text);
        self.handles.insert(text.into(), h);
        h
    }

    /// The text behind a handle.
    pub(crate) fn get(&self, handle: u64) -> &[u8] {
        self.arena.get(handle)
    }

    /// The memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        // Each text stands in the arena and in the map.
        2 * self.arena.len() + MAP_ENTRY * self.handles.len()
    }

    /// How often a text found no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Forgets all texts.
    pub(crate) fn clear(&mut self) {
        self.arena.truncate(0);
        self.handles.clear();
    }
}
