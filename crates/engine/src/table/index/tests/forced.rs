//! An index that is forced to grow, or to meet long runs.

use super::{Index, Moving, REBUILD_MAX, Slots};

impl Index {
    /// How many rows there are.
    pub(in crate::table) fn len(&self) -> usize {
        self.used
    }

    /// Takes runs of so many slots for chance, instead of [`RUN_MAX`].
    pub(in crate::table) fn take_for_chance(&mut self, run_max: usize) {
        self.run_max = run_max;
    }

    /// Begins to grow, or goes on with it, however small the index is: a few slots at a time.
    pub(in crate::table) fn grow_now(&mut self) {
        match &mut self.moving {
            Some(moving) => {
                let done = moving.step(3, &mut self.slots);
                self.moving = self.moving.take().filter(|_| !done);
            }
            None if self.used > 0 && self.slots.size < REBUILD_MAX => {
                let bigger = Slots::new(self.slots.size * 2);
                let from = std::mem::replace(&mut self.slots, bigger);
                self.moving = Some(Moving { from, done: 0 });
            }
            None => {}
        }
    }
}
