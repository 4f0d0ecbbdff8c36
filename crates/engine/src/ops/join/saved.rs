//! A join in a checkpoint: its rows, and the keys that they number. How the rows of a key hang
//! together is not among it: that is found anew.

use super::held::{Due, SideRows};
use super::{Join, KEY, Plan};
use crate::checkpoint::{BadState, Checkpoint, Passed};

/// When a left row of this time is let go.
fn left_due(plan: &Plan, time: i64) -> Due {
    let until = plan.reached(plan.left_until(time));
    Due { complete: until, gone: until }
}

/// When a right row of this time is complete, and let go.
fn right_due(plan: &Plan, time: i64) -> Due {
    let [complete, gone] = [plan.right_until(time), plan.right_held_until(time)];
    Due { complete: plan.reached(complete), gone: plan.reached(gone) }
}

impl Join {
    /// Saves the rows of both sides, or restores them.
    pub(super) fn pass_sides(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.reached)?;
        at.count(&mut self.late)?;
        at.count(&mut self.undecided)?;
        let mut evicted = self.evicted + self.keys.refused();
        at.count(&mut evicted)?;
        if at.restores() {
            self.evicted = evicted;
        }
        self.fill.pass_state(at)?;
        self.keys.pass_state(at)?;
        let Join { plan, left, right, keys, .. } = self;
        left.pass_state(at, |time| left_due(plan, time))?;
        right.pass_state(at, |time| right_due(plan, time))?;
        if !at.restores() {
            return Ok(());
        }
        let mut are_keys = true;
        let mut look = |rows: &mut SideRows| {
            rows.each_word(KEY, &mut |key| are_keys &= keys.has(*key));
        };
        look(left);
        look(right);
        if !are_keys {
            return Err(BadState("a row of a join has no key"));
        }
        // Rows that lagged are in these buckets, too.
        let complete: Vec<u32> = right.completed(i64::MIN, Some(self.reached)).collect();
        complete.into_iter().for_each(|bucket| self.link(bucket));
        Ok(())
    }
}
