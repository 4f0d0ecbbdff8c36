//! tshark beside `tcp_trouble`: its `tcp.analysis`, by the same thresholds.
//!
//! tshark says of each segment whether it was sent again; the share of these among the data
//! segments of a server is counted here, by minutes, as `tcp_trouble` does.

use super::alert::Alert;
use crate::process;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// The defaults of `tcp_trouble`: `interval`, `again_share`, `least_data`.
const WINDOW_NS: i64 = 60_000_000_000;
const SHARE: f64 = 0.05;
const LEAST_DATA: u64 = 100;

const FIELDS: [&str; 9] = [
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.len",
    "tcp.analysis.retransmission",
];

/// The alerts over a capture.
pub(super) fn alerts(capture: &Path) -> Result<Vec<Alert>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-n", "-Y", "tcp", "-T", "fields"]);
    tshark.args(["-E", "separator=,", "-E", "occurrence=f"]);
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let done = process::run("tshark", &mut tshark)?;
    let segments =
        done.out.lines().map(|line| AnalyzedSegment::parse(line).context(line.to_owned()));
    Ok(judged(segments.collect::<Result<Vec<_>>>()?))
}

/// A segment, as far as it is looked at.
#[derive(Debug)]
struct AnalyzedSegment {
    time_ns: i64,
    server: (IpAddr, u16),
    has_data: bool,
    is_again: bool,
}

impl AnalyzedSegment {
    /// Of a line with the [`FIELDS`].
    fn parse(line: &str) -> Option<AnalyzedSegment> {
        let cells: Vec<&str> = line.split(',').collect();
        let [time, src4, src6, sport, dst4, dst6, dport, length, again] = cells[..] else {
            return None;
        };
        let end = |four: &str, six: &str, port: &str| -> Option<(IpAddr, u16)> {
            let address = if four.is_empty() { six } else { four };
            Some((address.parse().ok()?, port.parse().ok()?))
        };
        let (source, destination) = (end(src4, src6, sport)?, end(dst4, dst6, dport)?);
        Some(AnalyzedSegment {
            time_ns: (time.parse::<f64>().ok()? * 1e9) as i64,
            server: if source.1 <= destination.1 { source } else { destination },
            has_data: length.parse::<u32>().ok()? > 0,
            is_again: !again.is_empty(),
        })
    }
}

/// An alert for each server and minute with too large a share.
fn judged(segments: Vec<AnalyzedSegment>) -> Vec<Alert> {
    let mut counts: BTreeMap<(i64, IpAddr, u16), [u64; 2]> = BTreeMap::new();
    for segment in segments {
        let (address, port) = segment.server;
        let window = segment.time_ns.div_euclid(WINDOW_NS);
        let [data, again] = counts.entry((window, address, port)).or_default();
        *data += u64::from(segment.has_data);
        *again += u64::from(segment.is_again);
    }
    let lossy = counts.into_iter().filter(|(_, [data, again])| {
        *data >= LEAST_DATA && *again as f64 / (*data).max(1) as f64 > SHARE
    });
    lossy
        .map(|((window, address, _), _)| Alert {
            rule: "tcp.analysis".to_owned(),
            known_ns: (window + 1) * WINDOW_NS,
            addresses: vec![address],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: u32, again: bool) -> String {
        let again = if again { "1" } else { "" };
        format!("{second}.250000000,198.51.100.2,,80,192.0.2.1,,40000,1448,{again}")
    }

    fn found(data: u32, again: u32) -> Vec<Alert> {
        let lines = (0..data).map(|i| line(60 + i % 60, i < again));
        judged(lines.map(|line| AnalyzedSegment::parse(&line).expect("a segment")).collect())
    }

    #[test]
    fn a_share_above_the_threshold_is_told() {
        assert_eq!(found(100, 5), []);
        let alerts = found(100, 6);
        let [alert] = &alerts[..] else { panic!("{alerts:?}") };
        assert_eq!(alert.known_ns, 120_000_000_000);
        assert!(alert.concerns("-", "198.51.100.2"));
        assert_eq!(found(19, 19), []);
    }

    #[test]
    fn segments_of_ipv6_are_read_and_others_refused() {
        let segment = "1.5,,2001:db8::1,40000,,2001:db8::2,443,0,";
        let segment = AnalyzedSegment::parse(segment).expect("a segment");
        assert_eq!(segment.server, ("2001:db8::2".parse().expect("an address"), 443));
        assert!(!segment.has_data && !segment.is_again);
        assert!(AnalyzedSegment::parse("1.5,192.0.2.1,,80").is_none());
        assert!(AnalyzedSegment::parse("1.5,,,40000,,,443,0,").is_none());
    }
}
