//! The packets and registers that expressions are evaluated over.

use super::regs::{Regs, Src};
use crate::view::Packets;
use weir_packet::column::Column;

/// The packets and registers that an expression is evaluated over.
pub(crate) struct Ctx<'a> {
    /// The packets, in chains that see them.
    pub view: Option<Packets<'a>>,
    /// The registers.
    pub regs: &'a mut Regs,
    /// Rows in the batch.
    pub n: usize,
    /// Counts results outside their type.
    pub undefined: &'a mut u64,
}

impl Ctx<'_> {
    /// The column at `src`.
    #[inline]
    pub(crate) fn column(&self, src: Src) -> &Column {
        match src {
            Src::Slot(i) => &self.regs.columns[i],
            Src::Text(i) => &self.regs.texts[i].column,
            Src::Field(i) => {
                self.view.as_ref().expect("fields are compiled only where packets are").column(i)
            }
        }
    }

    /// A column to read and a register to write, which is another.
    pub(crate) fn split(&mut self, from: Src, to: usize) -> (&Column, &mut Column) {
        match from {
            Src::Slot(from) => {
                let columns = self.regs.columns.get_disjoint_mut([from, to]);
                let [from, to] = columns.expect("two different registers");
                (from, to)
            }
            Src::Text(i) => (&self.regs.texts[i].column, &mut self.regs.columns[to]),
            Src::Field(i) => {
                let view = self.view.as_ref().expect("fields are compiled only where packets are");
                (view.column(i), &mut self.regs.columns[to])
            }
        }
    }
}
