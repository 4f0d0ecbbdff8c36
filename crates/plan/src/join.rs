//! Stages that take the rows of several pipelines: `join` and `union`.
//!
//! Both stand first in their pipeline, whose input is the left side; what a query writes before
//! them is a pipeline of its own. The sides hold no packets any more: their rows are columns.

#[cfg(doc)]
use crate::limits::JOIN_PAIRS_EACH;
use crate::stage::{Column, Schema};
use crate::types::Type;
use crate::value::Value;
use std::ops::RangeInclusive;

/// Parts that an interval is cut into: a join looks at the watermark so many times while a row
/// waits for its partners. More make rows leave sooner, and steps shorter.
const TICKS: i64 = 8;

/// The shortest time between two looks at the watermark.
const TICK_MIN_NS: i64 = 1_000_000;

/// Lets the rows of two pipelines meet.
///
/// A row of the right side meets a row of the left side if their keys are equal (an absent part is
/// a key value of its own) and their times fit: with `within` the right time minus the left one
/// lies in the interval, both ends included; without, times are equal, which are the starts of
/// windows, or there are none.
///
/// The join reads the watermark, which is the smaller one of both sides, rounded down to a multiple
/// of [`Join::tick`]. A left row comes out once no partner can come any more: in the order of time,
/// then as left rows came, its partners in the order of time, then as they came. It keeps its
/// event time.
///
/// A left row is open until it comes out, and a right row meets the left rows that are open when it
/// comes or that come later, however late it is itself. A left row that comes when its interval is
/// over is not taken in and counted as late; so is a right row that comes when the intervals of all
/// left rows that it could meet are over.
///
/// A left row that has met none when the input ends, and whose interval is not over then, may have
/// met one later: `join left` and `join anti` leave it out, and count it as undecided.
///
/// The left rows of one tick make at most [`Join::max_rows`] pairs, and [`JOIN_PAIRS_EACH`] more
/// for each of them: one that finds partners when those before it have made more is left out with
/// all its pairs, and counted as evicted.
#[derive(Clone, PartialEq, Debug)]
pub struct Join {
    /// The rows that come out.
    pub kind: JoinKind,
    /// The pipeline on the right side: an earlier one, or the left side's own input.
    pub right: usize,
    /// The columns of the right side.
    pub schema: Schema,
    /// Columns of the left and the right side that are equal where rows meet.
    pub keys: Vec<(usize, usize)>,
    /// The columns of the right side that come out, after the left side's.
    pub columns: Vec<JoinColumn>,
    /// How far apart in time rows meet; `None`: not at all.
    pub within: Option<Within>,
    /// Rows that each side holds at once; further ones are not taken in, and counted as evicted.
    pub max_rows: u64,
}

/// The rows that a join puts out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinKind {
    /// Every pair of rows that meet.
    Inner,
    /// Also once each left row that met none in its whole interval, its right columns absent or as
    /// their defaults say.
    Left,
    /// Just the left rows that met none.
    Anti,
}

impl JoinKind {
    /// How queries write it.
    pub fn name(self) -> &'static str {
        match self {
            JoinKind::Inner => "inner",
            JoinKind::Left => "left",
            JoinKind::Anti => "anti",
        }
    }
}

/// A column of the right side that comes out.
#[derive(Clone, PartialEq, Debug)]
pub struct JoinColumn {
    /// Its position on the right side.
    pub from: usize,
    /// The value in it where a left row met none; absent without.
    pub default: Option<Value>,
}

/// An interval of time, relative to a left row: both ends are included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Within {
    /// Nanoseconds; negative for before.
    pub from_ns: i64,
    /// Nanoseconds, at least `from_ns`.
    pub to_ns: i64,
}

impl Join {
    /// From when to when after a left row its partners come.
    fn interval(&self) -> (i64, i64) {
        self.within.map_or((0, 0), |w| (w.from_ns, w.to_ns))
    }

    /// How long a left row waits.
    fn wait(&self) -> i64 {
        self.interval().1.max(0)
    }

    /// Of what times the watermark is rounded down to a multiple, in nanoseconds.
    pub fn tick(&self) -> i64 {
        let Some(Within { from_ns, to_ns }) = self.within else { return 1 };
        let longest = to_ns.max(0).saturating_sub(from_ns.min(0));
        (longest / TICKS).max(TICK_MIN_NS)
    }

    /// The last tick of the join that a watermark has reached. Rows are kept or let go by comparing
    /// it with [`Join::left_until`] and its kin.
    pub fn reached(&self, watermark: i64) -> i64 {
        watermark.checked_sub(watermark.rem_euclid(self.tick())).unwrap_or(i64::MIN)
    }

    /// A left row of this time comes out, or is late, when more than this has been reached.
    pub fn left_until(&self, time: i64) -> i64 {
        time.saturating_add(self.wait())
    }

    /// Whether it is not known that a left row of this time meets no row, since what came is known
    /// up to this time alone: its interval goes on after that.
    pub fn is_undecided(&self, time: i64, known_until: i64) -> bool {
        self.wait() > 0 && self.left_until(time) > known_until
    }

    /// The first left row that a right row of this time might meet comes out when more than this
    /// has been reached. By then the right rows of this time are put in order; those that come
    /// later still meet the left rows that are open.
    pub fn right_until(&self, time: i64) -> i64 {
        time.saturating_add(self.wait().saturating_sub(self.interval().1))
    }

