//! Comparing columns, and conditions on texts.

use super::kernels::{compare, filter};
use super::{Class, Ctx, Regs, Src, Val};
use crate::rows::{Arena, Memo};
use std::cmp::Ordering;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_plan::{BinaryOp, Value};

impl Ctx<'_> {
    /// The rows whose text `f` holds for.
    pub(super) fn text_filter(&mut self, v: &Val, rows: Bits, f: impl Fn(&[u8]) -> bool) -> Bits {
        let src = self.value(v, rows);
        let (col, arena) = (self.column(src), &self.regs.arena);
        let (words, mut out, mut memo) = (col.word(), Bits::NONE, Memo::new());
        col.present.and(rows).each(|i| {
            out.put(i, memo.get(words[i], || f(arena.get(words[i]))));
        });
        out
    }

    /// Compares two columns for rows where both are present.
    pub(super) fn compare(&self, op: BinaryOp, class: Class, a: Src, b: Src, rows: Bits) -> Bits {
        let (x, y, n) = (self.column(a), self.column(b), self.n);
        match class {
            Class::Signed => {
                let (x, y) = (x.word(), y.word());
                compare(op, rows, n, |i| x[i] as i64, |i| y[i] as i64)
            }
            Class::Unsigned => compare(op, rows, n, |i| x.word()[i], |i| y.word()[i]),
            Class::Float => {
                let (x, y) = (x.word(), y.word());
                compare(op, rows, n, |i| class.ordered(x[i]), |i| class.ordered(y[i]))
            }
            Class::Pair => {
                let ((x, x_low), (y, y_low)) = (x.pair(), y.pair());
                let pair = |hi: u64, lo: u64| (hi as u128) << 64 | lo as u128;
                compare(op, rows, n, |i| pair(x[i], x_low[i]), |i| pair(y[i], y_low[i]))
            }
            Class::Bit => bits(op, rows, x.truth.and(rows), y.truth.and(rows)),
            Class::Text => texts(op, rows, n, (x, y), self.regs),
        }
    }

    /// Compares tuples, part by part.
    pub(super) fn compare_tuples(
        &mut self,
        op: BinaryOp,
        parts: &[(Class, Val, Val)],
        rows: Bits,
    ) -> Bits {
        for (_, a, b) in parts {
            self.value(a, rows);
            self.value(b, rows);
        }
        let rows = parts.iter().fold(rows, |left, (_, a, b)| {
            left.and(self.column(a.out()).present).and(self.column(b.out()).present)
        });
        let (mut equal, mut less) = (rows, Bits::NONE);
        for (class, a, b) in parts {
            if equal.is_empty() {
                break;
            }
            let (a, b) = (a.out(), b.out());
            if !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
                less = less.or(self.compare(BinaryOp::Lt, *class, a, b, equal));
            }
            equal = self.compare(BinaryOp::Eq, *class, a, b, equal);
        }
        match op {
            BinaryOp::Eq => equal,
            BinaryOp::Ne => rows.minus(equal),
            BinaryOp::Lt => less,
            BinaryOp::Le => less.or(equal),
            BinaryOp::Gt => rows.minus(less.or(equal)),
            BinaryOp::Ge => rows.minus(less),
            other => unreachable!("{other:?} is not a comparison"),
        }
    }
}

/// Compares truths: of each side the rows among `rows` for which it is true.
fn bits(op: BinaryOp, rows: Bits, x: Bits, y: Bits) -> Bits {
    let (greater, less) = (x.minus(y), y.minus(x));
    match op {
        BinaryOp::Eq => rows.minus(greater.or(less)),
        BinaryOp::Ne => greater.or(less),
        BinaryOp::Lt => less,
        BinaryOp::Le => rows.minus(greater),
        BinaryOp::Gt => greater,
        BinaryOp::Ge => rows.minus(less),
        other => unreachable!("{other:?} is not a comparison"),
    }
}

