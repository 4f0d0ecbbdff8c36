//! Weir with Kafka and Flink, all on loopback: what it sends to Kafka and takes from there beside
//! the bare client, and what it counts beside Flink alone.
//!
//! The bench asserts nothing about time; a wrong answer is an error. A part whose server can't be
//! started here is named, and not measured.

#[cfg(feature = "kafka")]
mod client;
mod flink;
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "what nobody can send is not made"))]
mod load;
mod merge;
mod merge_table;
#[cfg(not(feature = "kafka"))]
mod no_client;
#[cfg_attr(
    not(feature = "kafka"),
    allow(dead_code, reason = "records that nobody can send are not looked into")
)]
mod record;
mod servers;
mod table;
mod transfer;

pub(crate) use transfer::BareClient;

use crate::arguments::{OUT, preset};
use crate::trace::TraceOptions;
use anyhow::{Context, Result, bail, ensure};
use flink::{Counter, SourceCounts};
use load::ProbeLoad;
use merge::{Merges, Schedule};
use merge_table::MergeTable;
#[cfg(not(feature = "kafka"))]
use no_client as client;
use serde_json::{Value, json};
use servers::{MISSING, Servers};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use table::{CountsLine, TransferLine};
use transfer::{Direction, Transfer, Transfers, weir};

/// A part of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Debug)]
enum Part {
    /// Packets and partial results that Weir sends to Kafka, beside the bare client.
    IntoKafka,
    /// The same on their way from Kafka.
    OutOfKafka,
    /// Packets of each source in a topic: Weir beside a job that Flink does alone.
    FlinkAlone,
    /// Partial results of many probes, merged by Weir's job on Flink.
    FlinkMerge,
}

/// Packets of the trace: a million to a second, of 65,535 sources, all about equally often.
const PACKETS: u64 = 10_000_000;

/// The published trace whose conversations are equally frequent: this one has fewer of them.
const EQUAL: &str = "b";

/// So many have 65,535 sources: a client and a server each, some of which come twice.
const CONVERSATIONS: u32 = 32_779;

/// The measurement that is asked for.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ClusterOptions {
    /// Measure only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Packets of the trace; fewer make a quick check, not a measurement.
    #[arg(short = 'n', long, default_value_t = PACKETS)]
    packets: u64,
    /// Rounds; one more before them is not counted.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Only check that everything works: no round to warm up.
    #[arg(long)]
    check: bool,
    /// Write every single measurement to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where traces, and what servers store meanwhile, are kept.
    #[arg(long, default_value = OUT, hide_default_value = true)]
    out: PathBuf,
}

/// The results so far.
#[derive(Default)]
struct Measured {
    transfers: Vec<TransferLine>,
    counts: Vec<CountsLine>,
    merges: Vec<MergeTable>,
    /// For each part that could not be measured, the reason.
    left_out: Vec<String>,
}

/// Measures, and gives the tables.
pub(crate) fn run(options: &ClusterOptions) -> Result<String> {
    ensure!(
        cfg!(feature = "kafka"),
        "{MISSING}: this program was built without the client of Kafka; build both: cargo build \
         --release -p weir -p weir-bench --features weir/kafka,weir-bench/kafka"
    );
    let mut servers = Servers::start(&options.out)?;
    let folder = tempfile::tempdir().context("a folder for rows")?;
    let mut measured = Measured::default();
    let is_asked = |part| options.only.is_empty() || options.only.contains(&part);
    if [Part::IntoKafka, Part::OutOfKafka, Part::FlinkAlone].into_iter().any(is_asked) {
        let (trace, packets) = trace(options, options.packets, CONVERSATIONS)?;
        let transfers = Transfers::prepare(trace, packets, folder.path(), &servers)?;
        measured.transfers = carry(options, &transfers, &servers)?;
        // Flink takes memory and, now and then, time: it comes once what needs none is done.
        if is_asked(Part::FlinkAlone) {
            let counts = count(options, &transfers, &mut servers, folder.path());
            measured.counts = or_left_out(counts, &mut measured.left_out)?;
        }
    }
    if is_asked(Part::FlinkMerge) {
        let merges = merge(options, &mut servers, folder.path());
        measured.merges = or_left_out(merges, &mut measured.left_out)?;
    }
    if let Some(why) = measured.only_left_out() {
        bail!("{why}");
    }
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", measured.json());
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(measured.markdown(options.rounds))
}

/// A capture of so many packets of equally frequent conversations.
fn trace(options: &ClusterOptions, packets: u64, conversations: u32) -> Result<(PathBuf, u64)> {
    let like = preset(EQUAL)?.options.clone();
    let (trace, truth) = TraceOptions { packets, conversations, ..like }.make(&options.out)?;
    Ok((trace, truth.packets))
}

/// The results of a part; where something is not installed, none, and the reason is kept.
fn or_left_out<T>(measured: Result<Vec<T>>, left_out: &mut Vec<String>) -> Result<Vec<T>> {
    match measured {
        Err(e) if e.to_string().starts_with(MISSING) => {
            left_out.push(e.to_string());
            Ok(Vec::new())
        }
        other => other,
    }
}

impl Measured {
    /// Why nothing was measured, if that is so.
    fn only_left_out(&self) -> Option<&String> {
        let is_empty =
            self.transfers.is_empty() && self.counts.is_empty() && self.merges.is_empty();
        self.left_out.first().filter(|_| is_empty)
    }

