//! `join`: rows of two pipelines meet.
//!
//! | | |
//! |---|---|
//! | Syntax | `join [inner\|left\|anti] NAME by KEY, … [within D] [default COLUMN = VALUE, …] [max N]` |
//! | Emits | a left row with its partners when the watermark says that no further one can come, else at the end of the input |
//! | Order | left rows by time, then as they came; the partners of each likewise |
//! | State | rows of both sides that may still meet, `max` (default 4 Mi) of each; 24 bytes a left row, 40 a right one, and their values; 32 to 64 bytes a key |
//! | Full | a row that finds its side full is left out, and counted as evicted |
//! | Late | a left row whose interval is over, and a right row that came after such left rows as it might have met, are left out, and counted as late |
//! | Merge | runs after the rows of all workers are merged |
//! | Exact? | exact |
//!
//! Right rows of a key hang together in the order they came, so that a left row finds its partners
//! by one look-up; it is looked up when it comes, with its batch, and its partners are looked at
//! when it leaves. Rows lie in lots that leave together: nothing is moved, and no memory is given
//! back row by row.

mod fill;
mod held;
mod keys;

use crate::counters::Ledger;
use crate::rows::Rows;
use fill::Fill;
use held::{Held, address, time};
use keys::{KeyTable, NONE};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::limits::KEY_WORDS_MAX;
use weir_plan::{Join as Plan, JoinKind, Schema, Type};

/// The words before the values of a left row: its time and its key's number.
const LEFT_HEAD: usize = 2;

/// Of a right row also the rows before and behind it of the same key.
const RIGHT_HEAD: usize = 4;

const KEY: usize = 1;
const BEFORE: usize = 2;
const BEHIND: usize = 3;

/// Most rows that a side may hold, so that rows and keys can be numbered.
const MAX_ROWS: u64 = 1 << 28;

/// Which side a row comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The pipeline itself.
    Left,
    /// The one that it names.
    Right,
}

/// Holds the rows of both sides until they have met.
pub struct Join {
    plan: Plan,
    keys: KeyTable,
    left: Held,
    right: Held,
    fill: Fill,
    /// What the plan makes of the last watermark.
    reached: i64,
    late: u64,
    evicted: u64,
    /// Scratch: positions of rows taken in, the numbers of their keys, when each is let go.
    chosen: Vec<u16>,
    numbers: Box<[u64; BATCH]>,
    due: Box<[i64; BATCH]>,
    order: Vec<(i64, u32)>,
    heads: Vec<u64>,
    partners: Vec<(i64, u32, u64)>,
}

impl Join {
    /// The join of a plan over left rows of these columns.
    pub fn new(plan: &Plan, left: &Schema) -> Join {
        assert!(plan.keys.len() <= KEY_WORDS_MAX, "a key has at most {KEY_WORDS_MAX} parts");
        let types: Vec<Type> = plan.keys.iter().map(|&(l, _)| left.columns[l].ty.clone()).collect();
        Join {
            keys: KeyTable::new(&types),
            left: Held::new(LEFT_HEAD, left, 0..left.columns.len()),
            right: Held::new(RIGHT_HEAD, &plan.schema, plan.columns.iter().map(|c| c.from)),
            fill: Fill::new(plan, left),
            reached: i64::MIN,
            late: 0,
            evicted: 0,
            chosen: Vec::with_capacity(BATCH),
            numbers: Box::new([0; BATCH]),
            due: Box::new([0; BATCH]),
            order: Vec::new(),
            heads: Vec::with_capacity(BATCH),
            partners: Vec::new(),
            plan: plan.clone(),
        }
    }

    /// Takes rows of one side in.
    pub fn push(&mut self, side: Side, rows: &Rows) {
        let taken = self.choose(side, rows);
        if taken.is_empty() {
            return;
        }
        // Unused entries need some column to point at.
        let mut columns: [&Column; KEY_WORDS_MAX] = [&rows.time; KEY_WORDS_MAX];
        for (column, &(left, right)) in columns.iter_mut().zip(&self.plan.keys) {
            *column = &rows.columns[if side == Side::Left { left } else { right }];
        }
        let columns = &columns[..self.plan.keys.len()];
        self.keys.find(columns, taken, &rows.arena, &mut self.numbers);
        let mut from = 0;
        while from < self.chosen.len() {
            let due = self.due[self.chosen[from] as usize];
            let same = |&i: &u16| self.due[i as usize] == due;
            let n = self.chosen[from..].iter().take_while(|i| same(i)).count();
            self.add(side, due, rows, from..from + n);
            from += n;
        }
    }

