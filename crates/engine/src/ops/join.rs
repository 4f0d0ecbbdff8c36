//! `join`: rows of two pipelines meet.
//!
//! | | |
//! |---|---|
//! | Syntax | `join [inner\|left\|anti] NAME by KEY, … [within D] [default COLUMN = VALUE, …] [max N]` |
//! | Emits | a left row with its partners when the watermark says that no further one can come, else at the end of the input; one that met none by then, and whose interval is not over, is left out, and counted as undecided |
//! | Order | left rows by time, then as they came; the partners of each likewise |
//! | State | rows of both sides that may still meet, `max` (default 4 Mi) of each; 24 bytes a left row, 32 a right one, and their values; 32 to 64 bytes a key |
//! | Full | a row that finds its side full is left out, and counted as evicted; so is a left row, with all its pairs, when those before it in its tick have made more than `max` pairs and 32 for each of them |
//! | Late | a left row whose interval is over is left out, and counted as late; so is a right row when the intervals of all left rows that it could meet are over; one that comes in between meets the left rows that still wait |
//! | Merge | runs after the rows of all workers are merged |
//! | Exact? | exact |
//!
//! A key's right rows hang together in the order of time. They are put there when the watermark
//! says that no further one belongs before them, which is before the first left row leaves that
//! they may meet. Right rows that lag the watermark come later than that, for left rows that lag it
//! as much: they are gathered and woven in before left rows leave, in one walk along
//! the chain. As left rows leave in the order of time too, what is before the interval of one is
//! before those of all to come: the chain is shortened from its head, and a left row looks at no
//! more rows than it meets. Rows lie in time buckets that are freed together: nothing is moved, and
//! no memory is given back row by row.

mod fill;
mod held;
mod keys;
mod saved;

use crate::checkpoint::{Checkpoint, Passed};
use crate::counters::Ledger;
use crate::hold::{Hold, known};
use crate::node::{Next, Node, NodeInput};
use crate::room::{RoomCharge, RoomShare};
use crate::rows::Rows;
use crate::table::HashKey;
use fill::Fill;
use held::{Due, SideRows, address, bucket_of, time};
use keys::{KeyTable, NONE};
use std::mem::swap;
use std::ops::RangeInclusive;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_plan::limits::{JOIN_PAIRS_EACH, KEY_WORDS_MAX};
use weir_plan::{Join as Plan, JoinKind, Schema, Type};

/// The words before the values of a left row: its time and its key's number.
const LEFT_HEAD: usize = 2;

/// Of a right row also the next one of its key.
const RIGHT_HEAD: usize = 3;

const KEY: usize = 1;
const NEXT: usize = 2;

/// Most rows that a side may hold, so that rows and keys can be numbered.
const MAX_ROWS: u64 = 1 << 28;

/// Which side a row comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// The pipeline itself.
    Left,
    /// The one that it names.
    Right,
}

/// Holds the rows of both sides until they have met.
pub(crate) struct Join {
    plan: Plan,
    keys: KeyTable,
    left: SideRows,
    right: SideRows,
    /// The room for the rows of both sides.
    share: RoomShare,
    charge: RoomCharge,
    fill: Fill,
    /// Right rows that came when those of their time were in chains already: key, time, address.
    lagging: Vec<(u64, i64, u64)>,
    /// The time that the plan makes of the last watermark.
    reached: i64,
    late: u64,
    evicted: u64,
    undecided: u64,
    /// Up to which time it is known what came, when rows leave by no watermark.
    known_until: Option<i64>,
    /// Scratch: positions of rows taken in, the numbers of their keys, when each is let go.
    chosen: Vec<u16>,
    numbers: Box<[u64; BATCH]>,
    due: Box<[Due; BATCH]>,
    order: Vec<(i64, u32)>,
    completed: Vec<u32>,
}

