//! Aggregates: laws first, then code.
//!
//! The state of an aggregate for one group is a few 64-bit cells in the group's row. A fresh state
//! is an identity; `merge` is associative and commutative (sums of floats: up to rounding, which
//! is why the planner keeps all rows of such a group in one place); splitting the rows anywhere and
//! merging gives the whole; decoding what was encoded changes nothing. `laws.rs` tests this for
//! all of them.

mod any_all;
pub(crate) mod approx_distinct;
mod avg;
mod bit_or;
mod completeness;
mod count;
mod distinct;
mod distinct_up_to;
pub(crate) mod end_reason;
pub(crate) mod entropy;
mod first_last;
mod fixed;
pub(crate) mod frequent;
mod fused;
mod fuzz;
mod grouped;
mod late;
#[cfg(test)]
mod laws;
mod min_max;
mod quantile;
mod rate;
mod states;
mod sum;
mod tally;
mod user;
mod variance;

use crate::functions::BuildContext;
use crate::key::Part;
use crate::rows::Arena;
use fixed::Of;
pub use fused::{FUSED_MAX, Step, Taken, update as update_fused};
pub use fuzz::fuzz_partial;
pub(crate) use rate::per_second;
pub use states::{StateKind, States};
use std::any::Any;
pub(crate) use variance::{Exact, Running};
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_packet::source::FrameBatch;
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type};

/// The rows of a batch on their way into groups.
pub struct Input<'a> {
    /// Positions in the batch, ascending.
    pub rows: &'a [u16],
    /// The group of each.
    pub groups: &'a [u32],
    /// The argument, part by part; none for `count()`.
    pub columns: &'a [&'a Column],
    /// Positions at which the argument is there and the condition holds; `None`: all of them.
    pub counted: Option<Bits>,
    /// The number of each position in the order that rows came.
    pub seq: &'a [u64],
    /// The packets that the rows were made of, while they are at hand.
    pub frames: Option<&'a FrameBatch>,
    /// The texts of the argument.
    pub arena: &'a Arena,
    /// Whether all rows belong to one group, since there is no key.
    pub lone: bool,
}

impl Input<'_> {
    /// How many rows count.
    pub fn len(&self) -> usize {
        match self.counted {
            None => self.groups.len(),
            Some(counted) => self.rows.iter().filter(|&&i| counted.has(i.into())).count(),
        }
    }

    /// Whether no row counts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f` with the group and the position of each counted row.
    #[inline(always)]
    pub fn each(&self, mut f: impl FnMut(u32, usize)) {
        match self.counted {
            None => {
                for (&i, &g) in self.rows.iter().zip(self.groups) {
                    f(g, i as usize);
                }
            }
            Some(counted) => {
                for (&i, &g) in self.rows.iter().zip(self.groups) {
                    if counted.has(i as usize) {
                        f(g, i as usize);
                    }
                }
            }
        }
    }
}

/// The cells of one aggregate in all rows of a table.
pub struct Cells<'a> {
    /// The rows of the table.
    pub rows: &'a mut [u64],
    /// Words per row.
    pub stride: usize,
    /// Where in a row the cells start.
    pub at: usize,
}

impl Cells<'_> {
    /// The `N` cells of a group.
    #[inline(always)]
    pub fn of<const N: usize>(&mut self, group: u32) -> &mut [u64; N] {
        let start = group as usize * self.stride + self.at;
        self.rows[start..start + N].as_mut().try_into().expect("N words")
    }
}

/// The cells of another table's rows, to be merged or finished.
#[derive(Clone, Copy)]
pub struct CellsRef<'a> {
    /// The rows of the table.
    pub rows: &'a [u64],
    /// Words per row.
    pub stride: usize,
    /// Where in a row the cells start.
    pub at: usize,
}

impl CellsRef<'_> {
    /// The `N` cells of a group.
    #[inline(always)]
    pub fn of<const N: usize>(&self, group: u32) -> &[u64; N] {
        let start = group as usize * self.stride + self.at;
        self.rows[start..start + N].try_into().expect("N words")
    }
}

/// Where finished values go.
pub struct Finish<'a> {
    /// The output column; row `i` is for the `i`th group asked for.
    pub column: &'a mut Column,
    /// Where texts go.
    pub arena: &'a mut Arena,
    /// Counts results outside their type.
    pub undefined: &'a mut u64,
}

