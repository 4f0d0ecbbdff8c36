//! The queries of stages that SQL knows: windows, and the first rows of each.

use crate::aggregates::aggregate;
use crate::expr::{ordered, value};
use crate::rows::{TimeAt, ViewRows, WindowTime};
use crate::term::{Term, ident};
use weir_plan::{Order, Per, SortKey, Summarize, Window};

/// Nanoseconds in a millisecond: Flink's time has no finer one.
const MS: i64 = 1_000_000;

/// A length as an interval; milliseconds are the finest.
pub(crate) fn interval(ns: i64) -> Result<String, String> {
    match ns % MS {
        0 => Ok(format!("INTERVAL '{}.{:03}' SECOND(10, 3)", ns / 1_000_000_000, ns / MS % 1000)),
        _ => Err("windows that are no whole number of milliseconds".to_owned()),
    }
}

/// A query for rows with their key, as operators take them. As with every key, an absent part is a
/// value of its own.
pub(crate) fn keyed(rows: &ViewRows, keys: Vec<Term>) -> String {
    let mut columns: Vec<String> = rows.schema.columns.iter().map(|c| ident(&c.name)).collect();
    columns.push(format!("{} AS `$key`", Term::key(keys)));
    format!("SELECT {},\n  `$rowtime`, `$order`\nFROM {}", columns.join(",\n  "), rows.table())
}

/// A further `summarize`, and how the windows of its rows lie.
///
/// # Errors
/// Names what SQL does not do.
pub(crate) fn summarize(s: &Summarize, rows: &ViewRows) -> Result<(String, WindowTime), String> {
    let Window::Tumbling(every_ns) = s.window else {
        return Err("a further `summarize` whose windows do not follow each other".to_owned());
    };
    let time = rows.window.ok_or("a further `summarize` over rows that have no time")?;
    if s.zone.is_some() {
        return Err("a further `summarize` with windows by the clock of a time zone".to_owned());
    }
    if s.fill.is_some() || s.lateness_ns != 0 {
        return Err("a further `summarize` with `fill` or `lateness`".to_owned());
    }
    if time.at == TimeAt::End && every_ns % time.every_ns != 0 {
        return Err("a further `summarize` whose windows cut those before it".to_owned());
    }
    let schema = &rows.schema;
    let key = |(_, e): &(String, _)| Ok(value(e, schema)?.to_string());
    let keys: Result<Vec<String>, String> = s.keys.iter().map(key).collect();
    let keys = keys?;
    let mut columns = vec!["weir_ns(window_start) AS `ts`".to_owned()];
    for ((name, _), key) in s.keys.iter().zip(&keys) {
        columns.push(format!("{key} AS {}", ident(name)));
    }
    for agg in &s.aggs {
        columns.push(format!("{} AS {}", aggregate(agg, schema)?, ident(&agg.name)));
    }
    let order = match keys.is_empty() {
        true => "CAST(X'' AS BYTES)".to_owned(),
        false => format!("weir_key({})", keys.join(", ")),
    };
    let groups: Vec<&str> = ["window_start", "window_end", "window_time"]
        .into_iter()
        .chain(keys.iter().map(|k| &**k))
        .collect();
    let query = format!(
        "SELECT {},\n  {order} AS `$order`, window_time AS `$rowtime`\nFROM TABLE(TUMBLE(TABLE \
         {}, DESCRIPTOR(`$rowtime`), {}))\nGROUP BY {}",
        columns.join(",\n  "),
        rows.table(),
        interval(every_ns)?,
        groups.join(", ")
    );
    Ok((query, WindowTime { every_ns, at: TimeAt::End }))
}

/// A `top` over windows.
pub(crate) struct TopRows<'a> {
    pub(crate) n: u64,
    pub(crate) by: &'a [SortKey],
    pub(crate) per: Option<&'a Per>,
    pub(crate) every_ns: i64,
}

/// Two queries: the rows with what they are sorted by, in a view of the name `sorted`, and the
/// first ones of each window among these.
///
/// # Errors
/// Names what SQL does not do.
pub(crate) fn top(top: &TopRows<'_>, rows: &ViewRows, sorted: &str) -> Result<[String; 2], String> {
    let schema = &rows.schema;
    let names: Vec<String> = schema.columns.iter().map(|c| ident(&c.name)).collect();
    let (mut extra, mut order) = (String::new(), Vec::new());
    for (i, key) in top.by.iter().enumerate() {
        let by = ordered(&key.expr, schema)?;
        extra += &format!(",\n  CASE WHEN {by} IS NULL THEN 1 ELSE 0 END AS `$absent{i}`");
        extra += &format!(",\n  {by} AS `$by{i}`");
        let way = match key.order {
            Order::Descending => "DESC",
            Order::Ascending => "ASC",
        };
        order.push(format!("`$absent{i}` ASC, `$by{i}` {way}"));
    }
    let mut parts = Vec::new();
    for (i, key) in top.per.iter().flat_map(|per| &per.keys).enumerate() {
        extra += &format!(",\n  {} AS `$per{i}`", value(key, schema)?);
        parts.push(format!("`$per{i}`"));
    }
    let of_window: Vec<String> = ["window_start", "window_end"]
        .into_iter()
        .map(str::to_owned)
        .chain(parts.iter().cloned())
        .collect();
    // The rows that come out stand by key, then by rank.
    parts.push("`$rank`".to_owned());
    order.push("`$order` ASC".to_owned());
    let by = format!("SELECT *{extra}\nFROM {}", rows.table());
    let first = format!(
        "SELECT {names}, weir_key({place}) AS `$order`, window_time AS `$rowtime`\nFROM (\n  \
         SELECT *, ROW_NUMBER() OVER (PARTITION BY {window}\n    ORDER BY {order}) AS `$rank`\n  \
         FROM TABLE(TUMBLE(TABLE {sorted}, DESCRIPTOR(`$rowtime`), {interval})))\n\
         WHERE `$rank` <= {n}",
        names = names.join(", "),
        place = parts.join(", "),
        window = of_window.join(", "),
        order = order.join(", "),
        interval = interval(top.every_ns)?,
        n = top.n,
    );
    Ok([by, first])
}
