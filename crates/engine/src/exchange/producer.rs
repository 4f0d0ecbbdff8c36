//! A producer: the worker level of a plan over the packets of one machine.

use super::codec;
use super::message::{
    EndOf, MAGIC, MessageTarget, write_closed, write_counts, write_end, write_losses, write_window,
};
use super::print::Targets;
use super::refused::{Crossing, Refused};
use super::share::{PacketShare, Sharing};
use super::spread::SpreadPlan;
use crate::clock::Clock;
use crate::counters::Ledger;
use crate::feed::{Feed, Times};
use crate::functions::Functions;
use crate::level::Closed;
use crate::level::worker::WorkerLevel;
use crate::limits::MESSAGE_BYTES;
use crate::losses::LossNotes;
use crate::ops::groups::written::WrittenGroups;
use crate::options::Options;
use crate::outcome::{Outcome, RunError};
use std::io;
use weir_packet::source::{FrameBatch, Source};
use weir_plan::physical::Physical;
use weir_plan::{AggFunc, Input, Program};

/// Who writes messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerId {
    /// The probe: a number that no other one has.
    pub probe: u128,
    /// Which life of it: larger than all before, such as the time at which it started.
    pub epoch: u64,
}

/// Runs the worker level of a plan and writes messages. It runs in one thread; a machine that has
/// more cores runs several, each a probe of its own.
pub struct Producer {
    program: Program,
    options: Options,
    level: WorkerLevel,
    crossings: Vec<Crossing>,
    /// What is told of losses, for each crossing.
    notes: Vec<Option<LossNotes>>,
    /// Whether results depend on the order of packets between machines.
    is_ordered: bool,
    writer: MessageWriter,
    /// What was counted and sent.
    sent: Ledger,
}

/// Where messages go: each is a slice of bytes.
pub(super) type Send<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// Numbers messages.
struct MessageWriter {
    targets: Targets,
    id: ProducerId,
    number: u64,
    message: Vec<u8>,
}

impl MessageWriter {
    /// Sends a message to a node, or to all: `body` appends what it says.
    fn send(
        &mut self,
        node: Option<usize>,
        send: Send<'_>,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let MessageTarget { print, node } =
            node.map_or(self.targets.all, |n| self.targets.nodes[n]);
        let out = &mut self.message;
        out.clear();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&print.to_le_bytes());
        out.extend_from_slice(&node);
        out.extend_from_slice(&self.id.probe.to_le_bytes());
        out.extend_from_slice(&self.id.epoch.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        self.number += 1;
        body(out);
        send(out)
    }

