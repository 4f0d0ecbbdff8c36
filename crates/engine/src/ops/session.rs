//! `summarize … session D` and `… every N rows`: groups the rows of each key that follow one
//! another closely, and aggregates each session.
//!
//! | | |
//! |---|---|
//! | Syntax | `summarize NAME = AGG, … by KEY, … session GAP active D until CONDITION linger D unless CONDITION max N`; `… every N rows idle D max N` |
//! | Emits | sessions that have ended: when the watermark passes a whole second (a multiple of the gap, if that is shorter, or of 1 ms, if that is longer), and at the end of the input |
//! | Order | of those that come out together: by start, then by key; an absent key part comes first |
//! | State | per session its key, four words, and the cells of its aggregates, padded as for `summarize`, from its first row until it comes out; `max` (default 16 Mi) open |
//! | Full | the session whose latest row came first is put out, and counted as evicted; beyond 16 Mi that are closed or have ended and wait to come out none begins, and rows are counted as evicted |
//! | Late | a late row joins the session of its key, or begins one, and none is lost; how long a session waits for the next row is judged by the watermark; a row that in the order of times might have come to another session, or ended one, is counted as lagging |
//! | Merge | partitioned by key |
//! | Exact? | as its aggregates; which session is put out is exact where the query names `max`; where it names none, each worker holds that many |
//!
//! An index over keys finds the sessions that take rows in the table of their layout: those that
//! are open, and those that are closed and linger, or whose end the watermark has not passed. One
//! that has ended stays there until the next tick. Then its row is copied into [`Groups`], and used
//! again. Aggregates that keep more than rows (sets, texts) would keep that: with these, the
//! sessions that take rows are copied too, and the table starts anew.

mod open;
mod saved;
mod wheel;

use super::groups::{Groups, Spec};
use super::operator::Batch;
use super::summarize::packet_field;
use super::window_time::passed_rows;
use super::work::{AggArgs, GroupingScratch, drop_refused, in_turn, update_all};
use crate::counters::Ledger;
use crate::expr::{Cond, Src, Val};
use crate::hold::Hold as _;
use crate::key::{Chosen, Direct, narrow_rows, pack};
use crate::limits::{EVICT_AT_ONCE, EVICT_SESSIONS, EVICT_SESSIONS_SHARE, SESSIONS_WAITING_MAX};
use crate::node::{End, Next};
use crate::peers::Peers;
use crate::table::NO_ROW;
use open::{Came, Coming, DueTicks, Marked, OpenSessions, Role, Terms};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_plan::{EndReason, Session};

/// Takes rows into the sessions of their keys.
pub(crate) struct Sessions {
    spec: Arc<Spec>,
    session: Session,
    keys: Vec<Val>,
    aggs: Vec<AggArgs>,
    closing: ClosingRows,
    /// How keys of plain packets are made, if they can be made directly.
    direct: Vec<Direct>,
    /// All sessions that did not come out, those of each layout together.
    groups: Groups,
    open: Vec<OpenSessions>,
    spare: Vec<Groups>,
    /// Whether rows are all there is to a session.
    in_rows: bool,
    /// How many may be open now.
    max: usize,
    waiting_max: usize,
    /// The last tick that passed.
    tick: i64,
    /// Whether other probes make sessions, too.
    is_probe: bool,
    /// Sessions to be evicted next, the last of them first: when their latest rows came, layout,
    /// row.
    doomed: Vec<(u64, u32, u32)>,
    evicted: u64,
    work: Box<GroupingScratch>,
    /// Where the times of the rows at hand stand.
    time: Src,
    /// Scratch: rows to look at.
    rows: Vec<u32>,
    /// Batches so far, and the numbers of the rows at hand as they came: packet numbers would not
    /// do, since several rows may be made of one packet.
    batches: u64,
    turns: Vec<u64>,
}

/// How many sessions may be open now.
fn max_open(spec: &Spec) -> usize {
    spec.share.bound().clamp(1, u64::from(u32::MAX / 4)) as usize
}

