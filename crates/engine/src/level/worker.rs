//! The worker level: what one worker does with the packets of one of its lanes.

use super::conditions::SharedConditions;
use super::{Channel, Closed};
use crate::closing::Closing;
use crate::compile::Placed;
use crate::counters::Ledger;
use crate::flow::FlowLevel;
use crate::node::{Leave, NodeInput};
use crate::ops::groups::Groups;
use crate::ops::operator::ActionsId;
use crate::ops::operator::Wanted;
use crate::panics::note_pipeline;
use crate::pipeline::{Pipeline, count_flow};
use crate::rows::Rows;
use crate::view::{Origin, View};
use weir_packet::bits::Bits;
use weir_packet::source::FrameBatch;
use weir_packet::unread::UnreadCounts;
use weir_packet::walk::{Layers, classify};
use weir_plan::physical::{Conditions, Fragment, LevelKind, PipelineId, Work};
use weir_plan::physical::{fields_read, parts_read, tick_of};

/// The work of one worker on the packets of one of its lanes.
pub(crate) struct WorkerLevel {
    /// Of the batch that this worker classified itself.
    layers: Layers,
    /// The parts of the packets so far that readers leave unread.
    unread: UnreadCounts,
    view: View,
    /// The conditions that several pipelines ask of packets first.
    conditions: SharedConditions,
    /// The pipelines over packets.
    pipelines: Vec<Pipeline>,
    /// Of those whose rows all stay until their windows close, when they do, and the packets of the
    /// batch at hand that wait for that, or for the end of the batch. So windows of one pipeline
    /// don't cut the batches of the others.
    waiting: Vec<Option<Waiting>>,
    /// Packets so far.
    packets: u64,
}

/// Packets that wait until windows close.
struct Waiting {
    rows: Bits,
    closing: Closing,
}

impl Waiting {
    /// Where nothing leaves the fragment but groups of windows that close.
    fn of(fragment: &Fragment) -> Option<Waiting> {
        let (last, before) = fragment.nodes.split_last()?;
        let Work::Partial(s) = &last.work else { return None };
        let quiet = before.iter().all(|node| !node.sends_frames());
        let closing = Closing::new(tick_of(s).into_iter().collect());
        quiet.then_some(Waiting { rows: Bits::NONE, closing })
    }

    /// Takes the packets that wait for windows that close at this watermark, or all.
    fn take(&mut self, watermark: Option<i64>) -> Bits {
        match watermark {
            Some(w) if !self.closing.is_due(w) => Bits::NONE,
            _ => std::mem::replace(&mut self.rows, Bits::NONE),
        }
    }
}

/// Takes what comes out while packets are pushed.
pub(crate) type TakeOut<'a> = dyn FnMut(Channel, &Rows) + 'a;

/// Where a pipeline's rows and frames go.
struct AtOnce<'a> {
    pipeline: PipelineId,
    out: &'a mut TakeOut<'a>,
}

impl Leave for AtOnce<'_> {
    fn rows(&mut self, rows: &Rows) {
        (self.out)(Channel::Rows(self.pipeline), rows);
    }

    fn groups(&mut self, _start: i64, _groups: Groups) {
        unreachable!("windows close where the watermark moves");
    }

    fn frames(&mut self, from: ActionsId, rows: &Rows) {
        (self.out)(Channel::Frames(from), rows);
    }
}

/// Where a pipeline's groups go.
struct AtClose<'a> {
    pipeline: PipelineId,
    closed: &'a mut Vec<Closed>,
}

impl Leave for AtClose<'_> {
    fn rows(&mut self, _rows: &Rows) {
        unreachable!("no rows are held back on workers");
    }

    fn groups(&mut self, start: i64, groups: Groups) {
        self.closed.push(Closed { pipeline: self.pipeline, start, groups });
    }

    fn frames(&mut self, _from: ActionsId, _rows: &Rows) {
        unreachable!("no frames are held back on workers");
    }
}

