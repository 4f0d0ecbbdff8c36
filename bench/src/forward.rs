//! Network functions: Weir between a client and its servers, beside the kernel doing the same.
//!
//! In each round everybody stands between them once, one directly after the other; the order turns
//! round by round. All of them have the same interfaces, of one namespace, whose frames are whole
//! and have their check sums. Nothing about time is asserted; a function that lets nothing
//! through, or more frames through than were sent, is an error.

mod ends;
mod function;
mod network;
mod role;
mod run;
mod table;

pub(crate) use ends::End;

use crate::measure::{number, value};
use crate::timing::{Stopwatch, pause_ms};
use anyhow::{Context, Result, bail, ensure};
use function::Function;
use network::Network;
use run::{Datagrams, ForwardRun, Forwarder};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use table::Line;

/// The measurement that is asked for.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ForwardOptions {
    /// Rounds; one more before them is not counted.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Functions; all of them unless told otherwise.
    #[arg(long, value_enum, value_delimiter = ',')]
    function: Vec<Function>,
    /// Which programs run it; all of them unless told otherwise.
    #[arg(long, value_enum, value_delimiter = ',')]
    by: Vec<Forwarder>,
    /// Milliseconds of each load.
    #[arg(long, default_value_t = 500)]
    ms: u64,
    /// Round trips at most.
    #[arg(long, default_value_t = 300)]
    trips: u64,
    /// Only check that everything works: no round to warm up.
    #[arg(long)]
    check: bool,
    /// Write every single measurement to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Datagrams of a load: bytes of each payload, and how many a millisecond; 0 for as many as go.
const STEADY: (u64, u64) = (1400, 18);
const SMALL: (u64, u64) = (18, 0);

/// Frames of earlier connections that may be counted with datagrams, at most: what receives them
/// counts frames, whatever they carry.
const STRAY_MAX: u64 = 16;

/// Milliseconds of a transfer before those that count.
const WARM_UP_MS: u64 = 200;

/// Measures, and gives the table.
pub(crate) fn run(options: &ForwardOptions) -> Result<String> {
    let or_all =
        |some: &[Function]| if some.is_empty() { Function::ALL.to_vec() } else { some.to_vec() };
    let weir = crate::process::beside("weir")?;
    ensure!(weir.is_file(), "build it first: cargo build --release -p weir");
    let mut network = Network::make()?;
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    for function in or_all(&options.function) {
        let mut ways =
            if options.by.is_empty() { Forwarder::ALL.to_vec() } else { options.by.clone() };
        if function.takes_nft()
            && ways.contains(&Forwarder::Kernel)
            && !crate::process::is_installed("nft")
        {
            left_out.push(format!("{}: nft is not installed", function.of_the_kernel()));
            ways.retain(|&way| way != Forwarder::Kernel);
        }
        ensure!(!ways.is_empty(), "nobody is left to run");
        let mut line = Line { function, rounds: Vec::new() };
        for round in u16::from(options.check)..=options.rounds {
            let mut runs = Vec::new();
            for at in 0..ways.len() {
                // Everybody is first in turn, and comes after everybody else.
                let way = ways[(at + usize::from(round)) % ways.len()];
                let title = way.title(function);
                let of = options.rounds;
                writeln!(io::stderr(), "round {round} of {of}: {}: {title}", function.title())?;
                let mut bench = Bench { options, weir: &weir, network: &mut network, function };
                let run = bench.run(way);
                runs.push(run.with_context(|| format!("{}: {title}", function.title()))?);
            }
            line.rounds.extend((round > 0).then_some(runs));
        }
        lines.push(line);
    }
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", table::json(&lines));
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(table::markdown(options.rounds, &lines, &left_out))
}

/// The parts that all runs share.
struct Bench<'a> {
    options: &'a ForwardOptions,
    weir: &'a Path,
    network: &'a mut Network,
    function: Function,
}

