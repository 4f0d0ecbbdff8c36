//! The half of a `summarize` that puts rows out.

use super::groups::{Groups, Spec, Variant, group_id};
use super::order::Sorter;
use super::windows::Windows;
use crate::agg::Finish;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::Class;
use crate::key::{Layout, MAPPED, Pool};
use crate::losses::{LossLookup, LossRecord};
use crate::processor::prefetch;
use crate::rows::{Arena, Rows};
use crate::table::{Keys, NO_ROW, Table};
use std::mem::swap;
use std::sync::Arc;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_packet::time::NO_TIME;
use weir_plan::{AggFunc, Window};

/// Turns groups into rows, in order.
pub(crate) struct Emitter {
    spec: Arc<Spec>,
    rows: Rows,
    /// Rows emitted so far: their order number.
    emitted: u64,
    sorter: Sorter,
    order: Vec<u64>,
    work: Box<EmitScratch>,
    /// Where windows do not come out as they are.
    windows: Option<Windows>,
    /// Where it is known what was lost, if an aggregate asks for that.
    losses: Option<LossLookup>,
    /// Of the window at hand, the share that was seen.
    seen: f64,
    /// Of sessions, the tick that they come out at.
    tick: i64,
}

/// Scratch of one chunk.
struct EmitScratch {
    /// The groups of the chunk, by variant.
    picked: [Picked; 2],
    /// The results of one aggregate for one of several variants, one column for each output
    /// column of an aggregate.
    columns: Vec<Column>,
}

/// The groups of one variant in a chunk.
struct Picked {
    len: usize,
    /// Their rows in the table.
    ids: [u32; BATCH],
    /// Where in the chunk they stand.
    at: [u16; BATCH],
    /// The same as a set.
    set: Bits,
}

impl Emitter {
    /// An emitter of the groups of `spec`.
    pub(crate) fn new(spec: &Arc<Spec>) -> Emitter {
        let rows = Rows::new(&spec.schema);
        let aggs = &rows.columns[rows.columns.len() - spec.results.len()..];
        let columns = aggs.iter().map(|c| Column::new(c.repr())).collect();
        let picked = || Picked { len: 0, ids: [0; BATCH], at: [0; BATCH], set: Bits::NONE };
        Emitter {
            spec: Arc::clone(spec),
            rows,
            emitted: 0,
            sorter: Sorter::default(),
            order: Vec::new(),
            work: Box::new(EmitScratch { picked: [picked(), picked()], columns }),
            windows: Windows::of(spec),
            losses: None,
            seen: 1.0,
            tick: i64::MAX,
        }
    }

    /// Looks up what was lost in this record, if an aggregate asks for that.
    pub(crate) fn look_up_losses(&mut self, record: &LossRecord) {
        let func = |&(state, _): &(usize, usize)| self.spec.plan.aggs[state].func;
        let funcs = self.spec.results.iter().map(func).enumerate();
        let asking = funcs.filter(|(_, f)| *f == AggFunc::Completeness).map(|(i, _)| i);
        let asking: Vec<usize> = asking.collect();
        // A look-up that another one has made until now goes on.
        if !asking.is_empty() && self.losses.is_none() {
            self.losses = Some(record.lookup(&self.spec.plan, asking));
        }
    }

    /// The group that a summary of the whole input without keys emits when no row came.
    pub(crate) fn lone(&self) -> Option<Groups> {
        let lone = self.spec.plan.keys.is_empty() && self.spec.plan.window == Window::All;
        lone.then(|| Groups::new(&self.spec))
    }

    /// Emits what can be, now that `closed` have closed at this watermark; `None` is the end of
    /// the input. `spent` takes memory that is not needed any more.
    pub(crate) fn close(
        &mut self,
        closed: Vec<(i64, Groups)>,
        watermark: Option<i64>,
        undefined: &mut u64,
        spent: &mut dyn FnMut(Groups),
        out: &mut dyn FnMut(&Rows),
    ) {
        let tick = |w| self.spec.session().map_or(w, |session| session.tick(w));
        self.tick = watermark.map_or(i64::MAX, tick);
        let Some(mut windows) = self.windows.take() else {
            for (start, mut groups) in closed {
                self.emit(start, &mut groups, undefined, out);
                spent(groups);
            }
            return;
        };
        let mut put_out = |windows: &mut Windows, end| {
            while let Some((start, mut groups)) = windows.next(end, spent) {
                self.emit(start, &mut groups, undefined, out);
                windows.recycle(groups, spent);
            }
        };
        for (start, groups) in closed {
            let begin = windows.begin(start);
            put_out(&mut windows, Some(begin));
            windows.push(start, groups);
        }
        let end = watermark.map(|w| windows.closed(w));
        put_out(&mut windows, end);
        self.windows = Some(windows);
    }

