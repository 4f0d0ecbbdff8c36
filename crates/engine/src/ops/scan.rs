//! `scan`: folds the rows of each key, in order, into named states.
//!
//! | | |
//! |---|---|
//! | Syntax | `scan NAME = INIT by KEY idle D max N => EXPR`; in Rust, [`map_with_state`](crate::api::Keyed::map_with_state) |
//! | Emits | on push: every row, with the states after it as columns |
//! | Order | kept |
//! | State | per key its words, three words of housekeeping and one or two a state; `max` (default 1 Mi) keys, `idle` (default 1 h) |
//! | Full | a key that was not touched lately is evicted, and counted |
//! | Late | a late row is folded in as it comes; it cannot bring an expired key back |
//! | Merge | partitioned by key |
//! | Exact? | exact up to `max`; which key is evicted beyond depends on batches and workers |
//!
//! The updates of a batch run in rounds: first the first row of every key, then every second row,
//! and so on. Within a round no key occurs twice, so a round is evaluated column by column like
//! any other expression.

use super::{Batch, Operator};
use crate::counters::Ledger;
use crate::expr::{Class, Src, Val};
use crate::key::{Chosen, Layout, Part, Pool, narrow_rows, pack};
use crate::limits::{EVICT_LOOK, EVICT_STEPS, SWEEP};
use crate::prefetch::prefetch;
use crate::table::{Index, Keys, hash};
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;
use weir_plan::Type;
use weir_plan::limits::SCAN_STATES_MAX;

/// One state of a scan.
pub struct State {
    /// Its initial value, evaluated over a key's first row.
    pub init: Val,
    /// Its next value.
    pub update: Val,
    /// Where the update reads the value before the row.
    pub before: usize,
    /// Where the value after the row goes.
    pub after: usize,
    /// Its type.
    pub ty: Type,
}

/// A scan over all rows it is given.
pub struct Scan {
    keys: Vec<Val>,
    parts: Vec<Part>,
    states: Vec<State>,
    idle_ns: i64,
    max_keys: usize,
    shards: Vec<Shard>,
    key_texts: Pool,
    state_texts: Pool,
    /// Numbers batches, to tell which keys this one has touched.
    batch: u64,
    evicted: u64,
    work: Box<Work>,
}

/// Scratch of one batch.
struct Work {
    srcs: Vec<Src>,
    rows: Vec<u16>,
    /// Shard and table row of each batch row.
    place: [(u8, u32); BATCH],
    /// In which round each batch row is.
    round: [u16; BATCH],
}

/// The keys of one layout. A row: key, time of the last row, `batch << 16 | rows in it`, which
/// states are present, then the states' words.
struct Shard {
    layout: Layout,
    keys: Keys,
    index: Index,
    rows: Vec<u64>,
    stride: usize,
    free: Vec<u32>,
    hand: usize,
    /// Keys that came since the last sweep.
    added: usize,
}

const LAST: usize = 0;
const TOUCHED: usize = 1;
const PRESENT: usize = 2;
const WORDS: usize = 3;
/// A freed row's `TOUCHED`.
const FREE: u64 = u64::MAX;

impl Scan {
    /// A scan by `keys` of the shapes `parts`.
    pub fn new(
        keys: Vec<Val>,
        parts: Vec<Part>,
        states: Vec<State>,
        idle_ns: i64,
        max_keys: u64,
    ) -> Scan {
        assert!(states.len() <= SCAN_STATES_MAX, "a scan has at most {SCAN_STATES_MAX} states");
        let words: usize = states.iter().map(|s| s.ty.repr().words().max(1)).sum();
        let (narrow, wide) = Layout::both(&parts);
        let shards = [Some(narrow), wide]
            .into_iter()
            .flatten()
            .map(|layout| Shard {
                keys: Keys::new(layout.words),
                index: Index::with_capacity(0),
                rows: Vec::new(),
                stride: layout.words + WORDS + words,
                free: Vec::new(),
                hand: 0,
                added: 0,
                layout,
            })
            .collect();
        Scan {
            keys,
            parts,
            states,
            idle_ns,
            max_keys: usize::try_from(max_keys)
                .unwrap_or(usize::MAX)
                .clamp(1, u32::MAX as usize - 1),
            shards,
            key_texts: Pool::default(),
            state_texts: Pool::default(),
            batch: 0,
            evicted: 0,
            work: Box::new(Work {
                srcs: Vec::new(),
                rows: Vec::with_capacity(BATCH),
                place: [(0, 0); BATCH],
                round: [0; BATCH],
            }),
        }
    }

