//! The panes of sliding windows, until no window needs them any more.
//!
//! A window's groups are those of its panes, merged. To merge all panes for each window would take
//! as many merges as a window has panes. Instead they wait in two queues, as two stacks make one:
//! panes of the `front`, the older ones, have taken in all that stand after them in the front, so
//! that the first of them is the front's share of a window; panes of the `back` are summed up as
//! they come. So a window takes some three merges, however many panes it has. When the front is
//! used up, the back becomes it.
//!
//! Where panes have few keys in common, those of the front would hold each key many times over. So
//! the oldest of them stay as they are once the front would hold more than [`PANES_AHEAD`] times
//! the groups of its panes: merging those for each window then costs no more than the window has
//! groups, as putting it out does.

use super::groups::{Groups, Spec, make_room};
use crate::checkpoint::{Checkpoint, Passed};
use crate::limits::{PANES_AHEAD, SPARE_GROUPS};
use std::collections::VecDeque;
use std::sync::Arc;
use weir_plan::place::rounds;

/// Takes memory that is not needed any more.
pub(super) type Spent<'a> = &'a mut dyn FnMut(Groups);

/// Panes that came out of the workers, in order of time.
pub(super) struct Panes {
    spec: Arc<Spec>,
    /// Whether panes must be merged in order of time, since results round: each window anew.
    in_order: bool,
    front: VecDeque<(i64, Groups)>,
    /// How many at the end of the front have taken in those after them.
    summed: usize,
    back: VecDeque<(i64, Groups)>,
    /// The sum of the first panes of the back, and of how many.
    total: Option<(Groups, usize)>,
    spare: Vec<Groups>,
    evicted: u64,
}

impl Panes {
    pub(super) fn new(spec: &Arc<Spec>) -> Panes {
        Panes {
            in_order: spec.plan.aggs.iter().any(rounds),
            spec: Arc::clone(spec),
            front: VecDeque::new(),
            summed: 0,
            back: VecDeque::new(),
            total: None,
            spare: Vec::new(),
            evicted: 0,
        }
    }

    /// The start of the oldest pane.
    pub(super) fn first(&self) -> Option<i64> {
        self.front.front().or(self.back.front()).map(|(start, _)| *start)
    }

    /// Takes a pane that is later than all before. Where memory is short, groups go of the largest.
    pub(super) fn push(&mut self, start: i64, mut groups: Groups) {
        groups.rehome(&self.spec);
        groups.charge();
        if self.in_order { &mut self.front } else { &mut self.back }.push_back((start, groups));
        while self.spec.share.left() == 0 {
            self.total = None;
            let (bound, panes) =
                (self.spec.share.bound(), 2 * (self.front.len() + self.back.len()));
            let all = self.front.iter_mut().chain(&mut self.back).map(|(_, groups)| groups);
            let gone = make_room(all, bound, panes as u64);
            if gone == 0 {
                break;
            }
            self.evicted += gone;
        }
    }

    /// Rows of groups that went for want of room.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// All panes together, of which there is one at least. Panes that `is_over` says no later
    /// window holds are gone then.
    pub(super) fn take_window(
        &mut self,
        is_over: impl Fn(i64) -> bool,
        spent: Spent<'_>,
    ) -> Groups {
        if self.front.is_empty() {
            self.turn(spent);
        }
        // The panes as they came, and the first that took in the rest.
        let mut parts = (self.front.len() - self.summed + 1).min(self.front.len());
        let first_is_over = self.front.front().is_some_and(|(start, _)| is_over(*start));
        let own = if first_is_over { self.front.pop_front() } else { None };
        parts -= own.is_some() as usize;
        let mut all = own.map_or_else(|| self.memory(), |(_, groups)| groups);
        self.front.iter().take(parts).for_each(|(_, groups)| all.merge(groups));
        self.summed = self.summed.min(self.front.len());
        self.sum_back();
        match (&self.total, self.back.front()) {
            (Some((total, _)), _) => all.merge(total),
            (None, Some((_, groups))) => all.merge(groups),
            (None, None) => {}
        }
        self.forget(is_over, spent);
        all
    }

