//! A detector of one's own: flows, and what a trained model says of them. The model is a logistic
//! regression, whose weights would come from a file that another tool wrote.
//!
//! usage: scores [CAPTURE]

// Unused where a test takes the lines.
#![allow(dead_code, clippy::print_stdout)]

use jiff::Timestamp;
use std::net::IpAddr;
use weir_stream::{FromRow, StreamError, open, packets};

/// The bias, and the weights of what a flow is described by.
const MODEL: (f64, [f64; 3]) = (-1.5, [-0.8, 0.9, -0.4]);

/// How likely a flow is a probe: few packets, a SYN that nothing follows, few bytes.
fn score(packets: i64, only_syn: bool, bytes: i64) -> f64 {
    let (bias, weights) = MODEL;
    let only_syn = if only_syn { 4.0 } else { 0.0 };
    let inputs = [(packets as f64).ln(), only_syn, (bytes as f64).ln_1p() / 4.0];
    let sum: f64 = weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum();
    1.0 / (1.0 + (-(bias + sum)).exp())
}

#[derive(FromRow)]
struct Scored {
    ts: Timestamp,
    #[column("ip.src")]
    source: IpAddr,
    probes: i64,
    score: f64,
}

pub(crate) fn lines(capture: &str, workers: usize) -> Result<Vec<String>, StreamError> {
    let (rows, _) = packets()
        .filter("tcp")
        .query(
            "summarize packets = count(), flags = bit_or(tcp.flags), bytes = sum(tcp.payload_len)
             by flow every 10s",
        )
        .extend_by("score", ["packets", "flags == 2", "bytes"], score)
        .query("summarize probes = count(score > 0.5), score = max(score) by ip.src every 10s")
        .filter("probes >= 20")
        .run(&mut open(capture)?)
        .workers(workers)
        .collect::<Scored>()?;
    let line = |row: &Scored| {
        format!("{} {}: {} probes, score {:.2}", row.ts, row.source, row.probes, row.score)
    };
    Ok(rows.iter().map(line).collect())
}

fn main() -> Result<(), StreamError> {
    let capture =
        std::env::args().nth(1).unwrap_or_else(|| "../../fixtures/syn_scan.pcap".to_owned());
    lines(&capture, 2)?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
