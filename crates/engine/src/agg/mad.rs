//! `mad(x)`: how far values usually lie from their median.
//!
//! | | |
//! |---|---|
//! | Syntax | `mad(x)`, `mad(x) where condition` |
//! | Takes | int, float, duration |
//! | Type | that of `x` |
//! | Over nothing | absent |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted |
//! | State | 16 to 64 bytes a different value; shared with `entropy`, `frequent` and `histogram` of the same values |
//! | Merge | counts of equal values add |
//! | Exact? | exact; the median is the smallest value that half of all are not above, of the values as of the distances |

use super::Finish;
use super::tally::{CountedValues, ResultReader, Values, total};
use crate::expr::Class;
use weir_plan::Type;

pub(super) struct Mad {
    class: Class,
}

impl Mad {
    pub(super) fn new(ty: &Type) -> Mad {
        Mad { class: Class::of(ty) }
    }

    /// How far one value lies from another, as a word that orders such distances.
    fn distance(&self, a: u64, b: u64) -> u64 {
        match self.class {
            Class::Float => (f64::from_bits(a) - f64::from_bits(b)).abs().to_bits(),
            _ => (a as i64).abs_diff(b as i64),
        }
    }
}

/// The value in the middle, of two the smaller. Sorts them.
fn middle(work: &mut CountedValues) -> u64 {
    work.sort_unstable();
    let mut left = total(work.iter().map(|(_, times)| *times)).div_ceil(2);
    for &(value, times) in &*work {
        if left <= times {
            return value as u64;
        }
        left -= times;
    }
    unreachable!("there is a value at least")
}

impl ResultReader for Mad {
    fn read(&self, values: &Values<'_>, work: &mut CountedValues, i: usize, out: &mut Finish<'_>) {
        values.all(work);
        work.iter_mut().for_each(|(raw, _)| *raw = self.class.ordered(*raw as u64).into());
        let median = self.class.unordered(middle(work));
        for (ordered, _) in &mut *work {
            let value = self.class.unordered(*ordered as u64);
            *ordered = self.distance(value, median).into();
        }
        // It is of the type of the values: those on one side of the median, which are half of all
        // with it, are no further away than the type goes.
        out.column.set_raw(i, middle(work).into());
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check, fuzz_decode};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Type, Value, Window};

    #[test]
    fn distances_from_the_median() {
        let mad = |values: &[i64], want: i64| {
            let given: Vec<Given> = values.iter().copied().map(Given::Int).collect();
            check(AggFunc::Mad, &Type::Int, &given, Value::Int(want));
        };
        check(AggFunc::Mad, &Type::Int, &[], Value::Absent);
        mad(&[7], 0);
        mad(&[98, 99, 99, 100, 100, 100, 101, 101, 102], 1);
        mad(&[1, 1, 2, 2, 4, 6, 9], 1);
        // Of two in the middle the smaller one, both times.
        mad(&[0, 10], 0);
        mad(&[0, 10, 20, 30], 10);
        mad(&[70_000, 70_001, 70_003, 1 << 40], 1);
        mad(&[i64::MIN, i64::MIN, 0, 0, 0], 0);
        let far = [i64::MIN, 0, i64::MAX].map(Given::Int);
        check(AggFunc::Mad, &Type::Int, &far, Value::Int(i64::MAX));
        mad(&[i64::MIN, 0, i64::MAX, i64::MAX], i64::MAX);
        mad(&[i64::MIN, i64::MIN, -1, i64::MAX], 0);
        mad(&[i64::MIN, -1, i64::MAX, i64::MAX], i64::MAX);
        let floats = [-0.5, 0.25, 8.0].map(Given::Float);
        check(AggFunc::Mad, &Type::Float, &floats, Value::Float(0.75));
        let gaps = [7, -7, 9, 0].map(Given::Duration);
        check(AggFunc::Mad, &Type::Duration, &gaps, Value::Duration(7));
        fuzz_decode(AggFunc::Mad, &Type::Int, &far);
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |name: &str| agg(AggFunc::Mad, Some(field(name)));
                check_stages(vec![summarize(key, vec![of("len"), of("tcp.seq")], window)]);
            }
        }
    }
}
