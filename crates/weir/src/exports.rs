//! `metric` in a query: columns of rows, counted on their way to the sink, as metrics for whoever
//! scrapes the run.

mod family;

use crate::args::HttpArgs;
use crate::observe::Observer;
use crate::term::Term;
use family::{Family, RowsLeftOut};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use weir_engine::rows::{Output, Rows, Sink};
use weir_http::{Exposition, Sample};
use weir_plan::{Metric, MetricKind, Program};

/// Metrics that queries of one run may make.
const METRICS_MAX: usize = 256;

/// The values of the metrics of the queries of a run.
#[derive(Clone, Default)]
pub(crate) struct Exports(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Each metric by its name.
    families: BTreeMap<String, Family>,
    /// The metrics of each output.
    outputs: Vec<Vec<String>>,
}

/// The names of samples of a metric.
fn sample_names(metric: &Metric) -> Vec<String> {
    let name = &metric.name;
    match metric.kind {
        MetricKind::Gauge => vec![name.clone()],
        MetricKind::Counter => vec![name.clone(), format!("{name}_total")],
        MetricKind::Histogram(_) => {
            let endings = ["_bucket", "_sum", "_count"].into_iter();
            let ended = endings.map(|ending| format!("{name}{ending}"));
            ended.chain([name.clone()]).collect()
        }
    }
}

/// Refuses metrics of which two would have one name, or one of the run's `own`.
pub(crate) fn check(outputs: &[Output], own: &BTreeSet<String>) -> Result<(), String> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    let all: Vec<&Metric> = outputs.iter().flat_map(|output| &output.metrics).collect();
    if all.len() > METRICS_MAX {
        let n = all.len();
        return Err(format!("the queries make {n} metrics; a run has at most {METRICS_MAX}"));
    }
    for metric in all {
        let name = metric.name.as_str();
        for sample in sample_names(metric) {
            if own.contains(&sample) {
                return Err(format!(
                    "the metric `{name}`: runs have a metric of that name themselves; give it \
                     another one"
                ));
            }
            if taken.insert(sample, name).is_some() {
                return Err(format!("two metrics would have the name `{name}`"));
            }
        }
    }
    Ok(())
}

/// The names of the metrics of a program; empty without any.
pub(crate) fn names(program: &Program) -> String {
    let printed = program.pipelines.iter().filter(|pipeline| pipeline.printed);
    let names: Vec<_> = printed.flat_map(|pipeline| pipeline.metrics()).map(|m| &*m.name).collect();
    names.join(", ")
}

/// Says that nobody will read the metrics of a program, if that is so.
pub(crate) fn say_unread(program: &Program, http: &HttpArgs, term: &Term) {
    let names = names(program);
    if !names.is_empty() && !http.is_asked_for() {
        term.say(format_args!(
            "nobody can read the metrics {names}: there is no --metrics ADDRESS"
        ));
    }
}

impl Exports {
    /// Counts rows on their way to a sink.
    pub(crate) fn watch<'a>(&self, to: Box<dyn Sink + 'a>) -> Box<dyn Sink + 'a> {
        self.clone().on_the_way(to)
    }

    /// From now on rows are of these outputs. Metrics that stay the same go on; of two with one
    /// name, the first counts.
    fn begin(&self, outputs: &[Output]) {
        let mut state = self.0.lock();
        let mut before = std::mem::take(&mut state.families);
        state.outputs.clear();
        for output in outputs {
            let mut names = Vec::new();
            for metric in &output.metrics {
                if state.families.contains_key(&metric.name) || state.families.len() >= METRICS_MAX
                {
                    continue;
                }
                let known = before.remove(&metric.name);
                let family = known.filter(|family| family.is_of(metric, &output.schema));
                let family = family.unwrap_or_else(|| Family::new(metric, &output.schema));
                state.families.insert(metric.name.clone(), family);
                names.push(metric.name.clone());
            }
            state.outputs.push(names);
        }
    }

    fn count(&self, output: usize, rows: &Rows) {
        let State { families, outputs } = &mut *self.0.lock();
        for name in outputs.get(output).into_iter().flatten() {
            if let Some(family) = families.get_mut(name) {
                (0..rows.len).for_each(|i| family.row(rows, i));
            }
        }
    }

    /// Writes all metrics, and how many rows each of them left out.
    pub(crate) fn write(&self, out: &mut Exposition) {
        let families = &mut self.0.lock().families;
        families.values_mut().for_each(|family| family.write(out));
        let of = |n: fn(RowsLeftOut) -> u64| {
            families
                .iter()
                .map(move |(name, family)| Sample::of("metric", name, n(family.left_out())))
        };
        let about = "Rows without a value that a metric of a query takes.";
        out.counter("weir_metric_rows_skipped", about, of(|rows| rows.skipped));
        let about = "Rows whose labels found no room in a metric of a query: they are in _other.";
        out.counter("weir_metric_rows_beyond", about, of(|rows| rows.beyond));
    }
}

impl Observer for Exports {
    fn open(&mut self, outputs: &[Output]) -> io::Result<()> {
        self.begin(outputs);
        Ok(())
    }

    fn rows(&mut self, output: usize, rows: &Rows) -> io::Result<()> {
        self.count(output, rows);
        Ok(())
    }
}
