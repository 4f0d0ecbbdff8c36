//! Scans of any states, in rounds: a row is in the first round unless its key has a row before it
//! in the batch, and then in the round after that one's. So no round has a key twice, and each is
//! evaluated column by column.
//!
//! The table is read for the first row of each key and written after the last; between, the states
//! go from row to row within the columns.

use super::store::{HEAD, META, Store, Terms};
use super::{Batch, State};
use crate::expr::{Class, Src, copy_rows};
use crate::key::Pool;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;

/// The mode's word of a row: which states are present in the high half; in the low half the
/// position of the last row of the batch that had the key, from 1 on, and 0 between batches.
const HERE: u64 = 0xffff_ffff;

/// A scan in rounds.
pub(super) struct Rounds {
    texts: Pool,
    work: Box<Work>,
}

/// Scratch of one batch.
struct Work {
    /// The table row of each row.
    place: [u32; BATCH],
    /// The row before it with the same key, of those after the first round.
    before: [u8; BATCH],
    /// The round of each row.
    round: [u8; BATCH],
    /// The rows of each round.
    rounds: [Bits; BATCH],
    count: usize,
    /// Rows whose key starts anew.
    fresh: Bits,
    /// The first rows of keys that do not, and the last rows of all keys.
    firsts: Bits,
    lasts: Bits,
}

/// Words of a table row that hold states.
pub(super) fn words(states: &[State]) -> usize {
    states.iter().map(width).sum()
}

fn width(state: &State) -> usize {
    state.ty.repr().words().max(1)
}

impl Rounds {
    pub(super) fn new() -> Rounds {
        let work = Work {
            place: [0; BATCH],
            before: [0; BATCH],
            round: [0; BATCH],
            rounds: [Bits::NONE; BATCH],
            count: 0,
            fresh: Bits::NONE,
            firsts: Bits::NONE,
            lasts: Bits::NONE,
        };
        Rounds { texts: Pool::default(), work: Box::new(work) }
    }

    /// How many texts found no room.
    pub(super) fn refused(&self) -> u64 {
        self.texts.refused()
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        let work = &mut *self.work;
        work.rounds[..work.count].fill(Bits::NONE);
        work.count = 0;
        (work.fresh, work.firsts, work.lasts) = (Bits::NONE, Bits::NONE, Bits::NONE);
    }

    /// Whether a key that no row of the batch has may go.
    pub(super) fn may_go(meta: u64) -> bool {
        meta & HERE == 0
    }

    /// Places the rows of a store; returns how many keys were evicted.
    pub(super) fn take(&mut self, store: &mut Store, terms: Terms<'_>) -> u64 {
        let work = &mut *self.work;
        store.each(
            terms,
            Rounds::may_go,
            #[inline(always)]
            |i, found| {
                let meta = &mut found.cells[META];
                let here = (*meta & HERE) as usize;
                *meta = *meta & !HERE | (i as u64 + 1);
                work.place[i] = found.row;
                work.lasts.set(i);
                if here > 0 {
                    work.lasts.put(here - 1, false);
                }
                let mut round = 0;
                if found.fresh {
                    work.fresh.set(i);
                } else if here > 0 {
                    work.before[i] = (here - 1) as u8;
                    round = work.round[here - 1] + 1;
                } else {
                    work.firsts.set(i);
                }
                work.round[i] = round;
                work.rounds[round as usize].set(i);
                work.count = work.count.max(round as usize + 1);
            },
        )
    }

    /// Evaluates the rows that were placed and stores the states after them.
    pub(super) fn end(&mut self, batch: &mut Batch<'_>, stores: &mut [Store], states: &[State]) {
        self.load(batch, stores, states);
        for state in states {
            let src = batch.ctx.value(&state.init, self.work.fresh);
            copy(batch, src, state.before, self.work.fresh);
        }
        for r in 0..self.work.count {
            let rows = self.work.rounds[r];
            if r > 0 {
                states.iter().for_each(|state| self.hand_on(batch, state, rows));
            }
            for state in states {
                let src = batch.ctx.value(&state.update, rows);
                if r == 0 {
                    copy_all(batch, src, state.after);
                } else {
                    copy(batch, src, state.after, rows);
                }
            }
        }
        self.store(batch, stores, states);
    }

