//! Transfers of Weir into Kafka and out of it, beside those of the bare client with the same
//! records.
//!
//! The bare client is a process of its own, whose time begins when it makes its client and ends
//! with the last delivery; what it sends, it holds in memory before that. Weir's time is that of
//! whole processes: it starts, reads a capture, runs its query and connects in that time.

use super::client::{read_to_end, send_all};
use super::record::{KafkaRecord, Topic};
use super::servers::Servers;
use crate::measure::{number, value};
use crate::process;
use crate::sys::{self, Who};
use crate::timing::{Stopwatch, Whole};
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Partitions of a topic of packets.
pub(super) const PARTITIONS: usize = 2;

/// The name of the one probe.
const PROBE: &str = "north";

/// The query of which partial results travel: about one group for every two packets, so that what
/// is sent counts more than what is computed.
const PARTIALS: &str =
    "packets | summarize packets = count(), bytes = sum(len) by ip.src every 100ms";

/// The query of hosts that take packets from a topic.
const COUNTS: &str = "packets | summarize packets = count() by ip.src every 10s";

/// The kind of record that travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Freight {
    Packets,
    Partials,
}

/// Which way it travels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Direction {
    IntoKafka,
    OutOfKafka,
}

/// The one that carries it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Carrier {
    Weir,
    Bare,
}

/// A measurement that is made in every round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Transfer {
    pub(super) direction: Direction,
    pub(super) freight: Freight,
    pub(super) carrier: Carrier,
}

impl Transfer {
    /// All of a direction, in the order of the table.
    pub(super) fn all(direction: Direction) -> [Transfer; 4] {
        [
            (Freight::Packets, Carrier::Weir),
            (Freight::Packets, Carrier::Bare),
            (Freight::Partials, Carrier::Weir),
            (Freight::Partials, Carrier::Bare),
        ]
        .map(|(freight, carrier)| Transfer { direction, freight, carrier })
    }
}

/// The amount of records in a topic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TopicLoad {
    pub(super) records: u64,
    /// Bytes of them before compression.
    pub(super) bytes: u64,
    /// The packets or the groups in them.
    pub(super) items: u64,
}

/// The capture and the topics that every round begins with.
pub(super) struct Transfers {
    pub(super) weir: PathBuf,
    pub(super) trace: PathBuf,
    pub(super) packets: u64,
    folder: PathBuf,
    loads: [TopicLoad; 2],
}

impl Transfers {
    /// Fills a topic of packets and one of partial results.
    pub(super) fn prepare(
        trace: PathBuf,
        packets: u64,
        folder: &Path,
        servers: &Servers,
    ) -> Result<Transfers> {
        let weir = weir()?;
        let empty = TopicLoad { records: 0, bytes: 0, items: 0 };
        let folder = folder.to_owned();
        let mut transfers = Transfers { weir, trace, packets, folder, loads: [empty, empty] };
        for freight in [Freight::Packets, Freight::Partials] {
            let topic = transfers.source(freight);
            make_topic(servers, topic, freight)?;
            process::run("weir", &mut transfers.sending(servers, freight, topic))?;
            let (records, bytes) = read(servers, topic)?;
            let items = match freight {
                Freight::Packets => packets,
                Freight::Partials => transfers.groups()?,
            };
            transfers.loads[freight as usize] = TopicLoad { records, bytes, items };
        }
        Ok(transfers)
    }

    pub(super) fn load(&self, freight: Freight) -> TopicLoad {
        self.loads[freight as usize]
    }

