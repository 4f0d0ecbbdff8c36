//! `quantile(x, q)`, `percentile(x, p)` and `median(x)`: the value below which a given share lies.
//!
//! | | |
//! |---|---|
//! | Syntax | `quantile(x, 0.95)`, `percentile(x, 95)`, `median(x)`, each also with `where condition` |
//! | Takes | int, float, duration |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted |
//! | State | 16 to 64 bytes a different value as it is counted: of a field of at most 16 bits each, of others at most 65,536 and 1,024 for each doubling beyond (a float: for each); 16 bytes a group where values may be rounded; quantiles of the same values share it |
//! | Merge | counts of equal values add; the smaller minimum, the larger maximum |
//! | Exact? | the rank is exact; so are fields of up to 16 bits, other integers and durations (in nanoseconds) up to 65,535 on either side of 0, the minimum and the maximum; another value is rounded to 11 significant bits, which is off by 1/2048 at most, and is never outside minimum and maximum |
//!
//! The result is the smallest value that at least the share `q` of all values are not above: one
//! that came, never a mean of two. Sketches that bound the error of the rank instead (KLL) choose
//! at random what to keep and depend on the order of merging; rounding the values does neither.

use super::Finish;
use super::tally::{CountedValues, ResultReader, Rounding, Values, total};
use crate::expr::Class;
use weir_packet::limits::BATCH;
use weir_plan::{Expr, ExprKind, Type, Value};

/// Significant bits that are kept.
const BITS: u32 = 11;

/// Bits of the fraction of a double that are dropped: it has 52, and one that is not written.
const DROPPED: u32 = 53 - BITS;

pub(super) struct Quantile {
    millionths: u32,
    class: Class,
    /// Whether no value is rounded.
    is_exact: bool,
}

impl Quantile {
    pub(super) fn new(millionths: u32, arg: &Expr) -> Quantile {
        Quantile { millionths, class: Class::of(&arg.ty), is_exact: is_exact(arg) }
    }
}

/// Integers up to this one, on either side of 0, are counted as they are.
const EXACT_MAX: u64 = u16::MAX as u64;

/// Bits of the widest field of which no value is rounded.
const EXACT_BITS: u8 = 16;

/// Whether no value of an argument is ever rounded.
pub(super) fn is_exact(arg: &Expr) -> bool {
    matches!(arg.kind, ExprKind::Field(id) if arg.ty == Type::Int && id.info().bits <= EXACT_BITS)
}

/// Which of `n` values in their order is asked for, from 1.
fn rank(millionths: u32, n: u64) -> u64 {
    let rank = (n as u128 * millionths as u128).div_ceil(1_000_000);
    (rank as u64).clamp(1, n.max(1))
}

/// An integer as it is counted, half away from zero. The largest ones stay integers.
fn round_int(v: i64) -> i64 {
    let size = v.unsigned_abs();
    if size <= EXACT_MAX {
        return v;
    }
    let drop = (u64::BITS - size.leading_zeros()).saturating_sub(BITS);
    let half = (1 << drop) >> 1;
    let size = ((size + half) >> drop) << drop;
    match v < 0 {
        true => 0i64.checked_sub_unsigned(size).unwrap_or(i64::MIN),
        false => i64::try_from(size).unwrap_or(i64::MAX),
    }
}

/// The same of a word; the largest values of a field, which would need a bit more, become its
/// largest one.
fn round_word(word: u64, largest: u64) -> u64 {
    (round_int(word as i64) as u64).min(largest)
}

/// Rounds integers. The numbers that a double holds are rounded as one, which has the same bits to
/// drop.
fn round_ints(from: &[u64; BATCH], to: &mut [u64; BATCH], largest: u64) {
    let all = from.iter().fold(0, |all, word| all | word);
    if all <= EXACT_MAX {
        to.copy_from_slice(from);
        return;
    }
    let each = to.iter_mut().zip(from);
    match all < 1 << 52 {
        true => each.for_each(|(to, &word)| {
            let rounded = round_float(word as i64 as f64) as i64 as u64;
            *to = if word <= EXACT_MAX { word } else { rounded.min(largest) };
        }),
        false => each.for_each(|(to, &word)| *to = round_word(word, largest)),
    }
}

/// A float rounded to the bits that are kept, half away from zero; none becomes infinite.
fn round_float(v: f64) -> f64 {
    let bits = v.to_bits();
    let rounded = f64::from_bits(bits.wrapping_add(1 << DROPPED >> 1) >> DROPPED << DROPPED);
    if rounded.is_finite() { rounded } else { f64::MAX.copysign(v) }
}

