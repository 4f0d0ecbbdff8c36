//! `join` and `union`: rows of several pipelines, in windows of one length. SQL puts rows of all
//! sides together; where rows of two sides meet, an operator of the job finds them.

use crate::expr::{column, constant};
use crate::node::columns;
use crate::rows::{TimeAt, ViewRows, WindowTime};
use crate::sql::{interval, keyed};
use crate::term::{Term, ident};
use serde_json::{Value as Json, json};
use weir_plan::limits::JOIN_ROWS_MAX;
use weir_plan::{Join, JoinKind, Schema, Union, Value};

/// A join of the rows of two views.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JobJoin {
    /// The view that its rows are.
    pub(crate) name: String,
    /// Queries for the columns of both sides, then for the key, `$rowtime` and `$order`.
    pub(crate) sides: [String; 2],
    /// The settings of the operator, as JSON.
    pub(crate) plan: Json,
}

impl JobJoin {
    /// That of a plan over rows of two views, and what is known of its rows; `out` is what comes
    /// out.
    ///
    /// # Errors
    /// Names what a job does not do.
    pub(crate) fn new(
        join: &Join,
        [left, right]: [&ViewRows; 2],
        out: &Schema,
        name: &str,
    ) -> Result<(JobJoin, ViewRows), String> {
        if join.max_rows != JOIN_ROWS_MAX {
            return Err("`join` with `max`".to_owned());
        }
        let time = common_window(&[left, right], "join")?;
        let every_ns = time.map_or(0, |time| time.every_ns);
        // Operators have the time of a row in milliseconds.
        interval(every_ns)?;
        let keys = |rows: &ViewRows, of: fn(&(usize, usize)) -> usize| -> Vec<Term> {
            join.keys.iter().map(|key| column(&rows.schema, of(key))).collect()
        };
        let sides = [keyed(left, keys(left, |key| key.0)), keyed(right, keys(right, |key| key.1))];
        let mut beside = Vec::new();
        for c in &join.columns {
            let absent = c.default.as_ref().unwrap_or(&Value::Absent);
            let default = constant(absent, &right.schema.columns[c.from].ty)?.json();
            beside.push(json!({ "from": c.from, "default": default }));
        }
        let (from_ns, to_ns) = join.within.map_or((0, 0), |within| (within.from_ns, within.to_ns));
        let plan = json!({
            "kind": join.kind.name(),
            "left": left.schema.columns.len(),
            "right": right.schema.columns.len(),
            "beside": if join.kind == JoinKind::Anti { Vec::new() } else { beside },
            "columns": columns(out),
            "every_ns": every_ns.to_string(),
            "from_ns": from_ns.to_string(),
            "to_ns": to_ns.to_string(),
        });
        let waiting_ns = left.closing_ns.max(right.closing_ns);
        let rows = ViewRows {
            schema: out.clone(),
            window: time.map(|time| WindowTime { at: TimeAt::End, ..time }),
            closing_ns: waiting_ns.saturating_add(to_ns.max(0)),
            is_union: left.is_union || right.is_union,
            ..left.clone()
        };
        Ok((JobJoin { name: name.to_owned(), sides, plan }, rows))
    }
}

/// The window of the rows of all sides.
///
/// # Errors
/// Says what is wrong where they have none in common.
fn common_window(sides: &[&ViewRows], stage: &str) -> Result<Option<WindowTime>, String> {
    let first = sides[0].window.map(|time| time.every_ns);
    if sides.iter().any(|side| side.window.map(|time| time.every_ns) != first) {
        return Err(format!("`{stage}` of windows of different lengths"));
    }
    let is_late = |side: &&ViewRows| side.window.is_some_and(|time| time.at == TimeAt::End);
    let at = if sides.iter().any(is_late) { TimeAt::End } else { TimeAt::Start };
    Ok(first.map(|every_ns| WindowTime { every_ns, at }))
}

/// A query for the rows of all sides.
///
/// # Errors
/// Names what SQL does not do.
pub(crate) fn union(
    union: &Union,
    sides: &[ViewRows],
    out: &Schema,
) -> Result<(String, ViewRows), String> {
    let all: Vec<&ViewRows> = sides.iter().collect();
    let window = common_window(&all, "union")?;
    let mut queries = Vec::new();
    for (number, side) in all.iter().enumerate() {
        let mut columns = Vec::new();
        for c in &union.columns {
            let from = match c.from[number] {
                Some(at) => column(&side.schema, at),
                None => constant(&Value::Absent, &c.ty)?,
            };
            columns.push(format!("{from} AS {}", ident(&c.name)));
        }
        queries.push(format!(
            "SELECT {},\n  weir_key({}, `$order`) AS `$order`, `$rowtime`\nFROM {}",
            columns.join(",\n  "),
            Term::Int(i64::try_from(number).unwrap_or(i64::MAX)),
            side.table()
        ));
    }
    let rows = ViewRows {
        schema: out.clone(),
        window,
        closing_ns: all.iter().map(|side| side.closing_ns).max().unwrap_or(0),
        is_union: true,
        ..sides[0].clone()
    };
    Ok((queries.join("\nUNION ALL\n"), rows))
}
