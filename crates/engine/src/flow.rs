//! What has gone through the stages of a program: rows in and out, and what each stage left out.
//!
//! Stages count a batch at a time, and are asked only when somebody wants to know.

use std::collections::BTreeMap;

/// Where a stage runs, or half of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlowLevel {
    /// On each worker, over its share of the packets.
    Worker,
    /// Once, over what the workers hand over.
    Machine,
}

impl FlowLevel {
    /// What the level is called in a physical plan.
    pub fn name(self) -> &'static str {
        match self {
            FlowLevel::Worker => "worker",
            FlowLevel::Machine => "machine",
        }
    }
}

/// A stage of a program on a level.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowPlace {
    /// The level.
    pub level: FlowLevel,
    /// The number of its pipeline in the program.
    pub pipeline: usize,
    /// Its position in the pipeline.
    pub stage: usize,
}

/// What has gone through a stage, since the programs were last changed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StageFlow {
    /// Rows that came; of a final aggregation, groups of all workers.
    pub rows_in: u64,
    /// Rows that left it; of a partial aggregation, groups.
    pub rows_out: u64,
    /// Rows that came after their window had closed.
    pub late: u64,
    /// Rows and keys that found no room.
    pub evicted: u64,
    /// Results outside their type.
    pub undefined: u64,
    /// Keys that it holds now.
    pub held: u64,
}

/// What has gone through all stages.
///
/// Any two compare equal: how rows are spread over workers and batches is no part of what happened.
#[derive(Clone, Default, Debug)]
pub struct StageFlows {
    stages: BTreeMap<FlowPlace, Vec<StageFlow>>,
    /// Batches of rows that workers have made and that wait for the machine level, which emits
    /// them in order; `None` where nothing waits there.
    pub waiting: Option<usize>,
}

/// How many batches of rows may wait for the machine level before workers read no more.
pub const WAITING_MAX: usize = crate::limits::ROW_BATCHES_AHEAD;

impl PartialEq for StageFlows {
    fn eq(&self, _: &StageFlows) -> bool {
        true
    }
}

impl Eq for StageFlows {}

impl StageFlows {
    /// One more worker's, or that of the level that there is once.
    pub(crate) fn add(&mut self, place: FlowPlace, flow: StageFlow) {
        self.stages.entry(place).or_default().push(flow);
    }

    /// Those of another part of the run.
    pub(crate) fn merge(&mut self, other: &StageFlows) {
        for (place, flows) in &other.stages {
            self.stages.entry(*place).or_default().extend(flows);
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.stages.clear();
    }

    /// Each stage, with what has gone through it on each worker.
    pub fn iter(&self) -> impl Iterator<Item = (FlowPlace, &[StageFlow])> {
        self.stages.iter().map(|(place, flows)| (*place, flows.as_slice()))
    }
}

impl StageFlow {
    /// The sum over workers.
    pub fn sum(all: &[StageFlow]) -> StageFlow {
        let mut sum = StageFlow::default();
        for one in all {
            sum.rows_in += one.rows_in;
            sum.rows_out += one.rows_out;
            sum.late += one.late;
            sum.evicted += one.evicted;
            sum.undefined += one.undefined;
            sum.held += one.held;
        }
        sum
    }
}
