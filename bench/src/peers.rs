//! Weir beside other programs that meter flows, on the same trace. They keep and write different
//! things; each is run as its users would, and all that counts is the time of the whole process.

use crate::process;
use crate::roofline::{Mode, Roofline};
use crate::stats::{Spread, median};
use crate::sys;
use crate::timing::Whole;
use crate::trace::Preset;
use crate::work::{FLOW_METER, Text};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the sources of the small ones are.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// Folders that `PATH` may lack for users who are not root.
const SBIN: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The name of our program.
const WEIR: &str = "weir";

/// Someone to run beside others.
struct Peer {
    name: &'static str,
    /// A note on the way it is run.
    note: &'static str,
    /// Takes a trace of the same kind that is so many times shorter: it would run for minutes.
    shorter: u64,
    /// Its command line but for the trace, if it is there.
    arguments: Option<Vec<String>>,
    /// The text before the path of the trace.
    prefix: &'static str,
}

/// Runs everyone that is there, `rounds` times in turn after one to warm up; gives the table.
pub(crate) fn run(preset: &Preset, packets: u64, rounds: usize, out: &Path) -> Result<String> {
    let roofline = Roofline::build(out)?;
    let (present, missing): (Vec<Peer>, Vec<Peer>) =
        peers(out)?.into_iter().partition(|p| p.arguments.is_some());
    ensure!(
        present.iter().any(|p| p.name == WEIR),
        "build it first: cargo build --release -p weir"
    );
    let mut traces = Vec::new();
    for peer in &present {
        let mut options = preset.options.clone();
        options.packets = (packets / peer.shorter).max(1);
        let (trace, truth) = options.make(out)?;
        let held = sys::map(&trace).with_context(|| trace.display().to_string())?;
        // Not to be in memory shows in the wall times of all alike.
        let _ = held.lock();
        traces.push((trace, truth.packets, held));
    }
    let mut roofline_runs = Vec::new();
    let mut runs: Vec<Vec<Whole>> = present.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for ((peer, (trace, ..)), runs) in present.iter().zip(&traces).zip(&mut runs) {
            writeln!(io::stderr(), "round {round} of {rounds}: {}", peer.name)?;
            let whole = peer.run(trace)?;
            runs.extend((round > 0).then_some(whole));
        }
        if let (Some(roofline), Some((trace, packets, _))) = (&roofline, traces.first()) {
            let (_, whole) = roofline.run(Mode::made(preset, *packets), trace)?;
            roofline_runs.extend((round > 0).then_some(whole));
        }
    }
    let mut lines: Vec<(&str, &str, u64, Vec<Whole>)> = present
        .iter()
        .zip(&traces)
        .zip(runs)
        .map(|((peer, (_, packets, _)), runs)| (peer.name, peer.note, *packets, runs))
        .collect();
    if !roofline_runs.is_empty() {
        let note = "the C loop, tables made beforehand; its whole process";
        lines.insert(0, ("roofline", note, packets, roofline_runs));
    }
    Ok(table(preset, &lines, &missing.iter().map(|p| p.name).collect::<Vec<_>>()))
}

/// As Markdown.
fn table(preset: &Preset, lines: &[(&str, &str, u64, Vec<Whole>)], missing: &[&str]) -> String {
    let mut out = format!(
        "Trace {}. Times are of the whole process: start, reading, output and end.\n\n\
         | program | packets | million packets per second | CPU ns per packet \
         | Weir is so many times as fast | |\n|---|---:|---:|---:|---:|---|\n",
        preset.name
    );
    let per_packet = |packets: &u64, run: &Whole| run.wall.as_secs_f64() / *packets as f64;
    let ours = lines.iter().find(|(name, ..)| *name == WEIR);
    let (_, _, our_packets, our_runs) = ours.expect("ours always runs");
    for (name, note, packets, runs) in lines {
        let wall = median(runs.iter().map(|r| per_packet(packets, r)));
        let cpu = median(runs.iter().map(|r| r.cpu.as_secs_f64() / *packets as f64));
        let pairs = runs.iter().zip(our_runs);
        let ratio = Spread::of(
            pairs.map(|(run, our)| per_packet(packets, run) / per_packet(our_packets, our)),
        );
        let _ = writeln!(
            out,
            "| {name} | {packets} | {:.3} | {:.1} | **{:.2}** ({:.2}–{:.2}) | {note} |",
            1e-6 / wall,
            cpu * 1e9,
            ratio.median,
            ratio.low,
            ratio.high
        );
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "\nNot here, and so not measured: {}.", missing.join(", "));
    }
    out
}

fn peers(out: &Path) -> Result<Vec<Peer>> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    let python = out.join("nfstream/bin/python");
    let script = format!("{SOURCES}/nfstream_meter.py");
    Ok(vec![
        weir()?,
        Peer::new("libpcap loop", "counts packets, no flows", pcap_loop(out)?, &[]),
        nfpcapd(out)?,
        softflowd(out),
        ipfixprobe(out),
        Peer {
            shorter: 10,
            ..Peer::new(
                "NFStream",
                "`n_dissections=0, statistical_analysis=False`",
                python.is_file().then_some(python),
                &[&script],
            )
        },
    ])
}

