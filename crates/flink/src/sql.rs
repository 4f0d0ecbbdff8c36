//! Stages as SQL: a view for each. Beside their columns, rows have `$rowtime`, which Flink orders
//! windows by, and `$order`, the bytes of their key: rows of one window stand in that order.

use crate::aggregates::aggregate;
use crate::alert::JobAlert;
use crate::expr::{condition, ident, ordered, value};
use std::collections::BTreeMap;
use weir_engine::exchange::GroupLayout;
use weir_plan::physical::{Fragment, Inlet, PipelineId, Work};
use weir_plan::{Expr, Order, Per, Schema, SortKey, Stage, Summarize, Window};

/// Nanoseconds in a millisecond: Flink's time has no finer one.
const MS: i64 = 1_000_000;

/// Where rows come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// They are those of a node as they are.
    Node(usize),
    /// A view has them.
    View(String),
    /// They are alerts of the rows of a view.
    Alert(Box<JobAlert>),
}

impl Source {
    /// A query for these columns of it.
    pub(crate) fn select(&self, columns: &Schema) -> String {
        if let Source::Alert(alert) = self {
            return alert.sql.clone();
        }
        let names: Vec<String> = columns.columns.iter().map(|c| ident(&c.name)).collect();
        format!("SELECT {} FROM {}", names.join(", "), self.table())
    }

    fn table(&self) -> String {
        match self {
            Source::Node(number) => format!("node{}", number + 1),
            Source::View(name) => name.clone(),
            Source::Alert(_) => unreachable!("no stage comes after an alert"),
        }
    }
}

/// Rows that a stage takes.
#[derive(Clone)]
struct ViewRows {
    source: Source,
    schema: Schema,
    /// Their windows, if they come in some.
    window: Option<WindowTime>,
    /// How long they may wait, after the groups that they are made of.
    closing_ns: i64,
}

/// How the windows of rows lie in time.
#[derive(Clone, Copy)]
struct WindowTime {
    every_ns: i64,
    /// Where in its window the time of a row stands.
    at: TimeAt,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeAt {
    /// At its start, as in Weir.
    Start,
    /// In its last millisecond, as after Flink's own windows.
    End,
}

/// The views of a plan.
#[derive(Default)]
pub(crate) struct Views {
    statements: Vec<String>,
    nodes: BTreeMap<PipelineId, ViewRows>,
    pipelines: BTreeMap<PipelineId, ViewRows>,
}

impl Views {
    /// The rows of a node are a table.
    pub(crate) fn add_node(&mut self, number: usize, layout: &GroupLayout, rows: &Schema) {
        let every = layout.summarize.window.every();
        let rows = ViewRows {
            source: Source::Node(number),
            schema: rows.clone(),
            window: every.map(|every_ns| WindowTime { every_ns, at: TimeAt::Start }),
            closing_ns: 0,
        };
        self.nodes.insert(layout.pipeline, rows);
    }

    /// Adds the stages of a pipeline that stand above the exchange.
    ///
    /// # Errors
    /// Names what SQL does not do.
    pub(crate) fn add_pipeline(&mut self, fragment: &Fragment) -> Result<(), String> {
        let mut rows = match &fragment.from {
            Inlet::Exchange(_) => self.nodes.get(&fragment.pipeline),
            Inlet::Pipelines(sides) => match &sides[..] {
                [one] => self.pipelines.get(one),
                _ => None,
            },
        }
        .cloned();
        for node in &fragment.nodes {
            let Work::Stage(stage) = &node.work else { continue };
            if rows.as_ref().is_some_and(|rows| matches!(rows.source, Source::Alert(_))) {
                return Err(format!("{} over alerts", named(stage)));
            }
            let of = |rows: Option<ViewRows>| rows.ok_or_else(|| named(stage));
            let name = format!("p{}_{}", fragment.pipeline.0 + 1, node.id.stage + 1);
            rows = Some(self.add_stage(&name, stage, &node.schema, &of(rows)?)?);
        }
        let rows = rows.ok_or("rows of several pipelines")?;
        self.pipelines.insert(fragment.pipeline, rows);
        Ok(())
    }