    /// The topic that everything is read from, and that the bare client sends once more.
    pub(super) fn source(&self, freight: Freight) -> &'static str {
        match freight {
            Freight::Packets => "packets",
            Freight::Partials => "partials",
        }
    }

    /// Groups that the partial results have: rows of the same query.
    fn groups(&self) -> Result<u64> {
        let rows = self.rows_of(
            Command::new(&self.weir)
                .args(["run", "-q", "-o", "json", "-e", PARTIALS, "-r"])
                .arg(&self.trace),
        )?;
        Ok(rows.0)
    }

    /// Measures once; `round` names topics that nobody else has.
    pub(super) fn measure(
        &self,
        servers: &Servers,
        transfer: Transfer,
        round: usize,
    ) -> Result<Whole> {
        let Transfer { direction, freight, carrier } = transfer;
        let source = self.source(freight);
        let target = format!("{source}-{carrier:?}-{round}").to_lowercase();
        match (direction, carrier) {
            (Direction::IntoKafka, Carrier::Weir) => {
                make_topic(servers, &target, freight)?;
                let whole =
                    process::run("weir", &mut self.sending(servers, freight, &target))?.whole;
                self.check(servers, freight, &target)?;
                Ok(whole)
            }
            (Direction::IntoKafka, Carrier::Bare) => {
                make_topic(servers, &target, freight)?;
                let whole = self.bare(servers, source, Some(&target))?;
                self.check(servers, freight, &target)?;
                Ok(whole)
            }
            (Direction::OutOfKafka, Carrier::Bare) => self.bare(servers, source, None),
            (Direction::OutOfKafka, Carrier::Weir) => {
                let group = format!("bench-{round}");
                self.out_of_kafka(servers, freight, &group)
            }
        }
    }

    /// Weir, sending what is in the capture.
    fn sending(&self, servers: &Servers, freight: Freight, topic: &str) -> Command {
        let mut command = Command::new(&self.weir);
        let url = servers.url(topic);
        match freight {
            Freight::Packets => command.args([
                "run",
                "-q",
                "-e",
                "packets | pass",
                "--spread-by",
                "ip.src",
                "-w",
                &url,
            ]),
            Freight::Partials => {
                command.args(["run", "-q", "-e", PARTIALS, "--publish", &url, "--probe", PROBE])
            }
        };
        command.arg("-r").arg(&self.trace);
        command
    }

    /// Weir must take from a topic all records that are in it.
    fn out_of_kafka(&self, servers: &Servers, freight: Freight, group: &str) -> Result<Whole> {
        let (_, packets, whole) = match freight {
            Freight::Packets => self.by_group(servers, COUNTS, group)?,
            Freight::Partials => {
                let mut command = Command::new(&self.weir);
                let url = servers.url(self.source(freight));
                command.args(["merge", "-e", PARTIALS, "--from", &url, "--probes", PROBE]);
                self.rows_of(command.args(["--until", "end", "-q", "-o", "json"]))?
            }
        };
        ensure!(packets == self.packets, "{packets} of {} packets were counted", self.packets);
        Ok(whole)
    }

    /// A host that is alone in its group counts the packets of the topic, and puts rows into
    /// another one: how many, the sum of their column `packets`, and what the host took.
    pub(super) fn by_group(
        &self,
        servers: &Servers,
        query: &str,
        group: &str,
    ) -> Result<(u64, u64, Whole)> {
        let rows = format!("rows-{group}");
        servers.make_topic(&rows, 1)?;
        let (from, to) = (servers.url(self.source(Freight::Packets)), servers.url(&rows));
        let mut command = Command::new(&self.weir);
        command.args(["run", "-q", "-e", query, "-i", &from, "--group", group]);
        command.args(["--until", "end", "--rows", &to]);
        let whole = process::run("weir", &mut command)?.whole;
        let mut kept = Vec::new();
        read_to_end(Topic { brokers: &servers.brokers(), name: &rows }, Some(&mut kept))?;
        let (mut count, mut sum) = (0, 0);
        for row in kept {
            let (_, packets) = sum_of_column(&String::from_utf8(row.value)?, "packets")?;
            (count, sum) = (count + 1, sum + packets);
        }
        Ok((count, sum, whole))
    }

    /// The rows that a command writes as JSON, the sum of their column `packets`, and what it took.
    pub(super) fn rows_of(&self, command: &mut Command) -> Result<(u64, u64, Whole)> {
        let path = self.folder.join("rows.json");
        let file = File::create(&path).with_context(|| path.display().to_string())?;
        let whole = process::time("weir", command.stdout(file))?;
        let rows = fs::read_to_string(&path).context("rows of weir")?;
        let (count, sum) = sum_of_column(&rows, "packets")?;
        Ok((count, sum, whole))
    }

    fn check(&self, servers: &Servers, freight: Freight, topic: &str) -> Result<()> {
        let TopicLoad { records, bytes, .. } = self.load(freight);
        let found = read(servers, topic)?;
        // Packets wait for others by a clock of packets, so every run makes the same records.
        ensure!(found == (records, bytes), "{topic} has {found:?}, not {records} and {bytes}");
        Ok(())
    }

    /// The bare client in a process of its own: it reads a topic, and writes another, if asked to.
    fn bare(&self, servers: &Servers, from: &str, to: Option<&str>) -> Result<Whole> {
        let mut command = process::this_program()?;
        command.args(["bare-client", "--brokers", &servers.brokers(), "--from", from]);
        command.args(to.into_iter().flat_map(|to| ["--to", to]));
        let done = process::run("the bare client", &mut command)?;
        let seconds = |name| -> Result<Duration> {
            let seconds = value(&done.out, name)?.parse().context("seconds")?;
            Duration::try_from_secs_f64(seconds).context("seconds")
        };
        number(&done.out, "records")?;
        Ok(Whole { cpu: seconds("cpu_s")?, wall: seconds("wall_s")? })
    }
}

