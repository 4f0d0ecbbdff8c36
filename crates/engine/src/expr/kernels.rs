//! The loops: free functions over word planes.

use super::{Arith, Convert};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::limits::BATCH;
use weir_packet::time::date;
use weir_plan::functions::Part;
use weir_plan::{BinaryOp, TimeZone, Value};

/// Calls `f` for the rows of `sel`; where these are many, for all of `0..n` instead, which is
/// faster and harmless to kernels that only write to their own output.
#[inline(always)]
pub(crate) fn each(sel: Bits, n: usize, mut f: impl FnMut(usize)) {
    if sel.count() * 4 >= n {
        for i in 0..n.min(BATCH) {
            f(i);
        }
    } else {
        sel.each(f);
    }
}

/// The rows of `sel` for which `f` holds.
#[inline(always)]
pub(crate) fn filter(sel: Bits, n: usize, mut f: impl FnMut(usize) -> bool) -> Bits {
    if sel.count() * 4 >= n {
        Bits::from_fn(n, f).and(sel)
    } else {
        let mut out = Bits::NONE;
        sel.each(|i| out.put(i, f(i)));
        out
    }
}

/// Compares with an operator chosen once.
#[inline(always)]
pub(crate) fn compare<T: Ord>(
    op: BinaryOp,
    sel: Bits,
    n: usize,
    a: impl Fn(usize) -> T,
    b: impl Fn(usize) -> T,
) -> Bits {
    match op {
        BinaryOp::Eq => filter(sel, n, |i| a(i) == b(i)),
        BinaryOp::Ne => filter(sel, n, |i| a(i) != b(i)),
        BinaryOp::Lt => filter(sel, n, |i| a(i) < b(i)),
        BinaryOp::Le => filter(sel, n, |i| a(i) <= b(i)),
        BinaryOp::Gt => filter(sel, n, |i| a(i) > b(i)),
        BinaryOp::Ge => filter(sel, n, |i| a(i) >= b(i)),
        other => unreachable!("{other:?} is not a comparison"),
    }
}

type Plane = [u64; BATCH];

/// Computes `op` into `out` for the rows of `sel` (all present) and returns those without a result.
/// `b` gives the right operands: of a column, or the same for all.
#[inline(always)]
pub(crate) fn arith(
    op: Arith,
    sel: Bits,
    n: usize,
    a: &Plane,
    b: impl Fn(usize) -> u64,
    out: &mut Plane,
) -> Bits {
    let int = |x: u64| x as i64;
    let rows = (sel, n);
    match op {
        Arith::Add => checked(rows, a, b, out, |x, y| int(x).overflowing_add(int(y))),
        Arith::Sub => checked(rows, a, b, out, |x, y| int(x).overflowing_sub(int(y))),
        Arith::Mul => checked(rows, a, b, out, |x, y| int(x).overflowing_mul(int(y))),
        Arith::Div => checked(rows, a, b, out, |x, y| option(int(x).checked_div(int(y)))),
        Arith::Rem => checked(rows, a, b, out, |x, y| option(remainder(int(x), int(y)))),
        Arith::And => plain(rows, a, b, out, |x, y| x & y),
        Arith::Or => plain(rows, a, b, out, |x, y| x | y),
        Arith::Xor => plain(rows, a, b, out, |x, y| x ^ y),
        Arith::AddFits => plain(rows, a, b, out, u64::wrapping_add),
        Arith::SubFits => plain(rows, a, b, out, u64::wrapping_sub),
        Arith::MulFits => plain(rows, a, b, out, u64::wrapping_mul),
        Arith::ShlFits => plain(rows, a, b, out, |x, y| x << (y & 63)),
        Arith::Shl => checked(rows, a, b, out, |x, y| shifted(int(x), y)),
        Arith::Shr => checked(rows, a, b, out, |x, y| option((y < 64).then(|| int(x) >> (y & 63)))),
        Arith::AddF => float(rows, a, b, out, |x, y| x + y),
        Arith::SubF => float(rows, a, b, out, |x, y| x - y),
        Arith::MulF => float(rows, a, b, out, |x, y| x * y),
        Arith::DivF => float(rows, a, b, out, |x, y| x / y),
        Arith::Ratio => floats(rows, a, b, out, |x, y| int(x) as f64 / int(y) as f64),
        Arith::Bin => checked(rows, a, b, out, |x, y| option(bin(int(x), int(y)))),
        Arith::LocalBin(zone) => {
            checked(rows, a, b, out, |x, y| option(local_bin(zone, int(x), int(y))))
        }
        Arith::Pow => float(rows, a, b, out, f64::powf),
        Arith::SeqDiff => plain(rows, a, b, out, |x, y| x.wrapping_sub(y) as i32 as i64 as u64),
        Arith::SeqAdd => plain(rows, a, b, out, |x, y| u64::from(x.wrapping_add(y) as u32)),
    }
}