impl Bench<'_> {
    fn run(&mut self, way: Forwarder) -> Result<ForwardRun> {
        if way == Forwarder::Kernel {
            self.function.begin_in_the_kernel()?;
            let run = self.measure(way);
            self.function.end_in_the_kernel()?;
            return run;
        }
        let weir = Weir::start(self.weir, self.function, way)?;
        let run = self.measure(way);
        // Its errors say more than that nothing came through.
        let told = weir.end()?;
        run.context(told)
    }

    fn measure(&mut self, way: Forwarder) -> Result<ForwardRun> {
        let knock = u8::from(self.function == Function::Wall);
        let open = self.network.client.ask(&format!("open knock={knock}"))?;
        ensure!(open == "open", "nothing came through within ten seconds");
        let ForwardOptions { ms, trips, .. } = *self.options;
        let echo = self.network.client.ask(&format!("echo most={trips} ms={ms}"))?;
        let times = value(&echo, "times")?.split(',').filter(|time| !time.is_empty());
        let trips = times.map(str::parse).collect::<Result<Vec<u64>, _>>().context("times")?;
        let steady = self.datagrams(STEADY)?;
        let small = self.datagrams(SMALL)?;
        let (bits, again, busy) = self.transfer()?;
        let trips_lost = number(&echo, "lost")?;
        Ok(ForwardRun { way, trips, trips_lost, steady, small, bits, again, busy })
    }

    fn datagrams(&mut self, (bytes, each_ms): (u64, u64)) -> Result<Datagrams> {
        let before = self.network.settle()?;
        let ms = self.options.ms;
        let ask = format!("datagrams bytes={bytes} each_ms={each_ms} ms={ms}");
        let answer = self.network.client.ask(&ask)?;
        let received = self.network.settle()? - before;
        let (sent, ns) = (number(&answer, "sent")?, number(&answer, "ns")?);
        let most = sent + STRAY_MAX;
        ensure!(received <= most, "{received} datagrams were received, and {sent} sent");
        let received = received.min(sent);
        Ok(Datagrams { sent, received, ns })
    }

    /// Several connections at once, towards the servers.
    fn transfer(&mut self) -> Result<(f64, u64, f64)> {
        let again = number(&self.network.client.ask("count")?, "again")?;
        let running = self.network.client.ask("transfer")?;
        ensure!(running == "running", "{running}");
        pause_ms(WARM_UP_MS);
        let (before, busy, watch) = (self.network.sum("bytes")?, busy_s()?, Stopwatch::start());
        pause_ms(self.options.ms);
        let seconds = watch.read().wall.as_secs_f64();
        let (bytes, busy) = (self.network.sum("bytes")? - before, busy_s()? - busy);
        let done = self.network.client.ask("stop")?;
        ensure!(done == "done", "{done}");
        let again = number(&self.network.client.ask("count")?, "again")? - again;
        Ok((bytes as f64 * 8.0 / seconds, again, busy / seconds))
    }
}

/// Seconds that all processors together were busy since the machine started.
fn busy_s() -> Result<f64> {
    /// User, nice, system, interrupts, soft interrupts: hundredths of a second (proc(5)).
    const BUSY: [usize; 5] = [0, 1, 2, 5, 6];
    let stat = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).context("/proc/stat")?;
    let values: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let ticks: u64 = BUSY.iter().filter_map(|&at| values.get(at)).sum();
    Ok(ticks as f64 / 100.0)
}

/// Weir, as users run it.
struct Weir(Child);

impl Weir {
    fn start(program: &Path, function: Function, way: Forwarder) -> Result<Weir> {
        let prefix = if way == Forwarder::XdpOut { "xdp:" } else { "" };
        let mut command = Command::new(program);
        command.args(["run", "-e", &function.query(prefix), "-q", "-i", Network::CLIENT]);
        for at in 0..function.servers() {
            command.args(["-i", &Network::server(at)]);
        }
        match way {
            Forwarder::Xdp | Forwarder::XdpTwo => command.args(["--capture", "xdp"]),
            Forwarder::XdpKernel => command.args(["--capture", "xdp", "--offload", "require"]),
            Forwarder::Kernel | Forwarder::Packet | Forwarder::PacketTwo | Forwarder::XdpOut => {
                command.args(["-Q", "in"])
            }
        };
        let two = matches!(way, Forwarder::PacketTwo | Forwarder::XdpTwo);
        command.args(["-j", if two { "2" } else { "1" }]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Ok(Weir(command.spawn().with_context(|| program.display().to_string())?))
    }

    /// Ends it as Ctrl-C does; what it wrote to standard error.
    fn end(mut self) -> Result<String> {
        let id = Pid::from_child(&self.0);
        if self.0.try_wait().context("waiting for weir")?.is_none() {
            kill_process(id, Signal::INT).context("ending weir")?;
        }
        let mut errors = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            io::Read::read_to_string(&mut stderr, &mut errors).context("listening to weir")?;
        }
        let status = self.0.wait().context("waiting for weir")?;
        if !status.success() {
            bail!("weir failed ({status}): {}", errors.trim());
        }
        Ok(errors)
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        // It may have ended by itself; if not, nobody is left to hear of it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
