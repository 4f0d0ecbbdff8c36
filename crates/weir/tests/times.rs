//! Packets whose times are out of order: every query of the library gives the rows of the capture
//! sorted by time, or the ledger says which packets make the difference.

mod common;

use common::{Answer, ReadingOptions, answer, files, open, program, queries, root, shared, text};
use common::{supported, truths};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use weir_engine::functions::Functions;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, LinkType, Source};
use weir_plan::{AggFunc, Program, Stage, Value};

/// A packet of a capture.
#[derive(Clone)]
struct Packet {
    ts: i64,
    /// Its length on the wire.
    len: u32,
    bytes: Vec<u8>,
}

/// The packets of a capture; none where it can't be read to its end, or has several link types.
fn packets(capture: &Path) -> Option<(LinkType, Vec<Packet>)> {
    let mut source = open(capture, ReadingOptions::default()).ok()?;
    let (mut batch, mut link, mut packets) = (FrameBatch::new(), None, Vec::new());
    while source.fill(&mut batch).ok()? {
        if !batch.is_empty() && *link.get_or_insert(batch.link) != batch.link {
            return None;
        }
        packets.extend((0..batch.len()).map(|i| Packet {
            ts: batch.ts()[i],
            len: batch.lens()[i],
            bytes: batch.frame(i).to_vec(),
        }));
    }
    Some((link?, packets))
}

/// Writes a capture.
fn written(folder: &Path, name: &str, link: LinkType, packets: &[Packet]) -> PathBuf {
    let header = FileHeader::new(link);
    let mut out = header.to_bytes().to_vec();
    packets.iter().for_each(|p| header.put_record(&mut out, p.ts, p.len, &p.bytes));
    let path = folder.join(name);
    std::fs::write(&path, out).expect("a file is written");
    path
}

/// Whether rows depend on the order of packets besides their times. Then the count of packets out
/// of order says that there may be a difference.
fn goes_by_order(program: &Program) -> bool {
    let of_agg = |func: AggFunc| matches!(func, AggFunc::First | AggFunc::Last);
    program.pipelines.iter().flat_map(|p| &p.stages).any(|stage| match stage {
        Stage::Summarize(s) => s.aggs.iter().any(|agg| of_agg(agg.func)),
        Stage::Scan(_) | Stage::AnalyzeTcp(_) | Stage::Hello(_) | Stage::Distinct(_) => true,
        Stage::Limit(_) | Stage::Sample(_) | Stage::Capture(_) => true,
        _ => false,
    })
}

