//! The table as Markdown, and everything measured as JSON.

use super::case::{Comparison, Runner};
use super::{Lines, Run, Table};
use crate::stats::{Spread, median};
use serde_json::{Value, json};
use std::fmt::Write;

/// A time of a run, in seconds.
type Time = fn(&Run) -> f64;

const USER: Time = |r| r.proper.user.as_secs_f64();
const WALL: Time = |r| r.proper.wall.as_secs_f64();
const WHOLE_CPU: Time = |r| r.whole.cpu.as_secs_f64();
const WHOLE_WALL: Time = |r| r.whole.wall.as_secs_f64();

impl Table {
    /// As Markdown: a table for each kind of case that ran.
    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        for (name, truth) in &self.traces {
            let _ =
                writeln!(out, "Trace {name}: {} packets, {} flows.", truth.packets, truth.flows);
        }
        let yardstick = if self.roofline { "the roofline" } else { "the reference in Rust" };
        let sections = [
            (
                Comparison::Time,
                time_head(yardstick),
                Table::time_line as fn(&Table, &Lines) -> String,
            ),
            (Comparison::Scaling, scaling_head(yardstick), Table::scaling_line),
            (Comparison::Packed, PACKED_HEAD.to_owned(), Table::packed_line),
        ];
        for (kind, head, line) in sections {
            let lines: Vec<&Lines> = self.lines.iter().filter(|l| l.case.kind == kind).collect();
            if !lines.is_empty() {
                let _ = write!(out, "\n{head}");
                lines.iter().for_each(|l| out += &line(self, l));
            }
        }
        out
    }

    fn packets(&self, line: &Lines) -> f64 {
        let found = self.traces.iter().find(|(name, _)| *name == line.case.trace);
        found.map_or(f64::NAN, |(_, truth)| truth.packets as f64)
    }

    fn time_line(&self, line: &Lines) -> String {
        let ratio = |time| line.ratio(1, 0, time);
        let (user, wall) = (ratio(USER), ratio(WALL));
        let ns = |runner, time| line.median(runner, time) * 1e9 / self.packets(line);
        let target = line.case.target;
        let reached = target.map_or("–", |t| match (user.median <= t, wall.median <= t) {
            (true, true) => "yes",
            (true, false) => "user only",
            (false, true) => "wall only",
            (false, false) => "no",
        });
        format!(
            "| {} | {} | {} | {} | {} | {reached} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} |\n",
            line.case.title,
            line.case.trace,
            target.map_or("–".to_owned(), |t| format!("{t:.2}")),
            show(user),
            show(wall),
            show(ratio(WHOLE_CPU)),
            show(ratio(WHOLE_WALL)),
            ns(1, USER),
            ns(1, WALL),
            ns(0, USER),
            ns(0, WALL),
        )
    }

    fn scaling_line(&self, line: &Lines) -> String {
        let n = line.case.runners.len();
        let ours = line.ratio(n - 2, n - 1, WALL);
        let whole = line.ratio(n - 2, n - 1, WHOLE_WALL);
        let (theirs, aim) = if n == 4 {
            let theirs = line.ratio(0, 1, WALL);
            (show(theirs), line.case.target.map(|t| t.min(theirs.median)))
        } else {
            ("–".to_owned(), None)
        };
        let reached = aim.map_or("–", |t| if ours.median >= t { "yes" } else { "no" });
        format!(
            "| {} | {} | {} | {theirs} | {} | {reached} | {} |\n",
            line.case.title,
            line.case.trace,
            show(ours),
            aim.map_or("–".to_owned(), |t| format!("{t:.2}")),
            show(whole),
        )
    }

    fn packed_line(&self, line: &Lines) -> String {
        let wall = line.ratio(1, 0, WHOLE_WALL);
        let target = line.case.target.unwrap_or(f64::NAN);
        format!(
            "| {} | {} | {target:.2} | {} | {} | {} | {:.2} | {:.2} |\n",
            line.case.title,
            line.case.trace,
            show(wall),
            if wall.median <= target { "yes" } else { "no" },
            show(line.ratio(1, 0, WHOLE_CPU)),
            line.median(1, WHOLE_WALL),
            line.median(0, WHOLE_WALL),
        )
    }

    /// Everything measured.
    pub(crate) fn json(&self) -> Value {
        let run = |(runner, run): (&Runner, &Run)| {
            json!({
                "runner": runner.name(),
                "user_s": USER(run),
                "wall_s": WALL(run),
                "process_cpu_s": WHOLE_CPU(run),
                "process_wall_s": WHOLE_WALL(run),
                "rss_max_kib": run.rss_max_kib,
            })
        };
        let line = |line: &Lines| {
            let runners = &line.case.runners;
            let rounds = line.rounds.iter().map(|r| runners.iter().zip(r).map(run).collect());
            json!({
                "kind": format!("{:?}", line.case.kind).to_lowercase(),
                "title": line.case.title,
                "trace": line.case.trace,
                "packets": self.packets(line),
                "target": line.case.target,
                "rounds": rounds.collect::<Vec<Value>>(),
            })
        };
        json!({
            "yardstick": if self.roofline { "roofline" } else { "reference" },
            "cases": self.lines.iter().map(line).collect::<Vec<Value>>(),
        })
    }
}

impl Runner {
    fn name(&self) -> String {
        match self {
            Runner::Roofline(mode) => {
                let tables = if mode.tables.is_some() { "made" } else { "growing" };
                format!("roofline, tables {tables}, {} threads", mode.threads)
            }
            Runner::Reference => "reference".to_owned(),
            Runner::Unpack(packer) => format!("{} -dc", packer.name),
            Runner::Work { work, setup, packed } => {
                let packed = packed.map_or(String::new(), |p| format!(", {} input", p.name));
                format!("{}, {} workers{packed}", work.name, setup.workers)
            }
        }
    }
}

