//! How often memory is asked for in the steady state, when every flow was seen and every window's
//! memory was used before: never per packet, never per batch.
//!
//! Each work of the table runs over synthetic TCP packets. The source that hands them out notes
//! what was asked for until two batches: one in the middle of the run, and the end.

use crate::answer::Tally;
use crate::synthetic::{Synthetic, Traffic};
use crate::sys::Asked;
use crate::work::{DETECTORS, Text, WORKS, Work};
use anyhow::{Result, ensure};
use std::fmt::Write;
use std::io;
use weir_engine::functions::Functions;
use weir_engine::run;
use weir_packet::limits::BATCH;
use weir_packet::source::{Account, FrameBatch, Source, SourceError};
use weir_plan::{Program, Stage, Window};

/// Flows; few, so that every window meets about all of them and none is larger than those before.
const FLOWS: u64 = 1_200;

/// Time between packets: a second has 10,000 of them, a window of the library's longest 100,000.
const GAP_NS: i64 = 100_000;

/// The least packets in which a run becomes steady: some windows of ten seconds.
const PACKETS_MIN: u64 = 800_000;

/// Buffers that are made beforehand: more than all workers together have batches in hand.
const BUFFERS: usize = 256;

/// Rows that are put out as they are.
const PLAIN_ROWS: Work = Work {
    name: "plain-rows",
    title: "`where tcp`, then time and flow of each packet",
    text: Text::Query("packets | where tcp | project ts, flow"),
};

/// A source that notes what the process asked for until two moments.
struct Marked {
    inner: Synthetic,
    /// Batches handed out.
    batches: u64,
    /// When the steady phase begins.
    from: u64,
    /// At its beginning and at its end.
    marks: [io::Result<Asked>; 2],
}

impl Marked {
    fn new(packets: u64) -> Marked {
        let inner = Synthetic::new(Traffic::Tcp(FLOWS), packets).spaced(GAP_NS).prepared(BUFFERS);
        let from = packets.div_ceil(BATCH as u64) / 2;
        Marked { inner, batches: 0, from, marks: [Ok(Asked::default()), Ok(Asked::default())] }
    }
}

impl Source for Marked {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        if self.batches == self.from {
            self.marks[0] = Asked::now();
        }
        // The last call, which hands nothing out, is when the last batch has been processed.
        if self.inner.is_done() {
            self.marks[1] = Asked::now();
        }
        self.batches += 1;
        self.inner.fill(batch)
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        self.inner.account()
    }
}

/// The memory that a run asked for.
struct Steady {
    /// Before the steady phase.
    before: Asked,
    /// In it.
    asked: Asked,
    /// Batches in it.
    batches: u64,
    /// Packets in it.
    packets: u64,
}

/// Does `work` in this process.
fn steady(
    (program, functions): &(Program, Functions),
    workers: usize,
    packets: u64,
) -> Result<Steady> {
    let mut source = Marked::new(packets);
    let start = Asked::now()?;
    let options = run::Options { workers, ..run::Options::default() };
    let mut sink = Tally::new(false);
    let outcome = run::run(program, functions, &mut source, &mut sink, &options, &mut |_| {});
    outcome.error.map_or(Ok(()), Err)?;
    let ledger = outcome.ledger;
    ensure!(ledger.adds_up(), "the ledger does not add up: {ledger:?}");
    ensure!(ledger.processed == packets, "packets were left out: {ledger:?}");
    ensure!(sink.answer().rows() > 0, "no row came out, so that little was computed");
    let made = source.inner.buffers();
    ensure!(made == BUFFERS, "the source itself made {made} buffers");
    let [from, to] = source.marks;
    let (from, to) = (from?, to?);
    let before = from.since(start);
    ensure!(before.allocations > 0, "a run that asks for no memory at all: nobody counts");
    let last = packets.div_ceil(BATCH as u64);
    let packets = packets - source.from * BATCH as u64;
    Ok(Steady { before, asked: to.since(from), batches: last - source.from, packets })
}

/// Windows of a program that end while so many packets pass.
fn windows(program: &Program, packets: u64) -> f64 {
    let span_ns = packets as f64 * GAP_NS as f64;
    let stages = program.pipelines.iter().flat_map(|p| &p.stages);
    let each = stages.map(|stage| match stage {
        Stage::Summarize(s) => {
            let sessions = match s.window {
                Window::Session(session) => Some(session.tick_ns()),
                _ => None,
            };
            s.window.every().or(sessions).map_or(0.0, |ns| span_ns / ns as f64)
        }
        _ => 0.0,
    });
    each.sum()
}

/// Runs everything; gives the answer as Markdown.
pub(crate) fn run(packets: u64) -> Result<String> {
    ensure!(packets >= PACKETS_MIN, "fewer than {PACKETS_MIN} packets do not become steady");
    let mut out = format!(
        "Allocations in the second half of {packets} packets of {FLOWS} flows, {GAP_NS} ns apart. \
         Pages are what the kernel provided, for mapped memory too.\n\n\
         | work | workers | before | steady | per million packets | per batch | windows \
         | per window | bytes per window | pages |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    // Detectors may make texts.
    let plain = WORKS.iter().filter(|work| work.name != DETECTORS.name);
    for work in plain.chain([&PLAIN_ROWS]) {
        let program = work.program(None)?;
        for workers in [1, 2] {
            let s = steady(&program, workers, packets)?;
            let windows = windows(&program.0, s.packets);
            let per_window = |n: u64| match windows {
                0.0 => "–".to_owned(),
                windows => format!("{:.2}", n as f64 / windows),
            };
            let n = s.asked.allocations;
            let _ = writeln!(
                out,
                "| {} | {workers} | {} | {n} | {:.2} | {:.4} | {windows:.0} | {} | {} | {} |",
                work.name,
                s.before.allocations,
                n as f64 * 1e6 / s.packets as f64,
                n as f64 / s.batches as f64,
                per_window(n),
                per_window(s.asked.bytes),
                s.asked.pages
            );
        }
    }
    Ok(out)
}
