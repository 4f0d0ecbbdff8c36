//! The contestants of each run. Each run is a process of its own: this program, called again.

use crate::answer::{Answer, Tally};
use crate::measure::{Measure, rss_max_kib, value};
use crate::process;
use crate::reference;
use crate::sys;
use crate::timing::{Whole, time};
use crate::trace::Preset;
use crate::work::{FLOW_METER, FLOW_METER_API, Work};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::path::Path;
use std::process::Command;
use weir_engine::functions::Functions;
use weir_engine::run;
use weir_packet::source::Source;
use weir_plan::Program;

/// Bytes of the shortest record of a trace, its header and 64 of the frame.
const RECORD_MIN: usize = 80;

/// A flow meter of this repository.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Contestant {
    /// The loop by hand, its tables made beforehand.
    Reference,
    /// A query in the language, one worker.
    Language,
    /// The same through the Rust API, with a closure that is called for each packet.
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
            Contestant::Language => Ok(run_work(&FLOW_METER, trace, &ALONE)?.0),
            Contestant::RustApi => Ok(run_work(&FLOW_METER_API, trace, &ALONE)?.0),
        }
    }

    /// Meters `trace` in a new process.
    pub(crate) fn spawn(self, preset: &Preset, trace: &Path) -> Result<(Measure, Whole)> {
        let mut command = process::this_program()?;
        command.args(["contestant", self.name(), preset.name]).arg(trace);
        let done = process::run(self.name(), &mut command)?;
        Ok((Measure::parse(&done.out)?, done.whole))
    }
}

/// How a work is run.
#[derive(Clone, Copy, PartialEq, Debug, clap::Args)]
pub(crate) struct Setup {
    /// Threads that process packets.
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: usize,
    /// Groups to make room for beforehand.
    #[arg(long)]
    pub(crate) groups: Option<u64>,
    /// Digest the rows: to check them, not to measure.
    #[arg(long)]
    pub(crate) digest: bool,
    /// Of queries that run together, run just so many.
    #[arg(long)]
    pub(crate) first: Option<usize>,
}

/// One worker, to be measured.
pub(crate) const ALONE: Setup = Setup { workers: 1, groups: None, digest: false, first: None };

/// One worker, to be checked.
pub(crate) const CHECK: Setup = Setup { digest: true, ..ALONE };

impl Setup {
    /// As the engine takes it.
    fn options(&self) -> run::Options {
        run::Options {
            workers: self.workers,
            groups_hint: self.groups.unwrap_or(0) as usize,
            ..run::Options::default()
        }
    }

    /// As arguments of the command line.
    fn arguments(&self, command: &mut Command) {
        command.args(["--workers", &self.workers.to_string()]);
        if let Some(groups) = self.groups {
            command.args(["--groups", &groups.to_string()]);
        }
        command.args(self.digest.then_some("--digest"));
        if let Some(first) = self.first {
            command.args(["--first", &first.to_string()]);
        }
    }
}

/// Does a work over `trace` in this process.
pub(crate) fn run_work(work: &Work, trace: &Path, setup: &Setup) -> Result<(Measure, Answer)> {
    run_program(&work.program(setup.first)?, trace, setup, work.may_evict())
}

/// Does a work over `trace` in a new process.
pub(crate) fn spawn_work(
    work: &Work,
    trace: &Path,
    setup: &Setup,
) -> Result<(Measure, Answer, Whole)> {
    spawn_by(process::this_program()?, work, trace, setup)
}

/// The same by some build of this program.
pub(crate) fn spawn_by(
    mut command: Command,
    work: &Work,
    trace: &Path,
    setup: &Setup,
) -> Result<(Measure, Answer, Whole)> {
    command.args(["work", work.name]).arg(trace);
    setup.arguments(&mut command);
    let done = process::run(work.name, &mut command)?;
    let answer = Answer::parse(value(&done.out, "answer")?)?;
    Ok((Measure::parse(&done.out)?, answer, done.whole))
}

fn reference(preset: &Preset, trace: &Path) -> Result<Measure> {
    let file = sys::map(trace).with_context(|| trace.display().to_string())?;
    let (v4, v6) = preset.tables((file.len() / RECORD_MIN) as u64);
    let mut meter = reference::Meter::new(v4, v6)?;
    let (totals, spent) = time(|| meter.run(&file))?;
    let totals = totals?;
    Ok(Measure { packets: totals.packets, flows: totals.flows, spent, rss_max_kib: rss_max_kib()? })
}

/// Opens a capture. An option that maps all its pages beforehand, as the loops by hand do, would
/// go here.
fn open(trace: &Path) -> Result<Box<dyn Source>> {
    let name = trace.to_str().context("the path is not UTF-8")?;
    // Before the clock starts, as the roofline does.
    let options = weir_capture::Options { populate: true, ..weir_capture::Options::default() };
    Ok(weir_capture::open(name, &options)?)
}

/// The whole way of a query but for its text: from the first record of the open file to the last
/// row in the sink. Nothing may be left out, but what is evicted where the program says so.
pub(crate) fn run_program(
    (program, functions): &(Program, Functions),
    trace: &Path,
    setup: &Setup,
    may_evict: bool,
) -> Result<(Measure, Answer)> {
    let mut source = open(trace)?;
    let options = setup.options();
    let mut sink = Tally::new(setup.digest);
    let (outcome, spent) =
        time(|| run::run(program, functions, &mut *source, &mut sink, &options, &mut |_| {}))?;
    outcome.error.map_or(Ok(()), Err)?;
    let ledger = outcome.ledger;
    ensure!(ledger.adds_up(), "the ledger does not add up: {ledger:?}");
    let evicted = if may_evict { 0 } else { ledger.evicted };
    ensure!(ledger.late + ledger.wild + evicted == 0, "rows were left out: {ledger:?}");
    let answer = sink.answer();
    let flows = answer.rows();
    let packets = ledger.processed;
    Ok((Measure { packets, flows, spent, rss_max_kib: rss_max_kib()? }, answer))
}
