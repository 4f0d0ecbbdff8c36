//! Scans that are automata: each row's transitions were computed for all states at once, so that a
//! row needs its key's state only to choose one. No rounds, no states to load.

use super::state::State;
use super::store::{META, MODE_BITS, Store, TakeTerms};
use crate::expr::{AUTOMATON_STATES, Automaton, START};
use crate::ops::operator::Batch;
use std::ops::Range;
use weir_packet::bits::Bits;
use weir_packet::column::Repr;
use weir_packet::limits::BATCH;

/// A scan that is an automaton. The mode's byte of a row is its state.
pub(super) struct Steps {
    automaton: Automaton,
    work: Box<StepsScratch>,
}

/// Scratch of one batch, by row.
struct StepsScratch {
    /// Four bits for each state before, the state after.
    transitions: [u64; BATCH],
    /// The state after the row.
    after: [u8; BATCH],
    /// The states that some row of the batch came to, as bits.
    seen: u32,
}

impl Steps {
    pub(super) fn new(automaton: Automaton) -> Steps {
        let work = Box::new(StepsScratch { transitions: [0; BATCH], after: [0; BATCH], seen: 0 });
        Steps { automaton, work }
    }

    /// The state of the automaton in which its states have these values; that in which a key begins
    /// if there is none.
    pub(super) fn number_of(&self, states: &[u64]) -> u64 {
        let has = |n: &usize| {
            let value = |s: usize| self.automaton.output(s)[*n];
            states.iter().enumerate().all(|(s, v)| value(s) == Some(u128::from(*v)))
        };
        (0..AUTOMATON_STATES).find(has).unwrap_or(START.into()) as u64
    }

    /// Computes what each row does.
    pub(super) fn begin(&mut self, batch: &mut Batch<'_>, rows: Bits) {
        self.work.seen = 0;
        self.automaton.transitions(&mut batch.ctx, rows, &mut self.work.transitions);
    }

    /// Takes these rows of a store through their steps, as far as [`Store::find_or_add`] goes.
    pub(super) fn take_rows(
        &mut self,
        store: &mut Store,
        terms: TakeTerms<'_>,
        these: Range<usize>,
    ) -> usize {
        match terms.numbers {
            true => self.take_numbered::<true>(store, terms, these),
            false => self.take_numbered::<false>(store, terms, these),
        }
    }

    fn take_numbered<const NUMBERS: bool>(
        &mut self,
        store: &mut Store,
        terms: TakeTerms<'_>,
        these: Range<usize>,
    ) -> usize {
        let StepsScratch { transitions, after, seen } = &mut *self.work;
        let (mut came, first) = (0u32, terms.first << MODE_BITS);
        let end = store.find_or_add(
            terms,
            these,
            #[inline(always)]
            |i, found| {
                let before = if found.fresh { START as u64 } else { found.cells[META] };
                let next = transitions[i] >> ((before * 4) & 63) & 15;
                let number = if NUMBERS { first + ((i as u64) << MODE_BITS) } else { 0 };
                found.cells[META] = number | next;
                after[i] = next as u8;
                came |= 1 << next;
            },
        );
        *seen |= came;
        end
    }

    /// Writes the states after the rows.
    pub(super) fn end(&self, batch: &mut Batch<'_>, rows: Bits, states: &[State]) {
        let StepsScratch { after, seen, .. } = &*self.work;
        let n = batch.ctx.n;
        let state = |i: usize| after[i] as usize & (AUTOMATON_STATES - 1);
        for (s, to) in states.iter().enumerate() {
            let values = self.automaton.output(s);
            let column = &mut batch.ctx.regs.columns[to.after];
            // Which states of the automaton have a value, as bits.
            let mask = |f: &dyn Fn(u128) -> bool| {
                (0..AUTOMATON_STATES).map(|v| u32::from(values[v].is_some_and(f)) << v).sum::<u32>()
            };
            let pick = |mask: u32| match (seen & mask, seen & !mask) {
                (0, _) => Bits::NONE,
                (_, 0) => rows,
                _ => Bits::from_fn(n, |i| mask >> state(i) & 1 == 1).and(rows),
            };
            column.present = pick(mask(&|_| true));
            match to.ty.repr() {
                Repr::Bit => column.truth = pick(mask(&|v| v != 0)),
                Repr::Word => {
                    let raw = values.map(|v| v.unwrap_or(0) as u64);
                    let words = column.word_mut();
                    if seen.is_power_of_two() {
                        words.fill(raw[seen.trailing_zeros() as usize & (AUTOMATON_STATES - 1)]);
                    } else {
                        (0..n.min(BATCH)).for_each(|i| words[i] = raw[state(i)]);
                    }
                }
                Repr::Pair => {
                    let raw = values.map(|v| v.unwrap_or(0));
                    let (high, low) = column.pair_mut();
                    (0..n.min(BATCH)).for_each(|i| {
                        (high[i], low[i]) = ((raw[state(i)] >> 64) as u64, raw[state(i)] as u64);
                    });
                }
            }
        }
    }
}
