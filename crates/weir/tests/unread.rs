//! What is said of packets without a time.

mod common;

use common::workplace;
use std::path::Path;
use std::process::{Command, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::pcapng::{Interface, Writer};
use weir_packet::source::LinkType;

/// Runs a query; its rows as CSV, and what it told.
fn run(folder: &Path, query: &str, more: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["run", "-o", "csv", "-e", query]).args(more).current_dir(folder);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (rows, told) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{query}: {told}");
    (rows, told)
}

/// The line of the ledger with this name, without the name.
fn line<'a>(told: &'a str, name: &str) -> &'a str {
    told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("").trim()
}

fn write(folder: &Path, name: &str, frames: &[Frame]) {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    for (ts, frame) in (1..).zip(frames) {
        let bytes = frame.bytes();
        header.put_record(&mut file, ts * 1_000_000, bytes.len() as u32, &bytes);
    }
    std::fs::write(folder.join(name), file).expect("a file");
}

fn segment(port: u16, payload: &[u8]) -> Frame {
    Frame::ethernet().ipv4([192, 0, 2, 1], [198, 51, 100, 2]).tcp(40_000, port).payload(payload)
}

/// Two packets in simple blocks around one with a time.
fn simple(folder: &Path) {
    let writer = Writer { order: ByteOrder::Little };
    let (mut file, frame) = (Vec::new(), segment(80, b"x").bytes());
    writer.section(&mut file);
    writer.interface(&mut file, &Interface::new(LinkType::ETHERNET));
    writer.simple_packet(&mut file, frame.len() as u32, &frame);
    writer.packet(&mut file, 0, 1_000_000, frame.len() as u32, &frame);
    writer.simple_packet(&mut file, frame.len() as u32, &frame);
    std::fs::write(folder.join("simple.pcapng"), file).expect("a file");
}

#[test]
fn packets_without_a_time_came_in_1970() {
    let folder = workplace();
    simple(folder.path());
    for workers in ["1", "2"] {
        let read = ["-r", "simple.pcapng", "-j", workers];
        let (rows, told) = run(folder.path(), "packets | project number, ts", &read);
        assert_eq!(rows, "number,ts\n1,\n2,1970-01-01T00:00:01Z\n3,\n");
        assert!(line(&told, "untimed").starts_with("2 "), "{told}");
        for window in ["every 1s", "every 1s over 2s", "by ip.src session 1s"] {
            let query = format!("packets | summarize n = count() {window}");
            let (rows, told) = run(folder.path(), &query, &read);
            let counts: Vec<&str> = rows.lines().skip(1).collect();
            assert!(!counts.is_empty(), "{query}");
            assert!(counts.iter().all(|row| row.ends_with(",1")), "{query}: {rows}");
            assert!(line(&told, "untimed").starts_with("2 "), "{query}: {told}");
        }
        let query = "packets | summarize n = count(), first = min(ts), last = max(ts)";
        let (rows, _) = run(folder.path(), query, &read);
        assert_eq!(rows, "n,first,last\n3,1970-01-01T00:00:01Z,1970-01-01T00:00:01Z\n");
    }
}

/// They keep their place after the packet before them, and stay without a time in pcapng.
#[test]
fn packets_without_a_time_keep_their_place() {
    let folder = workplace();
    simple(folder.path());
    let frames: Vec<Frame> = (0..3).map(|n| segment(53, &[n])).collect();
    write(folder.path(), "other.pcap", &frames);
    let both = ["-r", "simple.pcapng", "-r", "other.pcap"];
    let (rows, _) = run(folder.path(), "packets | project dport", &both);
    assert_eq!(rows, "dport\n80\n53\n53\n53\n80\n80\n");
    run(folder.path(), "packets | pass", &["-r", "simple.pcapng", "-w", "again.pcapng"]);
    let (rows, _) = run(folder.path(), "packets | project ts", &["-r", "again.pcapng"]);
    assert_eq!(rows, "ts\n\"\"\n1970-01-01T00:00:01Z\n\"\"\n");
    run(folder.path(), "packets | pass", &["-r", "simple.pcapng", "-w", "again.pcap"]);
    let (rows, _) = run(folder.path(), "packets | project ts", &["-r", "again.pcap"]);
    let zero = "1970-01-01T00:00:00Z";
    assert_eq!(rows, format!("ts\n{zero}\n1970-01-01T00:00:01Z\n{zero}\n"));
}

#[test]
fn pages_and_screens_take_packets_without_a_time() {
    let folder = workplace();
    simple(folder.path());
    for arguments in [
        &["report", "simple.pcapng", "-o", "report.html"][..],
        &["flows", "-r", "simple.pcapng"],
        &["tcp-health", "-r", "simple.pcapng"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        let output = command.output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {told}");
    }
}
