//! Detectors against attacks by real tools, and beside other programs on the same packets.
//!
//! An attack is a capture that `attacks/make.sh` made. It is moved in time into the middle of a
//! background, and each detector reads both at once: Weir's detectors with their defaults, the
//! naive form of each (a count against a threshold), and Suricata with a rule file of its own. An
//! *episode* is one attack. It is found if a detector that claims its kind gives an alert with
//! the address of its attacker or its victim, or none at all, while it lasts or within the grace
//! after it. What the detector says of the background alone is a false alert.

mod alert;
mod attack;
mod detector;
mod labels;
mod table;
mod verdicts;

use anyhow::{Context, Result, ensure};
use attack::Attack;
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
        None => std::env::current_exe().context("finding this program")?.with_file_name("weir"),
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
        let verdicts = detectors
            .iter()
            .filter(|each| each.reads(background, &attacks))
            .map(|each| judge(each, background, span, &attacks))
            .collect::<Result<Vec<_>>>()?;
        out += &table::mixed(background, span, &attacks, &verdicts);
    }
    if let Some(folder) = &options.labels {
        out += &labels::table(folder, &detectors)?;
    }
    Ok(out)
}

/// Runs a detector over the background, and over it with each attack that it claims to find.
fn judge(
    detector: &Detector,
    background: &Path,
    span: (i64, i64),
    attacks: &[Attack],
) -> Result<Verdicts> {
    writeln!(io::stderr(), "{} over {}", detector.name, background.display())?;
    let quiet = detector.run(&[background])?;
    let mut found = Vec::new();
    for (i, attack) in attacks.iter().enumerate() {
        if !detector.claims(&attack.kind) {
            continue;
        }
        let folder = tempfile::tempdir().context("a folder for what is mixed")?;
        let moved = folder.path().join("attack.pcap");
        let start = span.0 + (span.1 - span.0) / 2;
        let episode = attack.move_to(start, &moved)?;
        let alerts = detector.run(&[background, &moved])?;
        let about = alerts.iter().filter(|a| {
            a.concerns(&attack.attacker, &attack.victim)
                && a.known_ns >= episode.0
                && a.known_ns <= episode.1 + GRACE_NS
        });
        let delay = about.map(|a| a.known_ns - episode.0).min();
        found.push(Found { attack: i, delay_ns: delay });
    }
    Ok(Verdicts { detector: detector.clone(), quiet, found })
}
