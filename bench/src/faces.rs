//! The cost for a run that others look at: metrics that are asked for, rows that browsers follow.
//! Whole processes of the program that users have, beside one at which nobody looks.

use crate::arguments::{OUT, Rounds, preset};
use crate::process;
use crate::stats::{Spread, median};
use crate::sys;
use crate::timing::{Stopwatch, Whole, time_child};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, scope, sleep};
use std::time::Duration;

/// The query: of those of the library it puts out the most rows for its packets.
const QUERY: &str = "source_counts";
/// The name of its program.
const PROGRAM: &str = "sources";
/// The token of a client that may ask.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// How often metrics are asked for: ten times as often as Prometheus may be told to.
const PAUSE: Duration = Duration::from_millis(100);

/// The runs to measure.
#[derive(clap::Args, Debug)]
pub(crate) struct FacesOptions {
    /// The trace.
    #[arg(long, default_value = "a")]
    trace: String,
    /// Its packets; fewer make a quick check, not a measurement.
    #[arg(short = 'n', long)]
    packets: Option<u64>,
    /// Pages that are open, too: takes a Weir with the feature `serve`.
    #[arg(long)]
    pages: bool,
    /// Browsers that follow the rows at the same time.
    #[arg(long, default_value_t = 50)]
    browsers: usize,
    /// Fail unless the middle of the wall time, where packets do not wait, is at most so many times
    /// that without anybody.
    #[arg(long)]
    at_most: Option<f64>,
    #[command(flatten)]
    rounds: Rounds,
    /// Where traces are kept.
    #[arg(long, default_value = OUT, hide_default_value = true)]
    out: PathBuf,
}

/// The clients that look at a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lookers {
    Nobody,
    /// There is none, though browsers and other programs could.
    Absent,
    /// Somebody who asks for metrics again and again.
    Metrics,
    /// So many who follow the rows, and somebody who asks for rows and never reads them.
    Followers {
        /// Pages, which get the rows that are kept; else clients that want every row.
        pages: bool,
        reading: usize,
        stuck: bool,
    },
}

/// How a run treats rows that are not taken in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LateRows {
    /// Packets wait for them, as those of files do.
    AwaitedByPackets,
    /// They are dropped, as on a wire.
    Dropped,
}

impl LateRows {
    /// As an option of a run says it.
    fn option(self) -> &'static str {
        match self {
            LateRows::AwaitedByPackets => "wait",
            LateRows::Dropped => "drop",
        }
    }
}

/// The time that a run took, and the bytes that its lookers got.
struct Seen {
    whole: Whole,
    /// Bytes that lookers have read.
    bytes: u64,
}

/// Runs each in turn, and prints what it took.
pub(crate) fn run(options: &FacesOptions) -> Result<String> {
    let preset = preset(&options.trace)?;
    let mut trace = preset.options.clone();
    trace.packets = options.packets.unwrap_or(trace.packets);
    let (file, truth) = trace.make(&options.out)?;
    let held = sys::map(&file).with_context(|| file.display().to_string())?;
    let _ = held.lock();
    let folder = tempfile::tempdir().context("a folder for the token")?;
    let token = folder.path().join("token");
    write_secret(&token)?;
    let followers = |pages| {
        let many = options.browsers;
        [(1, false), (many, true)].map(|(reading, stuck)| Lookers::Followers {
            pages,
            reading,
            stuck,
        })
    };
    let mut all = vec![Lookers::Nobody, Lookers::Absent, Lookers::Metrics];
    all.extend(options.pages.then(|| followers(true)).into_iter().flatten());
    all.extend(followers(false));
    let mut out =
        format!("Trace {}: {} packets; `weir run {QUERY}`.\n", preset.name, truth.packets);
    for late in [LateRows::Dropped, LateRows::AwaitedByPackets] {
        let mut runs: Vec<Vec<Seen>> = all.iter().map(|_| Vec::new()).collect();
        for round in 0..=options.rounds.rounds {
            for (lookers, runs) in all.iter().zip(&mut runs) {
                let seen = lookers.look(&file, &token, late)?;
                runs.extend((round > 0).then_some(seen));
            }
        }
        let (table, most) = table(&all, &runs);
        if let Some(at_most) = options.at_most.filter(|_| late == LateRows::Dropped) {
            ensure!(most <= at_most, "{most:.3} times the wall time, and not {at_most}\n{table}");
        }
        let _ = write!(out, "\n`--slow-sink {}`:\n\n{table}", late.option());
    }
    Ok(out)
}

