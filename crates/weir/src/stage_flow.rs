//! What has gone through the stages of the programs of a run, as JSON for clients.

use crate::stats::Stats;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_control::Answers;
use weir_engine::flow::{StageFlow, StageFlows, WAITING_MAX};

/// How long a client waits for the run.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long an answer is good for the next client.
const FRESH: Duration = Duration::from_millis(250);

/// Asks a run, which is asked once for clients that come at the same time.
pub(crate) struct StageFlowView {
    stats: Stats,
    latest: Mutex<Option<(Instant, Value)>>,
}

impl StageFlowView {
    pub(crate) fn new(stats: Stats) -> StageFlowView {
        StageFlowView { stats, latest: Mutex::default() }
    }

    /// What has gone through each stage; `None` if the run does not answer.
    #[expect(clippy::disallowed_methods, reason = "the age of an answer")]
    pub(crate) fn value(&self, answers: &Answers) -> Option<Value> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, value)) = &*latest
            && at.elapsed() < FRESH
        {
            return Some(value.clone());
        }
        let counts = self.stats.wait(PATIENCE)?;
        let value = value(&counts.ledger.flows, &answers.layout());
        *latest = Some((Instant::now(), value.clone()));
        Some(value)
    }
}

/// StageFlows by program: pipelines of programs follow one another.
fn value(flows: &StageFlows, layout: &[(String, usize)]) -> Value {
    let mut first = 0;
    let mut programs = Vec::new();
    for (name, pipelines) in layout {
        let own =
            flows.iter().filter(|(place, _)| (first..first + pipelines).contains(&place.pipeline));
        let stage = |(place, workers): (weir_engine::flow::FlowPlace, &[StageFlow])| {
            let sum = StageFlow::sum(workers);
            json!({
                "level": place.level.name(),
                "pipeline": place.pipeline - first,
                "stage": place.stage,
                "rows_in": sum.rows_in,
                "rows_out": sum.rows_out,
                "late": sum.late,
                "evicted": sum.evicted,
                "undefined": sum.undefined,
                "held": sum.held,
                "workers": workers.iter().map(|one| one.rows_in).collect::<Vec<_>>(),
            })
        };
        let stages: Vec<Value> = own.map(stage).collect();
        programs.push(json!({ "name": name, "stages": stages }));
        first += pipelines;
    }
    let mut value = json!({ "programs": programs, "waiting_max": WAITING_MAX });
    if let Some(waiting) = flows.waiting {
        value["waiting"] = waiting.into();
    }
    value
}
