//! `first(x)` and `last(x)`: the value in the first or last row that has one.
//!
//! | | |
//! |---|---|
//! | Syntax | `first(x)`, `last(x)`, each also with `where condition` |
//! | Takes | any type |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | Order | that in which rows came: packets by their number in the capture, not by time |
//! | State | 16 or 24 bytes a group, and the text of strings |
//! | Merge | the one with the smaller (larger) row number |
//! | Exact? | exact |

use super::{
    Aggregate, Cells, CellsRef, Finish, Input, read_bytes, read_words, write_bytes, write_words,
};
use crate::expr::Class;
use crate::key::Pool;
use std::any::Any;
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_plan::Type;

pub(super) fn build(ty: &Type, last: bool) -> Box<dyn Aggregate> {
    Box::new(FirstLast { class: Class::of(ty), last, pool: Pool::default() })
}

/// Cells: one more than the row's number, 0 for no row; then the value's one or two words.
struct FirstLast {
    class: Class,
    last: bool,
    pool: Pool,
}

impl FirstLast {
    /// Whether a row beats the one held. Rows that were made of one have its number, and stand in
    /// their order.
    #[inline(always)]
    fn beats(&self, held: u64, order: u64) -> bool {
        held == 0 || if self.last { order >= held } else { order < held }
    }

    /// Takes rows in whose values have `N` words.
    #[inline(always)]
    fn take<const N: usize>(
        &mut self,
        input: &Input<'_>,
        cells: &mut Cells<'_>,
        value: impl Fn(&mut Pool, usize) -> [u64; N],
    ) {
        input.each(|group, i| {
            let order = input.seq[i] + 1;
            if self.beats(cells.of::<1>(group)[0], order) {
                let value = value(&mut self.pool, i);
                if N == 2 {
                    *cells.of::<3>(group) = [order, value[0], value[N - 1]];
                } else {
                    *cells.of::<2>(group) = [order, value[0]];
                }
            }
        });
    }

    fn text(&self) -> bool {
        self.class == Class::Text
    }

    /// The held order, and the value's words (the second one unused but for pairs).
    fn held(&self, cells: CellsRef<'_>, group: u32) -> [u64; 3] {
        if self.class == Class::Pair {
            *cells.of::<3>(group)
        } else {
            let &[order, word] = cells.of::<2>(group);
            [order, word, 0]
        }
    }

    fn hold(&self, cells: &mut Cells<'_>, group: u32, new: [u64; 3]) {
        if self.class == Class::Pair {
            *cells.of::<3>(group) = new;
        } else {
            *cells.of::<2>(group) = [new[0], new[1]];
        }
    }
}

impl Aggregate for FirstLast {
    fn cells(&self) -> usize {
        if self.class == Class::Pair { 3 } else { 2 }
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells.fill(0);
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let column = input.columns[0];
        match self.class {
            Class::Pair => {
                let (hi, lo) = column.pair();
                self.take(input, cells, |_, i| [hi[i], lo[i]]);
            }
            Class::Bit => self.take(input, cells, |_, i| [column.truth.has(i) as u64]),
            Class::Text => {
                let words = column.word();
                self.take(input, cells, |pool, i| [pool.intern(input.arena.get(words[i]))]);
            }
            _ => {
                let words = column.word();
                self.take(input, cells, |_, i| [words[i]]);
            }
        }
    }

    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    ) {
        let other = other.as_any().downcast_ref::<Self>().expect("the same aggregate");
        for (there, &here) in map.iter().enumerate() {
            let mut new = self.held(theirs, there as u32);
            if new[0] == 0 || !self.beats(cells.of::<1>(here)[0], new[0]) {
                continue;
            }
            if self.text() {
                new[1] = self.pool.intern(other.pool.get(new[1]));
            }
            self.hold(cells, here, new);
        }
    }

    fn keeps_aside(&self) -> bool {
        self.text()
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let column = &mut *out.column;
        let mut present = Bits::NONE;
        for (i, &group) in groups.iter().enumerate().take(BATCH) {
            let [order, a, b] = self.held(cells, group);
            present.put(i, order > 0);
            match self.class {
                Class::Pair => {
                    let (hi, lo) = column.pair_mut();
                    (hi[i], lo[i]) = (a, b);
                }
                Class::Bit => column.truth.put(i, a == 1),
                Class::Text if order > 0 => {
                    column.word_mut()[i] = out.arena.put(self.pool.get(a));
                }
                Class::Text => {}
                _ => column.word_mut()[i] = a,
            }
        }
        column.present = column.present.or(present);
    }

    fn encode(&self, cells: CellsRef<'_>, group: u32, out: &mut Vec<u8>) {
        let [order, a, b] = self.held(cells, group);
        if self.text() {
            write_words(&[order], out);
            write_bytes(self.pool.get(a), out);
        } else {
            write_words(&[order, a, b], out);
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = *from;
        let new = if self.text() {
            let (Some([order]), Some(text)) = (read_words(&mut rest), read_bytes(&mut rest)) else {
                return false;
            };
            [order, if order > 0 { self.pool.intern(text) } else { 0 }, 0]
        } else {
            let Some(words) = read_words(&mut rest) else { return false };
            words
        };
        *from = rest;
        if new[0] > 0 && self.beats(cells.of::<1>(group)[0], new[0]) {
            self.hold(cells, group, new);
        }
        true
    }

    fn clear(&mut self) {
        self.pool.clear();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check};
    use weir_plan::{AggFunc, Type, Value};

    #[test]
    fn the_first_and_the_last_with_a_value() {
        let rows = [Given::Absent, Given::Int(5), Given::Int(6), Given::Absent];
        check(AggFunc::First, &Type::Int, &rows, Value::Int(5));
        check(AggFunc::Last, &Type::Int, &rows, Value::Int(6));
        check(AggFunc::First, &Type::Ip, &[Given::Ip(1 << 80)], Value::Ip(1 << 80));
        check(
            AggFunc::Last,
            &Type::Str,
            &[Given::Str("a".into()), Given::Str("b".into())],
            Value::Str("b".into()),
        );
        check(AggFunc::First, &Type::Bool, &[Given::Bool(false)], Value::Bool(false));
        check(AggFunc::First, &Type::Bool, &[Given::Absent], Value::Absent);
    }
}
