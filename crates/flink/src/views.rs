//! Stages as views: each is a statement of SQL, or the rows of an operator. Beside their columns,
//! rows have `$rowtime`, which Flink orders windows by, and `$order`: rows of one window stand in
//! the order of these bytes, which are those of their key after a `summarize`.

use crate::alert::JobAlert;
use crate::expr::{condition, value};
use crate::rows::{Source, TimeAt, ViewRows, WindowTime};
use crate::scan::JobScan;
use crate::sides::{JobJoin, union};
use crate::sql::{TopRows, summarize, top};
use crate::term::ident;
use std::collections::BTreeMap;
use weir_engine::exchange::GroupLayout;
use weir_plan::physical::{Fragment, Inlet, PipelineId, Work};
use weir_plan::{Expr, Schema, Stage};

/// A step of a job, which makes a view. Each comes after those whose views it reads.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    /// A statement that makes a view.
    View(String),
    /// An operator, whose rows are a view, too.
    Scan(JobScan),
    /// An operator over the rows of two views.
    Join(JobJoin),
}

/// The views of a plan.
#[derive(Default)]
pub(crate) struct Views {
    steps: Vec<Step>,
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
            is_union: false,
        };
        self.nodes.insert(layout.pipeline, rows);
    }

    /// Adds the stages of a pipeline that stand above the exchange.
    ///
    /// # Errors
    /// Names what a job does not do.
    pub(crate) fn add_pipeline(&mut self, fragment: &Fragment) -> Result<(), String> {
        let sides: Vec<&ViewRows> = match &fragment.from {
            Inlet::Exchange(_) => self.nodes.get(&fragment.pipeline).into_iter().collect(),
            Inlet::Pipelines(all) => all.iter().filter_map(|one| self.pipelines.get(one)).collect(),
        };
        if sides.iter().any(|rows| matches!(rows.source, Source::Alert(_))) {
            return Err("rows of alerts".to_owned());
        }
        let mut sides: Vec<ViewRows> = sides.into_iter().cloned().collect();
        for node in &fragment.nodes {
            let Work::Stage(stage) = &node.work else { continue };
            if sides.iter().any(|rows| matches!(rows.source, Source::Alert(_))) {
                return Err(format!("{} over alerts", named(stage)));
            }
            let name = format!("p{}_{}", fragment.pipeline.0 + 1, node.id.stage + 1);
            let rows = match (stage, &sides[..]) {
                (Stage::Join(join), [left, right]) => {
                    let (join, rows) = JobJoin::new(join, [left, right], &node.schema, &name)?;
                    self.steps.push(Step::Join(join));
                    ViewRows { source: Source::View(name), ..rows }
                }
                (Stage::Union(of), all) => {
                    let (query, rows) = union(of, all, &node.schema)?;
                    self.view(&name, &query, rows)
                }
                (_, [rows]) => self.add_stage(&name, stage, &node.schema, rows)?,
                _ => return Err(named(stage)),
            };
            sides = vec![rows];
        }
        let [rows] = <[ViewRows; 1]>::try_from(sides).map_err(|_| "rows of several pipelines")?;
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

    pub(crate) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Makes a view of this name of a query; the rows are as `rows` says, but for where they are.
    fn view(&mut self, name: &str, query: &str, rows: ViewRows) -> ViewRows {
        self.steps.push(Step::View(format!("CREATE TEMPORARY VIEW {name} AS\n{query}")));
        ViewRows { source: Source::View(name.to_owned()), ..rows }
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
        let (schema, table) = (&rows.schema, rows.table());
        let mut made = ViewRows { schema: out.clone(), ..rows.clone() };
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
                let (query, time) = summarize(s, rows)?;
                made.window = Some(time);
                made.closing_ns = rows.closing_ns.saturating_add(time.every_ns);
                made.is_union = false;
                query
            }
            Stage::Top { n, by, windowed: true, per } => {
                let time = rows.window.ok_or_else(|| named(stage))?;
                made.window = Some(WindowTime { at: TimeAt::End, ..time });
                let best = TopRows { n: *n, by, per: per.as_ref(), every_ns: time.every_ns };
                let sorted = format!("{name}_by");
                let [by, first] = top(&best, rows, &sorted)?;
                self.view(&sorted, &by, rows.clone());
                first
            }
            Stage::Scan(scan) => {
                self.steps.push(Step::Scan(JobScan::new(scan, rows, out, name)?));
                made.source = Source::View(name.to_owned());
                return Ok(made);
            }
            Stage::Alert(plan) => {
                let late = rows.window.filter(|time| time.at == TimeAt::End);
                let lag = late.map_or(0, |time| time.every_ns);
                let alert = JobAlert::new(plan, schema, &table, lag)?;
                made.source = Source::Alert(Box::new(alert));
                return Ok(made);
            }
            _ => return Err(named(stage)),
        };
        Ok(self.view(name, &query, made))
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
        Stage::Deduplicate(_) => "deduplicate",
        Stage::Sample(_) => "sample",
        Stage::Each(_) => "each",
        Stage::Ends(_) => "branch",
        Stage::Capture(_) => "capture",
        Stage::Alert(_) => "alert",
        Stage::Hello(_) => "hello",
        Stage::Metric(_) => "metric",
    }
}