/// Compares the sum, difference or product of two words with a constant, as numbers with a sign.
pub(crate) fn compare_arith(
    op: BinaryOp,
    arith: Arith,
    sel: Bits,
    n: usize,
    (a, b): (&Plane, &Plane),
    k: i64,
) -> Bits {
    match arith {
        Arith::AddFits => compare(op, sel, n, |i| a[i].wrapping_add(b[i]) as i64, |_| k),
        Arith::SubFits => compare(op, sel, n, |i| a[i].wrapping_sub(b[i]) as i64, |_| k),
        Arith::MulFits => compare(op, sel, n, |i| a[i].wrapping_mul(b[i]) as i64, |_| k),
        other => unreachable!("{other:?} is not compared without a column"),
    }
}

/// `x` rounded down to a multiple of `d`.
pub(crate) fn bin(x: i64, d: i64) -> Option<i64> {
    if d <= 0 { None } else { x.checked_sub(x.rem_euclid(d)) }
}

/// `x` rounded down to where a window of length `d` begins in a zone.
fn local_bin(zone: TimeZone, x: i64, d: i64) -> Option<i64> {
    if d <= 0 { None } else { zone.bin(x, d) }
}

/// The remainder; `i64::MIN % -1` is 0, which `checked_rem` calls an overflow.
fn remainder(x: i64, y: i64) -> Option<i64> {
    if y == -1 { Some(0) } else { x.checked_rem(y) }
}

/// `x << by`, and whether it loses bits, the sign among them, or shifts by less than 0 or more than
/// 63.
#[inline(always)]
fn shifted(x: i64, by: u64) -> (i64, bool) {
    let v = x << (by & 63);
    (v, by >= 64 || v >> (by & 63) != x)
}

#[inline(always)]
fn option(v: Option<i64>) -> (i64, bool) {
    (v.unwrap_or(0), v.is_none())
}

/// Rows, and how many there are in the batch.
type Rows = (Bits, usize);

#[inline(always)]
fn plain(
    (sel, n): Rows,
    a: &Plane,
    b: impl Fn(usize) -> u64,
    out: &mut Plane,
    f: impl Fn(u64, u64) -> u64,
) -> Bits {
    each(sel, n, |i| out[i] = f(a[i], b(i)));
    Bits::NONE
}

#[inline(always)]
fn checked(
    (sel, n): Rows,
    a: &Plane,
    b: impl Fn(usize) -> u64,
    out: &mut Plane,
    f: impl Fn(u64, u64) -> (i64, bool),
) -> Bits {
    filter(sel, n, |i| {
        let (v, bad) = f(a[i], b(i));
        out[i] = v as u64;
        bad
    })
}

#[inline(always)]
fn float(
    rows: Rows,
    a: &Plane,
    b: impl Fn(usize) -> u64,
    out: &mut Plane,
    f: impl Fn(f64, f64) -> f64,
) -> Bits {
    floats(rows, a, b, out, |x, y| f(f64::from_bits(x), f64::from_bits(y)))
}

