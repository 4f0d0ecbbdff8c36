//! Messages about packets that fields show in part, and about packets without a time.

mod common;

use common::workplace;
use std::path::Path;
use std::process::{Command, Stdio};
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{client_hello, dns_in_tcp, dns_query};
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

/// A message over two segments, two in one; three requests in one; a hello over two.
fn streams() -> Vec<Frame> {
    let message = dns_in_tcp(&dns_query(7, "www.example", 1));
    let request = b"GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let hello = client_hello("www.example", &["h2"], &[0x0304]);
    let later = Frame::ethernet().ipv4([192, 0, 2, 1], [198, 51, 100, 2]);
    vec![
        segment(53, &message[..9]),
        segment(53, &message[9..]),
        segment(53, &message.repeat(2)),
        segment(80, &request.repeat(3)),
        segment(443, &hello[..60]),
        segment(443, &hello[60..]),
        later.fragment(1480, false).put(9, &[17]).payload(&[7; 40]),
    ]
}

#[test]
fn messages_that_no_field_showed_were_in_no_count() {
    let folder = workplace();
    // Over several batches, so that several workers have some.
    let frames: Vec<Frame> = (0..200).flat_map(|_| streams()).collect();
    write(folder.path(), "streams.pcap", &frames);
    for (query, shown, unread) in [
        (
            "packets | where dns | summarize n = count()",
            "n\n200\n",
            "(400 dns continues in another packet, 200 dns further in the packet)",
        ),
        (
            "packets | where http | summarize n = count() by http.uri",
            "http.uri,n\n/1,200\n",
            "(400 http further in the packet)",
        ),
        (
            "packets | where dport == 443 | summarize n = count(tls.ja4)",
            "n\n0\n",
            "(200 tls continues in another packet, 200 ports fragment without its first)",
        ),
        ("packets | summarize n = count() by ip.src", "ip.src,n\n192.0.2.1,1400\n", ""),
    ] {
        for workers in ["1", "2", "4"] {
            let (rows, told) = run(folder.path(), query, &["-r", "streams.pcap", "-j", workers]);
            assert_eq!(rows, shown, "{query}");
            assert!(line(&told, "unread").ends_with(unread), "{query}: {told}");
            assert_eq!(line(&told, "unread").is_empty(), unread.is_empty(), "{query}: {told}");
        }
    }
    let strict = ["-r", "streams.pcap", "-q", "--fail-on-loss"];
    let (_, told) = run(folder.path(), "packets | where dns | summarize count()", &strict);
    assert_eq!(told, "", "it is no loss");
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