    /// States after the rows before, to the states before `rows`.
    fn hand_on(&self, batch: &mut Batch<'_>, state: &State, rows: Bits) {
        let (from, to) = batch.ctx.split(Src::Slot(state.after), state.before);
        rows.each(|i| {
            let last = self.work.before[i] as usize;
            to.present.put(i, from.present.has(last));
            match to.repr() {
                Repr::Bit => to.truth.put(i, from.truth.has(last)),
                Repr::Word => to.word_mut()[i] = from.word()[last],
                Repr::Pair => {
                    let ((high, low), (to_high, to_low)) = (from.pair(), to.pair_mut());
                    (to_high[i], to_low[i]) = (high[last], low[last]);
                }
            }
        });
    }

    /// Table rows to the states before the first row of each key.
    fn load(&mut self, batch: &mut Batch<'_>, stores: &mut [Store], states: &[State]) {
        for store in stores {
            let rows = store.taken.and(self.work.firsts);
            let (stride, meta) = (store.stride(), store.meta());
            let table = store.words();
            let mut at = meta - META + HEAD;
            for (n, state) in states.iter().enumerate() {
                let column = &mut batch.ctx.regs.columns[state.before];
                let start = |i: usize| self.work.place[i] as usize * stride;
                rows.each(|i| column.present.put(i, table[start(i) + meta] >> (32 + n) & 1 == 1));
                let there = column.present.and(rows);
                match state.ty.repr() {
                    Repr::Bit => rows.each(|i| column.truth.put(i, table[start(i) + at] != 0)),
                    Repr::Word if Class::of(&state.ty) == Class::Text => {
                        let (arena, words) = (&mut batch.ctx.regs.arena, column.word_mut());
                        there.each(|i| words[i] = arena.put(self.texts.get(table[start(i) + at])));
                    }
                    Repr::Word => {
                        let words = column.word_mut();
                        rows.each(|i| words[i] = table[start(i) + at]);
                    }
                    Repr::Pair => {
                        let (high, low) = column.pair_mut();
                        rows.each(|i| {
                            (high[i], low[i]) = (table[start(i) + at], table[start(i) + at + 1]);
                        });
                    }
                }
                at += width(state);
            }
        }
    }

    /// The states after the last row of each key to table rows.
    fn store(&mut self, batch: &mut Batch<'_>, stores: &mut [Store], states: &[State]) {
        for store in stores {
            let rows = store.taken.and(self.work.lasts);
            let (stride, meta) = (store.stride(), store.meta());
            let table = store.words();
            let start = |i: usize| self.work.place[i] as usize * stride;
            rows.each(|i| table[start(i) + meta] = 0);
            let mut at = meta - META + HEAD;
            for (n, state) in states.iter().enumerate() {
                let column = &batch.ctx.regs.columns[state.after];
                let present = column.present;
                rows.each(|i| table[start(i) + meta] |= u64::from(present.has(i)) << (32 + n));
                match state.ty.repr() {
                    Repr::Bit => {
                        rows.each(|i| table[start(i) + at] = u64::from(column.truth.has(i)));
                    }
                    Repr::Word if Class::of(&state.ty) == Class::Text => {
                        let (arena, words) = (&batch.ctx.regs.arena, column.word());
                        rows.and(present).each(|i| {
                            table[start(i) + at] = self.texts.intern(arena.get(words[i]));
                        });
                    }
                    Repr::Word => {
                        let words = column.word();
                        rows.each(|i| table[start(i) + at] = words[i]);
                    }
                    Repr::Pair => {
                        let (high, low) = column.pair();
                        rows.each(|i| {
                            (table[start(i) + at], table[start(i) + at + 1]) = (high[i], low[i]);
                        });
                    }
                }
                at += width(state);
            }
        }
    }
}

/// Copies the rows of one column to a register, absent ones too.
fn copy(batch: &mut Batch<'_>, from: Src, to: usize, rows: Bits) {
    if from == Src::Slot(to) || rows.is_empty() {
        return;
    }
    let (from, to): (&Column, &mut Column) = batch.ctx.split(from, to);
    to.present = to.present.minus(rows).or(from.present.and(rows));
    copy_rows(from, to, rows);
}

/// Copies a whole column to a register.
fn copy_all(batch: &mut Batch<'_>, from: Src, to: usize) {
    if from != Src::Slot(to) {
        let (from, to) = batch.ctx.split(from, to);
        to.copy_from(from);
    }
}