/// Which rows close a session.
pub(crate) struct ClosingRows {
    /// The rows that close it, if there are any.
    pub(crate) until: Option<Cond>,
    /// The rows that join none that is closed.
    pub(crate) unless: Option<Cond>,
}

impl Sessions {
    /// Groups rows by `keys`; `aggs` are arguments (tuples taken apart) and conditions.
    pub(crate) fn new(
        spec: Arc<Spec>,
        session: Session,
        keys: Vec<Val>,
        aggs: Vec<AggArgs>,
        closing: ClosingRows,
    ) -> Sessions {
        let fields: Option<Vec<FieldId>> =
            spec.plan.keys.iter().map(|(_, e)| packet_field(e)).collect();
        let groups = Groups::new(&spec);
        let mut variants = groups.variants.iter().zip(&spec.layouts);
        let max = max_open(&spec);
        Sessions {
            direct: fields.map_or_else(Vec::new, |fields| Direct::new(&fields, &spec.layouts)),
            open: spec.layouts.iter().map(|_| OpenSessions::new(session, spec.hash_key)).collect(),
            in_rows: variants.all(|(v, layout)| v.is_all_in_rows(layout)),
            work: GroupingScratch::new(&spec),
            groups,
            session,
            keys,
            aggs,
            closing,
            spare: Vec::new(),
            max,
            waiting_max: SESSIONS_WAITING_MAX,
            tick: i64::MIN,
            is_probe: matches!(spec.peers, Peers::Probes { .. }),
            spec,
            doomed: Vec::new(),
            evicted: 0,
            time: Src::Slot(0),
            rows: Vec::new(),
            batches: 0,
            turns: Vec::with_capacity(BATCH),
        }
    }

    fn live(&self) -> usize {
        self.open.iter().map(OpenSessions::live).sum()
    }

    fn waiting(&self) -> usize {
        self.open.iter().map(OpenSessions::waiting).sum()
    }

    /// Takes rows in if all are plain packets whose keys can be made of their bytes, those of one
    /// layout of one family: rows of a key must stay in order. Returns those not taken.
    fn take_plain(&mut self, batch: &Batch<'_>, rows: Bits, marked: Marked) -> Bits {
        let Some(view) = batch.ctx.view.as_ref().filter(|_| !self.direct.is_empty()) else {
            return rows;
        };
        let mut left = rows;
        let mut takers = [None; 2];
        for (d, direct) in self.direct.iter().enumerate() {
            let mine = direct.rows(&view.plain(direct.family)).and(rows);
            if mine.is_empty() {
                continue;
            }
            if takers[direct.layout].replace((d, mine)).is_some() {
                return rows;
            }
            left = left.minus(mine);
        }
        if !left.is_empty() {
            return rows;
        }
        for (v, taker) in takers.into_iter().enumerate() {
            let Some((d, mine)) = taker else { continue };
            let (direct, work) = (&self.direct[d], &mut *self.work);
            work.choose(mine);
            let chosen = Chosen { set: mine, positions: &work.positions };
            let open = &mut self.open[v];
            open.relieve(&self.groups.variants[v].table);
            let (hash_key, ask) = (open.hash_key(), open.prefetcher());
            let (plain, keys) = (view.plain(direct.family), &mut work.packed[v]);
            if direct.pack(&plain, chosen, keys, hash_key, move |h| ask.prefetch(h)) {
                self.join(batch, mine, marked, v);
            } else {
                left = left.or(mine);
            }
        }
        left
    }

    /// Takes rows in whose keys stand in columns.
    fn take_columns(&mut self, batch: &Batch<'_>, rows: Bits, marked: Marked) {
        let columns = self.work.key_columns(batch);
        let columns = columns.get();
        let narrow = narrow_rows(&self.spec.parts, columns, rows);
        let wide = rows.minus(narrow);
        if narrow.is_empty() || wide.is_empty() || self.has_room(rows) {
            self.take_layout(batch, columns, (narrow, marked), 0);
            self.take_layout(batch, columns, (wide, marked), 1);
            return;
        }
        // Which session is evicted depends on all rows before, of whatever layout.
        in_turn(rows, narrow, |rows, v| self.take_layout(batch, columns, (rows, marked), v));
    }