impl WorkerLevel {
    /// The fragments of some pipelines over packets, by their numbers.
    pub(crate) fn new(placed: Placed<'_>, pipelines: &[usize]) -> WorkerLevel {
        let level = placed.plan.level(LevelKind::Worker);
        let all = level.map_or(&[][..], |level| &level.fragments);
        let mine = all.iter().filter(|fragment| pipelines.contains(&fragment.pipeline.0));
        let mine: Vec<&Fragment> = mine.collect();
        let mut fields = Vec::new();
        let shared = Conditions::of(mine.iter().copied());
        let conditions = SharedConditions::new(placed, &shared, &mut fields);
        let one = |(i, fragment): (usize, &&Fragment)| {
            placed.pipeline(fragment, &shared.tested(i), &mut fields)
        };
        let pipelines = mine.iter().enumerate().map(one).collect();
        let waiting = mine.iter().map(|fragment| Waiting::of(fragment)).collect();
        let (layers, view) = (Layers::new(), View::new(&fields));
        let all = || placed.program.pipelines.iter().map(|pipeline| &pipeline.stages);
        let unread = UnreadCounts::of(
            all().flat_map(|stages| fields_read(stages)),
            all().flat_map(|stages| parts_read(stages)),
        );
        WorkerLevel { layers, unread, view, conditions, pipelines, waiting, packets: 0 }
    }

