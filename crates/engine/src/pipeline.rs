//! One pipeline on one level: a list of nodes, driven in the same way on every level.

use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::flow::{FlowLevel, FlowPlace, StageFlow};
use crate::losses::LossRecord;
use crate::node::{CountedNode, Leave, Next, Node, NodeInput};
use crate::ops::groups::{Groups, Spec};
use crate::ops::operator::Wanted;
use crate::rows::Rows;
use crate::suppress::SuppressionList;
use crate::view::Origin;
use std::sync::Arc;
use weir_plan::physical::PipelineId;

/// Adds what has gone through the stages of a pipeline to the ledger.
pub(crate) fn count_flow(pipeline: &Pipeline, level: FlowLevel, ledger: &mut Ledger) {
    let id = pipeline.id.0;
    pipeline.flow(&mut |stage, flow| {
        ledger.flows.add(FlowPlace { level, pipeline: id, stage }, flow);
    });
}

/// A pipeline on a level.
pub(crate) struct Pipeline {
    /// Which pipeline of the program.
    pub(crate) id: PipelineId,
    nodes: Vec<CountedNode>,
    /// The position of the first stage of each node in the whole pipeline.
    firsts: Vec<usize>,
    /// Rows or groups that left it.
    left: u64,
}

impl Pipeline {
    /// A pipeline of nodes, each with the position of its first stage.
    pub(crate) fn new(id: PipelineId, nodes: Vec<(usize, Box<dyn Node>)>) -> Pipeline {
        let place = |(first, node)| (first, CountedNode::new(node));
        let (firsts, nodes) = nodes.into_iter().map(place).unzip();
        Pipeline { id, nodes, firsts, left: 0 }
    }

    /// Pushes input through all nodes; `end` takes what leaves. `origin`: the batch of packets that
    /// rows are made of, while it is at hand.
    pub(crate) fn push(
        &mut self,
        input: NodeInput<'_>,
        origin: Option<Origin<'_>>,
        end: &mut dyn Leave,
    ) {
        Next { nodes: &mut self.nodes, left: &mut self.left, origin, end }.push(input);
    }

    /// Pushes rows that come by the first side.
    pub(crate) fn push_rows(&mut self, rows: &Rows, end: &mut dyn Leave) {
        self.push(NodeInput::Rows { side: 0, rows }, None, end);
    }

    /// Ends a step, as [`Node::step`] says; only a first node takes rows of several pipelines.
    pub(crate) fn step(&mut self, by_packet: bool, end: &mut dyn Leave) {
        if let Some((node, nodes)) = self.nodes.split_first_mut() {
            let left = &mut self.left;
            node.step(by_packet, &mut Next { nodes, left, origin: None, end });
        }
    }

    /// Moves the watermark through all nodes; returns that of what comes out.
    pub(crate) fn watermark(&mut self, watermark: i64, end: &mut dyn Leave) -> i64 {
        (0..self.nodes.len()).fold(watermark, |watermark, at| {
            let (before, node, mut next) = self.at(at, end);
            let out = node.watermark(watermark, &mut next);
            if let Some(producer) = before {
                node.reclaim(&mut |groups| producer.recycle(groups));
            }
            out
        })
    }

    /// As [`Node::know_until`].
    pub(crate) fn know_until(&mut self, time: Option<i64>) {
        self.nodes.iter_mut().for_each(|node| node.know_until(time));
    }

    /// Ends the input of all nodes.
    pub(crate) fn finish(&mut self, end: &mut dyn Leave) {
        for at in 0..self.nodes.len() {
            let (_, node, mut next) = self.at(at, end);
            node.finish(&mut next);
        }
    }