    /// Whether no session will have to go for these rows, nor one be refused.
    fn has_room(&self, rows: Bits) -> bool {
        let more = rows.count();
        self.live() + more <= self.max && self.waiting() + more <= self.waiting_max
    }

    /// Takes rows in whose keys all have layout `v`.
    fn take_layout(
        &mut self,
        batch: &Batch<'_>,
        columns: &[&Column],
        (rows, marked): (Bits, Marked),
        v: usize,
    ) {
        if rows.is_empty() {
            return;
        }
        let (texts, work) = (&mut self.groups.texts, &mut *self.work);
        work.choose(rows);
        let chosen = Chosen { set: rows, positions: &work.positions };
        let (layout, arena) = (&self.spec.layouts[v], &batch.ctx.regs.arena);
        pack(layout, columns, chosen, texts, arena, &mut work.packed[v]);
        self.open[v].relieve(&self.groups.variants[v].table);
        work.packed[v].hash(self.open[v].hash_key());
        let ask = self.open[v].prefetcher();
        work.packed[v].hashes[..work.packed[v].len].iter().for_each(|&h| ask.prefetch(h));
        self.join(batch, rows, marked, v);
    }

    /// Finds or begins the session of each row whose key was packed, and updates its aggregates.
    fn join(&mut self, batch: &Batch<'_>, rows: Bits, marked: Marked, v: usize) {
        let n = self.work.positions.len();
        let turns = std::mem::take(&mut self.turns);
        let (session, clock) = (self.session, batch.clock);
        let times = batch.ctx.column(self.time).word();
        let terms = Terms { session, times, clock, turns: &turns, marked };
        let (mut at, mut refused) = (0, false);
        loop {
            let work = &mut *self.work;
            let variant = &mut self.groups.variants[v];
            let coming = Coming { keys: &work.packed[v], positions: &work.positions };
            if at == 0 {
                self.open[v].prepare(&variant.table, &coming);
            }
            at = self.open[v].join(&mut variant.table, &coming, &terms, at, &mut work.ids);
            if at >= n {
                break;
            }
            let row = self.join_slowly(at, &terms, v);
            refused |= row == NO_ROW;
            self.work.ids[at] = row;
            at += 1;
        }
        self.turns = turns;
        let (mut rows, work) = (rows, &mut *self.work);
        if refused {
            let (left, dropped) = drop_refused(rows, &mut work.positions, &mut work.ids);
            rows = left;
            self.evicted += dropped;
        }
        update_all(&mut self.groups.variants[v], work, batch, rows);
    }

    /// The session of row `j` of those at hand, of which one ends or begins. [`NO_ROW`] where there
    /// is no room for one.
    #[inline(never)]
    fn join_slowly(&mut self, j: usize, terms: &Terms<'_>, v: usize) -> u32 {
        let i = self.work.positions[j] as usize;
        let came = terms.row(i);
        let any_begins = self.closing.unless.is_some();
        let (closes, begins) = (terms.marked.until.has(i), terms.marked.unless.has(i));
        let role = Role { closes, begins, any_begins };
        let table = &mut self.groups.variants[v].table;
        let found = self.open[v].find(table, &self.work.packed[v], j);
        let begins = (self.session, begins);
        let over =
            found.and_then(|row| Some((row, open::ends_before(table, row, begins, came.ts)?)));
        let lags = match (found, over) {
            (_, Some((row, (reason, end)))) => {
                self.open[v].end(table, row, reason);
                came.ts < end
            }
            (Some(row), None) => open::lags(table, row, (self.session, role), came.ts, self.tick),
            (None, None) => came.ts < self.tick,
        };
        let joined = found.filter(|_| over.is_none());
        let Some(row) = joined.or_else(|| self.begin(j, (came, over.is_some()), v)) else {
            return NO_ROW;
        };
        let table = &mut self.groups.variants[v].table;
        let full = open::touch(table, row, self.session, came);
        if lags {
            self.open[v].count_lagging(table, row);
        }
        if full || closes {
            self.open[v].close(table, row);
        }
        row
    }

