//! Values at the edges of the language, by the binary: right values are worked out by hand.

use std::path::Path;
use std::process::{Command, Output};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// 2023-11-14 22:13:20 UTC.
const START: i64 = 1_700_000_000_000_000_000;

/// A capture of these frames, one each quarter of a second.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut out = header.to_bytes().to_vec();
    for (i, frame) in frames.iter().enumerate() {
        header.put_record(&mut out, START + i as i64 * 250_000_000, frame.len() as u32, frame);
    }
    out
}

/// Nine segments to ports at the edges of their width, from three hosts.
fn edge() -> Vec<u8> {
    let ports = [0u16, 1, 2, 3, 255, 256, 65_519, 65_520, 65_535];
    let frame = |(i, port): (usize, &u16)| {
        Frame::ethernet()
            .ipv4([10, 0, 0, 1 + (i % 3) as u8], [10, 0, 0, 9])
            .tcp(1000 + i as u16, *port)
            .payload(&vec![b'x'; i])
            .bytes()
    };
    capture(&ports.iter().enumerate().map(frame).collect::<Vec<_>>())
}

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env_remove("NO_COLOR").env_remove("COLUMNS");
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The rows of a query over a capture as CSV, without the header, by one and by two workers; and
/// all that was said.
#[track_caller]
fn run(capture: &[u8], query: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("c.pcap"), capture).expect("it is written");
    let answer = |workers: &str| {
        let args = ["run", "-e", query, "-r", "c.pcap", "-o", "csv", "-j", workers];
        let output = weir(folder.path(), &args);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{query}: {said}");
        let rows = text(&output.stdout);
        (rows.split_once("\r\n").map_or(rows.clone(), |(_, rest)| rest.replace("\r\n", "\n")), said)
    };
    let (one, two) = (answer("1"), answer("2"));
    assert_eq!(one.0, two.0, "{query}");
    one
}

#[track_caller]
fn check(capture: &[u8], query: &str, rows: &str) {
    assert_eq!(run(capture, query).0, rows, "{query}");
}

#[test]
fn zero_has_no_sign() {
    // The first is -0.0 to a machine, the second is not.
    let both = "packets | extend d = float(dport - dport) * -0.5, z = float(dport - dport)";
    let check = |stages: &str, rows: &str| check(&edge(), &format!("{both} | {stages}"), rows);
    check("summarize n = count(), zeros = count(d == 0.0), less = count(d < 0.0)", "9,9,0\n");
    check("summarize n = count(z == d and d >= z and not (d < z)) by d", "0.0,9\n");
    check("distinct d | project d", "0.0\n");
    check("extend e = if(dport > 2, d, z) | distinct e | project e", "0.0\n");
    check("extend e = if(dport > 2, d, z) | summarize n = distinct(e), a = approx_distinct(e)", "1,1\n");
    check("summarize n = count(d in {0.0}), m = count(d in 0.0..1.0), s = count(z in {-0.0})", "9,9,9\n");
    check("summarize least = min(d), most = max(z), m = median(d), v = avg(d), s = sum(d)", "0.0,0.0,0.0,0.0,0.0\n");
    check("limit 1 | project t = text(d), n = text(-d), s = sqrt(d), i = int(d), p = pow(d, 3.0)", "0.0,0.0,0.0,0,0.0\n");
    check("summarize first = min_by(dport, d), last = max_by(dport, d)", "0,0\n");
    check("top 1 by d | project d", "0.0\n");
    check("limit 1 | project q = (dport - 0) / -3.0, f = float(\"-0.0\"), c = -0.0, k = 0.0 * -1", "0.0,0.0,0.0,0.0\n");
    check("limit 1 | project small = -1e-200 * (1e-200 + d), t = (z, 1) == (d, 1)", "0.0,true\n");
    let join = "let a = packets | extend k = float(dport - dport) * -0.5 | limit 1\n\
                let b = packets | extend k = float(dport - dport) | limit 1\n\
                a | join b on k within 1s | project k";
    self::check(&edge(), join, "0.0\n");
}
