//! `fill`: rows for keys that had none in a window.
//!
//! The keys that had a row so far stand in groups of their own, all with the states of new groups.
//! As such a state is an identity, the groups of a window become complete by taking those in.

use super::groups::{Groups, Spec, group_id};
use super::order::Sorter;
use super::panes::Spent;
use super::window_time::is_start;
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::counters::Ledger;
use crate::key::PACKED_WORDS_MAX;
use crate::table::{Keys, NO_ROW};
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_plan::limits::FILL_MAX;

/// The keys that rows are filled in for.
pub(super) struct Filling {
    spec: Arc<Spec>,
    known: Groups,
    /// Of each known key of both layouts the start of the last window in which it had a row.
    seen: [Vec<i128>; 2],
    /// The start of the first window that had a row, and of the last.
    first: Option<i128>,
    last: Option<i128>,
    /// How many keys of both layouts were known before the last window that had a row.
    old: [usize; 2],
    /// Windows without a row that came out since the last that had one, ...
    filled: u64,
    /// ... and rows that were filled in, in these and that one.
    rows: u64,
    keys: Vec<Keys>,
    /// Rows in hand, and where they are in the other groups.
    ids: Vec<u32>,
    map: Vec<u32>,
    sorter: Sorter,
    refused: u64,
    unfilled: u64,
}

impl Filling {
    /// The filling that the plan asks for, if it asks for one.
    pub(super) fn of(spec: &Arc<Spec>) -> Option<Filling> {
        spec.plan.fill?;
        Some(Filling {
            known: Groups::new(spec),
            seen: [Vec::new(), Vec::new()],
            first: None,
            last: None,
            old: [0; 2],
            filled: 0,
            rows: 0,
            keys: spec.layouts.iter().map(|l| Keys::new(l.words)).collect(),
            ids: Vec::new(),
            map: Vec::new(),
            sorter: Sorter::default(),
            refused: 0,
            unfilled: 0,
            spec: Arc::clone(spec),
        })
    }

    /// Where the windows begin that hold no key any more which was last seen in the window that
    /// starts at `seen`.
    fn end(&self, seen: i128) -> i128 {
        let idle = self.spec.plan.fill.and_then(|f| f.idle_ns);
        let over = self.spec.plan.window.over().unwrap_or(0) as i128;
        idle.map_or(i128::MAX, |idle| seen + over + idle as i128)
    }

    /// Whether the window from `start` on, in which no row was, comes out. If not, none does up to
    /// `next`; those that should have are counted.
    pub(super) fn comes_out(&mut self, start: i128, next: i128, every: i128) -> bool {
        let Some(last) = self.last else { return false };
        let end = self.end(last).min(next);
        if start >= end {
            return false;
        }
        if self.filled >= FILL_MAX || !self.has_room() {
            self.leave_out((start, end), every);
            return false;
        }
        self.filled += 1;
        true
    }

    /// Counts the windows that start from one time on and before another: those that should have
    /// come out.
    fn leave_out(&mut self, (start, end): (i128, i128), every: i128) {
        let all = (end - start + every - 1).div_euclid(every);
        let zone = self.spec.plan.zone;
        let not_shown = zone.map_or(0, |zone| zone.count_left_out((start, end), every));
        let left = (all - not_shown).try_into().unwrap_or(u64::MAX);
        self.unfilled = self.unfilled.saturating_add(left);
    }

    /// Whether further rows may be filled in before a window comes that has some.
    fn has_room(&self) -> bool {
        self.spec.plan.fill.is_some_and(|fill| self.rows < fill.max_rows)
    }

    /// Whether any window came out so far.
    pub(super) fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Remembers the keys of a window that had rows.
    pub(super) fn remember(&mut self, start: i128, groups: &Groups, spent: Spent<'_>) {
        self.first = self.first.or(Some(start));
        self.last = Some(start);
        (self.filled, self.rows) = (0, 0);
        let most = self.spec.room(self.known.len(), 0);
        let mut is_tight = most < groups.len() as u64;
        if is_tight && self.end(0) != i128::MAX {
            self.drop_idle(start, spent);
            let most = self.spec.room(self.known.len(), 0);
            is_tight = most < groups.len() as u64;
        }
        // Where idle keys were dropped, fewer are known.
        self.old = std::array::from_fn(|v| {
            self.known.variants.get(v).map_or(0, |variant| variant.table.len())
        });
        if is_tight {
            return self.remember_in_order(start, groups);
        }
        for v in 0..groups.variants.len() {
            self.ids.clear();
            self.ids.extend(0..groups.variants[v].table.len() as u32);
            let Filling { known, keys, ids, map, spec, .. } = self;
            add(known, groups, v, ids, (&mut keys[v], map), (spec, u64::MAX));
            self.note(v, start);
        }
        self.known.charge();
    }

    /// The same where not all may find room: the first do, in the order of their keys.
    fn remember_in_order(&mut self, start: i128, groups: &Groups) {
        let mut order = Vec::new();
        groups.sorted(&mut self.sorter, &mut order);
        for (v, row) in order.into_iter().map(group_id) {
            self.ids.clear();
            self.ids.push(row);
            let Filling { known, keys, ids, map, spec, .. } = self;
            let max =
                spec.room(known.len(), 0).saturating_add(known.variants[v].table.len() as u64);
            add(known, groups, v, ids, (&mut keys[v], map), (spec, max));
            self.refused += (self.map[0] == NO_ROW) as u64;
            self.note(v, start);
            self.known.charge();
        }
    }

