//! Where each stage runs: on the workers, side by side, or after them on merged rows.
//!
//! Workers take the first stages of each pipeline over packets: everything without state, scans,
//! and the first summarize as partial results that merge. A stage that depends on the order of rows
//! (a scan; sessions; a sum of floats, which rounds) must see all rows of its key in one place. So
//! packets are spread by a key that all such stages determine; where no stage is of that kind,
//! whole batches go to whichever worker is next, which is cheaper; where such stages of a pipeline
//! have no key in common, or a stage names a `max`, one worker does it all. Where pipelines have no
//! key in common with each other, they form [clusters](crate::cluster). A run that a `limit` may
//! end early has one worker: others would have read on by then, and the counts would say so.

use crate::aggregates::{Agg, RowOrder};
pub use crate::cluster::Partition;
use crate::cluster::{Cluster, Need, clusters};
use crate::keys::{FieldSet, KeyColumns, largest_common};
use crate::limits::{DISTINCT_KEYS_MAX, GROUPS_MAX, HELLO_FLOWS_MAX, SCAN_KEYS_MAX, SESSIONS_MAX};
use crate::program::{Input, Pipeline, Program};
use crate::rows::SampleBy;
use crate::stage::{Stage, Window};
use crate::types::Type;

/// Where a pipeline's stages run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelinePlacement {
    /// How many of the first stages run on the workers.
    pub sharded: usize,
    /// Why not more, or what is merged: one clause.
    pub reason: String,
}

/// Where a program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Which pipelines over packets share one spreading of them: one cluster at least. Each gets
    /// all packets.
    pub clusters: Vec<Cluster>,
    /// The largest common flow key of all keyed stages over packets; empty if there is none.
    pub common_key: FieldSet,
    /// The pipelines, in program order.
    pub pipelines: Vec<PipelinePlacement>,
    /// Whether a `limit` may end the run before the input ends.
    pub ends_early: bool,
}

impl Placement {
    /// How many of so many workers have something to do.
    pub fn workers(&self, wanted: usize) -> usize {
        match self.clusters.iter().all(|c| c.partition == Partition::None) {
            _ if self.ends_early => wanted.min(1),
            true => wanted.min(self.clusters.len()),
            false => wanted,
        }
    }
}

/// Places a program.
pub fn place(program: &Program) -> Placement {
    place_with(program, &[])
}

/// Places a program that goes on with pipelines whose packets are spread by a key: those in
/// `fixed`, by number, go on being spread by it if they still need one.
pub fn place_with(program: &Program, fixed: &[(usize, FieldSet)]) -> Placement {
    let pipelines: Vec<PipelinePlacement> = program.pipelines.iter().map(place_pipeline).collect();
    let (mut needs, mut all) = (Vec::new(), Vec::new());
    for (p, (pipeline, placed)) in program.pipelines.iter().zip(&pipelines).enumerate() {
        if pipeline.input == Input::Packets {
            needs.push((p, need(&pipeline.stages[..placed.sharded], &mut all)));
        }
    }
    Placement {
        clusters: clusters(&needs, fixed),
        common_key: largest_common(&all),
        pipelines,
        ends_early: ends_early(program),
    }
}

/// Whether a `limit` may end a run before its input ends: all pipelines that print or hand out
/// packets have one that rows come to while packets do, and after which no stage holds rows back.
fn ends_early(program: &Program) -> bool {
    // Whether rows of a pipeline leave it while packets come.
    let mut flows: Vec<bool> = Vec::new();
    let mut all = true;
    for pipeline in &program.pipelines {
        let mut flowing = pipeline.input == Input::Packets;
        flowing |= pipeline.sources().any(|source| flows[source]);
        let mut is_limited = false;
        for stage in &pipeline.stages {
            let holds = match stage {
                Stage::Summarize(s) => Some(s.window == Window::All),
                Stage::Top { windowed, .. } => Some(!windowed),
                Stage::Join(_) | Stage::Alert(_) => Some(false),
                _ => None,
            };
            flowing &= holds != Some(true);
            is_limited &= holds.is_none();
            // One of no rows is reached before any come.
            is_limited |= match stage {
                Stage::Limit(n) => flowing || *n == 0,
                _ => false,
            };
        }
        let leaves =
            pipeline.printed || pipeline.stages.iter().any(|s| matches!(s, Stage::Ends(_)));
        all &= is_limited || !leaves;
        flows.push(flowing);
    }
    all
}

