//! The costs of state: memory, growth, a flood of flows, idle flows. Packets are synthetic, and
//! each run is a process of its own.

use crate::answer::Tally;
use crate::measure::{rss_max_kib, value};
use crate::process;
use crate::stats::{Spread, median};
use crate::synthetic::{Seen, Synthetic, Traffic};
use crate::timing::{Spent, Whole, time};
use crate::work::compile;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::fmt::{self, Write};
use std::io::Write as _;
use std::time::Duration;
use weir_engine::functions::Functions;
use weir_engine::run;

/// Flows of the usual traffic.
const FLOWS: u64 = 100_000;

/// Flows that are active while others are idle.
const ACTIVE: u64 = 10_000;

/// Flows that are idle meanwhile.
const IDLE: [u64; 4] = [0, 10_000, 100_000, 1_000_000];

/// Which question is asked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Experiment {
    /// Does memory depend on the number of packets?
    Memory,
    /// How much memory does a flow take, and does growing stall?
    Growth,
    /// How much does a flood of flows slow a program down?
    Flood,
    /// Do idle flows cost anything?
    Idle,
}

/// A program with state.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Stateful {
    /// The flow meter of the table, in the language.
    FlowMeter,
    /// The same in windows of a second.
    FlowMeterWindows,
    /// The position of each packet in its flow.
    Scan,
    /// The same, where a flow is forgotten after a second.
    ScanExpiring,
}

impl Stateful {
    fn title(self) -> &'static str {
        match self {
            Stateful::FlowMeter => "flow meter",
            Stateful::FlowMeterWindows => "flow meter every 1 s",
            Stateful::Scan => "`scan` by flow, idle 1 h",
            Stateful::ScanExpiring => "`scan` by flow, idle 1 s",
        }
    }

    /// The query, with room for `max` flows.
    fn text(self, max: u64) -> String {
        let aggregates = "packets = count(), bytes = sum(len), first = min(ts), last = max(ts)";
        let meter =
            |end: String| format!("packets | where ip | summarize {aggregates} by flow{end}");
        let scan = |idle| {
            format!(
                "packets | where ip \
                 | scan position = 0 by flow idle {idle} max {max} => position + 1 \
                 | summarize packets = count(), longest = max(position)"
            )
        };
        match self {
            Stateful::FlowMeter => meter(format!(" max {max}")),
            Stateful::FlowMeterWindows => meter(format!(" every 1s max {max}")),
            Stateful::Scan => scan("1h"),
            Stateful::ScanExpiring => scan("1s"),
        }
    }
}

/// One run, as the command line has it.
#[derive(Clone, Copy, PartialEq, clap::Args, Debug)]
pub(crate) struct Task {
    program: Stateful,
    /// Packets in all, the idle flows' first ones included.
    #[arg(long)]
    packets: u64,
    /// Flows that packets are drawn from; none: every packet is a new one.
    #[arg(long)]
    flows: Option<u64>,
    /// Flows before them that have one packet each.
    #[arg(long, default_value_t = 0)]
    idle: u64,
    /// Room for so many flows.
    #[arg(long)]
    max: u64,
}

/// The figures of a run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Figures {
    packets: u64,
    rows: u64,
    evicted: u64,
    spent: Spent,
    seen: Seen,
    rss_max_kib: u64,
}

impl Task {
    fn traffic(&self) -> Traffic {
        match self.flows {
            None => Traffic::New,
            Some(flows) if self.idle == 0 => Traffic::Mixed(flows),
            Some(active) => Traffic::Idle { idle: self.idle, active },
        }
    }

    /// Does it in this process.
    pub(crate) fn run(&self) -> Result<Figures> {
        let mut source = Synthetic::new(self.traffic(), self.packets);
        let mut figures = Figures::default();
        let program = compile("a program with state", &self.program.text(self.max))?;
        let (functions, options) = (Functions::default(), run::Options::default());
        let mut sink = Tally::new(false);
        let (outcome, spent) =
            time(|| run::run(&program, &functions, &mut source, &mut sink, &options, &mut |_| {}))?;
        outcome.error.map_or(Ok(()), Err)?;
        let ledger = outcome.ledger;
        ensure!(ledger.adds_up(), "the ledger does not add up: {ledger:?}");
        (figures.packets, figures.evicted) = (ledger.processed, ledger.evicted);
        (figures.rows, figures.spent) = (sink.answer().rows(), spent);
        (figures.seen, figures.rss_max_kib) = (source.seen(), rss_max_kib()?);
        Ok(figures)
    }

