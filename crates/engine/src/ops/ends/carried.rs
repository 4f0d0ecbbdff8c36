//! Frames that rows carry along once the batch of their packets is gone.

use super::outgoing::origin;
use crate::expr::{Ctx, Src};
use crate::hold::Hold;
use crate::ops::operator::{Batch, Operator};
use weir_packet::bits::Bits;
use weir_plan::{Column, Type};

/// Where the frame stands of rows that carry it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSlots {
    pub(crate) bytes: Src,
    pub(crate) len: Src,
    /// See [`origin`].
    pub(crate) origin: Src,
}

/// The columns of a frame that is carried along, in the order of [`FrameSlots`].
pub(crate) fn frame_columns() -> impl Iterator<Item = Column> {
    let columns = [("frame", Type::Bytes), ("len", Type::Int), ("origin", Type::Int)];
    columns.into_iter().map(|(name, ty)| Column::new(name, &ty))
}

/// Carries the frames of packets along in registers, for stages that hand them out after others
/// that see the rows of all workers.
pub(crate) struct CarryFrames {
    /// Registers for the bytes, the length on the wire, and the [`origin`].
    pub(crate) slots: [usize; 3],
}

impl Hold for CarryFrames {}

impl Operator for CarryFrames {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        let Ctx { view: Some(view), regs, .. } = &mut batch.ctx else {
            unreachable!("rows that are packets have frames")
        };
        let frames = view.frames();
        let [bytes, len, from] = self.slots;
        rows.each(|i| {
            let handle = regs.arena.put(frames.frame(i));
            regs.columns[bytes].word_mut()[i] = handle;
            regs.columns[len].word_mut()[i] = frames.lens()[i].into();
            regs.columns[from].word_mut()[i] = origin(frames.link, frames.capture_point(i));
        });
        self.slots.iter().for_each(|&slot| regs.columns[slot].present = rows);
        rows
    }
}
