//! Detectors over captures of others, whose labels say which attacks are in them.

use super::alert::Alert;
use super::detector::Detector;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The kind of attack by the words of the labels.
const KINDS: [(&str, &str); 15] = [
    ("port scan (UDP)", "udp_scan"),
    ("host scan (UDP)", "udp_sweep"),
    ("host scan (ACK)", "ack_scan"),
    ("host scan (ICMP)", "icmp_sweep"),
    ("port scan (horizontal)", "host_scan"),
    ("port scan", "port_scan"),
    ("host scan", "host_scan"),
    ("SYN flood", "syn_flood"),
    ("UDP/DNS flood", "udp_flood"),
    ("ICMP flood", "icmp_unreachable_flood"),
    ("DNS reflection", "dns_reflection"),
    ("SSH brute force", "ssh_brute_force"),
    ("login brute force", "login_guessing"),
    ("Slowloris", "slowloris"),
    ("DNS tunnelling", "dns_tunnel"),
];

/// A line of the labels: a capture, and whether an attack of a kind is in it.
struct Label {
    file: String,
    kind: &'static str,
    expected: Expected,
    attacker: String,
    victim: String,
}

/// Whether an attack of the kind is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Attack,
    None,
    /// The label names a condition, or leaves it open.
    Open,
}

/// How many of some attacks or captures were found.
#[derive(Clone, Copy, Default)]
struct Share {
    found: usize,
    of: usize,
}

/// How often a detector was right.
#[derive(Clone, Copy, Default)]
struct Score {
    /// Of captures with an attack, those in which it was found.
    attacks: Share,
    /// The same of captures whose label leaves open whether there is one.
    open: Share,
    false_alerts: usize,
    quiet: usize,
}

/// The table.
pub(super) fn table(folder: &Path, detectors: &[Detector]) -> Result<String> {
    let path = folder.join("labels.jsonl");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let labels: Vec<Label> = text
        .lines()
        .map(|line| Label::parse(line).with_context(|| format!("{}: {line}", path.display())))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect();
    let mut out = String::from(
        "\n## Captures of others\n\n| | found | of those left open by their label | alerts on \
         captures without such an attack |\n|---|---:|---:|---:|\n",
    );
    let mut misses = String::new();
    for detector in detectors {
        let mut cache: BTreeMap<&str, Vec<Alert>> = BTreeMap::new();
        let mut score = Score::default();
        for label in labels.iter().filter(|label| detector.claims(label.kind)) {
            if !cache.contains_key(label.file.as_str()) {
                cache.insert(&label.file, detector.run(&[&folder.join(&label.file)])?);
            }
            let alerts = &cache[label.file.as_str()];
            let found = alerts.iter().any(|a| a.concerns(&label.attacker, &label.victim));
            score.add(label.expected, found, alerts.len());
            if label.expected == Expected::Attack && !found {
                let _ = writeln!(
                    misses,
                    "- {} misses {} in `{}`",
                    detector.name, label.kind, label.file
                );
            }
            if label.expected == Expected::None && !alerts.is_empty() {
                let _ = writeln!(
                    misses,
                    "- {} has {} alerts on `{}`",
                    detector.name,
                    alerts.len(),
                    label.file
                );
            }
        }
        let _ = writeln!(
            out,
            "| {} | {}/{} | {}/{} | {} on {} |",
            detector.name,
            score.attacks.found,
            score.attacks.of,
            score.open.found,
            score.open.of,
            score.false_alerts,
            score.quiet
        );
    }
    Ok(out + "\n" + &misses)
}

impl Label {
    /// A line of the file; nothing where no detector claims what it is about.
    fn parse(line: &str) -> Result<Option<Label>> {
        let row: Value = serde_json::from_str(line)?;
        let text =
            |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let detector = text("detector");
        let Some((_, kind)) = KINDS.iter().find(|(words, _)| detector.starts_with(words)) else {
            return Ok(None);
        };
        let expected = match text("expect").as_str() {
            "yes" => Expected::Attack,
            "no" => Expected::None,
            _ => Expected::Open,
        };
        let file = row.get("file").and_then(Value::as_str).context("no file")?.to_owned();
        let (attacker, victim) = (text("attacker"), text("victim"));
        Ok(Some(Label { file, kind, expected, attacker, victim }))
    }
}

impl Score {
    fn add(&mut self, expected: Expected, found: bool, alerts: usize) {
        let share = match expected {
            Expected::Attack => &mut self.attacks,
            Expected::Open => &mut self.open,
            Expected::None => {
                self.quiet += 1;
                self.false_alerts += alerts;
                return;
            }
        };
        share.of += 1;
        share.found += usize::from(found);
    }
}
