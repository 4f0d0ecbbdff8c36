//! A producer: the worker level of a plan over the packets of one machine.

use super::codec;
use super::message::{EndOf, write_clock, write_closed, write_counts, write_end, write_losses};
use super::refused::{Crossing, Refused};
use super::spread::SpreadPlan;
use super::subset::{Subset, SubsetBatch};
use super::writer::{MessageWriter, ProducerId, Send};
use crate::clock::Clock;
use crate::counters::Ledger;
use crate::feed::{Feed, Step, Times};
use crate::functions::Functions;
use crate::level::worker::WorkerLevel;
use crate::level::{Channel, Closed};
use crate::losses::LossNotes;
use crate::options::Options;
use crate::outcome::{Outcome, RunError};
use crate::panics::{Panicked, caught};
use crate::peers::Peers;
use crate::rows::Rows;
use crate::step::direct::WholeBatch;
use crate::step::{Settle, StepOutput, steps};
use std::io;
use std::slice::from_mut;
use weir_packet::source::{FrameBatch, Source};
use weir_plan::aggregates::RowOrder;
use weir_plan::physical::Physical;
use weir_plan::{Input, Program};

/// Runs the worker level of a plan and writes messages. It runs in one thread; a machine that has
/// more cores runs several, each a probe of its own.
pub struct Producer {
    program: Program,
    options: Options,
    level: WorkerLevel,
    /// Whether results depend on the order of packets between machines.
    is_ordered: bool,
    outbox: Outbox,
}

/// The messages that are to be sent.
struct Outbox {
    crossings: Vec<Crossing>,
    /// The losses, for each crossing.
    losses: Vec<Option<LossNotes>>,
    writer: MessageWriter,
    /// The counts that were sent.
    sent: Ledger,
    /// Groups that have closed.
    closed: Vec<Closed>,
}

impl Producer {
    /// A producer of a plan.
    ///
    /// # Errors
    /// Where the plan can't be spread over several machines.
    pub fn new(
        plan: &Physical,
        functions: &Functions,
        options: &Options,
        id: ProducerId,
    ) -> Result<Producer, Refused> {
        let peers = Peers::Probes { tag: id.probe as u16 };
        let (spread, level) =
            SpreadPlan::new(plan, functions, options, peers, |program, placed| {
                let over_packets = |p: &usize| program.pipelines[*p].input == Input::Packets;
                let pipelines: Vec<usize> =
                    (0..program.pipelines.len()).filter(over_packets).collect();
                let mut level = WorkerLevel::new(placed, &pipelines);
                level.expect_groups(options.groups_hint);
                level
            })?;
        let SpreadPlan { program, crossings, targets } = spread;
        let ordered =
            |c: &Crossing| c.summarize.aggs.iter().any(|agg| agg.func.order() == RowOrder::Numbers);
        Ok(Producer {
            is_ordered: crossings.iter().any(ordered),
            outbox: Outbox {
                losses: crossings.iter().map(|c| LossNotes::of(&c.summarize)).collect(),
                writer: MessageWriter::new(targets, id),
                sent: Ledger::default(),
                closed: Vec::new(),
                crossings,
            },
            options: Options { changes: None, ..options.clone() },
            program,
            level,
        })
    }

    /// The fingerprint of the computation, which messages bear.
    pub fn fingerprint(&self) -> u128 {
        self.outbox.writer.fingerprint()
    }

