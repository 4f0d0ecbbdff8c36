//! A run in which one worker, on the calling thread, does everything.

use crate::counters::Ledger;
use crate::feed::{Feed, Times};
use crate::level::machine::MachineLevel;
use crate::level::worker::{WorkerLevel, count_worker};
use crate::outcome::RunError;
use crate::progress::Progress;
use crate::rows::Sink;
use crate::step::direct::{ToMachine, WholeBatch};
use crate::step::steps;
use crate::supply::Supply as _;
use std::slice::from_mut;
use weir_packet::source::FrameBatch;

/// Runs until the feed ends or breaks; gives the feed back.
pub(super) fn run<'f>(
    level: &mut WorkerLevel,
    machine: &mut MachineLevel<'_>,
    mut feed: Feed<'f>,
    sink: &mut dyn Sink,
    mut progress: Progress<'_>,
) -> (Option<RunError>, Feed<'f>) {
    let (mut frames, mut times) = (FrameBatch::new(), Times::default());
    let (mut closed, mut error) = (Vec::new(), None);
    while error.is_none() && !machine.is_done() && feed.fill(&mut frames) {
        progress.report(&feed);
        if progress.is_asked() {
            let mut ledger = Ledger::default();
            count_worker(from_mut(level), &[0], 0, &mut ledger);
            machine.count(&mut ledger);
            let answer = progress.answer(ledger, &feed, sink);
            error = progress.tell(answer, sink);
        }
        feed.times(&frames, &mut times);
        level.classify(&frames);
        let mut direct = ToMachine { times: &times, machine, sink, closed: &mut closed };
        let mut batch = WholeBatch::new(&frames, &times);
        steps(from_mut(level), &mut batch, &mut direct);
        level.watermark(times.watermark, &mut closed);
        debug_assert!(closed.is_empty(), "steps end where windows do");
        if !feed.is_ready() {
            // The rows so far can be shown while the source waits.
            machine.flush(sink);
        }
        error = error.or(machine.take_error());
    }
    if feed.began() && !feed.breaks() {
        level.finish(&mut closed);
        machine.know_until(Some(feed.clock().stands_at().0));
        machine.finish(&mut closed, sink);
    }
    (error.or(machine.take_error()), feed)
}
