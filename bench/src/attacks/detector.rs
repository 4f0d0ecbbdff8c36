//! The programs that look for attacks: Weir's detectors, their naive forms, and other programs.

use super::alert::{Alert, without_repeats};
use super::attack::Episode;
use super::{nfdump, tshark};
use crate::work::texts_in;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_packet::time::parse_duration;

/// The detectors of the library, and the naive ones.
const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../queries/detectors");
const NAIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/attacks");

/// The line of a query's header that says which kinds of attack it detects.
const DETECTS: &str = "# detects:";

/// The kind of attack that tshark claims: segments that are lost.
const TCP_LOSS: &str = "tcp_loss";

/// The program that a detector is.
#[derive(Clone, Debug)]
enum Program {
    Weir { weir: PathBuf, query: PathBuf, step_ns: i64, site: Option<PathBuf> },
    Suricata { rules: PathBuf, weir: PathBuf },
    Nfdump { weir: PathBuf },
    Tshark { weir: PathBuf },
}

/// A program with the rules by which it looks for attacks.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    /// Its name in the tables.
    pub(crate) name: String,
    /// The kinds of attack that it claims to detect.
    kinds: Vec<String>,
    program: Program,
}

impl Detector {
    /// All detectors that are installed.
    pub(crate) fn all(weir: &Path, site: &Path) -> Result<Vec<Detector>> {
        let mut all = Vec::new();
        for (folder, prefix) in [(LIBRARY, ""), (NAIVE, "naive ")] {
            for (stem, text) in texts_in(Path::new(folder))? {
                let query = Path::new(folder).join(&stem).with_extension("weir");
                let kinds = kinds(&text);
                let site = (prefix.is_empty()).then(|| site.to_owned());
                if !kinds.is_empty() {
                    let step_ns = step(&text).with_context(|| query.display().to_string())?;
                    let program = Program::Weir { weir: weir.to_owned(), query, step_ns, site };
                    all.push(Detector { name: format!("{prefix}{stem}"), kinds, program });
                }
            }
        }
        if version("suricata").is_some() {
            let rules = Path::new(NAIVE).join("suricata.rules");
            let text = fs::read_to_string(&rules).with_context(|| rules.display().to_string())?;
            let program = Program::Suricata { rules, weir: weir.to_owned() };
            all.push(Detector { name: "Suricata".to_owned(), kinds: kinds(&text), program });
        }
        if version("nfdump").is_some() && version("nfpcapd").is_some() {
            let program = Program::Nfdump { weir: weir.to_owned() };
            all.push(Detector { name: "nfdump".to_owned(), kinds: nfdump::kinds(), program });
        }
        if version("tshark").is_some() {
            let program = Program::Tshark { weir: weir.to_owned() };
            let kinds = vec![TCP_LOSS.to_owned()];
            all.push(Detector { name: "tshark".to_owned(), kinds, program });
        }
        ensure!(!all.is_empty(), "no detectors in {LIBRARY}");
        Ok(all)
    }

    /// Whether it claims to detect attacks of this kind.
    pub(crate) fn claims(&self, kind: &str) -> bool {
        self.kinds.iter().any(|k| k == kind)
    }

    /// Why it can't read attacks mixed into this background: other programs than Weir take packets
    /// of one link type. Nothing where it can.
    pub(crate) fn unreadable(&self, background: &Path, episode: &Episode) -> Option<anyhow::Error> {
        let weir = match &self.program {
            Program::Weir { .. } => return None,
            Program::Suricata { weir, .. }
            | Program::Nfdump { weir }
            | Program::Tshark { weir } => weir,
        };
        merged(weir, &[background, &episode.capture], |_| Ok(())).err()
    }

    /// The kinds of attack that it claims to detect.
    pub(crate) fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Its alerts on these captures, merged by time; of Suricata those of its rules.
    pub(crate) fn run(&self, captures: &[&Path]) -> Result<Vec<Alert>> {
        let alerts = match &self.program {
            Program::Weir { weir, query, step_ns, site } => {
                let mut command = Command::new(weir);
                command.args(["run", "-q", "-o", "json", "--time", "epoch-ns"]).arg(query);
                command.args(site.iter().flat_map(|s| [Path::new("--site"), s.as_path()]));
                command.args(captures.iter().flat_map(|c| [Path::new("-r"), *c]));
                let done = crate::process::run(&self.name, &mut command)?;
                let alerts = done
                    .out
                    .lines()
                    .map(|line| Alert::of_weir(line, &self.name, *step_ns))
                    .collect::<Result<Vec<_>>>()?;
                alerts.into_iter().flatten().collect()
            }
            Program::Suricata { rules, weir } => {
                merged(weir, captures, |capture| suricata(rules, capture))?
            }
            Program::Nfdump { weir } => merged(weir, captures, nfdump::alerts)?,
            Program::Tshark { weir } => merged(weir, captures, tshark::alerts)?,
        };
        Ok(without_repeats(alerts))
    }
}

