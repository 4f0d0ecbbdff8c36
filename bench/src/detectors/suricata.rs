//! Suricata beside all detectors: without rules, with its logs of flows and of DNS.

use crate::measure::ns_per_packet;
use crate::process;
use crate::stats::Spread;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How it is set up, seen from this crate.
const SETTINGS: &str = "attacks/suricata_log.yaml";
/// A pcap file of one Ethernet frame of 14 bytes (draft-ietf-opsawg-pcap): what a start costs.
/// Suricata refuses a file without a packet.
const ONE_PACKET: [&[u8]; 3] = [
    &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0],
    &[1, 0, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0, 14, 0, 0, 0],
    &[0; 14],
];

/// Suricata, and what it took in each round.
pub(super) struct Suricata {
    version: String,
    /// Nanoseconds of user and system time for a packet, less what a run over one packet takes.
    cpu: Vec<f64>,
}

impl Suricata {
    /// Nothing where it is not installed.
    pub(super) fn find() -> Result<Option<Suricata>> {
        let output = match Command::new("suricata").arg("-V").output() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            output => output.context("running suricata")?,
        };
        let version = String::from_utf8_lossy(&output.stdout);
        let version = version.trim().trim_start_matches("This is ").to_owned();
        Ok(Some(Suricata { version, cpu: Vec::new() }))
    }

    /// Runs it over a capture of so many packets.
    pub(super) fn run(&mut self, capture: &Path, packets: u64) -> Result<()> {
        let folder = tempfile::tempdir().context("a folder for Suricata")?;
        let one = folder.path().join("one.pcap");
        fs::write(&one, ONE_PACKET.concat()).with_context(|| one.display().to_string())?;
        let start = process::run("suricata", &mut command(folder.path(), &one))?;
        let done = process::run("suricata", &mut command(folder.path(), capture))?;
        self.cpu.push(ns_per_packet(done.whole.cpu.saturating_sub(start.whole.cpu), packets));
        Ok(())
    }

    /// The time that it took, in words.
    pub(super) fn line(&self) -> String {
        let Spread { low, median, high } = Spread::of(self.cpu.iter().copied());
        format!(
            "{}, logging flows and DNS, without rules: {median:.1} ns of the process for a packet \
             ({low:.1}–{high:.1}), less its start.\n",
            self.version
        )
    }
}

fn command(folder: &Path, capture: &Path) -> Command {
    let settings: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(SETTINGS);
    let mut command = Command::new("suricata");
    command.args(["-k", "none", "--runmode", "single", "-S", "/dev/null"]);
    command.args([Path::new("-c"), &settings, Path::new("-l"), folder, Path::new("-r"), capture]);
    command
}
