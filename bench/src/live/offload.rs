//! Compares two ways to run a query: its first stages in the kernel, and all of it by Weir's
//! workers. The measure is processor time per frame that was offered, at a fixed rate.
//!
//! Rates over a virtual wire differ by two from run to run; time per frame does not, as long as
//! everything that was offered is processed. The sender keeps a rate that all ways can take. On the
//! receiver's processor, the threads of NAPI run what drivers, hooks and sockets do with a frame,
//! and Weir runs the rest: the kernel counts both in nanoseconds (`schedstat`). It counts the time
//! of interrupts as theirs.
//!
//! A run counts only if the interface received what was sent, Weir's ledger has all of it, and
//! nothing was lost.

use super::bpftrace;
use super::netlink::Counts;
use super::wire::{Napi, RECEIVER, Wire, pause, threads};
use crate::process::{beside, is_installed, this_program};
use crate::stats::Spread;
use anyhow::{Context, Result, ensure};
use regex::Regex;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};

/// How to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OffloadOptions {
    /// Rounds; in each, every way runs once, in turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) rounds: u16,
    /// Frames per second.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) rate: u32,
    /// Milliseconds that count, of each run.
    #[arg(long, default_value_t = 1500)]
    pub(crate) window_ms: u32,
    /// The processor of the sender, and that of the receiver.
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',')]
    #[arg(default_values_t = [0, 1])]
    pub(crate) pin: Vec<usize>,
    /// Only cases whose name matches.
    #[arg(long, value_name = "REGEX")]
    pub(crate) only: Option<Regex>,
}

/// How often a run is tried whose wire loses frames.
const TRIES: u32 = 5;

/// Milliseconds before the window, in which everything finds its size.
const WARM_UP_MS: u32 = 500;

/// Milliseconds that Weir may take to begin.
const START_MS: u32 = 10_000;

/// Keeps a tenth of the sender's flows, by their ports.
const TENTH: &str = "packets | where sport < 10100 | summarize n = count() by ip.src every 1s";

/// A flow meter, all of whose work the kernel can do.
const METER: &str = "packets | summarize packets = count(), bytes = sum(len), first = min(ts), \
                     last = max(ts) by flow every 1s";

/// The same with a count alone, by few keys.
const COUNT: &str = "packets | where udp | summarize n = count() by ip.src every 1s";

/// Takes all frames up, and reads nothing but their headers: `distinct` is for workers.
const HEADERS: &str = "packets | where udp | summarize n = count(), ports = distinct(sport) \
                       by ip.src every 1s";

/// Sends on the headers of frames, with lengths and checksums that are right.
const THIN: &str = "packets | trim 96 | forward \"weir2\"";

