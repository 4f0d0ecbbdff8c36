//! Sessions that are held, taken over, or in a checkpoint: there those that take rows stand before
//! those that have ended and did not come out.

use super::Sessions;
use super::open::taking_rows;
use crate::checkpoint::{Checkpoint, Passed};
use crate::hold::{Hold, known};
use crate::limits::SPARE_GROUPS;
use crate::ops::groups::Groups;
use std::mem::swap;

/// Batches that sessions may have taken, so that rows can be numbered.
const BATCHES_MAX: u64 = 1 << 44;

impl Hold for Sessions {
    fn held(&self) -> u64 {
        self.groups.len() as u64
    }

    fn expect_groups(&mut self, groups: usize) {
        let groups = groups.min(self.max);
        self.open.iter_mut().for_each(|open| open.expect(groups));
    }

    fn recycle(&mut self, mut groups: Groups) {
        if self.spare.len() < SPARE_GROUPS {
            groups.clear();
            groups.rehome(&self.spec);
            self.spare.push(groups);
        }
    }

    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Sessions>(old) else { return false };
        swap(&mut self.groups, &mut old.groups);
        swap(&mut self.open, &mut old.open);
        swap(&mut self.spare, &mut old.spare);
        let groups = std::iter::once(&mut self.groups).chain(&mut self.spare);
        groups.for_each(|groups| groups.rehome(&self.spec));
        swap(&mut self.tick, &mut old.tick);
        swap(&mut self.doomed, &mut old.doomed);
        swap(&mut self.evicted, &mut old.evicted);
        swap(&mut self.batches, &mut old.batches);
        true
    }

    /// Saves all sessions that did not come out, or restores them.
    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
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