fn round_float_word(word: u64, _: u64) -> u64 {
    Value::float_bits(round_float(f64::from_bits(word)))
}

fn round_floats(from: &[u64; BATCH], to: &mut [u64; BATCH], largest: u64) {
    to.iter_mut().zip(from).for_each(|(to, &word)| *to = round_float_word(word, largest));
}

impl Quantile {
    /// The quantile of a group's values where the one at the rank asked for counts as `rounded`: no
    /// result lies outside the smallest and the largest value, which are known as they came.
    fn bounded(&self, values: &Values<'_>, (rank, n): (u64, u64), rounded: u64) -> u128 {
        let Some(extremes) = values.extremes else { return rounded as u128 };
        let ordered = match rank {
            1 => extremes.least(),
            _ if rank == n => extremes.most(),
            _ => self.class.ordered(rounded).max(extremes.least()).min(extremes.most()),
        };
        self.class.unordered(ordered) as u128
    }
}

impl ResultReader for Quantile {
    fn rounds(&self) -> Option<Rounding> {
        match (self.is_exact, self.class) {
            (true, _) => None,
            (_, Class::Float) => {
                Some(Rounding { class: self.class, word: round_float_word, batch: round_floats })
            }
            _ => Some(Rounding { class: self.class, word: round_word, batch: round_ints }),
        }
    }

