//! `scan`: folds the rows of each key, in order, into named states.
//!
//! | | |
//! |---|---|
//! | Syntax | `scan NAME = INIT by KEY idle D max N => EXPR`; in Rust, `scan_by` |
//! | Emits | on push: every row, with the states after it as columns |
//! | Order | kept |
//! | State | per key its words, its time, a word of housekeeping and one or two a state; `max` (default 16 Mi) keys, `idle` (default 1 h) |
//! | Full | the key that had no row for longest is evicted, and counted unless it is idle |
//! | Late | a late row is folded in as it comes; it cannot bring an expired key back |
//! | Merge | partitioned by key |
//! | Exact? | exact; which key is evicted depends on workers where the query names no `max`: each holds that many |
//!
//! Three modes. Where the states take few values, known in advance, the scan is an automaton
//! (`steps.rs`): what each row does is computed for all states at once, before any is known, and
//! the rest is one step per row. Else the updates of a batch run in rounds (`rounds.rs`): no key
//! twice in one, so that a round is evaluated column by column like any other expression. The third
//! mode follows TCP connections (`tcp.rs`), for [`analyze tcp`](super::analyze_tcp).
//!
//! Where the kernel runs the stage, too, a row first takes the states of its key over from there
//! (`handed.rs`).

mod handed;
mod oldest;
mod rounds;
mod saved;
mod state;
mod steps;
mod store;
mod tcp;

use super::operator::{Batch, Operator};
use super::summarize::packet_field;
use super::work::in_turn;
use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::expr::{Automaton, Src, Val};
use crate::hold::{Hold, known};
use crate::kernel::KernelStates;
use crate::key::{Direct, KeyPart, Layout, Pool, narrow_rows};
use crate::limits::{EVICT_AT_ONCE, PARTS_MAX};
use crate::room::{RoomCharge, RoomShare};
use crate::table::HashKey;
use oldest::{Aged, Oldest};
use rounds::Rounds;
pub(crate) use state::State;
use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;
use steps::Steps;
use store::{Store, TakeTerms};
use tcp::Connections;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::fields::FieldId;
use weir_packet::limits::BATCH;
use weir_plan::Expr;
use weir_plan::limits::{DISTINCT_KEYS_MAX, SCAN_KEYS_MAX, SCAN_STATES_MAX};

/// A scan over all rows it is given.
pub(crate) struct Scan {
    keys: Vec<Val>,
    parts: Vec<KeyPart>,
    states: Vec<State>,
    idle_ns: i64,
    share: RoomShare,
    charge: RoomCharge,
    /// Keys that there may be now.
    max_keys: usize,
    /// Whether the query may have named that many: of those that are full, most have.
    is_named: bool,
    mode: Mode,
    /// The states of keys that the kernel holds, where it runs this stage, too.
    pub(crate) kernel: Option<Arc<dyn KernelStates>>,
    /// How keys of plain packets are made, if they can be made directly.
    direct: Vec<Direct>,
    /// Of narrow keys, and of wide ones if there are any.
    stores: Vec<Store>,
    key_texts: Pool,
    oldest: Oldest,
    evicted: u64,
    /// Batches so far, and the one at hand.
    batches: u64,
    /// Scratch: where the key columns stand.
    srcs: Vec<Src>,
}

/// Keys that a scan may hold.
const KEYS_MAX: usize = u32::MAX as usize - 1 - BATCH;

/// How the updates are evaluated.
enum Mode {
    Steps(Steps),
    Rounds(Rounds),
    Connections(Connections),
}

/// How long keys are kept, and how many.
struct Bounds {
    idle_ns: i64,
    max_keys: u64,
    share: RoomShare,
}

