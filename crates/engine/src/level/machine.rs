//! The machine level: what happens once, to the merged rows and groups of all workers.
//!
//! Order of output. Packets are processed in steps. Between two steps the watermark may pass the
//! end of a window; every step lies between two such moments. Within a step the rows of several
//! printed pipelines are interleaved by packet number, then by pipeline; when windows close, by
//! pipeline. So the order depends neither on batches nor on workers.

pub(crate) mod egress;
mod kernel;
mod pending;
mod pipe;
mod written;

use super::{Channel, Closed};
use crate::checkpoint::{Checkpoint, Passed};
use crate::compile::Placed;
use crate::counters::Ledger;
use crate::flow::FlowLevel;
use crate::kernel::KernelFeed;
use crate::losses::LossRecord;
use crate::node::NodeInput;
use crate::ops::groups::{Groups, Spec};
use crate::ops::operator::Wanted;
use crate::outcome::RunError;
use crate::panics::note_pipeline;
use crate::pipeline::{Pipeline, count_flow};
use crate::rows::{Output, Rows, Sink};
use crate::suppress::SuppressionList;
use egress::EgressWriter;
use kernel::KernelInlet;
use pending::Pending;
use pipe::{Mode, Pipe, PipeTargets};
use std::sync::Arc;
use weir_plan::Program;
use weir_plan::physical::PipelineId;
use written::Written;

/// The machine level, which runs after the workers.
pub(crate) struct MachineLevel<'e> {
    /// All pipelines, by their numbers.
    pipes: Vec<Pipe>,
    printed: usize,
    /// Printed rows of this step, where several outputs print.
    pending: Pending,
    /// Groups that were emitted, for the workers to use their memory again.
    pub(crate) spent: Vec<(PipelineId, Groups)>,
    written: Written,
    pub(crate) egress: EgressWriter<'e>,
    /// Whether the run continues when all outputs are done.
    pub(crate) keep_alive: bool,
    /// The groups of some pipelines that the kernel counts.
    kernel: Option<KernelInlet>,
}

/// The pipelines that run after the workers, compiled.
pub(crate) struct MachinePipes {
    pipes: Vec<Pipe>,
    printed: usize,
}

impl MachinePipes {
    /// The part of a placed program after the workers.
    pub(crate) fn new(placed: Placed<'_>) -> MachinePipes {
        let all = (0..placed.program.pipelines.len()).map(PipelineId);
        let pipes = all.map(|p| Pipe::new(placed, p)).collect();
        MachinePipes { pipes, printed: placed.plan.outputs.len() }
    }
}

