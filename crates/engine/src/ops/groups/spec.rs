//! The spec of a `summarize`: its keys, its aggregates and its windows.

use crate::agg;
use crate::functions::Functions;
use crate::key::{KeyPart, Layout, key_words};
use crate::limits::{PARTS_MAX, SESSIONS_WAITING_MAX};
use crate::ops::session_words;
use crate::ops::window_time::{downstream, window_start};
use crate::peers::{BuildContext, Peers};
use crate::room::{RoomShare, row_bytes};
use crate::table::HashKey;
use std::sync::Arc;
use weir_plan as plan;
use weir_plan::limits::{GROUPS_MAX, SESSIONS_MAX};
use weir_plan::{Agg, Schema, Session, Window};

/// Words of a row beside key and cells: those of a session, at most.
const ROW_HEAD: usize = 4;

/// The share in memory of a summarize with these states.
fn share_of(plan: &plan::Summarize, states: &[Vec<Agg>], with: BuildContext<'_>) -> RoomShare {
    let default = match plan.window {
        Window::Session(_) => SESSIONS_MAX,
        _ => GROUPS_MAX,
    };
    let cells = states.iter().map(|own| agg::build(own, with, plan.keys.is_empty()).cells());
    let words = key_words(plan.keys.iter().map(|(_, e)| e)) + ROW_HEAD + cells.sum::<usize>();
    RoomShare::of(with.room, (plan.max_groups, default), row_bytes(words))
}

/// The spec of a summarize, which both halves know.
pub(crate) struct Spec {
    /// Of aggregates that share a state, only the first.
    pub(in crate::ops) plan: plan::Summarize,
    /// The aggregates of each state.
    pub(super) states: Vec<Vec<Agg>>,
    /// Of each aggregate that is emitted, its state and which result of that it is.
    pub(crate) results: Vec<(usize, usize)>,
    pub(super) functions: Functions,
    /// The key that groups and values are hashed with.
    pub(in crate::ops) hash_key: HashKey,
    /// The parties whose groups are merged with these.
    pub(in crate::ops) peers: Peers,
    /// The room for its groups.
    pub(in crate::ops) share: RoomShare,
    pub(in crate::ops) parts: Vec<KeyPart>,
    pub(in crate::ops) layouts: Vec<Layout>,
    /// The columns emitted.
    pub schema: Schema,
}

impl Spec {
    /// From the plan; `schema` is the stage's output.
    pub(crate) fn new(plan: &plan::Summarize, with: BuildContext<'_>, schema: Schema) -> Arc<Spec> {
        let parts: Vec<KeyPart> = plan.keys.iter().map(|(_, e)| KeyPart::of(e)).collect();
        assert!(parts.len() <= PARTS_MAX, "a key has at most {PARTS_MAX} parts");
        let (narrow, wide) = Layout::both(&parts);
        let sharing = agg::sharing(&plan.aggs);
        let place = |agg: &Agg| {
            let of = |state: &Vec<&Agg>| state.iter().position(|one| std::ptr::eq(*one, agg));
            let found = sharing.iter().enumerate().find_map(|(s, state)| Some((s, of(state)?)));
            found.expect("each has a state")
        };
        let results = plan.aggs.iter().map(place).collect();
        let own = |state: Vec<&Agg>| state.into_iter().cloned().collect();
        let states: Vec<Vec<Agg>> = sharing.into_iter().map(own).collect();
        let aggs = states.iter().map(|state| state[0].clone()).collect();
        let share = share_of(plan, &states, with);
        Arc::new(Spec {
            plan: plan::Summarize { aggs, ..plan.clone() },
            states,
            results,
            functions: with.functions.clone(),
            hash_key: with.hash_key,
            peers: with.peers,
            share,
            layouts: [Some(narrow), wide].into_iter().flatten().collect(),
            parts,
            schema,
        })
    }

    /// The aggregates whose arguments are taken in: the first of each state.
    pub(crate) fn aggs(&self) -> &[Agg] {
        &self.plan.aggs
    }

