//! The groups of windows that a receiver holds until they close, and the losses of their packets.

use crate::checkpoint::{Checkpoint, Passed};
use crate::exchange::message::MessageId;
use crate::level::Closed;
use crate::limits::{EXCHANGE_TICKS_MAX, EXCHANGE_WINDOWS_MAX};
use crate::losses::{LossNews, LossRecord};
use crate::ops::groups::{Groups, Spec};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_packet::source::Gap;
use weir_plan::physical::PipelineId;

/// The groups of a node that wait for their window to close.
pub(super) struct HeldNode {
    pub(super) pipeline: PipelineId,
    pub(super) spec: Arc<Spec>,
    pub(super) losses: HeldLosses,
    pub(super) windows: BTreeMap<i64, HeldWindow>,
}

/// The groups of a window: merged, but sessions, which stand in the order that each producer wrote
/// them.
pub(super) enum HeldWindow {
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
    pub(super) fn is_out(&self, start: i64, applied: i64) -> bool {
        applied > i64::MIN && self.spec.is_closed(start, applied)
    }

    /// Takes in that nobody saw some spans, in the watermarks that a probe closed at: windows of
    /// this node close so much later.
    fn lose_unseen(&self, machine: usize, LossNews { gaps, panes }: &LossNews) {
        let earlier = |time: i64| self.spec.closing(time);
        let gaps =
            gaps.iter().map(|(at, gap)| (earlier(*at), Gap { since: earlier(gap.since), ..*gap }));
        self.losses.add(machine, &LossNews { gaps: gaps.collect(), panes: panes.clone() });
    }

    /// Whether there is no room for a window that starts here. There is more for windows before
    /// others that are held, since all wait for the probes that send them.
    pub(super) fn is_full(&self, start: i64) -> bool {
        if self.spec.session().is_some() {
            return self.windows.len() >= EXCHANGE_TICKS_MAX;
        }
        let is_last = self.windows.last_key_value().is_none_or(|(last, _)| start > *last);
        let most = if is_last { EXCHANGE_WINDOWS_MAX } else { 2 * EXCHANGE_WINDOWS_MAX };
        self.windows.len() >= most && !self.windows.contains_key(&start)
    }

    /// Holds groups until their window closes at a watermark after this one. Returns how many are
    /// left out, since it has closed.
    pub(super) fn hold(
        &mut self,
        from: MessageId,
        start: i64,
        groups: Groups,
        applied: i64,
    ) -> u64 {
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
    pub(super) fn close(&mut self, watermark: Option<i64>, closed: &mut Vec<Closed>) {
        if self.spec.session().is_some() && !self.losses.are_passed() {
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
pub(super) fn reports_to(nodes: &[HeldNode]) -> impl FnMut(Option<usize>, usize, &LossNews) {
    move |node, machine, news| match node {
        Some(node) => nodes[node].losses.add(machine, news),
        None => nodes.iter().for_each(|node| node.lose_unseen(machine, news)),
    }
}

/// The losses that machines report of the packets of a node.
pub(super) enum HeldLosses {
    /// A record, which the final aggregation looks its windows up in.
    Looked(LossRecord),
    /// The news of each machine, by its number from 0, which are passed on as they came.
    Passed(RefCell<Vec<(usize, LossNews)>>),
    /// Nothing, where no aggregate asks, and all is passed on.
    Unasked,
}

impl HeldLosses {
    /// The losses of a node that is passed on; `is_asked`: an aggregate asks for them.
    pub(super) fn passed(is_asked: bool) -> HeldLosses {
        if is_asked { HeldLosses::Passed(RefCell::default()) } else { HeldLosses::Unasked }
    }

    pub(super) fn are_passed(&self) -> bool {
        !matches!(self, HeldLosses::Looked(_))
    }

    /// Takes what a machine reports.
    pub(super) fn add(&self, machine: usize, news: &LossNews) {
        match self {
            HeldLosses::Looked(record) => record.add_report(machine, news),
            HeldLosses::Passed(all) => all.borrow_mut().push((machine, news.clone())),
            HeldLosses::Unasked => {}
        }
    }

    pub(super) fn pass_reports(&self, at: &mut Checkpoint<'_>) -> Passed {
        match self {
            HeldLosses::Looked(record) => record.pass_reports(at),
            HeldLosses::Passed(_) | HeldLosses::Unasked => Ok(()),
        }
    }
}
