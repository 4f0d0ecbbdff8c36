//! The nodes of a pipeline, which stay between batches.
//!
//! A pipeline on a level is a list of nodes. Each takes rows or groups ([`NodeInput`]), and hands
//! on what it makes to the [`Next`] one, or to where the pipeline ends ([`Leave`]). Row operators
//! work within a batch and share its registers: a node that evaluates expressions owns a [`Chain`]
//! of them, and what its rows come to ([`End`]).

use crate::chain::Chain;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::hold::{Hold, known};
use crate::losses::LossRecord;
use crate::ops::groups::{Groups, Spec};
use crate::ops::operator::{ActionsId, Batch};
use crate::rows::Rows;
use crate::suppress::SuppressionList;
use crate::view::{Origin, Packets};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use weir_packet::bits::Bits;

/// The input of a node.
pub(crate) enum NodeInput<'a> {
    /// Some packets of a batch; `order` and `clock` as in [`Batch`].
    Packets { view: Packets<'a>, rows: Bits, order: &'a [u64], clock: &'a [i64] },
    /// Rows of the node before, or of a pipeline on one of the sides of a join or union.
    Rows { side: usize, rows: &'a Rows },
    /// Groups of a window that has closed, in order of time.
    Groups { start: i64, groups: Groups },
}

impl NodeInput<'_> {
    /// How many rows or groups it is.
    fn len(&self) -> u64 {
        match self {
            NodeInput::Packets { rows, .. } => rows.count() as u64,
            NodeInput::Rows { rows, .. } => rows.len as u64,
            NodeInput::Groups { groups, .. } => groups.len() as u64,
        }
    }
}

/// A node in its place, and what came to it, counted a batch at a time.
pub(crate) struct CountedNode {
    node: Box<dyn Node>,
    /// Rows or groups.
    pub(crate) came: u64,
}

impl CountedNode {
    /// A node to which nothing has come.
    pub(crate) fn new(node: Box<dyn Node>) -> CountedNode {
        CountedNode { node, came: 0 }
    }
}

impl Deref for CountedNode {
    type Target = dyn Node;

    fn deref(&self) -> &Self::Target {
        &*self.node
    }
}

impl DerefMut for CountedNode {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.node
    }
}

/// Takes rows or groups, and hands on rows or groups.
pub(crate) trait Node: Hold {
    /// Takes input in.
    fn push(&mut self, input: NodeInput<'_>, next: &mut Next<'_>);

    /// Ends a step: rows that waited for those of other pipelines go on, `by_packet` in the order
    /// of packets.
    fn step(&mut self, _by_packet: bool, _next: &mut Next<'_>) {}

    /// Moves the watermark; returns that of what comes out.
    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64;

    /// Says up to which time it is known what came, when everything is handed on though windows and
    /// intervals may go on after that; `None`: the watermark alone says what is complete.
    fn know_until(&mut self, _time: Option<i64>) {}

    /// Ends the input: everything is handed on.
    fn finish(&mut self, next: &mut Next<'_>);

    /// The stages that it is, in whole or in part.
    fn stages(&self) -> usize {
        1
    }

    /// The operators that it runs over rows first, if it evaluates any.
    fn chain(&mut self) -> Option<&mut Chain> {
        None
    }

    /// The same, to be looked at.
    fn look_at_chain(&self) -> Option<&Chain> {
        None
    }

    /// The spec of its groups, if it is a final half.
    fn spec(&self) -> Option<&Arc<Spec>> {
        None
    }

    /// Looks up what was lost in this record, if it asks for that.
    fn look_up_losses(&mut self, _record: &LossRecord) {}

    /// Leaves out alerts that this list names, if it puts any out.
    fn suppress(&mut self, _list: &SuppressionList) {}

    /// Whether rows stay in it.
    fn holds_rows(&self) -> bool;

    /// Whether all rows that come stay in it, so that none comes out where one goes in.
    fn absorbs(&self) -> bool {
        self.holds_rows()
    }

    /// Whether no further row or frame can come out, and none is held back.
    fn is_done(&self) -> bool {
        false
    }

    /// Whether stages of it hand out frames.
    fn sends_frames(&self) -> bool {
        false
    }

    /// Adds what was counted to the ledger.
    fn count(&self, ledger: &mut Ledger);
}

/// The way of rows, groups and frames out of a pipeline.
pub(crate) trait Leave {
    /// Rows of its last node.
    fn rows(&mut self, rows: &Rows);

    /// Groups of its last node, for the level above.
    fn groups(&mut self, start: i64, groups: Groups);

    /// Frames, with the stage that they come from.
    fn frames(&mut self, from: ActionsId, rows: &Rows);
}

/// The rest of a pipeline after a node, and where it ends.
pub(crate) struct Next<'a> {
    pub(crate) nodes: &'a mut [CountedNode],
    /// Rows or groups that left the pipeline.
    pub(crate) left: &'a mut u64,
    /// The batch of packets that rows were made of, while it is at hand.
    pub(crate) origin: Option<Origin<'a>>,
    pub(crate) end: &'a mut dyn Leave,
}

impl Next<'_> {
    /// Pushes input into the next node, or out of the pipeline.
    pub(crate) fn push(&mut self, input: NodeInput<'_>) {
        let Some((node, nodes)) = self.nodes.split_first_mut() else {
            *self.left += input.len();
            return match input {
                NodeInput::Rows { rows, .. } => self.end.rows(rows),
                NodeInput::Groups { start, groups } => self.end.groups(start, groups),
                NodeInput::Packets { .. } => unreachable!("the first node makes rows of packets"),
            };
        };
        node.came += input.len();
        let (left, origin) = (&mut *self.left, self.origin);
        node.push(input, &mut Next { nodes, left, origin, end: &mut *self.end });
    }

