//! Walking an evaluation tree over one batch.

use super::compare::same;
use super::kernels::{arith, compare, compare_arith, convert, each, filter, truth};
use super::set::Ranges;
use super::{Branch, Class, Cond, Convert, Ctx, Regs, Src, TextTest, Val};
use crate::rows::{cell, set_cell};
use weir_base::address::is_v4;
use weir_packet::bits::Bits;
use weir_packet::column::{Column, Repr};
use weir_plan::{BinaryOp, Type, Value};

impl Ctx<'_> {
    /// Makes sure that the column behind a value is valid for `rows` and says where it stands.
    pub(crate) fn value(&mut self, v: &Val, rows: Bits) -> Src {
        match v {
            Val::Src(Src::Field(i)) => {
                self.view
                    .as_mut()
                    .expect("fields are compiled only where packets are")
                    .ensure(*i, rows);
                Src::Field(*i)
            }
            Val::Src(Src::Text(i)) => {
                self.text_field(*i, rows);
                Src::Text(*i)
            }
            Val::Src(src) => *src,
            Val::Binary { op, a, b, out } => {
                let (a, b) = (self.value(a, rows), self.value(b, rows));
                let mut col = self.take(*out);
                let (x, y) = (self.column(a), self.column(b));
                let present = x.present.and(y.present).and(rows);
                let y = y.word();
                let bad = arith(*op, present, self.n, x.word(), |i| y[i], col.word_mut());
                self.put_checked(*out, col, present, bad)
            }
            Val::BinaryConst { op, a, k, out } => {
                let a = self.value(a, rows);
                let n = self.n;
                let (x, col) = self.split(a, *out);
                let present = x.present.and(rows);
                let bad = arith(*op, present, n, x.word(), |_| *k, col.word_mut()).and(present);
                col.present = present.minus(bad);
                *self.undefined += bad.count() as u64;
                Src::Slot(*out)
            }
            Val::Unary { op, a, out } => self.unary(*op, a, *out, rows),
            Val::Cases { cases, other, out } => self.cases(cases, other, *out, rows),
            Val::Coalesce { a, b, out } => {
                let a = self.value(a, rows);
                let there = self.column(a).present.and(rows);
                let b = self.value(b, rows.minus(there));
                self.choose(*out, (a, there), (b, rows.minus(there)))
            }
            Val::Extreme { larger, class, a, b, out } => {
                let (a, b) = (self.value(a, rows), self.value(b, rows));
                let op = if *larger { BinaryOp::Ge } else { BinaryOp::Le };
                let both = self.column(a).present.and(self.column(b).present).and(rows);
                let first = self.compare(op, *class, a, b, both);
                self.choose(*out, (a, first), (b, both.minus(first)))
            }
            Val::Bool { cond, out } => {
                let yes = self.condition(cond, rows);
                let col = &mut self.regs.columns[*out];
                (col.truth, col.present) = (yes, rows);
                Src::Slot(*out)
            }
            Val::Prefix { a, v4, v6, out } => self.prefix(a, (*v4, *v6), *out, rows),
            Val::Anonymize { names, a, out } => self.anonymize(names, a, *out, rows),
            Val::CommunityId { seed, parts, out } => self.community_id(*seed, parts, *out, rows),
            Val::Text { f, args, out } => self.text(f, args, *out, rows),
            Val::Lookup { map, key, out } => self.lookup(map, key, *out, rows),
            Val::Parse { f, a, out } => self.parse(*f, a, *out, rows),
            Val::User { .. } => self.user(v, rows),
        }
    }

    /// The rows among `rows` for which the condition holds.
    pub(crate) fn condition(&mut self, c: &Cond, rows: Bits) -> Bits {
        if rows.is_empty() {
            return rows;
        }
        match c {
            Cond::Const(b) => {
                if *b {
                    rows
                } else {
                    Bits::NONE
                }
            }
            Cond::Truth(v) => {
                let src = self.value(v, rows);
                truth(self.column(src), rows)
            }
            Cond::Exists(parts) => parts.iter().fold(rows, |left, v| {
                let src = self.value(v, left);
                self.column(src).present.and(left)
            }),
            Cond::Not(c) => rows.minus(self.condition(c, rows)),
            Cond::And(all) => all.iter().fold(rows, |left, c| self.condition(c, left)),
            Cond::Or(all) => {
                rows.minus(all.iter().fold(rows, |left, c| left.minus(self.condition(c, left))))
            }
            Cond::If(parts) => {
                let [c, a, b] = &**parts;
                let yes = self.condition(c, rows);
                self.condition(a, yes).or(self.condition(b, rows.minus(yes)))
            }
            Cond::Cmp { op, class, a, b } => {
                let (a, b) = (self.value(a, rows), self.value(b, rows));
                let both = self.column(a).present.and(self.column(b).present).and(rows);
                self.compare(*op, *class, a, b, both)
            }
            Cond::CmpConst { op, class, a, ordered } => {
                let src = self.value(a, rows);
                let col = self.column(src);
                let (rows, w, k) = (col.present.and(rows), col.word(), *ordered);
                match class {
                    Class::Signed => {
                        let k = Class::Signed.unordered(k) as i64;
                        compare(*op, rows, self.n, |i| w[i] as i64, |_| k)
                    }
                    Class::Float => {
                        compare(*op, rows, self.n, |i| Class::Float.ordered(w[i]), |_| k)
                    }
                    _ => compare(*op, rows, self.n, |i| w[i], |_| k),
                }
            }
            Cond::CmpArith { op, arith, a, b, k } => {
                let (a, b) = (self.value(a, rows), self.value(b, rows));
                let (x, y) = (self.column(a), self.column(b));
                let both = x.present.and(y.present).and(rows);
                compare_arith(*op, *arith, both, self.n, (x.word(), y.word()), *k)
            }
            Cond::CmpTuple { op, parts } => self.compare_tuples(*op, parts, rows),
            _ => self.membership(c, rows),
        }
    }

    fn membership(&mut self, c: &Cond, rows: Bits) -> Bits {
        match c {
            Cond::InRanges { class, a, ranges } => {
                let src = self.value(a, rows);
                let col = self.column(src);
                let rows = col.present.and(rows);
                match (class, ranges.single()) {
                    (Class::Pair, _) => addresses_in(ranges, col, rows, self.n),
                    (Class::Bit, _) => {
                        filter(rows, self.n, |i| ranges.has_word(col.truth.has(i) as u64))
                    }
                    (class, Some((first, last))) => {
                        let w = col.word();
                        filter(rows, self.n, |i| {
                            class.ordered(w[i]).wrapping_sub(first) <= last - first
                        })
                    }
                    (class, None) => {
                        let w = col.word();
                        filter(rows, self.n, |i| ranges.has_word(class.ordered(w[i])))
                    }
                }
            }
            Cond::InStrings { a, set } => self.text_filter(a, rows, |s| set.has(s)),
            Cond::Matches { a, regex } => self.text_filter(a, rows, |s| regex.is_match(s)),
            Cond::InTuples { parts, members } => {
                parts.iter().for_each(|v| {
                    self.value(v, rows);
                });
                let column = |v: &Val| self.column(v.out());
                let rows = parts.iter().fold(rows, |left, v| left.and(column(v).present));
                filter(rows, self.n, |i| {
                    members.iter().any(|m| {
                        let arena = &self.regs.arena;
                        m.iter().zip(parts).all(|(member, v)| same(column(v), i, member, arena))
                    })
                })
            }
            Cond::Text { f, a, b } => {
                let (a, b) = (self.value(a, rows), self.value(b, rows));
                let (x, y) = (self.column(a), self.column(b));
                let arena = &self.regs.arena;
                filter(x.present.and(y.present).and(rows), self.n, |i| {
                    let (s, part) = (arena.get(x.word()[i]), arena.get(y.word()[i]));
                    match f {
                        TextTest::StartsWith => s.starts_with(part),
                        TextTest::EndsWith => s.ends_with(part),
                        TextTest::Contains => {
                            part.is_empty() || s.windows(part.len()).any(|w| w == part)
                        }
                    }
                })
            }
            Cond::IsVersion { a, six } => {
                let src = self.value(a, rows);
                let col = self.column(src);
                let (hi, lo) = col.pair();
                filter(col.present.and(rows), self.n, |i| is_v4(hi[i], lo[i]) != *six)
            }
            _ => unreachable!("condition() takes the others"),
        }
    }

    /// Makes text field number `i` valid for `rows`.
    fn text_field(&mut self, i: usize, rows: Bits) {
        let view = self.view.as_ref().expect("fields are compiled only where packets are");
        let Regs { texts, arena, .. } = &mut *self.regs;
        let field = &mut texts[i];
        let need = rows.minus(field.rows);
        if !need.is_empty() {
            view.texts(field.id, need, &mut field.column, |text| arena.put(text));
            field.rows = field.rows.or(need);
        }
    }

    fn unary(&mut self, op: Convert, a: &Val, out: usize, rows: Bits) -> Src {
        let a = self.value(a, rows);
        let mut col = self.take(out);
        let x = self.column(a);
        let present = x.present.and(rows);
        let bad = if op == Convert::BoolToInt {
            let w = col.word_mut();
            each(present, self.n, |i| w[i] = x.truth.has(i) as u64);
            Bits::NONE
        } else {
            convert(op, present, self.n, x.word(), col.word_mut())
        };
        self.put_checked(out, col, present, bad)
    }

    /// A chain of `if`.
    fn cases(&mut self, cases: &[(Cond, Branch)], other: &Branch, out: usize, rows: Bits) -> Src {
        let (mut left, mut present) = (rows, Bits::NONE);
        for (cond, branch) in cases {
            let yes = self.condition(cond, left);
            if !yes.is_empty() {
                present = present.or(self.branch(branch, out, yes));
                left = left.minus(yes);
            }
        }
        present = present.or(self.branch(other, out, left));
        self.regs.columns[out].present = present;
        Src::Slot(out)
    }

    /// A registered function, by the batch if it can, or row by row.
    fn user(&mut self, v: &Val, rows: Bits) -> Src {
        let Val::User { f, args, ty, out } = v else { unreachable!("value() takes the others") };
        args.iter().for_each(|(a, _)| {
            self.value(a, rows);
        });
        let mut col = self.take(*out);
        col.present = Bits::NONE;
        let there = args.iter().fold(rows, |left, (a, _)| left.and(self.column(a.out()).present));
        if let Some(by_column) = &f.by_column {
            self.with_columns(args, |columns| by_column(columns, there, &mut col));
            return self.put(*out, col);
        }
        let mut values: Vec<Value> = Vec::with_capacity(args.len());
        for i in there.iter() {
            values.clear();
            values.extend(
                args.iter().map(|(a, ty)| cell(self.column(a.out()), i, ty, &self.regs.arena)),
            );
            let v = (f.by_row)(&values);
            if v.ty().as_ref() == Some(ty) {
                set_cell(&mut col, i, &v, &mut self.regs.arena);
            }
        }
        self.put(*out, col)
    }

    /// Calls with the columns of arguments, which are few: no memory is asked for per batch.
    fn with_columns(&self, args: &[(Val, Type)], call: impl FnOnce(&[&Column])) {
        const FEW: usize = 8;
        let column = |(a, _): &(Val, Type)| self.column(a.out());
        match args {
            [] => call(&[]),
            [first, others @ ..] if others.len() < FEW => {
                let mut columns = [column(first); FEW];
                columns[1..].iter_mut().zip(others).for_each(|(to, a)| *to = column(a));
                call(&columns[..args.len()]);
            }
            _ => call(&args.iter().map(column).collect::<Vec<_>>()),
        }
    }

    /// Gives the rows of a register the value of a branch; returns which have one.
    fn branch(&mut self, branch: &Branch, out: usize, rows: Bits) -> Bits {
        match branch {
            Branch::Const(None) => Bits::NONE,
            Branch::Const(Some(raw)) => {
                let (col, raw) = (&mut self.regs.columns[out], *raw);
                match col.repr() {
                    Repr::Bit if raw != 0 => col.truth = col.truth.or(rows),
                    Repr::Bit => col.truth = col.truth.minus(rows),
                    Repr::Word => {
                        let to = col.word_mut();
                        rows.each(|i| to[i] = raw as u64);
                    }
                    Repr::Pair => {
                        let (hi, lo) = col.pair_mut();
                        rows.each(|i| (hi[i], lo[i]) = ((raw >> 64) as u64, raw as u64));
                    }
                }
                rows
            }
            Branch::Val(v) => {
                let src = self.value(v, rows);
                let (from, to) = self.split(src, out);
                copy_rows(from, to, rows);
                from.present.and(rows)
            }
        }
    }

    /// Takes the rows of `a.1` from `a.0` and those of `b.1` from `b.0`.
    fn choose(&mut self, out: usize, a: (Src, Bits), b: (Src, Bits)) -> Src {
        let mut present = Bits::NONE;
        for (src, rows) in [a, b] {
            let (from, to) = self.split(src, out);
            copy_rows(from, to, rows);
            present = present.or(from.present.and(rows));
        }
        self.regs.columns[out].present = present;
        Src::Slot(out)
    }

    pub(super) fn take(&mut self, slot: usize) -> Column {
        std::mem::replace(&mut self.regs.columns[slot], Column::new(Repr::Bit))
    }

    fn put(&mut self, slot: usize, col: Column) -> Src {
        self.regs.columns[slot] = col;
        Src::Slot(slot)
    }

    /// Puts a column back whose rows `bad` have no result: these are absent, and counted.
    pub(super) fn put_checked(
        &mut self,
        slot: usize,
        mut col: Column,
        present: Bits,
        bad: Bits,
    ) -> Src {
        let bad = bad.and(present);
        *self.undefined += bad.count() as u64;
        col.present = present.minus(bad);
        self.put(slot, col)
    }
}

/// The rows whose addresses are in some ranges, of the first `n` rows: those of IPv4 are found by
/// 32 bits.
fn addresses_in(ranges: &Ranges, column: &Column, rows: Bits, n: usize) -> Bits {
    let (hi, lo) = column.pair();
    let four = filter(rows, n, |i| is_v4(hi[i], lo[i]));
    let inside = filter(four, n, |i| ranges.has_ipv4(lo[i] as u32));
    let six = rows.minus(four);
    inside.or(filter(six, n, |i| ranges.has_pair((hi[i] as u128) << 64 | lo[i] as u128)))
}

/// Copies the values of some rows, not which of them are present.
pub(crate) fn copy_rows(from: &Column, to: &mut Column, rows: Bits) {
    match to.repr() {
        Repr::Bit => to.truth = to.truth.minus(rows).or(from.truth.and(rows)),
        Repr::Word => {
            let (from, to) = (from.word(), to.word_mut());
            rows.each(|i| to[i] = from[i]);
        }
        Repr::Pair => {
            let ((hi, lo), (to_hi, to_lo)) = (from.pair(), to.pair_mut());
            rows.each(|i| (to_hi[i], to_lo[i]) = (hi[i], lo[i]));
        }
    }
}