/// Suricata over a capture.
fn suricata(rules: &Path, capture: &Path) -> Result<Vec<Alert>> {
    let folder = tempfile::tempdir().context("a folder for Suricata")?;
    let mut command = Command::new("suricata");
    command.env("TZ", "UTC").args(["-k", "none", "-l"]).arg(folder.path());
    command.args([Path::new("-S"), rules, Path::new("-r"), capture]);
    crate::process::run("suricata", &mut command)?;
    let log = folder.path().join("eve.json");
    let text = fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    let alerts = text.lines().map(Alert::of_eve).collect::<Result<Vec<_>>>()?;
    Ok(alerts.into_iter().flatten().collect())
}

/// The result of a program over a file into which Weir merges captures of one link type.
fn merged<T>(weir: &Path, captures: &[&Path], with: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let folder = tempfile::tempdir().context("a folder for merged captures")?;
    let file = folder.path().join("merged.pcap");
    let mut command = Command::new(weir);
    command.args(["run", "-q", "-e", "packets | pass", "-w"]).arg(&file);
    command.args(captures.iter().flat_map(|c| [Path::new("-r"), *c]));
    crate::process::run("weir", &mut command)?;
    with(&file)
}

/// The first line that a program prints when asked for its version; nothing where it is not
/// installed.
pub(crate) fn version(program: &str) -> Option<String> {
    let flag = if program == "tshark" { "-v" } else { "-V" };
    let output = Command::new(program).arg(flag).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
}

/// How often windows of a query end: those of its last stage that has any. A nanosecond where it
/// has none.
fn step(text: &str) -> Result<i64> {
    let code = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let Some((_, after)) = code.rsplit_once(" every ") else { return Ok(1) };
    let word: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let value = code.lines().find_map(|line| {
        let of = line.strip_prefix("param ")?.strip_prefix(word.as_str())?;
        Some(of.strip_prefix(": duration = ")?.split_whitespace().next()?.to_owned())
    });
    let text = value.unwrap_or(word);
    parse_duration(&text).with_context(|| format!("every {text}"))
}

/// The kinds of attack that the lines `# detects:` of a text name.
fn kinds(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(DETECTS));
    lines
        .flat_map(|line| line.split([',', ' ']))
        .filter(|k| !k.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_what_is_detected() {
        let text = "# a.weir: a\n# detects: port_scan, host_scan\n# detects: syn_flood\npackets";
        assert_eq!(kinds(text), ["port_scan", "host_scan", "syn_flood"]);
        assert_eq!(kinds("packets"), Vec::<String>::new());
    }

    #[test]
    fn windows_end_as_the_last_stage_says() {
        let text = "# every 3s\nparam step: duration = 5m  # how often\npackets\n\
                    | summarize n = count() every 1s\n| summarize m = sum(n) over 1h every step";
        assert_eq!(step(text).expect("a step"), 300_000_000_000);
        assert_eq!(
            step("packets | summarize n = count() every 10s").expect("10 s"),
            10_000_000_000
        );
        assert_eq!(step("packets | where arp").expect("no windows"), 1);
        assert!(step("packets | summarize n = count() every other").is_err());
    }

    /// So that a peer is never compared with a kind of attack that nothing makes.
    #[test]
    fn what_peers_claim_is_claimed_by_a_detector() {
        let mut claimed = Vec::new();
        for folder in [LIBRARY, NAIVE] {
            let texts = texts_in(Path::new(folder)).expect("a folder");
            claimed.extend(texts.iter().flat_map(|(_, text)| kinds(text)));
        }
        for kind in nfdump::kinds().into_iter().chain([TCP_LOSS.to_owned()]) {
            assert!(claimed.contains(&kind), "{kind}");
        }
    }

    #[test]
    fn every_naive_form_says_what_it_detects() {
        for (stem, text) in texts_in(Path::new(NAIVE)).expect("a folder") {
            assert!(!kinds(&text).is_empty(), "{stem}");
        }
    }
}