    /// Runs until the source ends, fails, or the run is [stopped](Options::stop). `send` takes each
    /// message, in the order of their numbers; where it fails, the run ends. So it does where a
    /// stage panics ([`RunError::Panicked`]): messages that were sent stay good, and no end is
    /// sent.
    pub fn run(
        self,
        source: &mut dyn Source,
        send: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Outcome {
        self.run_subset(source, &mut Subset::all(), send)
    }

    /// The same over some of the packets, with the time of all.
    pub fn run_subset(
        mut self,
        source: &mut dyn Source,
        subset: &mut Subset<'_>,
        send: Send<'_>,
    ) -> Outcome {
        let (program, options) = (self.program.clone(), self.options.clone());
        let mut feed = Feed::new(&program, source, &options);
        match caught(|| self.batches(&mut feed, subset, send)) {
            Ok(written) => {
                let mut ledger = Ledger::default();
                count(&self.level, &feed, subset, &mut ledger);
                if written.is_err() && subset.choose.is_none() {
                    feed.abandon_rest(&mut ledger);
                }
                let error = written.err().map(RunError::Egress);
                let error = error.or(feed.take_error().map(RunError::Source));
                Outcome { ledger, error }
            }
            Err(panicked) => self.end_broken(panicked, &feed),
        }
    }

    /// Ends a run in which something panicked. Messages that were sent stay good. No end is sent:
    /// what the packets after them would have given is missing.
    fn end_broken(&self, panicked: Panicked, feed: &Feed<'_>) -> Outcome {
        let mut ledger = Ledger::default();
        // Each by itself: any of them may be what is broken.
        let _ = caught(|| self.level.count(&mut ledger));
        let _ = caught(|| self.level.count_packets(&mut ledger));
        let account = caught(|| feed.account()).unwrap_or_default();
        ledger.abandon_rest(account, self.level.packets());
        Outcome { ledger, error: Some(RunError::panicked(panicked, &self.program)) }
    }

    fn batches(
        &mut self,
        feed: &mut Feed<'_>,
        subset: &mut Subset<'_>,
        send: Send<'_>,
    ) -> io::Result<()> {
        let Producer { options, level, is_ordered, outbox, .. } = self;
        let mut clock = Clock::new(options.lateness_ns, options.jump_ns);
        let (mut frames, mut times, mut own) =
            (FrameBatch::new(), Times::default(), SubsetBatch::default());
        let mut before = i64::MIN;
        while feed.fill(&mut frames) {
            if let Some(inquiry) = options.inquiry.as_deref().filter(|asked| asked.was_asked()) {
                let mut ledger = Ledger::default();
                count(level, feed, subset, &mut ledger);
                inquiry.answer(&ledger, &feed.interfaces());
            }
            feed.times(&frames, &mut times);
            if *is_ordered {
                own.observe(&mut clock, &frames, subset.choose.is_some());
            }
            let gap = frames.gap().filter(|_| subset.is_first);
            own.choose(&mut frames, &times, subset);
            for losses in outbox.losses.iter_mut().flatten() {
                losses.observe(frames.ts(), &own.clock, gap, before);
            }
            before = times.watermark;
            level.classify(&frames);
            let mut batch = WholeBatch::of_steps(&frames, &own.steps, &own.clock);
            let mut out = ToMessages {
                steps: &own.steps,
                outbox: &mut *outbox,
                feed,
                subset,
                send: &mut *send,
                sent: Ok(()),
            };
            steps(from_mut(level), &mut batch, &mut out);
            out.sent?;
            level.watermark(times.watermark, &mut outbox.closed);
            debug_assert!(outbox.closed.is_empty(), "steps end where windows do");
        }
        feed.end();
        if feed.began() {
            level.finish(&mut outbox.closed);
        }
        outbox.send_closed(level, send)?;
        outbox.send_counts(level, feed, subset, send)?;
        let (reached, ahead) = feed.clock().stands_at();
        if subset.is_first {
            outbox.writer.send(None, send, |out| write_clock(reached, ahead, out))?;
        }
        let end = if feed.has_failed() { EndOf::Source } else { EndOf::Input };
        outbox.writer.send(None, send, |out| write_end(end, out))
    }
}

/// Writes what leaves the worker level as messages.
struct ToMessages<'a, 'f, 's> {
    steps: &'a [Step],
    outbox: &'a mut Outbox,
    feed: &'a Feed<'f>,
    subset: &'a Subset<'s>,
    send: Send<'a>,
    /// Whether everything could be sent. After an error nothing more is.
    sent: io::Result<()>,
}

impl ToMessages<'_, '_, '_> {
    fn close_at(&mut self, watermark: i64, level: &mut WorkerLevel) -> io::Result<()> {
        let ToMessages { outbox, feed, subset, send, .. } = self;
        level.close(watermark, &mut outbox.closed);
        outbox.send_closed(level, *send)?;
        outbox.send_counts(level, feed, subset, *send)?;
        outbox.writer.send(None, *send, |out| write_closed(watermark, out))
    }
}

impl StepOutput for ToMessages<'_, '_, '_> {
    fn close(&mut self, step: usize, lanes: &mut [WorkerLevel], settle: &mut Settle<'_>) {
        if let (Some(watermark), Ok(())) = (self.steps[step].close, &self.sent) {
            settle(watermark, lanes);
            self.sent = self.close_at(watermark, &mut lanes[0]);
        }
    }

    fn advance(&mut self, lane: &mut WorkerLevel, watermark: i64) {
        lane.watermark(watermark, &mut self.outbox.closed);
    }

    fn take(&mut self, _step: usize, _from: Channel, _rows: &Rows) {
        unreachable!("only groups leave the workers");
    }
}

impl Outbox {
    /// Sends the groups that closed, after what was lost until then.
    fn send_closed(&mut self, level: &mut WorkerLevel, send: Send<'_>) -> io::Result<()> {
        let Outbox { crossings, losses, writer, closed, .. } = self;
        for (node, losses) in losses.iter_mut().enumerate() {
            if let Some(report) = losses.as_mut().and_then(LossNotes::news) {
                writer.send(Some(node), send, |out| write_losses(0, &report, out))?;
            }
        }
        for Closed { pipeline, start, groups } in closed.drain(..) {
            let node = crossings.iter().position(|c| c.node.pipeline == pipeline);
            let node = node.expect("each pipeline over packets hands groups over");
            for layout in groups.written() {
                writer.send_window(node, start, &layout, send)?;
            }
            level.recycle(pipeline, groups);
        }
        Ok(())
    }

    /// Sends what was counted since the last time.
    fn send_counts(
        &mut self,
        level: &WorkerLevel,
        feed: &Feed<'_>,
        subset: &Subset<'_>,
        send: Send<'_>,
    ) -> io::Result<()> {
        let mut now = Ledger::default();
        count(level, feed, subset, &mut now);
        let counts = codec::since(&self.sent, &now);
        self.sent = now;
        match counts.is_empty() {
            true => Ok(()),
            false => self.writer.send(None, send, |out| write_counts(&counts, out)),
        }
    }
}

/// Adds what was counted so far to the ledger.
fn count(level: &WorkerLevel, feed: &Feed<'_>, subset: &Subset<'_>, ledger: &mut Ledger) {
    level.count(ledger);
    level.count_packets(ledger);
    feed.count(ledger);
    subset.count(level.packets(), ledger);
}
