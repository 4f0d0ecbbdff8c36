//! Makes the aggregates that a plan names.

use super::aggregate::Aggregate;
use super::fixed::Of;
use super::{
    any_all, approx_distinct, avg, bit_or, completeness, count, distinct, distinct_up_to,
    end_reason, entropy, first_last, frequent, mad, max_by, min_max, quantile, rate, sum, tally,
    user, variance,
};
use crate::key::KeyPart;
use crate::peers::BuildContext;
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type};

/// Which aggregates of a plan share a state: lists of them, of which each has a state. The ones
/// that count the same values do.
pub(crate) fn sharing(aggs: &[Agg]) -> Vec<Vec<&Agg>> {
    let counts = |agg: &Agg| match agg.func {
        AggFunc::Quantile(_) if !agg.arg.as_ref().is_some_and(quantile::is_exact) => {
            Some("rounded")
        }
        AggFunc::Quantile(_) => Some("as they are"),
        AggFunc::Mad | AggFunc::Entropy | AggFunc::Frequent(_) | AggFunc::Histogram => {
            Some("as they are")
        }
        _ => None,
    };
    // Different values are few steps from values that are counted, but more to keep alone.
    let counted = |agg: &Agg| match agg.func {
        AggFunc::Distinct => aggs
            .iter()
            .filter(|other| other.arg == agg.arg && other.cond == agg.cond)
            .find_map(|other| counts(other).filter(|how| *how == "as they are")),
        _ => counts(agg),
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
pub(crate) fn build(aggs: &[Agg], with: BuildContext<'_>, lone: bool) -> Box<dyn Aggregate> {
    let reading = |agg: &Agg| -> Option<Box<dyn tally::ResultReader>> {
        let arg = agg.arg.as_ref()?;
        Some(match agg.func {
            AggFunc::Quantile(q) => Box::new(quantile::Quantile::new(q, arg)),
            AggFunc::Mad => Box::new(mad::Mad::new(&arg.ty)),
            AggFunc::Entropy => Box::new(entropy::Entropy),
            AggFunc::Frequent(n) => {
                Box::new(frequent::Frequent::new(&arg.ty, Some(n.max(1) as usize)))
            }
            AggFunc::Histogram => Box::new(frequent::Frequent::new(&arg.ty, None)),
            AggFunc::Distinct if aggs.len() > 1 => Box::new(distinct::OfCounted),
            _ => return None,
        })
    };
    let readings: Option<Vec<_>> = aggs.iter().map(reading).collect();
    match (readings, aggs[0].arg.as_ref()) {
        (Some(readings), Some(arg)) => {
            let parts = parts(arg).into_iter().map(KeyPart::of).collect();
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
        AggFunc::Min => min_max::build(arg, false, nullable),
        AggFunc::Max => min_max::build(arg, true, nullable),
        AggFunc::MaxBy | AggFunc::MinBy => {
            let parts = <[&Expr; 2]>::try_from(parts(arg)).expect("a value and what chooses it");
            max_by::build(parts, agg.func == AggFunc::MaxBy)
        }
        AggFunc::First => first_last::build(arg, false, with.peers),
        AggFunc::Last => first_last::build(arg, true, with.peers),
        AggFunc::Any => Box::new(Of(any_all::AnyAll { all: false })),
        AggFunc::All => Box::new(Of(any_all::AnyAll { all: true })),
        AggFunc::BitOr => Box::new(Of(bit_or::BitOr)),
        AggFunc::Variance => variance::build(&arg.ty, false),
        AggFunc::Stddev => variance::build(&arg.ty, true),
        AggFunc::Distinct => {
            let parts = parts(arg).into_iter().map(KeyPart::of);
            Box::new(distinct::Distinct::new(parts.collect(), with.hash_key))
        }
        AggFunc::DistinctUpTo(limit) => {
            Box::new(distinct_up_to::DistinctUpTo::new(limit, &parts(arg), with.hash_key))
        }
        AggFunc::ApproxDistinct => {
            let types = parts(arg).into_iter().map(|part| part.ty.clone());
            Box::new(approx_distinct::ApproxDistinct::new(types))
        }
        AggFunc::Quantile(_)
        | AggFunc::Mad
        | AggFunc::Entropy
        | AggFunc::Frequent(_)
        | AggFunc::Histogram => unreachable!("read from counts"),
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
