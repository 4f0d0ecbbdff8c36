//! A pipeline on the machine level, and where its rows go.

use super::egress::EgressWriter;
use super::pending::Pending;
use super::written::Written;
use crate::checkpoint::{Checkpoint, Passed};
use crate::closing::Closing;
use crate::compile::Placed;
use crate::limits::SPARE_ROWS;
use crate::node::{Leave, NodeInput};
use crate::ops::groups::Groups;
use crate::ops::operator::ActionsId;
use crate::panics::note_pipeline;
use crate::pipeline::Pipeline;
use crate::rows::{Rows, Sink};
use weir_plan::physical::{
    Fragment, Inlet, LevelKind, OutputId, PipelineId, Target, Work, tick_of,
};

/// A pipeline on this level.
pub(super) struct Pipe {
    pub(super) pipeline: Pipeline,
    /// The pipelines that it reads, by side; none where it takes what workers hand over.
    pub(super) sides: Vec<PipelineId>,
    pub(super) output: Option<OutputId>,
    /// Whether another pipeline reads it.
    pub(super) is_read: bool,
    /// Rows that came in and wait for this pipeline's turn.
    pub(super) incoming: HeldRows,
    /// Printed rows that came out before its turn.
    pub(super) outgoing: HeldRows,
    /// The watermark of the rows that come out.
    pub(super) watermark: i64,
    /// When the groups close that it takes, if it takes groups.
    closing: Option<Closing>,
    /// The watermark of what it takes, when that last mattered.
    reached: i64,
    /// Whether anything came since.
    is_touched: bool,
    /// Whether it hands out frames on this level, ...
    sends_frames: bool,
    /// ... and whether it does so on the workers.
    sends_frames_below: bool,
}

/// Rows that wait, all of the same columns.
#[derive(Default)]
pub(super) struct HeldRows {
    pub(super) rows: Vec<Rows>,
    /// Memory of rows that waited before.
    spare: Vec<Rows>,
}

/// Whether rows may wait for those of other pipelines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Packets come: rows are put in their order.
    Step,
    /// Windows close, or the input ends: rows go by pipeline.
    Close,
}

impl Pipe {
    /// Pipeline `p`: what this level does of it, if anything.
    pub(super) fn new(placed: Placed<'_>, p: PipelineId) -> Pipe {
        let of = |level| {
            let mut fragments = placed.plan.fragments(p).filter(move |(kind, _)| level == *kind);
            fragments.next().map(|(_, fragment)| fragment)
        };
        let (below, fragment) = (of(LevelKind::Worker), of(LevelKind::Machine));
        let pipeline = match fragment {
            Some(fragment) => placed.pipeline(fragment, &[], &mut Vec::new()),
            None => Pipeline::new(p, Vec::new()),
        };
        let targets = fragment.map_or(&[][..], |fragment| &fragment.to);
        let output = targets.iter().find_map(|target| match target {
            Target::Output(output) => Some(*output),
            _ => None,
        });
        let sides = match fragment.map(|fragment| &fragment.from) {
            Some(Inlet::Pipelines(sides)) => sides.clone(),
            _ => Vec::new(),
        };
        let mut nodes = below.into_iter().flat_map(|fragment| &fragment.nodes);
        Pipe {
            sides,
            output,
            is_read: targets.iter().any(|target| matches!(target, Target::Pipeline(_))),
            incoming: HeldRows::default(),
            outgoing: HeldRows::default(),
            watermark: i64::MIN,
            closing: fragment.and_then(closing),
            reached: i64::MIN,
            is_touched: false,
            sends_frames: pipeline.sends_frames(),
            sends_frames_below: nodes.any(|node| node.sends_frames()),
            pipeline,
        }
    }

    /// Whether rows or frames of it leave the run.
    pub(super) fn leaves(&self) -> bool {
        self.output.is_some() || self.sends_frames || self.sends_frames_below
    }

    /// Whether no further row or frame can leave.
    pub(super) fn is_done(&self) -> bool {
        !self.sends_frames_below && self.pipeline.is_done()
    }

    /// Whether rows of the workers are printed as they are, and nothing else.
    pub(super) fn is_end(&self) -> bool {
        self.pipeline.is_empty() && !self.is_read
    }

