//! `summarize`: groups rows by key and window, and aggregates each group.
//!
//! | | |
//! |---|---|
//! | Syntax | `summarize NAME = AGG, … by KEY, … over DURATION every DURATION lateness DURATION fill [from start\|idle DURATION] max N`; in Rust, with aggregates of one's own by `aggregate` |
//! | Emits | when the watermark, less `lateness`, passes a window's end; without a window at the end of the input |
//! | Order | by window, then by key; an absent key part comes first; with `fill from start` the windows before the first of a key come right before it |
//! | State | per group its key and the cells of its aggregates, padded to 8, 16, 32 or a multiple of 64 bytes; `max` groups a window, or a pane where windows overlap; with `fill`, as many keys |
//! | Full | rows of further groups are not aggregated, and counted as evicted; where shared memory is full, so are the rows of the groups that took in fewest, which go; of windows in a row without any row, which `fill` makes up for, those beyond 3,600, and all once 16 Mi rows are filled in since the last window with some, are left out, or come out with just their own rows, and counted as unfilled |
//! | Late | a row whose window, or pane, has closed is not aggregated, and counted as late |
//! | Merge | groups of equal key and window merge by the laws of their aggregates, and so do the panes of a window |
//! | Exact? | as its aggregates |
//!
//! A worker's half ([`Summarize`]) takes rows into [`Groups`], one a window; these are merged with
//! those of other workers, and the other half ([`Emitter`](super::emit::Emitter)) emits rows.

use super::groups::{Groups, Spec, make_room};
use super::operator::Batch;
use super::window_time::{clock_times, late_rows, one_window, window_start};
use super::work::{AggArgs, GroupingScratch, drop_refused, in_turn, update_all};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::Val;
use crate::hold::{Hold, known};
use crate::key::{Chosen, Direct, narrow_rows, pack};
use crate::limits::{SPARE_GROUPS, WINDOWS_MAX};
use crate::node::{End, Next};
use std::mem::swap;
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type};

/// Takes rows into their groups.
pub(crate) struct Summarize {
    spec: Arc<Spec>,
    keys: Vec<Val>,
    aggs: Vec<AggArgs>,
    /// How keys of plain packets are made, if they can be made directly.
    direct: Vec<Direct>,
    /// The open windows, by start; without windows just one, at 0.
    open: Vec<(i64, Groups)>,
    spare: Vec<Groups>,
    /// Groups that new tables have room for.
    expected: usize,
    watermark: i64,
    late: u64,
    evicted: u64,
    /// Whether there was room in shared memory for the latest rows, or groups went for them.
    overdraws: bool,
    /// Whether an aggregate counts late rows.
    counts_late: bool,
    work: Box<GroupingScratch>,
}

/// Whether an aggregate must see the rows of a group in their order. Making some keys directly
/// takes those rows first.
fn needs_order(agg: &Agg) -> bool {
    matches!(agg.func, AggFunc::User(_)) || agg.arg.as_ref().is_some_and(|a| a.ty == Type::Float)
}

/// The packet field that an expression is.
pub(crate) fn packet_field(e: &Expr) -> Option<FieldId> {
    match e.kind {
        ExprKind::Field(id) => Some(id),
        _ => None,
    }
}

/// Whether it does not matter which of so many rows come first to a window with room for so many
/// groups: all of them find room, or none that needs a group does.
fn fits_in_any_order(room: u64, rows: usize) -> bool {
    room == 0 || room >= rows as u64
}

impl Summarize {
    /// Groups rows by `keys`; `aggs` are arguments (tuples taken apart) and conditions.
    pub(crate) fn new(spec: Arc<Spec>, keys: Vec<Val>, aggs: Vec<AggArgs>) -> Summarize {
        let fields: Option<Vec<FieldId>> =
            spec.plan.keys.iter().map(|(_, e)| packet_field(e)).collect();
        let fields = fields.filter(|_| !spec.plan.aggs.iter().any(needs_order));
        let direct = fields.map_or_else(Vec::new, |fields| Direct::new(&fields, &spec.layouts));
        Summarize {
            counts_late: spec.plan.aggs.iter().any(|agg| agg.func == AggFunc::Late),
            work: GroupingScratch::new(&spec),
            spec,
            keys,
            aggs,
            direct,
            open: Vec::new(),
            spare: Vec::new(),
            expected: 0,
            watermark: i64::MIN,
            late: 0,
            evicted: 0,
            overdraws: true,
        }
    }