/// Compares texts, by their bytes only where their handles do not tell.
fn texts(op: BinaryOp, rows: Bits, n: usize, (x, y): (&Column, &Column), regs: &Regs) -> Bits {
    let (x, y, arena) = (x.word(), y.word(), &regs.arena);
    // One handle is one text.
    let mut equal = filter(rows, n, |i| x[i] == y[i]);
    let rest = rows.minus(equal);
    if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
        let maybe = filter(rest, n, |i| {
            let constants = regs.is_constant(x[i]) & regs.is_constant(y[i]);
            (Arena::len_of(x[i]) == Arena::len_of(y[i])) & !constants
        });
        // Only present rows: handles of others may point anywhere.
        maybe.each(|i| equal.put(i, arena.get(x[i]) == arena.get(y[i])));
        return if op == BinaryOp::Eq { equal } else { rows.minus(equal) };
    }
    let mut out = if holds(op, Ordering::Equal) { equal } else { Bits::NONE };
    rest.each(|i| out.put(i, holds(op, arena.get(x[i]).cmp(arena.get(y[i])))));
    out
}

fn holds(op: BinaryOp, order: Ordering) -> bool {
    match op {
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::Ne => order.is_ne(),
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::Le => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        BinaryOp::Ge => order.is_ge(),
        other => unreachable!("{other:?} is not a comparison"),
    }
}

/// Whether row `i` of a column, present, is the constant `v`.
pub(super) fn same(col: &Column, i: usize, v: &Value, arena: &Arena) -> bool {
    let raw = col.raw(i);
    match v {
        Value::Bool(b) => raw == *b as u128,
        Value::Int(n) | Value::Time(n) | Value::Duration(n) => raw == *n as u64 as u128,
        Value::Float(f) => raw as u64 == Value::float_bits(*f),
        Value::Str(s) => arena.get(raw as u64) == s.as_bytes(),
        Value::Bytes(b) => arena.get(raw as u64) == &**b,
        Value::Ip(a) => raw == *a,
        Value::Mac(m) => raw == *m as u128,
        Value::Absent | Value::Net(..) | Value::Tuple(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::Type;

    const OPS: [BinaryOp; 6] =
        [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];

    #[test]
    fn truths_compare_as_numbers() {
        // All four pairs, twice: the second time outside the rows.
        let (rows, x): (Bits, Bits) = (Bits::first(4), [2, 3, 6, 7].into_iter().collect());
        let y: Bits = [1, 3, 5, 7].into_iter().collect();
        for op in OPS {
            let want: Bits = (0..4).filter(|i| holds(op, (i / 2).cmp(&(i % 2)))).collect();
            assert_eq!(bits(op, rows, x.and(rows), y.and(rows)), want, "{op:?}");
        }
    }

    #[test]
    fn texts_compare_by_their_bytes() {
        let all = ["ab", "cd", "", "abc"];
        let mut regs = Regs::default();
        let constants = all.map(|t| regs.constant(&Value::Str(t.into()), &Type::Str));
        let again = all.map(|t| regs.constant(&Value::Str(t.into()), &Type::Str));
        assert_eq!(constants, again);
        // Each text as a constant, and as one that was made, twice.
        let mut handles: Vec<u64> = constants.iter().flatten().map(|&h| h as u64).collect();
        handles.extend(all.iter().chain(&all).map(|t| regs.arena.put(t.as_bytes())));
        let n = handles.len();
        let mut columns = [0, 1].map(|_| Column::new(Type::Str.repr()));
        for i in 0..n * n {
            columns[0].set_raw(i, handles[i / n].into());
            columns[1].set_raw(i, handles[i % n].into());
        }
        let text = |i: usize| all[i % all.len()];
        for op in OPS {
            let rows = Bits::range(1, n * n);
            let want: Bits =
                rows.iter().filter(|i| holds(op, text(i / n).cmp(text(i % n)))).collect();
            assert_eq!(texts(op, rows, n * n, (&columns[0], &columns[1]), &regs), want, "{op:?}");
        }
    }
}