impl Scan {
    /// The scan of a plan, compiled; `automaton` where its states are one.
    pub(crate) fn new(
        plan: &weir_plan::Scan,
        keys: Vec<Val>,
        states: Vec<State>,
        automaton: Option<Automaton>,
        (share, hash_key): (RoomShare, HashKey),
    ) -> Scan {
        assert!(states.len() <= SCAN_STATES_MAX, "a scan has at most {SCAN_STATES_MAX} states");
        let (mode, cells) = match automaton {
            Some(automaton) => (Mode::Steps(Steps::new(automaton)), 0),
            None => (Mode::Rounds(Rounds::new()), rounds::words(&states)),
        };
        let bounds = Bounds { idle_ns: plan.idle_ns, max_keys: plan.max_keys, share };
        Scan { states, ..Scan::with(mode, cells, (&plan.keys, keys), bounds, hash_key) }
    }

    /// The scan that follows connections, compiled; `outputs` are the registers of its columns,
    /// where they are read.
    pub(crate) fn of_connections(
        plan: &weir_plan::AnalyzeTcp,
        keys: Vec<Val>,
        inputs: Vec<Val>,
        outputs: Vec<Option<usize>>,
        (share, hash_key): (RoomShare, HashKey),
    ) -> Scan {
        let connections = Connections::new(inputs, outputs);
        let words = connections.tracked().words();
        let bounds = Bounds { idle_ns: plan.idle_ns, max_keys: plan.max_keys, share };
        let mode = Mode::Connections(connections);
        Scan::with(mode, words, (&plan.keys, keys), bounds, hash_key)
    }

    fn with(
        mode: Mode,
        cells: usize,
        (plan, keys): (&[Expr], Vec<Val>),
        bounds: Bounds,
        hash_key: HashKey,
    ) -> Scan {
        assert!(keys.len() <= PARTS_MAX, "a key has at most {PARTS_MAX} parts");
        let parts: Vec<KeyPart> = plan.iter().map(KeyPart::of).collect();
        let (narrow, wide) = Layout::both(&parts);
        let layouts: Vec<Layout> = [Some(narrow), wide].into_iter().flatten().collect();
        let fields: Option<Vec<FieldId>> = plan.iter().map(packet_field).collect();
        let max_keys = usize::try_from(bounds.max_keys).unwrap_or(usize::MAX).clamp(1, KEYS_MAX);
        Scan {
            direct: fields.map_or_else(Vec::new, |fields| Direct::new(&fields, &layouts)),
            stores: layouts.into_iter().map(|l| Store::new(l, cells, max_keys, hash_key)).collect(),
            keys,
            parts,
            states: Vec::new(),
            idle_ns: bounds.idle_ns,
            charge: bounds.share.charge(),
            share: bounds.share,
            max_keys,
            is_named: bounds.max_keys != SCAN_KEYS_MAX && bounds.max_keys != DISTINCT_KEYS_MAX,
            mode,
            kernel: None,
            key_texts: Pool::default(),
            oldest: Oldest::default(),
            evicted: 0,
            batches: 0,
            srcs: Vec::with_capacity(PARTS_MAX),
        }
    }

    /// Charges for the rows that there are, and says how many there may be. Where room is short,
    /// memory that is not in use goes back.
    fn keep_to_room(&mut self) {
        let (live, rows) = (self.live(), self.stores.iter().map(Store::rows).sum::<usize>());
        if rows > live + (live / 8).max(BATCH) && self.share.is_short() {
            self.stores.iter_mut().for_each(Store::compact);
            self.oldest = Oldest::default();
        }
        let rows = self.stores.iter().map(Store::rows).sum::<usize>();
        self.charge.set_with(rows as u64, self.key_texts.bytes() as u64);
        self.max_keys = self.share.bound().clamp(1, KEYS_MAX as u64) as usize;
    }

    fn live(&self) -> usize {
        self.stores.iter().map(Store::live).sum()
    }

    /// Keys and texts for which there was no room.
    fn all_evicted(&self) -> u64 {
        let texts = match &self.mode {
            Mode::Steps(_) | Mode::Connections(_) => 0,
            Mode::Rounds(rounds) => rounds.refused(),
        };
        self.evicted + self.key_texts.refused() + texts
    }

    /// Gives each row, with its key, to the store that it belongs to.
    fn take_keys(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        let left = self.take_plain(batch, rows);
        // Rows of one key must stay in order, so a store takes all of its rows in one way.
        if !left.is_empty() && !self.take_columns(batch, left) {
            self.stores.iter_mut().for_each(|store| store.taken = Bits::NONE);
            self.take_columns(batch, rows);
        }
    }