#[inline(always)]
fn floats(
    (sel, n): Rows,
    a: &Plane,
    b: impl Fn(usize) -> u64,
    out: &mut Plane,
    f: impl Fn(u64, u64) -> f64,
) -> Bits {
    filter(sel, n, |i| {
        let v = f(a[i], b(i));
        out[i] = Value::float_bits(v);
        !v.is_finite()
    })
}

/// Converts words into `out` and returns the rows without a result.
pub(crate) fn convert(op: Convert, sel: Bits, n: usize, a: &Plane, out: &mut Plane) -> Bits {
    let unary = |out: &mut Plane, f: fn(u64) -> u64| {
        each(sel, n, |i| out[i] = f(a[i]));
        Bits::NONE
    };
    let checked = |out: &mut Plane, f: fn(u64) -> Option<u64>| {
        filter(sel, n, |i| {
            let v = f(a[i]);
            out[i] = v.unwrap_or(0);
            v.is_none()
        })
    };
    match op {
        Convert::Neg => checked(out, |x| (x as i64).checked_neg().map(|v| v as u64)),
        Convert::Abs => checked(out, |x| (x as i64).checked_abs().map(|v| v as u64)),
        Convert::NegF => unary(out, |x| Value::float_bits(-f64::from_bits(x))),
        Convert::AbsF => unary(out, |x| f64::from_bits(x).abs().to_bits()),
        Convert::BitNot => unary(out, |x| !x),
        Convert::IntToFloat => unary(out, |x| (x as i64 as f64).to_bits()),
        Convert::DurationToFloat => unary(out, |x| (x as i64 as f64 / 1e9).to_bits()),
        Convert::FloatToInt => checked(out, |x| float_to_int(f64::from_bits(x))),
        Convert::Floor => checked(out, |x| float_to_int(f64::from_bits(x).floor())),
        Convert::Ceil => checked(out, |x| float_to_int(f64::from_bits(x).ceil())),
        Convert::Round => checked(out, |x| float_to_int(f64::from_bits(x).round())),
        Convert::Math(f) => filter(sel, n, |i| {
            let v = f.of(f64::from_bits(a[i]));
            out[i] = Value::float_bits(v);
            !v.is_finite()
        }),
        Convert::Part(part) => part_of_time(part, sel, n, a, out),
        Convert::Local(zone) => {
            let mut span = zone.span(0);
            each(sel, n, |i| {
                let t = a[i] as i64;
                if !span.holds(t) {
                    span = zone.span(t);
                }
                out[i] = span.local(t) as u64;
            });
            Bits::NONE
        }
        Convert::TextLen => unary(out, |x| x & 0xffff_ffff),
        Convert::Same => unary(out, |x| x),
        Convert::BoolToInt => unreachable!("truth bits are not words"),
    }
}

/// A part of each time.
fn part_of_time(part: Part, sel: Bits, n: usize, a: &Plane, out: &mut Plane) -> Bits {
    const SECOND: i64 = 1_000_000_000;
    const DAY: i64 = 86_400 * SECOND;
    let mut all = |f: fn(i64) -> i64| {
        each(sel, n, |i| out[i] = f(a[i] as i64) as u64);
        Bits::NONE
    };
    match part {
        Part::Year => all(|t| date(t).0),
        Part::Month => all(|t| date(t).1),
        Part::Day => all(|t| date(t).2),
        // 1970 began on a Thursday.
        Part::Weekday => all(|t| (t.div_euclid(DAY) + 3).rem_euclid(7) + 1),
        Part::Hour => all(|t| t.rem_euclid(DAY) / (3_600 * SECOND)),
        Part::Minute => all(|t| t.rem_euclid(3_600 * SECOND) / (60 * SECOND)),
        Part::Second => all(|t| t.rem_euclid(60 * SECOND) / SECOND),
    }
}

fn float_to_int(f: f64) -> Option<u64> {
    // 2^63 itself is the first float that does not fit.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0)
        .contains(&f)
        .then_some(f as i64 as u64)
}

