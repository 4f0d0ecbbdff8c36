//! Operators: what a stage of a plan does to batches of rows.
//!
//! An operator has three verbs. `push` takes the selected rows of a batch and says which of them
//! go on; `watermark` says that no row older than a time will come; `finish` that none will come
//! at all. Operators that pass rows on at once implement [`Operator`] and stand in a chain; those
//! that hold rows back ([`summarize`], [`session`], [`top`]) end a chain and put out rows of their
//! own. What takes the rows of several pipelines ([`join`], [`union`]) stands before the first
//! chain.

pub mod distinct;
pub mod each;
pub mod emit;
pub mod ends;
mod fill;
pub mod filter;
pub(crate) mod gather;
pub mod groups;
pub mod join;
pub mod limit;
pub mod map;
pub(crate) mod merged;
mod order;
mod panes;
pub(crate) mod partial;
pub mod sample;
pub mod scan;
pub mod session;
pub mod summarize;
#[cfg(test)]
pub(crate) mod testing;
pub mod top;
pub mod union;
mod windows;
mod work;

use crate::counters::Ledger;
use crate::expr::{Ctx, Src};
use crate::rows::Rows;
use crate::view::Origin;
use ends::Wanted;
use std::any::Any;
use weir_packet::bits::Bits;

/// A batch in the hands of a chain of operators.
pub struct Batch<'a> {
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

/// An operator that passes rows on within the batch.
pub trait Operator: Send + Any {
    /// Takes the rows of the selection; returns those that go on.
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits;

    /// No row with an earlier time, judged by [`Batch::clock`], will come.
    fn watermark(&mut self, _watermark: i64) {}

    /// Whether no further row can pass, whatever comes.
    fn is_done(&self) -> bool {
        false
    }

    /// Hands out the frames of the last push, as [`ends`] describes them.
    fn frames(&mut self, _out: &mut dyn FnMut(&Rows)) {}

    /// Says who wants frames.
    fn want(&mut self, _wanted: Wanted) {}

    /// Takes over what another operator holds, compiled of the same stage behind the same ones in
    /// another program, and what that counted; says whether such operators hold anything.
    fn resume(&mut self, _old: &mut dyn Operator) -> bool {
        false
    }

    /// Adds what it counted to the ledger.
    fn count(&self, _ledger: &mut Ledger) {}
}

/// An operator as what it is, for [`Operator::resume`].
pub(crate) fn known<T: Operator>(operator: &mut dyn Operator) -> Option<&mut T> {
    let any: &mut dyn Any = operator;
    any.downcast_mut()
}