/// A token that other users can't read, as Weir wants it.
fn write_secret(token: &Path) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(token);
    let mut file = file.with_context(|| token.display().to_string())?;
    file.write_all(TOKEN.as_bytes()).context("the token")
}

/// A line for each, and the largest wall time by that of nobody.
fn table(all: &[Lookers], runs: &[Vec<Seen>]) -> (String, f64) {
    let mut out =
        String::from("| who looks | s | wall × | CPU × | MB read |\n|---|---:|---:|---:|---:|\n");
    let mut most = 1.0_f64;
    for (lookers, seen) in all.iter().zip(runs) {
        let pairs = || seen.iter().zip(&runs[0]).map(|(a, b)| (a.whole, b.whole));
        let wall = pairs().map(|(a, b)| a.wall.as_secs_f64() / b.wall.as_secs_f64());
        let cpu = pairs().map(|(a, b)| a.cpu.as_secs_f64() / b.cpu.as_secs_f64());
        let (wall, cpu) = (Spread::of(wall), Spread::of(cpu));
        most = most.max(wall.median);
        let seconds = median(seen.iter().map(|seen| seen.whole.wall.as_secs_f64()));
        let read = median(seen.iter().map(|seen| seen.bytes as f64 / 1e6));
        let _ = writeln!(
            out,
            "| {} | {seconds:.2} | {:.3} ({:.3}–{:.3}) | {:.3} ({:.3}–{:.3}) | {read:.1} |",
            lookers.name(),
            wall.median,
            wall.low,
            wall.high,
            cpu.median,
            cpu.low,
            cpu.high,
        );
    }
    (out, most)
}

impl Lookers {
    fn name(self) -> String {
        match self {
            Lookers::Nobody => "nobody".to_owned(),
            Lookers::Absent => "nobody, but a page is open to all".to_owned(),
            Lookers::Metrics => "metrics, asked for every 100 ms".to_owned(),
            Lookers::Followers { pages, reading, stuck } => {
                let who = match (pages, reading) {
                    (true, 1) => "a page".to_owned(),
                    (true, n) => format!("{n} pages"),
                    (false, 1) => "a client that wants all rows".to_owned(),
                    (false, n) => format!("{n} clients that want all rows"),
                };
                who + if stuck { ", and one that never reads" } else { "" }
            }
        }
    }

