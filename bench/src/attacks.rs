//! Detectors against attacks by real tools, and beside other programs on the same packets.
//!
//! An attack is a capture that `attacks/make.sh` made. It is moved in time into the middle of a
//! background, and each detector reads both at once: Weir's detectors with their defaults, the
//! naive form of each (a count against a threshold), Suricata with a rule file of its own, nfdump
//! with the naive thresholds over flow records, and tshark's `tcp.analysis` beside `tcp_trouble`.
//! An *episode* is one attack. It is found if a detector that claims its kind gives an alert with
//! the address of its attacker or its victim, or none at all, while it lasts or within the grace
//! after it. An alert of the detector over the background alone is a false alert.

mod alert;
mod attack;
mod detector;
mod labels;
mod nfdump;
mod table;
mod tshark;
mod verdicts;

use crate::process;
use anyhow::{Context, Result, ensure};
use attack::{Attack, Episode};
use detector::Detector;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use verdicts::{Found, Verdicts};

/// How long after its last packet an attack may still be found: the longest step of a window that
/// a detector has.
const GRACE_NS: i64 = 3_600_000_000_000;

#[derive(clap::Args, Debug)]
pub(crate) struct AttacksOptions {
    /// The folder that attacks/make.sh filled.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/out/attacks"),
          hide_default_value = true)]
    attacks: PathBuf,
    /// Captures into which attacks are mixed, and which hold none themselves; without one, the
    /// background of the folder of attacks.
    #[arg(long, value_name = "CAPTURE")]
    background: Vec<PathBuf>,
    /// A folder of captures with a file `labels.jsonl` that says which attacks are in them.
    #[arg(long, value_name = "FOLDER")]
    labels: Option<PathBuf>,
    /// Parameters of the site, for Weir's detectors; without one, those of the network of the
    /// attacks.
    #[arg(long, value_name = "FILE",
          default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/attacks/site.conf"),
          hide_default_value = true)]
    site: PathBuf,
    /// The program to run.
    #[arg(long, value_name = "PROGRAM")]
    weir: Option<PathBuf>,
}

/// Measures, and gives the tables.
pub(crate) fn run(options: &AttacksOptions) -> Result<String> {
    let weir = match &options.weir {
        Some(path) => path.clone(),
        None => process::beside("weir")?,
    };
    ensure!(weir.is_file(), "{}: build it first: cargo build --release -p weir", weir.display());
    let attacks = Attack::read_all(&options.attacks)?;
    let mut backgrounds = options.background.clone();
    if backgrounds.is_empty() {
        backgrounds.push(options.attacks.join("background.pcap"));
    }
    let detectors = Detector::all(&weir, &options.site)?;
    let mut out = table::head(&detectors)?;
    for background in &backgrounds {
        let span = attack::span(&weir, background)?;
        let folder = tempfile::tempdir().context("a folder for attacks that were moved")?;
        let start = span.0 + (span.1 - span.0) / 2;
        let episodes = attacks
            .iter()
            .map(|attack| attack.move_to(start, folder.path()))
            .collect::<Result<Vec<_>>>()?;
        let mut verdicts = Vec::new();
        for detector in &detectors {
            writeln!(io::stderr(), "{} over {}", detector.name, background.display())?;
            match detector.unreadable(background, &episodes[0]) {
                Some(why) => writeln!(io::stderr(), "{} is left out: {why}", detector.name)?,
                None => verdicts.push(judge(detector, background, &attacks, &episodes)?),
            }
        }
        out += &table::mixed(background, span, &attacks, &verdicts);
    }
    if let Some(folder) = &options.labels {
        out += &labels::table(folder, &detectors)?;
    }
    Ok(out)
}

/// Runs a detector over the background, and over it with each attack that it claims to find. An
/// alert that the background has without the attack is none about it.
fn judge(
    detector: &Detector,
    background: &Path,
    attacks: &[Attack],
    episodes: &[Episode],
) -> Result<Verdicts> {
    let quiet = detector.run(&[background])?;
    let mut found = Vec::new();
    for (i, (attack, episode)) in attacks.iter().zip(episodes).enumerate() {
        if !detector.claims(&attack.kind) {
            continue;
        }
        let alerts = detector.run(&[background, &episode.capture])?;
        let about = alerts.iter().filter(|a| {
            a.concerns(&attack.attacker, &attack.victim)
                && (episode.first_ns..=episode.last_ns + GRACE_NS).contains(&a.known_ns)
                && !quiet.contains(a)
        });
        let delay_ns = about.map(|a| a.known_ns - episode.first_ns).min();
        found.push(Found { attack: i, delay_ns });
    }
    Ok(Verdicts { detector: detector.clone(), quiet, found })
}