impl Lines {
    /// Over the rounds, of one runner.
    fn median(&self, runner: usize, time: Time) -> f64 {
        median(self.rounds.iter().map(|r| time(&r[runner])))
    }

    /// A runner's time by another's in the same round.
    fn ratio(&self, of: usize, to: usize, time: Time) -> Spread {
        Spread::of(self.rounds.iter().map(|r| time(&r[of]) / time(&r[to])))
    }
}

/// Median and quartiles. Runs too short for the clock of CPU time give no ratio.
fn show(spread: Spread) -> String {
    let Spread { low, median, high } = spread;
    if !(low + median + high).is_finite() {
        return "–".to_owned();
    }
    format!("**{median:.2}** ({low:.2}–{high:.2})")
}

fn time_head(yardstick: &str) -> String {
    format!(
        "Time relative to {yardstick}, one worker: medians (quartiles) of the ratios within a \
         round. Nanoseconds are per packet.\n\n\
         | work | trace | target | user × | wall × | reached | process CPU × | process wall × \
         | user ns | wall ns | its user ns | its wall ns |\n\
         |---|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|\n"
    )
}

fn scaling_head(yardstick: &str) -> String {
    format!(
        "Two workers: wall time with one by wall time with two, and the same of {yardstick}.\n\n\
         | work | trace | speed-up | its speed-up | target | reached | process speed-up |\n\
         |---|---|---:|---:|---:|---|---:|\n"
    )
}

const PACKED_HEAD: &str = "Packed input: wall time of the process relative to the unpacking \
    program's alone.\n\n\
    | input | trace | target | wall × | reached | CPU × | ours s | unpacking s |\n\
    |---|---|---:|---:|---|---:|---:|---:|\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::ALONE;
    use crate::table::case::TableCase;
    use crate::timing::{Spent, Whole};
    use crate::trace::Truth;
    use crate::work::FLOW_METER;
    use std::time::Duration;

    fn run(user_ms: u64) -> Run {
        let ms = Duration::from_millis;
        Run {
            proper: Spent { user: ms(user_ms), wall: ms(2 * user_ms) },
            whole: Whole { cpu: ms(3 * user_ms), wall: ms(4 * user_ms) },
            rss_max_kib: 1,
        }
    }

    fn lines(kind: Comparison, runners: usize, rounds: &[&[u64]]) -> Lines {
        let ours = Runner::Work { work: &FLOW_METER, setup: ALONE, packed: None };
        let case = TableCase {
            kind,
            title: "x".into(),
            trace: "a",
            target: Some(1.7),
            runners: vec![ours; runners],
        };
        let rounds = rounds.iter().map(|r| r.iter().map(|&ms| run(ms)).collect()).collect();
        Lines { case, rounds }
    }

    fn table(line: Lines, roofline: bool) -> Table {
        let truth = Truth { packets: 1_000_000, flows: 10, ..Truth::default() };
        Table { lines: vec![line], traces: vec![("a", truth)], roofline }
    }

    fn last_line(line: Lines) -> String {
        table(line, true).markdown().lines().last().expect("a line").to_owned()
    }

    #[test]
    fn ratios_are_of_runs_in_the_same_round() {
        assert_eq!(
            last_line(lines(Comparison::Time, 2, &[&[10, 20], &[20, 20], &[30, 45]])),
            "| x | a | 1.70 | **1.50** (1.25–1.75) | **1.50** (1.25–1.75) | yes \
             | **1.50** (1.25–1.75) | **1.50** (1.25–1.75) | 20.0 | 40.0 | 20.0 | 40.0 |"
        );
        assert_eq!(
            last_line(lines(Comparison::Scaling, 4, &[&[20, 10, 30, 10]])),
            "| x | a | **3.00** (3.00–3.00) | **2.00** (2.00–2.00) | 1.70 | yes \
             | **3.00** (3.00–3.00) |"
        );
        // Less is asked where the yardstick gains less.
        assert_eq!(
            last_line(lines(Comparison::Scaling, 4, &[&[15, 10, 14, 10]])),
            "| x | a | **1.40** (1.40–1.40) | **1.50** (1.50–1.50) | 1.50 | no \
             | **1.40** (1.40–1.40) |"
        );
        assert_eq!(
            last_line(lines(Comparison::Scaling, 2, &[&[20, 10]])),
            "| x | a | **2.00** (2.00–2.00) | – | – | – | **2.00** (2.00–2.00) |"
        );
        assert_eq!(
            last_line(lines(Comparison::Packed, 2, &[&[10, 20]])),
            "| x | a | 1.70 | **2.00** (2.00–2.00) | no | **2.00** (2.00–2.00) | 0.08 | 0.04 |"
        );
    }

    #[test]
    fn what_took_no_time_gives_no_ratio() {
        let line = last_line(lines(Comparison::Packed, 2, &[&[0, 20], &[10, 20]]));
        assert!(line.starts_with("| x | a | 1.70 | – | no | – |"), "{line}");
    }

    #[test]
    fn json_has_every_run() {
        let all = table(lines(Comparison::Time, 2, &[&[10, 20], &[20, 20]]), false).json();
        assert_eq!(all["yardstick"], "reference");
        let case = &all["cases"][0];
        assert_eq!((&case["kind"], &case["packets"]), (&json!("time"), &json!(1e6)));
        assert_eq!(case["rounds"][1][0]["user_s"], 0.02);
        assert_eq!(case["rounds"][0][1]["process_wall_s"], 0.08);
        assert_eq!(case["rounds"].as_array().map(Vec::len), Some(2));
    }
}
