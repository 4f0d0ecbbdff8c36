//! What row operators are: they pass the rows of a batch on, within that batch.

use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::{Ctx, Src};
use crate::rows::Rows;
use crate::view::Origin;
use std::any::Any;
use weir_packet::bits::Bits;
use weir_packet::source::FrameBatch;

/// A batch in the hands of a chain of operators.
pub(crate) struct Batch<'a> {
    /// Columns and packets.
    pub ctx: Ctx<'a>,
    /// Where event time stands.
    pub time: Src,
    /// The number of each row in the order that rows came.
    pub order: &'a [u64],
    /// Of each row the later of its time and the watermark when it came: the time that idle
    /// state is judged by, which no late row can turn back.
    pub clock: &'a [i64],
    /// Of rows that were made of packets: these, while they are at hand.
    pub origin: Option<Origin<'a>>,
}

impl<'a> Batch<'a> {
    /// The packets that rows are, or were made of, while they are at hand.
    pub(super) fn frames(&self) -> Option<&'a FrameBatch> {
        let of_view = self.ctx.view.as_ref().map(|view| view.frames());
        of_view.or(self.origin.map(|origin| origin.frames))
    }
}

/// An operator that passes rows on within the batch.
pub(crate) trait Operator: Send + Any {
    /// Takes the rows of the selection; returns those that go on.
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits;

    /// No row with an earlier time, judged by [`Batch::clock`], will come.
    fn watermark(&mut self, _watermark: i64) {}

    /// No row at all will come.
    fn finish(&mut self) {}

    /// Whether no further row can pass, whatever comes.
    fn is_done(&self) -> bool {
        false
    }

    /// Hands out the frames of the last push, as [`ends`](super::ends) describes them.
    fn frames(&mut self, _out: &mut dyn FnMut(&Rows)) {}

    /// Sets which frames are wanted.
    fn want(&mut self, _wanted: Wanted) {}

    /// Takes over what another operator holds, compiled of the same stage after the same ones in
    /// another program, and what that counted; says whether such operators hold anything.
    fn resume(&mut self, _old: &mut dyn Operator) -> bool {
        false
    }

    /// Saves all that it holds, or restores it in one that was compiled of the same plan.
    fn pass_state(&mut self, _at: &mut Checkpoint<'_>) -> Passed {
        Ok(())
    }

    /// Keys that it holds.
    fn held(&self) -> u64 {
        0
    }

    /// Adds what it counted to the ledger.
    fn count(&self, _ledger: &mut Ledger) {}
}

/// An operator as what it is, for [`Operator::resume`].
pub(crate) fn known<T: Operator>(operator: &mut dyn Operator) -> Option<&mut T> {
    let any: &mut dyn Any = operator;
    any.downcast_mut()
}

/// Which frames are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Wanted {
    /// Those for outputs that have a name.
    pub named: bool,
    /// Those that pass.
    pub passed: bool,
}

/// A stage that hands out frames, by its position among such stages of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ActionsId(pub(crate) usize);
