//! The hand-written C loop that the project measures itself by, where there is a C compiler.

use crate::measure::{Measure, number, value};
use crate::process;
use crate::timing::{Spent, Whole};
use crate::trace::Preset;
use anyhow::{Context, Result, bail, ensure};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The source, seen from this crate.
const SOURCE: &str = "src/roofline.c";

/// How it is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Mode {
    /// Base-2 logarithms of its tables, IPv4 and IPv6, when they are made and touched beforehand;
    /// `None`: they grow from small.
    pub(crate) tables: Option<(u32, u32)>,
    /// Threads, each with a part of the file and tables of its own, which are merged at the end.
    pub(crate) threads: usize,
}

impl Mode {
    /// One thread, tables made beforehand for a trace of so many packets.
    pub(crate) fn made(preset: &Preset, packets: u64) -> Mode {
        Mode { tables: Some(preset.tables(packets)), threads: 1 }
    }

    /// Which of its looks at the clock starts the run proper, counted from 0.
    fn start(self) -> usize {
        if self.tables.is_some() { 3 } else { 2 }
    }
}

/// The loop, built.
pub(crate) struct Roofline(PathBuf);

impl Roofline {
    /// Builds it into `folder`; `None` where there is no gcc.
    pub(crate) fn build(folder: &Path) -> Result<Option<Roofline>> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = here.join(SOURCE);
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let program = folder.join("roofline");
        let built = Command::new("gcc")
            .args(["-O3", "-march=native", "-pthread", "-include"])
            .arg(here.join("src/clock.h"))
            .arg("-o")
            .args([&program, &source])
            .status();
        let status = match built {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            built => built.context("running gcc")?,
        };
        ensure!(status.success(), "gcc could not build {}", source.display());
        Ok(Some(Roofline(program)))
    }

    /// Runs it over a trace.
    pub(crate) fn run(&self, mode: Mode, trace: &Path) -> Result<(Measure, Whole)> {
        let mut command = Command::new(&self.0);
        if let Some((v4, v6)) = mode.tables {
            command.args(["-P", "-t", &v4.to_string(), "-T", &v6.to_string()]);
        }
        command.args(["-j", &mode.threads.to_string()]).arg(trace);
        let done = process::run("the roofline", &mut command)?;
        Ok((parse(&done.out, &done.errors, mode.start())?, done.whole))
    }
}

/// Reads its line of results, and its looks at the clock.
fn parse(line: &str, looks: &str, start: usize) -> Result<Measure> {
    let seconds = |line: &str, name: &str| -> Result<f64> {
        let text = value(line, name)?;
        text.parse().with_context(|| format!("{name}={text}"))
    };
    let looks: Vec<&str> = looks.lines().collect();
    let (Some(start), Some(end)) = (looks.get(start), looks.last()) else {
        bail!("the roofline looked at the clock {} times only", looks.len());
    };
    let user = seconds(end, "user_s")? - seconds(start, "user_s")?;
    Ok(Measure {
        packets: number(line, "packets")?,
        flows: number(line, "flows")?,
        spent: Spent {
            user: Duration::from_secs_f64(user.max(0.0)),
            wall: Duration::from_secs_f64(seconds(line, "t_run")?),
        },
        rss_max_kib: number(end, "rss_max_kib")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_run_proper() {
        let line = "mode=flow packets=10 flows=3 t_map=0.5 t_run=0.25 Mpps=1";
        let looks: String = [0.1, 0.1, 0.2, 0.2, 0.4, 0.44]
            .map(|s| format!("user_s={s} rss_max_kib=12\n"))
            .concat();
        let m = parse(line, &looks, 3).expect("well formed");
        assert_eq!((m.packets, m.flows, m.rss_max_kib), (10, 3, 12));
        assert_eq!(m.spent.wall, Duration::from_millis(250));
        assert!((m.spent.user.as_secs_f64() - 0.24).abs() < 1e-9);
        assert!(parse(line, "user_s=0.1 rss_max_kib=12\n", 3).is_err());
    }
}