/// One aggregate of one table. What does not fit in cells (sets, texts) it keeps itself.
pub trait Aggregate: Send {
    /// Cells per group.
    fn cells(&self) -> usize;

    /// Writes the state of a group without rows.
    fn fresh(&self, cells: &mut [u64]);

    /// Takes rows into their groups.
    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>);

    /// Takes the groups of another table in: `map[g]` is the group here of group `g` there. Where
    /// it [merges whole](Aggregate::merges_whole), [`NO_ROW`](crate::table::NO_ROW) leaves one out.
    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    );

    /// Makes ready for [`Aggregate::finish`]: all rows are in, and all other states merged.
    fn settle(&mut self, _: CellsRef<'_>) {}

    /// Writes the results of `groups` to rows `0..`.
    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>);

    /// Writes another result than the first, where [several](sharing) are read from one state.
    fn finish_as(&self, _result: usize, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        self.finish(cells, groups, out);
    }

    /// What it does with a row, if that is so simple that it can be done together with others.
    fn step(&self) -> Option<Step> {
        None
    }

    /// How its states are written.
    fn kind(&self) -> StateKind;

    /// Writes the states of `groups`, each once, as bytes that [`Aggregate::decode`] reads back:
    /// in one pass over all that it keeps, however many groups there are.
    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States);

    /// Takes an encoded state of one group in, as `merge` does. `false`, having changed nothing, if
    /// the bytes are not one; else the bytes read are gone from `from`.
    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool;

    /// Forgets what it keeps beside the cells.
    fn clear(&mut self) {}

    /// Whether `merge` needs all groups of the other table at once. The others are merged a batch
    /// of groups at a time.
    fn merges_whole(&self) -> bool {
        false
    }

    /// Whether there is more to a group than its cells, which then do not stand for it in another
    /// table.
    fn keeps_aside(&self) -> bool {
        true
    }

    /// Values that found no room.
    fn evicted(&self) -> u64 {
        0
    }

    /// For `merge`, to find the other's own type again.
    fn as_any(&self) -> &dyn Any;
}

/// Which aggregates of a plan share a state: lists of them, of which each has a state. Those that
/// count the same values do.
pub fn sharing(aggs: &[Agg]) -> Vec<Vec<&Agg>> {
    let counted = |agg: &Agg| match agg.func {
        AggFunc::Quantile(_) if !agg.arg.as_ref().is_some_and(quantile::is_exact) => {
            Some("rounded")
        }
        AggFunc::Quantile(_) => Some("as they are"),
        AggFunc::Entropy | AggFunc::Frequent(_) | AggFunc::Histogram => Some("as they are"),
        _ => None,
    };
    let same = |a: &Agg, b: &Agg| {
        counted(a).is_some() && counted(a) == counted(b) && a.arg == b.arg && a.cond == b.cond
    };
    let mut states: Vec<Vec<&Agg>> = Vec::new();
    for agg in aggs {
        match states.iter_mut().find(|state| same(state[0], agg)) {
            Some(state) => state.push(agg),
            None => states.push(vec![agg]),
        }
    }
    states
}

/// Makes the state of aggregates that [share](sharing) it. `lone`: a group may be asked for that
/// had no row.
pub fn build(aggs: &[Agg], with: BuildContext<'_>, lone: bool) -> Box<dyn Aggregate> {
    let reading = |agg: &Agg| -> Option<Box<dyn tally::Reading>> {
        let arg = agg.arg.as_ref()?;
        Some(match agg.func {
            AggFunc::Quantile(q) => Box::new(quantile::Quantile::new(q, arg)),
            AggFunc::Entropy => Box::new(entropy::Entropy),
            AggFunc::Frequent(n) => {
                Box::new(frequent::Frequent::new(&arg.ty, Some(n.max(1) as usize)))
            }
            AggFunc::Histogram => Box::new(frequent::Frequent::new(&arg.ty, None)),
            _ => return None,
        })
    };
    let readings: Option<Vec<_>> = aggs.iter().map(reading).collect();
    match (readings, aggs[0].arg.as_ref()) {
        (Some(readings), Some(arg)) => {
            let parts = parts(arg).into_iter().map(Part::of).collect();
            Box::new(tally::Tally::new(parts, readings, with.hash_key))
        }
        _ => alone(&aggs[0], with, lone),
    }
}

