//! The rows that have gone through the stages of the programs of a run, as JSON for clients, and as
//! metrics.

use crate::stats::Stats;
use crate::tap::{NAMES_MAX, OTHERS};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use weir_control::Answers;
use weir_engine::flow::{FlowPlace, StageFlow, StageFlows, StageName};
use weir_engine::limits::ROW_BATCHES_AHEAD;
use weir_http::{Exposition, Sample};

/// How long a client waits for the run.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long an answer is good for the next client.
const FRESH: Duration = Duration::from_millis(250);

/// Asks a run, which is asked once for clients that come at the same time.
pub(crate) struct StageFlowView {
    stats: Stats,
    latest: Mutex<Option<(Instant, Option<Value>)>>,
}

impl StageFlowView {
    pub(crate) fn new(stats: Stats) -> StageFlowView {
        StageFlowView { stats, latest: Mutex::default() }
    }

    /// The rows that have gone through each stage; `None` if the run does not answer.
    #[expect(clippy::disallowed_methods, reason = "the age of an answer")]
    pub(crate) fn value(&self, answers: &Answers) -> Option<Value> {
        let mut latest = self.latest.lock();
        if let Some((at, value)) = &*latest
            && at.elapsed() < FRESH
        {
            return value.clone();
        }
        // That it does not answer is an answer, too: the next clients need not wait for it again.
        let counts = self.stats.wait(PATIENCE);
        let value = counts.map(|counts| value(&counts.ledger.flows, &answers.layout()));
        *latest = Some((Instant::now(), value.clone()));
        value
    }
}

/// Flows by program: pipelines of programs follow one another.
fn value(flows: &StageFlows, layout: &[(String, usize)]) -> Value {
    let mut first = 0;
    let mut programs = Vec::new();
    for (name, pipelines) in layout {
        let own =
            flows.iter().filter(|(place, _)| (first..first + pipelines).contains(&place.pipeline));
        let stage = |(place, workers): (FlowPlace, &[StageFlow])| {
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
    let mut value = json!({ "programs": programs, "waiting_max": ROW_BATCHES_AHEAD });
    if let Some(waiting) = flows.waiting {
        value["waiting"] = waiting.into();
    }
    value
}

/// The flows of stages as metrics. The first [`NAMES_MAX`] stages have series of their own.
#[derive(Default)]
pub(crate) struct StageMetrics {
    /// The name of the program, if there is one only and none can come.
    alone: Option<String>,
    /// The stages that have series of their own: none of these ends or falls while the run goes on.
    known: Mutex<BTreeSet<StageName>>,
}

impl StageMetrics {
    /// Of a program of this name, or of programs that are called as their outputs are.
    pub(crate) fn new(alone: Option<String>) -> StageMetrics {
        StageMetrics { alone, known: Mutex::default() }
    }

    /// Writes all metrics.
    pub(crate) fn write(&self, out: &mut Exposition, flows: &StageFlows) {
        let all = self.samples(flows);
        let of = |n: fn(&StageFlow) -> u64| {
            let sample = move |(labels, flow): &(StageLabels, StageFlow)| Sample {
                labels: labels.clone(),
                value: n(flow),
            };
            all.iter().map(sample)
        };
        let about = "Rows that came to a stage; of a final aggregation, groups of all workers.";
        out.counter("weir_stage_rows_in", about, of(|flow| flow.rows_in));
        let about = "Rows that left a stage; of a partial aggregation, groups.";
        out.counter("weir_stage_rows_out", about, of(|flow| flow.rows_out));
        let about = "Rows that came to a stage after their window had closed.";
        out.counter("weir_stage_rows_late", about, of(|flow| flow.late));
        let about = "Rows and keys that found no room in a stage.";
        out.counter("weir_stage_rows_evicted", about, of(|flow| flow.evicted));
        let about = "Results of a stage that are outside their type.";
        out.counter("weir_stage_values_undefined", about, of(|flow| flow.undefined));
        out.gauge("weir_stage_keys", "Keys that a stage holds now.", of(|flow| flow.held));
        if let Some(waiting) = flows.waiting {
            let about = "Batches of rows that wait for the stages after the workers.";
            out.gauge("weir_row_batches_waiting", about, [Sample::plain(waiting as u64)]);
        }
    }

    /// The labels and the flow of each stage that has series of its own, and the sum of the others.
    fn samples(&self, flows: &StageFlows) -> Vec<(StageLabels, StageFlow)> {
        let (all, others) = match &self.alone {
            None => flows.totals(),
            Some(program) => {
                let name = |place| StageName { program: program.clone(), place };
                let sum = |(place, flows): (FlowPlace, &[StageFlow])| {
                    (name(place), StageFlow::sum(flows))
                };
                (flows.iter().map(sum).collect(), StageFlow::default())
            }
        };
        let mut known = self.known.lock();
        let mut rest = vec![others];
        let mut own: BTreeMap<StageName, StageFlow> = BTreeMap::new();
        for (name, flow) in all {
            if known.contains(&name) || known.len() < NAMES_MAX {
                known.insert(name.clone());
                own.insert(name, flow);
            } else {
                rest.push(flow);
            }
        }
        let mut samples: Vec<_> =
            own.into_iter().map(|(name, flow)| (labels(&name), flow)).collect();
        let rest = StageFlow::sum(&rest);
        if rest != StageFlow::default() {
            let others = LABELS.map(|label| (label, OTHERS.to_owned()));
            samples.push((others.to_vec(), rest));
        }
        samples
    }
}

/// The labels of a sample.
type StageLabels = Vec<(&'static str, String)>;

const LABELS: [&str; 4] = ["program", "level", "pipeline", "stage"];

fn labels(StageName { program, place }: &StageName) -> StageLabels {
    let FlowPlace { level, pipeline, stage } = place;
    let values =
        [program.clone(), level.name().to_owned(), pipeline.to_string(), stage.to_string()];
    LABELS.into_iter().zip(values).collect()
}
