//! The partial results of many probes, merged by the job on Flink: as they come, with a window of
//! each probe a second, and as fast as the job can.

use super::client::{follow, send_all};
use super::flink::task_managers_cpu;
use super::load::{ProbeLoad, Row};
use super::record::{IsEnough, Topic};
use super::servers::Servers;
use crate::process;
use crate::stats::median;
use crate::timing::{Stopwatch, Whole, pause_until};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Partitions of a topic of partial results.
const PARTITIONS: usize = 16;

/// How long rows may not come: a job that was lost has restarted by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// A window of each probe comes so often.
const TICK: Duration = Duration::from_secs(1);

/// The window at which counting begins, and the one at which a task manager is killed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// From this one on, windows count: the job has started, and its code is compiled.
    pub(super) warm: usize,
    /// A task manager is killed as this one comes, and started again at once.
    pub(super) killed: usize,
}

/// The times of a round of windows in real time.
#[derive(Clone, Debug)]
pub(super) struct RealTime {
    /// From the end of a window to its last committed row: the middle and the longest of those
    /// before the task manager was killed.
    pub(super) latency: Duration,
    pub(super) longest: Duration,
    /// The longest time without a row after that.
    pub(super) gap: Duration,
    /// From the kill to the rows of the first window that was not slower than `longest`, if one
    /// came.
    pub(super) recovered: Option<Duration>,
    /// CPU time of the task manager for each partial result, before it was killed.
    pub(super) cpu: Duration,
}

/// Jobs on Flink, and where they read and write.
pub(super) struct Merges<'a> {
    pub(super) servers: &'a Servers,
    weir: &'a Path,
    jar: PathBuf,
}

impl<'a> Merges<'a> {
    /// Builds the job.
    pub(super) fn new(servers: &'a Servers, weir: &'a Path) -> Result<Merges<'a>> {
        let jar = PathBuf::from(servers.script("flink.sh", &["jar"])?);
        Ok(Merges { servers, weir, jar })
    }

    /// Starts a job from one topic to another; its number.
    fn submit(
        &self,
        query: &str,
        load: &ProbeLoad,
        [topic, to]: [&str; 2],
        is_bounded: bool,
    ) -> Result<String> {
        let (kafka, flink) = (self.servers.brokers(), self.servers.flink());
        let mut command = Command::new(self.weir);
        command.args(["cluster", "submit", "-e", query, "--kafka", &kafka, "--topic", topic]);
        command.args(["--probes", &load.roster(), "--to", to, "--flink", &flink, "--jar"]);
        command.arg(&self.jar).arg("--create-topics").args(is_bounded.then_some("--bounded"));
        Ok(process::run("weir cluster submit", &mut command)?.out.trim().to_owned())
    }

    fn cancel(&self, job: &str) -> Result<()> {
        let mut command = Command::new(self.weir);
        command.args(["cluster", "cancel", job, "--flink", &self.servers.flink()]);
        process::run("weir cluster cancel", &mut command).map(drop)
    }

    /// Puts all windows into a topic.
    pub(super) fn fill(&self, load: &ProbeLoad, name: &str) -> Result<()> {
        self.servers.make_topic(name, PARTITIONS)?;
        let topic = Topic { brokers: &self.servers.brokers(), name };
        send_all(topic, &mut |send| {
            load.heads(PARTITIONS)?.iter().try_for_each(&mut *send)?;
            (0..load.windows.len()).try_for_each(|at| load.window(at, PARTITIONS, send))
        })
    }

    /// Merges a topic that is full, once. CPU time is that of the task manager; time on the wall
    /// includes the start of the job.
    pub(super) fn at_once(
        &self,
        query: &str,
        load: &ProbeLoad,
        topics: [&str; 2],
    ) -> Result<Whole> {
        let before = task_managers_cpu(self.servers)?;
        let watch = Stopwatch::start();
        self.submit(query, load, topics, true)?;
        let arrivals = self.arrivals(load, topics[1], watch)?;
        arrivals.check(load)?;
        let cpu = task_managers_cpu(self.servers)?.saturating_sub(before);
        Ok(Whole { cpu, wall: watch.read().wall })
    }

    /// Waits for all rows.
    fn arrivals(&self, load: &ProbeLoad, name: &str, watch: Stopwatch) -> Result<Arrivals> {
        let mut arrivals = Arrivals::of(load);
        let topic = Topic { brokers: &self.servers.brokers(), name };
        follow(topic, PATIENCE, &mut |row| arrivals.take(row, watch))?;
        Ok(arrivals)
    }

    /// Merges windows as they come.
    pub(super) fn in_real_time(
        &self,
        query: &str,
        load: &ProbeLoad,
        schedule: Schedule,
        topics: [&str; 2],
    ) -> Result<RealTime> {
        self.servers.make_topic(topics[0], PARTITIONS)?;
        let job = self.submit(query, load, topics, false)?;
        let watch = Stopwatch::start();
        let (arrivals, cpu) = thread::scope(|scope| {
            let sender = scope.spawn(|| self.send(load, schedule, topics[0], watch));
            let arrivals = self.arrivals(load, topics[1], watch);
            let cpu = sender.join().ok().context("a sender that does not panic")?;
            anyhow::Ok((arrivals?, cpu?))
        })?;
        self.cancel(&job)?;
        arrivals.check(load)?;
        let windows = u32::try_from(schedule.killed - schedule.warm).context("windows")?;
        let partials = load.partials() / load.windows.len() as u64;
        let cpu = cpu / windows / u32::try_from(partials).context("partial results")?;
        Ok(arrivals.real_time(schedule, cpu))
    }

    /// Sends windows as they end; CPU time of the task manager from the first that counts to the
    /// kill.
    fn send(
        &self,
        load: &ProbeLoad,
        schedule: Schedule,
        name: &str,
        watch: Stopwatch,
    ) -> Result<Duration> {
        let topic = Topic { brokers: &self.servers.brokers(), name };
        let mut cpu = [Duration::ZERO; 2];
        thread::scope(|scope| {
            let mut restarts = None;
            send_all(topic, &mut |send| {
                load.heads(PARTITIONS)?.iter().try_for_each(&mut *send)?;
                for at in 0..load.windows.len() {
                    pause_until(&watch, end_of(at));
                    if at == schedule.warm {
                        cpu[0] = task_managers_cpu(self.servers)?;
                    }
                    if at == schedule.killed {
                        cpu[1] = task_managers_cpu(self.servers)?;
                        restarts = Some(scope.spawn(|| self.restart()));
                    }
                    load.window(at, PARTITIONS, send)?;
                }
                Ok(())
            })?;
            let restarts = restarts.context("no window at which to kill")?;
            restarts.join().ok().context("scripts that end")?
        })?;
        Ok(cpu[1].saturating_sub(cpu[0]))
    }

    fn restart(&self) -> Result<()> {
        self.servers.script("flink.sh", &["kill", "1"])?;
        self.servers.script("flink.sh", &["up"]).map(drop)
    }
}

