//! Measures Weir against a flow meter written by hand. See README.md.

#![deny(unsafe_code)]

mod contestant;
mod measure;
mod reference;
mod report;
mod roofline;
#[expect(unsafe_code, reason = "system calls and prefetch; each block says why it is sound")]
mod sys;
mod timing;
mod trace;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use contestant::Contestant;
use report::Report;
use roofline::Roofline;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trace::{PRESETS, Preset};

/// Where traces are kept, unless told otherwise.
const OUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/out");

/// Measures Weir against a flow meter written by hand.
#[derive(Parser, Debug)]
struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Runs every flow meter in turn over generated traces and prints their times and ratios.
    FlowMeter {
        /// Traces: a (100,000 conversations, Zipf), b (2,000,000, uniform), c (mixed sizes, IPv6).
        #[arg(long, value_delimiter = ',', default_value = "a")]
        trace: Vec<String>,
        /// Packets of each trace; fewer make a quick check, not a measurement.
        #[arg(short = 'n', long)]
        packets: Option<u64>,
        /// Rounds after the first one, which is not counted.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Where traces and the built roofline are kept.
        #[arg(long, default_value = OUT, hide_default_value = true)]
        out: PathBuf,
    },
    /// Runs one flow meter once, in this process.
    #[command(hide = true)]
    Contestant { name: Contestant, preset: String, trace: PathBuf },
}

fn main() -> Result<()> {
    match Args::parse().command {
        Action::FlowMeter { trace, packets, rounds, out } => {
            ensure!(rounds > 0, "--rounds must be at least 1");
            let roofline = Roofline::build(&out)?;
            for name in &trace {
                flow_meter(preset(name)?, packets, rounds, &out, roofline.as_ref())?;
            }
            Ok(())
        }
        Action::Contestant { name, preset: p, trace } => {
            let measure = name.run(preset(&p)?, &trace)?;
            writeln!(io::stdout(), "{measure}").context("standard output")
        }
    }
}

fn preset(name: &str) -> Result<&'static Preset> {
    let names = PRESETS.each_ref().map(|p| p.name).join(", ");
    let found = PRESETS.iter().find(|p| p.name == name);
    found.with_context(|| format!("no trace is called {name}; there are {names}"))
}

fn flow_meter(
    preset: &Preset,
    packets: Option<u64>,
    rounds: usize,
    out: &Path,
    roofline: Option<&Roofline>,
) -> Result<()> {
    let mut options = preset.options.clone();
    options.packets = packets.unwrap_or(options.packets);
    let (trace, truth) = options.make(out)?;
    let held = sys::map(&trace).with_context(|| trace.display().to_string())?;
    if let Err(why) = held.lock() {
        // Runs may then read from the disk, and say so by their wall times.
        writeln!(io::stderr(), "the trace is not held in memory: {why}")?;
    }
    let report = Report::make(preset, &trace, truth, roofline, rounds)?;
    writeln!(
        io::stdout(),
        "Trace {}: {} packets, {} bytes on the wire, {} flows. Medians of {rounds} rounds, time \
         per packet.\nOne thread each; rows are counted and discarded, not formatted.\n\n{}",
        preset.name,
        truth.packets,
        truth.bytes,
        truth.flows,
        report.table()
    )
    .context("standard output")
}
