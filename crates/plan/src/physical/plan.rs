//! The plan as a value: levels of fragments of nodes, and the exchanges between them.

use super::reads::Carry;
use super::ticks::Tick;
use crate::keys::FieldSet;
use crate::place::Partition;
use crate::program::SourceKind;
use crate::stage::{Schema, Stage, Summarize};
use std::fmt;
use weir_packet::fields::FieldId;

/// A placed program.
#[derive(Clone, PartialEq, Debug)]
pub struct Physical {
    /// The input that the source delivers. The statements of this module about packets hold for
    /// flow records, too.
    pub source: SourceKind,
    /// The pipelines, in program order.
    pub pipelines: Vec<PipelineInfo>,
    /// The levels, from the packets up.
    pub levels: Vec<Level>,
    /// The exchanges between the source, the levels and the outlets.
    pub exchanges: Vec<Exchange>,
    /// The pipelines whose rows are printed, in the order of outputs.
    pub outputs: Vec<PipelineId>,
}

/// The properties of a pipeline, apart from its stages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineInfo {
    /// Its name where a `let` gave one.
    pub name: Option<String>,
}

/// A pipeline, by its position in the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PipelineId(pub usize);

/// An exchange, by its position in [`Physical::exchanges`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExchangeId(pub usize);

/// An output for rows, by its position in [`Physical::outputs`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OutputId(pub usize);

/// Where fragments run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LevelKind {
    /// In the kernel, before a packet reaches the process.
    Kernel,
    /// On each worker thread, over its share of the packets.
    Worker,
    /// Once in a process, over what its workers hand over.
    Machine,
    /// Once for several machines, over what they hand over.
    Cluster,
}

/// All that runs in one kind of place.
#[derive(Clone, PartialEq, Debug)]
pub struct Level {
    /// Which kind.
    pub kind: LevelKind,
    /// The parts of pipelines that run there, in program order.
    pub fragments: Vec<Fragment>,
    /// At which watermarks packets are interrupted, so that windows close between two of them.
    pub ticks: Vec<Tick>,
}

/// The stages of one pipeline that run on one level.
#[derive(Clone, PartialEq, Debug)]
pub struct Fragment {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// Where its packets, groups or rows come from.
    pub from: Inlet,
    /// The parts of packets that rows carry beside their columns where they come in; of packets,
    /// all that is read of them after the batch at hand.
    pub carries: Carry,
    /// The nodes that they pass, in order.
    pub nodes: Vec<Node>,
    /// Where the results go; several targets get the same rows.
    pub to: Vec<Target>,
    /// Why it runs on this level: one clause.
    pub why: String,
}

/// Where a fragment takes its input from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inlet {
    /// From a level below, or from the source of packets.
    Exchange(ExchangeId),
    /// From pipelines on the same level: one, or the sides of a join or union. One may come
    /// several times.
    Pipelines(Vec<PipelineId>),
}

/// Where a fragment hands its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// To a level above, or to the outlets.
    Exchange(ExchangeId),
    /// To another pipeline on the same level.
    Pipeline(PipelineId),
    /// To an output for rows.
    Output(OutputId),
    /// The frames that this node of the fragment sends on, to their outlets.
    Outlets(NodeId),
}

/// A stage, or half of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Which.
    pub id: NodeId,
    /// Its work.
    pub work: Work,
    /// The columns after it. Of a partial half: those that the final half makes of its groups.
    pub schema: Schema,
    /// The packet fields that it reads.
    pub reads: Vec<FieldId>,
    /// The parts of packets that rows carry beside their columns after it, wherever they leave the
    /// batch of packets.
    pub carries: Carry,
}

/// Names a node: the key of its state, its counts and its faults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// The position of the stage in the whole pipeline.
    pub stage: usize,
    /// How much of the stage.
    pub half: Half,
}