    /// The node before, a node, and what comes after it.
    fn at<'a>(
        &'a mut self,
        at: usize,
        end: &'a mut dyn Leave,
    ) -> (Option<&'a mut dyn Node>, &'a mut dyn Node, Next<'a>) {
        let (before, rest) = self.nodes.split_at_mut(at);
        let (node, nodes) = rest.split_first_mut().expect("it is there");
        let before = before.last_mut().map(|node| &mut **node);
        (before, &mut **node, Next { nodes, left: &mut self.left, origin: None, end })
    }

    /// Hands out the memory of groups of the level below that were emitted.
    pub(crate) fn reclaim(&mut self, out: &mut dyn FnMut(Groups)) {
        self.nodes.iter_mut().take(1).for_each(|node| node.reclaim(out));
    }

    /// Takes groups that the level above has emitted, to use their memory again.
    pub(crate) fn recycle(&mut self, groups: Groups) {
        if let Some(last) = self.nodes.last_mut() {
            last.recycle(groups);
        }
    }

    /// Takes over what `old` holds, where the first `same` stages of the two whole pipelines are
    /// the same; says which of these stages held anything.
    pub(crate) fn take_over(&mut self, old: &mut Pipeline, same: usize) -> Vec<usize> {
        let mut kept = Vec::new();
        let nodes = self.nodes.iter_mut().zip(&mut old.nodes);
        for ((mine, theirs), &first) in nodes.zip(&self.firsts) {
            let Some(same) = same.checked_sub(first) else { break };
            if let (Some(mine), Some(theirs)) = (mine.chain(), theirs.chain()) {
                let stages = mine.take_over(theirs, same);
                kept.extend(stages.into_iter().map(|stage| first + stage));
            }
            if same >= mine.stages() && mine.take_over(&mut **theirs) {
                kept.push(first + mine.stages() - 1);
            }
        }
        kept
    }

    /// Saves what it holds between two windows, or restores it.
    pub(crate) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.left)?;
        for node in &mut self.nodes {
            at.count(&mut node.came)?;
            if let Some(chain) = node.chain() {
                chain.pass_state(at)?;
            }
            node.pass_state(at)?;
        }
        Ok(())
    }

    /// Whether there is nothing to do to rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether all rows stay in its first node, so that they need not wait for their turn.
    pub(crate) fn absorbs(&self) -> bool {
        self.nodes.first().is_some_and(|node| node.absorbs())
    }

    /// Whether no further row or frame can come out: a `limit` has let its rows pass, nothing
    /// after it holds rows back, and nothing before it hands out frames.
    pub(crate) fn is_done(&self) -> bool {
        let passing = self.nodes.iter().rposition(|node| node.holds_rows()).map_or(0, |at| at + 1);
        let last = self.nodes[passing..].iter().rposition(|node| node.is_done());
        last.is_some_and(|at| self.nodes[..passing + at].iter().all(|node| !node.sends_frames()))
    }

    /// Whether stages of it hand out frames.
    pub(crate) fn sends_frames(&self) -> bool {
        self.nodes.iter().any(|node| node.sends_frames())
    }

    /// Says which frames are wanted.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        self.nodes.iter_mut().filter_map(|node| node.chain()).for_each(|c| c.want(wanted));
    }

    /// Looks up what was lost in this record, where nodes ask for that.
    pub(crate) fn look_up_losses(&mut self, record: &LossRecord) {
        self.nodes.iter_mut().for_each(|node| node.look_up_losses(record));
    }

    /// Leaves out alerts that this list names.
    pub(crate) fn suppress(&mut self, list: &SuppressionList) {
        self.nodes.iter_mut().for_each(|node| node.suppress(list));
    }

    /// The spec of the groups that it takes from the level below, if it takes any.
    pub(crate) fn spec(&self) -> Option<&Arc<Spec>> {
        self.nodes.first()?.spec()
    }

    /// Makes new tables with room for about so many groups.
    pub(crate) fn expect_groups(&mut self, groups: usize) {
        self.nodes.iter_mut().for_each(|node| node.expect_groups(groups));
    }

    /// Adds what was counted to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        self.nodes.iter().for_each(|node| node.count(ledger));
    }

    /// The rows that have gone through each of its stages; what nodes count beside rows is of their
    /// last stage.
    pub(crate) fn flow(&self, out: &mut dyn FnMut(usize, StageFlow)) {
        for (at, (node, &first)) in self.nodes.iter().zip(&self.firsts).enumerate() {
            let went = self.nodes.get(at + 1).map_or(self.left, |next| next.came);
            let mut counted = Ledger::default();
            node.count(&mut counted);
            let through: Vec<u64> = match node.look_at_chain() {
                Some(chain) => chain.flow(node.came).collect(),
                None => vec![went],
            };
            let (mut rows_in, last) = (node.came, through.len().saturating_sub(1));
            for (i, rows) in through.into_iter().enumerate() {
                let is_last = i == last;
                let rows_out = if is_last { went } else { rows };
                let of = |n: u64| if is_last { n } else { 0 };
                let flow = StageFlow {
                    rows_in,
                    rows_out,
                    late: of(counted.late),
                    evicted: of(counted.evicted),
                    undefined: of(counted.undefined),
                    held: of(node.held()),
                };
                out(first + i, flow);
                rows_in = rows_out;
            }
        }
    }
}
