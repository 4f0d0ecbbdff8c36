//! The receiver: the machine level of a plan over the messages of all producers.

mod rest;
mod saved;

use super::codec;
use super::holding::held_above_ns;
use super::message::{Body, Message, MessageId, MessageTarget, UnreadableMessage};
use super::print::Targets;
use super::refused::Refused;
use super::spread::SpreadPlan;
use super::streams::{Consequence, Standing, Streams};
use crate::counters::Ledger;
use crate::functions::Functions;
use crate::level::Closed;
use crate::level::machine::egress::EgressWriter;
use crate::level::machine::{MachineLevel, MachinePipes};
use crate::limits::{EXCHANGE_TICKS_MAX, EXCHANGE_WINDOWS_MAX};
use crate::losses::{LossNews, LossRecord};
use crate::ops::groups::{Groups, Spec};
use crate::options::Options;
use crate::outcome::{Outcome, RunError};
use crate::peers::Peers;
use crate::rows::{Output, Sink};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_packet::source::Gap;
use weir_plan::physical::{Physical, PipelineId};

/// Takes the messages of producers and puts rows out.
pub struct Receiver {
    machine: MachineLevel<'static>,
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

/// The groups of a node that wait for their window to close.
struct HeldNode {
    pipeline: PipelineId,
    spec: Arc<Spec>,
    record: LossRecord,
    windows: BTreeMap<i64, HeldWindow>,
}

/// The groups of a window: merged, but sessions, which stand in the order that each producer wrote
/// them.
enum HeldWindow {
    Merged(Groups),
    Sessions(BTreeMap<MessageId, Groups>),
}

impl HeldWindow {
    fn into_groups(self) -> Option<Groups> {
        match self {
            HeldWindow::Merged(groups) => Some(groups),
            HeldWindow::Sessions(all) => all.into_values().reduce(|mut all, next| {
                all.merge(&next);
                all
            }),
        }
    }
}

impl HeldNode {
    /// Whether the rows of the window that starts here are out when windows have closed at
    /// `applied`.
    fn is_out(&self, start: i64, applied: i64) -> bool {
        applied > i64::MIN && self.spec.is_closed(start, applied)
    }

    /// Takes in that nobody saw some spans, in the watermarks that a probe closed at: windows of
    /// this node close so much later.
    fn lose_unseen(&self, machine: usize, LossNews { gaps, panes }: &LossNews) {
        let earlier = |time: i64| self.spec.closing(time);
        let gaps =
            gaps.iter().map(|(at, gap)| (earlier(*at), Gap { since: earlier(gap.since), ..*gap }));
        self.record.add_report(machine, &LossNews { gaps: gaps.collect(), panes: panes.clone() });
    }

    /// Whether there is no room for a window that starts here. There is more for windows before
    /// others that are held, since all wait for the probes that send them.
    fn is_full(&self, start: i64) -> bool {
        if self.spec.session().is_some() {
            return self.windows.len() >= EXCHANGE_TICKS_MAX;
        }
        let is_last = self.windows.last_key_value().is_none_or(|(last, _)| start > *last);
        let most = if is_last { EXCHANGE_WINDOWS_MAX } else { 2 * EXCHANGE_WINDOWS_MAX };
        self.windows.len() >= most && !self.windows.contains_key(&start)
    }

    /// Holds groups until their window closes at a watermark after this one. Returns how many are
    /// left out, since it has closed.
    fn hold(&mut self, from: MessageId, start: i64, groups: Groups, applied: i64) -> u64 {
        let Some(session) = self.spec.session() else {
            if self.is_out(start, applied) {
                return groups.len() as u64;
            }
            match self.windows.get_mut(&start) {
                Some(HeldWindow::Merged(held)) => _ = held.absorb(groups),
                _ => _ = self.windows.insert(start, HeldWindow::Merged(groups)),
            }
            return 0;
        };
        let mut late = 0;
        for (due, groups) in groups.by_due(session, start) {
            if self.is_out(due, applied) {
                late += groups.len() as u64;
                continue;
            }
            let new = || HeldWindow::Sessions(BTreeMap::new());
            if let HeldWindow::Sessions(all) = self.windows.entry(due).or_insert_with(new) {
                all.insert(from, groups);
            }
        }
        late
    }

    /// Takes out the sessions that come out at a watermark, or all there are. Sessions that their
    /// probe had open when it ended are idle, unless the input of all ends here.
    fn close_sessions(&mut self, watermark: Option<i64>, closed: &mut Vec<Closed>) {
        let mut all: Option<Groups> = None;
        while let Some(first) = self.windows.first_entry() {
            if watermark.is_some_and(|w| !self.spec.is_closed(*first.key(), w)) {
                break;
            }
            let Some(mut groups) = first.remove().into_groups() else { continue };
            if watermark.is_some() {
                groups.end_idle();
            }
            match &mut all {
                Some(all) => all.merge(&groups),
                None => all = Some(groups),
            }
        }
        let start = watermark.unwrap_or(i64::MAX);
        closed.extend(all.map(|groups| Closed { pipeline: self.pipeline, start, groups }));
    }

    /// Takes out what closes at a watermark, or all there is, by time.
    fn close(&mut self, watermark: Option<i64>, closed: &mut Vec<Closed>) {
        if self.spec.session().is_some() {
            return self.close_sessions(watermark, closed);
        }
        while let Some(first) = self.windows.first_entry() {
            let start = *first.key();
            if watermark.is_some_and(|w| !self.spec.is_closed(start, w)) {
                break;
            }
            let groups = first.remove().into_groups();
            closed.extend(groups.map(|groups| Closed { pipeline: self.pipeline, start, groups }));
        }
    }
}

/// Takes what machines report of losses into the records of their nodes.
fn reports_to(nodes: &[HeldNode]) -> impl FnMut(Option<usize>, usize, &LossNews) {
    move |node, machine, news| match node {
        Some(node) => nodes[node].record.add_report(machine, news),
        None => nodes.iter().for_each(|node| node.lose_unseen(machine, news)),
    }
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
            nodes.push(HeldNode { pipeline, spec, record, windows: BTreeMap::new() });
        }
        let mut streams = Streams::new(options.lateness_ns, options.jump_ns);
        probes.iter().for_each(|probe| streams.expect(*probe));
        Ok(Receiver {
            outputs: Output::of(&program),
            held_above_ns: held_above_ns(&program),
            rested: i64::MIN,
            counted: Ledger::default(),
            late: 0,
            error: None,
            machine,
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
            (Body::Losses(told), Some(n)) => what = Consequence::Losses(n, told.0),
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
        self.error.is_some() || self.machine.is_done()
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
        self.machine.know_until(Some(self.streams.known_until()));
        self.machine.finish(&mut closed, sink);
        let error = self.error.take().or(self.machine.end());
        let mut ledger = self.counted;
        self.machine.count(&mut ledger);
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
        self.machine.watermark(watermark, &mut closed, sink);
        self.machine.spent.clear();
        self.machine.flush(sink);
    }

    fn look_for_errors(&mut self) {
        if self.error.is_none() {
            self.error = self.machine.take_error();
        }
    }
}
