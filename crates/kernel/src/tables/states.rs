//! The states of a `scan` that programs in the kernel hold, as workers ask for them.

use std::io;
use weir_capture::ebpf::SharedMemory;
use weir_engine::kernel::{KernelState, KernelStates};
use weir_offload::{StateTable, TakenStates};

/// The memory of a table, which all programs of a run share.
#[derive(Debug)]
pub struct StateMemory {
    pub(super) table: StateTable,
    memory: SharedMemory,
}

impl StateMemory {
    /// Of which no program exists yet.
    ///
    /// # Errors
    /// Where the kernel refuses the memory.
    pub(super) fn new(table: &StateTable) -> io::Result<StateMemory> {
        let memory = SharedMemory::new("weir-states", table.words())?;
        Ok(StateMemory { table: table.clone(), memory })
    }

    /// The number of its map.
    pub fn number(&self) -> i32 {
        self.memory.number()
    }
}

impl KernelStates for StateMemory {
    fn take(&self, key: &[Option<u128>], now: i64) -> Option<KernelState> {
        let TakenStates { last, states } = self.table.take(self.memory.words(), key, now)?;
        Some(KernelState { last, states: states.into_iter().map(i64::cast_unsigned).collect() })
    }
}