    /// Hands rows on.
    pub(crate) fn rows(&mut self, rows: &Rows) {
        self.push(NodeInput::Rows { side: 0, rows });
    }

    /// Hands groups on.
    pub(crate) fn groups(&mut self, start: i64, groups: Groups) {
        self.push(NodeInput::Groups { start, groups });
    }

    /// Hands frames out.
    pub(crate) fn frames(&mut self, from: ActionsId, rows: &Rows) {
        self.end.frames(from, rows);
    }
}

/// The end of a chain, with the rows that reach it.
pub(crate) trait End: Hold {
    /// Whether rows stay in it.
    const HOLDS_ROWS: bool;

    /// Whether rows also come out where some go in.
    const PASSES_ROWS: bool = !Self::HOLDS_ROWS;

    /// Takes the rows of the selection.
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, next: &mut Next<'_>);

    /// As [`Node::watermark`].
    fn watermark(&mut self, watermark: i64, _next: &mut Next<'_>) -> i64 {
        watermark
    }

    /// As [`Node::finish`].
    fn finish(&mut self, _next: &mut Next<'_>) {}

    /// As [`Node::suppress`].
    fn suppress(&mut self, _list: &SuppressionList) {}

    /// Adds what was counted to the ledger.
    fn count(&self, _ledger: &mut Ledger) {}
}

/// A chain of operators and its end.
pub(crate) struct Chained<E> {
    pub(crate) chain: Chain,
    pub(crate) end: E,
}

/// The state of its end, and keys of the chain.
impl<E: End> Hold for Chained<E> {
    fn held(&self) -> u64 {
        self.chain.held() + self.end.held()
    }

    /// Without the chain, whose stages are [taken over](Chain::take_over) one by one.
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        known::<Chained<E>>(old).is_some_and(|old| self.end.take_over(&mut old.end))
    }

    /// Without the chain.
    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.end.pass_state(at)
    }

    fn recycle(&mut self, groups: Groups) {
        self.end.recycle(groups);
    }

    fn expect_groups(&mut self, groups: usize) {
        self.end.expect_groups(groups);
    }
}

impl<E: End> Node for Chained<E> {
    fn push(&mut self, input: NodeInput<'_>, next: &mut Next<'_>) {
        let Chained { chain, end } = self;
        match input {
            NodeInput::Packets { view, rows, order, clock } => {
                chain.push_packets(view, rows, order, clock, |batch, rows| {
                    end.push(batch, rows, next);
                });
            }
            NodeInput::Rows { rows, .. } => {
                let origin = next.origin;
                chain.push_rows(rows, origin, |batch, rows| end.push(batch, rows, next));
            }
            NodeInput::Groups { .. } => unreachable!("groups go to a final half"),
        }
        chain.frames(&mut |from, rows| next.frames(from, rows));
    }

    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        self.chain.watermark(watermark);
        self.end.watermark(watermark, next)
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        self.chain.finish();
        self.end.finish(next);
    }

    fn stages(&self) -> usize {
        self.chain.stages()
    }

    fn chain(&mut self) -> Option<&mut Chain> {
        Some(&mut self.chain)
    }

    fn look_at_chain(&self) -> Option<&Chain> {
        Some(&self.chain)
    }

    fn suppress(&mut self, list: &SuppressionList) {
        self.end.suppress(list);
    }

    fn holds_rows(&self) -> bool {
        E::HOLDS_ROWS
    }

    fn absorbs(&self) -> bool {
        !E::PASSES_ROWS
    }

    fn is_done(&self) -> bool {
        !E::HOLDS_ROWS && self.chain.is_done()
    }

    fn sends_frames(&self) -> bool {
        self.chain.sends_frames()
    }

    fn count(&self, ledger: &mut Ledger) {
        self.chain.count(ledger);
        self.end.count(ledger);
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{ActionsId, Groups, Leave, Next, Rows};

    /// Takes the rows, or the groups, that leave.
    enum LeaveTo<'a> {
        Rows(&'a mut dyn FnMut(&Rows)),
        Groups(Vec<Groups>),
    }

    impl Leave for LeaveTo<'_> {
        fn rows(&mut self, rows: &Rows) {
            let LeaveTo::Rows(out) = self else { panic!("rows leave") };
            out(rows);
        }

        fn groups(&mut self, _start: i64, groups: Groups) {
            let LeaveTo::Groups(out) = self else { panic!("groups leave") };
            out.push(groups);
        }

        fn frames(&mut self, _from: ActionsId, _rows: &Rows) {
            panic!("frames leave");
        }
    }

    fn call_to(end: &mut LeaveTo<'_>, call: impl FnOnce(&mut Next<'_>)) {
        call(&mut Next { nodes: &mut [], left: &mut 0, origin: None, end });
    }

    /// Calls a node that is the last one of its pipeline; `out` takes its rows.
    pub(crate) fn last(out: &mut dyn FnMut(&Rows), call: impl FnOnce(&mut Next<'_>)) {
        call_to(&mut LeaveTo::Rows(out), call);
    }

    /// Calls a node that is the last one of its level. Returns its groups.
    pub(crate) fn groups_of_last(call: impl FnOnce(&mut Next<'_>)) -> Vec<Groups> {
        let mut end = LeaveTo::Groups(Vec::new());
        call_to(&mut end, call);
        let LeaveTo::Groups(groups) = end else { unreachable!("as made") };
        groups
    }
}