    fn take_window(&mut self, batch: &mut Batch<'_>, rows: Bits, start: i64) {
        match self.window_at(start) {
            Some(at) => self.take(batch, rows, at),
            None => self.evicted += rows.count() as u64,
        }
    }

    /// The position of the window that starts at `start`, opened if there is room.
    fn window_at(&mut self, start: i64) -> Option<usize> {
        match self.open.binary_search_by_key(&start, |w| w.0) {
            Ok(at) => Some(at),
            Err(_) if self.open.len() >= WINDOWS_MAX => None,
            Err(at) => {
                let groups = self.spare.pop().unwrap_or_else(|| {
                    let mut groups = Groups::new(&self.spec);
                    groups.reserve(self.expected);
                    groups
                });
                self.open.insert(at, (start, groups));
                Some(at)
            }
        }
    }

    /// Evaluates keys, conditions and arguments once for all windows.
    fn evaluate(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        self.work.direct = self.direct_rows(batch, rows);
        self.evaluate_keys(batch, rows.minus(self.work.direct));
        let late = self.late_rows(batch, rows);
        self.work.evaluate(&self.spec, &self.aggs, batch, (rows, late));
    }

    /// The rows whose windows had closed when they came, if an aggregate asks for them.
    fn late_rows(&self, batch: &Batch<'_>, rows: Bits) -> Bits {
        match self.spec.every().filter(|_| self.counts_late) {
            None => Bits::NONE,
            Some(every) => {
                let start = |t| window_start(self.spec.clock(t), every);
                late_rows(batch.ctx.column(batch.time).word(), batch.clock, start, rows)
            }
        }
    }

    fn evaluate_keys(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        self.work.key_srcs.clear();
        if !rows.is_empty() {
            let keys = self.keys.iter().map(|key| batch.ctx.value(key, rows));
            self.work.key_srcs.extend(keys);
        }
    }

    /// The rows whose keys are made without columns: none where rows must be taken in order, in an
    /// open window or in a new one.
    fn direct_rows(&self, batch: &Batch<'_>, rows: Bits) -> Bits {
        let Some(view) = batch.ctx.view.as_ref().filter(|_| !self.direct.is_empty()) else {
            return Bits::NONE;
        };
        let open = self.open.iter().map(|(_, groups)| groups.len());
        let mut rooms = open.chain([0]).map(|groups| self.room(groups));
        if !rooms.all(|room| fits_in_any_order(room, BATCH)) {
            return Bits::NONE;
        }
        let all = self.direct.iter().map(|d| d.rows(&view.plain(d.family)));
        all.fold(Bits::NONE, Bits::or).and(rows)
    }

    /// Takes rows of one window in.
    fn take(&mut self, batch: &mut Batch<'_>, rows: Bits, window: usize) {
        self.make_room(rows.count());
        let direct = self.work.direct.and(rows);
        let mut others = rows.minus(direct);
        if !direct.is_empty() {
            for d in 0..self.direct.len() {
                others = others.or(self.take_direct(batch, direct, window, d));
            }
            if !others.is_empty() {
                self.evaluate_keys(batch, others);
            }
        }
        if !others.is_empty() {
            self.take_columns(batch, others, window);
        }
    }

    /// Takes the plain packets of one family in; returns those that it could not take.
    fn take_direct(&mut self, batch: &Batch<'_>, rows: Bits, window: usize, d: usize) -> Bits {
        let direct = &self.direct[d];
        let view = batch.ctx.view.as_ref().expect("direct keys are of packets");
        let plain = view.plain(direct.family);
        let rows = rows.and(direct.rows(&plain));
        if rows.is_empty() {
            return rows;
        }
        let work = &mut *self.work;
        work.choose(rows);
        let chosen = Chosen { set: rows, positions: &work.positions };
        let groups = &self.open[window].1;
        let (layout, table) = (direct.layout, &groups.variants[direct.layout].table);
        let (keys, ask) = (&mut work.packed[layout], table.prefetcher());
        if !direct.pack(&plain, chosen, keys, table.hash_key(), move |h| ask.prefetch(h)) {
            return rows;
        }
        self.update(batch, rows, window, layout);
        Bits::NONE
    }

