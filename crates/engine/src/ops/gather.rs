//! The end of a chain whose rows leave as they are.

use super::operator::Batch;
use crate::expr::{Regs, Src, Val};
use crate::hold::Hold;
use crate::node::{End, Next};
use crate::rows::{Mover, Rows};
use weir_packet::bits::Bits;
use weir_packet::column::Picked;

/// Copies selected rows together.
pub(crate) struct Gather {
    pub(crate) columns: Vec<Src>,
    pub(crate) out: Rows,
    /// Bytes of the constants, with which the rows' arena starts as the registers' does: so their
    /// handles stay as they are.
    pub(crate) shared: usize,
}

impl Gather {
    /// Lets the rows' arena start with the registers' constants.
    pub(crate) fn share(&mut self, regs: &Regs) {
        if !self.out.texts.is_empty() {
            self.out.arena = regs.arena.clone();
            self.shared = regs.constants_len;
        }
    }

    fn fill(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        let picked = Picked::new(rows);
        let out = &mut self.out;
        out.arena.truncate(self.shared);
        out.len = picked.list().len();
        out.order.clear();
        out.order.extend(picked.list().iter().map(|&i| batch.order[i as usize]));
        out.clock.clear();
        out.clock.extend(picked.list().iter().map(|&i| batch.clock[i as usize]));
        for (to, &src) in out.columns.iter_mut().zip(&self.columns) {
            let src = batch.ctx.value(&Val::Src(src), rows);
            to.gather(batch.ctx.column(src), &picked);
        }
        if !out.texts.is_empty() {
            let mut mover = Mover::sharing(&batch.ctx.regs.arena, &mut out.arena, self.shared);
            out.texts.iter().for_each(|&c| mover.column(&mut out.columns[c], 0..out.len));
        }
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        out.time.gather(batch.ctx.column(time), &picked);
    }
}

impl Hold for Gather {}

impl End for Gather {
    const HOLDS_ROWS: bool = false;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, next: &mut Next<'_>) {
        self.fill(batch, rows);
        next.rows(&self.out);
    }
}
