//! Threshold random walk (Jung, Paxson, Berger and Balakrishnan, 2004): each first contact of a
//! host that fails makes it more likely a scanner, each that succeeds less.
//!
//! usage: port_scan [CAPTURE]

// Unused where a test takes the lines.
#![allow(dead_code, clippy::print_stdout)]

use std::net::IpAddr;
use weir_stream::{StreamError, open, packets};

/// How much more likely than others a scanner fails (0.8 against 0.2), and meets somebody.
const FAILED: f64 = 4.0;
const MET: f64 = 0.25;
/// How much more likely a host has to be a scanner than none, and how much less, for 1 % of false
/// alarms and 99 % found.
const SCANNER: f64 = 99.0;
const BENIGN: f64 = 1.0 / 99.0;

/// How likely the source is a scanner, and after how many contacts.
fn walk((likely, contacts): (f64, i64), met: bool) -> (f64, i64) {
    match (BENIGN..SCANNER).contains(&likely) {
        true => (likely * if met { MET } else { FAILED }, contacts + 1),
        false => (likely, contacts),
    }
}

pub(crate) fn lines(capture: &str, workers: usize) -> Result<Vec<String>, StreamError> {
    let (scanners, _) = packets()
        .filter("tcp")
        .query(
            "summarize source = first(ip.src) where tcp.syn and not tcp.ack,
                       target = first(ip.dst) where tcp.syn and not tcp.ack,
                       met = any(tcp.syn and tcp.ack)
             by conn every 1s",
        )
        .query("where exists(source) | distinct source, target | project ts, source, met")
        .scan_by(["likely", "contacts"], (1.0, 0), "source", ["met"], walk)
        .filter_by(["likely"], |likely: f64| likely >= SCANNER)
        .query("summarize contacts = min(contacts) by source")
        .run(&mut open(capture)?)
        .workers(workers)
        .collect::<(IpAddr, i64)>()?;
    let line = |(source, contacts): &(IpAddr, i64)| {
        format!("{source} scans, by its first {contacts} contacts")
    };
    Ok(scanners.iter().map(line).collect())
}

fn main() -> Result<(), StreamError> {
    let capture = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "../../fixtures/detectors/trw_scanner.pcap.gz".to_owned());
    lines(&capture, 2)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
