//! Addresses that sent a tenth of all bytes, or more, in a window that slides: the query that
//! several stream processors were compared by.
//!
//! usage: heavy_hitters [CAPTURE]

// Unused where a test takes the lines.
#![allow(dead_code, clippy::print_stdout)]

use jiff::Timestamp;
use std::net::IpAddr;
use weir_stream::{StreamError, open, packets};

pub(crate) fn lines(capture: &str, workers: usize) -> Result<Vec<String>, StreamError> {
    let ip = packets().filter("ip");
    let all = ip.clone().query("summarize all = sum(len) over 2s every 1s");
    let (rows, _) = ip
        .query("summarize bytes = sum(len) by ip.src over 2s every 1s")
        .join(&all, "ts")
        .filter_by(["bytes", "all"], |bytes: i64, all: i64| bytes * 10 >= all)
        .query("project ts, ip.src, bytes, share = float(bytes) / all")
        .run(&mut open(capture)?)
        .workers(workers)
        .collect::<(Timestamp, IpAddr, i64, f64)>()?;
    let line = |(ts, ip, bytes, share): &(Timestamp, IpAddr, i64, f64)| {
        format!("{ts} {ip}: {bytes} bytes, {:.0} %", 100.0 * share)
    };
    Ok(rows.iter().map(line).collect())
}

fn main() -> Result<(), StreamError> {
    let capture =
        std::env::args().nth(1).unwrap_or_else(|| "../../fixtures/syn_flood.pcap".to_owned());
    lines(&capture, 2)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
