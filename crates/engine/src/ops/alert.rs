//! `alert`: tells when something begins to be wrong, and when that has ended.
//!
//! | | |
//! |---|---|
//! | Syntax | `alert "TEXT" severity S key COLUMN, … hold D repeat D storm N max N category "C" technique "T" next "TEXT"` |
//! | Emits | `start`, `ongoing` on push; `end` when a later row of the key comes, or when the watermark passes a whole second (of shorter holds, a multiple of the hold, or of 1 ms if that is longer); `open` at the end of the input; of keys that begin when `storm` (default 100) have begun in the minute, such rows of all together |
//! | Order | of rows that come, kept; of ends that come at once, by the time of the end, then by key |
//! | State | per key that fires its latest time, the row with its peak, and what is counted of it; `max` (default 64 Ki) keys |
//! | Full | the key whose latest row came first is ended, and counted as evicted |
//! | Late | a late row asserts its key as if it came at the watermark |
//! | Merge | runs after the rows of all workers are merged |
//! | Exact? | exact |

mod evidence;
mod firing;
mod report;
mod saved;
mod storm;

use super::operator::Batch;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::{Src, Val};
use crate::hold::{Hold, known};
use crate::node::{End, Next};
use crate::room::{RoomCharge, RoomShare};
use crate::rows::cell;
use crate::suppress::{SuppressionList, Suppressor};
use evidence::Evidence;
use firing::{Firing, FiringKeys, Told};
use report::Report;
use std::mem::swap;
use storm::Storm;
use weir_base::alert::AlertState;
use weir_packet::bits::Bits;
use weir_plan::{Alert, Schema, Type, Value};

/// Where the parts of a row stand.
pub(crate) struct AlertInput {
    pub(crate) ts: Src,
    /// When the first and the last packet was that counts.
    pub(crate) packets: [Option<Src>; 2],
    pub(crate) message: Src,
    /// The compared value and its threshold.
    pub(crate) compared: Option<[Src; 2]>,
    pub(crate) completeness: Option<Src>,
    pub(crate) community: Option<Src>,
    /// The advice on what to look at next.
    pub(crate) next_step: Option<Src>,
    /// The columns that come out after those of the alert, and their types.
    pub(crate) evidence: Vec<(Src, Type)>,
}

impl AlertInput {
    fn all(&self) -> impl Iterator<Item = Src> {
        let single = [&self.completeness, &self.community, &self.next_step];
        let single = single.into_iter().chain(&self.packets).flatten();
        let evidence = self.evidence.iter().map(|(src, _)| src);
        let fixed = [&self.ts, &self.message].into_iter();
        fixed.chain(self.compared.iter().flatten()).chain(single).chain(evidence).copied()
    }

    /// The evidence in row `i`.
    fn read(&self, batch: &Batch<'_>, i: usize) -> Evidence {
        let arena = &batch.ctx.regs.arena;
        let value = |src: Src, ty: &Type| cell(batch.ctx.column(src), i, ty, arena);
        let float = |src: Src| match value(src, &Type::Float) {
            Value::Float(x) => Some(x),
            _ => None,
        };
        let time = |src: Src| match value(src, &Type::Time) {
            Value::Time(t) => Some(t),
            _ => None,
        };
        let text = |src: Option<Src>| src.map_or(Value::Absent, |src| value(src, &Type::Str));
        let compared = self.compared.map(|both| both.map(float));
        let (ts, [first, last]) = (time(self.ts), self.packets.map(|src| src.and_then(time)));
        Evidence {
            ts: ts.max(first),
            first: first.or(ts),
            last,
            message: value(self.message, &Type::Str),
            value: compared.and_then(|c| c[0]),
            threshold: compared.and_then(|c| c[1]),
            completeness: self.completeness.and_then(float),
            community: text(self.community),
            next_step: text(self.next_step),
            rest: self.evidence.iter().map(|(src, ty)| value(*src, ty)).collect(),
        }
    }
}