    /// Takes rows in whose keys stand in columns.
    fn take_columns(&mut self, batch: &Batch<'_>, rows: Bits, window: usize) {
        let columns = self.work.key_columns(batch);
        let columns = columns.get();
        let narrow = narrow_rows(&self.spec.parts, columns, rows);
        let wide = rows.minus(narrow);
        let room = self.room(self.open[window].1.len());
        if narrow.is_empty() || wide.is_empty() || fits_in_any_order(room, rows.count()) {
            self.take_layout(batch, columns, narrow, window, 0);
            self.take_layout(batch, columns, wide, window, 1);
            return;
        }
        // The last groups go to the rows that come first, of whatever layout.
        in_turn(rows, narrow, |rows, v| self.take_layout(batch, columns, rows, window, v));
    }

    /// Takes rows whose keys all have layout `v`.
    fn take_layout(
        &mut self,
        batch: &Batch<'_>,
        columns: &[&Column],
        rows: Bits,
        window: usize,
        v: usize,
    ) {
        if rows.is_empty() {
            return;
        }
        let (groups, work) = (&mut self.open[window].1, &mut *self.work);
        work.choose(rows);
        let chosen = Chosen { set: rows, positions: &work.positions };
        let (layout, arena) = (&self.spec.layouts[v], &batch.ctx.regs.arena);
        pack(layout, columns, chosen, &mut groups.texts, arena, &mut work.packed[v]);
        groups.variants[v].table.hash_keys(&mut work.packed[v]);
        self.update(batch, rows, window, v);
    }

    /// Looks the groups of the rows up whose keys were packed, and updates their aggregates.
    fn update(&mut self, batch: &Batch<'_>, rows: Bits, window: usize, v: usize) {
        let room = self.room(self.open[window].1.len());
        let groups = &mut self.open[window].1;
        let work = &mut *self.work;
        // The bound holds for all layouts together.
        let variant = &mut groups.variants[v];
        let before = variant.table.len();
        variant.table.set_max((before as u64).saturating_add(room));
        let mut rows = rows;
        if variant.table.lookup(&mut work.packed[v], &variant.fresh, &mut work.ids) > 0 {
            let (left, refused) = drop_refused(rows, &mut work.positions, &mut work.ids);
            rows = left;
            self.evicted += refused;
            groups.rows.evicted += refused;
        }
        groups.rows.taken += rows.count() as u64;
        update_all(variant, work, batch, rows);
        if self.spec.share.is_short() {
            variant.count_rows(&work.ids[..work.positions.len()], before);
        }
        groups.count_held();
    }

    /// Groups that may be added to a window that has so many. Where groups go for them, those of a
    /// batch always may: what is shared may have become less meanwhile, and more will go.
    fn room(&self, groups: usize) -> u64 {
        self.spec.room(groups, if self.overdraws { BATCH as u64 } else { 0 })
    }

    /// Lets groups go that are not in use, of the window that has most, where the memory that is
    /// shared leaves no room for so many more.
    fn make_room(&mut self, more: usize) {
        self.overdraws = self.spec.share.left() >= more as u64;
        if self.overdraws {
            return;
        }
        let (bound, open) = (self.spec.share.bound(), 2 * self.open.len() as u64);
        let groups = self.open.iter_mut().map(|(_, groups)| groups);
        let gone = make_room(groups, bound, open);
        self.overdraws = gone > 0;
        self.evicted += gone;
    }

    fn close(&mut self, n: usize, next: &mut Next<'_>) {
        for (start, mut groups) in self.open.drain(..n) {
            self.evicted += groups.evicted();
            groups.leave();
            next.groups(start, groups);
        }
    }
}

impl Hold for Summarize {
    fn held(&self) -> u64 {
        self.open.iter().map(|(_, groups)| groups.len() as u64).sum()
    }

    fn expect_groups(&mut self, groups: usize) {
        self.expected = groups;
    }

