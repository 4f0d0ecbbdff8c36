//! `min(x)` and `max(x)`: the smallest and the largest value.
//!
//! | | |
//! |---|---|
//! | Syntax | `min(x)`, `max(x)`, each also with `where condition` |
//! | Takes | any ordered type: int, float, time, duration, ip, mac, string, bytes |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | State | 8 to 24 bytes a group, and the text of strings |
//! | Merge | the smaller, or larger |
//! | Exact? | exact |

use super::fixed::{CellsResult, Fixed, Of};
use super::{Aggregate, CellStep, Cells, CellsRef, Finish, Input, StateKind, States};
use crate::expr::Class;
use crate::key::{Pool, read_text, write_text};
use crate::rows::word_max;
use std::any::Any;
use weir_plan::{Expr, ExprKind};

/// `nullable`: whether a group may have rows and no value.
pub(super) fn build(arg: &Expr, max: bool, nullable: bool) -> Box<dyn Aggregate> {
    // No packet has the time that stands for none in a fresh cell, be it the least or the greatest.
    let is_packet_time = matches!(&arg.kind, ExprKind::Field(id) if id.info().name == "ts");
    let most = word_max(&arg.ty);
    match Class::of(&arg.ty) {
        Class::Pair => Box::new(Of(MinMaxPair { max })),
        Class::Text => Box::new(MinMaxText { max, pool: Pool::default() }),
        class if nullable && !is_packet_time => {
            Box::new(Of::<_, 2>(MinMaxWord { class, max, is_packet_time, most }))
        }
        class => Box::new(Of::<_, 1>(MinMaxWord { class, max, is_packet_time, most })),
    }
}

/// Cells: the best value in ordered form, complemented for `max`, so that smaller is better and a
/// fresh cell is all ones; and where groups may lack values, whether there was one.
struct MinMaxWord {
    class: Class,
    max: bool,
    /// The values are times of packets: a fresh cell has none.
    is_packet_time: bool,
    /// The largest word of its type: a state that came from elsewhere may hold more.
    most: u64,
}

impl MinMaxWord {
    /// A word as a number of which the smallest is the best.
    #[inline(always)]
    fn rank(&self, word: u64) -> u64 {
        let n = self.class.ordered(word);
        if self.max { !n } else { n }
    }

    fn unrank(&self, n: u64) -> u64 {
        self.class.unordered(if self.max { !n } else { n })
    }
}

impl Fixed<1> for MinMaxWord {
    const FRESH: [u64; 1] = [u64::MAX];
    const KIND: StateKind = StateKind::Least;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        let mut offer = |group, n: u64| {
            let best = &mut cells.of::<1>(group)[0];
            *best = (*best).min(n);
        };
        // The common shapes without a choice in the loop.
        let signed = Class::Signed;
        match (self.class, self.max) {
            (Class::Signed, false) => input.each(|g, i| offer(g, signed.ordered(values[i]))),
            (Class::Signed, true) => input.each(|g, i| offer(g, !signed.ordered(values[i]))),
            _ => input.each(|g, i| offer(g, self.rank(values[i]))),
        }
    }

    fn step(&self) -> Option<CellStep> {
        let flip = match self.class {
            Class::Signed => 1 << 63,
            Class::Unsigned => 0,
            _ => return None,
        };
        Some(CellStep::Least(if self.max { !flip } else { flip }))
    }

    fn merge(&self, [into]: &mut [u64; 1], [from]: &[u64; 1]) {
        *into = (*into).min(*from);
    }

    fn finish(&self, &[best]: &[u64; 1]) -> CellsResult {
        match best {
            u64::MAX if self.is_packet_time => CellsResult::Absent,
            _ => CellsResult::Value(u128::from(self.unrank(best) & self.most)),
        }
    }
}

impl Fixed<2> for MinMaxWord {
    const FRESH: [u64; 2] = [u64::MAX, 0];
    const KIND: StateKind = StateKind::LeastSeen;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.merge(cells.of(group), &[self.rank(values[i]), 1]));
    }

    fn merge(&self, into: &mut [u64; 2], from: &[u64; 2]) {
        into[0] = into[0].min(from[0]);
        into[1] |= from[1];
    }

    fn finish(&self, &[best, seen]: &[u64; 2]) -> CellsResult {
        if seen == 0 { CellsResult::Absent } else { Fixed::<1>::finish(self, &[best]) }
    }
}