    /// Does it in a process of its own, and checks what it says.
    fn spawn(&self) -> Result<Figures> {
        let mut command = process::this_program()?;
        let name = self.program.to_possible_value().expect("every program has a name");
        command.args(["synthetic", name.get_name(), "--packets", &self.packets.to_string()]);
        command.args(["--idle", &self.idle.to_string(), "--max", &self.max.to_string()]);
        if let Some(flows) = self.flows {
            command.args(["--flows", &flows.to_string()]);
        }
        let figures = Figures::parse(&process::run(self.program.title(), &mut command)?.out)?;
        self.check(&figures)?;
        Ok(figures)
    }

    /// A fast wrong answer is no answer: each flow has its row, or was left out and counted.
    fn check(&self, said: &Figures) -> Result<()> {
        let (packets, flows) = (self.packets, self.traffic().flows(self.packets));
        let over = flows.saturating_sub(self.max);
        let is = match self.program {
            Stateful::FlowMeter => (packets, flows.min(self.max), over),
            // Its rows depend on which flows each second meets.
            Stateful::FlowMeterWindows => (packets, said.rows.max(flows.min(self.max)), 0),
            Stateful::Scan | Stateful::ScanExpiring => (packets, 1, over),
        };
        let said = (said.packets, said.rows, said.evicted);
        ensure!(
            said == is,
            "{}: packets, rows and evicted were {said:?}, which should be {is:?}",
            self.program.title()
        );
        Ok(())
    }
}

impl Figures {
    /// Reads what [`Figures`] prints.
    fn parse(line: &str) -> Result<Figures> {
        let number = |name| crate::measure::number(line, name);
        let seconds = |name: &str| -> Result<Duration> {
            let seconds = value(line, name)?.parse().with_context(|| name.to_owned())?;
            Duration::try_from_secs_f64(seconds).with_context(|| name.to_owned())
        };
        let whole =
            |cpu, wall| -> Result<Whole> { Ok(Whole { cpu: seconds(cpu)?, wall: seconds(wall)? }) };
        Ok(Figures {
            packets: number("packets")?,
            rows: number("rows")?,
            evicted: number("evicted")?,
            spent: Spent { user: seconds("user_s")?, wall: seconds("wall_s")? },
            seen: Seen {
                longest: whole("longest_cpu_s", "longest_wall_s")?,
                slow: number("slow")?,
                active: whole("active_cpu_s", "active_wall_s")?,
                rss_kib: (number("rss_before_kib")?, number("rss_after_kib")?),
            },
            rss_max_kib: number("rss_max_kib")?,
        })
    }

    /// Bytes that each of `flows` took.
    fn bytes_per_flow(&self, flows: u64) -> f64 {
        let (before, after) = self.seen.rss_kib;
        after.saturating_sub(before) as f64 * 1024.0 / flows as f64
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seen, s) = (&self.seen, |d: Duration| d.as_secs_f64());
        write!(f, "packets={} rows={} evicted={} ", self.packets, self.rows, self.evicted)?;
        write!(f, "user_s={:.6} wall_s={:.6} ", s(self.spent.user), s(self.spent.wall))?;
        write!(f, "longest_cpu_s={:.9} ", s(seen.longest.cpu))?;
        write!(f, "longest_wall_s={:.9} slow={} ", s(seen.longest.wall), seen.slow)?;
        write!(f, "active_cpu_s={:.9} ", s(seen.active.cpu))?;
        write!(f, "active_wall_s={:.9} ", s(seen.active.wall))?;
        write!(f, "rss_before_kib={} rss_after_kib={} ", seen.rss_kib.0, seen.rss_kib.1)?;
        write!(f, "rss_max_kib={}", self.rss_max_kib)
    }
}

