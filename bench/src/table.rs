//! The whole table: every work beside the roofline, with two workers, and from packed files.
//!
//! A *case* is a line of the table: runners that go one directly after the other, in each round, so
//! that what changes with time on the machine touches all alike; in every other round in the
//! opposite order. Before the first round each runner goes once to warm up, and its rows are
//! digested and compared with the right answer.

mod case;
mod cases;
mod print;

use crate::answer::Answer;
use crate::compressed::{self, PACKERS, Packer};
use crate::contestant::{self, Contestant, Setup};
use crate::expected;
use crate::measure::Measure;
use crate::roofline::Roofline;
use crate::sys;
use crate::timing::{Spent, Whole};
use crate::trace::{Preset, Truth};
use anyhow::{Context, Result, ensure};
use case::{Runner, TableCase};
use cases::cases;
use memmap2::Mmap;
use regex::Regex;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The options of the table.
#[derive(Debug)]
pub(crate) struct TableOptions<'a> {
    /// The traces.
    pub(crate) presets: Vec<&'static Preset>,
    /// Their length, unless it is the usual one.
    pub(crate) packets: Option<u64>,
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Which cases, by what they are called.
    pub(crate) only: Option<Regex>,
    /// Where traces, answers and the built roofline are kept.
    pub(crate) out: &'a Path,
}

/// The time and memory of one run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Run {
    /// The run proper; nothing for programs that do not say.
    proper: Spent,
    /// The whole process.
    whole: Whole,
    rss_max_kib: u64,
}

/// A case and its runs: by round, then by runner.
#[derive(Debug)]
struct Lines {
    case: TableCase,
    rounds: Vec<Vec<Run>>,
}

/// A trace with all that belongs to it.
struct Input {
    preset: &'static Preset,
    path: PathBuf,
    truth: Truth,
    packed: BTreeMap<&'static str, PathBuf>,
    answers: BTreeMap<&'static str, Answer>,
    /// Keeps it in memory: kernels may push an idle page cache out.
    _held: Mmap,
}

/// The measurements of all cases.
#[derive(Debug)]
pub(crate) struct Table {
    lines: Vec<Lines>,
    /// Packets and name of each trace.
    traces: Vec<(&'static str, Truth)>,
    /// Whether the yardstick is the loop in C.
    roofline: bool,
}

impl Table {
    /// Runs all cases that are asked for.
    pub(crate) fn make(options: &TableOptions<'_>) -> Result<Table> {
        let roofline = Roofline::build(options.out)?;
        let mut chosen = cases(&options.presets, options.packets, roofline.is_some());
        chosen.retain(|c| options.only.as_ref().is_none_or(|r| r.is_match(&c.name())));
        let mut inputs = Vec::new();
        for preset in &options.presets {
            let of_trace = chosen.iter().filter(|c| c.trace == preset.name);
            inputs.push(Input::make(preset, options, &of_trace.collect::<Vec<_>>())?);
        }
        // A packer that is not installed leaves its cases out.
        chosen.retain(|c| inputs.iter().any(|i| i.preset.name == c.trace && i.can(c)));
        ensure!(!chosen.is_empty(), "no case is left to run");
        let mut lines: Vec<Lines> =
            chosen.into_iter().map(|case| Lines { case, rounds: Vec::new() }).collect();
        for round in 0..=options.rounds {
            for line in &mut lines {
                let input = inputs.iter().find(|i| i.preset.name == line.case.trace);
                let input = input.expect("a case is of a trace that was made");
                say(&format!("round {round} of {}: {}", options.rounds, line.case.name()))?;
                let runs = input.round(&line.case, round, roofline.as_ref())?;
                line.rounds.extend((round > 0).then_some(runs));
            }
        }
        let traces = inputs.iter().map(|i| (i.preset.name, i.truth)).collect();
        Ok(Table { lines, traces, roofline: roofline.is_some() })
    }
}

impl Input {
    fn make(
        preset: &'static Preset,
        options: &TableOptions<'_>,
        cases: &[&TableCase],
    ) -> Result<Input> {
        let mut trace = preset.options.clone();
        trace.packets = options.packets.unwrap_or(trace.packets);
        let (path, truth) = trace.make(options.out)?;
        let held = sys::map(&path).with_context(|| path.display().to_string())?;
        if let Err(why) = held.lock() {
            // Runs may then read from the disk, and show it by their wall times.
            say(&format!("trace {} is not held in memory: {why}", preset.name))?;
        }
        let (mut packed, mut answers) = (BTreeMap::new(), BTreeMap::new());
        for packer in PACKERS {
            if !cases.iter().any(|c| c.packer() == Some(packer)) {
                continue;
            }
            say(&format!("packing {} by {}, unless it is", preset.name, packer.name))?;
            match packer.pack(&path)? {
                Some(file) => {
                    compressed::warm(&file)?;
                    packed.insert(packer.name, file);
                }
                None => say(&format!("{} is not installed: left out", packer.name))?,
            }
        }
        for runner in cases.iter().flat_map(|c| &c.runners) {
            if let Runner::Work { work, .. } = runner
                && !answers.contains_key(work.name)
            {
                say(&format!("finding the answer to {} over {}", work.name, preset.name))?;
                answers.insert(work.name, expected::answer(work, &path)?);
            }
        }
        Ok(Input { preset, path, truth, packed, answers, _held: held })
    }

