//! The one loop over the steps of packets: in a run of one worker or of several, and in a producer.

pub(crate) mod direct;

use crate::level::Channel;
use crate::level::worker::WorkerLevel;
use crate::rows::Rows;

/// Packets that are processed step by step: a batch, or what a worker gets of several.
pub(crate) trait StepInput {
    /// How many steps there are. Between two of them, and before the first, windows may close.
    fn steps(&self) -> usize;

    /// Whether windows close before a step.
    fn closes(&self, step: usize) -> bool;

    /// Pushes the packets of a step through the worker's lanes; `up` takes what comes out.
    fn push(&mut self, step: usize, lanes: &mut [WorkerLevel], up: &mut impl StepOutput);
}

/// Takes what a worker emits: the machine level itself, or what keeps it until its turn.
pub(crate) trait StepOutput {
    /// Closes the windows that end before a step.
    fn close(&mut self, step: usize, lanes: &mut [WorkerLevel]);

    /// Moves the watermark of one lane alone. Groups that close wait for the next closing.
    fn advance(&mut self, lane: &mut WorkerLevel, watermark: i64);

    /// Takes what comes out in a step.
    fn take(&mut self, step: usize, from: Channel, rows: &Rows);

    /// Ends a step.
    fn end_step(&mut self) {}
}

/// Processes packets step by step.
pub(crate) fn steps(
    lanes: &mut [WorkerLevel],
    input: &mut impl StepInput,
    up: &mut impl StepOutput,
) {
    for step in 0..input.steps() {
        if input.closes(step) {
            up.close(step, lanes);
        }
        input.push(step, lanes, up);
        up.end_step();
    }
}
