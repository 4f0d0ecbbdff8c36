//! How stages that hand out frames are compiled, and the frames that rows carry along for later
//! ones.

use super::chain::ChainBuilder;
use crate::expr::Src;
use crate::ops::ends::carried::{CarryFrames, FrameSlots};
use crate::ops::ends::{Act, BranchArm, PacketActions};
use crate::ops::operator::ActionsId;
use weir_plan::physical::{Carry, NodeId};
use weir_plan::{Expr, Type};

impl ChainBuilder<'_> {
    pub(super) fn send(&mut self, plan: &weir_plan::Ends, id: NodeId) {
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
            arms.push(BranchArm::new(when, from..acts.len(), arm.next));
        }
        let mut all = self.placed.program.ends();
        let at = all.position(|(p, stage, _)| (p, stage) == (id.pipeline.0, id.stage));
        self.actions.push((self.ops.len(), ActionsId(at.expect("it is a stage of the program"))));
        self.ops.push(Box::new(PacketActions::new(arms, acts, self.frame)));
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
                self.ops.push(Box::new(CarryFrames { slots }));
                slots.map(Src::Slot).to_vec()
            }
        }
    }
}
