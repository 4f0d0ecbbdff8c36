//! Packets, bytes and times of each flow: the first application of the papers that Weir takes up.
//!
//! usage: flow_meter [CAPTURE]

// Unused where a test takes the lines.
#![allow(dead_code, clippy::print_stdout)]

use jiff::Timestamp;
use std::net::IpAddr;
use weir_stream::{FromRow, StreamError, open, packets};

#[derive(FromRow)]
struct Meter {
    ip_src: IpAddr, // the column ip.src: `_` stands for a dot, too
    sport: Option<i64>,
    ip_dst: IpAddr,
    dport: Option<i64>,
    packets: i64,
    bytes: i64,
    first: Timestamp,
    last: Timestamp,
}

impl Meter {
    fn line(&self) -> String {
        let port = |port: Option<i64>| port.map_or(String::new(), |port| format!(":{port}"));
        let (from, to) = (port(self.sport), port(self.dport));
        let (packets, bytes) = (self.packets, self.bytes);
        let lasts = self.last.duration_since(self.first);
        let (source, target) = (self.ip_src, self.ip_dst);
        format!("{source}{from} > {target}{to}: {packets} packets, {bytes} bytes, {lasts:#}")
    }
}

pub(crate) fn lines(capture: &str, workers: usize) -> Result<Vec<String>, StreamError> {
    let (flows, _) = packets()
        .filter("ip")
        .query(
            "summarize packets = count(), bytes = sum(len), first = min(ts), last = max(ts)
             by flow",
        )
        .run(&mut open(capture)?)
        .workers(workers)
        .collect::<Meter>()?;
    Ok(flows.iter().map(Meter::line).collect())
}

fn main() -> Result<(), StreamError> {
    let capture = std::env::args().nth(1).unwrap_or_else(|| "../../fixtures/web.pcap".to_owned());
    lines(&capture, 2)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