    fn json(&self) -> Value {
        json!({
            "transfers": self.transfers.iter().map(TransferLine::json).collect::<Vec<_>>(),
            "counts": self.counts.iter().map(CountsLine::json).collect::<Vec<_>>(),
            "merges": self.merges.iter().map(MergeTable::json).collect::<Vec<_>>(),
        })
    }

    fn markdown(&self, rounds: u16) -> String {
        let mut out = format!("Medians of {rounds} rounds; ratios are of the same round.\n");
        let parts = [
            (!self.transfers.is_empty()).then(|| table::transfers(&self.transfers)),
            (!self.counts.is_empty()).then(|| table::counts(&self.counts)),
            (!self.merges.is_empty())
                .then(|| self.merges.iter().map(MergeTable::markdown).collect()),
        ];
        for part in parts.into_iter().flatten().chain(self.left_out.iter().cloned()) {
            out += &format!("\n{part}\n");
        }
        out
    }
}

/// Carries everything in every round; who is first, turns.
fn carry(
    options: &ClusterOptions,
    transfers: &Transfers,
    servers: &Servers,
) -> Result<Vec<TransferLine>> {
    let all = [(Part::IntoKafka, Direction::IntoKafka), (Part::OutOfKafka, Direction::OutOfKafka)];
    let is_asked = |part| options.only.is_empty() || options.only.contains(&part);
    let wanted = all.into_iter().filter(|(part, _)| is_asked(*part));
    let line = |transfer| TransferLine {
        transfer,
        load: transfers.load(transfer.freight),
        rounds: Vec::new(),
    };
    let mut lines: Vec<TransferLine> =
        wanted.flat_map(|(_, direction)| Transfer::all(direction)).map(line).collect();
    for round in u16::from(options.check)..=options.rounds {
        for at in 0..lines.len() {
            let at = (at + usize::from(round)) % lines.len();
            let line = &mut lines[at];
            writeln!(io::stderr(), "round {round} of {}: {:?}", options.rounds, line.transfer)?;
            let whole = transfers.measure(servers, line.transfer, round.into());
            let whole = whole.with_context(|| format!("{:?}", line.transfer))?;
            line.rounds.extend((round > 0).then_some(whole));
        }
    }
    Ok(lines)
}

/// Counts packets of each source in every round, by Weir and by Flink.
fn count(
    options: &ClusterOptions,
    transfers: &Transfers,
    servers: &mut Servers,
    folder: &Path,
) -> Result<Vec<CountsLine>> {
    servers.start_flink(1)?;
    let counts = SourceCounts::prepare(transfers, servers, folder)?;
    let line = |counter| CountsLine { counter, packets: transfers.packets, rounds: Vec::new() };
    let all = [Counter::Weir, Counter::Flink, Counter::Probe, Counter::Run];
    let mut lines = all.map(line);
    for round in u16::from(options.check)..=options.rounds {
        for at in 0..lines.len() {
            let line = &mut lines[(at + usize::from(round)) % all.len()];
            writeln!(io::stderr(), "round {round} of {}: {:?}", options.rounds, line.counter)?;
            let whole = counts.measure(line.counter, round.into())?;
            line.rounds.extend((round > 0).then_some(whole));
        }
    }
    Ok(lines.into())
}

/// The query of the probes that are simulated: 50,000 packets, of nearly all of 5,000 sources, are
/// a window of the trace. It comes as if it had lasted a second.
const SUMS: &str = "packets | summarize packets = count(), bytes = sum(len) by ip.src every 50ms";
const SUMS_CONVERSATIONS: u32 = 2_500;
const SUMS_PACKETS: u64 = 50_000;

/// Sketches that are full: each is of some 2,000 sources.
const SKETCHES: &str = "packets | summarize packets = count(), sources = approx_distinct(ip.src) \
                        by part = sport % 100 every 200ms";
const SKETCHES_PACKETS: u64 = 200_000;

/// Merges the partial results of many probes by the job on Flink: as they come, then all at once.
fn merge(
    options: &ClusterOptions,
    servers: &mut Servers,
    folder: &Path,
) -> Result<Vec<MergeTable>> {
    servers.start_flink(1)?;
    let (probes, windows, schedule) = match options.check {
        false => (100, 70, Schedule { warm: 10, killed: 40 }),
        true => (3, 8, Schedule { warm: 1, killed: 4 }),
    };
    let weir = weir()?;
    let merges = Merges::new(servers, &weir)?;
    let load = |query, packets, conversations| -> Result<ProbeLoad> {
        let (trace, _) = trace(options, packets, conversations)?;
        ProbeLoad::new(&weir, query, &trace, probes, folder)
    };
    let sums = load(SUMS, SUMS_PACKETS * windows, SUMS_CONVERSATIONS)?;
    let sketches = load(SKETCHES, SKETCHES_PACKETS * 5, CONVERSATIONS)?;
    let mut table = MergeTable::of(&sums, &sketches);
    merges.fill(&sketches, "sketches")?;
    for round in u16::from(options.check)..=options.rounds {
        writeln!(io::stderr(), "round {round} of {}: {probes} probes", options.rounds)?;
        let [from, live, counts, sketched] =
            ["probes", "live", "counts", "sketched"].map(|name| format!("merge-{name}-{round}"));
        let measured = (
            merges.in_real_time(SUMS, &sums, schedule, [&from, &live])?,
            merges.at_once(SUMS, &sums, [&from, &counts])?,
            merges.at_once(SKETCHES, &sketches, ["sketches", &sketched])?,
        );
        if round > 0 {
            table.push(measured);
        }
    }
    Ok(vec![table])
}
