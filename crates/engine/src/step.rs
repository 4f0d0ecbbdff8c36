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

    /// Pushes the packets of a step through the worker's lanes; `up` takes what comes out. Packets
    /// may wait there for [`StepInput::settle`] as long as their batch is at hand.
    fn push(&mut self, step: usize, lanes: &mut [WorkerLevel], up: &mut impl StepOutput);

    /// Pushes packets on that wait for windows that close at this watermark.
    fn settle(&mut self, watermark: i64, lanes: &mut [WorkerLevel]);
}

/// [`StepInput::settle`].
pub(crate) type Settle<'a> = dyn FnMut(i64, &mut [WorkerLevel]) + 'a;

/// Takes what a worker emits: the machine level itself, or what keeps it until its turn.
pub(crate) trait StepOutput {
    /// Closes the windows that end before a step; `settle` is called with each watermark first.
    fn close(&mut self, step: usize, lanes: &mut [WorkerLevel], settle: &mut Settle<'_>);

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
            up.close(step, lanes, &mut |watermark, lanes| input.settle(watermark, lanes));
        }
        input.push(step, lanes, up);
        up.end_step();
    }
}