    /// Takes rows by the columns that their keys stand in. `false`, where a store that has rows
    /// already would get some.
    fn take_columns(&mut self, batch: &mut Batch<'_>, rows: Bits) -> bool {
        self.srcs.clear();
        self.srcs.extend(self.keys.iter().map(|k| batch.ctx.value(k, rows)));
        // Unused entries need some column to point at.
        let mut columns: [&Column; PARTS_MAX] = [batch.ctx.column(batch.time); PARTS_MAX];
        columns.iter_mut().zip(&self.srcs).for_each(|(c, &src)| *c = batch.ctx.column(src));
        let columns = &columns[..self.srcs.len()];
        let narrow = narrow_rows(&self.parts, columns, rows);
        let arena = &batch.ctx.regs.arena;
        for (store, rows) in self.stores.iter_mut().zip([narrow, rows.minus(narrow)]) {
            if store.taken.is_empty() {
                store.take_keys(rows, columns, &mut self.key_texts, arena);
            } else if !rows.is_empty() {
                return false;
            }
        }
        true
    }

    /// Takes plain packets whose keys can be made of their bytes; returns the other rows. A store
    /// takes those of one family only: rows of one key must stay in order.
    fn take_plain(&mut self, batch: &Batch<'_>, rows: Bits) -> Bits {
        let mut left = rows;
        for (s, store) in self.stores.iter_mut().enumerate() {
            store.taken = Bits::NONE;
            let Some(view) = batch.ctx.view.as_ref() else { continue };
            let of = |direct: &Direct| direct.rows(&view.plain(direct.family)).and(rows);
            let mut mine = self.direct.iter().filter(|d| d.layout == s && !of(d).is_empty());
            if let (Some(direct), None) = (mine.next(), mine.next())
                && store.take_plain(of(direct), direct, &view.plain(direct.family))
            {
                left = left.minus(store.taken);
            }
        }
        left
    }

    /// Hands each row, with the row of its key in a store, to the mode.
    fn take_rows(&mut self, clock: &[i64], rows: Bits) {
        let mut more = 0;
        for store in self.stores.iter_mut().filter(|store| store.taken_rows() > 0) {
            store.prefetch();
            more += store.taken_rows();
        }
        if self.live() + more <= self.max_keys {
            for s in 0..self.stores.len() {
                self.take_these(s, 0..self.stores[s].taken_rows(), clock);
            }
            return;
        }
        // Which key goes depends on all rows before, of whatever store.
        let narrow = self.stores[0].taken;
        let mut next = [0; 2];
        in_turn(rows, narrow, |run, s| {
            let these = next[s]..next[s] + run.count();
            next[s] = these.end;
            self.take_these(s, these, clock);
        });
    }

    /// The same for some of those that a store took, by their numbers.
    fn take_these(&mut self, s: usize, mut these: Range<usize>, clock: &[i64]) {
        while !these.is_empty() {
            let room = self.max_keys.saturating_sub(self.live());
            // A scan that names no bound is seldom full, and its rows need no numbers before.
            let numbers = self.is_named || self.live() >= self.max_keys / 2;
            let first = self.first();
            let store = &mut self.stores[s];
            let terms = TakeTerms { clock, idle_ns: self.idle_ns, first, numbers, room };
            these.start = match &mut self.mode {
                Mode::Steps(steps) => steps.take_rows(store, terms, these.clone()),
                Mode::Rounds(rounds) => rounds.take_rows(store, terms, these.clone()),
                Mode::Connections(all) => all.take_rows(store, terms, these.clone()),
            };
            if !these.is_empty() {
                let position = self.stores[s].position(these.start);
                self.evict(clock[position]);
            }
        }
    }

    /// The number of the first row of the batch at hand.
    fn first(&self) -> u64 {
        self.batches * BATCH as u64
    }

