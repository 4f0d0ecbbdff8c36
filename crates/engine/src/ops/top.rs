//! `top`: the first `N` rows in a given order.
//!
//! | | |
//! |---|---|
//! | Syntax | `top N by EXPR [asc], … per KEY, … max M`; largest first unless `asc` |
//! | Emits | of windowed rows when their window has closed; else at the end of the input |
//! | Order | with `per` by key, an absent part first; then as asked for; ties in the order that rows came; absent values last |
//! | State | at most `2 N + 1024` rows a window; with `per` `2 N` a key and 1024, of at most `max` (default 1 Mi) keys a window |
//! | Full | worse rows make room; rows of keys beyond `max`, and rows of a window whose texts find no room in 1 GiB, are left out, and counted as evicted |
//! | Late | its input has no late rows |
//! | Merge | runs after the rows of all workers are merged |
//! | Exact? | exact |

mod layout;
mod per;
mod saved;

use super::operator::Batch;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::{Src, Val};
use crate::hold::{Hold, known};
use crate::limits::{POOL_MAX, SPARE_GROUPS, TOP_SLACK};
use crate::node::{End, Next};
use crate::rows::{Arena, Rows};
use crate::table::NO_ROW;
use layout::TopRowLayout;
use per::TopKeys;
use std::collections::BTreeMap;
use std::mem::swap;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_packet::time::NO_TIME;
use weir_plan::{Order, Schema, Type};

pub(crate) use per::PerKey;

/// Holds the best rows of each open window back.
pub(crate) struct Top {
    n: usize,
    layout: TopRowLayout,
    windowed: bool,
    per: Option<PerKey>,
    /// Rows held, by window start; all under 0 without windows.
    held: BTreeMap<i64, WindowRows>,
    /// Memory of windows that were emitted.
    spare: Vec<WindowRows>,
    /// The rows that stay when a window is cut, on their way.
    scratch: WindowRows,
    /// The row at hand.
    row: Vec<u64>,
    /// Where what is sorted by stands in this batch.
    srcs: Vec<Src>,
    /// The columns of rows, and what they bring along.
    schema: Schema,
    rows: Rows,
    emitted: u64,
    evicted: u64,
    /// Bytes of texts of one window.
    texts_max: usize,
    /// Scratch: the places of keys, and the keys in order.
    ranks: Vec<u32>,
    ranked: Vec<u32>,
}

/// The rows of one window.
#[derive(Default)]
struct WindowRows {
    words: Vec<u64>,
    texts: Arena,
    /// Whether the texts of the best rows alone take most of the room for texts.
    crammed: bool,
    /// Numbers of the rows, to be sorted.
    order: Vec<u32>,
    /// Scratch: the first word that each is sorted by.
    prefixes: Vec<(u64, u32)>,
    /// Of each key the worst row worth holding, or [`NO_ROW`] where all are.
    worst: Vec<u32>,
    /// How many rows there may be until they are cut again.
    room: usize,
    /// The keys, where there are any.
    keys: Option<TopKeys>,
}

impl WindowRows {
    fn row(&self, layout: &TopRowLayout, i: usize) -> &[u64] {
        &self.words[i * layout.words..][..layout.words]
    }

    fn len(&self, layout: &TopRowLayout) -> usize {
        self.words.len() / layout.words
    }

    /// Rows that may be held until they are cut, of which so many are worth it.
    fn room(n: usize, kept: usize) -> usize {
        n.max(kept).saturating_mul(2).saturating_add(TOP_SLACK)
    }

    /// Sorts rows by key, then as asked for, then in the order that they came. Where there is but
    /// one key, most are told apart by the first word of what they are sorted by, without a look at
    /// the rows.
    fn sort(&self, order: &mut [u32], layout: &TopRowLayout, prefixes: &mut Vec<(u64, u32)>) {
        let key = |row: u32| (self.row(layout, row as usize), &self.texts);
        // Rows that were made of one have its number; they stand in the order that they came.
        let compare = |a: u32, b: u32| layout.compare(key(a), key(b)).then(a.cmp(&b));
        if self.keys.is_some() || !layout.has_prefix() {
            return order.sort_unstable_by(|&a, &b| compare(a, b));
        }
        prefixes.clear();
        prefixes.extend(order.iter().map(|&row| (layout.prefix(key(row).0), row)));
        prefixes.sort_unstable_by(|&(a, first), &(b, second)| {
            a.cmp(&b).then_with(|| compare(first, second))
        });
        order.iter_mut().zip(prefixes).for_each(|(to, (_, row))| *to = *row);
    }