    /// Takes over the windows that another one of the same groups has not emitted, and its counts.
    pub(crate) fn resume(&mut self, old: &mut Emitter) {
        swap(&mut self.windows, &mut old.windows);
        swap(&mut self.emitted, &mut old.emitted);
        swap(&mut self.losses, &mut old.losses);
    }

    /// Saves the windows that it has not emitted, and its counts, or restores them. The losses that
    /// are known are in their record.
    pub(crate) fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.count(&mut self.emitted)?;
        self.windows.iter_mut().try_for_each(|windows| windows.pass_state(at))
    }

    /// Adds what was counted to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        self.windows.iter().for_each(|windows| windows.count(ledger));
    }

    /// Emits the groups of one window, in order of their keys.
    fn emit(
        &mut self,
        start: i64,
        groups: &mut Groups,
        undefined: &mut u64,
        out: &mut dyn FnMut(&Rows),
    ) {
        if groups.is_empty() && self.spec.plan.keys.is_empty() {
            let variant = &mut groups.variants[0];
            let mut keys = Keys::new(0);
            keys.len = 1;
            variant.table.lookup_words(&mut keys, &variant.fresh, &mut [NO_ROW; BATCH]);
        }
        if let Some(losses) = self.losses.as_ref().filter(|_| self.spec.session().is_none()) {
            self.seen = losses.window(start) * groups.rows.share();
        }
        groups.settle();
        let mut order = std::mem::take(&mut self.order);
        groups.sorted(&mut self.sorter, &mut order);
        let start = self.spec.when(start);
        for from in (0..order.len()).step_by(BATCH) {
            let (chunk, ahead) = order[from..].split_at(BATCH.min(order.len() - from));
            let ahead = Ahead { groups, ids: &ahead[..BATCH.min(ahead.len())] };
            self.fill(start, groups, chunk, ahead, undefined);
            out(&self.rows);
        }
        self.order = order;
    }

    fn fill(
        &mut self,
        start: i64,
        groups: &Groups,
        chunk: &[u64],
        mut ahead: Ahead<'_>,
        undefined: &mut u64,
    ) {
        let rows = &mut self.rows;
        let n = chunk.len();
        rows.arena.truncate(0);
        rows.len = n;
        rows.order.clear();
        rows.order.extend((self.emitted..).take(n));
        self.emitted += n as u64;
        rows.clock.clear();
        let is_timed = self.spec.plan.is_timed();
        rows.clock.resize(n, if is_timed { start } else { NO_TIME });
        rows.columns.iter_mut().for_each(|c| c.present = Bits::NONE);
        rows.time.present = Bits::NONE;
        let mut c = usize::from(self.spec.session().is_some());
        if self.spec.every().is_some() {
            for column in [&mut rows.columns[0], &mut rows.time] {
                column.word_mut()[..n].fill(start as u64);
                column.present = Bits::first(n);
            }
            if !is_timed {
                rows.time.present = Bits::NONE;
            }
            c = 1;
        }
        self.work.pick(chunk);
        let aggs = c + self.spec.parts.len();
        let steps = rows.columns.len() - c;
        let several = self.work.picked.iter().all(|p| p.len > 0);
        let picked = self.work.picked.iter().zip(&groups.variants).zip(&self.spec.layouts);
        for ((picked, variant), layout) in picked.filter(|((picked, _), _)| picked.len > 0) {
            if self.spec.session().is_some() {
                picked.times(variant, rows);
            }
            for p in 0..self.spec.parts.len() {
                let from = Packed { table: &variant.table, layout, texts: &groups.texts };
                ahead.fetch(steps);
                from.unpack(p, picked, &mut rows.columns[c + p], &mut rows.arena);
            }
            for (a, &(state, result)) in self.spec.results.iter().enumerate() {
                let agg = &variant.aggs[state];
                ahead.fetch(steps);
                let scratch = several.then_some(&mut self.work.columns[a]);
                let (column, arena) = (&mut rows.columns[aggs + a], &mut rows.arena);
                let from = variant.cells(state);
                match scratch {
                    None => {
                        let mut out = Finish { column, arena, undefined, result };
                        agg.finish(from, picked.ids(), &mut out);
                    }
                    Some(scratch) => {
                        scratch.present = Bits::NONE;
                        let mut out = Finish { column: &mut *scratch, arena, undefined, result };
                        agg.finish(from, picked.ids(), &mut out);
                        picked.scatter(scratch, column);
                    }
                }
            }
        }
        if self.losses.is_some() {
            self.fill_seen(aggs, n);
        }
    }

    /// Writes which share of the frames was seen, of a chunk whose first aggregate stands here.
    #[cold]
    fn fill_seen(&mut self, aggs: usize, n: usize) {
        let Some(losses) = &self.losses else { return };
        let rows = &mut self.rows;
        for &a in &losses.aggs {
            for i in 0..n {
                let seen = match self.spec.session() {
                    None => self.seen,
                    Some(session) => {
                        let [start, last] = [&rows.columns[0], &rows.time].map(|c| c.word()[i]);
                        losses.session((start as i64, last as i64), session, self.tick)
                    }
                };
                rows.columns[aggs + a].word_mut()[i] = seen.to_bits();
            }
        }
    }
}