    fn recycle(&mut self, mut groups: Groups) {
        if self.spare.len() < SPARE_GROUPS {
            groups.clear();
            groups.rehome(&self.spec);
            self.spare.push(groups);
        }
    }

    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Summarize>(old) else { return false };
        swap(&mut self.open, &mut old.open);
        swap(&mut self.spare, &mut old.spare);
        let open = self.open.iter_mut().map(|(_, groups)| groups);
        open.chain(&mut self.spare).for_each(|groups| groups.rehome(&self.spec));
        swap(&mut self.watermark, &mut old.watermark);
        swap(&mut self.late, &mut old.late);
        swap(&mut self.evicted, &mut old.evicted);
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.watermark)?;
        at.count(&mut self.late)?;
        // Rows that the open groups refused are counted by them, and not saved with them.
        let refused = self.open.iter().map(|(_, groups)| groups.evicted()).sum::<u64>();
        let mut evicted = self.evicted + refused;
        at.count(&mut evicted)?;
        if at.restores() {
            self.evicted = evicted;
        }
        let spec = &self.spec;
        let groups = || (0, Groups::new(spec));
        at.list(&mut self.open, groups, |(start, groups), at| {
            at.pass_if(start, "no window starts there", |start| spec.is_start(*start))?;
            groups.pass_state(at)
        })?;
        if self.open.is_sorted_by(|(a, _), (b, _)| a < b) {
            Ok(())
        } else {
            Err(BadState("windows are out of order"))
        }
    }
}

