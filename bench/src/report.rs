//! Rounds of runs, and the table of their medians.

use crate::contestant::Contestant;
use crate::measure::Measure;
use crate::roofline::{Mode, Roofline};
use crate::stats::median;
use crate::trace::{Preset, Truth};
use anyhow::{Result, ensure};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The runs of everyone over one trace.
pub(crate) struct Report {
    truth: Truth,
    runs: Vec<Runs>,
}

/// The runs of one contestant, by round.
struct Runs {
    name: &'static str,
    measures: Vec<Measure>,
}

/// The time that a ratio is made of.
type Time = fn(&Measure) -> Duration;

const USER: Time = |m| m.spent.user;
const WALL: Time = |m| m.spent.wall;

impl Report {
    /// Runs everyone once to warm up, and then `rounds` times in turn, so that what changes with
    /// time on the machine touches all alike.
    pub(crate) fn make(
        preset: &Preset,
        trace: &Path,
        truth: Truth,
        roofline: Option<&Roofline>,
        rounds: usize,
    ) -> Result<Report> {
        let names = roofline.map(|_| ROOFLINE).into_iter();
        let names = names.chain(Contestant::ALL.map(Contestant::name));
        let mut runs: Vec<Runs> = names.map(|name| Runs { name, measures: Vec::new() }).collect();
        for round in 0..=rounds {
            let by_hand =
                roofline.map(|r| r.run(Mode::made(preset, truth.packets), trace)).into_iter();
            let ours = Contestant::ALL.iter().map(|c| c.spawn(preset, trace));
            for (runs, measure) in runs.iter_mut().zip(by_hand.chain(ours)) {
                let (measure, _) = measure?;
                check(runs.name, &measure, &truth)?;
                if round > 0 {
                    runs.measures.push(measure);
                }
            }
        }
        Ok(Report { truth, runs })
    }

    fn runs(&self, name: &str) -> Option<&Runs> {
        self.runs.iter().find(|r| r.name == name)
    }

    /// The table, as Markdown.
    pub(crate) fn table(&self) -> String {
        let mut out = String::from(
            "| | user ns | wall ns | user ÷ roofline | wall ÷ roofline | user ÷ reference \
             | wall ÷ reference | peak MiB |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        let rivals = [self.runs(ROOFLINE), self.runs(Contestant::Reference.name())];
        for runs in &self.runs {
            let ns = |time| runs.median(time) * 1e9 / self.truth.packets as f64;
            let _ = write!(out, "| {} | {:.1} | {:.1} ", runs.name, ns(USER), ns(WALL));
            for rival in rivals {
                for time in [USER, WALL] {
                    let _ = match rival {
                        Some(rival) => write!(out, "| {:.2} ", runs.ratio(rival, time)),
                        None => write!(out, "| – "),
                    };
                }
            }
            let rss = runs.measures.iter().map(|m| m.rss_max_kib).max().unwrap_or(0);
            let _ = writeln!(out, "| {} |", rss / 1024);
        }
        out
    }
}

const ROOFLINE: &str = "roofline";

/// A fast wrong answer is no answer.
fn check(name: &str, measure: &Measure, truth: &Truth) -> Result<()> {
    let (said, is) = ((measure.packets, measure.flows), (truth.packets, truth.flows));
    ensure!(
        said == is,
        "{name} counted {} packets and {} flows; the trace has {} and {}",
        said.0,
        said.1,
        is.0,
        is.1
    );
    Ok(())
}

impl Runs {
    /// Median time over the rounds, in seconds.
    fn median(&self, time: Time) -> f64 {
        median(self.measures.iter().map(|m| time(m).as_secs_f64()))
    }

    /// Median over the rounds of this time by the rival's in the same round.
    fn ratio(&self, rival: &Runs, time: Time) -> f64 {
        let pairs = self.measures.iter().zip(&rival.measures);
        median(pairs.map(|(ours, theirs)| time(ours).as_secs_f64() / time(theirs).as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Spent;

    fn runs(name: &'static str, user_ms: &[u64]) -> Runs {
        let measure = |&ms: &u64| Measure {
            packets: 1_000_000,
            flows: 10,
            spent: Spent { user: Duration::from_millis(ms), wall: Duration::from_millis(2 * ms) },
            rss_max_kib: 2048,
        };
        Runs { name, measures: user_ms.iter().map(measure).collect() }
    }

    #[test]
    fn ratios_are_of_runs_in_the_same_round() {
        let truth = Truth { packets: 1_000_000, flows: 10, ..Truth::default() };
        let report = Report {
            truth,
            runs: vec![runs(ROOFLINE, &[10, 20, 40]), runs("reference", &[20, 30, 40])],
        };
        assert_eq!(
            report.table().lines().skip(2).collect::<Vec<_>>(),
            [
                "| roofline | 20.0 | 40.0 | 1.00 | 1.00 | 0.67 | 0.67 | 2 |",
                "| reference | 30.0 | 60.0 | 1.50 | 1.50 | 1.00 | 1.00 | 2 |",
            ]
        );
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        let truth = Truth { packets: 1_000_000, flows: 11, ..Truth::default() };
        assert!(check("x", &runs("x", &[1]).measures[0], &truth).is_err());
    }
}