    /// Saves what it holds between two windows, when no row waits for its turn, or restores it.
    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.watermark)?;
        at.pass(&mut self.reached)?;
        at.pass(&mut self.is_touched)?;
        self.closing.iter_mut().try_for_each(|closing| at.pass(closing))?;
        self.pipeline.pass_state(at)
    }

    /// Takes rows of an earlier pipeline, for each side that it is on; `readers` are the pipelines
    /// after this one.
    fn accept(&mut self, from: PipelineId, rows: &Rows, mode: Mode, readers: &mut [Pipe]) {
        for side in 0..self.sides.len() {
            if self.sides[side] != from {
                continue;
            }
            self.is_touched = true;
            if self.pipeline.absorbs() {
                self.pipeline.push(NodeInput::Rows { side, rows }, None, &mut Absorbed);
            } else if mode == Mode::Close && self.sides.len() == 1 && self.incoming.rows.is_empty()
            {
                note_pipeline(Some(self.pipeline.id.0));
                self.pass(rows, readers);
                note_pipeline(Some(from.0));
            } else {
                self.hold(rows);
            }
        }
    }

    /// Notes that rows or groups came.
    pub(super) fn touch(&mut self) {
        self.is_touched = true;
    }

    /// Whether anything may come of a watermark of what it takes: rows or groups came since the
    /// last one, or time has come to where it looks at it.
    pub(super) fn moves(&mut self, watermark: i64) -> bool {
        let moved = match &mut self.closing {
            Some(closing) => closing.closes(watermark),
            None => watermark != self.reached,
        };
        self.reached = watermark;
        std::mem::take(&mut self.is_touched) || moved
    }

    /// Whether it has nothing to do in a step: no rows wait, here or on sides of it.
    pub(super) fn is_idle(&self) -> bool {
        let none_waits = self.incoming.rows.is_empty() && self.outgoing.rows.is_empty();
        none_waits && self.sides.len() < 2
    }

    /// Pushes rows through before this pipeline's turn, as windows close: of all rows of a window,
    /// which may be very many, few come out as a rule, and only these wait.
    fn pass(&mut self, rows: &Rows, readers: &mut [Pipe]) {
        let Pipe { pipeline, outgoing, .. } = self;
        let readers = if self.is_read { readers } else { &mut [] };
        let outgoing = self.output.map(|_| outgoing);
        let id = pipeline.id;
        pipeline.push_rows(rows, &mut Outgoing { id, readers, outgoing });
    }

    /// Keeps a copy of rows for this pipeline's turn.
    pub(super) fn hold(&mut self, rows: &Rows) {
        self.is_touched = true;
        self.incoming.hold(rows);
    }
}

impl HeldRows {
    /// Keeps a copy of rows.
    fn hold(&mut self, rows: &Rows) {
        let mut copy = self.spare.pop().unwrap_or_else(|| rows.empty());
        copy.clear();
        copy.append(rows, 0..rows.len);
        self.rows.push(copy);
    }

    /// Takes back the memory of all rows that waited.
    pub(super) fn recycle(&mut self, mut rows: Vec<Rows>) {
        self.spare.append(&mut rows);
        self.spare.truncate(SPARE_ROWS);
        self.rows = rows;
    }
}

/// Hands rows to the readers of a pipeline.
fn read(from: PipelineId, rows: &Rows, mode: Mode, mut readers: &mut [Pipe]) {
    while let Some((reader, after)) = readers.split_first_mut() {
        reader.accept(from, rows, mode, after);
        readers = after;
    }
}

/// When the groups close that a fragment takes first.
fn closing(fragment: &Fragment) -> Option<Closing> {
    match &fragment.nodes.first()?.work {
        Work::Final(s) => Some(Closing::new(tick_of(s).into_iter().collect())),
        _ => None,
    }
}

/// Where the rows and frames of a pipeline go.
pub(super) struct PipeTargets<'a, 'e> {
    pub(super) id: PipelineId,
    pub(super) output: Option<OutputId>,
    /// The pipelines after it, if any of them reads it.
    pub(super) readers: &'a mut [Pipe],
    /// Whether only one pipeline prints, so that its rows need not wait for others.
    pub(super) alone: bool,
    pub(super) mode: Mode,
    pub(super) pending: &'a mut Pending,
    pub(super) written: &'a mut Written,
    pub(super) egress: &'a mut EgressWriter<'e>,
    pub(super) sink: &'a mut dyn Sink,
}

impl Leave for PipeTargets<'_, '_> {
    fn rows(&mut self, rows: &Rows) {
        read(self.id, rows, self.mode, self.readers);
        let Some(output) = self.output else { return };
        if self.alone || self.mode == Mode::Close {
            self.written.write(self.sink, output, rows);
        } else {
            self.pending.hold(output, rows);
        }
    }

    fn groups(&mut self, _start: i64, _groups: Groups) {
        unreachable!("no level above merges groups");
    }

    fn frames(&mut self, from: ActionsId, rows: &Rows) {
        self.egress.take_frames(from, rows);
    }
}

/// Where the rows of a pipeline go before its turn, while windows close.
struct Outgoing<'a> {
    id: PipelineId,
    readers: &'a mut [Pipe],
    /// Keeps them until its turn, if it prints rows.
    outgoing: Option<&'a mut HeldRows>,
}

impl Leave for Outgoing<'_> {
    fn rows(&mut self, rows: &Rows) {
        read(self.id, rows, Mode::Close, self.readers);
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.hold(rows);
        }
    }

    fn groups(&mut self, _start: i64, _groups: Groups) {
        unreachable!("no level above merges groups");
    }

    fn frames(&mut self, _from: ActionsId, _rows: &Rows) {
        unreachable!("frames are handed out over packets alone");
    }
}

/// Where the rows of a node go that holds them back: nowhere.
struct Absorbed;

impl Leave for Absorbed {
    fn rows(&mut self, _rows: &Rows) {
        unreachable!("the node holds rows back");
    }

    fn groups(&mut self, _start: i64, _groups: Groups) {
        unreachable!("windows close where the watermark moves");
    }

    fn frames(&mut self, _from: ActionsId, _rows: &Rows) {
        unreachable!("frames are handed out over packets alone");
    }
}
