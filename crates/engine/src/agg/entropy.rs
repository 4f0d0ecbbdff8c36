//! `entropy(x)`: how mixed values are, in bits.
//!
//! | | |
//! |---|---|
//! | Syntax | `entropy(x)`, `entropy((x, y))`, `entropy(flow)`, each also with `where condition` |
//! | Takes | any type, tuples too; a tuple counts where any of its parts has a value |
//! | Type | float: Shannon's entropy; 0 where all values are equal, `log2(n)` where `n` values are equally frequent |
//! | Over nothing | absent |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted |
//! | State | 16 to 128 bytes a different value |
//! | Merge | counts of equal values add |
//! | Exact? | the counts are exact; for a value that came `c` times of `n`, `c / n * log2(n / c)` in floats, added from the rarest value to the most frequent |

use super::Finish;
use super::tally::{CountedValues, ResultReader, Values, total};

pub(super) struct Entropy;

/// The entropy of values that came so often each. Sorts them, so that their order cannot matter.
fn entropy(counts: &mut [u64]) -> f64 {
    counts.sort_unstable();
    let n = total(counts.iter().copied()) as f64;
    counts.iter().fold(0.0, |sum, &c| sum + c as f64 / n * (n / c as f64).log2())
}

impl ResultReader for Entropy {
    fn read(&self, values: &Values<'_>, _: &mut CountedValues, i: usize, out: &mut Finish<'_>) {
        let mut counts: Vec<u64> = values.counts().collect();
        out.column.set_raw(i, entropy(&mut counts).to_bits() as u128);
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check, fuzz_decode};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Type, Value, Window};

    #[test]
    fn bits() {
        let e = AggFunc::Entropy;
        check(e, &Type::Int, &[], Value::Absent);
        check(e, &Type::Int, &[Given::Int(5), Given::Int(5), Given::Absent], Value::Float(0.0));
        let four = ["a", "b", "c", "d"].map(|s| Given::Str(s.into()));
        check(e, &Type::Str, &four, Value::Float(2.0));
        let skewed = [1, 1, 1, 1, 2, 2, 3, 4].map(Given::Int);
        check(e, &Type::Int, &skewed, Value::Float(1.75));
        let ips = [Given::Ip(0xffff_0a00_0001), Given::Ip(1 << 90)];
        check(e, &Type::Ip, &ips, Value::Float(1.0));
        fuzz_decode(e, &Type::Str, &four);
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |name: &str| agg(AggFunc::Entropy, Some(field(name)));
                check_stages(vec![summarize(key, vec![of("len"), of("ip.src")], window)]);
            }
        }
    }
}
