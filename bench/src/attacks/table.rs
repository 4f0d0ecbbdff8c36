//! The tables of `weir-bench attacks`.

use super::attack::Attack;
use super::detector::{Detector, version};
use super::verdicts::Verdicts;
use crate::stats::median;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

const HOUR_NS: f64 = 3600e9;

/// The programs with their versions, and the kinds of attack that each detector claims.
pub(super) fn head(detectors: &[Detector]) -> Result<String> {
    let versions: Vec<String> = ["suricata", "nfdump", "tshark", "nmap", "masscan"]
        .into_iter()
        .filter_map(version)
        .collect();
    let mut out =
        format!("Programs: {}.\n\n| | claims to detect |\n|---|---|\n", versions.join("; "));
    for each in detectors {
        writeln!(out, "| {} | {} |", each.name, each.kinds().join(", "))?;
    }
    Ok(out)
}

/// Attacks in one background.
pub(super) fn mixed(
    background: &Path,
    span: (i64, i64),
    attacks: &[Attack],
    verdicts: &[Verdicts],
) -> String {
    let hours = (span.1 - span.0) as f64 / HOUR_NS;
    let name = background.file_name().unwrap_or_default().to_string_lossy();
    let mut out = format!(
        "\n## Attacks mixed into {name} ({:.1} minutes)\n\n| | found | median delay | worst delay \
         | false alerts per hour | missed |\n|---|---:|---:|---:|---:|---|\n",
        hours * 60.0
    );
    for each in verdicts {
        let delays: Vec<f64> =
            each.found.iter().filter_map(|f| Some(f.delay_ns? as f64 / 1e9)).collect();
        let missed: Vec<&str> = each
            .found
            .iter()
            .filter(|f| f.delay_ns.is_none())
            .map(|f| attacks[f.attack].name.as_str())
            .collect();
        let (middle, worst) = if delays.is_empty() {
            ("–".to_owned(), "–".to_owned())
        } else {
            let worst = delays.iter().copied().fold(f64::MIN, f64::max);
            (format!("{:.1} s", median(delays.iter().copied())), format!("{worst:.1} s"))
        };
        let _ = writeln!(
            out,
            "| {} | {}/{} | {middle} | {worst} | {} | {} |",
            each.detector.name,
            delays.len(),
            each.found.len(),
            per_hour(each.quiet.len(), hours),
            missed.join(", ")
        );
    }
    let claimed: BTreeSet<usize> =
        verdicts.iter().flat_map(|v| v.found.iter().map(|f| f.attack)).collect();
    out += "\nThe attacks:\n\n| | kind | tool | rate |\n|---|---|---|---|\n";
    for attack in claimed.into_iter().map(|i| &attacks[i]) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            attack.name, attack.kind, attack.tool, attack.rate
        );
    }
    out
}

/// How often in an hour; of none in `hours`, the rate that it is below with 95 % (the rule of
/// three).
fn per_hour(count: usize, hours: f64) -> String {
    let (sign, rate) = if count == 0 { ("< ", 3.0 / hours) } else { ("", count as f64 / hours) };
    // Captures of months have rates far below one.
    let digits = if rate < 0.05 { 4 } else { 1 };
    format!("{sign}{rate:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_in_some_hours_is_less_than_three_by_them() {
        assert_eq!(per_hour(0, 1.5), "< 2.0");
        assert_eq!(per_hour(3, 1.5), "2.0");
        assert_eq!(per_hour(0, 3000.0), "< 0.0010");
    }
}