    /// Lists the rows that are neither late nor too many, and says when each is let go.
    fn choose(&mut self, side: Side, rows: &Rows) -> Bits {
        let (plan, times, there) = (&self.plan, rows.time.word(), rows.time.present);
        let held = match side {
            Side::Left => self.left.len(),
            Side::Right => self.right.len(),
        };
        let room = plan.max_rows.min(MAX_ROWS).saturating_sub(held as u64);
        let (mut tick, length) = (i64::MIN, plan.tick() as u64);
        self.chosen.clear();
        for i in 0..rows.len {
            let time = time(there, times, i);
            let (until, due) = match side {
                Side::Left => (plan.left_until(time), plan.left_until(time)),
                Side::Right => (plan.right_until(time), plan.right_held_until(time)),
            };
            // In one tick, all are let go together; it is mostly that of the row before.
            if tick == i64::MIN || due < tick || tick.abs_diff(due) >= length {
                tick = plan.reached(due);
            }
            self.due[i] = tick;
            if until < self.reached {
                self.late += 1;
            } else {
                self.chosen.push(i as u16);
            }
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(self.chosen.len());
        self.evicted += (self.chosen.len() - room) as u64;
        self.chosen.truncate(room);
        self.chosen.iter().map(|&i| i as usize).collect()
    }

    /// Adds chosen rows to the lot that is let go at `due`.
    fn add(&mut self, side: Side, due: i64, rows: &Rows, range: std::ops::Range<usize>) {
        let chosen = &self.chosen[range];
        let held = if side == Side::Left { &mut self.left } else { &mut self.right };
        let Some((lot, first)) = held.add(due, rows, chosen) else {
            self.evicted += chosen.len() as u64;
            return;
        };
        for (&i, row) in chosen.iter().zip(first..) {
            let (key, me) = (self.numbers[i as usize], address(lot, row));
            held.row_mut(me)[KEY] = key;
            if side == Side::Right {
                let [head, tail] = self.keys.ends(key);
                let before = std::mem::replace(tail, me);
                if before == NONE {
                    *head = me;
                } else {
                    held.row_mut(before)[BEHIND] = me;
                }
                let row = held.row_mut(me);
                (row[BEFORE], row[BEHIND]) = (before, NONE);
            }
        }
    }

    /// Moves the watermark of both sides and puts out the left rows that need not wait any more.
    /// Returns the watermark of what comes out.
    pub fn watermark(&mut self, watermark: i64, out: &mut dyn FnMut(&Rows)) -> i64 {
        let reached = self.plan.reached(watermark);
        if reached > self.reached {
            self.reached = reached;
            self.let_go(Some(reached), out);
        }
        self.plan.downstream(self.reached)
    }

    /// Puts everything out.
    pub fn finish(&mut self, out: &mut dyn FnMut(&Rows)) {
        self.let_go(None, out);
    }

    fn let_go(&mut self, reached: Option<i64>, out: &mut dyn FnMut(&Rows)) {
        while let Some(lot) = self.left.next_due(reached) {
            self.put_out(lot, out);
            self.left.recycle(lot);
        }
        self.fill.flush(out);
        while let Some(lot) = self.right.next_due(reached) {
            self.unlink(lot);
            self.right.recycle(lot);
        }
        let Join { keys, left, right, .. } = self;
        keys.sweep(left.len() + right.len(), |f| {
            left.each_word(KEY, f);
            right.each_word(KEY, f);
        });
    }

    /// Puts out the left rows of a lot.
    fn put_out(&mut self, lot: u32, out: &mut dyn FnMut(&Rows)) {
        let Join { plan, keys, left, right, fill, order, heads, partners, .. } = self;
        let (shape, lot) = (&left.shape, left.lot(lot));
        order.clear();
        order.extend((0..lot.len(shape)).map(|i| (lot.row(shape, i)[0] as i64, i as u32)));
        if !order.is_sorted() {
            order.sort_unstable();
        }
        for rows in order.chunks(BATCH) {
            let key = |i: u32| lot.row(shape, i as usize)[KEY];
            rows.iter().for_each(|&(_, i)| keys.prefetch(key(i)));
            heads.clear();
            for &(_, i) in rows {
                let head = keys.first(key(i));
                right.prefetch(head);
                heads.push(head);
            }
            for (&(time, i), &head) in rows.iter().zip(&*heads) {
                let row = lot.row(shape, i as usize);
                find(plan, right, time, head, partners);
                match (plan.kind, partners.is_empty()) {
                    (JoinKind::Anti, false) | (JoinKind::Inner, true) => {}
                    (_, true) => fill.row(left, lot, row, right, None, out),
                    (_, false) => {
                        for &(.., partner) in &*partners {
                            fill.row(left, lot, row, right, Some(partner), out);
                        }
                    }
                }
            }
        }
    }

    /// Takes the right rows of a lot out of the chains of their keys.
    fn unlink(&mut self, lot: u32) {
        let Join { keys, right, .. } = self;
        let n = right.lot(lot).len(&right.shape);
        let key = |right: &Held, row: usize| right.row(address(lot, row))[KEY];
        for from in (0..n).step_by(BATCH) {
            let rows = from..n.min(from + BATCH);
            rows.clone().for_each(|row| keys.prefetch(key(right, row)));
            for row in rows {
                let row = right.row(address(lot, row));
                let (key, before, behind) = (row[KEY], row[BEFORE], row[BEHIND]);
                let ends = keys.ends(key);
                match before {
                    NONE => ends[0] = behind,
                    before => right.row_mut(before)[BEHIND] = behind,
                }
                match behind {
                    NONE => ends[1] = before,
                    behind => right.row_mut(behind)[BEFORE] = before,
                }
            }
        }
    }

    /// Adds what was counted to the ledger.
    pub fn count(&self, ledger: &mut Ledger) {
        ledger.late += self.late;
        ledger.evicted += self.evicted + self.keys.refused();
    }
}

/// The partners of a left row: the rows of a chain whose times fit, in the order of time. Where
/// only their number matters, at most one.
fn find(plan: &Plan, right: &Held, left: i64, head: u64, partners: &mut Vec<(i64, u32, u64)>) {
    partners.clear();
    let times = plan.partners(left);
    let mut at = head;
    while at != NONE {
        let row = right.row(at);
        let time = row[0] as i64;
        if times.contains(&time) {
            partners.push((time, partners.len() as u32, at));
            if plan.kind == JoinKind::Anti {
                return;
            }
        }
        at = row[BEHIND];
    }
    if !partners.is_sorted() {
        partners.sort_unstable();
    }
}

#[cfg(test)]
mod tests;
