//! What messages of a plan hold: for readers that are no Weir, such as a job on Apache Flink.

use super::message::MessageTarget;
use weir_plan::physical::PipelineId;
use weir_plan::{Summarize, Type};

/// The groups of one partial aggregation, as messages hold them.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupLayout {
    /// What its messages are for.
    pub target: MessageTarget,
    /// Its pipeline.
    pub pipeline: PipelineId,
    /// The position of its stage there.
    pub stage: usize,
    /// What it computes.
    pub summarize: Summarize,
    /// The columns of states, in the order of messages.
    pub states: Vec<StateLayout>,
    /// Of each aggregate, in the order of the query, which column its result is read from.
    pub results: Vec<usize>,
}

/// A column of states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateLayout {
    /// The number of the kind of its states, as docs/partials.md lists them.
    pub kind: u8,
    /// The types of the values that it is made of: the parts of a tuple one by one.
    pub types: Vec<Type>,
}

/// What the messages of a plan hold.
#[derive(Clone, PartialEq, Debug)]
pub struct MessageLayout {
    /// The fingerprint of messages that are for all nodes.
    pub fingerprint: u128,
    /// The partial aggregations whose groups travel, in the order of the plan.
    pub groups: Vec<GroupLayout>,
}
