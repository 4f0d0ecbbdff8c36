//! A detector of the library as the start of a stream, with a threshold of one's own.
//!
//! usage: syn_flood [CAPTURE]

// Unused where a test takes the lines.
#![allow(dead_code, clippy::print_stdout)]

use std::net::IpAddr;
use weir_stream::{Stream, StreamError, open};

const DETECTOR: &str = include_str!("../../../queries/detectors/syn_flood.weir");

pub(crate) fn lines(capture: &str, workers: usize) -> Result<Vec<String>, StreamError> {
    let (servers, _) = Stream::of_query(DETECTOR)
        .query("summarize left_open = sum(incomplete) by server, port")
        .run(&mut open(capture)?)
        .workers(workers)
        .param("threshold", "100")
        .collect::<(IpAddr, i64, i64)>()?;
    let line = |(server, port, left_open): &(IpAddr, i64, i64)| {
        format!("{server}:{port}: {left_open} handshakes were left open")
    };
    Ok(servers.iter().map(line).collect())
}

fn main() -> Result<(), StreamError> {
    let capture =
        std::env::args().nth(1).unwrap_or_else(|| "../../fixtures/syn_flood.pcap".to_owned());
    lines(&capture, 2)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