    fn live(&self) -> usize {
        self.shards.iter().map(Shard::live).sum()
    }

    /// Finds or makes the table row of each batch row and numbers the rounds; returns how many.
    fn place_rows(&mut self, batch: &mut Batch<'_>, rows: Bits) -> u16 {
        let mut srcs = std::mem::take(&mut self.work.srcs);
        srcs.clear();
        srcs.extend(self.keys.iter().map(|k| batch.ctx.value(k, rows)));
        let columns: Vec<&Column> = srcs.iter().map(|&s| batch.ctx.column(s)).collect();
        let narrow = narrow_rows(&self.parts, &columns, rows);
        let arena = &batch.ctx.regs.arena;
        let mut rounds = 0;
        for (s, rows) in [narrow, rows.minus(narrow)].into_iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            self.work.rows.clear();
            rows.each(|i| self.work.rows.push(i as u16));
            let shard = &mut self.shards[s];
            pack(
                &shard.layout,
                &columns,
                Chosen { set: rows, positions: &self.work.rows },
                &mut self.key_texts,
                arena,
                &mut shard.keys,
            );
            shard.keys.hash();
            shard.index.reserve(shard.keys.len);
            shard.prefetch();
            for j in 0..self.work.rows.len() {
                let i = self.work.rows[j] as usize;
                let row = match self.shards[s].find(j) {
                    Ok(row) => row,
                    Err(()) => {
                        if self.live() >= self.max_keys {
                            // If this batch touched them all it goes over, and back at its end.
                            self.evict(s);
                        }
                        self.shards[s].add(j)
                    }
                };
                let touched = &mut self.shards[s].cells(row)[TOUCHED];
                if *touched >> 16 != self.batch {
                    *touched = self.batch << 16;
                }
                self.work.place[i] = (s as u8, row);
                self.work.round[i] = *touched as u16;
                *touched += 1;
                rounds = rounds.max(self.work.round[i] + 1);
            }
        }
        drop(columns);
        self.work.srcs = srcs;
        rounds
    }

    /// Makes room for one key: drops the one idle the longest of a few that this batch has not
    /// touched, from this shard or another. `false` if there is none.
    fn evict(&mut self, prefer: usize) -> bool {
        let batch = self.batch;
        let order = (prefer..self.shards.len()).chain(0..prefer);
        for s in order {
            if self.shards[s].evict(batch) {
                self.evicted += 1;
                return true;
            }
        }
        false
    }

    /// One round: loads the states, computes the next ones, stores them.
    fn round(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        let mut first = Bits::NONE;
        rows.each(|i| {
            let (s, row) = self.work.place[i];
            let cells = self.shards[s as usize].cells(row);
            let clock = batch.clock[i];
            let last = cells[LAST] as i64;
            let new = cells[PRESENT] == FREE;
            if new || clock.saturating_sub(last) >= self.idle_ns {
                first.set(i);
            }
            cells[LAST] = if new { clock } else { last.max(clock) } as u64;
        });
        self.load(batch, rows.minus(first));
        for state in &self.states {
            let src = batch.ctx.value(&state.init, first);
            copy(batch, src, state.before, first);
        }
        for state in &self.states {
            let src = batch.ctx.value(&state.update, rows);
            copy(batch, src, state.after, rows);
        }
        self.store(batch, rows);
    }

    /// Table rows to the `before` columns.
    fn load(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        let mut at = WORDS;
        for (n, state) in self.states.iter().enumerate() {
            let mut column = take(batch, state.before);
            rows.each(|i| {
                let (s, row) = self.work.place[i];
                let cells = self.shards[s as usize].cells(row);
                if cells[PRESENT] >> n & 1 == 0 {
                    column.present.put(i, false);
                    return;
                }
                let raw = match state.ty.repr() {
                    Repr::Pair => (cells[at] as u128) << 64 | cells[at + 1] as u128,
                    _ => cells[at] as u128,
                };
                let raw = if Class::of(&state.ty) == Class::Text {
                    batch.ctx.regs.arena.put(self.state_texts.get(raw as u64)) as u128
                } else {
                    raw
                };
                column.set_raw(i, raw);
            });
            batch.ctx.regs.columns[state.before] = column;
            at += state.ty.repr().words().max(1);
        }
    }

    /// The `after` columns to table rows.
    fn store(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        rows.each(|i| {
            let (s, row) = self.work.place[i];
            let cells = self.shards[s as usize].cells(row);
            cells[PRESENT] = 0;
            let mut at = WORDS;
            for (n, state) in self.states.iter().enumerate() {
                let column = &batch.ctx.regs.columns[state.after];
                let words = state.ty.repr().words().max(1);
                if column.present.has(i) {
                    cells[PRESENT] |= 1 << n;
                    let raw = column.raw(i);
                    if Class::of(&state.ty) == Class::Text {
                        let text = batch.ctx.regs.arena.get(raw as u64);
                        cells[at] = self.state_texts.intern(text);
                    } else if words == 2 {
                        (cells[at], cells[at + 1]) = ((raw >> 64) as u64, raw as u64);
                    } else {
                        cells[at] = raw as u64;
                    }
                }
                at += words;
            }
        });
    }
}