    /// Gives up the key that had no row for longest, and counts it unless it is idle at this time.
    fn give_up_oldest(&mut self, now: i64) -> Aged {
        let gone = self.oldest.pop(&mut self.stores).expect("a full scan holds a key");
        self.stores[usize::from(gone.store)].evict(gone.row);
        self.evicted += u64::from(now.saturating_sub(gone.age.last) < self.idle_ns);
        gone
    }

    /// Evicts the key that had no row for longest, at this time.
    #[inline(never)]
    fn evict(&mut self, now: i64) {
        let first = self.first();
        let gone = self.give_up_oldest(now);
        if let (Mode::Rounds(rounds), true) = (&mut self.mode, gone.age.turn >= first) {
            rounds.evicted((gone.age.turn - first) as usize);
        }
    }
}

impl Hold for Scan {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Scan>(old) else { return false };
        match (&mut self.mode, &mut old.mode) {
            // Their states are numbered alike, or are in the stores.
            (Mode::Steps(_), Mode::Steps(_)) => {}
            (Mode::Connections(mine), Mode::Connections(theirs))
                if mine.tracked() == theirs.tracked() => {}
            (Mode::Rounds(mine), Mode::Rounds(theirs)) => swap(mine, theirs),
            _ => return false,
        }
        swap(&mut self.stores, &mut old.stores);
        swap(&mut self.key_texts, &mut old.key_texts);
        swap(&mut self.oldest, &mut old.oldest);
        swap(&mut self.evicted, &mut old.evicted);
        swap(&mut self.batches, &mut old.batches);
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.pass_keys(at)
    }

    fn held(&self) -> u64 {
        self.stores.iter().map(|store| store.held()).sum()
    }
}

impl Operator for Scan {
    fn push(&mut self, batch: &mut Batch<'_>, all: Bits) -> Bits {
        if all.is_empty() {
            return all;
        }
        self.batches += 1;
        let rows = match &self.mode {
            Mode::Connections(connections) => connections.rows(batch, all),
            Mode::Steps(_) | Mode::Rounds(_) => all,
        };
        self.take_keys(batch, rows);
        if let Some(kernel) = self.kernel.clone() {
            self.take_from(&*kernel, batch, rows);
        }
        // While the index comes.
        match &mut self.mode {
            Mode::Steps(steps) => steps.begin(batch, rows),
            Mode::Rounds(rounds) => rounds.begin(),
            Mode::Connections(connections) => connections.begin(batch, rows),
        }
        self.take_rows(batch.clock, rows);
        match &mut self.mode {
            Mode::Steps(steps) => steps.end(batch, rows, &self.states),
            Mode::Rounds(rounds) => rounds.end(batch, &mut self.stores, &self.states),
            Mode::Connections(connections) => connections.end(batch, rows),
        }
        self.stores.iter_mut().for_each(Store::free_evicted);
        self.keep_to_room();
        all
    }

    fn watermark(&mut self, watermark: i64) {
        if let Some(old) = watermark.checked_sub(self.idle_ns) {
            self.stores.iter_mut().for_each(|s| s.sweep(old));
        }
        // It may be others that need the room, while no row comes here.
        self.max_keys = self.share.bound().clamp(1, KEYS_MAX as u64) as usize;
        let more = self.live().saturating_sub(self.max_keys).min(EVICT_AT_ONCE);
        for _ in 0..more {
            self.give_up_oldest(watermark);
        }
        if more > 0 || self.share.is_short() {
            self.stores.iter_mut().for_each(Store::free_evicted);
            self.keep_to_room();
        }
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.all_evicted();
    }
}

#[cfg(test)]
mod tests {
    use crate::functions::Functions;
    use crate::ops::testing::{binary, compare, field, int, state};
    use crate::rows::Collect;
    use crate::run::{Options, run};
    use crate::table::HashKey;
    use crate::tests::{Frames, check, check_stages, program};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use weir_packet::craft::Frame;
    use weir_packet::source::LinkType;
    use weir_packet::time::NO_TIME;
    use weir_plan::limits::SCAN_KEYS_MAX;
    use weir_plan::stage::ScanState;
    use weir_plan::{BinaryOp, Distinct, Expr, ExprKind, Order, Scan, SortKey, Stage, Type, Value};

