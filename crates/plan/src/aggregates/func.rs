//! The aggregates that a plan can compute over a group.

use crate::expr::Expr;
use crate::limits::FREQUENT_MAX;
use crate::types::Type;

/// One aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct Agg {
    /// Name of the output column.
    pub name: String,
    /// The aggregate to compute.
    pub func: AggFunc,
    /// Its argument; `None` for `count()`.
    pub arg: Option<Expr>,
    /// Only rows for which this holds.
    pub cond: Option<Expr>,
    /// Type of the result.
    pub ty: Type,
}

/// An aggregate of the rows of a group for which its argument has a value. Over none, it is absent;
/// counts and rates are 0, and a registered aggregate says itself what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AggFunc {
    /// Rows (without an argument), or rows where the argument has a value. Int.
    Count,
    /// Rows that were taken although the watermark had passed the end of their window (of their
    /// pane, where windows slide): those that would be late without a lateness. Int.
    Late,
    /// Sum, of int, float, duration; exact for integers, absent and counted where it leaves 64
    /// bits.
    Sum,
    /// Smallest value of an ordered type.
    Min,
    /// Largest value of an ordered type.
    Max,
    /// Of a tuple of two, the first part in the row with the largest second; of several such rows
    /// the smallest first part. Rows without one of the two do not count.
    MaxBy,
    /// The same with the smallest second part.
    MinBy,
    /// Mean. Of int and float a float; of duration a duration, towards zero.
    Avg,
    /// The value in the first row, in the order rows came.
    First,
    /// The value in the last row.
    Last,
    /// Whether any value is true.
    Any,
    /// Whether all values are true.
    All,
    /// How many different values, exactly. Of any type, tuples too: a tuple counts where any of
    /// its parts has a value, absent parts being values of their own, as in a key. Int.
    Distinct,
    /// How many different values, exactly as long as a group has no more than so many; beyond, what
    /// [`AggFunc::ApproxDistinct`] gives, and more than the limit in any case. Int.
    DistinctUpTo(u64),
    /// About how many different values, as [`AggFunc::Distinct`] takes them: a HyperLogLog sketch
    /// of 4096 registers. Int.
    ApproxDistinct,
    /// Bitwise or, of int.
    BitOr,
    /// Sample variance, of int and float: a float. Absent of fewer than two values. Exact for
    /// integers but for the last division; floats in the order that rows came, which rounds.
    Variance,
    /// The square root of the sample variance; of durations a duration, towards zero.
    Stddev,
    /// Rows (without an argument), or the sum of an int, by second of a window of so many
    /// nanoseconds. Float; 0 over nothing.
    Rate(i64),
    /// The value that so many millionths of all values are not above: the smallest one that is
    /// large enough, by exact rank. Of int, float, duration, each value rounded to 11 significant
    /// bits.
    Quantile(u32),
    /// The median absolute deviation: the median of how far values lie from their median. Medians
    /// are the smallest value that half of all are not above. Of int, float, duration.
    Mad,
    /// Shannon's entropy in bits, a float. Takes what [`AggFunc::Distinct`] takes.
    Entropy,
    /// So many of the most frequent values, with how often each came, as text: `443=120 80=33`.
    /// Equally frequent ones by value. A text beyond 4096 bytes is absent and counted.
    Frequent(u32),
    /// All values by value, with how often each came, as such a text.
    Histogram,
    /// Why a session ended, as an [`EndReason`](crate::EndReason). Int; of sessions only.
    EndReason,
    /// Of the frames that passed in the time of the window, the share that was seen, at least: 1
    /// where none is known to be lost. Of summaries over packets only. Float.
    Completeness,
    /// A registered aggregate, by its position in [`crate::Signatures::aggregates`].
    User(usize),
}

impl AggFunc {
    /// Whether the numbers in it are within their bounds.
    pub fn is_within_bounds(self) -> bool {
        match self {
            AggFunc::Rate(window_ns) => window_ns > 0,
            AggFunc::Quantile(millionths) => millionths <= 1_000_000,
            AggFunc::DistinctUpTo(limit) => limit > 0,
            AggFunc::Frequent(n) => (1..=FREQUENT_MAX).contains(&n.into()),
            _ => true,
        }
    }
}
