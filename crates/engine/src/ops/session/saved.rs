//! Sessions in a checkpoint: those that take rows, then those that have ended and did not come out.

use super::Sessions;
use super::open::taking_rows;
use crate::checkpoint::{Checkpoint, Passed};
use crate::ops::groups::Groups;

/// Batches that sessions may have taken, so that rows can be numbered.
const BATCHES_MAX: u64 = 1 << 44;

impl Sessions {
    /// Saves all sessions that did not come out, or restores them.
    pub(super) fn pass_sessions(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.tick)?;
        at.pass_if(&mut self.batches, "too many rows came", |n| *n < BATCHES_MAX)?;
        let mut evicted = self.evicted + self.groups.evicted();
        at.count(&mut evicted)?;
        if at.restores() {
            self.evicted = evicted;
            self.groups.pass_state(at)?;
        } else {
            let mut all = Groups::new(&self.spec);
            for (v, open) in self.open.iter().enumerate() {
                self.rows.clear();
                self.rows.extend(taking_rows(&self.groups.variants[v].table));
                self.rows.extend(&open.ended);
                all.append(&self.groups, v, &self.rows);
            }
            all.pass_state(at)?;
        }
        let variants = self.groups.variants.iter_mut();
        let mut all = self.open.iter_mut().zip(variants);
        all.try_for_each(|(open, variant)| open.pass_state(&mut variant.table, at))
    }
}