/// The rows among `rows` for which a boolean column is there and true.
#[inline(always)]
pub(super) fn truth(c: &Column, rows: Bits) -> Bits {
    c.truth.and(c.present).and(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(op: Arith, a: i64, b: i64) -> Option<i64> {
        let (x, y) = ([a as u64; BATCH], [b as u64; BATCH]);
        let mut out = [0; BATCH];
        let bad = arith(op, Bits::first(1), 1, &x, |i| y[i], &mut out);
        bad.is_empty().then_some(out[0] as i64)
    }

    #[test]
    fn integers_do_not_wrap() {
        assert_eq!(one(Arith::Add, 2, 3), Some(5));
        assert_eq!(one(Arith::Add, i64::MAX, 1), None);
        assert_eq!(one(Arith::Mul, i64::MIN, -1), None);
        assert_eq!(one(Arith::Div, 7, 0), None);
        assert_eq!(one(Arith::Div, -7, 2), Some(-3));
        assert_eq!(one(Arith::Div, i64::MIN, -1), None);
        assert_eq!(one(Arith::Rem, -7, 2), Some(-1));
        assert_eq!(one(Arith::Rem, i64::MIN, -1), Some(0));
        assert_eq!(one(Arith::Bin, -1, 10), Some(-10));
        assert_eq!(one(Arith::Bin, 5, 0), None);
        assert_eq!(one(Arith::Bin, i64::MIN, 10), None);
    }

    #[test]
    fn sequence_numbers_start_again() {
        let most = i64::from(u32::MAX);
        for (a, n, sum) in [
            (0, 0, 0),
            (most, 1, 0),
            (most, 2, 1),
            (most - 1, 1, most),
            (0, -1, most),
            (7, 1 << 32, 7),
            (most, i64::MIN, most),
            (i64::MAX, i64::MAX, most - 1),
        ] {
            assert_eq!(one(Arith::SeqAdd, a, n), Some(sum), "{a} and {n}");
            let back = one(Arith::SeqDiff, sum, a);
            assert_eq!(back, Some(i64::from(n as i32)), "{sum} after {a}");
        }
    }

    #[test]
    fn shifts_lose_no_bits() {
        for (x, by, left, right) in [
            (1, 0, Some(1), Some(1)),
            (1, 1, Some(2), Some(0)),
            (1, 62, Some(1 << 62), Some(0)),
            (1, 63, None, Some(0)),
            (1, 64, None, None),
            (1, -1, None, None),
            (0, 63, Some(0), Some(0)),
            (0, 64, None, None),
            (3, 62, None, Some(0)),
            (-1, 63, Some(i64::MIN), Some(-1)),
            (-2, 63, None, Some(-1)),
            (-8, 1, Some(-16), Some(-4)),
            (i64::MAX, 1, None, Some(i64::MAX / 2)),
            (i64::MIN, 0, Some(i64::MIN), Some(i64::MIN)),
            (i64::MIN, 63, None, Some(-1)),
            (1, i64::MIN, None, None),
        ] {
            assert_eq!(one(Arith::Shl, x, by), left, "{x} << {by}");
            assert_eq!(one(Arith::Shr, x, by), right, "{x} >> {by}");
        }
    }

    #[test]
    fn floats_outside_integers_have_no_integer() {
        assert_eq!(float_to_int(-1.9), Some(-1i64 as u64));
        assert_eq!(float_to_int(9.3e18), None);
        assert_eq!(float_to_int(f64::NAN), None);
        assert_eq!(float_to_int(-9_223_372_036_854_775_808.0), Some(i64::MIN as u64));
    }

    #[test]
    fn sparse_and_dense_agree() {
        let a: [u64; BATCH] = std::array::from_fn(|i| i as u64);
        for sel in [Bits::first(3), Bits::range(100, 256), Bits::ALL] {
            let got = compare(BinaryOp::Ge, sel, BATCH, |i| a[i], |_| 120);
            let want: Bits = sel.iter().filter(|&i| i >= 120).collect();
            assert_eq!(got, want);
        }
    }
}