    /// Runs Weir over a trace, and looks at it until it ends.
    fn look(self, trace: &Path, token: &Path, late: LateRows) -> Result<Seen> {
        let mut command = Command::new(process::beside("weir")?);
        command.args(["run", QUERY, "-o", "json", "--slow-sink", late.option(), "-r"]).arg(trace);
        let open = match self {
            Lookers::Nobody => None,
            Lookers::Metrics => Some("--metrics"),
            Lookers::Absent | Lookers::Followers { .. } => Some("--http"),
        };
        if let Some(open) = open {
            command.args([open, "127.0.0.1:0", "--http-token-file"]).arg(token);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let all = Looking::default();
        let (result, whole) = time_child(|| {
            let watch = Stopwatch::start();
            let mut child = command.spawn().context("build it first: weir")?;
            let errors = child.stderr.take().context("its standard error")?;
            let mut lines = BufReader::new(errors).lines();
            scope(|scope| {
                if open.is_some() {
                    let address = address(&mut child, &mut lines)?;
                    self.start(scope, &address, &all);
                }
                // It would wait for a full pipe.
                let rest = scope.spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
                let status = child.wait().context("waiting for weir");
                // The lookers may take longer to see that.
                let wall = watch.read().wall;
                all.ended.store(true, Ordering::Relaxed);
                let rest = rest.join().unwrap_or_default().join("\n");
                let status = status?;
                ensure!(status.success(), "weir failed ({status}): {rest}");
                Ok(wall)
            })
        })?;
        let whole = Whole { wall: result?, ..whole };
        let bytes = all.bytes.load(Ordering::Relaxed);
        ensure!(!all.refused.load(Ordering::Relaxed), "{}: refused", self.name());
        let looks = !matches!(self, Lookers::Nobody | Lookers::Absent);
        ensure!(!looks || bytes > 0, "{}: nothing was seen", self.name());
        Ok(Seen { whole, bytes })
    }

    /// Starts whoever looks.
    #[expect(clippy::disallowed_methods, reason = "who looks does so again after a while")]
    fn start<'scope>(self, scope: &'scope Scope<'scope, '_>, address: &str, all: &'scope Looking) {
        let ask = |path: &str, accept: &str| {
            format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
                 Accept: {accept}\r\nConnection: close\r\n\r\n"
            )
        };
        match self {
            Lookers::Nobody | Lookers::Absent => {}
            Lookers::Metrics => {
                let (address, request) = (address.to_owned(), ask("/metrics", "text/plain"));
                scope.spawn(move || {
                    while !all.ended.load(Ordering::Relaxed) {
                        all.read(&address, &request);
                        sleep(PAUSE);
                    }
                });
            }
            Lookers::Followers { pages, reading, stuck } => {
                let path = match pages {
                    true => format!("/api/v1/recent?programs={PROGRAM}"),
                    false => format!("/api/v1/rows?program={PROGRAM}"),
                };
                let request = ask(&path, "text/event-stream");
                for _ in 0..reading {
                    let (address, request) = (address.to_owned(), request.clone());
                    scope.spawn(move || all.read(&address, &request));
                }
                if stuck {
                    let address = address.to_owned();
                    scope.spawn(move || {
                        let Ok(mut socket) = TcpStream::connect(address) else { return };
                        let asked = socket.write_all(request.as_bytes());
                        while asked.is_ok() && !all.ended.load(Ordering::Relaxed) {
                            sleep(PAUSE);
                        }
                    });
                }
            }
        }
    }
}

/// The state that all who look at a run share.
#[derive(Default)]
struct Looking {
    /// The run is over.
    ended: AtomicBool,
    /// Somebody was given no answer but an error.
    refused: AtomicBool,
    /// Bytes that they have read.
    bytes: AtomicU64,
}

impl Looking {
    /// Asks, and reads until the other side closes. A run that has just ended answers nobody.
    fn read(&self, address: &str, request: &str) {
        let Ok(mut socket) = TcpStream::connect(address) else { return };
        if socket.write_all(request.as_bytes()).is_err() {
            return;
        }
        let (mut buffer, mut is_first) = ([0; 1 << 16], true);
        while let Ok(n @ 1..) = socket.read(&mut buffer) {
            if is_first && !buffer[..n].starts_with(b"HTTP/1.1 200 ") {
                self.refused.store(true, Ordering::Relaxed);
            }
            is_first = false;
            self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        }
    }
}

/// Where a run answers, which it says when it begins.
fn address(
    child: &mut Child,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
) -> Result<String> {
    let mut said = Vec::new();
    for line in lines {
        let line = line.context("listening to weir")?;
        let found = line.split_once("http://").and_then(|(_, rest)| rest.split_once('/'));
        if let Some((address, _)) = found {
            return Ok(address.to_owned());
        }
        said.push(line);
    }
    let status = child.wait().context("waiting for weir")?;
    anyhow::bail!("weir ended ({status}) without an address: {}", said.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let seen = |wall: u64, bytes| {
            let time = Duration::from_millis(wall);
            Seen { whole: Whole { cpu: time * 2, wall: time }, bytes }
        };
        let runs =
            [vec![seen(100, 0), seen(200, 0)], vec![seen(110, 3_000_000), seen(210, 1_000_000)]];
        let (table, most) = table(&[Lookers::Nobody, Lookers::Metrics], &runs);
        assert!((most - 1.075).abs() < 1e-9, "{most}");
        let last = table.lines().last().expect("a line");
        assert!(last.starts_with("| metrics, asked for every 100 ms | 0.16 | 1.075 ("), "{last}");
        assert!(last.ends_with(" | 2.0 |"), "{last}");
    }
}
