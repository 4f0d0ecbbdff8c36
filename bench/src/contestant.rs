//! Who runs against whom. Each run is a process of its own: this program, called again.

use crate::measure::{Measure, rss_max_kib};
use crate::reference;
use crate::sys;
use crate::timing::time;
use crate::trace::Preset;
use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use std::io;
use std::path::Path;
use std::process::Command;
use weir_engine::api::{Packets, Stream};
use weir_engine::functions::Functions;
use weir_engine::rows::{Output, Rows, Sink};
use weir_engine::run;
use weir_packet::source::Source;

/// The flow meter in the language: what the loops by hand keep of each flow.
const QUERY: &str = "packets | where ip \
    | summarize packets = count(), bytes = sum(len), first = min(ts), last = max(ts) by flow";

/// A flow meter of this repository.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Contestant {
    /// The loop by hand, its tables made beforehand.
    Reference,
    /// A query in the language, one worker.
    Language,
    /// The same through the Rust API, as its documentation shows it.
    RustApi,
}

impl Contestant {
    /// All, in the order in which they run.
    pub(crate) const ALL: [Contestant; 3] =
        [Contestant::Reference, Contestant::Language, Contestant::RustApi];

    /// The name on the command line and in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Contestant::Reference => "reference",
            Contestant::Language => "language",
            Contestant::RustApi => "rust-api",
        }
    }

    /// Meters `trace` in this process.
    pub(crate) fn run(self, preset: &Preset, trace: &Path) -> Result<Measure> {
        match self {
            Contestant::Reference => reference(preset, trace),
            Contestant::Language => language(trace),
            Contestant::RustApi => rust_api(trace),
        }
    }

    /// Meters `trace` in a new process.
    pub(crate) fn spawn(self, preset: &Preset, trace: &Path) -> Result<Measure> {
        let program = std::env::current_exe().context("finding this program")?;
        let out = Command::new(program)
            .args(["contestant", self.name(), preset.name])
            .arg(trace)
            .output()
            .with_context(|| format!("running {}", self.name()))?;
        let errors = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "{} failed: {errors}", self.name());
        Measure::parse(&String::from_utf8_lossy(&out.stdout))
    }
}

fn reference(preset: &Preset, trace: &Path) -> Result<Measure> {
    let file = sys::map(trace).with_context(|| trace.display().to_string())?;
    let mut meter = reference::Meter::new(preset.table_log2.0, preset.table_log2.1)?;
    let (totals, spent) = time(|| meter.run(&file))?;
    let totals = totals?;
    Ok(Measure { packets: totals.packets, flows: totals.flows, spent, rss_max_kib: rss_max_kib()? })
}

fn open(trace: &Path) -> Result<Box<dyn Source>> {
    let name = trace.to_str().context("the path is not UTF-8")?;
    Ok(weir_capture::open(name, &weir_capture::Options::default())?)
}

/// Counts rows and forgets them.
#[derive(Default)]
struct Discard {
    rows: u64,
}

impl Sink for Discard {
    fn open(&mut self, _: &[Output]) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, _: usize, rows: &Rows) -> io::Result<()> {
        self.rows += rows.len as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The whole way of a query but for its text: from the first record of the open file to the last
/// row in the sink.
fn language(trace: &Path) -> Result<Measure> {
    let query = weir_lang::Query { name: "flow meter", text: QUERY };
    let compiled = weir_lang::compile(&query, &weir_lang::Options::default());
    let program = compiled.map_err(|mistakes| anyhow!("{mistakes:?}"))?.program;
    let mut source = open(trace)?;
    let (functions, options) = (Functions::default(), run::Options::default());
    let mut sink = Discard::default();
    let (outcome, spent) =
        time(|| run::run(&program, &functions, &mut *source, &mut sink, &options, &mut |_| {}))?;
    outcome.error.map_or(Ok(()), Err)?;
    ensure!(outcome.ledger.adds_up(), "the ledger does not add up: {:?}", outcome.ledger);
    Ok(Measure {
        packets: outcome.ledger.processed,
        flows: sink.rows,
        spent,
        rss_max_kib: rss_max_kib()?,
    })
}

/// What the closures keep of a flow.
#[derive(Clone, Copy)]
struct Meter {
    packets: u64,
    bytes: u64,
    first: i64,
    last: i64,
}

/// From the first record of the open file to the last flow handed out.
fn rust_api(trace: &Path) -> Result<Measure> {
    let mut source = open(trace)?;
    let (mut packets, mut flows) = (0, 0);
    let (result, spent) = time(|| {
        Packets::new(&mut *source)
            .key_by(|p| p.flow())
            .reduce(
                |p| Meter { packets: 1, bytes: p.len(), first: p.ts(), last: p.ts() },
                |a, b| {
                    a.packets += b.packets;
                    a.bytes += b.bytes;
                    a.first = a.first.min(b.first);
                    a.last = a.last.max(b.last);
                },
            )
            .for_each(|_, flow| {
                // Or else the compiler might see that nobody looks at the times.
                packets += std::hint::black_box(flow.value).packets;
                flows += 1;
            })
    })?;
    result?;
    Ok(Measure { packets, flows, spent, rss_max_kib: rss_max_kib()? })
}
