//! The state that nodes hold from one batch to the next.

use crate::checkpoint::{Checkpoint, Passed};
use crate::ops::groups::Groups;
use std::any::Any;

/// Holds keys, groups or rows: a node, or the end of its chain. Rows pass through it by
/// [`Node`](crate::node::Node) and [`End`](crate::node::End).
pub(crate) trait Hold: Send + Any {
    /// Keys, groups or rows that it holds.
    fn held(&self) -> u64 {
        0
    }

    /// Takes over all that another one holds, which was compiled of the same stage after the same
    /// ones. Says whether such ones hold anything.
    fn take_over(&mut self, _old: &mut dyn Hold) -> bool {
        false
    }

    /// Saves all that it holds between two windows, or restores it in one that was compiled of the
    /// same plan and has taken nothing yet.
    fn pass_state(&mut self, _at: &mut Checkpoint<'_>) -> Passed {
        Ok(())
    }

    /// Hands out the memory of groups that it has emitted.
    fn reclaim(&mut self, _out: &mut dyn FnMut(Groups)) {}

    /// Takes groups that were emitted, to use their memory again.
    fn recycle(&mut self, _groups: Groups) {}

    /// Makes new tables with room for about so many groups.
    fn expect_groups(&mut self, _groups: usize) {}
}

/// One of these as its own type, for [`Hold::take_over`].
pub(crate) fn known<T: Any>(one: &mut dyn Any) -> Option<&mut T> {
    one.downcast_mut()
}