impl End for Summarize {
    const HOLDS_ROWS: bool = true;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, _next: &mut Next<'_>) {
        let Some(every) = self.spec.every() else {
            if !rows.is_empty() {
                self.evaluate(batch, rows);
                let at = self.window_at(0).expect("there is one window");
                self.take(batch, rows, at);
            }
            return;
        };
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        // Rows without a time are in no window.
        let rows = rows.and(batch.ctx.column(time).present);
        let time: &[u64; BATCH] = batch.ctx.column(time).word();
        let shown = self.spec.plan.zone.map(|zone| clock_times(zone, time));
        let time = shown.as_ref().unwrap_or(time);
        // A window that ends at or before the watermark is closed.
        let closed = window_start(self.watermark, every);
        if let Some(start) = one_window(time, rows, every).filter(|&start| start >= closed) {
            self.evaluate(batch, rows);
            return self.take_window(batch, rows, start);
        }
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        rows.each(|i| (min, max) = (min.min(time[i] as i64), max.max(time[i] as i64)));
        let mut rows = rows;
        if min < closed {
            let late = Bits::from_fn(BATCH, |i| (time[i] as i64) < closed).and(rows);
            self.late += late.count() as u64;
            rows = rows.minus(late);
        }
        if rows.is_empty() {
            return;
        }
        let first = window_start(min.max(closed), every);
        if window_start(max, every) == first {
            self.evaluate(batch, rows);
            return self.take_window(batch, rows, first);
        }
        let time = *time;
        self.evaluate(batch, rows);
        while let Some(i) = rows.iter().next() {
            let t = time[i] as i64;
            let start = window_start(t, every);
            // The last moment of the window, as far as time goes.
            let last = t.saturating_add(every - 1 - t.rem_euclid(every));
            let inside = Bits::from_fn(BATCH, |i| (start..=last).contains(&(time[i] as i64)));
            let inside = inside.and(rows);
            rows = rows.minus(inside);
            self.take_window(batch, inside, start);
        }
    }

    /// Closes the windows that end at or before the watermark.
    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        self.watermark = self.watermark.max(self.spec.closed(watermark));
        let Some(every) = self.spec.every() else { return watermark };
        let closed = window_start(self.watermark, every);
        let n = self.open.partition_point(|(start, _)| *start < closed);
        self.close(n, next);
        watermark
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        self.close(self.open.len(), next);
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.late += self.late;
        ledger.evicted += self.evicted;
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, summarize};
    use crate::rows::Collect;
    use crate::run::{Options, run};
    use crate::tests::{Frames, check, check_stages, program};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use weir_packet::craft::Frame;
    use weir_packet::source::LinkType;
    use weir_plan::{AggFunc, Stage, Window};

    const ALL: [AggFunc; 8] = [
        AggFunc::Sum,
        AggFunc::Min,
        AggFunc::Max,
        AggFunc::Avg,
        AggFunc::First,
        AggFunc::Last,
        AggFunc::Distinct,
        AggFunc::BitOr,
    ];

    #[test]
    fn groups_the_whole_input() {
        let aggs = vec![agg(AggFunc::Count, None), agg(AggFunc::Sum, Some(field("len")))];
        let rows = check_stages(vec![summarize(&["dport"], aggs, Window::All)]);
        assert_eq!(rows, ["absent 1 60", "80 27 1978", "40000 13 962"]);
    }

    #[test]
    fn every_aggregate_over_every_kind_of_key() {
        for key in ["ip.src", "dport", "eth.src", "tcp.syn", "ts", "conn.forward"] {
            for window in [Window::All, Window::Tumbling(700_000_000)] {
                let aggs = ALL.iter().map(|&f| agg(f, Some(field("tcp.payload_len")))).collect();
                check_stages(vec![summarize(&[key], aggs, window)]);
            }
        }
    }

    #[test]
    fn a_summary_of_nothing_is_one_row() {
        let aggs = vec![agg(AggFunc::Count, None), agg(AggFunc::Max, Some(field("len")))];
        let plan = program(vec![summarize(&[], aggs, Window::All)]);
        let rows = check(&plan, &Functions::default(), &Frames::new(LinkType::ETHERNET, &[]));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].1[0].to_string(), "0");
    }

    #[test]
    fn late_rows_are_counted() {
        let times = [0, 1, 2, 3, 9_000_000_000, 4, 9_000_000_000, 9_000_000_001, 5];
        let frames: Vec<_> = times.iter().map(|&t| (t, vec![0; 60])).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let count = vec![agg(AggFunc::Count, None)];
        let plan = program(vec![summarize(&[], count, Window::Tumbling(1_000_000_000))]);
        let rows = check(&plan, &Functions::default(), &frames);
        let shown: Vec<_> = rows.iter().map(|r| r.1[1].to_string()).collect();
        assert_eq!(shown, ["4", "3"]);
    }

    #[test]
    fn groups_beyond_max_are_counted_as_evicted() {
        let Stage::Summarize(mut s) = summarize(&["number"], vec![], Window::All) else {
            unreachable!()
        };
        s.max_groups = 10;
        let plan = program(vec![Stage::Summarize(s)]);
        let mut sink = Collect::default();
        let outcome = run(
            &plan,
            &Functions::default(),
            &mut Frames::sample(),
            &mut sink,
            &Options::default(),
            &mut |_| {},
        );
        assert_eq!((sink.rows.len(), outcome.ledger.evicted), (10, 31));
    }

    #[test]
    fn windows_at_the_ends_of_time() {
        let times = (0..40).map(|i| match i % 4 {
            0 => i64::MIN + i,
            1 => i64::MIN + 3 * i,
            2 => i64::MIN + 1_000,
            _ => i64::MAX - i,
        });
        let frames: Vec<_> = times.map(|t| (t, vec![0; 60])).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        for every in [1, 10, 7_000, i64::MAX] {
            let count = vec![agg(AggFunc::Count, None)];
            let plan = program(vec![summarize(&["len"], count, Window::Tumbling(every))]);
            check(&plan, &Functions::default(), &frames);
        }
    }

    #[test]
    fn a_bound_holds_for_all_families_windows_and_workers() {
        // Below the rows of a batch, and above them: keys are made in other ways then.
        for (packets, sources, max, every_s) in [(200u32, 20, 3, 1), (1500, 400, 300, 75)] {
            let frames: Vec<_> = (0..packets)
                .map(|i| {
                    let frame = Frame::ethernet();
                    let frame = if i % 2 == 0 {
                        frame.ipv4(Ipv4Addr::from(i % sources), Ipv4Addr::from(1))
                    } else {
                        frame.ipv6(Ipv6Addr::from(u128::from(i % sources)), Ipv6Addr::from(1))
                    };
                    (i as i64 * 100_000_000, frame.udp(1, 2).bytes())
                })
                .collect();
            let frames = Frames::new(LinkType::ETHERNET, &frames);
            for window in [Window::All, Window::Tumbling(every_s * 1_000_000_000)] {
                let count = vec![agg(AggFunc::Count, None)];
                let Stage::Summarize(mut s) = summarize(&["ip.src"], count, window) else {
                    unreachable!()
                };
                s.max_groups = max;
                check(&program(vec![Stage::Summarize(s)]), &Functions::default(), &frames);
            }
        }
    }
}
