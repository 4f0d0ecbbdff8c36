//! `summarize` of the naive model.
//!
//! Rows are kept by pane and key: a pane is the longest stretch of time that no window starts or
//! ends within, and a window where windows do not overlap. When the watermark, less the lateness,
//! has come to the end of a window, its row for each key is made of the values of all its panes, in
//! the order that rows came. Only what rounds is worked out pane by pane, and these in the order of
//! time.
//!
//! Windows come out in the order of their starts. Without `fill` they are those that hold a row.
//! With it, all from the first on that held one; in each, every key that had a row so far and is
//! not idle has one too, and `from start` the rows of the windows before come out with the first
//! window of a key. Of more than [`FILL_MAX`] windows in a row that held none the further ones are
//! left out, and counted; so are all of them once as many rows have been filled in as the plan
//! allows since the last window that held rows; one that then comes out with its own rows alone is
//! counted if it lacks any.

use super::context::StageContext;
use super::row::{Mark, Row};
use super::zones;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use weir_plan::limits::FILL_MAX;
use weir_plan::place::rounds;
use weir_plan::{Agg, AggFunc, Summarize, Value, Window};

/// The values that each aggregate has taken, each with the number of its row.
type Values = Vec<Vec<(u64, Value)>>;

/// The same by start of the pane and key.
type Taken = BTreeMap<(i128, Vec<Value>), Values>;

/// The memory of a `summarize`.
pub(super) struct PaneGroups {
    taken: Taken,
    /// By start of the pane, the rows that are in groups, and those that found no room.
    counts: BTreeMap<i128, [u64; 2]>,
    /// Rows so far.
    rows: u64,
    /// The next window to come out starts no earlier.
    next: i128,
    /// With `fill`, the keys that had a row, and the start of the last window in which they had.
    known: BTreeMap<Vec<Value>, i128>,
    /// The start of the first window that held a row, and of the last.
    first: Option<i128>,
    last: Option<i128>,
    /// The windows and rows filled in since.
    filled: Filled,
}

impl PaneGroups {
    pub(super) fn new(s: &Summarize) -> PaneGroups {
        let mut taken = BTreeMap::new();
        if s.window == Window::All && s.keys.is_empty() {
            taken.insert((0, Vec::new()), vec![Vec::new(); s.aggs.len()]);
        }
        let known = BTreeMap::new();
        let (first, last, filled) = (None, None, Filled::default());
        let counts = BTreeMap::new();
        PaneGroups { taken, counts, rows: 0, next: i128::MIN, known, first, last, filled }
    }
}

impl PaneGroups {
    /// Of the rows of these panes the share that is in groups.
    fn share(&self, panes: Range<i128>) -> f64 {
        let all = self.counts.range(panes).map(|(_, counts)| counts);
        let [taken, evicted] = all.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        if evicted == 0 { 1.0 } else { taken as f64 / (taken + evicted) as f64 }
    }
}

/// The lengths of windows of time.
#[derive(Clone, Copy)]
struct Lengths {
    over: i128,
    every: i128,
    pane: i128,
}

impl Lengths {
    /// None of the whole input.
    fn of(window: Window) -> Option<Lengths> {
        let [over, every, pane] = [window.over()?, window.every()?, window.pane()?].map(i128::from);
        Some(Lengths { over, every, pane })
    }

    /// The start of the first window that ends after `t`.
    fn first_ending_after(self, t: i128) -> i128 {
        floor(t - self.over, self.every) + self.every
    }
}

