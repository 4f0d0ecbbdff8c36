//! What a job has to know of a `summarize` whose groups come from probes.

use serde_json::{Value as Json, json};
use weir_engine::exchange::GroupLayout;
use weir_plan::{AggFunc, Schema, Type, Window};

/// Says why groups are not merged by a job, if they are not.
pub(crate) fn fault(layout: &GroupLayout) -> Option<String> {
    let s = &layout.summarize;
    if matches!(s.window, Window::Session(_)) {
        return Some("sessions".to_owned());
    }
    if s.zone.is_some() {
        return Some("windows by the clock of a time zone".to_owned());
    }
    if s.fill.is_some() {
        return Some("`fill`".to_owned());
    }
    let sliding = matches!(s.window, Window::Sliding { .. });
    s.aggs.iter().find_map(|agg| {
        let float = agg.arg.as_ref().is_some_and(|arg| arg.ty == Type::Float);
        match agg.func {
            AggFunc::User(_) => Some("a registered aggregate".to_owned()),
            AggFunc::Sum | AggFunc::Avg | AggFunc::Variance | AggFunc::Stddev
                if float && sliding =>
            {
                Some(format!("`{}` of floats in windows that overlap", agg.func.name()))
            }
            _ => None,
        }
    })
}

/// A node as JSON. Integers of 64 bits are strings.
pub(crate) fn json(layout: &GroupLayout, rows: &Schema) -> Json {
    let s = &layout.summarize;
    let text = |ns: Option<i64>| ns.unwrap_or(0).to_string();
    let states = layout.states.iter().map(|state| {
        let types: Vec<String> = state.types.iter().map(Type::to_string).collect();
        json!({ "kind": state.kind, "types": types })
    });
    let results = s.aggs.iter().zip(&layout.results).map(|(agg, state)| {
        let (function, number) = function(agg.func);
        json!({
            "function": function,
            "number": number.to_string(),
            "state": state,
            "type": agg.ty.to_string(),
        })
    });
    let keys: Vec<String> = s.keys.iter().map(|(_, e)| e.ty.to_string()).collect();
    let node: String = layout.target.node.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "node": node,
        "fingerprint": format!("{:032x}", layout.target.print),
        "over_ns": text(s.window.over()),
        "every_ns": text(s.window.every()),
        "pane_ns": text(s.window.pane()),
        "lateness_ns": s.lateness_ns.to_string(),
        "keys": keys,
        "states": states.collect::<Vec<_>>(),
        "results": results.collect::<Vec<_>>(),
        "columns": columns(rows),
    })
}

/// Columns of rows as JSON.
pub(crate) fn columns(rows: &Schema) -> Json {
    let column = |c: &weir_plan::Column| json!({ "name": c.name, "type": c.ty.to_string() });
    rows.columns.iter().map(column).collect()
}

/// An aggregate as the job names it, and the number that belongs to it.
fn function(func: AggFunc) -> (&'static str, u64) {
    match func {
        AggFunc::Count => ("count", 0),
        AggFunc::Late => ("late", 0),
        AggFunc::Sum => ("sum", 0),
        AggFunc::Min => ("min", 0),
        AggFunc::Max => ("max", 0),
        AggFunc::MaxBy => ("max_by", 0),
        AggFunc::MinBy => ("min_by", 0),
        AggFunc::Avg => ("avg", 0),
        AggFunc::First => ("first", 0),
        AggFunc::Last => ("last", 0),
        AggFunc::Any => ("any", 0),
        AggFunc::All => ("all", 0),
        AggFunc::Distinct => ("distinct", 0),
        AggFunc::DistinctUpTo(limit) => ("distinct_up_to", limit),
        AggFunc::ApproxDistinct => ("approx_distinct", 0),
        AggFunc::BitOr => ("bit_or", 0),
        AggFunc::Variance => ("variance", 0),
        AggFunc::Stddev => ("stddev", 0),
        AggFunc::Rate(window_ns) => ("rate_window_ns", window_ns.unsigned_abs()),
        AggFunc::Quantile(millionths) => ("quantile_millionths", millionths.into()),
        AggFunc::Mad => ("mad", 0),
        AggFunc::Entropy => ("entropy", 0),
        AggFunc::Frequent(n) => ("frequent", n.into()),
        AggFunc::Histogram => ("histogram", 0),
        AggFunc::EndReason => ("end_reason", 0),
        AggFunc::Completeness => ("completeness", 0),
        AggFunc::User(_) => ("registered", 0),
    }
}