/// The rows, in whatever order they came out.
fn bag(answer: &Answer) -> Vec<String> {
    let mut rows: Vec<_> = answer.rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// Compares each query over packets as they are and over packets sorted by time. Returns how many
/// gave other rows, which the ledger told.
fn compare(
    queries: &[(PathBuf, Program)],
    name: &str,
    link: LinkType,
    mut all: Vec<Packet>,
) -> u32 {
    let folder = tempfile::tempdir().expect("a folder");
    let as_is = written(folder.path(), "as-is.pcap", link, &all);
    all.sort_by_key(|p| p.ts);
    let sorted = written(folder.path(), "sorted.pcap", link, &all);
    let mut told = 0;
    for (path, program) in queries {
        let (got, want) = (answer(program, &as_is, 2), answer(program, &sorted, 1));
        assert_eq!((want.ledger.lagging, want.ledger.disordered), (0, 0), "{name}");
        if bag(&got) == bag(&want) {
            continue;
        }
        let l = &got.ledger;
        let counted = l.late + l.lagging + l.evicted + l.wild > 0;
        let by_order = goes_by_order(program) && l.disordered > 0;
        let what = || format!("{} over {name}: {}", path.display(), difference(&got, &want));
        assert!(counted || by_order, "{}", what());
        told += 1;
    }
    told
}

fn difference(got: &Answer, want: &Answer) -> String {
    let (got, want) = (bag(got), bag(want));
    let only = |a: &[String], b: &[String]| a.iter().find(|row| !b.contains(row)).cloned();
    format!("{:?} is for {:?}, in silence", only(&got, &want), only(&want, &got))
}

fn library() -> Vec<(PathBuf, Program)> {
    let one = |path: PathBuf| (path.clone(), program(&text(&path), &Functions::default()));
    queries().into_iter().chain(common::detectors()).map(one).collect()
}

#[test]
fn fixtures_out_of_order_are_as_if_sorted_or_it_is_told() {
    let (queries, mut compared, mut told) = (library(), 0, 0);
    for capture in files("fixtures", &["pcap", "pcapng"]) {
        let Some((link, mut all)) = packets(&capture).filter(|(_, all)| all.len() > 9) else {
            continue;
        };
        // Each ninth packet comes after the six that followed it.
        for nine in all.chunks_exact_mut(9) {
            nine[..7].rotate_left(1);
        }
        told += compare(&queries, &capture.display().to_string(), link, all);
        compared += 1;
    }
    assert!(compared > 9 && told > 0, "{compared} captures, {told} queries that told");
}

#[test]
fn captures_out_of_order_are_as_if_sorted_or_it_is_told() {
    let test = "times::captures_out_of_order_are_as_if_sorted_or_it_is_told";
    let Some(folder) = shared(test) else { return };
    let (queries, mut compared) = (library(), 0);
    for truth in truths(&folder) {
        let file = truth["file"].as_str().expect("a name");
        let falls = truth["ts_backwards"].as_u64().is_some_and(|n| n > 0);
        if !falls || !supported(&truth) {
            continue;
        }
        let Some((link, all)) = packets(&folder.join(file)) else { continue };
        compare(&queries, file, link, all);
        compared += 1;
    }
    assert!(compared > 9, "{compared} captures were compared");
}

const SECOND: i64 = 1_000_000_000;
const BEGIN: i64 = 1_700_000_000 * SECOND;

/// A segment after so many milliseconds: whether it is the server's, and its flags.
fn segment((ms, is_answer, flags): (i64, bool, u16)) -> Packet {
    let (a, b) = (Ipv4Addr::new(192, 0, 2, 10), Ipv4Addr::new(198, 51, 100, 20));
    let frame = match is_answer {
        false => Frame::ethernet().ipv4(a, b).tcp(40_000, 80),
        true => Frame::ethernet().ipv4(b, a).tcp(80, 40_000),
    };
    let bytes = frame.flags(flags).bytes();
    Packet { ts: BEGIN + ms * 1_000_000, len: bytes.len() as u32, bytes }
}

/// Of each record of the flow meter its source port, when it starts and ends in milliseconds, and
/// its packets; and how many rows lag.
fn records(packets: &[Packet]) -> (Vec<[i64; 4]>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let capture = written(folder.path(), "x.pcap", LinkType::ETHERNET, packets);
    let query = text(root().join("queries/ipfix_flow_meter.weir"));
    let got = answer(&program(&query, &Functions::default()), &capture, 2);
    let number = |cell: &Value| match cell {
        Value::Int(n) => *n,
        Value::Time(ns) => (ns - BEGIN) / 1_000_000,
        other => panic!("{other} is no number"),
    };
    let record = |(_, cells): &(usize, Vec<Value>)| [2, 0, 6, 7].map(|c| number(&cells[c]));
    (got.rows.iter().map(record).collect(), got.ledger.lagging)
}

#[test]
fn a_record_starts_and_ends_with_the_times_of_its_packets() {
    let check = |packets: &[(i64, bool, u16)], expected: &[[i64; 4]], lagging| {
        let packets: Vec<_> = packets.iter().copied().map(segment).collect();
        assert_eq!(records(&packets), (expected.to_vec(), lagging));
    };
    // One direction comes after the other, and within it.
    let (ack, data) = (0x10, 0x18);
    check(
        &[(500, true, 0x12), (200, false, 2), (600, false, ack), (550, false, data)],
        &[[40_000, 200, 600, 3], [80, 500, 500, 1]],
        0,
    );
    check(&[(500, false, ack), (200, false, ack)], &[[40_000, 200, 500, 2]], 0);
    check(&[(700, false, ack)], &[[40_000, 700, 700, 1]], 0);
    // The clock steps back by an hour: one record of that length, and the packets after the step
    // lag.
    let hour = 3_600_000;
    let times = [hour, hour + 500, hour + 1_000, 600, 1_100];
    check(&times.map(|ms| (ms, false, ack)), &[[40_000, 600, hour + 1_000, 5]], 1);
}

#[test]
fn a_closed_connection_takes_its_last_segments() {
    let (syn, ack, data, fin) = (2, 0x10, 0x18, 0x11);
    let one = |at: i64| {
        [
            (at, false, syn),
            (at + 10, true, 0x12),
            (at + 20, false, ack),
            (at + 30, false, data),
            (at + 40, true, ack),
            (at + 50, true, data),
            (at + 60, false, ack),
            (at + 70, false, fin),
            (at + 80, true, ack),
            (at + 90, true, fin),
            (at + 100, false, ack),
        ]
    };
    let got = |packets: Vec<(i64, bool, u16)>| {
        records(&packets.into_iter().map(segment).collect::<Vec<_>>())
    };
    assert_eq!(got(one(0).to_vec()), (vec![[40_000, 0, 100, 6], [80, 10, 90, 5]], 0));
    // The ports are used again before it has lingered: each connection has its records.
    let twice = [one(0), one(1_000)].concat();
    let expected =
        [[40_000, 0, 100, 6], [80, 10, 90, 5], [40_000, 1_000, 1_100, 6], [80, 1_010, 1_090, 5]];
    assert_eq!(got(twice), (expected.to_vec(), 0));
    // The last ACK comes before the FIN.
    let mut swapped = one(0);
    swapped.swap(7, 10);
    assert_eq!(got(swapped.to_vec()), (vec![[40_000, 0, 100, 6], [80, 10, 90, 5]], 0));
}