/// Tells of keys when they begin to fire, and when they have ended.
pub(crate) struct Alerts {
    input: AlertInput,
    schema: Schema,
    firing: FiringKeys,
    storm: Storm,
    /// The room for them.
    share: RoomShare,
    charge: RoomCharge,
    report: Report,
    /// Says what is not reported.
    suppressor: Option<Suppressor>,
    suppressed: u64,
    evicted: u64,
    /// Scratch: the key of the row at hand.
    key: Vec<u8>,
}

/// Bytes of a text, as most have at most; of a whole message.
const TEXT_BYTES: usize = 64;
const MESSAGE_BYTES: usize = 256;

/// Bytes that a key may take which fires, of rows of these columns with usual texts: its own bytes
/// twice, and the row with its peak.
pub(crate) fn key_bytes(plan: &Alert, before: &Schema) -> usize {
    let texts = |ty: &Type| if matches!(ty, Type::Str | Type::Bytes) { TEXT_BYTES } else { 0 };
    let of_key = |(_, at): &(String, usize)| {
        let ty = &before.columns[*at].ty;
        1 + size_of::<u128>() + texts(ty)
    };
    let key = plan.keys.iter().map(of_key).sum::<usize>();
    let cell = |ty: &Type| size_of::<Value>() + texts(ty);
    let row = before.columns.iter().map(|c| cell(&c.ty)).sum::<usize>();
    let next = if plan.next.is_empty() { 0 } else { MESSAGE_BYTES };
    FiringKeys::EACH + 2 * key + row + MESSAGE_BYTES + next
}

/// When a row was.
#[derive(Clone, Copy)]
struct When {
    /// Its event time, if it has one.
    time: Option<i64>,
    /// The later of that and the watermark.
    came: i64,
}

impl Alerts {
    /// The alert of a plan over rows of these columns, which puts out rows of `schema`.
    pub(crate) fn new(
        plan: &Alert,
        input: AlertInput,
        share: RoomShare,
        (before, schema): (&Schema, Schema),
    ) -> Alerts {
        Alerts {
            charge: share.charge(),
            share,
            input,
            firing: FiringKeys::default(),
            storm: Storm::new(),
            report: Report::new(plan, before, &schema),
            schema,
            suppressor: None,
            suppressed: 0,
            evicted: 0,
            key: Vec::new(),
        }
    }

    /// Lets row `i` assert the alert of its key.
    fn assert_row(&mut self, batch: &Batch<'_>, i: usize, next: &mut Next<'_>) {
        let times = batch.ctx.column(batch.time);
        let time = times.present.has(i).then(|| times.word()[i] as i64);
        let when = When { time, came: batch.clock[i] };
        self.report.order = batch.order[i];
        self.write_key(batch, i);
        let seen = self.input.read(batch, i);
        let slot = self.firing.find(&self.key);
        let is_over = |slot: &u32| when.came > self.report.until(self.firing.get(*slot));
        match (slot, slot.as_ref().is_some_and(is_over)) {
            (Some(slot), false) => self.go_on(slot, seen, when, next),
            (Some(slot), true) => {
                let ended = self.firing.restart(slot, first(seen, when, &self.report.plan));
                let until = self.report.until(&ended);
                self.report.end(&ended, AlertState::End, until, next);
                self.begin(slot, when, next);
            }
            (None, _) => {
                while self.firing.len() as u64 >= self.share.bound()
                    && let Some(ended) = self.firing.take_oldest(|_| true)
                {
                    self.report.end(&ended, AlertState::End, when.came, next);
                    self.evicted += 1;
                }
                let slot = self.firing.start(&self.key, first(seen, when, &self.report.plan));
                self.charge.set(self.firing.len() as u64);
                self.begin(slot, when, next);
            }
        }
    }

