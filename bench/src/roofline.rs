//! The hand-written C loop that the project measures itself by, where it is at hand.

use crate::measure::{Measure, number, value};
use crate::timing::Spent;
use crate::trace::Preset;
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where the source is, seen from this crate.
const SOURCE: &str = "../../shared/bench/roofline_flowmeter.c";

/// Its look at the clock that starts the run proper, counted from 0.
const START: usize = 3;

/// The loop, built.
pub(crate) struct Roofline(PathBuf);

impl Roofline {
    /// Builds it into `folder`; `None` where its source is not there.
    pub(crate) fn build(folder: &Path) -> Result<Option<Roofline>> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = here.join(SOURCE);
        if !source.is_file() {
            return Ok(None);
        }
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let program = folder.join("roofline_flowmeter");
        let status = Command::new("gcc")
            .args(["-O3", "-march=native", "-pthread", "-include"])
            .arg(here.join("src/clock.h"))
            .arg("-o")
            .args([&program, &source])
            .status()
            .context("running gcc")?;
        ensure!(status.success(), "gcc could not build {}", source.display());
        Ok(Some(Roofline(program)))
    }

    /// Runs it over a trace of this preset, its tables made beforehand.
    pub(crate) fn run(&self, preset: &Preset, trace: &Path) -> Result<Measure> {
        let (v4, v6) = preset.table_log2;
        let out = Command::new(&self.0)
            .args(["-P", "-t", &v4.to_string(), "-T", &v6.to_string()])
            .arg(trace)
            .output()
            .context("running the roofline")?;
        let errors = String::from_utf8_lossy(&out.stderr);
        if !out.status.success() {
            bail!("the roofline failed: {errors}");
        }
        parse(&String::from_utf8_lossy(&out.stdout), &errors)
    }
}

/// Reads its line of results, and its looks at the clock.
fn parse(line: &str, looks: &str) -> Result<Measure> {
    let seconds = |line: &str, name: &str| -> Result<f64> {
        let text = value(line, name)?;
        text.parse().with_context(|| format!("{name}={text}"))
    };
    let looks: Vec<&str> = looks.lines().collect();
    let (Some(start), Some(end)) = (looks.get(START), looks.last()) else {
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
        let m = parse(line, &looks).expect("well formed");
        assert_eq!((m.packets, m.flows, m.rss_max_kib), (10, 3, 12));
        assert_eq!(m.spent.wall, Duration::from_millis(250));
        assert!((m.spent.user.as_secs_f64() - 0.24).abs() < 1e-9);
        assert!(parse(line, "user_s=0.1 rss_max_kib=12\n").is_err());
    }
}
