//! Measures Weir against a flow meter written by hand. See README.md.

#![deny(unsafe_code)]

mod allocations;
mod answer;
mod arguments;
mod attacks;
mod cluster;
mod compare;
mod compressed;
mod contestant;
mod detectors;
mod expected;
mod faces;
mod forward;
mod kernel;
mod live;
mod measure;
mod peers;
mod process;
mod reference;
mod report;
mod roofline;
mod scaling;
mod state;
mod stats;
mod synthetic;
#[expect(unsafe_code, reason = "system calls and prefetch; each block says why it is sound")]
mod sys;
mod table;
mod timing;
mod trace;
mod work;

use anyhow::{Context, Result, ensure};
use arguments::{OUT, Rounds, preset};
use clap::{Parser, Subcommand};
use contestant::{Contestant, Setup};
use regex::Regex;
use report::Report;
use roofline::Roofline;
use state::{Experiment, Task};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use table::Table;
use trace::{PRESETS, Preset};
use work::Work;

/// Counts, for `weir-bench allocations`.
#[global_allocator]
static ALLOCATOR: sys::Counting = sys::Counting;

/// Measures Weir against a flow meter written by hand.
#[derive(Parser, Debug)]
struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Measures every kind of query against the roofline, with one and two workers, and packed
    /// input against the programs that unpack it, and prints the table of targets.
    Table {
        #[command(flatten)]
        traces: Traces,
        /// Run only the cases whose trace, work and title, such as `b flow-meter: flow meter,
        /// language, size hint`, match this.
        #[arg(long, value_name = "REGEX")]
        only: Option<Regex>,
        /// Write every single measurement to this file.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Runs every flow meter in turn over generated traces and prints their times and ratios.
    FlowMeter {
        #[command(flatten)]
        traces: Traces,
    },
    /// Runs every work by another build of this program and by this one, in the same rounds, and
    /// prints what changed.
    Compare {
        /// The other `weir-bench`, built from the code before the change.
        before: PathBuf,
        #[command(flatten)]
        traces: Traces,
        /// Run only the works whose trace, name and title match this.
        #[arg(long, value_name = "REGEX")]
        only: Option<Regex>,
        /// Threads that process packets.
        #[arg(long, default_value_t = 1)]
        workers: usize,
    },
    /// Runs 1, 2, 4 and so on of the detectors together, and all of them, and prints how the cost
    /// of a packet grows.
    DetectorsGrowth(detectors::GrowthOptions),
    /// Runs a query that nobody looks at, and the same with metrics that are asked for, and with
    /// browsers that follow its rows, and prints what that costs.
    Faces(faces::FacesOptions),
    /// Runs every work with 1, 2, 4 and more workers, up to one for each processor, and prints how
    /// speed grows.
    Scaling {
        /// The trace.
        #[arg(long, default_value = "a")]
        trace: String,
        /// Its packets; fewer make a quick check, not a measurement.
        #[arg(short = 'n', long)]
        packets: Option<u64>,
        /// Numbers of workers, such as 1,2,4; the first is what the others are compared with.
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
        workers: Vec<u16>,
        /// Run only the works whose name and title match this.
        #[arg(long, value_name = "REGEX")]
        only: Option<Regex>,
        #[command(flatten)]
        rounds: Rounds,
        /// Where traces and the built roofline are kept.
        #[arg(long, default_value = OUT, hide_default_value = true)]
        out: PathBuf,
    },
    /// Peak memory over a billion packets of 100,000 flows, against that over a hundredth of them.
    Memory {
        /// Packets of the longer run.
        #[arg(short = 'n', long, default_value_t = 1_000_000_000)]
        packets: u64,
    },
    /// Ten million flows at once: memory of each, and the longest time that a batch took.
    Growth {
        /// Flows, each of one packet.
        #[arg(short = 'n', long, default_value_t = 10_000_000)]
        packets: u64,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// A flood of flows, more than their bound allows: speed against the usual one.
    Flood {
        /// Packets, each a flow of its own in the flood. The bound is a tenth of them.
        #[arg(short = 'n', long, default_value_t = 10_000_000)]
        packets: u64,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// The cost of a packet while more and more flows are idle.
    Idle {
        /// Packets of the active flows.
        #[arg(short = 'n', long, default_value_t = 10_000_000)]
        packets: u64,
        #[command(flatten)]
        rounds: Rounds,
    },
    /// How often memory is asked for once every flow was seen, per batch and per window.
    Allocations {
        /// Packets of each run; the first half, in which everything finds its size, is not counted.
        #[arg(short = 'n', long, default_value_t = 4_000_000)]
        packets: u64,
    },
    /// Weir beside other flow meters, those that are installed; see peers.sh.
    Peers {
        /// The trace.
        #[arg(long, default_value = "a")]
        trace: String,
        /// Its packets; the slowest programs take a tenth of them.
        #[arg(short = 'n', long, default_value_t = 5_000_000)]
        packets: u64,
        #[command(flatten)]
        rounds: Rounds,
        /// Where traces and installed programs are kept.
        #[arg(long, default_value = OUT, hide_default_value = true)]
        out: PathBuf,
    },
    /// Capture from a virtual wire, by AF_XDP and by AF_PACKET, beside loops by hand that drop what
    /// they receive; takes root.
    Live(live::LiveOptions),
    /// Queries whose first level runs in the kernel, beside the same without: processor time per
    /// frame; takes root.
    Offload(live::OffloadOptions),
    /// How long it takes to make the program that each query of the library becomes in the kernel;
    /// takes root.
    OffloadLoad(kernel::LoadOptions),
    /// The program that a flow meter becomes in the kernel, beside one by hand in C: nanoseconds
    /// for a frame; takes root, clang and libbpf-dev.
    OffloadProgram(kernel::ProgramOptions),
    /// Network functions between a client and its servers: a bridge, port knocking and a load
    /// balancer, by Weir and by the kernel; takes root.
    Forward(forward::ForwardOptions),
    /// Detectors against attacks by real tools, mixed into real traffic, beside naive thresholds
    /// and Suricata; attacks/make.sh makes the attacks.
    Attacks(attacks::AttacksOptions),
    /// Weir with Kafka on loopback: what it sends there and takes from there, beside the bare
    /// client; takes Java and Maven, and a build with `--features weir/kafka,weir-bench/kafka`.
    Cluster(cluster::ClusterOptions),
    /// The bare client of Kafka of `cluster`.
    #[command(hide = true)]
    BareClient(cluster::BareClient),
    /// An end of the network of `forward`, until standard input ends.
    #[command(hide = true)]
    ForwardEnd(forward::End),
    /// Sends frames on the wire of `live`.
    #[command(hide = true)]
    Send(live::Load),
    /// Receives what comes on the wire of `live`, until standard input ends.
    #[command(hide = true)]
    Receive(live::Receive),
    /// Runs one flow meter once, in this process.
    #[command(hide = true)]
    Contestant { name: Contestant, preset: String, trace: PathBuf },
    /// Does one work once, in this process.
    #[command(hide = true)]
    Work {
        name: String,
        trace: PathBuf,
        #[command(flatten)]
        setup: Setup,
    },
    /// Feeds synthetic packets to one program once, in this process.
    #[command(hide = true)]
    Synthetic(Task),
}

#[derive(clap::Args, Debug)]
struct Traces {
    /// Traces: a (100,000 conversations, Zipf), b (2,000,000, uniform), c (mixed sizes, IPv6).
    /// Unless told otherwise, the table is of all three, and the flow meters run over the first.
    #[arg(long, value_delimiter = ',')]
    trace: Vec<String>,
    /// Packets of each trace; fewer make a quick check, not a measurement.
    #[arg(short = 'n', long)]
    packets: Option<u64>,
    #[command(flatten)]
    rounds: Rounds,
    /// Where traces and the built roofline are kept.
    #[arg(long, default_value = OUT, hide_default_value = true)]
    out: PathBuf,
}

fn main() -> Result<()> {
    match Args::parse().command {
        Action::Table { traces, only, json } => full_table(&traces, only, json.as_deref()),
        Action::Compare { before, traces, only, workers } => {
            compare::run(&compare::CompareOptions {
                before: &before,
                presets: presets(&traces, &PRESETS)?,
                packets: traces.packets,
                rounds: traces.rounds.rounds.into(),
                only,
                workers,
                out: &traces.out,
            })
        }
        Action::FlowMeter { traces } => {
            let roofline = Roofline::build(&traces.out)?;
            presets(&traces, &PRESETS[..1])?
                .iter()
                .try_for_each(|p| flow_meter(p, &traces, roofline.as_ref()))
        }
        Action::DetectorsGrowth(options) => print(detectors::run(&options)?),
        Action::Faces(options) => print(faces::run(&options)?),
        Action::Scaling { trace, packets, workers, only, rounds, out } => {
            let workers = match workers.is_empty() {
                true => scaling::usual_workers(std::thread::available_parallelism()?.get()),
                false => workers.into_iter().map(usize::from).collect(),
            };
            print(scaling::run(&scaling::ScalingOptions {
                preset: preset(&trace)?,
                packets,
                rounds: rounds.rounds.into(),
                workers,
                only,
                out: &out,
            })?)
        }
        Action::Memory { packets } => print(state::run(Experiment::Memory, packets, 1)?),
        Action::Growth { packets, rounds } => experiment(Experiment::Growth, packets, &rounds),
        Action::Flood { packets, rounds } => experiment(Experiment::Flood, packets, &rounds),
        Action::Idle { packets, rounds } => experiment(Experiment::Idle, packets, &rounds),
        Action::Allocations { packets } => print(allocations::run(packets)?),
        Action::Peers { trace, packets, rounds, out } => {
            print(peers::run(preset(&trace)?, packets, rounds.rounds.into(), &out)?)
        }
        Action::Live(options) => print(live::run(&options)?),
        Action::Offload(options) => print(live::run_offload(&options)?),
        Action::OffloadLoad(options) => print(kernel::run_load(&options)?),
        Action::OffloadProgram(options) => print(kernel::run_program(&options)?),
        Action::Forward(options) => print(forward::run(&options)?),
        Action::Attacks(options) => print(attacks::run(&options)?),
        Action::Cluster(options) => print(cluster::run(&options)?),
        Action::BareClient(client) => print(client.run()?),
        Action::ForwardEnd(end) => end.run(),
        Action::Send(load) => print(format_args!("sent={}", load.send()?)),
        Action::Receive(receive) => print(receive.run()?),
        Action::Contestant { name, preset: p, trace } => print(name.run(preset(&p)?, &trace)?),
        Action::Work { name, trace, setup } => {
            let (measure, answer) = contestant::run_work(Work::named(&name)?, &trace, &setup)?;
            print(format_args!("{measure} answer={answer}"))
        }
        Action::Synthetic(task) => print(task.run()?),
    }
}

fn print(what: impl Display) -> Result<()> {
    writeln!(io::stdout(), "{what}").context("standard output")
}

fn experiment(which: Experiment, packets: u64, rounds: &Rounds) -> Result<()> {
    print(state::run(which, packets, rounds.rounds.into())?)
}

/// The traces that are asked for, or the usual ones.
fn presets(traces: &Traces, usual: &'static [Preset]) -> Result<Vec<&'static Preset>> {
    ensure!(traces.packets != Some(0), "a trace has packets");
    if traces.trace.is_empty() {
        return Ok(usual.iter().collect());
    }
    traces.trace.iter().map(|name| preset(name)).collect()
}

fn full_table(traces: &Traces, only: Option<Regex>, json: Option<&Path>) -> Result<()> {
    let table = Table::make(&table::TableOptions {
        presets: presets(traces, &PRESETS)?,
        packets: traces.packets,
        rounds: traces.rounds.rounds.into(),
        only,
        out: &traces.out,
    })?;
    if let Some(path) = json {
        let text = format!("{:#}\n", table.json());
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    print(table.markdown())
}

fn flow_meter(preset: &Preset, traces: &Traces, roofline: Option<&Roofline>) -> Result<()> {
    let mut options = preset.options.clone();
    options.packets = traces.packets.unwrap_or(options.packets);
    let (trace, truth) = options.make(&traces.out)?;
    let held = sys::map(&trace).with_context(|| trace.display().to_string())?;
    if let Err(why) = held.lock() {
        // Runs may then read from the disk, and say so by their wall times.
        writeln!(io::stderr(), "the trace is not held in memory: {why}")?;
    }
    let rounds = traces.rounds.rounds;
    let report = Report::make(preset, &trace, truth, roofline, rounds.into())?;
    print(format_args!(
        "Trace {}: {} packets, {} bytes on the wire, {} flows. Medians of {rounds} rounds, time \
         per packet.\nOne thread each; rows are counted and discarded, not formatted.\n\n{}",
        preset.name,
        truth.packets,
        truth.bytes,
        truth.flows,
        report.table()
    ))
}