/// The groups of the next chunk, whose rows are fetched into the cache a few at a time, so that
/// no step has to wait for as many as memory can fetch at once.
struct Ahead<'a> {
    groups: &'a Groups,
    ids: &'a [u64],
}

impl Ahead<'_> {
    /// Fetches the share of one of `steps`.
    #[inline]
    fn fetch(&mut self, steps: usize) {
        let (now, later) = self.ids.split_at(self.ids.len().min(BATCH.div_ceil(steps)));
        self.ids = later;
        for &id in now {
            let (v, row) = group_id(id);
            let table = &self.groups.variants[v].table;
            let (rows, stride) = (table.rows(), table.stride());
            prefetch(rows, row as usize * stride);
            if stride > 8 {
                prefetch(rows, row as usize * stride + 8);
            }
        }
    }
}

impl EmitScratch {
    /// Takes the groups of a chunk apart by variant.
    fn pick(&mut self, chunk: &[u64]) {
        self.picked.iter_mut().for_each(|p| p.len = 0);
        for (i, &id) in chunk.iter().enumerate() {
            let (v, row) = group_id(id);
            let picked = &mut self.picked[v];
            picked.ids[picked.len] = row;
            picked.at[picked.len] = i as u16;
            picked.len += 1;
        }
        let all = Bits::first(chunk.len());
        for v in 0..2 {
            let at = &self.picked[v].at[..self.picked[v].len];
            self.picked[v].set = match at.len() {
                n if n == chunk.len() => all,
                _ => at.iter().map(|&i| i as usize).collect(),
            };
        }
    }
}

impl Picked {
    fn ids(&self) -> &[u32] {
        &self.ids[..self.len]
    }

    fn at(&self) -> &[u16] {
        &self.at[..self.len]
    }

    /// Writes when sessions started, and their event time: when their latest row came.
    fn times(&self, variant: &Variant, rows: &mut Rows) {
        let (starts, time) = (rows.columns[0].word_mut(), rows.time.word_mut());
        for (&id, &at) in self.ids().iter().zip(self.at()) {
            let (at, last) = (at as usize & (BATCH - 1), variant.last(id));
            (starts[at], time[at]) = (variant.start(id) as u64, last as u64);
            rows.clock[at] = last;
        }
        for column in [&mut rows.columns[0], &mut rows.time] {
            column.present = column.present.or(self.set);
        }
    }

    /// Moves results to where their groups stand.
    fn scatter(&self, from: &Column, to: &mut Column) {
        for (j, &i) in self.at().iter().enumerate() {
            if from.present.has(j) {
                to.set_raw(i as usize, from.raw(j));
            }
        }
    }
}

/// The keys of one variant.
struct Packed<'a> {
    table: &'a Table,
    layout: &'a Layout,
    texts: &'a Pool,
}