    /// Puts out that a key began to fire, unless a list says not to, or it is one of very many.
    fn begin(&mut self, slot: u32, when: When, next: &mut Next<'_>) {
        let firing = self.firing.get_mut(slot);
        if is_suppressed(self.suppressor.as_ref(), &firing.peak, when) {
            self.suppressed += 1;
            return;
        }
        if !self.storm.admits(when.came, self.report.plan.storm_keys) {
            firing.told = Told::Together;
            let seen = firing.peak.clone();
            return self.join_storm(seen, when, next);
        }
        firing.shown = true;
        let seen = (&firing.peak, firing.peak.value);
        self.report.put(firing, seen, AlertState::Start, when.time, next);
    }

    /// A key that begins with this row is reported with others.
    fn join_storm(&mut self, seen: Evidence, when: When, next: &mut Next<'_>) {
        let is_over = |all: &mut Box<Firing>| when.came > self.report.until(all);
        if let Some(ended) = self.storm.all.take_if(is_over) {
            let until = self.report.until(&ended);
            self.report.end(&ended, AlertState::End, until, next);
        }
        let Alerts { report, storm, .. } = self;
        let Some(all) = &mut storm.all else {
            let begins = first(seen, when, &report.plan);
            let begins = Firing { shown: true, told: Told::AsAll, ..begins };
            let all = storm.all.insert(Box::new(begins));
            let seen = (&all.peak, all.peak.value);
            return report.put(all, seen, AlertState::Start, when.time, next);
        };
        all.at = all.at.max(when.came);
        all.first = [all.first, seen.first].into_iter().flatten().min();
        all.add(&seen, last_packet(&seen, when, &report.plan));
        let exceeds = seen.exceeds(&all.peak, report.plan.compared.as_ref().map(|c| c.peak));
        let since = when.came.saturating_sub(all.put_at);
        if report.plan.repeat_ns.is_some_and(|ns| since >= ns) {
            all.put_at = when.came;
            let peak = if exceeds { seen.value } else { all.peak.value };
            report.put(all, (&seen, peak), AlertState::Ongoing, when.time, next);
        }
        if exceeds {
            all.peak = seen;
        }
    }

    /// A row of a key that is reported with others.
    fn go_on_together(&mut self, seen: &Evidence, when: When) {
        if let Some(all) = &mut self.storm.all {
            all.at = all.at.max(when.came);
            all.last = all.last.max(last_packet(seen, when, &self.report.plan));
        }
    }

    /// A row of a key that fires.
    fn go_on(&mut self, slot: u32, seen: Evidence, when: When, next: &mut Next<'_>) {
        let plan = &self.report.plan;
        let firing = self.firing.assert_at(slot, when.came);
        firing.add(&seen, last_packet(&seen, when, plan));
        if firing.told == Told::Together {
            return self.go_on_together(&seen, when);
        }
        let exceeds = seen.exceeds(&firing.peak, plan.compared.as_ref().map(|c| c.peak));
        let since = when.came.saturating_sub(firing.put_at);
        let is_due = !firing.shown || plan.repeat_ns.is_some_and(|ns| since >= ns);
        if is_due && !is_suppressed(self.suppressor.as_ref(), &seen, when) {
            if !firing.shown && !self.storm.admits(when.came, plan.storm_keys) {
                firing.told = Told::Together;
                return self.join_storm(seen, when, next);
            }
            let state = if firing.shown { AlertState::Ongoing } else { AlertState::Start };
            (firing.put_at, firing.shown) = (when.came, true);
            let peak = if exceeds { seen.value } else { firing.peak.value };
            self.report.put(firing, (&seen, peak), state, when.time, next);
        }
        if exceeds {
            firing.peak = seen;
        }
    }

    /// Writes the key of row `i` as bytes that no other key has.
    fn write_key(&mut self, batch: &Batch<'_>, i: usize) {
        self.key.clear();
        for (_, at) in &self.report.keys {
            let (src, ty) = &self.input.evidence[*at];
            let column = batch.ctx.column(*src);
            self.key.push(u8::from(column.present.has(i)));
            if !column.present.has(i) {
                continue;
            }
            let raw = column.raw(i);
            match ty {
                Type::Str | Type::Bytes => {
                    let text = batch.ctx.regs.arena.get(raw as u64);
                    self.key.extend((text.len() as u64).to_le_bytes());
                    self.key.extend(text);
                }
                _ => self.key.extend(raw.to_le_bytes()),
            }
        }
    }

