//! A scan in a checkpoint: its keys and their states. How its rows lie in memory is not among it,
//! nor which keys would go next: both are found anew.

use super::{Mode, Scan};
use crate::checkpoint::{Checkpoint, Passed};
use weir_packet::limits::BATCH;

/// Batches that a scan may have taken, so that rows can be numbered.
const BATCHES_MAX: u64 = 1 << 44;

impl Scan {
    /// Saves all keys with their states, or restores them.
    pub(super) fn pass_keys(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let mut evicted = self.all_evicted();
        at.count(&mut evicted)?;
        if at.restores() {
            self.evicted = evicted;
        }
        at.pass_if(&mut self.batches, "too many rows came", |n| *n < BATCHES_MAX)?;
        let rows = (self.batches + 1) * BATCH as u64;
        let Scan { stores, parts, key_texts, mode, states, .. } = self;
        for store in stores {
            store.pass_state(at, (parts, key_texts), rows, |cells, at| match mode {
                Mode::Steps(_) | Mode::Connections(_) => Ok(()),
                Mode::Rounds(rounds) => rounds.pass_texts(cells, states, at),
            })?;
        }
        Ok(())
    }
}