/// The query over frames.
#[derive(Clone, Copy)]
enum Asked {
    /// The text of a query.
    Text(&'static str),
    /// A query of the library, of TCP segments.
    Library(&'static str),
}

/// A query over frames, beside itself without offload.
struct OffloadCase {
    name: &'static str,
    query: Asked,
    bytes: u32,
    flows: u32,
    /// How frames are captured without offload, and with it.
    captures: [&'static str; 2],
    /// The largest ratio with which the aim is reached.
    aim: f64,
}

const fn case(
    name: &'static str,
    query: &'static str,
    (bytes, flows): (u32, u32),
    captures: [&'static str; 2],
    aim: f64,
) -> OffloadCase {
    OffloadCase { name, query: Asked::Text(query), bytes, flows, captures, aim }
}

/// An application of the papers about offloading to a card, whose aim is 1.4 times the rate.
const fn application(
    name: &'static str,
    query: &'static str,
    captures: [&'static str; 2],
) -> OffloadCase {
    let (bytes, flows) = (60, 10_000);
    OffloadCase { name, query: Asked::Library(query), bytes, flows, captures, aim: 1.0 / 1.4 }
}

/// In place of a way to capture, this names [`bpftrace`].
const BPFTRACE: &str = "bpftrace";

const XDP: [&str; 2] = ["xdp", "xdp"];
const PACKET: [&str; 2] = ["packet", "packet"];

/// The cases, with aims that were set beforehand.
const CASES: [OffloadCase; 18] = [
    case("where, 10 % kept, XDP", TENTH, (1500, 1000), XDP, 0.5),
    case("where, 10 % kept, XDP", TENTH, (60, 1000), XDP, 1.0),
    case("where, 10 % kept, socket filter", TENTH, (60, 1000), PACKET, 1.0),
    case("where, 10 % kept, socket filter", TENTH, (1500, 1000), PACKET, 1.0),
    case("where, 10 % kept, tcx beside AF_PACKET", TENTH, (60, 1000), ["packet", "tcx"], 0.7),
    case("flow meter, XDP", METER, (60, 10_000), XDP, 0.5),
    case("flow meter, socket filter", METER, (60, 10_000), PACKET, 0.5),
    case("count by source, tcx beside AF_PACKET", COUNT, (60, 10_000), ["packet", "tcx"], 0.7),
    case("count by source, tcx beside bpftrace", COUNT, (60, 10_000), [BPFTRACE, "tcx"], 1.0),
    case("headers of all frames, XDP", HEADERS, (1500, 1000), XDP, 1.0),
    case("headers of all frames, socket filter", HEADERS, (1500, 1000), PACKET, 1.0),
    case("trimmed and sent on, XDP", THIN, (1500, 1000), XDP, 1.0),
    application("application: flow meter, AF_XDP", "flow_meter", XDP),
    application("application: TRW, AF_XDP", "trw", XDP),
    application("application: SYN flood, AF_XDP", "syn_flood", XDP),
    application("application: flow meter, AF_PACKET", "flow_meter", PACKET),
    application("application: TRW, AF_PACKET", "trw", PACKET),
    application("application: SYN flood, AF_PACKET", "syn_flood", PACKET),
];

/// Processor time per frame, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct CpuCost {
    weir: f64,
    kernel: f64,
}

impl CpuCost {
    fn total(self) -> f64 {
        self.weir + self.kernel
    }
}

/// Measures, and gives the table.
pub(crate) fn run(options: &OffloadOptions) -> Result<String> {
    ensure!(
        options.pin.len() == 2 && options.pin[0] != options.pin[1],
        "--pin takes two processors, one for the sender and one for the receiver"
    );
    let weir = beside("weir")?;
    ensure!(weir.exists(), "{} is not there: cargo build --release", weir.display());
    let help = Command::new(&weir).args(["run", "--help"]).output().context("running weir")?;
    let can_offload = String::from_utf8_lossy(&help.stdout).contains("--offload");
    let wire = Wire::make(options.pin[1], true)?;
    wire.make_onward()?;
    wire.attend(Napi::Threads)?;
    let wanted = |case: &&OffloadCase| options.only.as_ref().is_none_or(|o| o.is_match(case.name));
    let cases: Vec<&OffloadCase> = CASES.iter().filter(wanted).collect();
    ensure!(!cases.is_empty(), "no case is left to run");
    let there = is_installed(BPFTRACE);
    let (cases, without): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| there || !case.captures.contains(&BPFTRACE));
    for case in without {
        writeln!(io::stderr(), "left out, since bpftrace is not installed: {}", case.name)?;
    }
    let mut costs: Vec<Vec<[CpuCost; 2]>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (case, costs) in cases.iter().zip(&mut costs) {
            writeln!(io::stderr(), "round {}: {}, {} bytes", round + 1, case.name, case.bytes)?;
            let bench = OffloadRun { options, wire: &wire, weir: &weir, case, can_offload };
            // Each way is first in turn.
            let mut pair = [CpuCost { weir: 0.0, kernel: 0.0 }; 2];
            for way in [usize::from(round % 2), usize::from(1 - round % 2)] {
                let name = || format!("{}, {}", case.name, if way == 1 { "on" } else { "off" });
                pair[way] = bench.without_loss(way).with_context(name)?;
            }
            costs.push(pair);
        }
    }
    Ok(markdown(options, can_offload, &cases, &costs))
}

fn markdown(
    options: &OffloadOptions,
    can_offload: bool,
    cases: &[&OffloadCase],
    costs: &[Vec<[CpuCost; 2]>],
) -> String {
    let OffloadOptions { rounds, rate, window_ms, .. } = options;
    let mut out = format!(
        "Nanoseconds of processor time per frame, at {rate} frames a second; medians (and \
         quartiles) of {rounds} rounds of {window_ms} ms.{}\n\n\
         | case | bytes | without: Weir | kernel | with: Weir | kernel | × without | at most |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
        if can_offload { "" } else { " This Weir can't offload: both ways are without it." },
    );
    for (case, costs) in cases.iter().zip(costs) {
        let part = |way: usize, part: fn(CpuCost) -> f64| {
            let Spread { low, median, high } = Spread::of(costs.iter().map(|c| part(c[way])));
            format!("{median:.0} ({low:.0}–{high:.0})")
        };
        let ratio = Spread::of(costs.iter().map(|[off, on]| on.total() / off.total()));
        let reached = if ratio.median <= case.aim { "yes" } else { "no" };
        let Spread { low, median, high } = ratio;
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {median:.2} ({low:.2}–{high:.2}) | {:.2}: {reached} |",
            case.name,
            case.bytes,
            part(0, |c| c.weir),
            part(0, |c| c.kernel),
            part(1, |c| c.weir),
            part(1, |c| c.kernel),
            case.aim,
        );
    }
    out
}

/// One case.
struct OffloadRun<'a> {
    options: &'a OffloadOptions,
    wire: &'a Wire,
    weir: &'a std::path::Path,
    case: &'a OffloadCase,
    can_offload: bool,
}