/// Asks a question over `packets` packets, `rounds` times; gives the answer as Markdown.
pub(crate) fn run(experiment: Experiment, packets: u64, rounds: usize) -> Result<String> {
    ensure!(packets >= 1_000, "fewer than 1,000 packets show nothing");
    match experiment {
        Experiment::Memory => memory(packets),
        Experiment::Growth => growth(packets, rounds),
        Experiment::Flood => flood(packets, rounds),
        Experiment::Idle => idle(packets, rounds),
    }
}

fn memory(packets: u64) -> Result<String> {
    let few = packets / 100;
    let mut out = format!(
        "Peak memory over {packets} packets of {FLOWS} flows, against {few} of them.\n\n\
         | program | few MiB | many MiB | ratio | within 10 % | user ns per packet |\n\
         |---|---:|---:|---:|---|---:|\n"
    );
    let programs = [Stateful::FlowMeter, Stateful::FlowMeterWindows, Stateful::ScanExpiring];
    for program in programs {
        let task = Task { program, packets: few, flows: Some(FLOWS), idle: 0, max: 2 * FLOWS };
        say(program)?;
        let (few, many) = (task.spawn()?, Task { packets, ..task }.spawn()?);
        let mib = |f: &Figures| f.rss_max_kib as f64 / 1024.0;
        let ratio = mib(&many) / mib(&few);
        let _ = writeln!(
            out,
            "| {} | {:.1} | {:.1} | {ratio:.3} | {} | {:.1} |",
            program.title(),
            mib(&few),
            mib(&many),
            yes(ratio <= 1.1),
            many.spent.user.as_secs_f64() * 1e9 / packets as f64
        );
    }
    Ok(out)
}

fn growth(packets: u64, rounds: usize) -> Result<String> {
    let mut out = format!(
        "{packets} flows of one packet each, all held at once. A stall is the longest time that \
         one batch of 256 took; the least of {rounds} runs, of which each has the same stalls and \
         other disturbances.\n\n\
         | program | bytes per flow | stall ms (CPU) | stall ms (wall) | batches over 1 ms (CPU) \
         | user ns per packet | peak MiB |\n|---|---:|---:|---:|---:|---:|---:|\n"
    );
    for program in [Stateful::FlowMeter, Stateful::Scan] {
        let task = Task { program, packets, flows: None, idle: 0, max: 2 * packets };
        say(program)?;
        let runs = (0..rounds).map(|_| task.spawn()).collect::<Result<Vec<Figures>>>()?;
        let least = |f: &dyn Fn(&Figures) -> f64| runs.iter().map(f).fold(f64::INFINITY, f64::min);
        let middle = |f: &dyn Fn(&Figures) -> f64| median(runs.iter().map(f));
        let _ = writeln!(
            out,
            "| {} | {:.0} | {:.2} | {:.2} | {:.0} | {:.1} | {:.0} |",
            program.title(),
            middle(&|f| f.bytes_per_flow(packets)),
            least(&|f| f.seen.longest.cpu.as_secs_f64() * 1e3),
            least(&|f| f.seen.longest.wall.as_secs_f64() * 1e3),
            least(&|f| f.seen.slow as f64),
            middle(&|f| user_ns(f)),
            middle(&|f| f.rss_max_kib as f64 / 1024.0)
        );
    }
    Ok(out)
}

fn flood(packets: u64, rounds: usize) -> Result<String> {
    let max = packets / 10;
    let flows = (max / 10).max(1);
    let mut out = format!(
        "{packets} packets with room for {max} flows: each a flow of its own, against {flows} \
         flows in all.\n\n\
         | program | usual ns | flood ns | speed of the usual | at least half | evicted |\n\
         |---|---:|---:|---:|---|---:|\n"
    );
    for program in [Stateful::FlowMeter, Stateful::Scan] {
        let flood = Task { program, packets, flows: None, idle: 0, max };
        let usual = Task { flows: Some(flows), ..flood };
        say(program)?;
        let pairs = (0..rounds).map(|_| Ok((usual.spawn()?, flood.spawn()?)));
        let pairs = pairs.collect::<Result<Vec<_>>>()?;
        let speed = Spread::of(pairs.iter().map(|(usual, flood)| user_ns(usual) / user_ns(flood)));
        let _ = writeln!(
            out,
            "| {} | {:.1} | {:.1} | {:.2} ({:.2}–{:.2}) | {} | {} |",
            program.title(),
            median(pairs.iter().map(|(usual, _)| user_ns(usual))),
            median(pairs.iter().map(|(_, flood)| user_ns(flood))),
            speed.median,
            speed.low,
            speed.high,
            yes(speed.median >= 0.5),
            pairs[0].1.evicted
        );
    }
    Ok(out)
}