impl Join {
    /// The join of a plan over left rows of these columns.
    pub(crate) fn new(plan: &Plan, left: &Schema, share: &RoomShare, hash_key: HashKey) -> Join {
        assert!(plan.keys.len() <= KEY_WORDS_MAX, "a key has at most {KEY_WORDS_MAX} parts");
        let types: Vec<Type> = plan.keys.iter().map(|&(l, _)| left.columns[l].ty.clone()).collect();
        Join {
            keys: KeyTable::new(&types, hash_key),
            left: SideRows::new(LEFT_HEAD, left, 0..left.columns.len()),
            right: SideRows::new(RIGHT_HEAD, &plan.schema, plan.columns.iter().map(|c| c.from)),
            charge: share.charge(),
            share: share.clone(),
            fill: Fill::new(plan, left),
            lagging: Vec::new(),
            reached: i64::MIN,
            late: 0,
            evicted: 0,
            undecided: 0,
            known_until: None,
            chosen: Vec::with_capacity(BATCH),
            numbers: Box::new([0; BATCH]),
            due: Box::new([Due { complete: 0, gone: 0 }; BATCH]),
            order: Vec::new(),
            completed: Vec::new(),
            plan: plan.clone(),
        }
    }

    /// Takes rows of one side in.
    fn take(&mut self, side: Side, rows: &Rows) {
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
        self.charge.set((self.left.len() + self.right.len()) as u64);
    }