/// How much of a stage a node is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Half {
    /// All of it.
    Whole,
    /// The half that makes groups of rows.
    Partial,
    /// The half that merges groups and makes rows of them.
    Final,
}

/// The work of a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// A whole stage.
    Stage(Stage),
    /// Partial aggregation: groups rows, and hands the groups of a window over when it closes.
    Partial(Summarize),
    /// Final aggregation: merges the groups of all producers and puts rows out.
    Final(Summarize),
}

impl Work {
    /// The half of a stage that it is.
    pub fn half(&self) -> Half {
        match self {
            Work::Stage(_) => Half::Whole,
            Work::Partial(_) => Half::Partial,
            Work::Final(_) => Half::Final,
        }
    }
}

/// An exchange between levels.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// Its payload.
    pub payload: Payload,
    /// The condition that must hold between the packets of different producers.
    pub needs: Needs,
    /// Why the cut is here: one clause or sentence.
    pub why: String,
}

/// The payload that an exchange hands over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Packets of the source, spread over workers in this way.
    Packets(Partition),
    /// Groups of a partial half.
    Groups {
        /// The partial half.
        node: NodeId,
        /// How they become one set.
        combine: Combine,
    },
    /// Rows of a pipeline, merged by packet number.
    Rows(PipelineId),
    /// Frames that a node sends on, by packet number; they go to the outlets.
    Frames(NodeId),
    /// Every frame of the source, to the kernel level.
    Offered,
    /// The frames that the kernel level does not finish: the packets of the other exchanges.
    Unfinished,
    /// Groups of a partial half in the kernel. Where its groups of workers go, they are merged with
    /// those.
    KernelGroups(NodeId),
}

/// How the groups of several producers become one set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// Groups of equal window and key are merged.
    Merge,
    /// All are kept and put in order: sessions, each of which one producer has alone.
    Append,
}

/// The condition that must hold between the packets of different producers, for the rows to be
/// those of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: any packet may be anywhere.
    Nothing,
    /// Packets with equal values in these fields are at one producer.
    Key(FieldSet),
    /// One producer has all packets.
    OneProducer,
}

impl Physical {
    /// The level of this kind, if the plan has one.
    pub fn level(&self, kind: LevelKind) -> Option<&Level> {
        self.levels.iter().find(|level| level.kind == kind)
    }

    /// The fragments of a pipeline with their levels, from the packets up. That of the kernel,
    /// which takes nothing off the others, is not among them: see [`Physical::in_kernel`].
    pub fn fragments(&self, id: PipelineId) -> impl Iterator<Item = (LevelKind, &Fragment)> {
        let levels = self.levels.iter().filter(|level| level.kind != LevelKind::Kernel);
        levels.flat_map(move |level| {
            let mine = level.fragments.iter().filter(move |f| f.pipeline == id);
            mine.map(move |fragment| (level.kind, fragment))
        })
    }

    /// The nodes of a pipeline, from the packets up; those of its fragment in the kernel are copies
    /// of the first, and not among them.
    pub fn nodes(&self, id: PipelineId) -> impl Iterator<Item = &Node> {
        self.fragments(id).flat_map(|(_, fragment)| &fragment.nodes)
    }

    /// The columns of the rows that leave a pipeline.
    pub fn rows_of(&self, id: PipelineId) -> Schema {
        let mut id = id;
        loop {
            if let Some(node) = self.nodes(id).last() {
                return node.schema.clone();
            }
            // Without stages they are those of its input, an earlier pipeline.
            match self.fragments(id).next().map(|(_, first)| &first.from) {
                Some(Inlet::Pipelines(sides)) if sides.first().is_some_and(|p| *p < id) => {
                    id = sides[0];
                }
                _ => return Schema::default(),
            }
        }
    }
}

impl fmt::Display for PipelineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pipeline {}", self.0.saturating_add(1))
    }
}

impl fmt::Display for ExchangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exchange {}", self.0.saturating_add(1))
    }
}