impl Operator for Scan {
    fn push(&mut self, batch: &mut Batch<'_>, rows: Bits) -> Bits {
        if rows.is_empty() {
            return rows;
        }
        self.batch += 1;
        let rounds = self.place_rows(batch, rows);
        for state in &self.states {
            batch.ctx.regs.columns[state.after].present = Bits::NONE;
        }
        let mut left = rows;
        for r in 0..rounds {
            let round = &self.work.round;
            let now: Bits = left.iter().filter(|&i| round[i] == r).collect();
            left = left.minus(now);
            self.round(batch, now);
        }
        // Keys that this batch touched could not be evicted before.
        self.batch += 1;
        while self.live() > self.max_keys && self.evict(0) {}
        rows
    }

    fn watermark(&mut self, watermark: i64) {
        if let Some(old) = watermark.checked_sub(self.idle_ns) {
            self.shards.iter_mut().for_each(|s| s.sweep(old));
        }
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.evicted += self.evicted + self.key_texts.refused() + self.state_texts.refused();
    }
}

fn take(batch: &mut Batch<'_>, slot: usize) -> Column {
    std::mem::replace(&mut batch.ctx.regs.columns[slot], Column::new(Repr::Bit))
}

/// Copies the rows of one column to a register, absent ones too.
fn copy(batch: &mut Batch<'_>, from: Src, to: usize, rows: Bits) {
    if from == Src::Slot(to) {
        return;
    }
    let mut column = take(batch, to);
    let source = batch.ctx.column(from);
    let present = source.present;
    rows.and(present).each(|i| column.set_raw(i, source.raw(i)));
    column.present = column.present.minus(rows.minus(present));
    batch.ctx.regs.columns[to] = column;
}

impl Shard {
    fn live(&self) -> usize {
        self.rows.len() / self.stride - self.free.len()
    }

    /// The words of a row behind its key.
    #[inline(always)]
    fn cells(&mut self, row: u32) -> &mut [u64] {
        let start = row as usize * self.stride + self.layout.words;
        &mut self.rows[start..start + self.stride - self.layout.words]
    }

    fn key(&self, row: u32) -> &[u64] {
        &self.rows[row as usize * self.stride..][..self.layout.words]
    }

