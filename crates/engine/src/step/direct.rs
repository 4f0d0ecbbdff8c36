//! A batch that one worker has as a whole, and results that go straight to the machine level.

use super::{Settle, StepInput, StepOutput};
use crate::feed::{Step, Times};
use crate::level::machine::MachineLevel;
use crate::level::worker::WorkerLevel;
use crate::level::{Channel, Closed};
use crate::rows::{Rows, Sink};
use weir_packet::source::FrameBatch;

/// A batch that one worker has as a whole, classified by its only lane.
pub(crate) struct WholeBatch<'a> {
    frames: &'a FrameBatch,
    steps: &'a [Step],
    /// As in [`crate::ops::operator::Batch`].
    clock: &'a [i64],
}

impl<'a> WholeBatch<'a> {
    /// All packets of a batch.
    pub(crate) fn new(frames: &'a FrameBatch, times: &'a Times) -> WholeBatch<'a> {
        WholeBatch { frames, steps: &times.steps, clock: times.clock(frames) }
    }

    /// Packets of a batch in these steps.
    pub(crate) fn of_steps(
        frames: &'a FrameBatch,
        steps: &'a [Step],
        clock: &'a [i64],
    ) -> WholeBatch<'a> {
        WholeBatch { frames, steps, clock }
    }
}

impl StepInput for WholeBatch<'_> {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn closes(&self, step: usize) -> bool {
        self.steps[step].close.is_some()
    }

    fn push(&mut self, step: usize, lanes: &mut [WorkerLevel], up: &mut impl StepOutput) {
        let out = &mut |from: Channel, rows: &Rows| up.take(step, from, rows);
        lanes[0].push(self.frames, self.steps[step].rows, self.clock, out);
        if step + 1 == self.steps.len() {
            lanes[0].settle(self.frames, self.clock, None);
        }
    }

    fn settle(&mut self, watermark: i64, lanes: &mut [WorkerLevel]) {
        lanes[0].settle(self.frames, self.clock, Some(watermark));
    }
}

/// Hands what a worker emits straight to the machine level, on the thread of both.
pub(crate) struct ToMachine<'a, 'e> {
    pub(crate) times: &'a Times,
    pub(crate) machine: &'a mut MachineLevel<'e>,
    pub(crate) sink: &'a mut dyn Sink,
    /// Scratch: groups that close.
    pub(crate) closed: &'a mut Vec<Closed>,
}

impl StepOutput for ToMachine<'_, '_> {
    fn close(&mut self, step: usize, lanes: &mut [WorkerLevel], settle: &mut Settle<'_>) {
        let ToMachine { times, machine, sink, closed } = self;
        let Some(watermark) = times.steps[step].close else { return };
        settle(watermark, lanes);
        lanes[0].close(watermark, closed);
        machine.watermark(watermark, closed, *sink);
        machine.spent.drain(..).for_each(|(p, groups)| lanes[0].recycle(p, groups));
        machine.flush(*sink);
    }

    fn advance(&mut self, lane: &mut WorkerLevel, watermark: i64) {
        lane.watermark(watermark, self.closed);
    }

    fn take(&mut self, _step: usize, from: Channel, rows: &Rows) {
        self.machine.take(from, rows, self.sink);
    }

    fn end_step(&mut self) {
        self.machine.step(self.sink);
    }
}
