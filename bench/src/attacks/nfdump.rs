//! nfdump beside the detectors: flow records that nfpcapd makes of the packets, and the thresholds
//! of the naive queries over these.
//!
//! nfdump selects the records by a filter of its own; how many there are for each address in
//! windows of ten seconds is counted here, since nfdump's statistics go over whole files. A record
//! counts in the window in which it began. It is known when it ends, and an alert no earlier.

use super::alert::Alert;
use crate::process;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

const WINDOW_NS: i64 = 10_000_000_000;

/// A millisecond.
const MS: i64 = 1_000_000;

/// The columns of a record, as nfdump is asked for them.
const FORMAT: &str = "fmt:%tsr,%ter,%sa,%da,%dp,%ipkt";

/// The address by which records are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Source,
    Destination,
}

/// The number that a rule compares, taken over these records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Measured {
    Records,
    Packets,
    /// Different destination ports.
    Ports,
    /// Different destination addresses.
    Hosts,
}

/// A threshold over records.
#[derive(Debug)]
struct Rule {
    /// Its name, and the kinds of attack that it is for.
    name: &'static str,
    kinds: &'static [&'static str],
    /// Which records, in nfdump's words.
    filter: &'static str,
    of: Of,
    counted: Measured,
    /// How much is still usual in a window.
    above: u64,
}

/// The thresholds of the naive queries, in `bench/attacks`.
const RULES: [Rule; 5] = [
    Rule {
        name: "connections",
        kinds: &["syn_flood"],
        filter: "proto tcp and flags S",
        of: Of::Destination,
        counted: Measured::Records,
        above: 1000,
    },
    Rule {
        name: "datagrams",
        kinds: &["udp_flood", "udp_scan", "icmp_flood", "dns_reflection"],
        filter: "proto udp or proto icmp",
        of: Of::Destination,
        counted: Measured::Packets,
        above: 1000,
    },
    Rule {
        name: "hosts",
        kinds: &["host_scan"],
        filter: "proto tcp and flags S",
        of: Of::Source,
        counted: Measured::Hosts,
        above: 40,
    },
    Rule {
        name: "ports",
        kinds: &["port_scan"],
        filter: "proto tcp and flags S",
        of: Of::Source,
        counted: Measured::Ports,
        above: 40,
    },
    Rule {
        name: "logins",
        kinds: &["ssh_brute_force"],
        filter: "proto tcp and flags S and dst port 22",
        of: Of::Source,
        counted: Measured::Records,
        above: 10,
    },
];

/// The kinds of attack that its rules are for.
pub(super) fn kinds() -> Vec<String> {
    RULES.iter().flat_map(|rule| rule.kinds).map(|kind| (*kind).to_owned()).collect()
}

/// The alerts of its rules over a capture.
pub(super) fn alerts(capture: &Path) -> Result<Vec<Alert>> {
    let folder = tempfile::tempdir().context("a folder for flow records")?;
    let mut make = Command::new("nfpcapd");
    make.arg("-r").arg(capture).arg("-l").arg(folder.path());
    process::run("nfpcapd", &mut make)?;
    let mut alerts = Vec::new();
    for rule in &RULES {
        let mut ask = Command::new("nfdump");
        ask.env("TZ", "UTC").arg("-R").arg(folder.path()).args(["-q", "-6", "-N", "-o", FORMAT]);
        let done = process::run("nfdump", ask.arg(rule.filter))?;
        alerts.extend(rule.alerts(records(&done.out)?));
    }
    alerts.sort_by_key(|alert| alert.known_ns);
    Ok(alerts)
}

/// The records that nfdump prints; "No matching flows" is none.
fn records(out: &str) -> Result<Vec<Record>> {
    let lines = out.lines().filter(|line| line.contains(','));
    lines.map(|line| Record::parse(line).with_context(|| line.to_owned())).collect()
}

/// A flow record, as far as rules look at it.
#[derive(Clone, Debug)]
struct Record {
    first_ns: i64,
    last_ns: i64,
    source: IpAddr,
    destination: IpAddr,
    /// The destination port; of ICMP type and code.
    port: String,
    packets: u64,
}