    fn prefetch(&self) {
        let hashes = &self.keys.hashes[..self.keys.len];
        hashes.iter().for_each(|&h| self.index.prefetch(h));
        for &h in hashes {
            if let Some(row) = self.index.candidate(h) {
                prefetch(&self.rows, row as usize * self.stride);
            }
        }
    }

    fn find(&self, j: usize) -> Result<u32, ()> {
        let found = self.index.find(self.keys.hashes[j], |row| {
            self.key(row).iter().zip(&self.keys.words).all(|(k, w)| *k == w[j])
        });
        found.map_err(|_| ())
    }

    fn add(&mut self, j: usize) -> u32 {
        self.added += 1;
        let row = self.free.pop().unwrap_or_else(|| {
            let row = self.rows.len() / self.stride;
            self.rows.resize(self.rows.len() + self.stride, 0);
            row as u32
        });
        let start = row as usize * self.stride;
        for (w, plane) in self.keys.words.iter().enumerate() {
            self.rows[start + w] = plane[j];
        }
        let cells = self.cells(row);
        cells[TOUCHED] = 0;
        cells[PRESENT] = FREE;
        let h = self.keys.hashes[j];
        let Err(place) = self.index.find(h, |_| false) else { unreachable!("no row is the same") };
        self.index.insert(place, h, row);
        row
    }

    fn remove(&mut self, row: u32) {
        let h = hash(self.key(row).iter().copied());
        self.index.remove(h, row);
        self.cells(row)[TOUCHED] = FREE;
        self.free.push(row);
    }

    /// Removes the key idle the longest of the next few under the hand that batch `batch` has not
    /// touched. `false` if there is none.
    fn evict(&mut self, batch: u64) -> bool {
        let rows = self.rows.len() / self.stride;
        let (mut seen, mut oldest) = (0, None);
        for _ in 0..rows.min(EVICT_STEPS) {
            if seen == EVICT_LOOK {
                break;
            }
            self.hand = (self.hand + 1) % rows;
            let row = self.hand as u32;
            let cells = self.cells(row);
            let (last, touched) = (cells[LAST] as i64, cells[TOUCHED]);
            if touched == FREE || touched >> 16 == batch {
                continue;
            }
            seen += 1;
            if oldest.is_none_or(|(time, _)| last < time) {
                oldest = Some((last, row));
            }
        }
        oldest.is_some_and(|(_, row)| {
            self.remove(row);
            true
        })
    }

    /// Removes keys whose last row is not after `old`, among the next few under the hand.
    fn sweep(&mut self, old: i64) {
        let rows = self.rows.len() / self.stride;
        let steps = SWEEP * (1 + std::mem::take(&mut self.added));
        for _ in 0..steps.min(rows) {
            self.hand = (self.hand + 1) % rows;
            let row = self.hand as u32;
            let cells = self.cells(row);
            if cells[TOUCHED] != FREE && cells[LAST] as i64 <= old {
                self.remove(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::conform::{Frames, check, check_stages, program};
    use crate::functions::Functions;
    use crate::ops::testing::{binary, field, int, state};
    use crate::rows::Collect;
    use crate::run::{Options, run};
    use weir_packet::source::LinkType;
    use weir_plan::stage::ScanState;
    use weir_plan::{BinaryOp, Expr, Scan, Stage, Type};

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
        let rows = check_stages(position(&["dport"], 1 << 60, 100));
        assert_eq!(rows[..4], ["1 1", "2 2", "3 1", "4 3"]);
        assert_eq!(rows[40], "41 1");
    }

    #[test]
    fn without_a_key_there_is_one_state() {
        let rows = check_stages(position(&[], 1 << 60, 100));
        assert_eq!(rows[40], "41 41");
    }

    #[test]
    fn idle_keys_start_again() {
        let rows = check_stages(position(&["dport"], 300_000_000, 100));
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
        let plan = program(position(&["len"], 10_000_000_000, 100));
        let rows = check(&plan, &Functions::default(), &frames);
        let shown: Vec<_> = rows.iter().map(|r| r.1[1].to_string()).collect();
        assert_eq!(shown, ["1", "2", "3", "4", "1", "2", "3", "4", "5", "6"]);
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