    /// Numbers the rows of each key.
    fn position(keys: &[&str], idle_ns: i64, max_keys: u64) -> Vec<Stage> {
        let states = vec![ScanState {
            name: "position".into(),
            output: 0,
            init: int(0),
            update: binary(BinaryOp::Add, state(0, Type::Int), int(1)),
        }];
        let keys = keys.iter().map(|k| field(k)).collect();
        vec![
            Stage::Scan(Scan { states, keys, idle_ns, max_keys }),
            Stage::Project {
                columns: vec![
                    ("number".into(), field("number")),
                    ("position".into(), Expr::column(0, Type::Int)),
                ],
            },
        ]
    }

    #[test]
    fn rows_of_a_key_are_counted() {
        let rows = check_stages(position(&["dport"], 1 << 60, SCAN_KEYS_MAX));
        assert_eq!(rows[..4], ["1 1", "2 2", "3 1", "4 3"]);
        assert_eq!(rows[40], "41 1");
    }

    #[test]
    fn without_a_key_there_is_one_state() {
        let rows = check_stages(position(&[], 1 << 60, SCAN_KEYS_MAX));
        assert_eq!(rows[40], "41 41");
    }

    #[test]
    fn idle_keys_start_again() {
        let rows = check_stages(position(&["dport"], 300_000_000, SCAN_KEYS_MAX));
        assert_eq!(rows[..7], ["1 1", "2 2", "3 1", "4 3", "5 4", "6 1", "7 5"]);
    }

    #[test]
    fn two_states_see_each_other_as_before() {
        let states = vec![
            ScanState { name: "a".into(), output: 0, init: int(0), update: state(1, Type::Int) },
            ScanState {
                name: "b".into(),
                output: 1,
                init: int(1),
                update: binary(BinaryOp::Add, state(0, Type::Int), state(1, Type::Int)),
            },
        ];
        let rows = check_stages(vec![
            Stage::Scan(Scan { states, keys: vec![], idle_ns: 1 << 60, max_keys: 1 }),
            Stage::Project { columns: vec![("fibonacci".into(), Expr::column(0, Type::Int))] },
        ]);
        assert_eq!(rows[..7], ["1", "1", "2", "3", "5", "8", "13"]);
    }

    #[test]
    fn late_rows_do_not_bring_expired_keys_back() {
        let times = [0, 1, 2, 3, 30, 31, 4, 32, 5, 6].map(|s| (s * 1_000_000_000, vec![0; 60]));
        let frames = Frames::new(LinkType::ETHERNET, &times);
        let plan = program(position(&["len"], 10_000_000_000, SCAN_KEYS_MAX));
        let rows = check(&plan, &Functions::default(), &frames);
        let shown: Vec<_> = rows.iter().map(|r| r.1[1].to_string()).collect();
        assert_eq!(shown, ["1", "2", "3", "4", "1", "2", "3", "4", "5", "6"]);
    }

    /// Rows of a `top` have no watermark, so one without time comes before all times.
    #[test]
    fn rows_without_time_are_as_old_as_can_be() {
        let times = [0, NO_TIME, 1, 2_000_000_000].map(|ts| (ts, vec![0; 60]));
        let frames = Frames::new(LinkType::ETHERNET, &times);
        let ended = binary(BinaryOp::Rem, field("number"), int(2));
        let by = vec![SortKey { expr: ended, order: Order::Ascending }];
        let mut stages = vec![Stage::Top { n: 4, by, windowed: false, per: None }];
        stages.extend(position(&[], 1_000_000_000, SCAN_KEYS_MAX));
        let rows = check(&program(stages), &Functions::default(), &frames);
        let shown: Vec<_> = rows.iter().map(|(_, row)| format!("{} {}", row[0], row[1])).collect();
        assert_eq!(shown, ["2 1", "4 1", "1 2", "3 3"]);
    }