    /// Lists the rows that are neither late nor too many, and says when each is let go.
    fn choose(&mut self, side: Side, rows: &Rows) -> Bits {
        let (plan, times, there) = (&self.plan, rows.time.word(), rows.time.present);
        let held = match side {
            Side::Left => self.left.len(),
            Side::Right => self.right.len(),
        };
        let room = plan.max_rows.min(MAX_ROWS).saturating_sub(held as u64).min(self.share.left());
        // In one tick, all leave together; it is mostly that of the row before.
        let length = plan.tick() as u64;
        let tick_of = |tick: &mut i64, time: i64| {
            if *tick == i64::MIN || time < *tick || tick.abs_diff(time) >= length {
                *tick = plan.reached(time);
            }
            *tick
        };
        let (mut complete, mut gone) = (i64::MIN, i64::MIN);
        self.chosen.clear();
        for i in 0..rows.len {
            let time = time(there, times, i);
            let (until, open_until) = match side {
                Side::Left => (plan.left_until(time), plan.left_until(time)),
                Side::Right => (plan.right_until(time), plan.right_held_until(time)),
            };
            self.due[i] = Due {
                complete: tick_of(&mut complete, until),
                gone: tick_of(&mut gone, open_until),
            };
            // Rows meet by one rule: as long as the left one is open.
            if open_until < self.reached {
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

    /// Adds chosen rows to the bucket of `due`.
    fn add(&mut self, side: Side, due: Due, rows: &Rows, range: std::ops::Range<usize>) {
        let chosen = &self.chosen[range];
        let held = if side == Side::Left { &mut self.left } else { &mut self.right };
        let Some((bucket, first)) = held.add(due, rows, chosen) else {
            self.evicted += chosen.len() as u64;
            return;
        };
        for (&i, row) in chosen.iter().zip(first..) {
            held.row_mut(address(bucket, row))[KEY] = self.numbers[i as usize];
        }
        if side == Side::Right && due.complete < self.reached {
            let lagging = |(&i, row): (&u16, usize)| {
                let me = address(bucket, row);
                (self.numbers[i as usize], self.right.row(me)[0] as i64, me)
            };
            self.lagging.extend(chosen.iter().zip(first..).map(lagging));
        }
    }

    fn let_go(&mut self, reached: Option<i64>, out: &mut dyn FnMut(&Rows)) {
        self.weave();
        let mut completed = std::mem::take(&mut self.completed);
        completed.extend(self.right.completed(self.reached, reached));
        completed.drain(..).for_each(|bucket| self.link(bucket));
        self.completed = completed;
        while let Some(bucket) = self.left.next_due(reached) {
            self.put_out(bucket, out);
            self.left.recycle(bucket);
        }
        self.fill.flush(out);
        while let Some(bucket) = self.right.next_due(reached) {
            self.unlink(bucket);
            self.right.recycle(bucket);
        }
        self.charge.set((self.left.len() + self.right.len()) as u64);
        let Join { keys, left, right, .. } = self;
        keys.sweep(left.len() + right.len(), |f| {
            left.each_word(KEY, f);
            right.each_word(KEY, f);
        });
    }

    /// Puts right rows that lag the watermark where they belong in the chains of their keys. A
    /// chain is walked along once for all of them, and only if one belongs before its end: since
    /// this is done once a tick, each right row is passed a few times at most, whatever makes it
    /// lag.
    fn weave(&mut self) {
        let Join { keys, right, lagging, .. } = self;
        // Of the same time, rows stand in one bucket, and there as they came.
        lagging.sort_unstable();
        for rows in lagging.chunk_by(|a, b| a.0 == b.0) {
            let ends = keys.ends(rows[0].0);
            let [head, tail] = *ends;
            let mut last = (head != NONE).then_some(tail);
            let (mut before, mut next) = (NONE, head);
            for &(_, time, me) in rows {
                if let Some(end) = last.filter(|&end| time_of(right, end) <= time) {
                    (before, next) = (end, NONE);
                }
                while next != NONE && time_of(right, next) <= time {
                    (before, next) = (next, right.row(next)[NEXT]);
                }
                right.row_mut(me)[NEXT] = next;
                match before {
                    NONE => ends[0] = me,
                    _ => right.row_mut(before)[NEXT] = me,
                }
                if next == NONE {
                    (last, ends[1]) = (Some(me), me);
                }
                before = me;
            }
        }
        lagging.clear();
    }

    /// Puts the right rows of a bucket, which are later than all before, into the chains of their
    /// keys.
    fn link(&mut self, bucket: u32) {
        let Join { keys, right, order, .. } = self;
        right.bucket(bucket).by_time(&right.layout, order);
        for rows in order.chunks(BATCH) {
            let key = |right: &SideRows, row: u32| right.row(address(bucket, row as usize))[KEY];
            rows.iter().for_each(|&(_, row)| keys.prefetch(key(right, row)));
            for &(_, row) in rows {
                let me = address(bucket, row as usize);
                let [head, tail] = keys.ends(key(right, row));
                let before = std::mem::replace(tail, me);
                match *head {
                    NONE => *head = me,
                    _ => right.row_mut(before)[NEXT] = me,
                }
                right.row_mut(me)[NEXT] = NONE;
            }
        }
    }

    /// Emits the left rows of a bucket.
    fn put_out(&mut self, bucket: u32, out: &mut dyn FnMut(&Rows)) {
        let Join { plan, keys, left, right, fill, order, evicted, undecided, .. } = self;
        let is_undecided = |time| self.known_until.is_some_and(|at| plan.is_undecided(time, at));
        let (layout, bucket) = (&left.layout, left.bucket(bucket));
        bucket.by_time(layout, order);
        let (mut pairs, mut room) = (0, plan.max_rows);
        for rows in order.chunks(BATCH) {
            let key = |i: u32| bucket.row(layout, i as usize)[KEY];
            rows.iter().for_each(|&(_, i)| keys.prefetch(key(i)));
            rows.iter().for_each(|&(_, i)| right.prefetch(keys.first(key(i))));
            for &(time, i) in rows {
                let row = bucket.row(layout, i as usize);
                let mut partners = match plan.partners(time) {
                    Some(times) => Chain::of(right, keys.ends(row[KEY]), times),
                    None => Chain { right, last: 0, at: NONE },
                }
                .peekable();
                match (plan.kind, partners.peek()) {
                    (JoinKind::Anti, Some(_)) | (JoinKind::Inner, None) => {}
                    (_, None) if is_undecided(time) => *undecided += 1,
                    (_, None) => fill.row(left, bucket, row, right, None, out),
                    (_, Some(_)) if pairs > room => *evicted += 1,
                    (_, Some(_)) => {
                        for partner in partners {
                            fill.row(left, bucket, row, right, Some(partner), out);
                            pairs += 1;
                        }
                    }
                }
                room = room.saturating_add(JOIN_PAIRS_EACH);
            }
        }
    }

    /// Takes the right rows of a bucket, which are earlier than all others, out of the chains of
    /// their keys, as far as these were not shortened.
    fn unlink(&mut self, bucket: u32) {
        let Join { keys, right, .. } = self;
        let n = right.bucket(bucket).len(&right.layout);
        let key = |row: usize| right.row(address(bucket, row))[KEY];
        for from in (0..n).step_by(BATCH) {
            let rows = from..n.min(from + BATCH);
            rows.clone().for_each(|row| keys.prefetch(key(row)));
            for row in rows {
                let head = &mut keys.ends(key(row))[0];
                while *head != NONE && bucket_of(*head) == bucket {
                    *head = right.row(*head)[NEXT];
                }
            }
        }
    }
}

impl Hold for Join {
    fn take_over(&mut self, old: &mut dyn Hold) -> bool {
        let Some(old) = known::<Join>(old) else { return false };
        swap(&mut self.keys, &mut old.keys);
        swap(&mut self.left, &mut old.left);
        swap(&mut self.right, &mut old.right);
        swap(&mut self.fill, &mut old.fill);
        swap(&mut self.lagging, &mut old.lagging);
        swap(&mut self.reached, &mut old.reached);
        swap(&mut self.late, &mut old.late);
        swap(&mut self.evicted, &mut old.evicted);
        swap(&mut self.undecided, &mut old.undecided);
        true
    }

    fn pass_state(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        self.pass_sides(at)
    }
}

impl Node for Join {
    fn push(&mut self, input: NodeInput<'_>, _next: &mut Next<'_>) {
        let NodeInput::Rows { side, rows } = input else { unreachable!("a join takes rows") };
        self.take(if side == 0 { Side::Left } else { Side::Right }, rows);
    }

    /// Moves the watermark of both sides and emits the left rows that need not wait any more.
    fn watermark(&mut self, watermark: i64, next: &mut Next<'_>) -> i64 {
        let reached = self.plan.reached(watermark);
        if reached > self.reached {
            self.let_go(Some(reached), &mut |rows| next.rows(rows));
            self.reached = reached;
        }
        self.plan.downstream(self.reached)
    }

    fn know_until(&mut self, time: Option<i64>) {
        self.known_until = time;
    }

    fn finish(&mut self, next: &mut Next<'_>) {
        self.let_go(None, &mut |rows| next.rows(rows));
    }

    fn holds_rows(&self) -> bool {
        true
    }

    fn count(&self, ledger: &mut Ledger) {
        ledger.late += self.late;
        ledger.evicted += self.evicted + self.keys.refused();
        ledger.undecided += self.undecided;
    }
}

/// The right rows of a key, from one on, up to a time.
struct Chain<'a> {
    right: &'a SideRows,
    last: i64,
    at: u64,
}

impl<'a> Chain<'a> {
    /// The rows of these times. Earlier ones leave the chain.
    #[inline(always)]
    fn of(right: &'a SideRows, [head, _]: &mut [u64; 2], times: RangeInclusive<i64>) -> Chain<'a> {
        while *head != NONE && time_of(right, *head) < *times.start() {
            *head = right.row(*head)[NEXT];
        }
        Chain { right, last: *times.end(), at: *head }
    }
}

impl Iterator for Chain<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let at = self.at;
        if at == NONE || time_of(self.right, at) > self.last {
            return None;
        }
        self.at = self.right.row(at)[NEXT];
        Some(at)
    }
}

/// When a row came.
#[inline(always)]
fn time_of(held: &SideRows, address: u64) -> i64 {
    #[cfg(test)]
    held.looks.set(held.looks.get() + 1);
    held.row(address)[0] as i64
}

#[cfg(test)]
mod tests;