/// Makes an aggregate that shares nothing.
fn alone(agg: &Agg, with: BuildContext<'_>, lone: bool) -> Box<dyn Aggregate> {
    if let AggFunc::Rate(window_ns) = agg.func {
        return Box::new(Of(rate::Rate { window_ns }));
    }
    match agg.func {
        AggFunc::EndReason => return Box::new(end_reason::EndReason),
        AggFunc::Completeness => return Box::new(completeness::Completeness),
        _ => {}
    }
    let Some(arg) = &agg.arg else { return Box::new(Of(count::Count)) };
    // Whether a group may have rows and still no value.
    let nullable = lone || agg.cond.is_some() || !arg.always_present();
    match agg.func {
        AggFunc::Count
        | AggFunc::Late
        | AggFunc::Rate(_)
        | AggFunc::EndReason
        | AggFunc::Completeness => Box::new(Of(count::Count)),
        AggFunc::Sum => match arg.ty {
            Type::Float => Box::new(Of(sum::SumFloat)),
            _ if !matches!(arg.kind, ExprKind::Field(_)) => Box::new(Of(sum::SumSigned)),
            _ if nullable => Box::new(Of::<_, 2>(sum::SumUnsigned)),
            _ => Box::new(Of::<_, 1>(sum::SumUnsigned)),
        },
        AggFunc::Avg => avg::build(&arg.ty),
        AggFunc::Min => min_max::build(&arg.ty, false, nullable),
        AggFunc::Max => min_max::build(&arg.ty, true, nullable),
        AggFunc::First => first_last::build(arg, false),
        AggFunc::Last => first_last::build(arg, true),
        AggFunc::Any => Box::new(Of(any_all::AnyAll { all: false })),
        AggFunc::All => Box::new(Of(any_all::AnyAll { all: true })),
        AggFunc::BitOr => Box::new(Of(bit_or::BitOr)),
        AggFunc::Variance => variance::build(&arg.ty, false),
        AggFunc::Stddev => variance::build(&arg.ty, true),
        AggFunc::Distinct => {
            let parts = parts(arg).into_iter().map(Part::of);
            Box::new(distinct::Distinct::new(parts.collect(), with.hash_key))
        }
        AggFunc::DistinctUpTo(limit) => {
            Box::new(distinct_up_to::DistinctUpTo::new(limit, &parts(arg), with.hash_key))
        }
        AggFunc::ApproxDistinct => {
            let types = parts(arg).into_iter().map(|part| part.ty.clone());
            Box::new(approx_distinct::ApproxDistinct::new(types))
        }
        AggFunc::Quantile(_) | AggFunc::Entropy | AggFunc::Frequent(_) | AggFunc::Histogram => {
            unreachable!("read from counts")
        }
        AggFunc::User(i) => Box::new(user::User::new(
            with.functions.aggregate_at(i).clone(),
            arg.ty.clone(),
            agg.ty.clone(),
        )),
    }
}

/// The values that an argument is made of.
fn parts(arg: &Expr) -> Vec<&Expr> {
    match &arg.kind {
        ExprKind::Tuple(parts) => crate::expr::flat(parts),
        _ => vec![arg],
    }
}

/// Reads `N` words from the front of encoded bytes.
fn read_words<const N: usize>(from: &mut &[u8]) -> Option<[u64; N]> {
    let (head, rest) = from.split_at_checked(N * 8)?;
    *from = rest;
    let mut words = [0; N];
    for (w, bytes) in words.iter_mut().zip(head.chunks_exact(8)) {
        *w = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    Some(words)
}

/// Appends words to encoded bytes.
fn write_words(words: &[u64], out: &mut Vec<u8>) {
    words.iter().for_each(|w| out.extend_from_slice(&w.to_le_bytes()));
}

/// Reads a length and that many bytes.
fn read_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *from;
    let len = states::read_number(&mut rest)?;
    let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *from = rest;
    Some(bytes)
}

/// Appends a length and bytes.
fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