impl StageContext<'_> {
    /// Adds a row to its group, or counts why not.
    pub(super) fn group(&mut self, s: &Summarize, g: &mut PaneGroups, watermark: Mark, row: &Row) {
        let lengths = Lengths::of(s.window);
        let start = match (lengths, row.ts) {
            (None, _) => 0,
            (Some(lengths), Some(ts)) => floor(clock(s, ts).into(), lengths.pane),
            // Without a time, it is in no window.
            (Some(_), None) => return,
        };
        let end = lengths.map(|l| start + l.pane);
        let passed = |lateness: i64| match (end, watermark) {
            (Some(end), Mark::At(w)) => end <= closing(s, w, lateness),
            _ => false,
        };
        if passed(s.lateness_ns) {
            self.late += 1;
            return;
        }
        let key = s.keys.iter().map(|k| self.eval.eval(&k.1, row, &[])).collect();
        let mut value = |agg: &Agg| {
            let holds = agg.cond.as_ref().is_none_or(|cond| self.eval.holds(cond, row, &[]));
            let counts = holds && (agg.func != AggFunc::Late || passed(0));
            counts.then(|| match &agg.arg {
                Some(arg) => self.eval.argument(arg, row),
                None => Value::Bool(true),
            })
        };
        let values: Vec<Option<Value>> = s.aggs.iter().map(&mut value).collect();
        let of_pane = || g.taken.keys().filter(|(other, _)| *other == start).count();
        let is_many = |n: usize| n as u64 >= s.max_groups;
        // The groups of all panes are known at once, and are no fewer.
        let full = is_many(g.taken.len()) && is_many(of_pane());
        if full && !g.taken.contains_key(&(start, Vec::clone(&key))) {
            self.evicted += 1;
            g.counts.entry(start).or_default()[1] += 1;
            return;
        }
        g.rows += 1;
        g.counts.entry(start).or_default()[0] += 1;
        let group = g.taken.entry((start, key)).or_insert(vec![Vec::new(); s.aggs.len()]);
        for (value, values) in values.into_iter().zip(group) {
            values.extend(value.filter(Value::exists).map(|value| (g.rows, value)));
        }
    }

    /// The rows of the windows that a watermark closes, and the watermark downstream of them.
    pub(super) fn close(
        &mut self,
        s: &Summarize,
        g: &mut PaneGroups,
        mark: Mark,
    ) -> (Vec<Row>, Mark) {
        let mut rows = Vec::new();
        let Some(lengths) = Lengths::of(s.window) else {
            if mark != Mark::End {
                return (rows, Mark::At(i64::MIN));
            }
            let share = g.share(i128::MIN..i128::MAX);
            self.put_out(s, None, (std::mem::take(&mut g.taken), share), &mut rows);
            return (rows, Mark::End);
        };
        // The first window that stays open, if any does.
        let open = match mark {
            Mark::At(w) => Some(lengths.first_ending_after(closing(s, w, s.lateness_ns))),
            Mark::End => None,
        };
        loop {
            let oldest = g.taken.keys().next().map(|(pane, _)| *pane);
            let held = oldest
                .map(|pane| first_shown(s, lengths, lengths.first_ending_after(pane).max(g.next)));
            let Some(to) = held.into_iter().chain(open).min() else { break };
            if g.next < to && s.fill.is_some() && g.last.is_some() {
                self.fill(s, g, (lengths, to), &mut rows);
            }
            let Some(start) = held.filter(|held| open.is_none_or(|open| *held < open)) else {
                break;
            };
            let panes = start..start + lengths.over;
            let inside = g.taken.iter().filter(|((pane, _), _)| panes.contains(pane));
            let mut window: Taken =
                inside.map(|(key, values)| (key.clone(), values.clone())).collect();
            if s.fill.is_some() {
                let new = self.remember(s, g, lengths, start, &window);
                self.fill_before(s, g, (lengths, start, &new), &mut rows);
                if g.filled.has_room(s) {
                    g.filled.rows += add_known(s, g, start, &mut window);
                } else if add_known(s, g, start, &mut window.clone()) > 0 {
                    self.unfilled += 1;
                }
            }
            let share = g.share(panes);
            self.put_out(s, Some(start), (window, share), &mut rows);
            g.next = start + lengths.every;
            g.taken.retain(|(pane, _), _| *pane >= g.next);
            g.counts.retain(|pane, _| *pane >= g.next);
        }
        let open = open.map(|open| if s.is_timed() { when(s, clamp(open)) } else { i64::MIN });
        (rows, open.map_or(Mark::End, Mark::At))
    }

    /// Puts out windows without rows, up to that which starts at `to`.
    fn fill(
        &mut self,
        s: &Summarize,
        g: &mut PaneGroups,
        (l, to): (Lengths, i128),
        rows: &mut Vec<Row>,
    ) {
        let idle = s.fill.and_then(|fill| fill.idle_ns);
        let last = g.last.expect("a window came out");
        let end = idle.map_or(to, |idle| to.min(last + l.over + idle as i128));
        g.next = first_shown(s, l, g.next);
        while g.next < end && g.filled.windows < FILL_MAX && g.filled.has_room(s) {
            let mut window = BTreeMap::new();
            g.filled.rows += add_known(s, g, g.next, &mut window);
            self.put_out(s, Some(g.next), (window, 1.0), rows);
            g.next = first_shown(s, l, g.next + l.every);
            g.filled.windows += 1;
        }
        if g.next < end {
            let left = shown_within(s, l, g.next..end);
            self.unfilled = self.unfilled.saturating_add(left.try_into().unwrap_or(u64::MAX));
        }
        g.next = to;
    }

    /// With `from start`, puts out the rows that new keys have in the windows before this one.
    fn fill_before(
        &mut self,
        s: &Summarize,
        g: &mut PaneGroups,
        (l, to, new): (Lengths, i128, &[Vec<Value>]),
        rows: &mut Vec<Row>,
    ) {
        let mut start = g.first.unwrap_or(to);
        if new.is_empty() || !s.fill.is_some_and(|fill| fill.from_start) {
            return;
        }
        while start < to && g.filled.has_room(s) {
            let groups =
                new.iter().map(|key| ((start, key.clone()), vec![Vec::new(); s.aggs.len()]));
            self.put_out(s, Some(start), (groups.collect(), 1.0), rows);
            g.filled.rows += new.len() as u64;
            start = first_shown(s, l, start + l.every);
        }
        let left = shown_within(s, l, start..to);
        self.unfilled = self.unfilled.saturating_add(left.try_into().unwrap_or(u64::MAX));
    }

    /// Remembers the keys of a window that held rows, in their order as long as there is room, and
    /// returns those that are new.
    fn remember(
        &mut self,
        s: &Summarize,
        g: &mut PaneGroups,
        l: Lengths,
        start: i128,
        window: &Taken,
    ) -> Vec<Vec<Value>> {
        g.first = g.first.or(Some(start));
        g.last = Some(start);
        g.filled = Filled::default();
        let mut new = Vec::new();
        if let Some(idle) = s.fill.and_then(|fill| fill.idle_ns) {
            g.known.retain(|_, seen| start < *seen + l.over + idle as i128);
        }
        let keys: BTreeSet<&Vec<Value>> = window.keys().map(|(_, key)| key).collect();
        for key in keys {
            if g.known.contains_key(key) || (g.known.len() as u64) < s.max_groups {
                if g.known.insert(key.clone(), start).is_none() {
                    new.push(key.clone());
                }
            } else {
                self.evicted += 1;
            }
        }
        new
    }

    /// The rows of one window, by key, and the share of its rows that these are of.
    fn put_out(
        &mut self,
        s: &Summarize,
        start: Option<i128>,
        (window, share): (Taken, f64),
        rows: &mut Vec<Row>,
    ) {
        let mut keys: BTreeMap<Vec<Value>, Vec<Values>> = BTreeMap::new();
        for ((_, key), values) in window {
            keys.entry(key).or_default().push(values);
        }
        for (mut cells, panes) in keys {
            let ts = start.map(|start| when(s, clamp(start)));
            if let Some(ts) = ts {
                cells.insert(0, Value::Time(ts));
            }
            for (a, agg) in s.aggs.iter().enumerate() {
                let mut parts: Vec<_> = panes.iter().map(|aggs| aggs[a].clone()).collect();
                let bare = |values: Vec<(u64, Value)>| values.into_iter().map(|(_, v)| v).collect();
                cells.push(if agg.func == AggFunc::Completeness {
                    match self.losses.of_window(s, start.map(clamp)) {
                        Value::Float(seen) => Value::Float(seen * share),
                        other => other,
                    }
                } else if rounds(agg) {
                    let parts: Vec<Vec<Value>> = parts.into_iter().map(bare).collect();
                    self.eval.rounded(agg, &parts)
                } else {
                    let mut all: Vec<_> = parts.drain(..).flatten().collect();
                    all.sort_by_key(|(row, _)| *row);
                    self.eval.aggregate(agg, &bare(all))
                });
            }
            rows.push(Row { ts: ts.filter(|_| s.is_timed()), packet: None, cells });
        }
    }
}