    /// A right row of this time is forgotten, or is late, when more than this has been reached: all
    /// left rows that it might meet have come out.
    pub fn right_held_until(&self, time: i64) -> i64 {
        time.saturating_add(self.wait().saturating_sub(self.interval().0))
    }

    /// The watermark of the rows that come out.
    pub fn downstream(&self, reached: i64) -> i64 {
        reached.saturating_sub(self.wait())
    }

    /// The times of the right rows that a left row of this time meets; `None` where there is no
    /// such time.
    pub fn partners(&self, left: i64) -> Option<RangeInclusive<i64>> {
        let (from, to) = self.interval();
        // Beyond the range of times on one side: no time is as far away on the other.
        let first = left.checked_add(from).or_else(|| (from < 0).then_some(i64::MIN))?;
        let last = left.checked_add(to).or_else(|| (to > 0).then_some(i64::MAX))?;
        Some(first..=last)
    }

    /// Whether rows of equal keys and of these times meet.
    pub fn meets(&self, left: i64, right: i64) -> bool {
        self.partners(left).is_some_and(|times| times.contains(&right))
    }

    /// The columns that come out when these are the left side's.
    pub(crate) fn output(&self, left: &Schema) -> Schema {
        let right = self.columns.iter().map(|c| self.schema.columns[c.from].clone());
        Schema { columns: left.columns.iter().cloned().chain(right).collect() }
    }
}

/// Puts the rows of several pipelines together.
///
/// Rows that come at once come in the order of their packets, then of the sides; rows that leave
/// when the watermark moves, or at the end of the input, in the order of the sides. The watermark
/// is the smallest one of all sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Union {
    /// The pipelines besides the input. One may stand here several times.
    pub others: Vec<usize>,
    /// The columns that come out.
    pub columns: Vec<UnionColumn>,
    /// Whether rows keep their event time: where one side has none, the others' is dropped.
    pub timed: bool,
}

/// A column of a union.
#[derive(Clone, PartialEq, Debug)]
pub struct UnionColumn {
    /// Its name on all sides.
    pub name: String,
    /// Its type on all sides.
    pub ty: Type,
    /// Its position on each side, the input first; `None` on one that lacks it.
    pub from: Vec<Option<usize>>,
}

impl Union {
    /// The columns that come out.
    pub(crate) fn output(&self) -> Schema {
        Schema { columns: self.columns.iter().map(|c| Column::new(&c.name, &c.ty)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(within: Option<(i64, i64)>) -> Join {
        Join {
            kind: JoinKind::Inner,
            right: 0,
            schema: Schema::default(),
            keys: Vec::new(),
            columns: Vec::new(),
            within: within.map(|(from_ns, to_ns)| Within { from_ns, to_ns }),
            max_rows: 1,
        }
    }

    /// Rows that meet are there at the same time: as long as a left row is open, no right row that
    /// it meets is forgotten or refused as late.
    #[test]
    fn rows_that_meet_are_held_together() {
        let ms = 1_000_000;
        for interval in [(0, 3), (-2, 5), (-5, -2), (1, 4), (0, 0), (-3, 0)] {
            let join = join(Some((interval.0 * ms, interval.1 * ms)));
            for (l, r, reached) in triples(-12..12) {
                let (l, r, reached) = (l * ms, r * ms, reached * ms);
                if join.meets(l, r) {
                    let left_is_open = join.left_until(l) >= reached;
                    assert!(!left_is_open || join.right_held_until(r) >= reached, "{interval:?}");
                    // It is put in order before the first such left row comes out.
                    assert!(join.right_until(r) <= join.left_until(l), "{interval:?}");
                }
                // A row that comes in time is not late.
                assert!(l < reached || join.left_until(l) >= reached);
                assert!(r < reached || join.right_until(r) >= reached);
                assert!(join.right_until(r) <= join.right_held_until(r));
                assert!(join.left_until(l) < reached || l >= join.downstream(reached));
            }
        }
    }

    #[test]
    fn times_at_the_ends_of_their_range_meet_exactly() {
        let at = [i64::MIN, i64::MIN + 1, i64::MIN + 2, -1, 0, 1, i64::MAX - 1, i64::MAX];
        for (from, to) in [(0, 1), (-1, 0), (1, 2), (-2, -1), (-1, 1), (i64::MIN, i64::MAX)] {
            let join = join(Some((from, to)));
            for (left, right) in at.into_iter().flat_map(|l| at.map(|r| (l, r))) {
                let apart = i128::from(right) - i128::from(left);
                let meet = (from.into()..=to.into()).contains(&apart);
                assert_eq!(join.meets(left, right), meet, "{left} and {right}, {from} to {to}");
            }
        }
    }

    fn triples(range: std::ops::Range<i64>) -> impl Iterator<Item = (i64, i64, i64)> {
        let pairs = range.clone().flat_map({
            let range = range.clone();
            move |a| range.clone().map(move |b| (a, b))
        });
        pairs.flat_map(move |(a, b)| range.clone().map(move |c| (a, b, c)))
    }

    #[test]
    fn the_watermark_is_read_in_ticks() {
        let three_seconds = join(Some((0, 3_000_000_000)));
        assert_eq!(three_seconds.tick(), 375_000_000);
        assert_eq!(three_seconds.reached(1_000_000_000), 750_000_000);
        assert_eq!(three_seconds.reached(i64::MIN), i64::MIN);
        assert_eq!(join(Some((0, 1))).tick(), 1_000_000);
        assert_eq!(join(None).reached(17), 17);
    }
}
