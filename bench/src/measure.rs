//! The result of one run of one contestant, and how it travels from the process that ran it.

use crate::timing::Spent;
use anyhow::{Context, Result};
use std::fmt;
use std::time::Duration;

/// The counts, time and memory of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Measure {
    /// Packets that it says it took.
    pub(crate) packets: u64,
    /// Flows that it says it found.
    pub(crate) flows: u64,
    /// Time of the run proper.
    pub(crate) spent: Spent,
    /// Most memory held at any moment, in KiB, the mapped trace included.
    pub(crate) rss_max_kib: u64,
}

impl Measure {
    /// Reads what [`Measure`] prints.
    pub(crate) fn parse(line: &str) -> Result<Measure> {
        let seconds = |name| -> Result<Duration> {
            let text = value(line, name)?;
            let seconds = text.parse().with_context(|| format!("{name}={text}"))?;
            Duration::try_from_secs_f64(seconds).with_context(|| format!("{name}={text}"))
        };
        Ok(Measure {
            packets: number(line, "packets")?,
            flows: number(line, "flows")?,
            spent: Spent { user: seconds("user_s")?, wall: seconds("wall_s")? },
            rss_max_kib: number(line, "rss_max_kib")?,
        })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "packets={} flows={} user_s={:.6} wall_s={:.6} rss_max_kib={}",
            self.packets,
            self.flows,
            self.spent.user.as_secs_f64(),
            self.spent.wall.as_secs_f64(),
            self.rss_max_kib
        )
    }
}

/// The value of `name=value` in a line of such pairs.
pub(crate) fn value<'a>(line: &'a str, name: &str) -> Result<&'a str> {
    line.split_whitespace()
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        .with_context(|| format!("no {name}= in {line:?}"))
}

/// The same as a whole number.
pub(crate) fn number(line: &str, name: &str) -> Result<u64> {
    let text = value(line, name)?;
    text.parse().with_context(|| format!("{name}={text}"))
}

/// Most memory that this process has held, in KiB.
pub(crate) fn rss_max_kib() -> Result<u64> {
    memory_kib("VmHWM:")
}

/// Memory that this process holds now, in KiB.
pub(crate) fn rss_kib() -> Result<u64> {
    memory_kib("VmRSS:")
}

fn memory_kib(name: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc/self")?;
    let value = |l: &str| l.strip_prefix(name)?.split_whitespace().next()?.parse().ok();
    let found = status.lines().find_map(value);
    found.with_context(|| format!("no {name} in /proc/self/status"))
}

/// Nanoseconds for each packet.
pub(crate) fn ns_per_packet(time: Duration, packets: u64) -> f64 {
    time.as_secs_f64() * 1e9 / packets.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_between_processes() {
        let measure = Measure {
            packets: 20_000_000,
            flows: 200_000,
            spent: Spent { user: Duration::from_micros(412_345), wall: Duration::from_millis(430) },
            rss_max_kib: 1_600_000,
        };
        assert_eq!(Measure::parse(&measure.to_string()).expect("whole"), measure);
        assert!(Measure::parse("packets=1 flows=2").is_err());
        assert!(Measure::parse("packets=x flows=2 user_s=1 wall_s=1 rss_max_kib=1").is_err());
    }
}
