//! `first(x)` and `last(x)`: the value in the first or last row that has one.
//!
//! | | |
//! |---|---|
//! | Syntax | `first(x)`, `last(x)`, each also with `where condition` |
//! | Takes | any type |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | Order | that in which rows came: packets by their number in the capture, not by time |
//! | State | 24 or 32 bytes a group, and the text of strings |
//! | Merge | the one with the smaller (larger) row number; between probes by the time of the packet, or of one before it at its probe if that was later, then by number, then by probe; where the kernel counts, too, by the time of the packet |
//! | Exact? | exact |

use super::bytes::{read_words, write_words};
use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use crate::expr::Class;
use crate::key::{KeyPart, Pool};
use crate::peers::Peers;
use std::any::Any;
use std::cmp::Ordering;
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_packet::source::FrameBatch;
use weir_plan::Expr;

pub(super) fn build(arg: &Expr, last: bool, peers: Peers) -> Box<dyn Aggregate> {
    let part = KeyPart::of(arg).present();
    let (shift, tag) = match peers {
        Peers::Probes { tag } => (u16::BITS, u64::from(tag)),
        Peers::None | Peers::Kernel => (0, 0),
    };
    let by_time = peers == Peers::Kernel;
    let (class, pool) = (Class::of(&arg.ty), Pool::default());
    Box::new(FirstLast { class, by_time, shift, tag, part, last, pool })
}

/// Cells: one more than the row's number, 0 for no row; the time that was [noted] of its packet for
/// other probes, or the packet's time, with its sign flipped; then the value's one or two words.
///
/// Within a run numbers say all. Between probes, which number their own packets, times go first,
/// and the tag of a probe is the low bits of its numbers. The kernel numbers none.
///
/// [noted]: FrameBatch::note_times
struct FirstLast {
    class: Class,
    /// Whether times of packets are noted, for the kernel's to be compared with.
    by_time: bool,
    /// By how many bits numbers are moved up, and what stands in these.
    shift: u32,
    tag: u64,
    /// The value as a part of a key, to be written.
    part: KeyPart,
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

    /// The time that is noted of the frame of this number.
    #[inline(always)]
    fn noted(&self, frames: &FrameBatch, number: u64) -> Option<i64> {
        match self.by_time {
            false => frames.noted_time(number),
            true => frames.seq().binary_search(&number).ok().map(|i| frames.ts()[i]),
        }
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
            let order = (input.seq[i] << self.shift | self.tag) + 1;
            if self.beats(cells.of::<1>(group)[0], order) {
                let value = value(&mut self.pool, i);
                let noted = input.frames.and_then(|frames| self.noted(frames, input.seq[i]));
                let time = noted.map_or(0, |w| Class::Signed.ordered(w as u64));
                if N == 2 {
                    *cells.of::<4>(group) = [order, time, value[0], value[N - 1]];
                } else {
                    *cells.of::<3>(group) = [order, time, value[0]];
                }
            }
        });
    }

    fn text(&self) -> bool {
        self.class == Class::Text
    }

    /// The held order, its time, and the value's words (the second one unused but for pairs).
    fn held(&self, cells: CellsRef<'_>, group: u32) -> [u64; 4] {
        if self.class == Class::Pair {
            *cells.of::<4>(group)
        } else {
            let &[order, time, word] = cells.of::<3>(group);
            [order, time, word, 0]
        }
    }

    fn hold(&self, cells: &mut Cells<'_>, group: u32, new: [u64; 4]) {
        if self.class == Class::Pair {
            *cells.of::<4>(group) = new;
        } else {
            *cells.of::<3>(group) = [new[0], new[1], new[2]];
        }
    }

    /// Takes the row of another state in, whose text stands in `texts`. Two lives of a probe may
    /// have a packet of the same number at the same time: then the smaller value counts, so that it
    /// does not matter which state is merged into which.
    fn offer(&mut self, cells: &mut Cells<'_>, group: u32, new: [u64; 4], texts: Option<&Pool>) {
        let Cells { rows, stride, at } = &*cells;
        let held = self.held(CellsRef { rows, stride: *stride, at: *at }, group);
        let [order, time, ..] = new;
        let text = texts.map(|texts| texts.get(new[2]));
        let by_value = || match text {
            Some(text) => text.cmp(self.pool.get(held[2])),
            None => new[2..].cmp(&held[2..]),
        };
        let wins = match (time, order).cmp(&(held[1], held[0])) {
            _ if order == 0 => false,
            _ if held[0] == 0 => true,
            Ordering::Less => !self.last,
            Ordering::Equal => by_value().is_lt(),
            Ordering::Greater => self.last,
        };
        if wins {
            let word = text.map_or(new[2], |text| self.pool.intern(text));
            self.hold(cells, group, [order, time, word, new[3]]);
        }
    }
}

impl Aggregate for FirstLast {
    fn cells(&self) -> usize {
        if self.class == Class::Pair { 4 } else { 3 }
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
            let new = self.held(theirs, there as u32);
            self.offer(cells, here, new, self.text().then_some(&other.pool));
        }
    }

    fn hints(&self) -> Hints {
        Hints { keeps_aside: self.text(), ..Hints::CELLS }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let column = &mut *out.column;
        let mut present = Bits::NONE;
        for (i, &group) in groups.iter().enumerate().take(BATCH) {
            let [order, _, a, b] = self.held(cells, group);
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

    fn kind(&self) -> StateKind {
        if self.last { StateKind::Last } else { StateKind::First }
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        for &group in groups {
            let [order, time, a, b] = self.held(cells, group);
            let Some(number) = order.checked_sub(1) else {
                out.put(|out| out.push(0));
                continue;
            };
            let raw = match self.class {
                Class::Pair => u128::from(a) << 64 | u128::from(b),
                _ => u128::from(a),
            };
            out.put(|out| {
                self.part.write(Some(raw), &self.pool, out);
                write_words(&[time, number], out);
            });
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        if let Some((0, rest)) = from.split_first() {
            *from = rest;
            return true;
        }
        let (mut rest, mut texts) = (*from, Pool::default());
        let Some(Some(raw)) = self.part.read(&mut texts, &mut rest) else { return false };
        let Some([time, number]) = read_words(&mut rest) else { return false };
        let Some(order) = number.checked_add(1) else { return false };
        *from = rest;
        let [a, b] = match self.class {
            Class::Pair => [(raw >> 64) as u64, raw as u64],
            _ => [raw as u64, 0],
        };
        self.offer(cells, group, [order, time, a, b], self.text().then_some(&texts));
        true
    }

    fn clear(&mut self) {
        self.pool.clear();
    }

    fn aside(&self) -> usize {
        self.pool.bytes()
    }

    fn evicted(&self) -> u64 {
        self.pool.refused()
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
