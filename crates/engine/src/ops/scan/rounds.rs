//! Scans of any states, in rounds: a row is in the first round unless its key has a row before it
//! in the batch, and then in the round after that one's. So no round has a key twice, and each is
//! evaluated column by column.
//!
//! The table is read for the first row of each key and written after the last; between, the states
//! go from row to row within the columns.

use super::state::State;
use super::store::{HEAD, META, MODE_BITS, Store, TakeTerms};
use crate::checkpoint::{BadState, Checkpoint, Passed};
use crate::expr::{Class, Src, copy_rows};
use crate::key::Pool;
use crate::ops::operator::Batch;
use crate::rows::word_max;
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_packet::limits::BATCH;

/// A scan in rounds.
pub(super) struct Rounds {
    texts: Pool,
    work: Box<RoundsScratch>,
}

/// Scratch of one batch.
struct RoundsScratch {
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
    present_at(states).1 - HEAD + states.iter().map(width).sum::<usize>()
}

/// Where the word stands, after the key, whose low bits say which states are present, and where
/// the first state does: the mode's byte, if that has a bit for each, or else a word of its own.
fn present_at(states: &[State]) -> (usize, usize) {
    if states.len() <= MODE_BITS as usize { (META, HEAD) } else { (HEAD, HEAD + 1) }
}

/// Writes the words of a table row after its key: these states, none of which is absent, a word
/// each.
pub(super) fn put(cells: &mut [u64], states: &[State], values: &[u64]) {
    let (present, mut at) = present_at(states);
    cells[present] |= (1 << states.len()) - 1;
    for (state, value) in states.iter().zip(values) {
        cells[at] = *value;
        at += width(state);
    }
}

fn width(state: &State) -> usize {
    state.ty.repr().words().max(1)
}

impl Rounds {
    pub(super) fn new() -> Rounds {
        let work = RoundsScratch {
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

    /// Passes the texts among the states of a key, of which its words have no more than handles,
    /// and checks the others.
    pub(super) fn pass_texts(
        &mut self,
        cells: &mut [u64],
        states: &[State],
        at: &mut Checkpoint<'_>,
    ) -> Passed {
        let (present, mut place) = present_at(states);
        for (n, state) in states.iter().enumerate() {
            let is_there = cells[present] >> n & 1 == 1;
            if Class::of(&state.ty) == Class::Text && is_there {
                let mut text = self.texts.get(cells[place]).to_vec();
                at.bytes(&mut text)?;
                if at.restores() {
                    cells[place] = self.texts.intern(&text);
                }
            }
            if is_there && cells[place] > word_max(&state.ty) {
                return Err(BadState("a state is no value of its type"));
            }
            place += width(state);
        }
        Ok(())
    }

    /// Begins a batch.
    pub(super) fn begin(&mut self) {
        let work = &mut *self.work;
        work.rounds[..work.count].fill(Bits::NONE);
        work.count = 0;
        (work.fresh, work.firsts, work.lasts) = (Bits::NONE, Bits::NONE, Bits::NONE);
    }

    /// Places these rows of a store, as far as [`Store::find_or_add`] goes.
    pub(super) fn take_rows(
        &mut self,
        store: &mut Store,
        terms: TakeTerms<'_>,
        these: Range<usize>,
    ) -> usize {
        let work = &mut *self.work;
        let first = terms.first;
        store.find_or_add(
            terms,
            these,
            #[inline(always)]
            |i, found| {
                let meta = &mut found.cells[META];
                // The position of the row before with this key, if the batch has it.
                let before = (*meta >> MODE_BITS).wrapping_sub(first) as usize;
                let mode = *meta & ((1 << MODE_BITS) - 1);
                *meta = (first + i as u64) << MODE_BITS | mode;
                work.place[i] = found.row;
                work.lasts.set(i);
                let mut round = 0;
                if before < BATCH {
                    work.lasts.put(before, false);
                }
                if found.fresh {
                    work.fresh.set(i);
                } else if before < BATCH {
                    work.before[i] = before as u8;
                    round = work.round[before] + 1;
                } else {
                    work.firsts.set(i);
                }
                work.round[i] = round;
                work.rounds[round as usize].set(i);
                work.count = work.count.max(round as usize + 1);
            },
        )
    }

    /// Says that the key was evicted whose last row has this position in the batch.
    pub(super) fn evicted(&mut self, position: usize) {
        self.work.lasts.put(position, false);
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
            let (stride, key) = (store.stride(), store.meta() - META);
            let table = store.words();
            let (present, first) = present_at(states);
            let (present, mut at) = (key + present, key + first);
            for (n, state) in states.iter().enumerate() {
                let column = &mut batch.ctx.regs.columns[state.before];
                let start = |i: usize| self.work.place[i] as usize * stride;
                rows.each(|i| column.present.put(i, table[start(i) + present] >> n & 1 == 1));
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
            let (stride, key) = (store.stride(), store.meta() - META);
            let table = store.words();
            let start = |i: usize| self.work.place[i] as usize * stride;
            let (flags, first) = present_at(states);
            let (flags, mut at) = (key + flags, key + first);
            let none = !((1 << states.len()) - 1);
            rows.each(|i| table[start(i) + flags] &= none);
            for (n, state) in states.iter().enumerate() {
                let column = &batch.ctx.regs.columns[state.after];
                let present = column.present;
                rows.each(|i| table[start(i) + flags] |= u64::from(present.has(i)) << n);
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