    /// Length of the windows that rows are taken into, if there are any: of panes, where windows
    /// slide.
    pub(crate) fn every(&self) -> Option<i64> {
        self.plan.window.pane()
    }

    /// The watermark that closes windows, when the rows' own is there.
    pub(crate) fn closing(&self, watermark: i64) -> i64 {
        watermark.saturating_sub(self.plan.lateness_ns)
    }

    /// The reading of the clock of its windows when the watermark that closes them is there.
    pub(in crate::ops) fn closed(&self, watermark: i64) -> i64 {
        self.clock(self.closing(watermark))
    }

    /// The reading of the clock of its windows at a time.
    pub(crate) fn clock(&self, t: i64) -> i64 {
        self.plan.zone.map_or(t, |zone| zone.clock(t))
    }

    /// When the clock of its windows showed this first.
    pub(crate) fn when(&self, clock: i64) -> i64 {
        self.plan.zone.map_or(clock, |zone| zone.when(clock))
    }

    /// The rule of its sessions, if its groups are sessions.
    pub(crate) fn session(&self) -> Option<Session> {
        match self.plan.window {
            Window::Session(session) => Some(session),
            _ => None,
        }
    }

    /// Words of a row between its key and its first aggregate.
    pub(super) fn head(&self) -> usize {
        self.session().map_or(0, session_words::head)
    }

    /// Groups that may be added to a window that has so many: as shared memory leaves room for, but
    /// `least` whatever that leaves.
    #[inline]
    pub(in crate::ops) fn room(&self, groups: usize, least: u64) -> u64 {
        let most = self.plan.max_groups.saturating_sub(groups as u64);
        most.min(self.share.left().max(least))
    }

    /// Rows that one table may have.
    pub(super) fn max_rows(&self) -> u64 {
        let max = self.plan.max_groups;
        match self.session() {
            None => max,
            Some(_) => max.saturating_mul(2).saturating_add(SESSIONS_WAITING_MAX as u64),
        }
    }

    /// Whether groups may start here: windows and panes do at multiples of their length, sessions
    /// come out at ticks or at the end of the input.
    pub(crate) fn is_start(&self, start: i64) -> bool {
        match (self.session(), self.every()) {
            (Some(session), _) => start == session.tick(start) || start == i64::MAX,
            (None, Some(every)) => start == window_start(start, every),
            (None, None) => start == 0,
        }
    }

    /// Whether the groups that start here are all there once the watermark is there: of sessions
    /// those that came out at this tick.
    pub(crate) fn is_closed(&self, start: i64, watermark: i64) -> bool {
        match (self.session(), self.every()) {
            (Some(session), _) => start <= session.tick(watermark),
            (None, Some(every)) => start < window_start(self.closed(watermark), every),
            (None, None) => false,
        }
    }

    /// The watermark at which all windows are closed that hold groups that start here; `None` where
    /// only the end of the input closes them.
    pub(crate) fn closes_at(&self, start: i64) -> Option<i64> {
        if self.session().is_some() {
            return Some(start);
        }
        let end = self.when(start.saturating_add(self.plan.window.over()?));
        Some(end.saturating_add(self.plan.lateness_ns))
    }

    /// The reading of the clock before which all groups start that are all there once the watermark
    /// is there; `None` where they only are at the end of the input, and of sessions.
    pub(crate) fn closed_before(&self, watermark: i64) -> Option<i64> {
        self.every().map(|every| window_start(self.closed(watermark), every))
    }

    /// The watermark that rows emitted by a close at `watermark` obey.
    pub(crate) fn downstream(&self, watermark: i64) -> i64 {
        if !self.plan.is_timed() {
            return i64::MIN;
        }
        let closing = self.closed(watermark);
        match (self.plan.window, self.every()) {
            (Window::Sliding { over, every }, Some(pane)) => {
                let closed = (closing as i128).div_euclid(pane as i128) * pane as i128;
                self.when(downstream(closed, over, every))
            }
            (Window::Session(session), _) => session.downstream(watermark),
            (_, Some(d)) => self.when(window_start(closing, d)),
            (_, None) => i64::MIN,
        }
    }
}