/// When a window ends, since the first moment.
fn end_of(window: usize) -> Duration {
    TICK * u32::try_from(window + 1).unwrap_or(u32::MAX)
}

/// The rows that came, and when.
struct Arrivals {
    /// For each window, by its `ts`: rows, and when the last of them came.
    windows: BTreeMap<String, (u64, Duration)>,
    /// When rows came after a time without.
    times: Vec<Duration>,
    rows: u64,
    packets: u64,
    expected: u64,
}

impl Arrivals {
    fn of(load: &ProbeLoad) -> Arrivals {
        let windows = load.rows.keys().map(|ts| (ts.clone(), (0, Duration::ZERO))).collect();
        let expected = load.rows.values().sum();
        Arrivals { windows, times: Vec::new(), rows: 0, packets: 0, expected }
    }

    fn take(&mut self, row: &[u8], watch: Stopwatch) -> Result<IsEnough> {
        let row = Row::read(std::str::from_utf8(row).context("a row")?)?;
        let now = watch.read().wall;
        let window = self.windows.get_mut(row.ts);
        let window = window.with_context(|| format!("no window begins at {}", row.ts))?;
        *window = (window.0 + 1, now);
        self.times.push(now);
        (self.rows, self.packets) = (self.rows + 1, self.packets + row.packets);
        Ok(IsEnough(self.rows == self.expected))
    }

    /// Everything is there, once.
    fn check(&self, load: &ProbeLoad) -> Result<()> {
        let rows: Vec<u64> = self.windows.values().map(|(rows, _)| *rows).collect();
        let expected: Vec<u64> = load.rows.values().copied().collect();
        ensure!(rows == expected, "the windows have {rows:?} rows, not {expected:?}");
        let (found, all) = (self.packets, load.packets);
        ensure!(found == all, "{found} of {all} packets were counted");
        Ok(())
    }

    fn real_time(&self, schedule: Schedule, cpu: Duration) -> RealTime {
        let latency = |(at, (_, last)): (usize, &(u64, Duration))| last.saturating_sub(end_of(at));
        let all: Vec<Duration> = self.windows.values().enumerate().map(latency).collect();
        let before = &all[schedule.warm..schedule.killed];
        let longest = before.iter().copied().max().unwrap_or_default();
        let kill = end_of(schedule.killed);
        let late: Vec<Duration> = self.times.iter().copied().filter(|at| *at >= kill).collect();
        let pauses = late.windows(2).map(|pair| pair[1] - pair[0]);
        let first = late.first().map_or(Duration::ZERO, |first| *first - kill);
        let mut after = all.iter().enumerate().skip(schedule.killed);
        let in_time = after.find(|(_, latency)| **latency <= longest);
        let recovered = in_time.map(|(at, latency)| end_of(at) + *latency - kill);
        RealTime {
            latency: Duration::from_secs_f64(median(before.iter().map(Duration::as_secs_f64))),
            longest,
            gap: pauses.chain([first]).max().unwrap_or_default(),
            recovered,
            cpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_as_late_as_its_last_row() {
        let schedule = Schedule { warm: 1, killed: 3 };
        // Windows end at 1, 2, … s; the fourth ends at the kill, and its rows come 5 s later.
        let last = [9.0, 2.5, 4.0, 9.0, 9.1, 7.0];
        let windows = last.iter().enumerate();
        let arrivals = Arrivals {
            windows: windows.map(|(at, s)| (at.to_string(), (1, seconds(*s)))).collect(),
            times: [2.5, 4.0, 4.5, 7.0, 9.0, 9.1].map(seconds).to_vec(),
            rows: 6,
            packets: 0,
            expected: 6,
        };
        let found = arrivals.real_time(schedule, Duration::ZERO);
        assert_eq!((found.latency, found.longest), (seconds(0.75), seconds(1.0)));
        assert_eq!(found.gap, seconds(2.5));
        assert_eq!(found.recovered, Some(seconds(3.0)));
    }

    fn seconds(s: f64) -> Duration {
        Duration::from_secs_f64(s)
    }
}