/// The program of Weir, which lies beside this one.
pub(super) fn weir() -> Result<PathBuf> {
    let weir = process::beside("weir")?;
    ensure!(weir.is_file(), "build it first: cargo build --release -p weir --features kafka");
    Ok(weir)
}

fn make_topic(servers: &Servers, name: &str, freight: Freight) -> Result<()> {
    let partitions = if freight == Freight::Packets { PARTITIONS } else { 1 };
    servers.make_topic(name, partitions)
}

/// The records of a topic, and their bytes.
fn read(servers: &Servers, topic: &str) -> Result<(u64, u64)> {
    read_to_end(Topic { brokers: &servers.brokers(), name: topic }, None)
}

/// How many rows a text of JSON lines has, and the sum of one of their columns.
fn sum_of_column(text: &str, name: &str) -> Result<(u64, u64)> {
    let name = format!("\"{name}\":");
    let (mut rows, mut sum) = (0, 0);
    for line in text.lines() {
        let (_, rest) = line.split_once(&name).with_context(|| format!("no {name} in {line}"))?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let cell: u64 = rest[..digits].parse().with_context(|| format!("{name} in {line}"))?;
        (rows, sum) = (rows + 1, sum + cell);
    }
    Ok((rows, sum))
}

/// The bare client, as a process.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct BareClient {
    #[arg(long)]
    brokers: String,
    /// The topic that is read.
    #[arg(long)]
    from: String,
    /// The topic that the same records are sent to; what is measured then is this.
    #[arg(long)]
    to: Option<String>,
}

impl BareClient {
    /// Reads, or sends what was read before; prints what that took.
    pub(crate) fn run(&self) -> Result<String> {
        let topic = |name| Topic { brokers: &self.brokers, name };
        let from = topic(&self.from);
        let Some(to) = &self.to else {
            let ((records, _), whole) = timed(|| read_to_end(from, None))?;
            return Ok(print(records, whole));
        };
        let mut kept: Vec<KafkaRecord> = Vec::new();
        let (records, _) = read_to_end(from, Some(&mut kept))?;
        let send = || send_all(topic(to), &mut |send| kept.iter().try_for_each(&mut *send));
        let ((), whole) = timed(send)?;
        Ok(print(records, whole))
    }
}

fn print(records: u64, Whole { cpu, wall }: Whole) -> String {
    format!("records={records} wall_s={:.6} cpu_s={:.6}", wall.as_secs_f64(), cpu.as_secs_f64())
}

/// Time on the wall, and CPU time of all threads of this process.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Whole)> {
    let cpu = || sys::cpu_time(Who::Me).map(|time| time.user + time.system);
    let (before, watch) = (cpu()?, Stopwatch::start());
    let result = work()?;
    let (wall, cpu) = (watch.read().wall, cpu()?.saturating_sub(before));
    Ok((result, Whole { cpu, wall }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_and_summed() {
        let text = "{\"ip.src\":\"10.0.0.1\",\"packets\":3,\"bytes\":60}\n{\"packets\":4}\n";
        assert_eq!(sum_of_column(text, "packets").expect("rows"), (2, 7));
        assert_eq!(sum_of_column("", "packets").expect("no rows"), (0, 0));
        assert!(sum_of_column(text, "flows").is_err());
        assert!(sum_of_column("{\"packets\":null}", "packets").is_err());
    }
}
