//! The receiver: takes the messages of all producers, and merges the groups of each window. The
//! machine level makes rows of windows that close, or they go on as messages of one producer.

mod above;
mod held;
mod passing;
mod rest;
mod saved;

use super::codec;
use super::holding::held_above_ns;
use super::message::{Body, Message, MessageTarget, UnreadableMessage};
use super::print::Targets;
use super::refused::Refused;
use super::spread::SpreadPlan;
use super::streams::{Consequence, Standing, Streams};
use super::writer::{MessageSend, MessageWriter, ProducerId};
use crate::counters::Ledger;
use crate::functions::Functions;
use crate::level::machine::egress::EgressWriter;
use crate::level::machine::{MachineLevel, MachinePipes};
use crate::losses::{LossNotes, LossRecord};
use crate::ops::groups::Groups;
use crate::options::Options;
use crate::outcome::{Outcome, RunError};
use crate::peers::Peers;
use crate::rows::{Output, Sink};
use above::Above;
use held::{HeldLosses, HeldNode, reports_to};
use passing::Passing;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_plan::physical::Physical;

/// Takes the messages of producers and puts rows out, or passes the merged groups on.
pub struct Receiver {
    above: Above,
    outputs: Vec<Output>,
    targets: Targets,
    nodes: Vec<HeldNode>,
    streams: Streams,
    /// The counts of the producers.
    counted: Ledger,
    late: u64,
    error: Option<RunError>,
    /// For how long stages above the merge hold rows after windows have closed.
    held_above_ns: i64,
    /// The watermark that it went to when no probe was waited for.
    rested: i64,
}

/// The fate of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receipt {
    /// It was taken in.
    Taken,
    /// It came before, and nothing was done.
    Seen,
    /// So many groups of it were left out, since rows of their window are out.
    Late(u64),
}

impl Receiver {
    /// A receiver of the groups of a plan, which waits for these probes: no window closes before
    /// all of them have sent what they have of it, or are [idle](Receiver::set_idle). The caller
    /// opens the sink with [`Receiver::outputs`].
    ///
    /// # Errors
    /// Where the plan can't be spread over several machines.
    pub fn new(
        plan: &Physical,
        functions: &Functions,
        options: &Options,
        probes: &[u128],
    ) -> Result<Receiver, Refused> {
        Receiver::with(plan, functions, options, probes, None)
    }

    /// One that passes on what it merges, as the messages of one producer: `send` takes each, in
    /// the order of their numbers. So merges stand one above the other. Nothing goes to a sink.
    ///
    /// # Errors
    /// As for [`Receiver::new`].
    pub fn passing_on(
        plan: &Physical,
        functions: &Functions,
        options: &Options,
        probes: &[u128],
        id: ProducerId,
        send: MessageSend,
    ) -> Result<Receiver, Refused> {
        Receiver::with(plan, functions, options, probes, Some((id, send)))
    }

