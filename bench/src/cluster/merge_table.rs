//! The tables of merges on Flink.

use super::load::ProbeLoad;
use super::merge::RealTime;
use super::table::whole;
use crate::stats::Spread;
use crate::timing::Whole;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// The times of every round.
pub(super) struct MergeTable {
    probes: usize,
    /// Partial results of all probes in a window.
    per_window: u64,
    real_time: Vec<RealTime>,
    at_once: [AtOnce; 2],
}

/// Partial results that were in a topic before the job began.
struct AtOnce {
    what: &'static str,
    partials: u64,
    rounds: Vec<Whole>,
}

impl MergeTable {
    /// Without a round.
    pub(super) fn of(sums: &ProbeLoad, sketches: &ProbeLoad) -> MergeTable {
        let all = [("two counts each", sums), ("a count and a full sketch each", sketches)];
        MergeTable {
            probes: sums.probes(),
            per_window: sums.partials() / sums.windows.len() as u64,
            real_time: Vec::new(),
            at_once: all.map(|(what, load)| AtOnce {
                what,
                partials: load.partials(),
                rounds: Vec::new(),
            }),
        }
    }

    /// Adds a round.
    pub(super) fn push(&mut self, (real_time, sums, sketches): (RealTime, Whole, Whole)) {
        self.real_time.push(real_time);
        self.at_once[0].rounds.push(sums);
        self.at_once[1].rounds.push(sketches);
    }

    /// As Markdown.
    pub(super) fn markdown(&self) -> String {
        let (probes, per_window) = (self.probes, self.per_window);
        let mut out = format!(
            "{probes} probes, a window of each a second, {per_window} partial results together\n\n\
             | | |\n|---|---:|\n"
        );
        type Figure = fn(&RealTime) -> Option<Duration>;
        let figures: [(&str, f64, Figure); 5] = [
            ("from the end of a window to its last committed row, s", 1.0, |r| Some(r.latency)),
            ("the same, the slowest window, s", 1.0, |r| Some(r.longest)),
            ("longest time without rows after a task manager was killed, s", 1.0, |r| Some(r.gap)),
            ("from the kill to a window that is not slower than before, s", 1.0, |r| r.recovered),
            ("CPU time of the task manager for a partial result, µs", 1e6, |r| Some(r.cpu)),
        ];
        for (what, unit, figure) in figures {
            let all = self.real_time.iter().filter_map(figure);
            let values = all.map(|time| time.as_secs_f64() * unit);
            let Spread { low, median, high } = Spread::of(values);
            let _ = writeln!(out, "| {what} | {median:.2} ({low:.2}–{high:.2}) |");
        }
        out += "\n| a topic merged at once | million a second | million per CPU second |\n\
                |---|---:|---:|\n";
        for AtOnce { what, partials, rounds } in &self.at_once {
            let rate = |time: fn(&Whole) -> Duration| {
                Spread::of(rounds.iter().map(|w| *partials as f64 / 1e6 / time(w).as_secs_f64()))
                    .median
            };
            let (wall, cpu) = (rate(|whole| whole.wall), rate(|whole| whole.cpu));
            let _ = writeln!(out, "| {partials}: {what} | {wall:.3} | {cpu:.3} |");
        }
        out
    }

    pub(super) fn json(&self) -> Value {
        let seconds = |round: &RealTime| {
            let RealTime { latency, longest, gap, recovered, cpu } = round;
            json!({
                "latency_s": latency.as_secs_f64(), "longest_s": longest.as_secs_f64(),
                "gap_s": gap.as_secs_f64(), "recovered_s": recovered.map(|t| t.as_secs_f64()),
                "cpu_per_partial_s": cpu.as_secs_f64(),
            })
        };
        let at_once = |line: &AtOnce| {
            let rounds: Vec<Value> = line.rounds.iter().map(whole).collect();
            json!({ "what": line.what, "partials": line.partials, "rounds": rounds })
        };
        json!({
            "probes": self.probes, "partials_per_window": self.per_window,
            "real_time": self.real_time.iter().map(seconds).collect::<Vec<_>>(),
            "at_once": self.at_once.iter().map(at_once).collect::<Vec<_>>(),
        })
    }
}