    /// Lists the best `n` rows of each key, sorted by key, then as asked for.
    fn choose(&mut self, n: usize, layout: &TopRowLayout, prefixes: &mut Vec<(u64, u32)>) {
        let len = self.len(layout) as u32;
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(0..len);
        self.sort(&mut order, layout, prefixes);
        self.worst.fill(NO_ROW);
        let mut kept = 0;
        let mut here = (u64::MAX, 0);
        // The rows that stay move to the front.
        for at in 0..order.len() {
            let group = self.row(layout, order[at] as usize)[0];
            here = if here.0 == group { (group, here.1 + 1) } else { (group, 1) };
            if here.1 > n {
                continue;
            }
            if here.1 == n
                && let Some(worst) = self.worst.get_mut(group as usize)
            {
                *worst = kept as u32;
            }
            order[kept] = order[at];
            kept += 1;
        }
        order.truncate(kept);
        self.order = order;
    }

    /// Keeps the best `n` rows of each key, sorted; `scratch` is memory for them.
    fn cut_to(&mut self, n: usize, layout: &TopRowLayout, scratch: &mut WindowRows) {
        self.choose(n, layout, &mut scratch.prefixes);
        self.room = WindowRows::room(n, self.order.len());
        scratch.words.clear();
        scratch.texts.truncate(0);
        for &row in &self.order {
            let start = scratch.words.len();
            scratch.words.extend_from_slice(self.row(layout, row as usize));
            layout.move_texts(&mut scratch.words[start..], &self.texts, &mut scratch.texts);
        }
        std::mem::swap(&mut self.words, &mut scratch.words);
        std::mem::swap(&mut self.texts, &mut scratch.texts);
    }

    /// Lets go of the texts of rows that are not among the best; says whether that made room. Done
    /// again only while it frees half of them.
    #[cold]
    fn make_room(
        &mut self,
        n: usize,
        layout: &TopRowLayout,
        scratch: &mut WindowRows,
        max: usize,
    ) -> bool {
        if !self.crammed {
            self.cut_to(n, layout, scratch);
            self.crammed = self.texts.len() > max / 2;
        }
        self.texts.len() < max
    }

    fn clear(&mut self) {
        self.words.clear();
        self.texts.truncate(0);
        self.crammed = false;
        self.worst.clear();
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
    }

    /// Whether a row with this key is worth holding.
    #[inline(always)]
    fn wants(&self, layout: &TopRowLayout, row: &[u64], group: u32, arena: &Arena) -> bool {
        match self.worst.get(group as usize) {
            None | Some(&NO_ROW) => true,
            Some(&worst) => {
                let worst = (self.row(layout, worst as usize), &self.texts);
                layout.compare(worst, (row, arena)).is_gt()
            }
        }
    }
}

impl Top {
    /// The best `n` rows by `by`, of each key where there are any. `columns`: what is held of a
    /// row, with the position that each has in `schema`; other columns come out absent.
    pub(crate) fn new(
        n: u64,
        by: Vec<(Val, Type, Order)>,
        windowed: bool,
        per: Option<PerKey>,
        columns: Vec<(Src, usize)>,
        schema: Schema,
    ) -> Top {
        Top {
            n: usize::try_from(n).unwrap_or(usize::MAX),
            layout: TopRowLayout::new(by, columns, &schema),
            windowed,
            per,
            held: BTreeMap::new(),
            spare: Vec::new(),
            scratch: WindowRows::default(),
            row: Vec::new(),
            srcs: Vec::new(),
            rows: Rows::new(&schema),
            schema,
            emitted: 0,
            evicted: 0,
            texts_max: POOL_MAX,
            ranks: Vec::new(),
            ranked: Vec::new(),
        }
    }

