//! `max_by(x, y)` and `min_by(x, y)`: the value of `x` in the row with the largest or smallest `y`.
//!
//! | | |
//! |---|---|
//! | Syntax | `max_by(x, y)`, `min_by(x, y)`, each also with `where condition` |
//! | Takes | any type; of `y` any ordered type |
//! | Counts | rows where both `x` and `y` have a value; of several with that `y`, the one with the smallest `x` |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | State | 40 bytes a group, and the text of strings |
//! | Merge | the larger (smaller) `y`; of equal ones the smaller `x` |
//! | Exact? | exact |

use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use crate::expr::Class;
use crate::key::{KeyPart, Pool};
use std::any::Any;
use std::cmp::Ordering;
use weir_packet::column::Column;
use weir_plan::Expr;

/// Of the value and what it is chosen by.
pub(super) fn build([value, by]: [&Expr; 2], max: bool) -> Box<dyn Aggregate> {
    let (value, by) = (Side::of(value), Side::of(by));
    Box::new(MaxBy { value, by, max, pool: Pool::default() })
}

/// Cells: whether there is a row; then two words each for what it was chosen by and for its value.
/// They are kept as numbers in the order of their values, texts as handles.
struct MaxBy {
    value: Side,
    by: Side,
    max: bool,
    pool: Pool,
}

/// An argument.
struct Side {
    class: Class,
    /// How it is written.
    part: KeyPart,
}

/// A row: what it was chosen by, and its value.
#[derive(Clone, Copy)]
struct Choice {
    by: u128,
    value: u128,
}

impl Side {
    fn of(e: &Expr) -> Side {
        Side { class: Class::of(&e.ty), part: KeyPart::of(e).present() }
    }

    fn is_text(&self) -> bool {
        self.class == Class::Text
    }

    /// A value, as [`Column::raw`] gives it, as a number in the order of values.
    #[inline(always)]
    fn number(&self, raw: u128) -> u128 {
        match self.class {
            Class::Signed | Class::Float => self.class.ordered(raw as u64).into(),
            _ => raw,
        }
    }

    /// The value that [`Side::number`] made a number of.
    fn raw(&self, number: u128) -> u128 {
        match self.class {
            Class::Signed | Class::Float => self.class.unordered(number as u64).into(),
            _ => number,
        }
    }

    /// How a number of this argument compares with one that is held; `text` gives new texts.
    fn compare<'t>(
        &self,
        new: u128,
        held: u128,
        text: impl Fn(u64) -> &'t [u8],
        pool: &Pool,
    ) -> Ordering {
        match self.class {
            Class::Text => text(new as u64).cmp(pool.get(held as u64)),
            _ => new.cmp(&held),
        }
    }
}

impl MaxBy {
    /// The row of a group.
    fn held(cells: CellsRef<'_>, group: u32) -> Option<Choice> {
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let &[seen, by_high, by_low, high, low] = cells.of(group);
        (seen > 0).then(|| Choice { by: wide(by_high, by_low), value: wide(high, low) })
    }

    /// Takes a row in whose texts `text` gives.
    fn offer<'t>(
        &mut self,
        cells: &mut Cells<'_>,
        group: u32,
        new: Choice,
        text: impl Fn(u64) -> &'t [u8] + Copy,
    ) {
        let Cells { rows, stride, at } = &*cells;
        if let Some(held) = Self::held(CellsRef { rows, stride: *stride, at: *at }, group) {
            let by = self.by.compare(new.by, held.by, text, &self.pool);
            let by = if self.max { by.reverse() } else { by };
            let value = || self.value.compare(new.value, held.value, text, &self.pool);
            if by.then_with(value).is_ge() {
                return;
            }
        }
        let mut kept = |side: &Side, number: u128| match side.class {
            Class::Text => self.pool.intern(text(number as u64)).into(),
            _ => number,
        };
        let (by, value): (u128, u128) = (kept(&self.by, new.by), kept(&self.value, new.value));
        let high = |number: u128| (number >> 64) as u64;
        *cells.of::<5>(group) = [1, high(by), by as u64, high(value), value as u64];
    }

    /// Takes rows in that are chosen by numbers, or by texts of these handles. `loses` says of a
    /// number, and the one held, that the row cannot count: most rows are decided so.
    #[inline(always)]
    fn take(
        &mut self,
        input: &Input<'_>,
        cells: &mut Cells<'_>,
        by: impl Fn(usize) -> u128,
        loses: impl Fn(u128, u128) -> bool,
    ) {
        let [value, column]: [&Column; 2] = input.columns.try_into().expect("two arguments");
        let both = value.present.and(column.present);
        input.each(|group, i| {
            let by = by(i);
            let &mut [seen, high, low, ..] = cells.of::<5>(group);
            let held = u128::from(high) << 64 | u128::from(low);
            if both.has(i) && !(seen > 0 && loses(by, held)) {
                let value = self.value.number(value.raw(i));
                self.offer(cells, group, Choice { by, value }, |handle| input.arena.get(handle));
            }
        });
    }
}