    /// Begins a session.
    fn begin(&mut self, j: usize, came: (Came, bool), v: usize) -> Option<u32> {
        if self.waiting() >= self.waiting_max {
            return None;
        }
        while self.live() >= self.max {
            self.evict();
        }
        let variant = &mut self.groups.variants[v];
        let keys = &self.work.packed[v];
        Some(self.open[v].begin(&mut variant.table, &variant.fresh, keys, j, came))
    }

    /// Ends the session whose latest row came before those of all others.
    fn evict(&mut self) {
        loop {
            while let Some((turn, v, row)) = self.doomed.pop() {
                let table = &mut self.groups.variants[v as usize].table;
                // It may have been touched since it was chosen, or be gone.
                if open::turn(table, row) == Some(turn) {
                    self.open[v as usize].end(table, row, EndReason::Resources);
                    self.evicted += 1;
                    return;
                }
            }
            self.choose_doomed();
        }
    }

    /// Chooses sessions to be evicted next, many at a time, since all have to be looked at: of
    /// those that are not chosen all had a row later, and so will those that are still to come.
    #[cold]
    fn choose_doomed(&mut self) {
        for (v, variant) in self.groups.variants.iter().enumerate() {
            let rows = 0..variant.table.len() as u32;
            let live = rows.filter_map(|r| Some((open::turn(&variant.table, r)?, v as u32, r)));
            self.doomed.extend(live);
        }
        let chosen = (self.doomed.len() / EVICT_SESSIONS_SHARE).max(EVICT_SESSIONS);
        if chosen < self.doomed.len() {
            self.doomed.select_nth_unstable(chosen - 1);
            self.doomed.truncate(chosen);
        }
        self.doomed.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Says when sessions come out that end now, for other probes: at this tick, or, of closed ones
    /// that lingered, at one since `passed`.
    fn note_due(&mut self, tick: i64, passed: i64) {
        let due = DueTicks { first: self.session.tick_after(passed), own: tick };
        let due = self.is_probe.then_some(due);
        self.open.iter_mut().for_each(|open| open.due = due);
    }

    /// Hands out the sessions that have ended, by the ticks at which a run over the packets of all
    /// probes puts them out.
    fn put_out_by_due(&mut self, next: &mut Next<'_>) {
        let mut all = BTreeMap::<i64, Vec<(usize, u32)>>::new();
        for (v, open) in self.open.iter().enumerate() {
            for (row, due) in open.ended.iter().zip(&open.dues) {
                all.entry(*due).or_default().push((v, *row));
            }
        }
        for (tick, ended) in all {
            let mut gone = self.spare();
            for v in 0..self.open.len() {
                self.rows.clear();
                self.rows.extend(ended.iter().filter(|(of, _)| *of == v).map(|(_, row)| *row));
                gone.append(&self.groups, v, &self.rows);
            }
            self.evicted += gone.evicted();
            next.groups(tick, gone);
        }
    }

    /// Hands out the sessions that have ended.
    fn put_out(&mut self, at: i64, next: &mut Next<'_>) {
        if self.open.iter().all(|open| open.ended.is_empty()) {
            return;
        }
        match self.is_probe {
            true => self.put_out_by_due(next),
            false => {
                let mut gone = self.spare();
                for (v, open) in self.open.iter().enumerate() {
                    gone.append(&self.groups, v, &open.ended);
                }
                self.evicted += gone.evicted();
                next.groups(at, gone);
            }
        }
        // Where room is short, memory that is not in use goes back.
        let taking = self.open.iter().map(OpenSessions::taking).sum::<usize>();
        let is_sparse = self.spec.share.is_short() && taking < self.groups.len() / 2;
        if self.in_rows && !is_sparse {
            self.open.iter_mut().for_each(OpenSessions::free_ended);
        } else {
            self.start_anew();
        }
    }

    /// Frees what the sessions that have ended keep beside their rows.
    fn start_anew(&mut self) {
        let mut kept = self.spare();
        for (v, open) in self.open.iter_mut().enumerate() {
            self.rows.clear();
            self.rows.extend(open::taking_rows(&self.groups.variants[v].table));
            kept.append(&self.groups, v, &self.rows);
            open.index_anew(&mut kept.variants[v].table);
        }
        self.doomed.clear();
        let before = std::mem::replace(&mut self.groups, kept);
        self.evicted += before.evicted();
        self.recycle(before);
    }

    fn spare(&mut self) -> Groups {
        self.spare.pop().unwrap_or_else(|| Groups::new(&self.spec))
    }
}

impl End for Sessions {
    const HOLDS_ROWS: bool = true;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, _next: &mut Next<'_>) {
        self.time = batch.ctx.value(&Val::Src(batch.time), rows);
        // Rows without a time are in no session.
        let rows = rows.and(batch.ctx.column(self.time).present);
        if rows.is_empty() {
            return;
        }
        self.max = max_open(&self.spec);
        // Sessions that a row ends come out with the next tick: before the clock has started, with
        // that after the first row.
        let passed = match self.tick {
            i64::MIN => rows.iter().map(|row| batch.clock[row]).min().unwrap_or(i64::MIN),
            passed => passed,
        };
        self.note_due(self.session.tick_after(passed), passed);
        let first = self.batches * BATCH as u64;
        self.turns.clear();
        self.turns.extend((first..).take(BATCH));
        self.batches += 1;
        let ClosingRows { until, unless } = &self.closing;
        let [until, unless] = [until, unless]
            .map(|cond| cond.as_ref().map_or(Bits::NONE, |cond| batch.ctx.condition(cond, rows)));
        self.work.evaluate(&self.spec, &self.aggs, batch, (rows, Bits::NONE));
        let late = passed_rows(batch.ctx.column(self.time).word(), batch.clock, rows);
        let marked = Marked { until, unless, slow: until.or(unless).or(late) };
        let plain = self.has_room(rows);
        let rows = if plain { self.take_plain(batch, rows, marked) } else { rows };
        if rows.is_empty() {
            return self.groups.count_held();
        }
        self.work.key_srcs.clear();
        let keys = self.keys.iter().map(|key| batch.ctx.value(key, rows));
        self.work.key_srcs.extend(keys);
        self.take_columns(batch, rows, marked);
        self.groups.count_held();
    }

    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        let tick = self.session.tick(watermark);
        if tick <= self.tick {
            return watermark;
        }
        let passed = std::mem::replace(&mut self.tick, tick);
        self.note_due(tick, passed);
        for (open, variant) in self.open.iter_mut().zip(&mut self.groups.variants) {
            open.expire(&mut variant.table, tick, &mut self.rows);
        }
        // It may be others that need the room, while no row comes here.
        self.max = max_open(&self.spec);
        for _ in 0..self.live().saturating_sub(self.max).min(EVICT_AT_ONCE) {
            self.evict();
        }
        self.put_out(tick, next);
        self.groups.count_held();
        watermark
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        self.note_due(i64::MAX, self.tick);
        for (open, variant) in self.open.iter_mut().zip(&mut self.groups.variants) {
            self.rows.clear();
            self.rows.extend(open::taking_rows(&variant.table));
            for &row in &self.rows {
                open.end(&mut variant.table, row, EndReason::Forced);
            }
        }
        self.put_out(i64::MAX, next);
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.evicted;
        ledger.lagging += self.open.iter().map(|open| open.lagging).sum::<u64>();
    }
}

#[cfg(test)]
mod tests;