    fn read(&self, values: &Values<'_>, work: &mut CountedValues, i: usize, out: &mut Finish<'_>) {
        if let Some(rising) = values.rising() {
            let n = total(rising.iter().map(|(_, times)| *times));
            let rank = rank(self.millionths, n);
            let mut left = rank;
            let there = rising.iter().find(|(_, times)| {
                let found = left <= *times;
                left = left.saturating_sub(*times);
                found
            });
            if let Some(&(value, _)) = there {
                let value = values.logged(value) as u64;
                out.column.set_raw(i, self.bounded(values, (rank, n), value));
            }
            return;
        }
        values.all(work);
        work.iter_mut().for_each(|(raw, _)| *raw = self.class.ordered(*raw as u64) as u128);
        work.sort_unstable();
        let n = total(work.iter().map(|(_, times)| *times));
        let rank = rank(self.millionths, n);
        let mut left = rank;
        for &(value, times) in &*work {
            if left <= times {
                let value = self.class.unordered(value as u64);
                out.column.set_raw(i, self.bounded(values, (rank, n), value));
                return;
            }
            left -= times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agg::laws::{Given, check, fuzz_decode, split};
    use crate::functions::Functions;
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::{Frames, check as check_program, check_stages, program};
    use proptest::prelude::*;
    use weir_packet::craft::Frame;
    use weir_packet::source::LinkType;
    use weir_plan::{AggFunc, Window};

    fn quantile(q: f64) -> AggFunc {
        AggFunc::Quantile((q * 1e6).round() as u32)
    }

    #[test]
    fn the_value_at_a_rank() {
        let ints: Vec<Given> = (1..=10).rev().map(Given::Int).collect();
        for (q, want) in [(0.0, 1), (0.1, 1), (0.11, 2), (0.5, 5), (0.95, 10), (1.0, 10)] {
            check(quantile(q), &Type::Int, &ints, Value::Int(want));
        }
        check(quantile(0.5), &Type::Int, &[], Value::Absent);
        check(quantile(0.5), &Type::Int, &[Given::Absent, Given::Int(-3)], Value::Int(-3));
        let floats = [-0.5, 0.25, 8.0].map(Given::Float);
        check(quantile(0.5), &Type::Float, &floats, Value::Float(0.25));
        check(quantile(0.3), &Type::Float, &floats, Value::Float(-0.5));
        let gaps = [Given::Duration(7), Given::Duration(-7)];
        check(quantile(0.5), &Type::Duration, &gaps, Value::Duration(-7));
    }

    #[test]
    fn larger_values_are_kept_to_eleven_bits() {
        for (v, want) in [
            (65_535, 65_535),
            (-65_535, -65_535),
            (65_536, 65_536),
            (65_569, 65_600),
            (-65_569, -65_600),
            (1_000_000, 999_936),
            (i64::MAX, i64::MAX),
            (i64::MIN, i64::MIN),
        ] {
            assert_eq!(round_int(v), want);
        }
        assert_eq!(round_float(0.1), 0.099_975_585_937_5);
        assert!(round_float(f64::MAX).is_finite() && round_float(f64::MIN).is_finite());
    }

    /// Values were rounded up first and then packed at the width of their field: 65535 became
    /// 65536, whose one bit lay in the number of the group.
    #[test]
    fn values_at_the_top_of_their_field_stay_in_their_group() {
        let host = |n: u8| std::net::Ipv4Addr::new(10, 0, 0, n);
        let top = [(1, u16::MAX, u32::MAX), (1, u16::MAX, u32::MAX - 1), (1, u16::MAX, u32::MAX)];
        let low = [(2, 1000, 7), (2, 1000, 7)];
        let frame = |(from, window, seq)| {
            let tcp = Frame::ethernet().ipv4(host(from), host(9)).tcp(1, 2);
            (0, tcp.window(window).seq(seq).bytes())
        };
        let frames: Vec<_> = top.into_iter().chain(low).map(frame).collect();
        let frames = Frames::new(LinkType::ETHERNET, &frames);
        let of = |q, name: &str| agg(quantile(q), Some(field(name)));
        let all = ["tcp.window", "tcp.seq"].map(|name| [0.0, 0.5, 1.0].map(|q| of(q, name)));
        let stages = vec![summarize(&["ip.src"], all.concat(), Window::All)];
        let rows = check_program(&program(stages), &Functions::default(), &frames);
        let (window, seq) = (i64::from(u16::MAX), i64::from(u32::MAX));
        let values = [[window, window, window, seq - 1, seq, seq], [1000, 1000, 1000, 7, 7, 7]];
        for ((_, row), want) in rows.iter().zip(values) {
            assert_eq!(row[1..], want.map(Value::Int));
        }
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn fields_of_sixteen_bits_are_exact_and_wider_ones_share_nothing_with_them() {
        let names = ["tcp.window", "sport", "ip.ttl", "tcp.seq", "len"];
        assert_eq!(names.map(|name| is_exact(&field(name))), [true, true, true, false, false]);
        assert!(!is_exact(&Expr::column(0, Type::Int)));
    }

    #[test]
    fn many_values_however_they_are_split() {
        let rows: Vec<Given> = (0..20_000).map(|i| Given::Int(i * 7919 % 20_000)).collect();
        for (q, want) in [(0.5, 10_000), (0.99, 19_800)] {
            let whole = split(quantile(q), &Type::Int, &rows, &[]);
            assert_eq!(split(quantile(q), &Type::Int, &rows, &[1, 300, 15_000]), whole);
            let Value::Int(got) = whole else { panic!("{whole}") };
            assert!((got - want).abs() <= want / 1024, "{got} for {want}");
        }
        fuzz_decode(quantile(0.5), &Type::Int, &rows[..300]);
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |q, name: &str| agg(quantile(q), Some(field(name)));
                let fields = ["len", "tcp.payload_len", "tcp.seq", "tcp.window", "ip.ttl"];
                let shares = [0.0, 0.25, 0.5, 0.9, 1.0];
                let aggs =
                    fields.iter().zip(shares).chain(fields.iter().zip(shares.into_iter().rev()));
                let aggs = aggs.map(|(name, q)| of(q, name)).collect();
                check_stages(vec![summarize(key, aggs, window)]);
            }
        }
    }

    proptest! {
        #[test]
        fn integers_are_rounded_alike(words in proptest::collection::vec(any::<u64>(), BATCH), bits in 0u32..64) {
            let from = std::array::from_fn(|i| words[i] >> bits);
            let mut to = [0; BATCH];
            let largest = u64::MAX >> bits;
            round_ints(&from, &mut to, largest);
            for (from, to) in from.into_iter().zip(to) {
                prop_assert_eq!(round_word(from, largest), to);
                prop_assert!(to <= largest);
            }
        }

        #[test]
        fn rounding_keeps_the_order_and_the_bound(a: i64, b: i64, x: f64, y: f64) {
            prop_assert!((a <= b) == (round_int(a) <= round_int(b)) || round_int(a) == round_int(b));
            let off = (round_int(a) as i128 - a as i128).unsigned_abs();
            prop_assert!(off * 2048 <= a.unsigned_abs() as u128);
            prop_assume!(x.is_normal() && y.is_normal());
            let (rx, ry) = (round_float(x), round_float(y));
            prop_assert!((x <= y) == (rx <= ry) || rx == ry);
            prop_assert!(((rx - x) / x).abs() <= 1.0 / 1024.0);
        }
    }
}