/// Addresses. Cells: high and low half of the best (complemented for `max`), whether there was one.
struct MinMaxPair {
    max: bool,
}

impl Fixed<3> for MinMaxPair {
    const FRESH: [u64; 3] = [u64::MAX, u64::MAX, 0];
    const KIND: StateKind = StateKind::LeastPair;

    fn update(&self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let (high, low) = input.columns[0].pair();
        let flip = if self.max { u64::MAX } else { 0 };
        input.each(|group, i| self.merge(cells.of(group), &[high[i] ^ flip, low[i] ^ flip, 1]));
    }

    fn merge(&self, into: &mut [u64; 3], from: &[u64; 3]) {
        if (from[0], from[1]) < (into[0], into[1]) {
            (into[0], into[1]) = (from[0], from[1]);
        }
        into[2] |= from[2];
    }

    fn finish(&self, &[high, low, seen]: &[u64; 3]) -> CellsResult {
        let best = (high as u128) << 64 | low as u128;
        match seen {
            0 => CellsResult::Absent,
            _ if self.max => CellsResult::Value(!best),
            _ => CellsResult::Value(best),
        }
    }
}

/// Texts. Cells: handle of the best in the pool, whether there was one.
struct MinMaxText {
    max: bool,
    pool: Pool,
}

impl MinMaxText {
    fn offer(&mut self, cells: &mut [u64; 2], text: &[u8]) {
        let best = self.pool.get(cells[0]);
        let better = if self.max { text > best } else { text < best };
        if cells[1] == 0 || better {
            *cells = [self.pool.intern(text), 1];
        }
    }
}

impl Aggregate for MinMaxText {
    fn cells(&self) -> usize {
        2
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells.fill(0);
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let values = input.columns[0].word();
        input.each(|group, i| self.offer(cells.of(group), input.arena.get(values[i])));
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
            let &[handle, seen] = theirs.of::<2>(there as u32);
            if seen != 0 {
                self.offer(cells.of(here), other.pool.get(handle));
            }
        }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        for (i, &group) in groups.iter().enumerate() {
            let &[handle, seen] = cells.of::<2>(group);
            if seen != 0 {
                out.column.set_raw(i, out.arena.put(self.pool.get(handle)) as u128);
            }
        }
    }

    fn kind(&self) -> StateKind {
        if self.max { StateKind::GreatestText } else { StateKind::LeastText }
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        for &group in groups {
            let &[handle, seen] = cells.of::<2>(group);
            out.put(|out| {
                out.push(u8::from(seen != 0));
                if seen != 0 {
                    write_text(self.pool.get(handle), out);
                }
            });
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = match from.split_first() {
            Some((0, rest)) => {
                *from = rest;
                return true;
            }
            Some((1, rest)) => rest,
            _ => return false,
        };
        let Some(text) = read_text(&mut rest) else { return false };
        *from = rest;
        self.offer(cells.of(group), &text);
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
    fn smallest_and_largest() {
        let both = |ty: &Type, rows: &[Given], min: Value, max: Value| {
            check(AggFunc::Min, ty, rows, min);
            check(AggFunc::Max, ty, rows, max);
        };
        both(&Type::Int, &[], Value::Absent, Value::Absent);
        both(
            &Type::Int,
            &[Given::Int(3), Given::Int(-4), Given::Absent],
            Value::Int(-4),
            Value::Int(3),
        );
        both(
            &Type::Float,
            &[Given::Float(-0.5), Given::Float(-1.5)],
            Value::Float(-1.5),
            Value::Float(-0.5),
        );
        both(&Type::Ip, &[Given::Ip(7), Given::Ip(1 << 100)], Value::Ip(7), Value::Ip(1 << 100));
        both(
            &Type::Str,
            &[Given::Str("b".into()), Given::Str("a".into())],
            Value::Str("a".into()),
            Value::Str("b".into()),
        );
        both(&Type::Str, &[Given::Str("".into())], Value::Str("".into()), Value::Str("".into()));
    }
}