    /// Where the rows of a pipeline are.
    pub(crate) fn source(&self, pipeline: PipelineId) -> Source {
        self.pipelines[&pipeline].source.clone()
    }

    /// How long after the last groups the windows of further stages may stay open.
    pub(crate) fn closing_ns(&self) -> i64 {
        self.pipelines.values().map(|rows| rows.closing_ns).max().unwrap_or(0)
    }

    pub(crate) fn into_statements(self) -> Vec<String> {
        self.statements
    }

    fn add_stage(
        &mut self,
        name: &str,
        stage: &Stage,
        out: &Schema,
        rows: &ViewRows,
    ) -> Result<ViewRows, String> {
        if let Some(twice) = twice(out) {
            return Err(format!("two columns of the name `{twice}`"));
        }
        let (schema, table) = (&rows.schema, rows.source.table());
        let (mut window, mut closing_ns) = (rows.window, rows.closing_ns);
        let query = match stage {
            Stage::Where(e) => {
                format!("SELECT *\nFROM {table}\nWHERE {}", condition(e, schema)?)
            }
            Stage::Extend { columns } => {
                let mut all: Vec<String> = schema.columns.iter().map(|c| ident(&c.name)).collect();
                all.resize(out.columns.len(), String::new());
                for (name, at, e) in columns {
                    all[*at] = format!("{} AS {}", value(e, schema)?, ident(name));
                }
                select(&all, &table)
            }
            Stage::Project { columns } | Stage::Reshape { columns, .. } => {
                let column = |(name, e): &(String, Expr)| {
                    Ok(format!("{} AS {}", value(e, schema)?, ident(name)))
                };
                let all: Result<Vec<String>, String> = columns.iter().map(column).collect();
                select(&all?, &table)
            }
            Stage::Summarize(s) => {
                let (query, time) = summarize(s, rows, &table)?;
                window = Some(time);
                closing_ns = closing_ns.saturating_add(time.every_ns);
                query
            }
            Stage::Top { n, by, windowed: true, per } => {
                let time = window.ok_or_else(|| named(stage))?;
                window = Some(WindowTime { at: TimeAt::End, ..time });
                let best = TopRows { n: *n, by, per: per.as_ref(), every_ns: time.every_ns };
                let sorted = format!("{name}_by");
                let [by, first] = top(&best, rows, &sorted)?;
                self.statements.push(format!("CREATE TEMPORARY VIEW {sorted} AS\n{by}"));
                first
            }
            Stage::Alert(plan) => {
                let lag = window.filter(|time| time.at == TimeAt::End).map_or(0, |t| t.every_ns);
                let alert = Box::new(JobAlert::new(plan, schema, &table, lag)?);
                let source = Source::Alert(alert);
                return Ok(ViewRows { source, schema: out.clone(), window, closing_ns });
            }
            _ => return Err(named(stage)),
        };
        self.statements.push(format!("CREATE TEMPORARY VIEW {name} AS\n{query}"));
        let source = Source::View(name.to_owned());
        Ok(ViewRows { source, schema: out.clone(), window, closing_ns })
    }
}

fn named(stage: &Stage) -> String {
    match stage {
        Stage::Top { .. } => "`top` over all of the input".to_owned(),
        other => format!("`{}`", stage_name(other)),
    }
}

fn twice(schema: &Schema) -> Option<&str> {
    let names: Vec<&str> = schema.columns.iter().map(|c| c.name.as_str()).collect();
    (1..names.len()).find(|&i| names[..i].contains(&names[i])).map(|i| names[i])
}

fn select(columns: &[String], table: &str) -> String {
    format!("SELECT {},\n  `$order`, `$rowtime`\nFROM {table}", columns.join(",\n  "))
}

/// A length as an interval; milliseconds are the finest.
fn interval(ns: i64) -> Result<String, String> {
    match ns % MS {
        0 => Ok(format!("INTERVAL '{}.{:03}' SECOND(10, 3)", ns / 1_000_000_000, ns / MS % 1000)),
        _ => Err("windows that are no whole number of milliseconds".to_owned()),
    }
}

fn summarize(s: &Summarize, rows: &ViewRows, table: &str) -> Result<(String, WindowTime), String> {
    let Window::Tumbling(every_ns) = s.window else {
        return Err("a further `summarize` whose windows do not follow each other".to_owned());
    };
    let time = rows.window.ok_or("a further `summarize` over rows that have no time")?;
    if s.fill.is_some() || s.lateness_ns != 0 {
        return Err("a further `summarize` with `fill` or `lateness`".to_owned());
    }
    if time.at == TimeAt::End && every_ns % time.every_ns != 0 {
        return Err("a further `summarize` whose windows cut those before it".to_owned());
    }
    let schema = &rows.schema;
    let keys: Result<Vec<String>, String> = s.keys.iter().map(|(_, e)| value(e, schema)).collect();
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
         {table}, DESCRIPTOR(`$rowtime`), {}))\nGROUP BY {}",
        columns.join(",\n  "),
        interval(every_ns)?,
        groups.join(", ")
    );
    Ok((query, WindowTime { every_ns, at: TimeAt::End }))
}

