//! How speed grows with workers: every work with 1, 2, 4 and more of them, beside the yardstick.

use crate::contestant::{ALONE, Setup, spawn_work};
use crate::measure::Measure;
use crate::roofline::{Mode, Roofline};
use crate::stats::{Spread, median};
use crate::sys;
use crate::trace::{Preset, Truth};
use crate::work::{WORKS, Work};
use anyhow::{Context, Result, ensure};
use regex::Regex;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// The trace, the works and the numbers of workers that are measured.
pub(crate) struct ScalingOptions<'a> {
    pub(crate) preset: &'static Preset,
    /// Packets of the trace, unless those of the preset.
    pub(crate) packets: Option<u64>,
    pub(crate) rounds: usize,
    /// Numbers of workers; the first is what the others are compared with.
    pub(crate) workers: Vec<usize>,
    /// Only the works whose name and title match.
    pub(crate) only: Option<Regex>,
    /// Where traces and the built roofline are kept.
    pub(crate) out: &'a Path,
}

/// The wall times of one runner with so many workers, one for each round.
struct Line {
    title: String,
    workers: usize,
    wall: Vec<Duration>,
    /// User time of all threads.
    user: Vec<Duration>,
}

/// Runs the yardstick and every work with each number of workers.
pub(crate) fn run(options: &ScalingOptions<'_>) -> Result<String> {
    let ScalingOptions { preset, out, .. } = options;
    let mut making = preset.options.clone();
    making.packets = options.packets.unwrap_or(making.packets);
    let (trace, truth) = making.make(out)?;
    let held = sys::map(&trace).with_context(|| trace.display().to_string())?;
    // Runs may read from the disk where the trace is not held in memory.
    let _ = held.lock();
    let roofline = Roofline::build(out)?;
    let mut lines = Vec::new();
    if let Some(roofline) = &roofline {
        let made = Mode::made(preset, truth.packets);
        let by_hand = |threads| Ok(roofline.run(Mode { threads, ..made }, &trace)?.0);
        lines.extend(measure(options, "the yardstick", by_hand)?);
    }
    let wanted = |work: &&Work| {
        let name = format!("{}: {}", work.name, work.title);
        options.only.as_ref().is_none_or(|only| only.is_match(&name))
    };
    for work in WORKS.iter().filter(wanted) {
        lines.extend(work_lines(options, work, &trace, truth)?);
    }
    Ok(format!(
        "Trace {}: {} packets, {} flows; this machine has {} processors.\n\n{}",
        preset.name,
        truth.packets,
        truth.flows,
        std::thread::available_parallelism()?,
        table(&lines, truth.packets)
    ))
}

fn work_lines(
    options: &ScalingOptions<'_>,
    work: &'static Work,
    trace: &Path,
    truth: Truth,
) -> Result<Vec<Line>> {
    let mut rows = None;
    measure(options, work.title, |workers| {
        let (measure, answer, _) = spawn_work(work, trace, &Setup { workers, ..ALONE })?;
        let (counted, has) = (measure.packets, truth.packets);
        ensure!(counted == has, "{} counted {counted} packets; the trace has {has}", work.name);
        let of_one = *rows.get_or_insert(answer.rows());
        ensure!(
            of_one == answer.rows(),
            "{} gave {of_one} rows, and {} with {workers} workers",
            work.name,
            answer.rows()
        );
        Ok(measure)
    })
}

/// The rounds of one runner, with each number of workers in turn.
fn measure(
    options: &ScalingOptions<'_>,
    title: &str,
    mut run: impl FnMut(usize) -> Result<Measure>,
) -> Result<Vec<Line>> {
    let line = |workers: &usize| Line {
        title: title.to_owned(),
        workers: *workers,
        wall: Vec::new(),
        user: Vec::new(),
    };
    let mut lines: Vec<Line> = options.workers.iter().map(line).collect();
    for _ in 0..options.rounds {
        for line in &mut lines {
            let spent = run(line.workers)?.spent;
            line.wall.push(spent.wall);
            line.user.push(spent.user);
        }
    }
    Ok(lines)
}

/// 1, 2, 4 and so on, up to as many as there are processors.
pub(crate) fn usual_workers(processors: usize) -> Vec<usize> {
    std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n <= processors).collect()
}

fn table(lines: &[Line], packets: u64) -> String {
    let mut out = String::from(
        "| work | workers | million packets/s | × the first | user × the first |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for line in lines {
        let one = lines.iter().find(|other| other.title == line.title).unwrap_or(line);
        let seconds = median(line.wall.iter().map(Duration::as_secs_f64));
        let ratio = |a: &[Duration], b: &[Duration]| {
            Spread::of(a.iter().zip(b).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()))
        };
        let (faster, user) = (ratio(&one.wall, &line.wall), ratio(&line.user, &one.user));
        let _ = writeln!(
            out,
            "| {} | {} | {:.2} | {:.2} ({:.2}–{:.2}) | {:.2} |",
            line.title,
            line.workers,
            packets as f64 / seconds / 1e6,
            faster.median,
            faster.low,
            faster.high,
            user.median
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_double_up_to_the_processors() {
        assert_eq!(usual_workers(1), [1]);
        assert_eq!(usual_workers(2), [1, 2]);
        assert_eq!(usual_workers(15), [1, 2, 4, 8]);
        assert_eq!(usual_workers(16), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn ratios_are_to_the_first_line_of_a_work_in_the_same_round() {
        let line = |title: &str, workers, wall: [u64; 3]| Line {
            title: title.to_owned(),
            workers,
            wall: wall.map(Duration::from_millis).to_vec(),
            user: vec![Duration::from_millis(10 * workers as u64); 3],
        };
        let lines =
            [line("a", 1, [100, 200, 300]), line("a", 4, [50, 50, 50]), line("b", 1, [10, 10, 10])];
        let shown = table(&lines, 1_000_000);
        let rows: Vec<&str> = shown.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| a | 1 | 5.00 | 1.00 (1.00–1.00) | 1.00 |",
                "| a | 4 | 20.00 | 4.00 (3.00–5.00) | 4.00 |",
                "| b | 1 | 100.00 | 1.00 (1.00–1.00) | 1.00 |",
            ]
        );
    }
}