    fn can(&self, case: &TableCase) -> bool {
        case.packer().is_none_or(|p| self.packed.contains_key(p.name))
    }

    /// Runs everyone of a case once. Round 0 is to warm up and to check the rows.
    fn round(
        &self,
        case: &TableCase,
        round: usize,
        roofline: Option<&Roofline>,
    ) -> Result<Vec<Run>> {
        let n = case.runners.len();
        let mut runs = vec![Run::default(); n];
        for i in 0..n {
            let i = if round.is_multiple_of(2) { i } else { n - 1 - i };
            runs[i] = self.run(case.runners[i], round == 0, roofline)?;
        }
        Ok(runs)
    }

    fn run(&self, runner: Runner, digest: bool, roofline: Option<&Roofline>) -> Result<Run> {
        let file = |packer: Packer| {
            self.packed
                .get(packer.name)
                .with_context(|| format!("nothing packed by {}", packer.name))
        };
        let (measure, whole) = match runner {
            Runner::Roofline(mode) => {
                let (measure, whole) =
                    roofline.context("the roofline is not built")?.run(mode, &self.path)?;
                self.check_flows("the roofline", &measure)?;
                (measure, whole)
            }
            Runner::Reference => {
                let (measure, whole) = Contestant::Reference.spawn(self.preset, &self.path)?;
                self.check_flows("the reference", &measure)?;
                (measure, whole)
            }
            Runner::Unpack(packer) => {
                let whole = packer.unpack(file(packer)?)?;
                return Ok(Run { whole, ..Run::default() });
            }
            Runner::Work { work, setup, packed } => {
                let path = packed.map_or(Ok(&self.path), file)?;
                let setup = Setup { digest, ..setup };
                let (measure, answer, whole) = contestant::spawn_work(work, path, &setup)?;
                self.check_packets(work.name, &measure)?;
                let right = self.answers.get(work.name).context("an answer to compare with")?;
                right.check(work.name, &answer)?;
                (measure, whole)
            }
        };
        Ok(Run { proper: measure.spent, whole, rss_max_kib: measure.rss_max_kib })
    }

    /// A fast wrong answer is no answer.
    fn check_packets(&self, name: &str, measure: &Measure) -> Result<()> {
        let (said, is) = (measure.packets, self.truth.packets);
        ensure!(said == is, "{name} counted {said} packets; the trace has {is}");
        Ok(())
    }

    fn check_flows(&self, name: &str, measure: &Measure) -> Result<()> {
        let (said, is) = (measure.flows, self.truth.flows);
        ensure!(said == is, "{name} found {said} flows; the trace has {is}");
        self.check_packets(name, measure)
    }
}

/// Reports progress.
fn say(text: &str) -> Result<()> {
    writeln!(io::stderr(), "{text}").context("standard error")
}
