//! Attacks, each a capture of its own.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_packet::pcap::{FILE_HEADER, FileHeader};

const SECOND: i64 = 1_000_000_000;

/// An attack that was moved in time.
#[derive(Debug)]
pub(crate) struct Episode {
    /// Its capture.
    pub(crate) capture: PathBuf,
    /// The times of its first and its last packet.
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

/// One attack, as `attacks.jsonl` describes it.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    /// The name of its capture.
    pub(crate) name: String,
    /// Which kind of attack it is, as detectors name what they detect.
    pub(crate) kind: String,
    /// The tool that made it, and how fast.
    pub(crate) tool: String,
    pub(crate) rate: String,
    /// Their addresses, or why there is none.
    pub(crate) attacker: String,
    pub(crate) victim: String,
    capture: PathBuf,
}

impl Attack {
    /// All attacks of a folder.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Attack>> {
        let list = folder.join("attacks.jsonl");
        let text = fs::read_to_string(&list).with_context(|| {
            format!("{}: make it by bench/attacks/make.sh, as root", list.display())
        })?;
        let attacks: Vec<Attack> = text
            .lines()
            .map(|line| Attack::parse(line, folder).with_context(|| line.to_owned()))
            .collect::<Result<_>>()?;
        ensure!(!attacks.is_empty(), "{}: no attacks", list.display());
        Ok(attacks)
    }

    fn parse(line: &str, folder: &Path) -> Result<Attack> {
        let row: Value = serde_json::from_str(line)?;
        let text = |name: &str| {
            row.get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .with_context(|| name.to_owned())
        };
        let name = text("name")?;
        Ok(Attack {
            kind: text("kind")?,
            tool: text("tool")?,
            rate: text("rate")?,
            attacker: text("attacker")?,
            victim: text("victim")?,
            capture: folder.join(format!("{name}.pcap")),
            name,
        })
    }

    /// Writes its capture into a folder, as if it had begun at `start`.
    pub(crate) fn move_to(&self, start: i64, folder: &Path) -> Result<Episode> {
        let bytes = fs::read(&self.capture).with_context(|| self.capture.display().to_string())?;
        let (moved, first_ns, last_ns) =
            moved(&bytes, start).with_context(|| self.capture.display().to_string())?;
        let capture = folder.join(format!("{}.pcap", self.name));
        fs::write(&capture, moved).with_context(|| capture.display().to_string())?;
        Ok(Episode { capture, first_ns, last_ns })
    }
}

/// A little-endian capture in microseconds, as tcpdump writes it here, with all times moved.
fn moved(bytes: &[u8], start: i64) -> Result<(Vec<u8>, i64, i64)> {
    let header = FileHeader::parse(bytes).map_err(|e| anyhow::anyhow!("{e}"))?;
    ensure!(!header.nanos && !header.modified && bytes[0] == 0xd4, "not as tcpdump writes it");
    let mut out = bytes.to_vec();
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let (mut at, mut shift, mut last) = (FILE_HEADER, None, start);
    let (low, high) = (start, i64::from(u32::MAX) * SECOND);
    while at < bytes.len() {
        let fields = (word(at), word(at + 4), word(at + 8));
        let (Some(seconds), Some(micros), Some(length)) = fields else {
            anyhow::bail!("a record is cut")
        };
        let ts = i64::from(seconds) * SECOND + i64::from(micros) * 1000;
        let shift = *shift.get_or_insert(start - ts);
        // A step back before the first packet is moved to it.
        let ts = (ts + shift).clamp(low, high);
        out[at..at + 4].copy_from_slice(&((ts / SECOND) as u32).to_le_bytes());
        out[at + 4..at + 8].copy_from_slice(&((ts % SECOND / 1000) as u32).to_le_bytes());
        last = last.max(ts);
        at += 16 + length as usize;
    }
    ensure!(shift.is_some() && at == bytes.len(), "no packets, or the last one is cut");
    Ok((out, start, last))
}

/// The times of the first and the last packet of a capture.
pub(crate) fn span(weir: &Path, capture: &Path) -> Result<(i64, i64)> {
    let query = "packets | summarize first = min(ts), last = max(ts)";
    let mut command = Command::new(weir);
    command.args(["run", "-q", "-o", "json", "--time", "epoch-ns", "-e", query, "-r"]);
    let done = crate::process::run("weir", command.arg(capture))?;
    let row: Value = serde_json::from_str(done.out.trim()).context("the times of a capture")?;
    let time = |name: &str| row.get(name).and_then(Value::as_i64);
    time("first").zip(time("last")).with_context(|| format!("{}: no packets", capture.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::source::LinkType;

    #[test]
    fn times_move_and_bytes_stay() {
        let header = FileHeader { nanos: false, ..FileHeader::new(LinkType::ETHERNET) };
        let capture = |start: i64| {
            let mut out = header.to_bytes().to_vec();
            for (after, length) in [(0, 60), (1_500_000, 9), (3 * SECOND, 0)] {
                let frame = vec![7; length as usize];
                header.put_record(&mut out, start + after, length, &frame);
            }
            out
        };
        let (bytes, first, last) = moved(&capture(5 * SECOND), 1000 * SECOND).expect("moves");
        assert_eq!((first, last), (1000 * SECOND, 1003 * SECOND));
        assert_eq!(bytes, capture(1000 * SECOND));
        let cut = capture(0);
        assert!(moved(&cut[..cut.len() - 1], 0).is_err());
        assert!(moved(&header.to_bytes(), 0).is_err());
    }
}
