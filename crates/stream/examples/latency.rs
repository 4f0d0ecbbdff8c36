//! The mean time that a host takes to answer another: the application that a multi-core
//! packet-record processor was measured by.
//!
//! usage: latency [CAPTURE]

// Unused where a test takes the lines.
#![allow(dead_code, clippy::print_stdout)]

use jiff::SignedDuration;
use std::net::IpAddr;
use weir_stream::{StreamError, open, packets};

/// Which side spoke last, when, and how long it took to answer the other; -1 where it did not.
type Talk = (bool, i64, i64);

fn turn((before, spoke, _): Talk, forward: bool, now: i64) -> Talk {
    let is_answer = spoke >= 0 && forward != before;
    (forward, now, if is_answer { now - spoke } else { -1 })
}

pub(crate) fn lines(capture: &str, workers: usize) -> Result<Vec<String>, StreamError> {
    let now = ["conn.forward", "int(ts)"];
    let (pairs, _) = packets()
        .filter("tcp and tcp.payload_len > 0")
        .scan_by(["forward", "spoke", "took"], (false, -1, -1), "conn idle 1m", now, turn)
        .filter("took >= 0")
        .query("summarize mean = avg(took), answers = count() by ip.src, ip.dst")
        .run(&mut open(capture)?)
        .workers(workers)
        .collect::<(IpAddr, IpAddr, f64, i64)>()?;
    let line = |(from, to, mean, n): &(IpAddr, IpAddr, f64, i64)| {
        let mean = SignedDuration::from_nanos(*mean as i64);
        format!("{from} answers {to} in {mean:#}, {n} times")
    };
    Ok(pairs.iter().map(line).collect())
}

fn main() -> Result<(), StreamError> {
    let capture = std::env::args().nth(1).unwrap_or_else(|| "../../fixtures/web.pcap".to_owned());
    lines(&capture, 2)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