/// Whether all that these stages hold merges, so that any worker may hold any part of it.
pub fn merges(stages: &[Stage]) -> bool {
    need(stages, &mut Vec::new()) == Need::Any
}

/// How stages on the workers need packets spread; the keys of all of them are added to `all`.
pub(crate) fn need(stages: &[Stage], all: &mut Vec<FieldSet>) -> Need {
    let mut bound = Vec::new();
    let mut bounded = false;
    let mut columns = KeyColumns::default();
    for stage in stages {
        let before = columns;
        columns = before.after(stage);
        let (key, in_order) = match stage {
            Stage::Scan(s) => {
                bounded |= s.max_keys != SCAN_KEYS_MAX;
                (before.fields_of(&s.keys), true)
            }
            Stage::AnalyzeTcp(a) => {
                bounded |= a.max_keys != SCAN_KEYS_MAX;
                (before.fields_of(&a.keys), true)
            }
            Stage::Distinct(d) => {
                bounded |= d.max_keys != DISTINCT_KEYS_MAX;
                (before.fields_of(&d.keys), true)
            }
            Stage::Deduplicate(d) => {
                bounded |= d.max_packets != DISTINCT_KEYS_MAX;
                (before.fields_of(&d.keys), true)
            }
            Stage::Hello(h) => {
                bounded |= h.max_flows != HELLO_FLOWS_MAX;
                (before.fields_of(&h.keys), true)
            }
            Stage::Summarize(s) => {
                let key = before.fields_of(s.keys.iter().map(|(_, e)| e));
                let sessions = matches!(s.window, Window::Session(_));
                bounded |= s.max_groups != if sessions { SESSIONS_MAX } else { GROUPS_MAX };
                (key, sessions || s.aggs.iter().any(rounds))
            }
            _ => continue,
        };
        all.push(key.clone());
        if in_order {
            bound.push(key);
        }
    }
    let key = largest_common(&bound);
    if bounded {
        Need::One("a `max` that the query names holds for all rows together")
    } else if bound.is_empty() {
        Need::Any
    } else if key.is_empty() {
        Need::One("stages that need their rows in order have no key in common")
    } else {
        Need::Key(key)
    }
}

/// Whether the result depends on the order of rows, by rounding.
pub fn rounds(agg: &Agg) -> bool {
    agg.func.order() == RowOrder::Rounds && agg.arg.as_ref().is_some_and(|a| a.ty == Type::Float)
}

/// Whether a stage over packets needs no rows of other workers, nor waits for any: what stands
/// after only such stages still has the packets at hand.
pub fn is_local(stage: &Stage) -> bool {
    match stage {
        Stage::Where(_) | Stage::Extend { .. } | Stage::Ends(_) => true,
        Stage::Project { .. } | Stage::Reshape { .. } => true,
        Stage::Scan(_) | Stage::AnalyzeTcp(_) | Stage::Distinct(_) => true,
        Stage::Each(_) | Stage::Capture(_) | Stage::Metric(_) => true,
        Stage::Hello(_) | Stage::Deduplicate(_) => true,
        Stage::Sample(sample) => sample.by != SampleBy::Order,
        Stage::Summarize(_) | Stage::Top { .. } | Stage::Limit(_) => false,
        Stage::Join(_) | Stage::Union(_) | Stage::Alert(_) => false,
    }
}

