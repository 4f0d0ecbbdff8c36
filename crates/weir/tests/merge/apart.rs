//! Probes that are apart in time: one begins hours after another, is silent for a minute, ends
//! first, or loses a part of its stream.

use crate::{Folder, rows, run, text};
use std::fs;
use std::net::Ipv4Addr;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// A packet: when, in milliseconds, from which host, and its source port.
type Packet = (i64, u8, u16);

/// 2023-11-14T22:13:20Z.
const START_MS: i64 = 1_700_000_000_000;

/// Writes a capture; returns its path.
fn capture(folder: &Folder, name: &str, packets: &[Packet]) -> String {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    for &(ms, host, port) in packets {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, host), Ipv4Addr::new(10, 0, 0, 99));
        let frame = Frame::ethernet().ipv4(from, to).udp(port, 53).payload(b"x").bytes();
        let ts = (START_MS + ms) * 1_000_000;
        header.put_record(&mut bytes, ts, frame.len() as u32, &frame);
    }
    let path = folder.path(name);
    fs::write(&path, bytes).expect("it is written");
    path
}

/// The streams of probes `a` and `b`, which see the packets of one run.
fn streams(folder: &Folder, query: &str, a: &[Packet], b: &[Packet]) -> [String; 2] {
    [("a", a), ("b", b)].map(|(name, packets)| {
        let (from, to) = (
            capture(folder, &format!("{name}.pcap"), packets),
            folder.path(&format!("{name}.wps")),
        );
        rows(&["run", "-e", query, "-r", &from, "--publish", &to, "--probe", name]);
        to
    })
}

/// Fails unless two probes give what one run gives over the packets of both, in either order;
/// returns the rows.
fn same_as_one(query: &str, a: &[Packet], b: &[Packet]) -> String {
    let folder = Folder::new();
    let mut all = [a, b].concat();
    all.sort_by_key(|(ms, ..)| *ms);
    let one = rows(&["run", "-e", query, "-r", &capture(&folder, "all.pcap", &all), "-o", "json"]);
    let [a, b] = &streams(&folder, query, a, b);
    for [first, second] in [[a, b], [b, a]] {
        let merge = ["merge", "-e", query, "--from", first, "--from", second, "-o", "json", "-q"];
        assert_eq!(rows(&merge), one, "{query}");
    }
    one
}

/// The watermark, by which they were ordered, stood still for three packets after a minute without
/// any, and before the second packet of each life there was none.
#[test]
fn the_first_and_last_packets_are_those_of_one_run() {
    let of = |from: i64, ports: std::ops::Range<u16>| -> Vec<Packet> {
        (0..).zip(ports).map(|(i, port)| (from + i * 1000, 1, port)).collect()
    };
    let query = "packets | summarize f = first(sport), fts = first(ts), mints = min(ts) by ip.src";
    // One probe begins an hour after the other.
    let one = same_as_one(query, &of(0, 100..108), &of(3_600_000, 200..205));
    assert!(one.contains("\"f\":100"), "{one}");
    // After silences that are just shorter and longer than what a clock believes.
    let query = "packets | summarize first = first(sport), last = last(sport), n = count() \
                 by ip.src every 10m";
    for gap in [59_000, 61_000, 3_600_000] {
        for step in [1, 500] {
            let a = [(0, 9, 5), (gap + step, 1, 53), (gap + 2 * step + 1, 1, 54)];
            let b = [(100, 9, 5), (gap, 1, 1111), (gap + 3 * step + 2, 1, 1112)];
            same_as_one(query, &a, &b);
            same_as_one(query, &b, &a);
        }
    }
    // Packets of one time are ordered as one, whichever of their fields are asked for.
    let query = "packets | summarize a = first(sport), b = first(ip.src), c = last(sport), \
                 d = last(ip.src)";
    let folder = Folder::new();
    let (a, b) = ([(0, 1, 900), (5, 1, 7)], [(0, 2, 800), (5, 2, 8)]);
    let [a, b] = &streams(&folder, query, &a, &b);
    let merged = rows(&["merge", "-e", query, "--from", a, "--from", b, "-o", "json"]);
    // The first packet of all is of one of the probes, and the last is of the other.
    let either = [
        r#"{"a":900,"b":"10.0.0.1","c":8,"d":"10.0.0.2"}"#,
        r#"{"a":800,"b":"10.0.0.2","c":7,"d":"10.0.0.1"}"#,
    ];
    assert!(either.contains(&merged.trim_end()), "{merged}");
}