    /// Says which frames are wanted.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        self.pipelines.iter_mut().for_each(|pipeline| pipeline.want(wanted));
    }

    /// Makes new tables with room for about so many groups.
    pub(crate) fn expect_groups(&mut self, groups: usize) {
        self.pipelines.iter_mut().for_each(|pipeline| pipeline.expect_groups(groups));
    }

    /// Says where the layers of the next batch's packets start, for [`WorkerLevel::push`].
    pub(crate) fn classify(&mut self, frames: &FrameBatch) {
        classify(frames, &mut self.layers);
        self.unread.observe(frames, &self.layers);
        self.packets += frames.len() as u64;
        self.view.next_batch();
        self.conditions.next_batch();
    }

    /// Pushes the packets `rows` of the batch last classified; `clock` as in
    /// [`crate::ops::operator::Batch`]. `out` takes what comes out at once. Some may wait for
    /// [`WorkerLevel::settle`].
    pub(crate) fn push(
        &mut self,
        frames: &FrameBatch,
        rows: Bits,
        clock: &[i64],
        out: &mut TakeOut<'_>,
    ) {
        for i in 0..self.pipelines.len() {
            match &mut self.waiting[i] {
                Some(waiting) => waiting.rows = waiting.rows.or(rows),
                None => self.push_one(i, frames, rows, clock, out),
            }
        }
        note_pipeline(None);
    }

    /// Pushes packets on that wait for windows that close at this watermark, or all that wait;
    /// `frames` and `clock` as in [`WorkerLevel::push`].
    pub(crate) fn settle(&mut self, frames: &FrameBatch, clock: &[i64], watermark: Option<i64>) {
        for i in 0..self.pipelines.len() {
            let rows = self.waiting[i].as_mut().map_or(Bits::NONE, |w| w.take(watermark));
            if !rows.is_empty() {
                let out = &mut |_: Channel, _: &Rows| unreachable!("all rows stay");
                self.push_one(i, frames, rows, clock, out);
            }
        }
        note_pipeline(None);
    }

    /// Pushes packets through the pipeline at a position.
    fn push_one(
        &mut self,
        i: usize,
        frames: &FrameBatch,
        rows: Bits,
        clock: &[i64],
        out: &mut TakeOut<'_>,
    ) {
        let WorkerLevel { layers, view, conditions, pipelines, .. } = self;
        let (pipeline, order) = (&mut pipelines[i], frames.seq());
        note_pipeline(Some(pipeline.id.0));
        let rows = conditions.rows(i, view.packets(frames, layers), rows, order.len());
        if rows.is_empty() {
            return;
        }
        let view = view.packets(frames, layers);
        let input = NodeInput::Packets { view, rows, order, clock };
        let mut end = AtOnce { pipeline: pipeline.id, out };
        pipeline.push(input, Some(Origin { frames, layers }), &mut end);
    }

    /// Lets pipeline `p` take over what pipeline `q` of `old` holds in its first `same` stages;
    /// says which of them had something to take over.
    pub(crate) fn take_over(
        &mut self,
        p: usize,
        old: &mut WorkerLevel,
        q: usize,
        same: usize,
    ) -> Vec<usize> {
        match (self.find(p), old.find(q)) {
            (Some(mine), Some(theirs)) => mine.take_over(theirs, same),
            _ => Vec::new(),
        }
    }

    fn find(&mut self, p: usize) -> Option<&mut Pipeline> {
        self.pipelines.iter_mut().find(|pipeline| pipeline.id.0 == p)
    }

    /// Closes what one pipeline holds.
    pub(crate) fn finish_one(&mut self, p: usize, closed: &mut Vec<Closed>) {
        if let Some(pipeline) = self.find(p) {
            pipeline.finish(&mut AtClose { pipeline: PipelineId(p), closed });
        }
    }

    /// Whether it runs pipeline `p`.
    pub(crate) fn runs(&self, p: usize) -> bool {
        self.pipelines.iter().any(|pipeline| pipeline.id.0 == p)
    }

    /// Takes groups back that were emitted, to use their memory again.
    pub(crate) fn recycle(&mut self, p: PipelineId, groups: Groups) {
        if let Some(pipeline) = self.find(p.0) {
            pipeline.recycle(groups);
        }
    }

    /// Closes the windows that end at or before this watermark; what closes is added to `closed`.
    /// Packets that wait for that were [pushed on](WorkerLevel::settle) before.
    pub(crate) fn close(&mut self, watermark: i64, closed: &mut Vec<Closed>) {
        for (pipeline, waiting) in self.pipelines.iter_mut().zip(&mut self.waiting) {
            if let Some(waiting) = waiting
                && !waiting.closing.closes(watermark)
            {
                continue;
            }
            note_pipeline(Some(pipeline.id.0));
            let mut end = AtClose { pipeline: pipeline.id, closed: &mut *closed };
            pipeline.watermark(watermark, &mut end);
        }
        note_pipeline(None);
    }

    /// Moves the watermark of all; what closes is added to `closed`.
    pub(crate) fn watermark(&mut self, watermark: i64, closed: &mut Vec<Closed>) {
        for pipeline in &mut self.pipelines {
            note_pipeline(Some(pipeline.id.0));
            let mut end = AtClose { pipeline: pipeline.id, closed: &mut *closed };
            pipeline.watermark(watermark, &mut end);
        }
        note_pipeline(None);
    }

    /// Closes everything.
    pub(crate) fn finish(&mut self, closed: &mut Vec<Closed>) {
        for pipeline in &mut self.pipelines {
            note_pipeline(Some(pipeline.id.0));
            pipeline.finish(&mut AtClose { pipeline: pipeline.id, closed: &mut *closed });
        }
        note_pipeline(None);
    }

    /// Adds what its stages counted to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        for pipeline in &self.pipelines {
            pipeline.count(ledger);
            count_flow(pipeline, FlowLevel::Worker, ledger);
        }
    }

    /// Packets that it got.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Adds how the packets were that it got to the ledger.
    pub(crate) fn count_packets(&self, ledger: &mut Ledger) {
        ledger.cut += self.layers.cut;
        ledger.unread.merge(self.unread.so_far());
        for (sum, n) in ledger.malformed.iter_mut().zip(self.layers.malformed) {
            *sum += n;
        }
    }
}

/// Adds what a worker counted to the ledger; `lanes` are the numbers of its lanes. Each lane gets
/// all packets; how they were is counted in the first.
pub(crate) fn count_worker(
    levels: &[WorkerLevel],
    lanes: &[usize],
    worker: usize,
    ledger: &mut Ledger,
) {
    for (level, &lane) in levels.iter().zip(lanes) {
        level.count(ledger);
        ledger.shares.add(worker, lane, level.packets());
        if lane == 0 {
            level.count_packets(ledger);
        }
    }
}
