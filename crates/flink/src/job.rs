//! A job: the nodes that it merges, the views that it makes of their rows, and what it puts out.

use crate::node;
use crate::rows::Source;
use crate::unsupported::Unsupported;
use crate::views::{Step, Views};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use weir_engine::exchange::{GroupLayout, MessageLayout, Receiver};
use weir_engine::functions::Functions;
use weir_engine::run::Options;
use weir_plan::Schema;
use weir_plan::physical::{Half, LevelKind, NodeId, Physical, PipelineId};

/// The version of a job as JSON.
pub const VERSION: u64 = 3;

/// What a job on Flink does for a query.
#[derive(Clone, PartialEq, Debug)]
pub struct FlinkJob {
    fingerprint: u128,
    closing_ns: i64,
    nodes: Vec<(GroupLayout, Schema)>,
    steps: Vec<Step>,
    outputs: Vec<JobOutput>,
}

/// Rows that a job puts out.
#[derive(Clone, PartialEq, Debug)]
struct JobOutput {
    name: Option<String>,
    source: Source,
    columns: Schema,
}

impl FlinkJob {
    /// The job for a plan.
    ///
    /// # Errors
    /// Names what does not run on several probes, or not on Flink.
    pub fn new(plan: &Physical, functions: &Functions) -> Result<FlinkJob, Unsupported> {
        let MessageLayout { fingerprint, groups } =
            Receiver::new(plan, functions, &Options::default(), &[])
                .and_then(|receiver| receiver.layout(plan))
                .map_err(Unsupported::Spread)?;
        let mut nodes: Vec<(GroupLayout, Schema)> = Vec::new();
        for layout in groups {
            if let Some(what) = node::fault(&layout) {
                return Err(Unsupported::In { pipeline: name(plan, layout.pipeline), what });
            }
            let id = NodeId { pipeline: layout.pipeline, stage: layout.stage, half: Half::Final };
            let rows = plan.nodes(layout.pipeline).find(|node| node.id == id);
            let rows = rows.map(|node| node.schema.clone()).unwrap_or_default();
            nodes.push((layout, rows));
        }
        let mut views = Views::default();
        for (number, (layout, rows)) in nodes.iter().enumerate() {
            views.add_node(number, layout, rows);
        }
        let machine = plan.level(LevelKind::Machine);
        for fragment in machine.iter().flat_map(|level| &level.fragments) {
            views.add_pipeline(fragment).map_err(|what| Unsupported::In {
                pipeline: name(plan, fragment.pipeline),
                what,
            })?;
        }
        let output = |pipeline: &PipelineId| JobOutput {
            name: plan.pipelines[pipeline.0].name.clone(),
            source: views.source(*pipeline),
            columns: plan.rows_of(*pipeline),
        };
        let outputs = plan.outputs.iter().map(output).collect();
        let closing_ns = views.closing_ns();
        Ok(FlinkJob { fingerprint, closing_ns, nodes, outputs, steps: views.into_steps() })
    }

    /// What the job reads: one JSON object.
    pub fn to_json(&self) -> String {
        let nodes: Vec<Json> = self.nodes.iter().map(|(n, rows)| node::json(n, rows)).collect();
        let several = self.outputs.len() > 1;
        let outputs = self.outputs.iter().enumerate().map(|(i, output)| {
            let name = output.name.clone().unwrap_or_else(|| (i + 1).to_string());
            let select = || Some(output.source.select(&output.columns));
            let (node, sql, alert) = match &output.source {
                Source::Node(number) => (Some(*number), None, None),
                Source::View(_) => (None, select(), None),
                Source::Alert(alert) => (None, select(), Some(&alert.plan)),
            };
            json!({
                "name": several.then_some(name),
                "node": node,
                "sql": sql,
                "alert": alert,
                "columns": node::columns(&output.columns),
            })
        });
        let steps = self.steps.iter().map(|step| match step {
            Step::View(statement) => json!({ "sql": statement }),
            Step::Scan(scan) => json!({ "name": scan.name, "sql": scan.sql, "scan": scan.plan }),
            Step::Join(join) => {
                let [left, right] = &join.sides;
                json!({ "name": join.name, "sql": left, "right": right, "join": join.plan })
            }
        });
        let job = json!({
            "version": VERSION,
            "fingerprint": format!("{:032x}", self.fingerprint),
            "closing_ns": self.closing_ns.to_string(),
            "nodes": nodes,
            "steps": steps.collect::<Vec<_>>(),
            "outputs": outputs.collect::<Vec<_>>(),
        });
        format!("{job:#}\n")
    }

    /// The SQL that the job runs on merged rows, with what its tables hold.
    pub fn sql(&self) -> String {
        let mut out = String::new();
        for (number, (layout, rows)) in self.nodes.iter().enumerate() {
            let columns: Vec<String> =
                rows.columns.iter().map(|c| format!("{} {}", c.name, c.ty)).collect();
            let _ = writeln!(
                out,
                "-- node{}: merged groups of stage {} of pipeline {}, finished: {}",
                number + 1,
                layout.stage + 1,
                layout.pipeline.0 + 1,
                columns.join(", ")
            );
        }
        for step in &self.steps {
            let _ = match step {
                Step::View(statement) => write!(out, "\n{statement};\n"),
                Step::Scan(scan) => write!(
                    out,
                    "\n-- {}: these rows, folded key by key in the order of time:\n{};\n",
                    scan.name, scan.sql
                ),
                Step::Join(join) => write!(
                    out,
                    "\n-- {}: these rows\n{};\n-- and those that they meet by `$key`:\n{};\n",
                    join.name, join.sides[0], join.sides[1]
                ),
            };
        }
        for output in &self.outputs {
            if let Source::Alert(alert) = &output.source {
                let _ = write!(out, "\n-- alerts `{}` of these rows:", alert.rule);
            }
            let _ = write!(out, "\n{};\n", output.source.select(&output.columns));
        }
        out
    }
}

/// A pipeline, by its name or its number.
fn name(plan: &Physical, pipeline: PipelineId) -> String {
    match &plan.pipelines[pipeline.0].name {
        Some(name) => format!("pipeline `{name}`"),
        None => pipeline.to_string(),
    }
}
