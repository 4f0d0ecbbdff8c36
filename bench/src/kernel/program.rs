//! The program that a flow meter becomes, beside one that was written by hand in C.

use super::loaded::{LoadedProgram, make};
use crate::measure::number;
use crate::process;
use crate::stats::Spread;
use crate::work::compile;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_offload::{FrameCount, Hook};
use weir_packet::craft::Frame;
use weir_plan::physical::Physical;

/// How to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ProgramOptions {
    /// Rounds; in each, both programs run once for each frame, in turn.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,
    /// How often a program runs in a round.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
}

/// The query that both programs compute.
const METER: &str = "packets | summarize packets = count(), bytes = sum(len), first = min(ts), \
                     last = max(ts) by ip.src, ip.dst, sport, dport, ip.proto every 1s";

/// The names that clang may have.
const CLANG: [&str; 4] = ["clang", "clang-19", "clang-16", "clang-14"];

/// The ratio to reach.
const AIM: f64 = 1.3;

/// The verdict of the program in C for a frame that it counted: `XDP_DROP`.
const DROPPED: u64 = 1;

/// The program in C, built, and what runs it.
struct ByHand {
    folder: tempfile::TempDir,
}

/// Measures, and gives the table.
pub(crate) fn run(options: &ProgramOptions) -> Result<String> {
    let by_hand = ByHand::build()?;
    let plan = Physical::new(&compile("flow meter", METER)?, &[]);
    let (ours, _) = make(&plan, Hook::Xdp)?.context("the flow meter has a part in the kernel")?;
    let tables = &ours.compiled.tables;
    ensure!(tables.len() == 1, "the kernel makes the groups of the flow meter");
    let frames = frames();
    let mut times: Vec<Vec<[f64; 2]>> = frames.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for ((name, frame), times) in frames.iter().zip(&mut times) {
            let mut pair = [0.0; 2];
            // Each is first in turn.
            for way in [usize::from(round % 2), usize::from(1 - round % 2)] {
                let took = match way {
                    0 => by_hand.run(frame, options.repeat),
                    _ => run_ours(&ours, frame, options.repeat),
                };
                pair[way] = took.with_context(|| name.clone())?;
            }
            times.push(pair);
        }
    }
    Ok(table(options, &frames, &times))
}

fn table(
    options: &ProgramOptions,
    frames: &[(String, Vec<u8>)],
    times: &[Vec<[f64; 2]>],
) -> String {
    let ProgramOptions { rounds, repeat } = options;
    let mut out = format!(
        "Nanoseconds of the flow meter's program in XDP for one frame, by BPF_PROG_TEST_RUN with \
         {repeat} repeats; medians (and quartiles) of {rounds} rounds. The aim is {AIM}.\n\n\
         | frame | by hand in C | Weir | × by hand | aim |\n|---|---:|---:|---:|---|\n"
    );
    let shown = |Spread { low, median, high }: Spread, digits: usize| {
        format!("{median:.digits$} ({low:.digits$}–{high:.digits$})")
    };
    for ((name, _), times) in frames.iter().zip(times) {
        let of = |way: usize| shown(Spread::of(times.iter().map(|pair| pair[way])), 0);
        let ratio = Spread::of(times.iter().map(|[by_hand, ours]| ours / by_hand));
        let reached = if ratio.median <= AIM { "yes" } else { "no" };
        // Writing to a string does not fail.
        let _ =
            writeln!(out, "| {name} | {} | {} | {} | {reached} |", of(0), of(1), shown(ratio, 2));
    }
    out
}

/// Nanoseconds that our program takes for a frame, which it has to count.
fn run_ours(ours: &LoadedProgram, frame: &[u8], repeat: u32) -> Result<f64> {
    let before = ours.count(FrameCount::Counted);
    let run = ours.program.test_run(frame, repeat).context("BPF_PROG_TEST_RUN")?;
    let counted = ours.count(FrameCount::Counted) - before;
    ensure!(counted == u64::from(repeat), "it counted {counted} of {repeat} frames");
    Ok(f64::from(run.duration_ns))
}

impl ByHand {
    fn build() -> Result<ByHand> {
        let folder = tempfile::tempdir().context("a folder")?;
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernel");
        // Headers of the kernel for this machine: those of the target `bpf` lack some.
        let machine = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        let Some(clang) = CLANG.into_iter().find(|name| process::is_installed(name)) else {
            bail!("the program in C takes clang and libbpf: apt-get install clang libbpf-dev")
        };
        let by_hand = ByHand { folder };
        let mut object = Command::new(clang);
        object.args(["-O2", "-g", "-target", "bpf", &machine, "-c", "-o"]);
        object.arg(by_hand.path("flow_meter.o")).arg(here.join("flow_meter.bpf.c"));
        process::run(clang, &mut object)?;
        let mut runner = Command::new(clang);
        runner.arg("-O2").arg("-o").arg(by_hand.path("flow_meter"));
        runner.arg(here.join("flow_meter.c")).arg("-lbpf");
        process::run(clang, &mut runner)?;
        Ok(by_hand)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Nanoseconds that it takes for a frame, which it has to count.
    fn run(&self, frame: &[u8], repeat: u32) -> Result<f64> {
        let path = self.path("frame");
        std::fs::write(&path, frame).context("a frame")?;
        let mut command = Command::new(self.path("flow_meter"));
        command.arg(self.path("flow_meter.o")).arg(path).arg(repeat.to_string());
        let line = process::run("the program in C", &mut command)?.out;
        let (returned, packets) = (number(&line, "returned")?, number(&line, "packets")?);
        ensure!(returned == DROPPED, "it returned {returned}");
        ensure!(packets == u64::from(repeat), "it counted {packets} of {repeat} frames");
        Ok(number(&line, "ns")? as f64)
    }
}

/// Frames of a flow each, with what they are called.
fn frames() -> Vec<(String, Vec<u8>)> {
    let v6 = |n| std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
    let (a, b) = ([192, 0, 2, 1], [198, 51, 100, 2]);
    let eth = Frame::ethernet;
    let all = [
        ("TCP, IPv4", eth().ipv4(a, b).tcp(40_000, 443).payload(&[1; 6])),
        ("UDP, IPv4, VLAN", eth().vlan(7).ipv4(a, b).udp(40_000, 53).payload(&[1; 14])),
        ("TCP, IPv6", eth().ipv6(v6(1), v6(2)).tcp(40_000, 443).payload(&[1; 6])),
        ("UDP, IPv6", eth().ipv6(v6(1), v6(2)).udp(9, 443).payload(&[1; 1338])),
    ];
    let shown = |(name, frame): (&str, Frame)| {
        let bytes = frame.bytes();
        (format!("{name}, {} bytes", bytes.len()), bytes)
    };
    all.into_iter().map(shown).collect()
}