    /// Says of the known keys in hand when they were seen.
    fn note(&mut self, v: usize, start: i128) {
        let seen = &mut self.seen[v];
        seen.resize(self.known.variants[v].table.len(), start);
        for &row in self.map.iter().filter(|&&row| row != NO_ROW) {
            seen[row as usize] = start;
        }
    }

    /// With `from start`, where the windows begin that lack the keys which came first in the window
    /// from `start` on.
    pub(super) fn first_without_new(&self, start: i128) -> i128 {
        let from_start = self.spec.plan.fill.is_some_and(|fill| fill.from_start);
        let new = self.seen.iter().zip(self.old).any(|(seen, old)| seen.len() > old);
        self.first.filter(|_| from_start && new).unwrap_or(start)
    }

    /// Gives groups of a window those keys, as long as there is room. If there is none, the windows
    /// up to `to` that lack them are counted.
    pub(super) fn add_new(&mut self, start: i128, groups: &mut Groups, to: (i128, i128)) -> bool {
        let (to, every) = to;
        if !self.has_room() {
            self.leave_out((start, to), every);
            return false;
        }
        for v in 0..groups.variants.len() {
            self.ids.clear();
            self.ids.extend(self.old[v] as u32..self.seen[v].len() as u32);
            let Filling { known, keys, ids, map, spec, .. } = self;
            add(groups, known, v, ids, (&mut keys[v], map), (spec, u64::MAX));
        }
        self.rows += groups.len() as u64;
        true
    }

    /// Gives the groups of the window from `start` on those keys that it lacks.
    pub(super) fn complete(&mut self, start: i128, groups: &mut Groups) {
        let before = groups.len();
        for v in 0..groups.variants.len() {
            self.choose(v, start);
            let Filling { known, keys, ids, map, spec, .. } = self;
            add(groups, known, v, ids, (&mut keys[v], map), (spec, u64::MAX));
        }
        self.rows += (groups.len() - before) as u64;
    }

    /// The same where the window held rows, and has them in any case.
    pub(super) fn complete_held(&mut self, start: i128, groups: &mut Groups) {
        if self.has_room() {
            return self.complete(start, groups);
        }
        let lacks = |&seen: &i128| seen != start && start < self.end(seen);
        self.unfilled += self.seen.iter().flatten().any(lacks) as u64;
    }

    /// Takes the known keys of layout `v` in hand that are filled in from `start` on.
    fn choose(&mut self, v: usize, start: i128) {
        let mut ids = std::mem::take(&mut self.ids);
        ids.clear();
        let rows = (0..).zip(&self.seen[v]);
        ids.extend(rows.filter(|(_, seen)| start < self.end(**seen)).map(|(row, _)| row));
        self.ids = ids;
    }

    /// Saves the keys that are known, in their order, or restores them.
    pub(super) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.known.pass_state(at)?;
        at.pass(&mut self.first)?;
        at.pass(&mut self.last)?;
        at.count(&mut self.refused)?;
        at.count(&mut self.unfilled)?;
        at.count(&mut self.filled)?;
        at.count(&mut self.rows)?;
        for (v, (seen, old)) in self.seen.iter_mut().zip(&mut self.old).enumerate() {
            let known = self.known.variants.get(v).map_or(0, |variant| variant.table.len());
            at.pass(seen)?;
            at.pass_if(old, "more keys are old than there are", |old| *old <= known)?;
            if seen.len() != known || !seen.iter().all(is_start) {
                return Err(BadState("a key was never seen"));
            }
        }
        match [self.first, self.last].iter().flatten().all(is_start) {
            true => Ok(()),
            false => Err(BadState("a window is beyond all time")),
        }
    }

    /// Forgets the keys that are not filled in any more.
    fn drop_idle(&mut self, start: i128, spent: Spent<'_>) {
        let mut left = Groups::new(&self.spec);
        for v in 0..left.variants.len() {
            self.choose(v, start);
            let Filling { known, keys, ids, map, spec, seen, .. } = self;
            add(&mut left, known, v, ids, (&mut keys[v], map), (spec, u64::MAX));
            // They are new there, so they keep their order.
            seen[v] = ids.iter().map(|&row| seen[v][row as usize]).collect();
        }
        spent(std::mem::replace(&mut self.known, left));
    }

    /// Adds what it counted to the ledger.
    pub(super) fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.refused;
        ledger.unfilled += self.unfilled;
    }
}

/// Gives `to` the keys of these rows of layout `v` in `from`, as new groups where it has none, up
/// to `max` groups of this layout. `map` says then where they are.
fn add(
    to: &mut Groups,
    from: &Groups,
    v: usize,
    rows: &[u32],
    (keys, map): (&mut Keys, &mut Vec<u32>),
    (spec, max): (&Spec, u64),
) {
    let (layout, theirs) = (&spec.layouts[v], &from.variants[v].table);
    let mine = &mut to.variants[v];
    mine.table.set_max(max);
    map.clear();
    let mut out = [NO_ROW; BATCH];
    let has_texts = layout.text_parts().next().is_some();
    for rows in rows.chunks(BATCH) {
        let mut key = [0; PACKED_WORDS_MAX];
        let key = &mut key[..layout.words];
        for (j, &row) in rows.iter().enumerate() {
            key.copy_from_slice(theirs.key(row));
            if has_texts {
                layout.move_texts(key, &from.texts, &mut to.texts);
            }
            keys.words.iter_mut().zip(&*key).for_each(|(plane, w)| plane[j] = *w);
        }
        keys.len = rows.len();
        mine.table.lookup_words(keys, &mine.fresh, &mut out);
        map.extend_from_slice(&out[..rows.len()]);
    }
}
