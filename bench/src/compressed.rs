//! Compressed traces, and the programs that unpack them.

use crate::process;
use crate::timing::Whole;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A compressor that is installed, and how its files end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Packer {
    /// Its program.
    pub(crate) name: &'static str,
    ending: &'static str,
}

/// The packers that captures come packed with.
pub(crate) const PACKERS: [Packer; 2] =
    [Packer { name: "gzip", ending: "gz" }, Packer { name: "zstd", ending: "zst" }];

impl Packer {
    /// The packed trace, made by the program's own level unless an earlier run left it. `None`
    /// where the program is not installed.
    pub(crate) fn pack(self, trace: &Path) -> Result<Option<PathBuf>> {
        let packed = trace.with_extension(format!("pcap.{}", self.ending));
        let version = Command::new(self.name).arg("--version").stdin(Stdio::null()).output();
        match version {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context(|| format!("running {}", self.name))?,
        };
        if packed.is_file() {
            return Ok(Some(packed));
        }
        let unfinished = trace.with_extension(format!("pcap.{}.part", self.ending));
        let input = File::open(trace).with_context(|| trace.display().to_string())?;
        let output = File::create(&unfinished).with_context(|| unfinished.display().to_string())?;
        let status = Command::new(self.name).arg("-c").stdin(input).stdout(output).status();
        let status = status.with_context(|| format!("running {}", self.name))?;
        ensure!(status.success(), "{} failed ({status})", self.name);
        fs::rename(&unfinished, &packed).with_context(|| packed.display().to_string())?;
        Ok(Some(packed))
    }

    /// Unpacks a trace to nowhere, as fast as the program can.
    pub(crate) fn unpack(self, packed: &Path) -> Result<Whole> {
        let nowhere = File::options().write(true).open("/dev/null").context("/dev/null")?;
        let mut command = Command::new(self.name);
        command.arg("-dc").arg(packed).stdout(nowhere);
        process::time(self.name, &mut command)
    }
}

/// Reads a file, so that it is in memory afterwards.
pub(crate) fn warm(path: &Path) -> Result<()> {
    let mut file = File::open(path).with_context(|| path.display().to_string())?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer).with_context(|| path.display().to_string())? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_unpacks() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("t.pcap");
        fs::write(&trace, [7; 10_000]).expect("written");
        for packer in PACKERS {
            let Some(packed) = packer.pack(&trace).expect("packs") else { continue };
            assert!(fs::metadata(&packed).expect("there").len() < 10_000);
            warm(&packed).expect("reads");
            packer.unpack(&packed).expect("unpacks");
            fs::write(&packed, "not packed").expect("written");
            assert_eq!(packer.pack(&trace).expect("kept"), Some(packed.clone()));
            assert!(packer.unpack(&packed).is_err());
        }
        let missing = Packer { name: "no-such-packer", ending: "x" };
        assert_eq!(missing.pack(&trace).expect("says so"), None);
    }
}
