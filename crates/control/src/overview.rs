//! Answers about the programs of a run, whatever change is being made meanwhile.

use crate::limits::COUNTS_PATIENCE;
use crate::message::{Counts, ProgramState, Reply};
use crate::rows::RowCounts;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_engine::functions::Functions;
use weir_plan::physical::Physical;
use weir_plan::{Input, Pipeline, Program, Schema, print};

/// A program as it is listed.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) text: String,
    pub(crate) program: Arc<Program>,
    pub(crate) since: SystemTime,
    pub(crate) counts: Arc<RowCounts>,
}

/// The report of a run so far.
pub struct Report {
    /// The ledger, for people.
    pub text: String,
    /// Its numbers.
    pub counts: Counts,
}

/// A program, as somebody asks for it.
pub struct ShownProgram {
    /// Where its query comes from.
    pub source: String,
    /// The text of its query.
    pub text: String,
    /// Its physical plan as JSON, unless it can't be written.
    pub plan: Option<String>,
    /// The stages of each pipeline, as queries write them.
    pub stages: Vec<Vec<String>>,
    /// The program itself.
    pub program: Arc<Program>,
}

/// Asks the run for a report, and waits for it at most so long.
pub type AskReport = Arc<dyn Fn(Duration) -> Option<Report> + Send + Sync>;

/// Says which programs run, and what has happened so far.
#[derive(Clone)]
pub struct Overview {
    programs: Arc<Mutex<Vec<Listed>>>,
    report: AskReport,
}

impl Overview {
    pub(crate) fn new(report: AskReport) -> Overview {
        Overview { programs: Arc::default(), report }
    }

    /// Lists these programs from now on.
    pub(crate) fn show(&self, programs: Vec<Listed>) {
        *self.programs() = programs;
    }

    fn programs(&self) -> MutexGuard<'_, Vec<Listed>> {
        self.programs.lock()
    }

    pub(crate) fn list(&self) -> Reply {
        let seconds = |t: SystemTime| {
            t.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
        };
        let state = |program: &Listed| {
            let (rows, refused) = program.counts.emitted_and_lost();
            ProgramState {
                name: program.name.clone(),
                source: program.source.clone(),
                since: seconds(program.since),
                rows,
                refused,
                failed: program.counts.failed(),
            }
        };
        Reply { programs: self.programs().iter().map(state).collect(), ..Reply::default() }
    }

    /// The programs in their order, and how many pipelines each has.
    pub(crate) fn layout(&self) -> Vec<(String, usize)> {
        let one = |listed: &Listed| (listed.name.clone(), listed.program.pipelines.len());
        self.programs().iter().map(one).collect()
    }

    /// A program by its name.
    pub(crate) fn program(&self, name: &str) -> Option<ShownProgram> {
        let (source, text, program) = {
            let programs = self.programs();
            let found = programs.iter().find(|program| program.name == name)?;
            (found.source.clone(), found.text.clone(), Arc::clone(&found.program))
        };
        let functions = Functions::default();
        let plan = Physical::new(&program, &[]).to_json(functions.signatures()).ok();
        let stages = program.pipelines.iter().map(|one| stages(&program, one)).collect();
        Some(ShownProgram { source, text, plan, stages, program })
    }

    pub(crate) fn stats(&self) -> Reply {
        match (self.report)(COUNTS_PATIENCE) {
            Some(Report { text, counts }) => {
                Reply { text, counts: Some(counts), ..Reply::default() }
            }
            None => Reply::refusal("the run does not answer: it may be waiting for its source"),
        }
    }
}

/// The stages of a pipeline as texts.
pub(crate) fn stages(program: &Program, pipeline: &Pipeline) -> Vec<String> {
    let mut schema = match pipeline.input {
        Input::Packets => Schema::default(),
        Input::Pipeline(i) => program.pipelines[i].schema.clone(),
    };
    let mut out = Vec::new();
    for stage in &pipeline.stages {
        out.push(print::stage(stage, &schema));
        schema = stage.output(&schema);
    }
    out
}