fn place_pipeline(pipeline: &Pipeline) -> PipelinePlacement {
    if let Input::Pipeline(_) = pipeline.input {
        let reason = match pipeline.stages.first() {
            Some(Stage::Join(_)) => "rows of both sides meet when they are merged and in order",
            Some(Stage::Union(_)) => "rows of all sides are put in order when they are merged",
            _ => "its rows come from another pipeline",
        };
        return PipelinePlacement { sharded: 0, reason: reason.to_owned() };
    }
    let free = pipeline.stages.iter().take_while(|s| is_local(s)).count();
    let (sharded, reason) = match pipeline.stages.get(free) {
        Some(Stage::Summarize(s)) => match s.window {
            Window::Session(_) => (free + 1, "sessions of all workers are put in order"),
            _ => (free + 1, "partial groups of all workers are merged"),
        },
        Some(Stage::Top { .. }) => (free, "`top` needs the rows of all workers"),
        Some(Stage::Alert(_)) => (free, "`alert` decides over the rows of all workers, in order"),
        Some(Stage::Limit(_)) => (free, "`limit` needs the rows of all workers, in order"),
        Some(Stage::Sample(_)) => (free, "`sample` counts the rows of all workers, in order"),
        None if matches!(pipeline.stages.last(), Some(Stage::Ends(e)) if !e.goes_on()) => {
            (free, "frames of all workers go out by packet number")
        }
        _ => (free, "rows of all workers are merged by packet number"),
    };
    PipelinePlacement { sharded, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregates::AggFunc;
    use crate::expr::Expr;
    use crate::keys::describe;
    use crate::stage::{Scan, Schema, Summarize};
    use crate::value::Value;
    use weir_packet::fields::by_name;

    fn field(name: &str) -> Expr {
        Expr::field(by_name(name).expect("a field"))
    }

    fn scan(keys: &[&str]) -> Stage {
        Stage::Scan(Scan {
            states: Vec::new(),
            keys: keys.iter().map(|k| field(k)).collect(),
            idle_ns: 1,
            max_keys: SCAN_KEYS_MAX,
        })
    }

    fn summarize(keys: &[&str], sum: Option<Expr>) -> Stage {
        let agg = |arg: Expr| Agg {
            name: "s".into(),
            func: AggFunc::Sum,
            ty: arg.ty.clone(),
            arg: Some(arg),
            cond: None,
        };
        Stage::Summarize(Summarize {
            keys: keys.iter().map(|k| ((*k).to_owned(), field(k))).collect(),
            aggs: sum.map(agg).into_iter().collect(),
            window: Window::All,
            lateness_ns: 0,
            fill: None,
            until: None,
            unless: None,
            zone: None,
            max_groups: GROUPS_MAX,
        })
    }

    fn placed(pipelines: Vec<Vec<Stage>>) -> Placement {
        place(&Program {
            source: crate::program::SourceKind::Packets,
            pipelines: pipelines
                .into_iter()
                .map(|stages| Pipeline {
                    name: None,
                    input: Input::Packets,
                    stages,
                    schema: Schema::default(),
                    printed: true,
                })
                .collect(),
        })
    }

    fn ways(placement: &Placement) -> Vec<String> {
        let way = |cluster: &Cluster| match &cluster.partition {
            Partition::Batches => "batches".to_owned(),
            Partition::Key(key) => describe(key),
            Partition::None => "one".to_owned(),
        };
        placement.clusters.iter().map(way).collect()
    }

    #[test]
    fn what_merges_needs_no_key() {
        let p = placed(vec![vec![summarize(&["ip.dst"], Some(field("len")))]]);
        assert_eq!(ways(&p), ["batches"]);
        assert_eq!(p.pipelines[0].sharded, 1);
        assert_eq!(describe(&p.common_key), "ip.dst");
    }

    #[test]
    fn scans_are_spread_by_what_they_share() {
        let p = placed(vec![vec![scan(&["ip.src", "ip.dst"]), scan(&["ip.src", "dport"])]]);
        assert_eq!(ways(&p), ["ip.src"]);
        let nothing = placed(vec![vec![scan(&["ip.src"]), scan(&["ip.dst"])]]);
        assert_eq!(ways(&nothing), ["one"]);
        let apart = placed(vec![vec![scan(&["ip.src"])], vec![scan(&["ip.dst"])]]);
        assert_eq!(ways(&apart), ["ip.src", "ip.dst"]);
    }

    #[test]
    fn sums_of_floats_stay_in_order() {
        let half = Expr::constant(Value::Float(0.5));
        let p = placed(vec![vec![summarize(&["ip.src"], Some(half))]]);
        assert_eq!(ways(&p), ["ip.src"]);
    }

    #[test]
    fn a_bound_on_groups_is_kept_in_one_place() {
        let Stage::Summarize(mut s) = summarize(&["ip.dst"], None) else { unreachable!() };
        s.max_groups = 10;
        let bounded = || vec![Stage::Summarize(s.clone())];
        assert_eq!(ways(&placed(vec![bounded()])), ["one"]);
        let merging = || vec![summarize(&["ip.dst"], None)];
        let p = placed(vec![merging(), bounded(), vec![scan(&["ip.src"])], merging()]);
        assert_eq!(ways(&p), ["ip.src", "one"]);
        assert_eq!(p.clusters[0].pipelines, [0, 2, 3]);
    }

    #[test]
    fn sessions_stay_in_order() {
        let Stage::Summarize(mut s) = summarize(&["ip.src", "dport"], None) else { unreachable!() };
        let session =
            crate::stage::Session { gap_ns: 1, active_ns: None, rows: None, linger_ns: None };
        (s.window, s.max_groups) = (Window::Session(session), SESSIONS_MAX);
        let p = placed(vec![vec![scan(&["ip.src"]), Stage::Summarize(s)]]);
        assert_eq!((ways(&p), p.pipelines[0].sharded), (vec!["ip.src".to_owned()], 2));
    }

    #[test]
    fn each_stage_that_names_a_max_stays_in_one_place() {
        let keys = || vec![field("ip.src")];
        let Stage::Scan(mut scan) = scan(&["ip.src"]) else { unreachable!() };
        let Stage::Summarize(mut session) = summarize(&["ip.src"], None) else { unreachable!() };
        let gap = crate::stage::Session { gap_ns: 1, active_ns: None, rows: None, linger_ns: None };
        session.window = Window::Session(gap);
        for by in [-1, 0, 1] {
            let near = |max: u64| max.saturating_add_signed(by);
            scan.max_keys = near(SCAN_KEYS_MAX);
            session.max_groups = near(SESSIONS_MAX);
            let distinct = crate::rows::Distinct {
                keys: keys(),
                windowed: false,
                idle_ns: 1,
                max_keys: near(DISTINCT_KEYS_MAX),
            };
            let copies = crate::rows::Deduplicate {
                keys: keys(),
                within_ns: 1,
                max_packets: near(DISTINCT_KEYS_MAX),
            };
            let stages = [
                Stage::Scan(scan.clone()),
                Stage::Deduplicate(copies),
                Stage::Distinct(distinct),
                Stage::Summarize(session.clone()),
            ];
            for stage in stages {
                let p = placed(vec![vec![stage]]);
                assert_eq!(ways(&p), [if by == 0 { "ip.src" } else { "one" }]);
                assert_eq!(p.workers(4), if by == 0 { 4 } else { 1 });
            }
        }
    }

    #[test]
    fn a_run_that_a_limit_may_end_has_one_worker() {
        let tumbling = || {
            let Stage::Summarize(mut s) = summarize(&["ip.src"], None) else { unreachable!() };
            s.window = Window::Tumbling(1);
            Stage::Summarize(s)
        };
        let all = || summarize(&["ip.src"], None);
        for (pipelines, ends_early) in [
            (vec![vec![Stage::Limit(3)]], true),
            (vec![vec![tumbling(), Stage::Limit(3)]], true),
            (vec![vec![all(), Stage::Limit(3)]], false),
            (vec![vec![all(), Stage::Limit(0)]], true),
            (vec![vec![Stage::Limit(3), all()]], false),
            (vec![vec![Stage::Limit(3), all(), Stage::Limit(3)]], false),
            (vec![vec![Stage::Limit(3)], vec![tumbling()]], false),
            (vec![vec![Stage::Limit(3)], vec![Stage::Limit(3), scan(&["ip.src"])]], true),
        ] {
            let p = placed(pipelines);
            assert_eq!((p.ends_early, p.workers(4)), (ends_early, if ends_early { 1 } else { 4 }));
        }
    }

    #[test]
    fn limit_waits_for_all_workers() {
        let p = placed(vec![vec![scan(&["ip.src"]), Stage::Limit(3), summarize(&[], None)]]);
        assert_eq!(p.pipelines[0].sharded, 1);
    }
}