impl<'e> MachineLevel<'e> {
    /// The level of what was compiled; frames go through `egress`.
    pub(crate) fn new(compiled: MachinePipes, egress: EgressWriter<'e>) -> MachineLevel<'e> {
        let MachinePipes { pipes, printed } = compiled;
        MachineLevel {
            pipes,
            printed,
            pending: Pending::default(),
            spent: Vec::new(),
            written: Written::default(),
            egress,
            keep_alive: false,
            kernel: None,
        }
    }

    /// Takes groups of the kernel, too: of these pipelines, as far as they take groups of the level
    /// below.
    pub(crate) fn take_from(
        &mut self,
        feed: Arc<dyn KernelFeed>,
        which: &dyn Fn(PipelineId) -> bool,
    ) {
        let spec = |p: PipelineId| {
            let spec = self.pipes.get(p.0)?.pipeline.spec()?;
            Some((p, Arc::clone(spec)))
        };
        let nodes = feed.pipelines().into_iter().filter(|p| which(*p)).filter_map(spec);
        self.kernel = Some(KernelInlet::new(Arc::clone(&feed), nodes.collect()));
    }

    /// Whether it takes groups of the kernel for this pipeline.
    pub(crate) fn takes_from_kernel(&self, p: usize) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.feeds(PipelineId(p)))
    }

    /// Leaves to others what the kernel counts, but for these pipelines, which are about to end.
    pub(crate) fn leave_to_others(&mut self, but: &dyn Fn(usize) -> bool) {
        self.kernel.iter_mut().for_each(|kernel| kernel.retain(&|p| but(p.0)));
    }

    /// Asks the kernel for nothing more, nor counts what it did.
    pub(crate) fn leave_kernel(&mut self) {
        self.kernel = None;
    }

    /// Takes what workers emit in this step, in the order of packets.
    pub(crate) fn take(&mut self, from: Channel, rows: &Rows, sink: &mut dyn Sink) {
        let p = match from {
            Channel::Rows(p) => p,
            Channel::Frames(id) => return self.egress.take_frames(id, rows),
        };
        if self.printed > 1 {
            let pipe = &mut self.pipes[p.0];
            match pipe.output {
                // They need not wait for a turn only to wait for their place in the output.
                Some(output) if pipe.is_end() => self.pending.hold(output, rows),
                _ => pipe.hold(rows),
            }
            return;
        }
        // There is no other pipeline whose rows could have to come first.
        self.pipes[p.0].touch();
        let (pipeline, mut targets) = self.pipeline_at(p.0, Mode::Step, sink);
        pipeline.push_rows(rows, &mut targets);
        note_pipeline(None);
    }

    /// Ends a step: rows that were taken go on, in the order of their packets.
    pub(crate) fn step(&mut self, sink: &mut dyn Sink) {
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Step, sink);
        }
        note_pipeline(None);
        self.pending.write(&mut self.written, sink);
        self.egress.step();
    }

    /// Moves the watermark. `closed` holds the groups that close, by pipeline, then by time, and
    /// is left empty.
    pub(crate) fn watermark(
        &mut self,
        watermark: i64,
        closed: &mut Vec<Closed>,
        sink: &mut dyn Sink,
    ) {
        self.kernel.iter().for_each(|kernel| kernel.add(Some(watermark), closed));
        let mut closed = closed.drain(..).peekable();
        for p in 0..self.pipes.len() {
            self.run_incoming(p, Mode::Close, sink);
            let of = |side: &PipelineId| self.pipes[side.0].watermark;
            let own = self.pipes[p].sides.iter().map(of).min().unwrap_or(watermark);
            let is_next = |c: &Closed| c.pipeline.0 <= p;
            if !self.pipes[p].moves(own) && !closed.peek().is_some_and(is_next) {
                continue;
            }
            let (pipeline, mut targets) = self.pipeline_at(p, Mode::Close, sink);
            while let Some(Closed { start, groups, .. }) = closed.next_if(|c| c.pipeline.0 <= p) {
                pipeline.push(NodeInput::Groups { start, groups }, None, &mut targets);
            }
            let out = pipeline.watermark(own, &mut targets);
            let pipe = &mut self.pipes[p];
            pipe.watermark = out;
            pipe.pipeline.reclaim(&mut |groups| self.spent.push((PipelineId(p), groups)));
        }
        note_pipeline(None);
        self.egress.close();
    }

    /// Says up to which time it is known what came, before everything is emitted at an end.
    pub(crate) fn know_until(&mut self, time: Option<i64>) {
        self.pipes.iter_mut().for_each(|pipe| pipe.pipeline.know_until(time));
    }

    /// Ends the input: everything is emitted. `closed` as in [`MachineLevel::watermark`].
    pub(crate) fn finish(&mut self, closed: &mut Vec<Closed>, sink: &mut dyn Sink) {
        self.kernel.iter().for_each(|kernel| kernel.add(None, closed));
        self.emit_rest(&|_| true, closed, sink);
    }

    /// The same for some pipelines, with all that read them, while others go on.
    pub(crate) fn finish_some(
        &mut self,
        which: &dyn Fn(usize) -> bool,
        closed: &mut Vec<Closed>,
        sink: &mut dyn Sink,
    ) {
        self.kernel.iter().for_each(|kernel| kernel.drain(&|p| which(p.0), closed));
        self.emit_rest(which, closed, sink);
    }

    fn emit_rest(
        &mut self,
        which: &dyn Fn(usize) -> bool,
        closed: &mut Vec<Closed>,
        sink: &mut dyn Sink,
    ) {
        let mut closed = closed.drain(..).peekable();
        for p in (0..self.pipes.len()).filter(|&p| which(p)) {
            self.run_incoming(p, Mode::Close, sink);
            let (pipeline, mut targets) = self.pipeline_at(p, Mode::Close, sink);
            while let Some(Closed { start, groups, .. }) = closed.next_if(|c| c.pipeline.0 <= p) {
                pipeline.push(NodeInput::Groups { start, groups }, None, &mut targets);
            }
            pipeline.finish(&mut targets);
        }
        note_pipeline(None);
        self.egress.close();
    }

    /// Lets pipeline `p` take over what pipeline `q` of `old` holds in its first `same` stages, the
    /// workers' aside; says which of them had something to take over.
    pub(crate) fn take_over(
        &mut self,
        p: usize,
        old: &mut MachineLevel<'_>,
        q: usize,
        same: usize,
    ) -> Vec<usize> {
        let (mine, theirs) = (&mut self.pipes[p], &mut old.pipes[q]);
        mine.watermark = theirs.watermark;
        mine.pipeline.take_over(&mut theirs.pipeline, same)
    }

    /// Saves what all pipelines hold between two windows, or restores it in a level that was
    /// compiled of the same plan. Frames and groups of the kernel are none of it.
    pub(crate) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.written.rows)?;
        self.pipes.iter_mut().try_for_each(|pipe| pipe.pass_state(at))
    }

    /// Whether no further packet can change what is printed or handed out: each pipeline that does
    /// either ends in a `limit` that has let its rows pass, with nothing after it that holds rows
    /// back, and hands out no frames before it.
    pub(crate) fn is_done(&self) -> bool {
        if self.keep_alive {
            return false;
        }
        let mut leaving = self.pipes.iter().filter(|pipe| pipe.leaves()).peekable();
        leaving.peek().is_some() && leaving.all(Pipe::is_done)
    }

    /// The error of the sink or the egress, if there was one; asked for once a step.
    pub(crate) fn take_error(&mut self) -> Option<RunError> {
        let egress = self.egress.take_error().map(RunError::Egress);
        self.written.error.take().map(RunError::Sink).or(egress)
    }

    /// Ends the run: closes the outlets; what went wrong last.
    pub(crate) fn end(&mut self) -> Option<RunError> {
        let closed = self.egress.finish().err();
        self.take_error().or(closed.map(RunError::Egress))
    }

    /// Takes the outlets of `old`, which counts them for the last time, and what went wrong there.
    pub(crate) fn follow(&mut self, old: &mut MachineLevel<'e>, past: &mut Ledger) {
        self.egress.follow(&mut old.egress, past);
        (self.written.failed, self.written.error) = (old.written.failed, old.written.error.take());
    }

    /// Opens the outlets and the sink again, unless they failed before.
    pub(crate) fn open(&mut self, program: &Program, sink: &mut dyn Sink) {
        self.egress.reopen();
        self.written.guard(|| sink.open(&Output::of(program)));
    }

    /// Lets the sink show what it has.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) {
        self.written.guard(|| sink.flush());
        self.egress.flush();
    }

    /// Adds what was counted to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        ledger.rows += self.written.rows - self.written.late;
        ledger.unwritten += self.written.late;
        self.egress.count(ledger);
        self.kernel.iter().for_each(|kernel| kernel.count(ledger));
        for pipe in &self.pipes {
            pipe.pipeline.count(ledger);
            count_flow(&pipe.pipeline, FlowLevel::Machine, ledger);
        }
    }

    /// Says which frames are wanted.
    pub(crate) fn want(&mut self) -> Wanted {
        let wanted = self.egress.wanted();
        self.pipes.iter_mut().for_each(|pipe| pipe.pipeline.want(wanted));
        wanted
    }

    /// Leaves out alerts that this list names.
    pub(crate) fn suppress(&mut self, list: &SuppressionList) {
        self.pipes.iter_mut().for_each(|pipe| pipe.pipeline.suppress(list));
    }

    /// Says in which record to look up what was lost in windows, where aggregates ask for that.
    pub(crate) fn look_up_losses(&mut self, record: &LossRecord) {
        self.pipes.iter_mut().for_each(|pipe| pipe.pipeline.look_up_losses(record));
    }

    /// The same of one pipeline alone, which takes groups of the level below; says what these are.
    pub(crate) fn look_up_losses_of(
        &mut self,
        p: PipelineId,
        record: &LossRecord,
    ) -> Option<&Arc<Spec>> {
        let pipeline = &mut self.pipes.get_mut(p.0)?.pipeline;
        pipeline.spec()?;
        pipeline.look_up_losses(record);
        pipeline.spec()
    }

    /// Lets a pipeline take the rows that wait for its turn.
    fn run_incoming(&mut self, p: usize, mode: Mode, sink: &mut dyn Sink) {
        if self.pipes[p].is_idle() {
            return;
        }
        let outgoing = std::mem::take(&mut self.pipes[p].outgoing.rows);
        if let Some(output) = self.pipes[p].output {
            outgoing.iter().for_each(|rows| self.written.write(sink, output, rows));
        }
        self.pipes[p].outgoing.recycle(outgoing);
        let incoming = std::mem::take(&mut self.pipes[p].incoming.rows);
        let (pipeline, mut targets) = self.pipeline_at(p, mode, sink);
        for rows in &incoming {
            pipeline.push_rows(rows, &mut targets);
        }
        pipeline.step(mode == Mode::Step, &mut targets);
        self.pipes[p].incoming.recycle(incoming);
    }

    /// Pipeline `p`, and where its rows go.
    fn pipeline_at<'a>(
        &'a mut self,
        p: usize,
        mode: Mode,
        sink: &'a mut dyn Sink,
    ) -> (&'a mut Pipeline, PipeTargets<'a, 'e>) {
        note_pipeline(Some(p));
        let (before, after) = self.pipes.split_at_mut(p + 1);
        let Pipe { pipeline, output, is_read, .. } = &mut before[p];
        let targets = PipeTargets {
            id: pipeline.id,
            output: *output,
            readers: if *is_read { after } else { &mut [] },
            alone: self.printed == 1,
            mode,
            pending: &mut self.pending,
            written: &mut self.written,
            egress: &mut self.egress,
            sink,
        };
        (pipeline, targets)
    }
}
