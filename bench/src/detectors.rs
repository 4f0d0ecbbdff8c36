//! How the cost of a packet grows from one detector to all of them.

use crate::contestant::{ALONE, Setup, spawn_work};
use crate::measure::Measure;
use crate::roofline::{Mode, Roofline};
use crate::stats::{Spread, median};
use crate::sys;
use crate::trace::Preset;
use crate::work::{DETECTORS, Folder, texts};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::path::Path;

/// The measurements of the first so many detectors, one for each round.
struct Step {
    detectors: usize,
    /// The name of the last of them.
    last: String,
    /// Nanoseconds of user time for a packet.
    ns: Vec<f64>,
    /// The same by that of the yardstick in the same round.
    ratios: Vec<f64>,
    rss_max_kib: u64,
}

/// Runs the first detectors by name together: 1, 2, 4 and so on, and all of them.
pub(crate) fn run(
    preset: &Preset,
    packets: Option<u64>,
    rounds: usize,
    out: &Path,
) -> Result<String> {
    let mut options = preset.options.clone();
    options.packets = packets.unwrap_or(options.packets);
    let (trace, truth) = options.make(out)?;
    let held = sys::map(&trace).with_context(|| trace.display().to_string())?;
    // Runs may read from the disk where the trace is not held in memory.
    let _ = held.lock();
    let roofline = Roofline::build(out)?.context("the yardstick takes gcc")?;
    let names: Vec<String> = texts(Folder::Detectors)?.into_iter().map(|(name, _)| name).collect();
    let mut steps: Vec<Step> =
        counts(names.len()).into_iter().map(|n| Step::new(n, &names)).collect();
    let mut yardstick = Vec::new();
    let per_packet = |m: &Measure| m.spent.user.as_secs_f64() * 1e9 / truth.packets as f64;
    for _ in 0..rounds {
        let (by_hand, _) = roofline.run(Mode::made(preset, truth.packets), &trace)?;
        let by_hand = per_packet(&by_hand);
        yardstick.push(by_hand);
        for step in &mut steps {
            let setup = Setup { first: Some(step.detectors), ..ALONE };
            let (measure, _, _) = spawn_work(&DETECTORS, &trace, &setup)?;
            ensure!(measure.packets == truth.packets, "{} packets", measure.packets);
            step.ns.push(per_packet(&measure));
            step.ratios.push(per_packet(&measure) / by_hand);
            step.rss_max_kib = step.rss_max_kib.max(measure.rss_max_kib);
        }
    }
    let by_hand = median(yardstick.into_iter());
    Ok(format!(
        "Trace {}: {} packets, {} flows; the yardstick takes {by_hand:.1} ns of user time for a \
         packet.\n\n{}",
        preset.name,
        truth.packets,
        truth.flows,
        table(&steps)
    ))
}

impl Step {
    fn new(detectors: usize, names: &[String]) -> Step {
        let last = names[detectors - 1].clone();
        Step { detectors, last, ns: Vec::new(), ratios: Vec::new(), rss_max_kib: 0 }
    }
}

/// 1, 2, 4 and so on below `all`, and that.
fn counts(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |n| Some(n * 2));
    powers.take_while(|n| *n < all).chain((all > 0).then_some(all)).collect()
}

fn table(steps: &[Step]) -> String {
    let mut out = String::from(
        "| detectors | up to | user ns | × the yardstick | peak MiB |\n|---:|---|---:|---:|---:|\n",
    );
    for step in steps {
        let ns = median(step.ns.iter().copied());
        let ratio = Spread::of(step.ratios.iter().copied());
        let _ = writeln!(
            out,
            "| {} | {} | {ns:.1} | {:.2} ({:.2}–{:.2}) | {} |",
            step.detectors,
            step.last,
            ratio.median,
            ratio.low,
            ratio.high,
            step.rss_max_kib >> 10
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double_up_to_all() {
        assert_eq!(counts(0), [0; 0]);
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(4), [1, 2, 4]);
        assert_eq!(counts(43), [1, 2, 4, 8, 16, 32, 43]);
    }

    #[test]
    fn a_line_for_each_step() {
        let names = ["a".to_owned(), "b".to_owned()];
        let mut step = Step::new(2, &names);
        step.ns.extend([30.0, 60.0, 45.0]);
        step.ratios.extend([1.0, 2.0, 1.5]);
        step.rss_max_kib = 4096;
        let line = table(&[step]).lines().last().map(str::to_owned);
        assert_eq!(line.as_deref(), Some("| 2 | b | 45.0 | 1.50 (1.25–1.75) | 4 |"));
    }
}