    /// The only pane there is, if a later window holds it too: it is all of a window as it stands.
    /// To be [given back](Panes::push) once that was put out.
    pub(super) fn lend(&mut self, is_over: impl Fn(i64) -> bool) -> Option<(i64, Groups)> {
        let queue = match [self.front.len(), self.back.len()] {
            [1, 0] => &mut self.front,
            [0, 1] => &mut self.back,
            _ => return None,
        };
        let lendable = |(start, groups): &(i64, Groups)| !is_over(*start) && groups.are_cells();
        if self.total.is_some() || !queue.front().is_some_and(lendable) {
            return None;
        }
        self.summed = 0;
        queue.pop_front()
    }

    /// Lets the panes go that are over.
    pub(super) fn forget(&mut self, is_over: impl Fn(i64) -> bool, spent: Spent<'_>) {
        while self.front.front().is_some_and(|(start, _)| is_over(*start)) {
            let gone = self.front.pop_front();
            gone.into_iter().for_each(|(_, groups)| self.recycle(groups, spent));
        }
        self.summed = self.summed.min(self.front.len());
        while self.back.front().is_some_and(|(start, _)| is_over(*start)) {
            let gone = self.back.pop_front();
            gone.into_iter().for_each(|(_, groups)| self.recycle(groups, spent));
            self.drop_total(spent);
        }
    }

    /// Saves all panes, or restores them.
    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let Panes { spec, front, summed, back, total, .. } = self;
        for panes in [&mut *front, back] {
            at.queue(
                panes,
                || (0, Groups::new(spec)),
                |(start, groups), at| {
                    at.pass(start)?;
                    groups.pass_state(at)
                },
            )?;
        }
        if at.restores() {
            // The sum of the back is made anew where it is asked for.
            *total = None;
        }
        at.pass_if(summed, "more panes are summed up than there are", |n| *n <= front.len())
    }

    /// Makes the back the front.
    fn turn(&mut self, spent: Spent<'_>) {
        self.drop_total(spent);
        std::mem::swap(&mut self.front, &mut self.back);
        let panes = self.front.make_contiguous();
        let held: usize = panes.iter().map(|(_, groups)| groups.len()).sum();
        let mut room = PANES_AHEAD * held;
        self.summed = panes.len().min(1);
        for i in (0..panes.len().saturating_sub(1)).rev() {
            let [(_, groups), (_, later)] = &mut panes[i..i + 2] else { break };
            // Together they have at most so many.
            let most = groups.len() + later.len();
            if most > room {
                break;
            }
            groups.merge(later);
            room -= groups.len();
            self.summed += 1;
        }
    }

    /// Sums the back up, unless it is a single pane, which is its own sum.
    fn sum_back(&mut self) {
        if self.back.len() < 2 {
            return;
        }
        let (mut total, summed) = match self.total.take() {
            Some(total) => total,
            None => (self.memory(), 0),
        };
        self.back.iter().skip(summed).for_each(|(_, groups)| total.merge(groups));
        self.total = Some((total, self.back.len()));
    }

    fn drop_total(&mut self, spent: Spent<'_>) {
        let total = self.total.take();
        total.into_iter().for_each(|(groups, _)| self.recycle(groups, spent));
    }

    /// Empty groups.
    pub(super) fn memory(&mut self) -> Groups {
        self.spare.pop().unwrap_or_else(|| Groups::new(&self.spec))
    }

    /// Keeps the memory of groups, or hands it on.
    pub(super) fn recycle(&mut self, mut groups: Groups, spent: Spent<'_>) {
        if self.spare.len() < SPARE_GROUPS / 2 {
            groups.clear();
            groups.rehome(&self.spec);
            self.spare.push(groups);
        } else {
            spent(groups);
        }
    }
}