/// Ours: the program that users have, which lies beside this one.
fn weir() -> Result<Peer> {
    let Text::Query(query) = FLOW_METER.text else { unreachable!("the flow meter is a query") };
    let program = process::beside(WEIR)?;
    Ok(Peer::new(
        WEIR,
        "the flow meter in the language, one worker; CSV to nowhere",
        program.is_file().then_some(program),
        &["run", "-q", "-o", "csv", "-e", query, "-r"],
    ))
}

fn nfpcapd(out: &Path) -> Result<Peer> {
    let folder = out.join("nfpcapd");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let arguments = ["-B", "4000000", "-w", &folder.display().to_string(), "-r"];
    let note = "`-B 4000000`; writes its files";
    Ok(Peer::new("nfpcapd", note, installed("nfpcapd", out), &arguments))
}

fn softflowd(out: &Path) -> Peer {
    let path = |name: &str| out.join(name).display().to_string();
    let (pid, control) = (path("softflowd.pid"), path("softflowd.ctl"));
    let collector = ["-n", "127.0.0.1:19995", "-v", "9"];
    let arguments = ["-m", "4000000", "-p", &pid, "-c", &control, "-r"];
    Peer::new(
        "softflowd",
        "`-m 4000000`; NetFlow 9 to a closed local port; both directions together",
        installed("softflowd", out),
        &[&collector[..], &arguments].concat(),
    )
}

fn ipfixprobe(out: &Path) -> Peer {
    let text = format!("text;f={}", out.join("ipfixprobe.txt").display());
    let arguments = ["-s", "cache;size=19;line=4;split", "-o", &text, "-i"];
    let note = "`size=19;split`; text output";
    let program = installed("ipfixprobe", out);
    Peer { prefix: "pcap;file=", ..Peer::new("ipfixprobe", note, program, &arguments) }
}

impl Peer {
    fn new(
        name: &'static str,
        note: &'static str,
        program: Option<PathBuf>,
        arguments: &[&str],
    ) -> Peer {
        let arguments = program.map(|program| {
            let rest = arguments.iter().map(|a| (*a).to_owned());
            std::iter::once(program.display().to_string()).chain(rest).collect()
        });
        Peer { name, note, shorter: 1, arguments, prefix: "" }
    }

    /// Runs it once over a trace.
    fn run(&self, trace: &Path) -> Result<Whole> {
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let (program, rest) = arguments.split_first().context("a program")?;
        let nowhere = File::options().write(true).open("/dev/null").context("/dev/null")?;
        let mut command = Command::new(program);
        command.args(rest).arg(format!("{}{}", self.prefix, trace.display())).stdout(nowhere);
        process::time(self.name, &mut command)
    }
}

/// An installed program: what was installed into `out` goes first.
fn installed(name: &str, out: &Path) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where programs are is what PATH says")]
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SBIN.map(PathBuf::from));
    let all = std::iter::once(out.to_owned()).chain(folders);
    all.map(|folder| folder.join(name)).find(|p| p.is_file())
}

/// The loop over libpcap, built; `None` where its header or the compiler is absent.
fn pcap_loop(out: &Path) -> Result<Option<PathBuf>> {
    let program = out.join("pcap_loop");
    let mut command = Command::new("gcc");
    command.args(["-O2", "-o"]).arg(&program).arg(Path::new(SOURCES).join("pcap_loop.c"));
    match command.arg("-lpcap").output() {
        Ok(output) => Ok(output.status.success().then_some(program)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).context("running gcc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::PRESETS;
    use std::time::Duration;

    #[test]
    fn speeds_are_compared_by_packet_and_round() {
        let run =
            |ms| Whole { cpu: Duration::from_millis(ms), wall: Duration::from_millis(2 * ms) };
        let lines =
            [(WEIR, "x", 1_000_000, vec![run(20), run(40)]), ("y", "z", 100_000, vec![run(10); 2])];
        let table = table(&PRESETS[0], &lines, &["one", "two"]);
        let expected = [
            "| weir | 1000000 | 16.667 | 30.0 | **1.00** (1.00–1.00) | x |",
            "| y | 100000 | 5.000 | 100.0 | **3.75** (3.12–4.38) | z |",
            "",
            "Not here, and so not measured: one, two.",
        ];
        assert_eq!(table.lines().skip(4).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_there_runs_and_what_is_not_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = crate::trace::TraceOptions { packets: 100, ..PRESETS[0].options.clone() };
        let (trace, _) = options.make(folder.path()).expect("written");
        assert_eq!(installed("no-such-program", folder.path()), None);
        assert!(installed("sh", folder.path()).is_some());
        if let Some(program) = pcap_loop(folder.path()).expect("gcc says what is wrong") {
            let peer = Peer::new("loop", "", Some(program), &[]);
            peer.run(&trace).expect("runs");
            assert!(peer.run(Path::new("no-such-trace")).is_err());
        }
    }
}