/// They took reason 4 and came after the windows that they belong to had closed; so did those of a
/// probe that was silent while another went on.
#[test]
fn sessions_that_end_with_their_probe_are_those_of_one_run() {
    let query = "packets | summarize n = count(), why = end_reason() by flow session 5s \
                 | summarize ended = count(), p = sum(n), idle = count(why == 1) every 10s";
    let (a, b) = ([(100, 1, 1), (200, 1, 1)], [(150, 2, 2), (40_000, 2, 2), (80_000, 2, 2)]);
    let one = same_as_one(query, &a, &b);
    assert!(one.lines().next().is_some_and(|row| row.contains("\"p\":3")), "{one}");
    // One is silent and goes on later, or one ends with a time that its clock does not believe.
    for silence in [20_000, 59_000, 61_000, 600_000] {
        let a = [(100, 1, 1), (200, 1, 1), (silence, 1, 3), (silence + 9_000, 1, 3)];
        let b: Vec<Packet> = (0..60).map(|i| (150 + i * 1000, 2, 2 + i as u16 / 7)).collect();
        same_as_one(query, &a, &b);
        same_as_one(query, &a[..3], &b);
        same_as_one(query, &b, &a[..1]);
    }
    // Each probe has one packet, so no clock of theirs ever starts.
    for apart in [1, 30_000, 61_000] {
        same_as_one(query, &[(0, 1, 1)], &[(apart, 2, 2)]);
    }
}

/// Which windows were left out, where many had no row, went by the steps of a clock: one of a probe
/// that begins hours later takes another step than that of one run.
#[test]
fn what_is_filled_in_is_that_of_one_run() {
    let of = |from: i64, host: u8, count: u16| -> Vec<Packet> {
        (0..count).map(|i| (from + i64::from(i) * 700, host + (i % 3) as u8, i)).collect()
    };
    for way in ["by ip.src every 1s fill", "every 100ms fill", "by ip.src every 1m fill from start"]
    {
        let query = format!("packets | summarize n = count(), last = last(sport) {way}");
        for apart in [0, 59_000, 61_000, 3_600_000, 7_200_000] {
            let (a, b) = (of(0, 1, 20), of(apart, 2, 20));
            let one = same_as_one(&query, &a, &b);
            assert!(apart == 0 || one.contains("\"n\":0"), "{query}");
            // The late one alone has its keys, and each alone sees what is between.
            same_as_one(&query, &b, &a[..1]);
            same_as_one(&query, &[a, of(apart + 90_000, 7, 3)].concat(), &b);
        }
    }
    let query = "packets | summarize n = count() by ip.src every 1s fill idle 10s \
                 | where n == 0 | summarize silent = count() by ip.src every 1m";
    same_as_one(query, &of(0, 1, 200), &of(7_200_000, 2, 200));
}

/// The windows of which nobody has told had a completeness of 1.
#[test]
fn a_part_of_a_stream_that_is_missing_is_told() {
    let folder = Folder::new();
    let query = "packets | summarize n = count(), c = completeness() every 1s";
    let a: Vec<Packet> = (0..200).map(|i| (i * 100, 1, 1)).collect();
    let b: Vec<Packet> = (0..200).map(|i| (50 + i * 100, 2, 2)).collect();
    let [a, b] = &streams(&folder, query, &a, &b);
    let bytes = fs::read(a).expect("the stream");
    let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut at, mut messages) = (4, Vec::new());
    while at < bytes.len() {
        messages.push(at);
        at += 4 + length(at) as usize;
    }
    // The first is the head.
    let cuts = [(1, 3), (messages.len() / 2, messages.len() / 2 + 4)];
    for (from, to) in cuts {
        let left = [&bytes[..messages[from]], &bytes[messages[to]..]].concat();
        fs::write(a, left).expect("it is written");
        let output = run(&["merge", "-e", query, "--from", a, "--from", b, "-o", "json"]);
        let (told, rows) = (text(&output.stderr), text(&output.stdout));
        assert_eq!(output.status.code(), Some(1), "{told}");
        let missing = format!("{} missing between them", to - from);
        assert!(told.contains("warning: nobody knows what the probe"), "{told}");
        assert!(told.contains(&missing), "{told}");
        let unseen = rows.lines().filter(|row| !row.contains("\"c\":1")).count();
        assert!((1..8).contains(&unseen), "{rows}");
        let is_told = |row: &str| row.contains("\"n\":20,") || !row.contains("\"c\":1");
        let lacking: Vec<&str> = rows.lines().filter(|row| !is_told(row)).collect();
        assert!(lacking.is_empty(), "{lacking:?}");
    }
    // A stream that breaks off has no end.
    fs::write(a, &bytes[..messages[messages.len() / 2]]).expect("it is written");
    let output = run(&["merge", "-e", query, "--from", a, "--from", b, "-o", "json"]);
    let last = text(&output.stdout).lines().last().map(str::to_owned);
    assert!(last.as_ref().is_some_and(|row| !row.contains("\"c\":1")), "{last:?}");
    assert_eq!(output.status.code(), Some(1));
}