/// A `top` over windows.
struct TopRows<'a> {
    n: u64,
    by: &'a [SortKey],
    per: Option<&'a Per>,
    every_ns: i64,
}

/// Two queries: the rows with what they are sorted by, in a view of the name `sorted`, and the
/// first ones of each window among these.
fn top(top: &TopRows<'_>, rows: &ViewRows, sorted: &str) -> Result<[String; 2], String> {
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
    let mut parts = vec!["window_start".to_owned(), "window_end".to_owned()];
    for (i, key) in top.per.iter().flat_map(|per| &per.keys).enumerate() {
        extra += &format!(",\n  {} AS `$per{i}`", value(key, schema)?);
        parts.push(format!("`$per{i}`"));
    }
    order.push("`$order` ASC".to_owned());
    let by = format!("SELECT *{extra}\nFROM {}", rows.source.table());
    let first = format!(
        "SELECT {names}, `$order`, window_time AS `$rowtime`\nFROM (\n  SELECT *, \
         ROW_NUMBER() OVER (PARTITION BY {parts}\n    ORDER BY {order}) AS `$rank`\n  \
         FROM TABLE(TUMBLE(TABLE {sorted}, DESCRIPTOR(`$rowtime`), {interval})))\n\
         WHERE `$rank` <= {n}",
        names = names.join(", "),
        parts = parts.join(", "),
        order = order.join(", "),
        interval = interval(top.every_ns)?,
        n = top.n,
    );
    Ok([by, first])
}

/// The name of a stage in a query.
fn stage_name(stage: &Stage) -> &'static str {
    match stage {
        Stage::Where(_) => "where",
        Stage::Extend { .. } => "extend",
        Stage::Project { .. } => "project",
        Stage::Reshape { .. } => "rename",
        Stage::Summarize(_) => "summarize",
        Stage::Scan(_) => "scan",
        Stage::AnalyzeTcp(_) => "analyze tcp",
        Stage::Top { .. } => "top",
        Stage::Limit(_) => "limit",
        Stage::Join(_) => "join",
        Stage::Union(_) => "union",
        Stage::Distinct(_) => "distinct",
        Stage::Sample(_) => "sample",
        Stage::Each(_) => "each",
        Stage::Ends(_) => "branch",
        Stage::Capture(_) => "capture",
        Stage::Alert(_) => "alert",
        Stage::Hello(_) => "hello",
        Stage::Metric(_) => "metric",
    }
}
