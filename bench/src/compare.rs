//! Another build of this program beside this one: what a change did to the time of each work.
//!
//! Both builds do a work directly one after the other, in each round, in turn as first and second,
//! so that what changes with time on the machine touches both alike.

use crate::answer::Answer;
use crate::contestant::{self, CHECK, Setup};
use crate::measure::Measure;
use crate::process::this_program;
use crate::stats::{Spread, median};
use crate::sys;
use crate::timing::Spent;
use crate::trace::{Preset, Truth};
use crate::work::{WORKS, Work};
use anyhow::{Context, Result, ensure};
use regex::Regex;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A work is slower where three quarters of its rounds took this many times as long.
const SLOWER: f64 = 1.05;

/// Options of a comparison of two builds.
#[derive(Debug)]
pub(crate) struct CompareOptions<'a> {
    /// The other `weir-bench`, built from the code before a change.
    pub(crate) before: &'a Path,
    /// The traces.
    pub(crate) presets: Vec<&'static Preset>,
    /// Their length, unless it is the usual one.
    pub(crate) packets: Option<u64>,
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Which works, by trace and name.
    pub(crate) only: Option<Regex>,
    /// Threads that process packets.
    pub(crate) workers: usize,
    /// Where traces are kept.
    pub(crate) out: &'a Path,
}

/// A work over a trace, and what it took in each round: before, and now.
struct Line {
    work: &'static Work,
    trace: &'static str,
    packets: u64,
    rounds: Vec<[Spent; 2]>,
}

/// Runs everything, and prints the table as Markdown: each line once it is measured, so that it
/// stays when a later work fails.
///
/// # Errors
/// When the other build can't be run, or there is no work; in the end, when a build failed in some
/// work or the two gave different rows there.
pub(crate) fn run(options: &CompareOptions<'_>) -> Result<()> {
    // Before traces are made, which takes minutes.
    let help = Command::new(options.before).arg("--help").output();
    help.with_context(|| options.before.display().to_string())?;
    let is_asked = |preset: &Preset, work: &Work| {
        options.only.as_ref().is_none_or(|only| only.is_match(&name(preset, work)))
    };
    let mut works = options.presets.iter().flat_map(|p| WORKS.iter().map(move |work| (p, work)));
    ensure!(works.any(|(preset, work)| is_asked(preset, work)), "no work is left to run");
    write!(io::stdout(), "{HEAD}")?;
    let mut failed = Vec::new();
    for preset in &options.presets {
        let mut trace = preset.options.clone();
        trace.packets = options.packets.unwrap_or(trace.packets);
        let (path, truth) = trace.make(options.out)?;
        let held = sys::map(&path).with_context(|| path.display().to_string())?;
        if let Err(why) = held.lock() {
            // Runs may then read from the disk, and show it by their wall times.
            writeln!(io::stderr(), "trace {} is not held in memory: {why}", preset.name)?;
        }
        for work in WORKS.iter().filter(|work| is_asked(preset, work)) {
            writeln!(io::stderr(), "{}", name(preset, work))?;
            match rounds(options, work, &path, truth) {
                Ok(rounds) => {
                    let line = Line { work, trace: preset.name, packets: truth.packets, rounds };
                    writeln!(io::stdout(), "{line}")?;
                }
                Err(why) => {
                    writeln!(io::stderr(), "  not compared: {why:#}")?;
                    failed.push(format!("{} {}", preset.name, work.name));
                }
            }
        }
    }
    ensure!(failed.is_empty(), "not compared: {}", failed.join(", "));
    Ok(())
}

/// The name that `--only` is matched with.
fn name(preset: &Preset, work: &Work) -> String {
    format!("{} {}: {}", preset.name, work.name, work.title)
}

/// The rounds of one work, after one in which both builds must give the same rows.
fn rounds(
    options: &CompareOptions<'_>,
    work: &'static Work,
    trace: &Path,
    truth: Truth,
) -> Result<Vec<[Spent; 2]>> {
    let now = PathBuf::from(this_program()?.get_program());
    let programs = [options.before, &now];
    let spawn = |program: &Path, setup: &Setup| -> Result<(Measure, Answer)> {
        let (measure, answer, _) = contestant::spawn_by(Command::new(program), work, trace, setup)
            .with_context(|| program.display().to_string())?;
        let (counted, has) = (measure.packets, truth.packets);
        ensure!(counted == has, "{} counted {counted} packets; the trace has {has}", work.name);
        Ok((measure, answer))
    };
    let setup = Setup { workers: options.workers, ..CHECK };
    let (_, before) = spawn(programs[0], &setup)?;
    before.check(work.name, &spawn(programs[1], &setup)?.1)?;

    let setup = Setup { digest: false, ..setup };
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let mut spent = [Spent::default(); 2];
        for i in 0..programs.len() {
            let i = if round.is_multiple_of(2) { i } else { 1 - i };
            spent[i] = spawn(programs[i], &setup)?.0.spent;
        }
        rounds.push(spent);
    }
    Ok(rounds)
}

const HEAD: &str = "| work | trace | user × | wall × | slower | user ns before | user ns now |\n\
                    |---|---|---:|---:|---|---:|---:|\n";

impl fmt::Display for Line {
    /// Ratios within a round, and the times of both.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { work, trace, packets, rounds } = self;
        let ratio = |time: fn(&Spent) -> f64| {
            Spread::of(rounds.iter().map(|[before, now]| time(now) / time(before)))
        };
        let (user, wall) = (ratio(user_s), ratio(wall_s));
        let ns =
            |i: usize| median(rounds.iter().map(|round| user_s(&round[i]))) * 1e9 / *packets as f64;
        let slower = if user.low > SLOWER { "yes" } else { "no" };
        write!(
            f,
            "| {} | {trace} | {} | {} | {slower} | {:.1} | {:.1} |",
            work.title,
            show(user),
            show(wall),
            ns(0),
            ns(1)
        )
    }
}

fn user_s(spent: &Spent) -> f64 {
    spent.user.as_secs_f64()
}

fn wall_s(spent: &Spent) -> f64 {
    spent.wall.as_secs_f64()
}

fn show(Spread { low, median, high }: Spread) -> String {
    format!("**{median:.3}** ({low:.3}–{high:.3})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_work_is_slower_where_most_of_its_rounds_are() {
        let line = |now: [u64; 4]| {
            let spent =
                |ms| Spent { user: Duration::from_millis(ms), wall: Duration::from_millis(2 * ms) };
            let rounds = now.iter().map(|&ms| [spent(100), spent(ms)]).collect();
            Line { work: &WORKS[0], trace: "a", packets: 1_000_000, rounds }
        };
        let lines = [line([106, 107, 108, 110]), line([90, 104, 120, 130])].map(|l| l.to_string());
        let title = WORKS[0].title;
        assert_eq!(
            lines,
            [
                format!(
                    "| {title} | a | **1.075** (1.067–1.085) | **1.075** (1.067–1.085) | yes | \
                     100.0 | 107.5 |"
                ),
                format!(
                    "| {title} | a | **1.120** (1.005–1.225) | **1.120** (1.005–1.225) | no | \
                     100.0 | 112.0 |"
                ),
            ]
        );
    }
}
