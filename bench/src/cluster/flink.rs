//! Packets per source and second: of a topic of packets by Weir, and by a job that Flink does alone
//! (`bench/cluster/PacketCounts.java`); of the capture, from which the topic is, by Weir.

use super::servers::Servers;
use super::transfer::Transfers;
use crate::measure::number;
use crate::process;
use crate::timing::Whole;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The source of the job.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/PacketCounts.java");

/// The class with its `main`.
const CLASS: &str = "weir.bench.PacketCounts";

/// The same in the language.
const QUERY: &str = "packets | where ip | summarize packets = count() by ip.src every 1s";

/// Packages of Java that Flink's client looks into.
const OPENED: [&str; 3] = ["java.lang", "java.util", "java.util.concurrent"];

/// Clock ticks of a second, as proc(5) has them.
const TICKS: f64 = 100.0;

/// A program that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counter {
    /// A host of Weir, out of the topic.
    Weir,
    Flink,
    /// A probe of Weir and `weir merge`, one after the other: partial results go through a topic.
    Probe,
    /// One run of Weir.
    Run,
}

/// The job, the topic and the answer that both programs must give.
pub(super) struct SourceCounts<'a> {
    transfers: &'a Transfers,
    servers: &'a Servers,
    jar: PathBuf,
    /// The class path of Flink's own jars.
    flink: String,
    /// Rows of the answer.
    rows: u64,
}

impl<'a> SourceCounts<'a> {
    /// Builds the job, and computes the answer from the capture.
    pub(super) fn prepare(
        transfers: &'a Transfers,
        servers: &'a Servers,
        folder: &Path,
    ) -> Result<SourceCounts<'a>> {
        let job = PathBuf::from(servers.script("flink.sh", &["jar"])?);
        let flink = flink_jars(&job)?;
        let (classes, jar) = (folder.join("classes"), folder.join("counts.jar"));
        let path = format!("{flink}:{}", job.display());
        let mut javac = Command::new("javac");
        javac.args(["-nowarn", "--release", "17", "-cp", &path, "-d"]).arg(&classes).arg(SOURCE);
        process::run("javac", &mut javac)?;
        // The jar of Weir's job has the connector of Kafka in it.
        fs::copy(&job, &jar).context("copying the jar of the job")?;
        let mut pack = Command::new("jar");
        pack.arg("--update").arg("--file").arg(&jar).arg("-C").arg(&classes).arg(".");
        process::run("jar", &mut pack)?;
        let (rows, packets, _) = by_run(transfers)?;
        ensure!(packets == transfers.packets, "the capture has other packets than IPv4");
        Ok(SourceCounts { transfers, servers, jar, flink, rows })
    }

    /// Counts once; the group is one that nobody else has.
    pub(super) fn measure(&self, counter: Counter, round: usize) -> Result<Whole> {
        let (found, whole) = match counter {
            Counter::Weir => self.by_weir(round)?,
            Counter::Flink => self.by_flink()?,
            Counter::Probe => self.by_probe(round)?,
            Counter::Run => {
                let (rows, packets, whole) = by_run(self.transfers)?;
                ((rows, packets), whole)
            }
        };
        let expected = (self.rows, self.transfers.packets);
        ensure!(found == expected, "{counter:?} has rows and packets {found:?}, not {expected:?}");
        Ok(whole)
    }

    fn by_weir(&self, round: usize) -> Result<((u64, u64), Whole)> {
        let group = format!("counts-{round}");
        let (rows, packets, whole) = self.transfers.by_group(self.servers, QUERY, &group)?;
        Ok(((rows, packets), whole))
    }

    fn by_probe(&self, round: usize) -> Result<((u64, u64), Whole)> {
        let Transfers { weir, trace, .. } = self.transfers;
        let topic = format!("counts-of-a-probe-{round}");
        self.servers.make_topic(&topic, 1)?;
        let (url, probe) = (self.servers.url(&topic), ["--probe", "north"]);
        let mut publish = Command::new(weir);
        publish.args(["run", "-q", "-e", QUERY, "--publish", &url]).args(probe);
        let published = process::run("weir", publish.arg("-r").arg(trace))?.whole;
        let mut merge = Command::new(weir);
        merge.args(["merge", "-q", "-o", "json", "-e", QUERY, "--from", &url, "--until", "end"]);
        let (rows, packets, merged) = self.transfers.rows_of(merge.args(["--probes", "north"]))?;
        let (cpu, wall) = (published.cpu + merged.cpu, published.wall + merged.wall);
        Ok(((rows, packets), Whole { cpu, wall }))
    }

    /// CPU time is that of the task manager alone, and the time on the wall that of the job.
    fn by_flink(&self) -> Result<((u64, u64), Whole)> {
        let servers = self.servers;
        let conf = servers.flink_home().join("conf");
        let before = task_managers_cpu(servers)?;
        let mut command = Command::new("java");
        command.env("FLINK_CONF_DIR", &conf);
        command.args(OPENED.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
        command.args(["-XX:+UseSerialGC", "-Xmx256m", "-cp"]);
        command.args([&self.flink, "org.apache.flink.client.cli.CliFrontend", "run", "-p", "2"]);
        command.args(["-c", CLASS]).arg(&self.jar).args([&servers.brokers(), "packets"]);
        let out = process::run("Flink's client", &mut command)?.out;
        let cpu = task_managers_cpu(servers)?.saturating_sub(before);
        let line = out.lines().find(|line| line.starts_with("packets=")).context("no result")?;
        let wall = Duration::from_millis(number(line, "ms")?);
        Ok(((number(line, "rows")?, number(line, "packets")?), Whole { cpu, wall }))
    }
}

/// Rows, their packets, and what a run over the capture takes.
fn by_run(transfers: &Transfers) -> Result<(u64, u64, Whole)> {
    let mut command = Command::new(&transfers.weir);
    command.args(["run", "-q", "-o", "json", "-e", QUERY, "-r"]).arg(&transfers.trace);
    transfers.rows_of(&mut command)
}

/// The class path of Flink's jars, which lie beside the jar of the job.
fn flink_jars(job: &Path) -> Result<String> {
    let cluster = job.parent().and_then(Path::parent).context("the folder of the jar")?;
    let all = fs::read_dir(cluster).with_context(|| cluster.display().to_string())?;
    let mut all = all.filter_map(|entry| Some(entry.ok()?.path().join("lib")));
    let lib = all.find(|lib| lib.is_dir()).context("the jars of Flink are not there")?;
    Ok(format!("{}/*", lib.display()))
}

/// CPU time of all task managers since they were started.
pub(super) fn task_managers_cpu(servers: &Servers) -> Result<Duration> {
    servers.task_managers()?.into_iter().map(process_cpu).sum()
}

/// CPU time that a process and all its threads have taken.
fn process_cpu(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    cpu_of(&stat).with_context(|| format!("{path}: {stat}"))
}

/// User and system time of a line of proc(5).
fn cpu_of(stat: &str) -> Option<Duration> {
    // The name of the program, which may have spaces, is in brackets before everything else.
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let (user, system) = (ticks()?, ticks()?);
    Some(Duration::from_secs_f64((user + system) as f64 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_is_read() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 10 0 0 0 150 25 3 4 20 0 1 0 99 1 2";
        assert_eq!(cpu_of(stat), Some(Duration::from_millis(1750)));
        assert_eq!(cpu_of("7 (x) S 1"), None);
        assert!(process_cpu(std::process::id()).is_ok());
    }
}