impl OffloadRun<'_> {
    /// Runs as often as it takes for the wire to lose no frame: an interruption of the machine can
    /// do that, whatever Weir does.
    fn without_loss(&self, way: usize) -> Result<CpuCost> {
        for _ in 0..TRIES {
            if let Some(cost) = self.run(way)? {
                return Ok(cost);
            }
            writeln!(io::stderr(), "  the wire lost frames: once more")?;
        }
        anyhow::bail!("the wire lost frames {TRIES} times: ask for a lower --rate")
    }

    /// Runs Weir without offload, or bpftrace in its place (0), or Weir with it (1); `None` if the
    /// wire lost frames.
    fn run(&self, way: usize) -> Result<Option<CpuCost>> {
        let mut child = self.start(way)?;
        let measured = self.measure(&mut child, self.is_bpftrace(way));
        // It ends in any case, and what it says is wanted where something failed.
        interrupt(&child)?;
        if self.is_bpftrace(way) {
            bpftrace::end(&mut child)?;
        }
        let who = if self.is_bpftrace(way) { BPFTRACE } else { "weir" };
        let said = child.wait_with_output().with_context(|| format!("waiting for {who}"))?;
        let ledger = String::from_utf8_lossy(&said.stderr).into_owned();
        ensure!(said.status.success(), "{who} failed ({}): {ledger}", said.status);
        let Some((cost, frames)) = measured.with_context(|| ledger.clone())? else {
            return Ok(None);
        };
        let received = match self.is_bpftrace(way) {
            true => bpftrace::counted(&String::from_utf8_lossy(&said.stdout)),
            false => received(&ledger),
        };
        let received = received.with_context(|| ledger.clone())?;
        ensure!(received == frames, "{who} received {received} of {frames} frames: {ledger}");
        Ok(Some(cost))
    }

    fn is_bpftrace(&self, way: usize) -> bool {
        self.case.captures[way] == BPFTRACE
    }

    fn start(&self, way: usize) -> Result<Child> {
        if self.is_bpftrace(way) {
            return bpftrace::start(self.options.pin[1]);
        }
        let mut command = Command::new("taskset");
        command.args(["-c", &self.options.pin[1].to_string()]).arg(self.weir);
        command.args(["run", "-j", "1", "-i", RECEIVER, "-o", "json"]);
        match self.case.query {
            Asked::Text(text) => command.args(["-e", text]),
            Asked::Library(name) => command.arg(name),
        };
        command.args(["-Q", "in", "--capture", self.case.captures[way]]);
        if self.can_offload {
            command.args(["--offload", if way == 1 { "require" } else { "off" }]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().context("starting taskset and weir")
    }

    /// The time that both took in a window, and how many frames were sent in all; `None` if the
    /// wire lost some.
    fn measure(&self, weir: &mut Child, is_bpftrace: bool) -> Result<Option<(CpuCost, u64)>> {
        if !is_bpftrace {
            self.wait_for(weir)?;
        }
        self.wire.place_threads()?;
        let first = self.wire.counts()?;
        let mut sender = self.sender()?.spawn().context("starting the sender")?;
        pause(WARM_UP_MS);
        let before = self.look(weir)?;
        pause(self.options.window_ms);
        let after = self.look(weir)?;
        ensure!(sender.wait().context("waiting for the sender")?.success(), "the sender failed");
        pause(WARM_UP_MS);
        let last = self.wire.counts()?;
        if last.dropped != first.dropped {
            return Ok(None);
        }
        let frames = (after.0.received - before.0.received) as f64;
        let rate = frames / (self.options.window_ms as f64 / 1000.0);
        ensure!(
            rate > 0.9 * f64::from(self.options.rate),
            "the sender reached {rate:.0} frames a second: ask for a lower --rate"
        );
        let weir = (after.1 - before.1) as f64 / frames;
        let kernel = (after.2 - before.2) as f64 / frames;
        Ok(Some((CpuCost { weir, kernel }, last.received - first.received)))
    }

    /// Waits until it captures: once it has opened everything, it gives up what it may do.
    fn wait_for(&self, weir: &mut Child) -> Result<()> {
        let path = format!("/proc/{}/status", weir.id());
        for _ in 0..START_MS / 20 {
            pause(20);
            ensure!(weir.try_wait().context("looking at weir")?.is_none(), "weir ended");
            let status = fs::read_to_string(&path).with_context(|| path.clone())?;
            if status.lines().any(|line| line == "Seccomp:\t2") {
                return Ok(());
            }
        }
        anyhow::bail!("weir did not begin within {START_MS} ms")
    }

    /// The counters of the interface, and the time that Weir and the threads of NAPI took.
    fn look(&self, weir: &Child) -> Result<(Counts, u64, u64)> {
        let napi = threads(&format!("napi/{RECEIVER}-"))?;
        let napi = napi.into_iter().map(|id| took(id as u32)).sum::<Result<u64>>()?;
        Ok((self.wire.counts()?, took(weir.id())?, napi))
    }

    fn sender(&self) -> Result<Command> {
        let ms = 2 * WARM_UP_MS + self.options.window_ms;
        let mut command = this_program()?;
        command.args(["send", "--bytes", &self.case.bytes.to_string()]);
        command.args(["--flows", &self.case.flows.to_string(), "--frames", "2147483647"]);
        command.args(["--ms", &ms.to_string(), "--cpu", &self.options.pin[0].to_string()]);
        command.args(["--rate", &self.options.rate.to_string()]);
        if matches!(self.case.query, Asked::Library(_)) {
            command.arg("--tcp");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }
}

/// Nanoseconds that all threads of a process took.
fn took(process: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).context("reading threads")? {
        let path = thread.context("reading threads")?.path().join("schedstat");
        // A thread may have ended.
        let text = fs::read_to_string(path).unwrap_or_default();
        sum += text.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

fn interrupt(weir: &Child) -> Result<()> {
    let id = rustix::process::Pid::from_child(weir);
    rustix::process::kill_process(id, rustix::process::Signal::INT).context("ending weir")
}

/// The packets that a ledger says were received.
fn received(ledger: &str) -> Result<u64> {
    let at = Regex::new("received +([0-9]+)").context("a pattern")?;
    let found = at.captures(ledger).context("no count of received packets")?;
    found[1].parse().context("a count")
}