impl Record {
    fn parse(line: &str) -> Option<Record> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [first, last, source, destination, port, packets] = cells[..] else { return None };
        // nfdump prints milliseconds.
        let ns = |seconds: &str| Some((seconds.parse::<f64>().ok()? * 1e3).round() as i64 * MS);
        Some(Record {
            first_ns: ns(first)?,
            last_ns: ns(last)?,
            source: source.parse().ok()?,
            destination: destination.parse().ok()?,
            port: port.to_owned(),
            packets: packets.parse().ok()?,
        })
    }
}

/// The counts for one address in one window.
#[derive(Default)]
struct Count {
    number: u64,
    seen: BTreeSet<String>,
    last_ns: i64,
}

impl Rule {
    /// An alert for each address and window above the threshold.
    fn alerts(&self, records: Vec<Record>) -> Vec<Alert> {
        let mut counts: BTreeMap<(i64, IpAddr), Count> = BTreeMap::new();
        for record in records {
            let address = match self.of {
                Of::Source => record.source,
                Of::Destination => record.destination,
            };
            let window = record.first_ns.div_euclid(WINDOW_NS);
            let count = counts.entry((window, address)).or_default();
            count.last_ns = count.last_ns.max(record.last_ns).max(record.first_ns);
            match self.counted {
                Measured::Records => count.number += 1,
                Measured::Packets => count.number += record.packets,
                Measured::Ports => count.number += u64::from(count.seen.insert(record.port)),
                Measured::Hosts => {
                    let host = record.destination.to_string();
                    count.number += u64::from(count.seen.insert(host));
                }
            }
        }
        let above = counts.into_iter().filter(|(_, count)| count.number > self.above);
        above
            .map(|((window, address), count)| Alert {
                rule: self.name.to_owned(),
                known_ns: ((window + 1) * WINDOW_NS).max(count.last_ns),
                addresses: vec![address],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: impl Iterator<Item = String>) -> Vec<Record> {
        records(&lines.collect::<Vec<_>>().join("\n")).expect("records")
    }

    #[test]
    fn nothing_that_matches_is_no_record() {
        assert!(records("No matching flows\n").expect("none").is_empty());
        assert!(records("1.0,2.0,192.0.2.1\n").is_err());
    }

    #[test]
    fn a_record_is_read() {
        let line = "1795240275.590,1795240275.090,  198.51.100.254,    2001:db8::1,   3.0,       7";
        let record = Record::parse(line).expect("a record");
        assert_eq!(record.first_ns, 1_795_240_275_590 * MS);
        assert_eq!(record.destination.to_string(), "2001:db8::1");
        assert_eq!((record.port.as_str(), record.packets), ("3.0", 7));
        assert!(Record::parse("Summary: total flows: 7, total bytes: 3").is_none());
        assert!(Record::parse("x,1.0,192.0.2.1,192.0.2.2,80,1").is_none());
    }

    /// So many different ports within a window are usual, one more is not; ports that come again
    /// count once, and another window by itself.
    #[test]
    fn a_threshold_is_passed_in_one_window() {
        let rule = RULES.iter().find(|rule| rule.counted == Measured::Ports).expect("a rule");
        let tried = |ports: u64, second: u64| {
            (0..2 * ports).map(move |i| {
                format!("{second}.5,{second}.7,192.0.2.66,198.51.100.2,{},1", i % ports)
            })
        };
        assert_eq!(rule.alerts(of(tried(40, 10))), []);
        assert_eq!(rule.alerts(of(tried(30, 19).chain(tried(40, 20)))), []);
        let found = rule.alerts(of(tried(41, 10)));
        let [alert] = &found[..] else { panic!("{found:?}") };
        assert_eq!((alert.rule.as_str(), alert.known_ns), ("ports", 20_000_000_000));
        assert_eq!(alert.addresses, ["192.0.2.66".parse::<IpAddr>().expect("an address")]);
    }

    #[test]
    fn a_long_record_is_known_when_it_ends() {
        let rule = RULES.iter().find(|rule| rule.counted == Measured::Packets).expect("a rule");
        let line = "3.0,45.0,192.0.2.66,198.51.100.8,9999,1001".to_owned();
        let found = rule.alerts(of(std::iter::once(line)));
        assert_eq!(found.iter().map(|a| a.known_ns).collect::<Vec<_>>(), [45_000_000_000]);
    }
}
