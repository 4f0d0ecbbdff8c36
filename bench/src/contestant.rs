//! The contestants of each run. Each run is a process of its own: this program, called again.

use crate::answer::{Answer, Part, RowDigest, Tally};
use crate::measure::{Measure, rss_max_kib, value};
use crate::process;
use crate::reference;
use crate::sys;
use crate::timing::{Whole, time};
use crate::trace::Preset;
use crate::work::{FLOW_METER, FLOW_METER_API, Work};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use weir_engine::functions::Functions;
use weir_engine::run;
use weir_packet::source::Source;
use weir_plan::Program;
use weir_stream::{Flow, Group, Packets, Stream};

/// Bytes of the shortest record of a trace, its header and 64 of the frame.
const RECORD_MIN: usize = 80;

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
    match work.program(setup.first)? {
        Some(program) => run_program(&program, trace, setup, work.may_evict()),
        None => rust_api(trace, setup),
    }
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
    program: &Program,
    trace: &Path,
    setup: &Setup,
    may_evict: bool,
) -> Result<(Measure, Answer)> {
    let mut source = open(trace)?;
    let (functions, options) = (Functions::default(), setup.options());
    let mut sink = Tally::new(setup.digest);
    let (outcome, spent) =
        time(|| run::run(program, &functions, &mut *source, &mut sink, &options, &mut |_| {}))?;
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

/// The state that the closures keep of a flow.
#[derive(Clone, Copy)]
struct Meter {
    packets: u64,
    bytes: u64,
    first: i64,
    last: i64,
}

/// From the first record of the open file to the last flow handed out.
fn rust_api(trace: &Path, setup: &Setup) -> Result<(Measure, Answer)> {
    let mut source = open(trace)?;
    let mut part = if setup.digest { Part::digested() } else { Part::default() };
    let (result, spent) = time(|| {
        meter(&mut *source, |flow| {
            // Or else the compiler might see that nobody looks at the times.
            let group = std::hint::black_box(flow);
            if setup.digest {
                part.add(row(&group));
            } else {
                part.rows += 1;
            }
            group.value.packets
        })
    })?;
    let (packets, flows) = (result?, part.rows);
    Ok((Measure { packets, flows, spent, rss_max_kib: rss_max_kib()? }, Answer(vec![part])))
}

/// The flow meter in Rust. Sums what `each` says of the flows.
fn meter(
    source: &mut dyn Source,
    mut each: impl FnMut(Group<Flow, Meter>) -> u64,
) -> Result<u64, weir_packet::source::SourceError> {
    let mut sum = 0;
    Packets::new(source)
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
        .for_each(|_, flow| sum += each(flow))?;
    Ok(sum)
}

/// Flows and packets that the flow meter in Rust finds in `source`.
pub(crate) fn meter_totals(source: &mut dyn Source) -> Result<(u64, u64)> {
    let mut flows = 0;
    let packets = meter(source, |flow| {
        flows += 1;
        std::hint::black_box(flow).value.packets
    })?;
    Ok((flows, packets))
}

/// The digest of the row that the query would put out.
fn row(group: &Group<Flow, Meter>) -> RowDigest {
    let address = |a: IpAddr| match a {
        IpAddr::V4(a) => a.to_ipv6_mapped().to_bits(),
        IpAddr::V6(a) => a.to_bits(),
    };
    let (flow, meter) = (&group.key, &group.value);
    let row = RowDigest::new().cell(address(flow.src())).cell(flow.sport());
    let row = row.cell(address(flow.dst())).cell(flow.dport()).cell(flow.proto());
    let row = row.cell(meter.packets).cell(meter.bytes);
    row.cell(meter.first as u64).cell(meter.last as u64)
}