    fn with(
        plan: &Physical,
        functions: &Functions,
        options: &Options,
        probes: &[u128],
        next: Option<(ProducerId, MessageSend)>,
    ) -> Result<Receiver, Refused> {
        let (spread, mut machine) =
            SpreadPlan::new(plan, functions, options, Peers::None, |program, placed| {
                MachineLevel::new(MachinePipes::new(placed), EgressWriter::new(program, None))
            })?;
        let SpreadPlan { program, crossings, targets } = spread;
        let mut nodes = Vec::new();
        for crossing in &crossings {
            let (pipeline, record) = (crossing.node.pipeline, LossRecord::default());
            let spec = machine.look_up_losses_of(pipeline, &record).ok_or(Refused::OtherCut)?;
            let spec = Arc::clone(spec);
            let losses = match &next {
                None => HeldLosses::Looked(record),
                Some(_) => HeldLosses::passed(LossNotes::of(&crossing.summarize).is_some()),
            };
            nodes.push(HeldNode { pipeline, spec, losses, windows: BTreeMap::new() });
        }
        let above = match next {
            None => Above::Rows(Box::new(machine)),
            Some((id, send)) => {
                let writer = MessageWriter::new(targets.clone(), id);
                Above::Messages(Box::new(Passing::new(writer, send)))
            }
        };
        let mut streams = Streams::new(options.lateness_ns, options.jump_ns);
        probes.iter().for_each(|probe| streams.expect(*probe));
        Ok(Receiver {
            outputs: Output::of(&program),
            held_above_ns: held_above_ns(&program),
            rested: i64::MIN,
            counted: Ledger::default(),
            late: 0,
            error: None,
            above,
            targets,
            nodes,
            streams,
        })
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Takes a message; rows of windows that close go to the sink.
    ///
    /// # Errors
    /// Where the bytes are no message for this plan, or can't be taken yet. Nothing has changed
    /// then.
    pub fn take(
        &mut self,
        message: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<Receipt, UnreadableMessage> {
        let message = Message::read(message)?;
        let node = self.node(&message.target)?;
        let from = message.id();
        match self.streams.standing(from) {
            Standing::New => {}
            Standing::Seen => return Ok(Receipt::Seen),
            Standing::Full(what) => return Err(UnreadableMessage::Full(what)),
        }
        let (mut receipt, mut what) = (Receipt::Taken, Consequence::Nothing);
        match (message.body, node) {
            (Body::Window { start, groups }, Some(n)) => {
                let node = &mut self.nodes[n];
                if !node.spec.is_start(start) {
                    return Err(UnreadableMessage::Start(start));
                }
                let groups = Groups::read(&node.spec, &groups.0)?;
                let applied = self.streams.applied();
                if node.is_full(start) && !node.is_out(start, applied) {
                    return Err(UnreadableMessage::Full("too many windows are open"));
                }
                let late = node.hold(from, start, groups, applied);
                if late > 0 {
                    receipt = Receipt::Late(late);
                    self.late = self.late.saturating_add(late);
                }
            }
            (Body::Losses(machine, told), Some(n)) => {
                if !self.streams.has_room_for(from.probe, machine) {
                    return Err(UnreadableMessage::Wrong("the machine", machine.into()));
                }
                what = Consequence::Losses(n, machine, told.0);
            }
            (Body::Counts(counts), None) => {
                let most = codec::check(&counts)?;
                if !self.streams.claim(from.probe, most) {
                    return Err(UnreadableMessage::Wrong("a count", most));
                }
                codec::add(&counts, &mut self.counted);
            }
            (Body::Closed(watermark), None) => what = Consequence::Closed(watermark),
            (Body::Clock(reached, ahead), None) => what = Consequence::Clock(reached, ahead),
            (Body::End(why), None) => what = Consequence::End(why),
            _ => return Err(UnreadableMessage::Target(message.target)),
        }
        self.streams.add(from, what, &mut reports_to(&self.nodes));
        self.close(sink);
        Ok(receipt)
    }

    /// Waits for a probe, too, of which nothing has come yet.
    pub fn expect(&mut self, probe: u128) {
        self.streams.expect(probe);
    }

    /// The watermark at which windows have closed; `i64::MIN` before that.
    pub fn closed_through(&self) -> i64 {
        self.streams.applied()
    }

    /// Says that a probe sends nothing for now: no window waits for it until it sends again. Groups
    /// that it sends then, of windows that are out, are late.
    pub fn set_idle(&mut self, probe: u128, sink: &mut dyn Sink) {
        self.streams.set_idle(probe, &mut reports_to(&self.nodes));
        self.close(sink);
    }

    /// Says that a probe begins a life: windows wait for it, even if the life before has ended and
    /// nothing of this one has come yet.
    pub fn begin_life(&mut self, probe: u128, epoch: u64) {
        self.streams.begin_life(probe, epoch);
    }

    /// Says whether the lives of a probe from now on do again what the one before left undone. If
    /// not, which is so at first, nobody knows how many frames passed between one that broke off
    /// and the next, and windows in between have a completeness of next to nothing.
    pub fn set_resuming(&mut self, probe: u128, resumes: bool) {
        self.streams.set_resuming(probe, resumes);
    }

    /// Says that messages of this life of a probe which are missing before others will not come, as
    /// is known where messages come in order. Windows are no longer held back for them. Returns how
    /// many they are.
    pub fn skip_missing(&mut self, probe: u128, epoch: u64, sink: &mut dyn Sink) -> u64 {
        let missing = self.streams.skip_missing(probe, epoch, &mut reports_to(&self.nodes));
        if missing > 0 {
            self.close(sink);
        }
        missing
    }

    /// The watermark up to which this probe has sent all that it has, in its latest life;
    /// `i64::MIN` before it has sent any.
    pub fn closed_by(&self, probe: u128) -> i64 {
        self.streams.closed_by(probe)
    }

    /// The fingerprint of the computation, which messages bear.
    pub fn fingerprint(&self) -> u128 {
        self.targets.all.print
    }

    /// The probes that have not ended.
    pub fn open_probes(&self) -> impl Iterator<Item = u128> {
        self.streams.open()
    }

    /// Groups that came after the rows of their window were out, and were left out.
    pub fn late_groups(&self) -> u64 {
        self.late
    }

    /// Whether no further message can change what is emitted: a `limit` has let its rows pass, or
    /// the sink failed.
    pub fn is_done(&self) -> bool {
        self.error.is_some() || self.above.is_done()
    }

    /// The error of the sink, if it had one.
    pub fn error(&self) -> Option<&RunError> {
        self.error.as_ref()
    }

    /// Emits all there is, also of windows that not all probes have sent, and finishes the sink.
    pub fn finish(mut self, sink: &mut dyn Sink) -> Outcome {
        self.streams.finish(&mut reports_to(&self.nodes));
        let mut closed = Vec::new();
        self.nodes.iter_mut().for_each(|node| node.close(None, &mut closed));
        self.above.know_until(Some(self.streams.known_until()));
        let mut ledger = self.counted;
        match &mut self.above {
            Above::Rows(machine) => machine.finish(&mut closed, sink),
            Above::Messages(passing) => {
                passing.send_all(&self.nodes, &mut closed, &ledger, None);
                passing.end(self.streams.stands_at());
            }
        }
        let error = self.error.take().or(self.above.end());
        self.above.count(&mut ledger);
        let finished = sink.finish().err().map(RunError::Sink);
        ledger.settle_rows(sink.refused(), sink.unwritten());
        Outcome { ledger, error: error.or(finished) }
    }

    /// The node that a message is for, or `None` if it is for all.
    fn node(&self, target: &MessageTarget) -> Result<Option<usize>, UnreadableMessage> {
        if *target == self.targets.all {
            return Ok(None);
        }
        let found = self.targets.nodes.iter().position(|node| node == target);
        found.map(Some).ok_or(UnreadableMessage::Target(*target))
    }

    /// Emits the windows that are complete.
    fn close(&mut self, sink: &mut dyn Sink) {
        while let Some(watermark) = self.streams.next_closing() {
            self.close_at(watermark, sink);
        }
        self.look_for_errors();
    }

    fn close_at(&mut self, watermark: i64, sink: &mut dyn Sink) {
        let mut closed = Vec::new();
        let all = self.nodes.iter_mut();
        all.for_each(|node| node.close(Some(watermark), &mut closed));
        match &mut self.above {
            Above::Rows(machine) => {
                machine.watermark(watermark, &mut closed, sink);
                machine.spent.clear();
                machine.flush(sink);
            }
            Above::Messages(passing) => {
                passing.send_all(&self.nodes, &mut closed, &self.counted, Some(watermark));
            }
        }
    }

    fn look_for_errors(&mut self) {
        if self.error.is_none() {
            self.error = self.above.take_error();
        }
    }
}