/// The windows and rows filled in since the last window that held rows.
#[derive(Default)]
struct Filled {
    /// Windows that held no row.
    windows: u64,
    /// Rows, in these and others.
    rows: u64,
}

impl Filled {
    /// Whether more may be.
    fn has_room(&self, s: &Summarize) -> bool {
        s.fill.is_some_and(|fill| self.rows < fill.max_rows)
    }
}

/// Gives a window groups for the known keys that are not idle and that it lacks; says how many.
/// They have no values, so that it matters to nobody in which pane they are.
fn add_known(s: &Summarize, g: &PaneGroups, start: i128, window: &mut Taken) -> u64 {
    let over = s.window.over().unwrap_or(0) as i128;
    let idle = s.fill.and_then(|fill| fill.idle_ns);
    let mut added = 0;
    for (key, seen) in &g.known {
        let is_there = *seen == start;
        if !is_there && idle.is_none_or(|idle| start < seen + over + idle as i128) {
            window.insert((start, key.clone()), vec![Vec::new(); s.aggs.len()]);
            added += 1;
        }
    }
    added
}

/// The time that the clock of the windows shows at a time of packets.
fn clock(s: &Summarize, t: i64) -> i64 {
    s.zone.map_or(t, |zone| zones::clock(zone, t))
}

/// When the clock of the windows showed this first.
fn when(s: &Summarize, shown: i64) -> i64 {
    s.zone.map_or(shown, |zone| zones::when(zone, shown))
}

/// The first window from `start` on that a time lies in: whole ones are left out where clocks are
/// set forward.
fn first_shown(s: &Summarize, l: Lengths, start: i128) -> i128 {
    s.zone.map_or(start, |zone| zones::first_shown(zone, start, l.every))
}

/// How many such windows start within this.
fn shown_within(s: &Summarize, l: Lengths, starts: Range<i128>) -> i128 {
    let all = (starts.end - starts.start + l.every - 1) / l.every;
    let within = (starts.start, starts.end);
    all - s.zone.map_or(0, |zone| zones::count_left_out(zone, within, l.every))
}

/// The time that the clock of the windows shows at a watermark, less the time for which they stay
/// open.
fn closing(s: &Summarize, watermark: i64, lateness: i64) -> i128 {
    match s.zone {
        None => watermark as i128 - lateness as i128,
        Some(_) => clock(s, watermark.saturating_sub(lateness)).into(),
    }
}

/// The largest multiple of `d` at or below `t`.
fn floor(t: i128, d: i128) -> i128 {
    t.div_euclid(d) * d
}

/// As far as time goes.
fn clamp(t: i128) -> i64 {
    t.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}
