//! Stages of a segment that hand out frames, and the frames that come along for those of later
//! ones.

use super::{Build, Segment};
use crate::expr::Src;
use crate::ops::ends::{Act, Arm, Ends, FrameSlots, TakeAlong, Wanted};
use crate::rows::Rows;
use weir_plan::physical::Carry;
use weir_plan::{Expr, Type};

impl Segment {
    /// Numbers the stages that hand out frames, from `first` on; says the number behind the last.
    pub fn number_exits(&mut self, first: usize) -> usize {
        self.first_exit = first;
        first + self.ends.len()
    }

    /// Says who wants frames.
    pub fn want(&mut self, wanted: Wanted) {
        self.ends.iter().for_each(|&at| self.ops[at].want(wanted));
    }

    /// Hands out the frames of the last push, with the number of the stage they come from.
    #[inline]
    pub fn frames(&mut self, out: &mut dyn FnMut(usize, &Rows)) {
        for (i, &at) in self.ends.iter().enumerate() {
            let exit = self.first_exit + i;
            self.ops[at].frames(&mut |rows| out(exit, rows));
        }
    }

    /// Whether stages of it hand out frames.
    pub fn has_ends(&self) -> bool {
        !self.ends.is_empty()
    }
}

/// The columns of a frame that is carried along.
pub(super) fn frame_columns() -> impl Iterator<Item = weir_plan::Column> {
    let columns = [("frame", Type::Bytes), ("len", Type::Int), ("origin", Type::Int)];
    columns.into_iter().map(|(name, ty)| weir_plan::Column::new(name, &ty))
}

/// Ends, and the frames for them.
impl Build<'_> {
    pub(super) fn send(&mut self, plan: &weir_plan::Ends) {
        let (mut arms, mut acts) = (Vec::new(), Vec::new());
        for arm in &plan.arms {
            let when = arm.when.as_ref().map(|e| self.compiler.condition(e, &self.scope));
            let from = acts.len();
            for act in &arm.acts {
                let keys = match &act.to {
                    weir_plan::ends::To::Steer { keys, .. } => &keys[..],
                    _ => &[],
                };
                let key = |k: &Expr| (self.compiler.value(k, &self.scope), k.ty.clone());
                acts.push(Act::new(act, keys.iter().map(key).collect()));
            }
            arms.push(Arm::new(when, from..acts.len(), arm.next));
        }
        self.ends.push(self.ops.len());
        self.ops.push(Box::new(Ends::new(arms, acts, self.frame)));
    }

    /// Registers for a frame.
    pub(super) fn frame_slots(&mut self) -> [usize; 3] {
        [Type::Bytes, Type::Int, Type::Int].map(|ty| self.compiler.slot(&ty))
    }

    /// Where the frame of each row stands, where it is to be carried along.
    pub(super) fn frame(&mut self, carry: &Carry) -> Vec<Src> {
        match self.frame {
            _ if !carry.frame => Vec::new(),
            Some(FrameSlots { bytes, len, origin }) => vec![bytes, len, origin],
            None => {
                let slots = self.frame_slots();
                self.ops.push(Box::new(TakeAlong { slots }));
                slots.map(Src::Slot).to_vec()
            }
        }
    }
}
