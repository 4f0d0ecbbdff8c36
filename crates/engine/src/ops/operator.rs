//! Row operators: they pass the rows of a batch on, within that batch.

use crate::counters::Ledger;
use crate::expr::{Ctx, Src};
use crate::hold::Hold;
use crate::rows::Rows;
use crate::view::Origin;
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
pub(crate) trait Operator: Hold {
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

    /// Adds what it counted to the ledger.
    fn count(&self, _ledger: &mut Ledger) {}
}

/// Which frames are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Wanted {
    /// Frames for outputs that have a name.
    pub named: bool,
    /// Frames that pass.
    pub passed: bool,
}

/// A stage that hands out frames, by its position among such stages of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ActionsId(pub(crate) usize);