impl Packed<'_> {
    /// Calls `put` with the place in the chunk and word `w` of the key of each group.
    #[inline(always)]
    fn each(&self, picked: &Picked, w: usize, mut put: impl FnMut(usize, u64)) {
        let (rows, stride) = (self.table.rows(), self.table.stride());
        for (&id, &at) in picked.ids().iter().zip(picked.at()) {
            put(at as usize & (BATCH - 1), rows[id as usize * stride + w]);
        }
    }

    /// Writes part `p` of the keys into a column.
    fn unpack(&self, p: usize, picked: &Picked, column: &mut Column, arena: &mut Arena) {
        let (place, class) = self.layout.place(p);
        let mut present = picked.set;
        if let Some((word, shift)) = place.present {
            let mut all = u64::MAX;
            self.each(picked, word, |_, w| all &= w >> shift);
            if all & 1 == 0 {
                self.each(picked, word, |i, w| present.put(i, w >> shift & 1 == 1));
            }
        }
        column.present = column.present.or(present);
        let mask = if place.bits >= 64 { u64::MAX } else { (1 << place.bits) - 1 };
        match class {
            Class::Bit => {
                let truth = &mut column.truth;
                self.each(picked, place.word, |i, w| truth.put(i, w >> place.shift & 1 == 1));
            }
            Class::Text => {
                let words = column.word_mut();
                self.each(picked, place.word, |i, w| {
                    if present.has(i) {
                        words[i] = arena.put(self.texts.get(w));
                    }
                });
            }
            Class::Pair if place.bits == 128 => {
                let (hi, lo) = column.pair_mut();
                self.each(picked, place.word, |i, w| hi[i] = w);
                self.each(picked, place.word + 1, |i, w| lo[i] = w);
            }
            Class::Pair => {
                let (hi, lo) = column.pair_mut();
                self.each(picked, place.word, |i, w| {
                    (hi[i], lo[i]) = (0, MAPPED << 32 | w >> place.shift & mask);
                });
            }
            _ => {
                let words = column.word_mut();
                self.each(picked, place.word, |i, w| words[i] = w >> place.shift & mask);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, summarize};
    use crate::table::HashKey;
    use crate::tests::{Frames, check, program};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use weir_packet::craft::Frame;
    use weir_packet::source::LinkType;
    use weir_plan::{AggFunc, Expr, ExprKind, Func, Order, SortKey, Stage, Type, Window};

    /// Packets of some hundred hosts of both families, and some that are not IP.
    fn frames() -> Frames {
        let frames: Vec<_> = (0..3000u64)
            .map(|i| {
                let h = HashKey::KNOWN.hash([i]);
                let (a, b, port) = (h as u32 % 700, (h >> 10) as u32 % 3, (h >> 20) as u16 % 40);
                let frame = match h >> 40 & 7 {
                    0 => Frame::ethernet(),
                    1..5 => Frame::ethernet().ipv4(Ipv4Addr::from(a << 12), Ipv4Addr::from(b)),
                    // On both sides of the addresses that stand for IPv4.
                    _ => {
                        let a = Ipv6Addr::from((a as u128) << ((h >> 50 & 1) * 100));
                        Frame::ethernet().ipv6(a, Ipv6Addr::from(b as u128)).udp(port, port)
                    }
                };
                (i as i64 * 1_000_000, frame.payload(&vec![0; (h >> 54) as usize % 90]).bytes())
            })
            .collect();
        Frames::new(LinkType::ETHERNET, &frames)
    }

    #[test]
    fn many_groups_of_both_families() {
        let keys: [&[&str]; 4] =
            [&["ip.src"], &["ip.dst", "ip.src"], &["sport", "ip.src"], &["len"]];
        for keys in keys {
            for window in [Window::All, Window::Tumbling(1_000_000_000)] {
                let aggs = vec![
                    agg(AggFunc::Count, None),
                    agg(AggFunc::Distinct, Some(field("ip.dst"))),
                    agg(AggFunc::First, Some(field("ip.dst"))),
                    agg(AggFunc::Max, Some(field("len"))),
                ];
                let plan = program(vec![summarize(keys, aggs, window)]);
                let rows = check(&plan, &Functions::default(), &frames());
                assert!(keys == ["len"] || rows.len() > 1000, "{} rows by {keys:?}", rows.len());
            }
        }
    }

    #[test]
    fn the_best_of_many_rows() {
        let text = |name: &str| Expr {
            ty: Type::Str,
            kind: ExprKind::Call(Func::ToStr, vec![field(name)]),
        };
        let (up, down) = (Order::Ascending, Order::Descending);
        let orders = [
            vec![(field("len"), down), (field("ip.src"), up)],
            vec![(field("sport"), up), (field("ip.src"), down)],
            vec![(text("ip.src"), down), (text("sport"), up)],
        ];
        for n in [3, 600] {
            for by in orders.clone() {
                let by = by.into_iter().map(|(expr, order)| SortKey { expr, order }).collect();
                let columns =
                    [("a", text("ip.src")), ("b", field("ip.src")), ("n", field("number"))];
                let columns = columns.map(|(name, e)| (name.to_owned(), e)).to_vec();
                let stages = vec![
                    Stage::Top { n, by, windowed: false, per: None },
                    Stage::Project { columns },
                ];
                let rows = check(&program(stages), &Functions::default(), &frames());
                assert_eq!(rows.len() as u64, n);
            }
        }
    }
}
