//! The input that an aggregate gets from a batch.

use crate::rows::Arena;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::source::FrameBatch;

/// The rows of a batch on their way into groups.
pub(crate) struct Input<'a> {
    /// Positions in the batch, ascending.
    pub rows: &'a [u16],
    /// The group of each.
    pub groups: &'a [u32],
    /// The argument, part by part; none for `count()`.
    pub columns: &'a [&'a Column],
    /// Positions at which the argument is there and the condition holds; `None`: all of them.
    pub counted: Option<Bits>,
    /// The number of each position in the order that rows came.
    pub seq: &'a [u64],
    /// The packets that the rows were made of, while they are at hand.
    pub frames: Option<&'a FrameBatch>,
    /// The texts of the argument.
    pub arena: &'a Arena,
    /// Whether all rows belong to one group, since there is no key.
    pub lone: bool,
}

impl Input<'_> {
    /// How many rows count.
    pub(crate) fn len(&self) -> usize {
        match self.counted {
            None => self.groups.len(),
            Some(counted) => self.rows.iter().filter(|&&i| counted.has(i.into())).count(),
        }
    }

    /// Calls `f` with the group and the position of each counted row.
    #[inline(always)]
    pub(crate) fn each(&self, mut f: impl FnMut(u32, usize)) {
        match self.counted {
            None => {
                for (&i, &g) in self.rows.iter().zip(self.groups) {
                    f(g, i as usize);
                }
            }
            Some(counted) => {
                for (&i, &g) in self.rows.iter().zip(self.groups) {
                    if counted.has(i as usize) {
                        f(g, i as usize);
                    }
                }
            }
        }
    }
}