    fn when(cond: Expr, then: Expr, other: Expr) -> Expr {
        Expr {
            ty: then.ty.clone(),
            kind: ExprKind::If(Box::new(cond), Box::new(then), Box::new(other)),
        }
    }

    fn is(a: Expr, b: Expr) -> Expr {
        compare(BinaryOp::Eq, a, b)
    }

    fn both(a: Expr, b: Expr) -> Expr {
        compare(BinaryOp::And, a, b)
    }

    /// A scan of one state, by the server's port, and what becomes of it.
    fn one_state(init: Expr, update: Expr, idle_ns: i64) -> Vec<Stage> {
        let ty = init.ty.clone();
        let states = vec![ScanState { name: "s".into(), output: 0, init, update }];
        let keys = vec![field("dport")];
        vec![
            Stage::Scan(Scan { states, keys, idle_ns, max_keys: SCAN_KEYS_MAX }),
            Stage::Project { columns: vec![("s".into(), Expr::column(0, ty))] },
        ]
    }

    #[test]
    fn stages_follow_one_another() {
        // 0 until the payload is of the length that the stage waits for.
        let stage = || state(0, Type::Int);
        let at = |n, len| both(is(stage(), int(n)), is(field("tcp.payload_len"), int(len)));
        let update = when(
            at(0, 3),
            int(1),
            when(at(1, 4), int(7), when(is(stage(), int(7)), int(7), int(0))),
        );
        let rows = check_stages(one_state(int(0), update.clone(), 1 << 60));
        assert_eq!(rows[..6], ["0", "0", "0", "1", "7", "0"]);
        assert_eq!(rows[38..], ["0", "7", "0"]);
        let rows = check_stages(one_state(int(0), update, 150_000_000));
        assert_eq!(rows[..8], ["0", "0", "0", "1", "7", "0", "0", "0"]);
    }

    #[test]
    fn a_flag_may_be_absent() {
        let absent = Expr { ty: Type::Bool, kind: ExprKind::Const(Value::Absent) };
        let flag = || state(0, Type::Bool);
        let longer = compare(BinaryOp::Gt, field("tcp.payload_len"), int(5));
        let update = when(flag(), absent, when(longer, field("tcp.syn"), flag()));
        let rows = check_stages(one_state(Expr::constant(Value::Bool(true)), update, 1 << 60));
        assert_eq!(rows[..3], ["absent"; 3]);
        assert_eq!(rows[38..], ["false", "false", "absent"]);
    }

    #[test]
    fn texts_and_addresses_are_states_too() {
        let text = |t: &str| Expr::constant(Value::Str(t.into()));
        let open = is(state(0, Type::Str), text("open"));
        let long = compare(BinaryOp::Gt, field("tcp.payload_len"), int(30));
        let update = when(open, text("open"), when(long, text("open"), text("shut")));
        let rows = check_stages(one_state(text("new"), update, 1 << 60));
        assert_eq!([&*rows[0], &*rows[39], &*rows[40]], ["\"shut\"", "\"open\"", "\"shut\""]);
        let ip = |t: &str| Expr::constant(Value::ip(t.parse().expect("an address")));
        let update = when(
            is(state(0, Type::Ip), ip("::1")),
            ip("10.0.0.1"),
            when(is(field("ip.src"), ip("10.0.0.1")), ip("::1"), ip("::")),
        );
        let rows = check_stages(one_state(ip("::1"), update, 1 << 60));
        assert_eq!(rows[..4], ["10.0.0.1", "::1", "10.0.0.1", "10.0.0.1"]);
    }

    #[test]
    fn flags_see_each_other_as_before() {
        let flag = |n| state(n, Type::Bool);
        let not = |e| Expr {
            ty: Type::Bool,
            kind: ExprKind::Unary(weir_plan::UnaryOp::Not, Box::new(e)),
        };
        let no = Expr::constant(Value::Bool(false));
        let states = vec![
            ScanState { name: "a".into(), output: 0, init: no.clone(), update: not(flag(1)) },
            ScanState { name: "b".into(), output: 1, init: no, update: flag(0) },
        ];
        let rows = check_stages(vec![
            Stage::Scan(Scan { states, keys: vec![], idle_ns: 1 << 60, max_keys: 1 }),
            Stage::Project {
                columns: vec![
                    ("a".into(), Expr::column(0, Type::Bool)),
                    ("b".into(), Expr::column(1, Type::Bool)),
                ],
            },
        ]);
        assert_eq!(
            rows[..5],
            ["true false", "true true", "false true", "false false", "true false"]
        );
    }

