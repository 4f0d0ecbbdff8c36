//! The description of a job: the plan, and the tables of its rows.

use crate::fault::TierFault;
use serde::{Deserialize, Serialize};
use weir_engine::exchange::{self, Refused};
use weir_engine::functions::Functions;
use weir_plan::physical::Physical;
use weir_plan::{Stage, TimeZone, Window};
use weir_sink::TimeFormat;
use weir_sink::copy::column_type;

/// The version of a job as JSON.
pub const VERSION: u64 = 4;

/// The description of queries for a job on Flink.
#[derive(Clone, PartialEq, Debug)]
pub struct FlinkJob {
    pub(crate) plan: Physical,
    /// The zone in whose local time JSON has times; `None` is UTC.
    pub(crate) zone: Option<TimeZone>,
}

#[derive(Serialize, Deserialize)]
struct WrittenJob {
    version: u64,
    /// As of [`Physical::to_json`].
    plan: String,
    #[serde(default)]
    zone: Option<JobZone>,
    #[serde(default)]
    outputs: Vec<JobOutput>,
}

/// A time zone, as [`TimeZone::new`] takes it.
#[derive(Serialize, Deserialize)]
struct JobZone {
    name: String,
    offset_ns: i64,
    changes: Vec<(i64, i64)>,
}

/// The rows of an output, for who makes a table of them.
#[derive(Serialize, Deserialize)]
struct JobOutput {
    /// Where there are several.
    name: Option<String>,
    columns: Vec<JobColumn>,
}

#[derive(Serialize, Deserialize)]
struct JobColumn {
    name: String,
    /// The type of PostgreSQL.
    r#type: String,
}

impl FlinkJob {
    /// The job for a plan: whatever `weir merge` runs. Times are in UTC, or in the local time of a
    /// zone.
    ///
    /// # Errors
    /// Names what does not run on several probes.
    pub fn new(plan: &Physical, zone: Option<TimeZone>) -> Result<FlinkJob, Refused> {
        exchange::needs(plan)?;
        Ok(FlinkJob { plan: plan.clone(), zone })
    }

    /// How JSON has times.
    pub(crate) fn times(&self) -> TimeFormat {
        self.zone.map_or(TimeFormat::Rfc3339, TimeFormat::Local)
    }

    /// Whether a `summarize` has its rows at the end of the input alone.
    pub fn is_endless(&self) -> bool {
        let program = self.plan.program();
        let stages = program.pipelines.iter().flat_map(|pipeline| &pipeline.stages);
        let is_whole =
            |stage: &Stage| matches!(stage, Stage::Summarize(s) if s.window == Window::All);
        stages.into_iter().any(is_whole)
    }

    /// The text that the job reads: one JSON object.
    ///
    /// # Errors
    /// Where the plan has something that can't be written, such as a registered function.
    pub fn to_json(&self, functions: &Functions) -> Result<String, TierFault> {
        let plan = self.plan.to_json(functions.signatures()).map_err(TierFault::new)?;
        let outputs = &self.plan.outputs;
        let name = |i: usize, of: &Option<String>| {
            let name = || of.clone().unwrap_or_else(|| (i + 1).to_string());
            (outputs.len() > 1).then(name)
        };
        let output = |(i, id): (usize, &weir_plan::physical::PipelineId)| JobOutput {
            name: name(i, &self.plan.pipelines[id.0].name),
            columns: (self.plan.rows_of(*id).columns.into_iter())
                .map(|c| JobColumn { r#type: column_type(&c.ty).to_owned(), name: c.name })
                .collect(),
        };
        let outputs = outputs.iter().enumerate().map(output).collect();
        let zone = self.zone.map(|zone| JobZone {
            name: zone.name().to_owned(),
            offset_ns: zone.first(),
            changes: zone.changes().to_vec(),
        });
        let job = WrittenJob { version: VERSION, plan, zone, outputs };
        serde_json::to_string(&job).map_err(TierFault::new)
    }

    /// Reads a job.
    ///
    /// # Errors
    /// Where it is none, or one of another version of Weir.
    pub fn from_json(text: &str, functions: &Functions) -> Result<FlinkJob, TierFault> {
        let job: WrittenJob = serde_json::from_str(text).map_err(TierFault::new)?;
        if job.version != VERSION {
            let found = job.version;
            let why = format!("the job has version {found}, and this library reads {VERSION}");
            return Err(TierFault::new(why));
        }
        let plan = Physical::from_json(&job.plan, functions.signatures());
        let zone = match job.zone {
            None => None,
            Some(JobZone { name, offset_ns, changes }) => {
                let zone = TimeZone::new(&name, offset_ns, &changes);
                Some(zone.ok_or_else(|| TierFault::new("the job has no usable time zone"))?)
            }
        };
        FlinkJob::new(&plan.map_err(TierFault::new)?, zone).map_err(TierFault::new)
    }
}
