//! How the cost of a packet grows from one detector to all of them.

mod suricata;

use crate::arguments::{OUT, Rounds, preset};
use crate::contestant::{ALONE, Setup, spawn_work};
use crate::measure::ns_per_packet;
use crate::roofline::{Mode, Roofline};
use crate::stats::{Spread, median};
use crate::sys;
use crate::work::{DETECTORS, Folder, texts};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::path::PathBuf;
use suricata::Suricata;

/// The trace or capture that the detectors are to run over, and how often.
#[derive(clap::Args, Debug)]
pub(crate) struct GrowthOptions {
    /// The trace.
    #[arg(long, default_value = "c")]
    trace: String,
    /// Its packets; fewer make a quick check, not a measurement.
    #[arg(short = 'n', long)]
    packets: Option<u64>,
    /// A capture instead of the trace: a pcap file of Ethernet.
    #[arg(short = 'r', long, conflicts_with_all = ["trace", "packets"])]
    capture: Option<PathBuf>,
    #[command(flatten)]
    rounds: Rounds,
    /// Where traces and the built roofline are kept.
    #[arg(long, default_value = OUT, hide_default_value = true)]
    out: PathBuf,
}

/// The measurements of the first so many detectors, one for each round.
struct Step {
    detectors: usize,
    /// The name of the last of them.
    last: String,
    /// Nanoseconds of user time for a packet.
    ns: Vec<f64>,
    /// Nanoseconds of user and system time of the whole process for a packet.
    cpu: Vec<f64>,
    /// The user time by that of the yardstick in the same round.
    ratios: Vec<f64>,
    rss_max_kib: u64,
}

/// The trace or capture that the detectors run over.
struct Subject {
    file: PathBuf,
    /// The heading of the table.
    title: String,
    /// How the yardstick runs over it.
    mode: Mode,
    /// Its packets, where they are known beforehand.
    packets: Option<u64>,
}

/// Runs the first detectors by name together: 1, 2, 4 and so on, and all of them; Suricata beside
/// them, where it is installed.
pub(crate) fn run(options: &GrowthOptions) -> Result<String> {
    let subject = options.subject()?;
    let held = sys::map(&subject.file).with_context(|| subject.file.display().to_string())?;
    // Runs may read from the disk where the trace is not held in memory.
    let _ = held.lock();
    let roofline = Roofline::build(&options.out)?.context("the yardstick takes gcc")?;
    let names: Vec<String> = texts(Folder::Detectors)?.into_iter().map(|(name, _)| name).collect();
    let mut steps: Vec<Step> =
        counts(names.len()).into_iter().map(|n| Step::new(n, &names)).collect();
    let mut suricata = Suricata::find()?;
    let mut yardstick = Vec::new();
    for _ in 0..options.rounds.rounds {
        let (by_hand, _) = roofline.run(subject.mode, &subject.file)?;
        let by_hand = ns_per_packet(by_hand.spent.user, by_hand.packets);
        yardstick.push(by_hand);
        let mut packets = 0;
        for step in &mut steps {
            let setup = Setup { first: Some(step.detectors), ..ALONE };
            let (measure, _, whole) = spawn_work(&DETECTORS, &subject.file, &setup)?;
            packets = measure.packets;
            let expected = subject.packets.unwrap_or(packets);
            ensure!(packets == expected, "{packets} packets instead of {expected}");
            step.ns.push(ns_per_packet(measure.spent.user, packets));
            step.cpu.push(ns_per_packet(whole.cpu, packets));
            step.ratios.push(ns_per_packet(measure.spent.user, packets) / by_hand);
            step.rss_max_kib = step.rss_max_kib.max(measure.rss_max_kib);
        }
        if let Some(suricata) = &mut suricata {
            suricata.run(&subject.file, packets)?;
        }
    }
    let by_hand = median(yardstick.into_iter());
    let mut out = format!(
        "{}; the yardstick takes {by_hand:.1} ns of user time for a packet.\n\n{}",
        subject.title,
        table(&steps)
    );
    out.push_str(&suricata.map_or_else(
        || "SKIPPED Suricata: it is not installed.\n".to_owned(),
        |suricata| suricata.line(),
    ));
    Ok(out)
}

impl GrowthOptions {
    /// The capture that was named, or the trace, which is made.
    fn subject(&self) -> Result<Subject> {
        if let Some(file) = &self.capture {
            let title = format!("Capture {}", file.display());
            let mode = Mode { tables: None, threads: 1 };
            return Ok(Subject { file: file.clone(), title, mode, packets: None });
        }
        let preset = preset(&self.trace)?;
        let mut options = preset.options.clone();
        options.packets = self.packets.unwrap_or(options.packets);
        let (file, truth) = options.make(&self.out)?;
        let (packets, flows) = (truth.packets, truth.flows);
        let title = format!("Trace {}: {packets} packets, {flows} flows", preset.name);
        let mode = Mode::made(preset, packets);
        Ok(Subject { file, title, mode, packets: Some(packets) })
    }
}

impl Step {
    fn new(detectors: usize, names: &[String]) -> Step {
        let last = names[detectors - 1].clone();
        let [ns, cpu, ratios] = [(); 3].map(|()| Vec::new());
        Step { detectors, last, ns, cpu, ratios, rss_max_kib: 0 }
    }
}

/// 1, 2, 4 and so on below `all`, and that.
fn counts(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |n| Some(n * 2));
    powers.take_while(|n| *n < all).chain((all > 0).then_some(all)).collect()
}

fn table(steps: &[Step]) -> String {
    let mut out = String::from(
        "| detectors | up to | user ns | × the yardstick | ns of the process | peak MiB |\n\
         |---:|---|---:|---:|---:|---:|\n",
    );
    for step in steps {
        let [ns, cpu] = [&step.ns, &step.cpu].map(|ns| median(ns.iter().copied()));
        let ratio = Spread::of(step.ratios.iter().copied());
        let _ = writeln!(
            out,
            "| {} | {} | {ns:.1} | {:.2} ({:.2}–{:.2}) | {cpu:.1} | {} |",
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
        step.cpu.extend([40.0, 70.0, 50.0]);
        step.ratios.extend([1.0, 2.0, 1.5]);
        step.rss_max_kib = 4096;
        let line = table(&[step]).lines().last().map(str::to_owned);
        assert_eq!(line.as_deref(), Some("| 2 | b | 45.0 | 1.50 (1.25–1.75) | 50.0 | 4 |"));
    }
}