    #[test]
    fn undefined_updates_count_once() {
        // Of the stages 0 and 1 only the first divides.
        let stage = || state(0, Type::Int);
        let ratio = binary(BinaryOp::Div, int(1), field("tcp.payload_len"));
        let update = when(is(stage(), int(0)), when(is(ratio, int(0)), int(1), int(0)), int(1));
        let rows = check_stages(one_state(int(0), update, 1 << 60));
        assert_eq!(rows[..4], ["0", "0", "1", "1"]);
    }

    /// Packets of many hosts of both families, half of which lag the clock.
    fn hosts() -> Frames {
        let frames = (0..3_000u64).map(|i| {
            let h = HashKey::KNOWN.hash([i]);
            let (host, lag) = ((h >> 20) as u32 % 1_000, (h >> 50) as i64 % 2_000);
            let frame = match h & 1 {
                0 => Frame::ethernet().ipv6(Ipv6Addr::from(u128::from(host)), Ipv6Addr::from(1)),
                _ => Frame::ethernet().ipv4(Ipv4Addr::from(host), Ipv4Addr::from(1)),
            };
            let lag = if h & 2 == 0 { lag } else { 0 };
            ((5_000 + i as i64 * 3 - lag) * 1_000_000, frame.udp(1, 2).bytes())
        });
        Frames::new(LinkType::ETHERNET, &frames.collect::<Vec<_>>())
    }

    /// A scan of so many states, each the number of the row.
    fn positions(states: usize, idle_ns: i64, max_keys: u64) -> Vec<Stage> {
        let mut stages = position(&["ip.src"], idle_ns, max_keys);
        let [Stage::Scan(scan), Stage::Project { columns }] = &mut stages[..] else {
            unreachable!("see position")
        };
        for n in 1..states {
            let update = binary(BinaryOp::Add, state(n, Type::Int), int(1));
            let name = format!("state {n}");
            scan.states.push(ScanState { name, output: n, init: int(0), update });
            columns.push((format!("column {n}"), Expr::column(n, Type::Int)));
        }
        stages
    }

    /// Keys were looked at some at a time, and those of the batch at hand could not go: which
    /// went depended on batches.
    #[test]
    fn the_key_that_had_no_row_for_longest_goes_whatever_the_batches() {
        for (max, idle_ms) in [(1, 1 << 40), (5, 400), (700, 4_000), (700, 1 << 40)] {
            let idle_ns = idle_ms * 1_000_000;
            let keys = vec![field("ip.src")];
            let first = Distinct { keys, windowed: false, idle_ns, max_keys: max };
            let project = Stage::Project { columns: vec![("number".into(), field("number"))] };
            let first = vec![Stage::Distinct(first), project];
            for stages in [positions(1, idle_ns, max), positions(9, idle_ns, max), first] {
                let (mut sink, mut source) = (Collect::default(), hosts());
                let (functions, options) = (Functions::default(), Options::default());
                let plan = program(stages);
                check(&plan, &functions, &source);
                let done = run(&plan, &functions, &mut source, &mut sink, &options, &mut |_| {});
                assert!(done.ledger.evicted > 100, "{:?}", done.ledger);
            }
        }
    }

    #[test]
    fn a_full_scan_evicts_and_counts() {
        let plan = program(position(&["number"], 1 << 60, 5));
        let mut sink = Collect::default();
        let mut source = Frames::sample().cut(&[1]);
        let outcome = run(
            &plan,
            &Functions::default(),
            &mut source,
            &mut sink,
            &Options::default(),
            &mut |_| {},
        );
        assert_eq!((sink.rows.len(), outcome.ledger.evicted), (41, 36));
    }
}