impl Aggregate for MaxBy {
    fn cells(&self) -> usize {
        5
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells.fill(0);
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let column = input.columns[1];
        let class = self.by.class;
        match (class, self.max) {
            (Class::Text, _) => self.take(input, cells, |i| column.raw(i), |_, _| false),
            (Class::Pair, true) => {
                self.take(input, cells, |i| column.raw(i), |new, held| new < held)
            }
            (Class::Pair, false) => {
                self.take(input, cells, |i| column.raw(i), |new, held| new > held)
            }
            (_, max) => {
                let words = column.word();
                let number = |i: usize| u128::from(class.ordered(words[i]));
                match max {
                    true => self.take(input, cells, number, |new, held| new < held),
                    false => self.take(input, cells, number, |new, held| new > held),
                }
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
            if let Some(new) = Self::held(theirs, there as u32) {
                self.offer(cells, here, new, |handle| other.pool.get(handle));
            }
        }
    }

    fn hints(&self) -> Hints {
        Hints { keeps_aside: self.by.is_text() || self.value.is_text(), ..Hints::CELLS }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        for (i, &group) in groups.iter().enumerate() {
            let Some(Choice { value, .. }) = Self::held(cells, group) else { continue };
            let raw = match self.value.class {
                Class::Text => out.arena.put(self.pool.get(value as u64)).into(),
                _ => self.value.raw(value),
            };
            out.column.set_raw(i, raw);
        }
    }

    fn kind(&self) -> StateKind {
        if self.max { StateKind::GreatestBy } else { StateKind::LeastBy }
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        for &group in groups {
            out.put(|out| match Self::held(cells, group) {
                None => out.push(0),
                Some(Choice { by, value }) => {
                    self.by.part.write(Some(self.by.raw(by)), &self.pool, out);
                    self.value.part.write(Some(self.value.raw(value)), &self.pool, out);
                }
            });
        }
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        if let Some((0, rest)) = from.split_first() {
            *from = rest;
            return true;
        }
        let (mut rest, mut texts) = (*from, Pool::default());
        let mut read = |side: &Side| {
            let raw = side.part.read(&mut texts, &mut rest)??;
            Some(side.number(raw))
        };
        let (Some(by), Some(value)) = (read(&self.by), read(&self.value)) else { return false };
        *from = rest;
        self.offer(cells, group, Choice { by, value }, |handle| texts.get(handle));
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
    use crate::agg::laws::{Given, check, fuzz_decode};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Expr, ExprKind, Type, Value, Window};

    fn rows(rows: &[(&str, i64)]) -> Vec<Given> {
        let row =
            |(x, y): &(&str, i64)| Given::Tuple(vec![Given::Str((*x).into()), Given::Int(*y)]);
        rows.iter().map(row).collect()
    }

    #[test]
    fn the_value_beside_the_largest_and_the_smallest() {
        let (max, min) = (AggFunc::MaxBy, AggFunc::MinBy);
        let ty = Type::Tuple(vec![Type::Str, Type::Int]);
        let text = |s: &str| Value::Str(s.into());
        let some = rows(&[("b", 3), ("c", -1), ("d", 7), ("a", 7), ("e", -1)]);
        check(max, &ty, &some, text("a"));
        check(min, &ty, &some, text("c"));
        check(max, &ty, &[], Value::Absent);
        let lacking = [
            Given::Tuple(vec![Given::Absent, Given::Int(9)]),
            Given::Tuple(vec![Given::Str("x".into()), Given::Absent]),
        ];
        check(max, &ty, &lacking, Value::Absent);
        check(max, &ty, &[&lacking[..], &some].concat(), text("a"));
        fuzz_decode(max, &ty, &some);
    }

    #[test]
    fn it_holds_over_packets() {
        for window in [Window::All, Window::Tumbling(50_000_000)] {
            let of = |func, x: &str, y: &str| {
                let parts = vec![field(x), field(y)];
                let ty = Type::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
                agg(func, Some(Expr { ty, kind: ExprKind::Tuple(parts) }))
            };
            let aggs = vec![
                of(AggFunc::MaxBy, "ip.src", "len"),
                of(AggFunc::MinBy, "tcp.sport", "ip.dst"),
                of(AggFunc::MaxBy, "ts", "tcp.seq"),
            ];
            check_stages(vec![summarize(&["ip.proto"], aggs, window)]);
        }
    }
}