    /// Takes rows in.
    fn take(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        if self.n == 0 || rows.is_empty() {
            return;
        }
        let Top { layout, srcs, per, .. } = self;
        srcs.clear();
        for (v, _) in &layout.by {
            srcs.push(batch.ctx.value(v, rows));
        }
        if let Some(per) = per {
            per.begin(&mut batch.ctx, rows);
        }
        for cell in &layout.columns {
            batch.ctx.value(&Val::Src(cell.src), rows);
        }
        let time = batch.ctx.value(&Val::Src(batch.time), rows);
        if !self.windowed {
            return self.hold(batch, time, 0, rows);
        }
        let mut left = rows;
        while let Some(first) = left.iter().next() {
            let times = batch.ctx.column(time);
            let window = |i: usize| if times.present.has(i) { times.word()[i] as i64 } else { 0 };
            let start = window(first);
            let mine: Bits = left.iter().filter(|&i| window(i) == start).collect();
            self.hold(batch, time, start, mine);
            left = left.minus(mine);
        }
    }

    /// Takes rows of one window in.
    fn hold(&mut self, batch: &Batch<'_>, time: Src, window: i64, rows: Bits) {
        let Top { n, layout, per, held, spare, scratch, row, srcs, evicted, .. } = self;
        let (n, max) = (*n, self.texts_max);
        let (ctx, arena) = (&batch.ctx, &batch.ctx.regs.arena);
        let held = held.entry(window).or_insert_with(|| {
            let mut held = spare.pop().unwrap_or_default();
            held.room = WindowRows::room(n, 0);
            held
        });
        let (mut groups, mut known) = ([0; BATCH], 1);
        if let Some(per) = per {
            let mut numbered = held.keys.take().unwrap_or_else(|| per.keys());
            *evicted += per.number(&mut numbered, ctx, rows, &mut groups);
            known = numbered.len();
            held.keys = Some(numbered);
        }
        held.worst.resize(known, NO_ROW);
        for i in rows.iter() {
            let group = groups[i];
            if group == NO_ROW {
                continue;
            }
            layout.key(ctx, srcs, (i, group), batch.order[i], row);
            if !held.wants(layout, row, group, arena) {
                continue;
            }
            if held.texts.len() >= max && !held.make_room(n, layout, scratch, max) {
                *evicted += 1;
                continue;
            }
            layout.cells(ctx, time, i, row);
            layout.move_texts(row, arena, &mut held.texts);
            held.words.extend_from_slice(row);
            if held.len(layout) >= held.room {
                held.cut_to(n, layout, scratch);
            }
        }
    }

    fn emit(&mut self, mut held: WindowRows, out: &mut dyn FnMut(&Rows)) {
        if let (Some(per), Some(keys)) = (&self.per, &held.keys) {
            per.ranks(keys, &mut self.ranks, &mut self.ranked);
            for row in held.words.chunks_exact_mut(self.layout.words) {
                row[0] = self.ranks[row[0] as usize].into();
            }
            self.evicted += keys.refused();
        }
        held.choose(self.n, &self.layout, &mut self.scratch.prefixes);
        for chosen in held.order.chunks(BATCH) {
            self.fill(&held, chosen);
            out(&self.rows);
        }
        if self.spare.len() < SPARE_GROUPS {
            held.clear();
            self.spare.push(held);
        }
    }

    /// Makes rows of held ones.
    fn fill(&mut self, held: &WindowRows, chosen: &[u32]) {
        let Top { layout, rows, .. } = self;
        let n = chosen.len();
        let held_rows = || chosen.iter().map(|&row| held.row(layout, row as usize));
        rows.len = n;
        rows.arena.truncate(0);
        rows.order.clear();
        rows.order.extend((self.emitted..).take(n));
        self.emitted += n as u64;
        let mut at = layout.key_words;
        put(held_rows(), at, 1, &mut rows.time);
        let time = &rows.time;
        rows.clock.clear();
        rows.clock.extend((0..n).map(|i| match time.present.has(i) {
            true => time.word()[i] as i64,
            false => NO_TIME,
        }));
        at += 2;
        for cell in &layout.columns {
            let column = &mut rows.columns[cell.at];
            put(held_rows(), at, cell.words, column);
            if cell.text {
                let present = column.present;
                let handles = column.word_mut();
                present.each(|i| handles[i] = rows.arena.put(held.texts.get(handles[i])));
            }
            at += 1 + cell.words;
        }
    }
}

impl Hold for Top {
    /// Only from one whose rows are made alike: they bring along what later stages read.
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Top>(old) else { return false };
        if self.schema != old.schema {
            return false;
        }
        swap(&mut self.held, &mut old.held);
        swap(&mut self.spare, &mut old.spare);
        swap(&mut self.emitted, &mut old.emitted);
        swap(&mut self.evicted, &mut old.evicted);
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.pass_windows(at)
    }
}

