//! Which plans may be spread over several machines, and what must hold between their packets.

use crate::checkpoint::UnreadableState;
use std::fmt;
use weir_plan::keys::largest_common;
use weir_plan::physical::{
    Inlet, LevelKind, Needs, NodeId, Payload, Physical, PipelineId, Unwritable, Work,
};
use weir_plan::{AggFunc, Stage, Summarize};

/// Why a plan can't be spread over several machines. Pipelines are named as in the query, others by
/// number.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refused {
    /// The workers hand over rows of a pipeline. They are put in order by packet number, and
    /// machines number their own packets.
    Rows {
        /// Which pipeline.
        pipeline: String,
    },
    /// A pipeline sends frames on: those of other machines can't be put in order with its own.
    Frames {
        /// Which pipeline.
        pipeline: String,
    },
    /// A pipeline asks for packets around its rows, which only the machine that saw them has.
    Capture {
        /// Which pipeline.
        pipeline: String,
    },
    /// It asks for the completeness of rows, not of packets.
    Completeness {
        /// Which pipeline.
        pipeline: String,
    },
    /// All packets must be in one place.
    OneProducer {
        /// For which pipeline.
        pipeline: String,
        /// Why, as `weir explain` says it.
        why: String,
    },
    /// Pipelines need packets spread by keys that have nothing in common, and each packet is at one
    /// machine.
    NoCommonKey,
    /// This version of Weir would cut the program elsewhere.
    OtherCut,
    /// The plan has no fingerprint.
    Unwritable(Unwritable),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Rows { pipeline } => write!(
                f,
                "{pipeline} hands over rows one by one, and only groups merge between machines: \
                 add a `summarize` that stands before any stage that needs rows in order"
            ),
            Refused::Frames { pipeline } => write!(
                f,
                "{pipeline} sends frames on, which only the machine can do that received them"
            ),
            Refused::Capture { pipeline } => write!(
                f,
                "{pipeline} asks for packets around its rows, which only the machine has that \
                 received them"
            ),
            Refused::Completeness { pipeline } => write!(
                f,
                "{pipeline} asks for `completeness()` of rows, and machines tell of losses by the \
                 windows of packets: ask in the `summarize` over packets"
            ),
            Refused::OneProducer { pipeline, why } => {
                write!(f, "{pipeline} needs all packets in one place: {why}")
            }
            Refused::NoCommonKey => f.write_str(
                "pipelines need packets spread by keys that have nothing in common, and a packet \
                 is at one machine only: run them apart",
            ),
            Refused::OtherCut => f.write_str(
                "this version of Weir cuts the program elsewhere: make the plan anew on all \
                 machines with one version",
            ),
            Refused::Unwritable(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// Why a receiver can't be restored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotRestored {
    /// The plan can't be spread over several machines.
    Plan(Refused),
    /// The bytes are no state of it.
    State(UnreadableState),
}

/// A partial aggregation whose groups travel.
pub(super) struct Crossing {
    /// The partial half.
    pub(super) node: NodeId,
    pub(super) summarize: Summarize,
}

/// The conditions that must hold between the packets of several machines for their rows to be those
/// of one run.
///
/// # Errors
/// Where no way of spreading packets gives them, or partial results can't travel.
pub fn needs(plan: &Physical) -> Result<Needs, Refused> {
    crossings(plan).map(|(_, needs)| needs)
}

/// The partial aggregations whose groups travel, in the order of the plan, and what they need.
pub(super) fn crossings(plan: &Physical) -> Result<(Vec<Crossing>, Needs), Refused> {
    let name = |p: PipelineId| match plan.pipelines.get(p.0).and_then(|info| info.name.as_ref()) {
        Some(name) => format!("pipeline `{name}`"),
        None => format!("pipeline {}", p.0 + 1),
    };
    for node in plan.levels.iter().flat_map(|level| &level.fragments).flat_map(|f| &f.nodes) {
        let pipeline = || name(node.id.pipeline);
        match &node.work {
            Work::Stage(Stage::Ends(_)) => return Err(Refused::Frames { pipeline: pipeline() }),
            Work::Stage(Stage::Capture(_)) => {
                return Err(Refused::Capture { pipeline: pipeline() });
            }
            Work::Stage(Stage::Summarize(s)) if asks(s) => {
                return Err(Refused::Completeness { pipeline: pipeline() });
            }
            _ => {}
        }
    }
    let (mut all, mut keys) = (Vec::new(), Vec::new());
    for exchange in &plan.exchanges {
        let node = match &exchange.payload {
            // The work of a kernel level is no part of what machines agree on.
            Payload::Packets(_)
            | Payload::Offered
            | Payload::Unfinished
            | Payload::KernelGroups(_) => continue,
            Payload::Rows(p) => return Err(Refused::Rows { pipeline: name(*p) }),
            Payload::Frames(node) => {
                return Err(Refused::Frames { pipeline: name(node.pipeline) });
            }
            Payload::Groups { node, .. } => *node,
        };
        match &exchange.needs {
            Needs::Nothing => {}
            Needs::Key(key) => keys.push(key.clone()),
            Needs::OneProducer => {
                let (pipeline, why) = (name(node.pipeline), why(plan, node.pipeline));
                return Err(Refused::OneProducer { pipeline, why });
            }
        }
        let found = plan.nodes(node.pipeline).find(|n| n.id == node).map(|n| &n.work);
        let Some(Work::Partial(summarize)) = found else { return Err(Refused::OtherCut) };
        all.push(Crossing { node, summarize: summarize.clone() });
    }
    let key = largest_common(&keys);
    match (keys.is_empty(), key.is_empty()) {
        (true, _) => Ok((all, Needs::Nothing)),
        (false, true) => Err(Refused::NoCommonKey),
        (false, false) => Ok((all, Needs::Key(key))),
    }
}

/// Whether an aggregate asks what was lost.
fn asks(s: &Summarize) -> bool {
    s.aggs.iter().any(|agg| agg.func == AggFunc::Completeness)
}

/// Why the packets of a pipeline are spread as they are.
fn why(plan: &Physical, pipeline: PipelineId) -> String {
    let mut fragments = plan.fragments(pipeline);
    let on_workers = fragments.find(|(kind, _)| *kind == LevelKind::Worker).map(|(_, f)| &f.from);
    match on_workers {
        Some(Inlet::Exchange(id)) => plan.exchanges.get(id.0).map_or("", |e| &e.why).to_owned(),
        _ => String::new(),
    }
}