    /// Puts out the keys whose latest time satisfies a condition, each at its own time.
    fn put_out(
        &mut self,
        state: AlertState,
        which: impl Fn(&Alert, i64) -> bool,
        next: &mut Next<'_>,
    ) {
        let mut ended = Vec::new();
        while let Some(firing) = self.firing.take_oldest(|at| which(&self.report.plan, at)) {
            ended.push(firing);
        }
        self.report.sort(&mut ended);
        // The storm comes last: its keys have ended by then.
        let storm = self.storm.all.take_if(|all| which(&self.report.plan, all.at));
        ended.extend(storm.map(|all| *all));
        for firing in &ended {
            let time = match state {
                AlertState::Open => firing.last.unwrap_or(0),
                _ => self.report.until(firing),
            };
            self.report.end(firing, state, time, next);
        }
        self.report.flush(next);
    }
}

/// The state of a key with its first row.
fn first(seen: Evidence, when: When, plan: &Alert) -> Firing {
    Firing {
        at: when.came,
        put_at: when.came,
        first: seen.first,
        last: last_packet(&seen, when, plan),
        shown: false,
        told: Told::Alone,
        rows: 1,
        least: seen.completeness,
        peak: seen,
    }
}

/// When the last packet was that counts for a row: where no column says it, the end of its window;
/// where the column has no value, for there was no packet, the time of the row.
fn last_packet(seen: &Evidence, when: When, plan: &Alert) -> Option<i64> {
    let over_ns = if plan.last.is_some() { 0 } else { plan.over_ns };
    seen.last.or(when.time.map(|t| t.saturating_add(over_ns)))
}

/// Whether a list says that this is not reported.
fn is_suppressed(suppressor: Option<&Suppressor>, seen: &Evidence, when: When) -> bool {
    suppressor.is_some_and(|list| list.suppresses(&seen.rest, when.came))
}

impl Hold for Alerts {
    /// Only from one whose rows look the same.
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Alerts>(old) else { return false };
        if self.schema != old.schema {
            return false;
        }
        swap(&mut self.firing, &mut old.firing);
        swap(&mut self.storm, &mut old.storm);
        swap(&mut self.report.tick, &mut old.report.tick);
        swap(&mut self.report.order, &mut old.report.order);
        swap(&mut self.suppressed, &mut old.suppressed);
        swap(&mut self.evicted, &mut old.evicted);
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.pass_keys(at)
    }
}

impl End for Alerts {
    const HOLDS_ROWS: bool = true;
    const PASSES_ROWS: bool = true;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, next: &mut Next<'_>) {
        self.suppressor.iter_mut().for_each(Suppressor::refresh);
        for src in self.input.all().chain([batch.time]) {
            batch.ctx.value(&Val::Src(src), rows);
        }
        for i in rows.iter() {
            self.assert_row(batch, i, next);
        }
        self.report.flush(next);
    }

    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        let tick = self.report.plan.tick(watermark);
        if tick > self.report.tick {
            self.put_out(AlertState::End, |plan, at| plan.until(at) < tick, next);
            self.charge.set(self.firing.len() as u64);
            self.report.tick = tick;
        }
        self.report.tick
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        self.put_out(AlertState::Open, |_, _| true, next);
    }

    fn suppress(&mut self, list: &SuppressionList) {
        let columns = self.schema.columns[Alert::COLUMNS..].iter().map(|c| c.name.clone());
        let rule = &self.report.plan.rule;
        self.suppressor = Some(Suppressor::new(list, rule, columns.collect()));
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.suppressed += self.suppressed;
        ledger.evicted += self.evicted;
    }
}

#[cfg(test)]
mod tests;