impl End for Top {
    const HOLDS_ROWS: bool = true;

    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits, _next: &mut Next<'_>) {
        self.take(batch, rows);
    }

    /// Emits the windows that no further row can fall into: those before `watermark`. Without
    /// windows, rows leave at the end of the input.
    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        if !self.windowed {
            return i64::MIN;
        }
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() >= watermark {
                break;
            }
            let held = entry.remove();
            self.emit(held, &mut |rows| next.rows(rows));
        }
        watermark
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        while let Some((_, held)) = self.held.pop_first() {
            self.emit(held, &mut |rows| next.rows(rows));
        }
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.evicted;
    }
}

/// Makes a column of the cells that start at word `at` of each row.
fn put<'a>(rows: impl Iterator<Item = &'a [u64]>, at: usize, words: usize, column: &mut Column) {
    column.present = Bits::NONE;
    for (i, row) in rows.enumerate() {
        if row[at] == 1 {
            let high = if words == 2 { row[at + 2] } else { 0 };
            column.set_raw(i, (high as u128) << 64 | row[at + 1] as u128);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::top_over_rows;
    use crate::counters::Ledger;
    use crate::functions::Functions;
    use crate::node::testing::last;
    use crate::node::{Node as _, NodeInput};
    use crate::ops::testing::{agg, field, project, summarize};
    use crate::peers::{BuildContext, Peers};
    use crate::rows::{Rows, cell, set_cell};
    use crate::table::HashKey;
    use crate::tests::{Frames, check, check_stages, program};
    use weir_packet::source::LinkType;
    use weir_plan::{
        AggFunc, BinaryOp, Column, Expr, ExprKind, Order, Per, Schema, SortKey, Stage, Type, Value,
        Window,
    };

    /// Rows of one window with these texts, each larger than the one before, through a `top 2` of
    /// which the texts may have 100 bytes a window: numbers of those that come out, and how many
    /// were evicted.
    fn best_of_texts(windows: &[&[usize]]) -> (Vec<i64>, u64) {
        let columns = vec![Column::new("n", &Type::Int), Column::new("text", &Type::Str)];
        let schema = Schema { columns };
        let stage = top(2, Expr::column(0, Type::Int), Order::Descending, true);
        let functions = &Functions::default();
        let with =
            BuildContext { functions, hash_key: HashKey::random(), peers: Peers::None, room: None };
        let mut node = top_over_rows(&stage, &schema, with);
        node.end.texts_max = 100;
        let mut rows = Rows::new(&schema);
        for (window, lens) in windows.iter().enumerate() {
            for &len in *lens {
                let (i, n) = (rows.len, rows.order.len() as i64);
                let text = Value::Str("x".repeat(len).into());
                let Rows { columns, time, arena, .. } = &mut rows;
                set_cell(&mut columns[0], i, &Value::Int(n), arena);
                set_cell(&mut columns[1], i, &text, arena);
                set_cell(time, i, &Value::Time(window as i64), arena);
                rows.order.push(n as u64);
                rows.clock.push(window as i64);
                rows.len += 1;
            }
        }
        let mut numbers = Vec::new();
        let mut out = |rows: &Rows| {
            let number = |i| cell(&rows.columns[0], i, &Type::Int, &rows.arena);
            numbers.extend((0..rows.len).map(number).filter_map(|v| match v {
                Value::Int(n) => Some(n),
                _ => None,
            }));
        };
        last(&mut out, |next| {
            node.push(NodeInput::Rows { side: 0, rows: &rows }, next);
            node.finish(next);
        });
        let mut ledger = Ledger::default();
        node.count(&mut ledger);
        (numbers, ledger.evicted)
    }

    #[test]
    fn texts_of_worse_rows_make_room() {
        assert_eq!(best_of_texts(&[&[10; 200]]), (vec![199, 198], 0));
        assert_eq!(best_of_texts(&[&[70, 20, 20, 1]]), (vec![3, 2], 0));
    }

    /// Where the best rows alone have too many, further ones are left out, and counted. A window
    /// that comes later has room of its own.
    #[test]
    fn texts_without_room_leave_their_rows_out() {
        assert_eq!(best_of_texts(&[&[60; 5]]), (vec![1, 0], 3));
        assert_eq!(best_of_texts(&[&[60, 60, 60], &[60, 10, 10]]), (vec![1, 0, 5, 4], 1));
    }

    fn top(n: u64, by: Expr, order: Order, windowed: bool) -> Stage {
        Stage::Top { n, by: vec![SortKey { expr: by, order }], windowed, per: None }
    }

    #[test]
    fn the_best_rows_of_all() {
        let rows = |order| {
            check_stages(vec![top(2, field("dport"), order, false), project(&["number", "dport"])])
        };
        assert_eq!(rows(Order::Descending), ["3 40000", "6 40000"]);
        assert_eq!(rows(Order::Ascending), ["1 80", "2 80"]);
    }

    #[test]
    fn absent_values_come_last() {
        for order in [Order::Ascending, Order::Descending] {
            let rows =
                check_stages(vec![top(100, field("dport"), order, false), project(&["number"])]);
            assert_eq!(rows[40], "41");
        }
    }

    #[test]
    fn the_best_rows_of_each_window() {
        let rows = check_stages(vec![
            summarize(&["dport"], vec![agg(AggFunc::Count, None)], Window::Tumbling(2_000_000_000)),
            top(1, Expr::column(2, Type::Int), Order::Descending, true),
        ]);
        assert_eq!(
            rows,
            [
                "1970-01-01T00:00:00Z 80 14",
                "1970-01-01T00:00:02Z 80 13",
                "1970-01-01T00:00:04Z absent 1",
            ]
        );
    }

    fn per(n: u64, by: Expr, keys: Vec<Expr>, max_keys: u64, windowed: bool) -> Stage {
        let by = vec![SortKey { expr: by, order: Order::Descending }];
        Stage::Top { n, by, windowed, per: Some(Per { keys, max_keys }) }
    }

    #[test]
    fn the_best_rows_of_each_key() {
        let top = per(2, field("len"), vec![field("dport")], 10, false);
        let rows = check_stages(vec![top, project(&["dport", "number", "len"])]);
        assert_eq!(rows, ["absent 41 60", "80 40 93", "80 38 91", "40000 39 92", "40000 36 89"]);
        // Addresses of both kinds and texts, absent ones too.
        let keys = vec![field("ip.src"), field("dns.qname"), field("tcp.syn")];
        let rows = check_stages(vec![per(1, field("len"), keys, 10, false), project(&["number"])]);
        assert_eq!(rows, ["41", "40", "39"]);
    }

    #[test]
    fn the_best_rows_of_each_key_and_window() {
        let groups = summarize(
            &["dport", "len"],
            vec![agg(AggFunc::Count, None)],
            Window::Tumbling(2_000_000_000),
        );
        let port = vec![Expr::column(1, Type::Int)];
        let rows = check_stages(vec![groups, per(1, Expr::column(2, Type::Int), port, 10, true)]);
        assert_eq!(rows.len(), 5, "{rows:?}");
        assert_eq!(rows[0], "1970-01-01T00:00:00Z 80 73 1");
        assert_eq!(rows[1], "1970-01-01T00:00:00Z 40000 71 1");
    }

    #[test]
    fn rows_of_keys_beyond_the_bound_are_left_out_and_counted() {
        let top = per(1, field("number"), vec![field("dport")], 2, false);
        assert_eq!(check_stages(vec![top, project(&["dport"])]), ["80", "40000"]);
        let top = per(1, field("number"), vec![field("len")], 1, false);
        assert_eq!(check_stages(vec![top, project(&["number"])]), ["1"]);
    }

    /// So many that rows are cut on the way.
    #[test]
    fn worse_rows_make_room() {
        let frames: Vec<_> =
            (0..2500i64).map(|i| (i, vec![0; 20 + ((i * 7919) % 1013) as usize])).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let bin = Expr {
            ty: Type::Int,
            kind: ExprKind::Binary(
                BinaryOp::Rem,
                Box::new(field("len")),
                Box::new(Expr::constant(Value::Int(7))),
            ),
        };
        for keys in [vec![bin], vec![]] {
            let per = (!keys.is_empty()).then_some(Per { keys, max_keys: 100 });
            let by = vec![SortKey { expr: field("len"), order: Order::Descending }];
            let top = Stage::Top { n: 3, by, windowed: false, per };
            let plan = program(vec![top, project(&["number", "len"])]);
            let rows = check(&plan, &Functions::default(), &frames).len();
            assert!(rows == 21 || rows == 3, "{rows} rows");
        }
    }
}