fn idle(packets: u64, rounds: usize) -> Result<String> {
    let mut out = format!(
        "CPU time of {packets} packets of {ACTIVE} active flows, while others are idle.\n\n\
         | program | idle flows | ns per packet | against none idle |\n|---|---:|---:|---:|\n"
    );
    for program in [Stateful::FlowMeter, Stateful::Scan, Stateful::ScanExpiring] {
        say(program)?;
        // Not more of them than packets: their expiry would outweigh what is measured.
        let idle: Vec<u64> = IDLE.into_iter().filter(|&n| n <= packets).collect();
        let mut runs: Vec<Vec<f64>> = Vec::new();
        for _ in 0..rounds {
            let each = idle.iter().map(|&n| {
                // One flow more is what it takes to tell the two phases apart.
                let n = n.max(1);
                let flows = Some(ACTIVE);
                let task = Task { program, packets: n + packets, flows, idle: n, max: 4 << 20 };
                Ok(task.spawn()?.seen.active.cpu.as_secs_f64() * 1e9 / packets as f64)
            });
            runs.push(each.collect::<Result<_>>()?);
        }
        for (i, n) in idle.iter().enumerate() {
            let ratio = Spread::of(runs.iter().map(|r| r[i] / r[0]));
            let _ = writeln!(
                out,
                "| {} | {n} | {:.1} | {:.2} ({:.2}–{:.2}) |",
                program.title(),
                median(runs.iter().map(|r| r[i])),
                ratio.median,
                ratio.low,
                ratio.high
            );
        }
    }
    Ok(out)
}

fn user_ns(figures: &Figures) -> f64 {
    figures.spent.user.as_secs_f64() * 1e9 / figures.packets as f64
}

fn yes(reached: bool) -> &'static str {
    if reached { "yes" } else { "no" }
}

/// Reports progress.
fn say(program: Stateful) -> Result<()> {
    writeln!(std::io::stderr(), "{}", program.title()).context("standard error")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(program: Stateful, flows: Option<u64>, max: u64) -> Task {
        Task { program, packets: 3_000, flows, idle: 0, max }
    }

    #[test]
    fn every_program_says_what_it_must() {
        for &program in Stateful::value_variants() {
            for flows in [None, Some(100)] {
                let task = task(program, flows, 5_000);
                let figures = task.run().expect("runs");
                task.check(&figures).expect("right");
                let wrong = Figures { packets: 2_999, ..figures };
                assert!(task.check(&wrong).is_err(), "{program:?}");
                let figures = Task { idle: 500, ..task }.run().expect("runs");
                assert!(flows.is_none() || figures.seen.active.cpu > Duration::ZERO);
            }
        }
    }

    #[test]
    fn what_is_over_the_bound_is_counted() {
        for program in [Stateful::FlowMeter, Stateful::Scan] {
            let task = task(program, None, 1_000);
            let figures = task.run().expect("runs");
            assert_eq!(figures.evicted, 2_000);
            task.check(&figures).expect("right");
            assert!(task.check(&Figures { evicted: 1_999, ..figures }).is_err());
        }
    }

    #[test]
    fn survives_the_way_between_processes() {
        let figures = task(Stateful::FlowMeter, None, 5_000).run().expect("runs");
        let read = Figures::parse(&figures.to_string()).expect("whole");
        assert_eq!(read.to_string(), figures.to_string());
        assert_eq!((read.rows, read.seen.rss_kib), (3_000, figures.seen.rss_kib));
        assert!(Figures::parse("packets=1").is_err());
    }
}