    /// Sends groups of a window, in messages of about [`MESSAGE_BYTES`].
    fn send_window(
        &mut self,
        node: usize,
        start: i64,
        groups: &WrittenGroups,
        send: Send<'_>,
    ) -> io::Result<()> {
        let end = |n: usize| {
            let columns = groups.columns.iter().map(|(_, states)| states);
            let all = std::iter::once(&groups.keys).chain(columns);
            // Each key with the four bytes that say where it ends.
            all.map(|states| states.ends[n]).sum::<usize>() + 4 * (n + 1)
        };
        let (mut first, mut written) = (0, 0);
        for n in 0..groups.keys.ends.len() {
            let is_last = n + 1 == groups.keys.ends.len();
            if is_last || end(n) - written >= MESSAGE_BYTES {
                self.send(Some(node), send, |out| write_window(start, groups, first..n + 1, out))?;
                (first, written) = (n + 1, end(n));
            }
        }
        Ok(())
    }
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
        let (spread, level) = SpreadPlan::new(plan, functions, options, |program, placed| {
            let over_packets = |p: &usize| program.pipelines[*p].input == Input::Packets;
            let pipelines: Vec<usize> = (0..program.pipelines.len()).filter(over_packets).collect();
            let mut level = WorkerLevel::new(placed, &pipelines);
            level.expect_groups(options.groups_hint);
            level
        })?;
        let SpreadPlan { program, crossings, targets } = spread;
        let ordered = |c: &Crossing| {
            let funcs = c.summarize.aggs.iter().map(|agg| agg.func);
            funcs.into_iter().any(|func| matches!(func, AggFunc::First | AggFunc::Last))
        };
        Ok(Producer {
            notes: crossings.iter().map(|c| LossNotes::of(&c.summarize)).collect(),
            is_ordered: crossings.iter().any(ordered),
            writer: MessageWriter { targets, id, number: 0, message: Vec::new() },
            sent: Ledger::default(),
            options: Options { changes: None, inquiry: None, ..options.clone() },
            program,
            level,
            crossings,
        })
    }

    /// Runs until the source ends, fails, or the run is [stopped](Options::stop). `send` takes each
    /// message, in the order of their numbers; where it fails, the run ends.
    pub fn run(
        self,
        source: &mut dyn Source,
        send: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Outcome {
        self.run_share(source, &mut Sharing::all(), send)
    }

    /// The same over some of the packets, with the time of all.
    pub(super) fn run_share(
        mut self,
        source: &mut dyn Source,
        sharing: &mut Sharing<'_>,
        send: Send<'_>,
    ) -> Outcome {
        let (program, options) = (self.program.clone(), self.options.clone());
        let mut feed = Feed::new(&program, source, &options);
        let written = self.batches(&mut feed, sharing, send);
        let mut ledger = Ledger::default();
        self.count(&feed, sharing, &mut ledger);
        let error = written.err().map(RunError::Egress);
        let error = error.or(feed.take_error().map(RunError::Source));
        Outcome { ledger, error }
    }

    fn batches(
        &mut self,
        feed: &mut Feed<'_>,
        sharing: &mut Sharing<'_>,
        send: Send<'_>,
    ) -> io::Result<()> {
        let mut clock = Clock::new(self.options.lateness_ns, self.options.jump_ns);
        let (mut frames, mut times, mut share) =
            (FrameBatch::new(), Times::default(), PacketShare::default());
        let (mut closed, mut before) = (Vec::new(), i64::MIN);
        while feed.fill(&mut frames) {
            feed.times(&frames, &mut times);
            if self.is_ordered {
                share.observe(&mut clock, &frames);
            }
            let gap = frames.gap().filter(|_| sharing.is_first);
            share.choose(&mut frames, &times, sharing);
            for notes in self.notes.iter_mut().flatten() {
                notes.take(frames.ts(), &share.clock, gap, before);
            }
            before = times.watermark;
            self.level.classify(&frames);
            for step in &share.steps {
                if let Some(watermark) = step.close {
                    self.level.watermark(watermark, &mut closed);
                    self.send_closed(&mut closed, send)?;
                    self.send_counts(feed, sharing, send)?;
                    self.writer.send(None, send, |out| write_closed(watermark, out))?;
                }
                let out = &mut |_, _: &_| unreachable!("only groups leave the workers");
                self.level.push(&frames, step.rows, &share.clock, out);
            }
            self.level.watermark(times.watermark, &mut closed);
            debug_assert!(closed.is_empty(), "steps end where windows do");
        }
        if feed.began() {
            self.level.finish(&mut closed);
        }
        self.send_closed(&mut closed, send)?;
        self.send_counts(feed, sharing, send)?;
        let end = if feed.has_failed() { EndOf::Source } else { EndOf::Input };
        self.writer.send(None, send, |out| write_end(end, out))
    }

    /// Sends the groups that closed, after what was lost until then.
    fn send_closed(&mut self, closed: &mut Vec<Closed>, send: Send<'_>) -> io::Result<()> {
        for (node, notes) in self.notes.iter_mut().enumerate() {
            if let Some(news) = notes.as_mut().and_then(LossNotes::news) {
                self.writer.send(Some(node), send, |out| write_losses(&news, out))?;
            }
        }
        for Closed { pipeline, start, groups } in closed.drain(..) {
            let node = self.crossings.iter().position(|c| c.node.pipeline == pipeline);
            let node = node.expect("each pipeline over packets hands groups over");
            for layout in groups.written() {
                self.writer.send_window(node, start, &layout, send)?;
            }
            self.level.recycle(pipeline, groups);
        }
        Ok(())
    }

    /// Sends what was counted since the last time.
    fn send_counts(
        &mut self,
        feed: &Feed<'_>,
        sharing: &Sharing<'_>,
        send: Send<'_>,
    ) -> io::Result<()> {
        let mut now = Ledger::default();
        self.count(feed, sharing, &mut now);
        let counts = codec::since(&self.sent, &now);
        self.sent = now;
        match counts.is_empty() {
            true => Ok(()),
            false => self.writer.send(None, send, |out| write_counts(&counts, out)),
        }
    }

    fn count(&self, feed: &Feed<'_>, sharing: &Sharing<'_>, ledger: &mut Ledger) {
        self.level.count(ledger);
        self.level.count_packets(ledger);
        feed.count(ledger);
        sharing.count(self.level.packets(), ledger);
    }
}
