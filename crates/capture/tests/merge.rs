//! Several captures merged by time, against a model that sorts them in memory.

use proptest::prelude::*;
use std::io::Write as _;
use weir_capture::bpf::{Filter, FilterError};
use weir_capture::limits::{CAPTURES_MERGED_MAX, CAPTURES_OPEN_MAX, MERGE_JUMP_NS};
use weir_capture::{Options, Order, open_all};
use weir_packet::craft::Frame;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::pcapng::{Interface, Writer};
use weir_packet::read::{Family, Plain};
use weir_packet::source::{FrameBatch, LinkType, Source, SourceError};
use weir_packet::walk::{Layers, classify};

const SECOND: i64 = 1_000_000_000;

/// A packet: its time, and bytes that tell it from all others.
type Packet = (i64, Vec<u8>);

fn pcap(link: LinkType, packets: &[Packet]) -> Vec<u8> {
    let header = FileHeader::new(link);
    let mut out = header.to_bytes().to_vec();
    for (ts, bytes) in packets {
        header.put_record(&mut out, *ts, bytes.len() as u32, bytes);
    }
    out
}

/// The same by two interfaces, whose link types differ where that is asked for.
fn pcapng(links: [LinkType; 2], packets: &[Packet]) -> Vec<u8> {
    let (w, mut out) = (Writer { order: ByteOrder::Little }, Vec::new());
    w.section(&mut out);
    for (n, link) in links.into_iter().enumerate() {
        let name = [&b"eth0"[..], b"eth1"][n];
        w.interface(&mut out, &Interface { resolution: 9, name, ..Interface::new(link) });
    }
    for (i, (ts, bytes)) in packets.iter().enumerate() {
        w.packet(&mut out, (i / 3 % 2) as u32, *ts as u64, bytes.len() as u32, bytes);
    }
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("compresses");
    out.finish().expect("compresses")
}

/// Packets at these times, from capture `who`: every third is TCP without payload, which is
/// shorter than what is looked at of a packet.
fn packets(who: u8, times: &[i64]) -> Vec<Packet> {
    let bytes = |i: usize| {
        let mark = [&[who][..], &i.to_le_bytes()[..]].concat();
        if i % 3 < 2 {
            return [mark, vec![who; i * 37 % 90]].concat();
        }
        let mut frame = Frame::ethernet().ipv4([10, 0, 0, who], [10, 0, 0, 9]).tcp(1, 2).bytes();
        frame[..mark.len()].copy_from_slice(&mark);
        frame
    };
    times.iter().enumerate().map(|(i, ts)| (*ts, bytes(i))).collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Writes files, and gives their names.
    fn files(&self, files: &[Vec<u8>]) -> Vec<String> {
        let write = |(n, bytes): (usize, &Vec<u8>)| {
            let path = self.0.path().join(format!("{n}.cap"));
            std::fs::write(&path, bytes).expect("writes");
            path.to_str().expect("a plain path").to_owned()
        };
        files.iter().enumerate().map(write).collect()
    }
}

/// Link type, time, bytes and interface of a packet.
type ReadFrame = (u16, i64, Vec<u8>, Option<String>);

/// Every packet, and how it ended.
type Read = (Vec<ReadFrame>, Option<SourceError>);

/// An operator that groups packets reads headers of those that are plain, without a further look.
fn has_headers_of_plain_packets(batch: &FrameBatch) {
    let mut layers = Layers::new();
    classify(batch, &mut layers);
    for family in [Family::Four, Family::Six] {
        let plain = Plain::new(batch, &layers, family);
        let has = |i: usize| plain.headers(batch.offsets()[i]).is_some();
        assert!(plain.rows().iter().all(has), "headers beyond the memory of a batch");
    }
}

fn read_source(source: &mut dyn Source) -> Read {
    let (mut packets, mut batch) = (Vec::new(), FrameBatch::new());
    let error = loop {
        match source.fill(&mut batch) {
            Ok(true) => assert!(!batch.is_empty(), "Ok(true) promises a frame"),
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
        has_headers_of_plain_packets(&batch);
        for i in 0..batch.len() {
            assert_eq!(batch.seq()[i], packets.len() as u64, "numbered through");
            assert_eq!(batch.frame(i).len(), batch.caplens()[i] as usize);
            assert_eq!(batch.frame(i).len(), batch.lens()[i] as usize);
            let interface = batch.capture_point(i).interface();
            let name = interface.and_then(|number| batch.interface_names()?.name(number));
            let name = name.map(|name| name.text.into_string());
            packets.push((batch.link.0, batch.ts()[i], batch.frame(i).to_vec(), name));
        }
    };
    assert!(batch.is_empty() && matches!(source.fill(&mut batch), Ok(false)), "the end is final");
    assert_eq!(source.account().received, packets.len() as u64);
    (packets, error)
}

fn read(names: Vec<String>) -> Read {
    let options = Options { any_link: true, ..Options::default() };
    read_source(&mut *open_all(names, &options).expect("opens"))
}

fn times(read: &Read) -> Vec<i64> {
    read.0.iter().map(|(_, ts, ..)| *ts).collect()
}

/// The packets that a merge of whole captures has to give: at each step the earliest of the first
/// packets left, of equal ones that of the first capture.
fn model(captures: &[Vec<Packet>]) -> Vec<Packet> {
    let mut left: Vec<&[Packet]> = captures.iter().map(Vec::as_slice).collect();
    let mut out = Vec::new();
    loop {
        let firsts = left.iter().enumerate().filter_map(|(n, c)| c.first().map(|p| (p.0, n)));
        let Some((_, n)) = firsts.min() else { return out };
        out.push(left[n][0].clone());
        left[n] = &left[n][1..];
    }
}

#[test]
fn a_newer_capture_named_first_made_the_older_one_late() {
    let folder = Folder::new();
    let (newer, older) = (packets(0, &[70, 80, 90]), packets(1, &[10, 20, 75]));
    let link = LinkType::ETHERNET;
    let names = folder.files(&[pcap(link, &newer), pcap(link, &older)]);
    assert_eq!(times(&read(names.clone())), [10, 20, 70, 75, 80, 90]);
    let given = Options { order: Order::Given, ..Options::default() };
    let appended = read_source(&mut *open_all(names, &given).expect("opens"));
    assert_eq!(times(&appended), [70, 80, 90, 10, 20, 75]);
}

#[test]
fn packets_of_one_time_come_in_the_order_of_their_captures() {
    let folder = Folder::new();
    let captures = [packets(0, &[5, 5, 6]), packets(1, &[5, 5, 5]), packets(2, &[4, 5, 6])];
    let names = folder.files(&captures.each_ref().map(|c| pcap(LinkType::ETHERNET, c)));
    let whose: Vec<u8> = read(names).0.iter().map(|(_, _, bytes, _)| bytes[0]).collect();
    assert_eq!(whose, [2, 0, 0, 1, 1, 1, 2, 0, 2]);
}

#[test]
fn one_wrong_time_does_not_keep_a_capture_waiting() {
    let folder = Folder::new();
    let wild = 1_000_000 * SECOND;
    // At the beginning, within, at the end of a batch and of the file; two in a row.
    for at in [0, 1, 100, 253, 254, 255, 256, 257, 510, 599] {
        for width in [1, 2] {
            let steady: Vec<i64> = (0..600).map(|i| i * SECOND).collect();
            let mut wrong = steady.clone();
            wrong[at..].iter_mut().take(width).for_each(|ts| *ts = wild);
            let captures = [packets(0, &wrong), packets(1, &steady)];
            let names = folder.files(&captures.each_ref().map(|c| pcap(LinkType::ETHERNET, c)));
            let mut right = times(&read(names));
            // Of the end nobody can tell what is right.
            if at + width < 600 {
                let near = right.iter().position(|ts| *ts == wild).expect("it is there");
                assert!(near.abs_diff(2 * at) <= 2, "{at}: it came as number {near}");
            }
            right.retain(|ts| *ts != wild);
            assert!(right.is_sorted(), "{at}, {width}");
        }
    }
}

#[test]
fn packets_hours_apart_are_merged_by_their_times() {
    let folder = Folder::new();
    let sparse: Vec<i64> = (0..300).map(|i| i * 3600 * SECOND).collect();
    let dense: Vec<i64> = (0..3000).map(|i| i * 300 * SECOND + 1).collect();
    let captures = [packets(0, &sparse), packets(1, &dense)];
    let names = folder.files(&captures.each_ref().map(|c| pcap(LinkType::ETHERNET, c)));
    assert!(times(&read(names)).is_sorted());
}

#[test]
fn a_capture_that_breaks_off_ends_by_itself_and_is_named() {
    let folder = Folder::new();
    let link = LinkType::ETHERNET;
    let whole = pcap(link, &packets(0, &[1, 4, 7]));
    let torn = |who, times: &[i64]| {
        let mut bytes = pcap(link, &packets(who, times));
        bytes.pop();
        bytes
    };
    let names = folder.files(&[torn(1, &[2, 5]), whole.clone(), torn(2, &[3]), whole.clone()]);
    let read_all = read(names.clone());
    assert_eq!(times(&read_all), [1, 1, 2, 4, 4, 7, 7]);
    let error = read_all.1.expect("two are torn").to_string();
    let told: Vec<&str> = error.split("; also ").collect();
    assert_eq!(told.len(), 2, "{error}");
    // In the order they broke off, each with its own numbers.
    assert!(told[0].starts_with(&names[2]) && told[0].contains("after 0 whole records"), "{error}");
    assert!(told[1].starts_with(&names[0]) && told[1].contains("after 1 whole records"), "{error}");

    let junk = folder.files(&[whole.clone(), b"no capture at all, this".to_vec()]);
    let refused = open_all(junk.clone(), &Options::default()).err().expect("refused").to_string();
    assert!(refused.starts_with(&junk[1]), "before anything is read: {refused}");
}

#[test]
fn a_capture_of_an_unknown_link_type_ends_by_itself() {
    let folder = Folder::new();
    let strange = pcap(LinkType(147), &packets(0, &[2]));
    let known = pcap(LinkType::ETHERNET, &packets(1, &[1, 3]));
    let names = folder.files(&[strange, known]);
    let mut source = open_all(names.clone(), &Options::default()).expect("opens");
    let read = read_source(&mut *source);
    assert_eq!(times(&read), [1, 3]);
    let error = read.1.expect("the link type").to_string();
    assert!(error.starts_with(&names[0]) && error.contains("147"), "{error}");
}

#[test]
fn more_files_than_may_be_open_are_merged() {
    let folder = Folder::new();
    let n = CAPTURES_OPEN_MAX as i64 + 3;
    let captures: Vec<Vec<Packet>> =
        (0..n).map(|i| packets(i as u8, &[n - i, 2 * n - i, 3 * n])).collect();
    let files: Vec<Vec<u8>> = captures.iter().map(|c| pcap(LinkType::ETHERNET, c)).collect();
    let read = read(folder.files(&files));
    let expected: Vec<i64> = model(&captures).iter().map(|p| p.0).collect();
    assert_eq!(times(&read), expected);
}

#[test]
fn too_many_captures_are_refused() {
    let names = vec!["x".to_owned(); CAPTURES_MERGED_MAX + 1];
    let error = open_all(names, &Options::default()).err().expect("refused").to_string();
    assert!(error.contains("4097 captures: at most 4096") && error.contains("--append"), "{error}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_filter_leaves_order_and_numbers_as_they_are_without_it() {
    let filter = match Filter::new("ether[0] = 1") {
        Err(FilterError::Library(why)) => {
            return eprintln!("SKIPPED a test of capture filters: {why}");
        }
        other => other.expect("a filter"),
    };
    let folder = Folder::new();
    let captures = [packets(0, &[1, 3, 5]), packets(1, &[2, 4]), packets(0, &[6])];
    let names = folder.files(&captures.each_ref().map(|c| pcap(LinkType::ETHERNET, c)));
    let options = Options { filter: Some(filter), ..Options::default() };
    let mut source = open_all(names, &options).expect("opens");
    let (mut batch, mut kept) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).expect("sound") {
        kept.extend(batch.seq().iter().copied().zip(batch.ts().iter().copied()));
    }
    assert_eq!(kept, [(1, 2), (3, 4)]);
    assert_eq!((source.account().received, source.account().filtered), (6, 4));
}

/// Times of a capture: steps forward, now and then back, of some sizes, within what is believed.
fn steps() -> impl Strategy<Value = Vec<i64>> {
    let step = prop_oneof![
        6 => 0..3i64,
        2 => 3..1000i64,
        1 => -500..0i64,
        1 => Just(MERGE_JUMP_NS - 1),
        1 => Just(MERGE_JUMP_NS),
    ];
    let from = prop_oneof![Just(0), Just(1), 0..2000i64];
    (from, proptest::collection::vec(step, 0..600)).prop_map(|(from, steps)| {
        let mut at: i64 = from;
        let next = |step: i64| {
            at = (at + step).max(0);
            at
        };
        steps.into_iter().map(next).collect()
    })
}

/// The same with times of any kind, for what holds of all captures.
fn hostile() -> impl Strategy<Value = Vec<i64>> {
    let edges = vec![0, 1, MERGE_JUMP_NS, MERGE_JUMP_NS + 1, i64::from(u32::MAX) * SECOND];
    let any =
        prop_oneof![proptest::sample::select(edges), 0..i64::from(u32::MAX) * SECOND, 0..9i64];
    proptest::collection::vec(any, 0..300)
}

fn encoded(form: u8, capture: &[Packet]) -> Vec<u8> {
    match form {
        0 => pcap(LinkType::ETHERNET, capture),
        1 => pcap(LinkType::RAW, capture),
        2 => pcapng([LinkType::ETHERNET; 2], capture),
        3 => pcapng([LinkType::ETHERNET, LinkType::LINUX_SLL], capture),
        _ => gzip(&pcap(LinkType::ETHERNET, capture)),
    }
}

/// The packets of captures with these times and in these forms, and what is read of them merged.
fn merged(captures: &[(Vec<i64>, u8)]) -> (Vec<Vec<Packet>>, Vec<ReadFrame>) {
    let folder = Folder::new();
    let all: Vec<Vec<Packet>> =
        captures.iter().enumerate().map(|(n, (t, _))| packets(n as u8, t)).collect();
    let files: Vec<Vec<u8>> =
        captures.iter().zip(&all).map(|((_, form), c)| encoded(*form, c)).collect();
    let (got, error) = read(folder.files(&files));
    assert!(error.is_none(), "{error:?}");
    (all, got)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn merging_is_taking_the_earliest(
        captures in proptest::collection::vec((steps(), 0..5u8), 2..6),
    ) {
        let (all, got) = merged(&captures);
        let got: Vec<Packet> = got.into_iter().map(|(_, ts, bytes, _)| (ts, bytes)).collect();
        prop_assert_eq!(got, model(&all));
    }

    #[test]
    fn whatever_the_times_each_capture_keeps_its_order_and_nothing_is_lost(
        captures in proptest::collection::vec((hostile(), 0..5u8), 2..5),
    ) {
        let (all, got) = merged(&captures);
        for (n, capture) in all.iter().enumerate() {
            let own = || got.iter().filter(|(_, _, bytes, _)| bytes[0] == n as u8);
            let frames: Vec<Packet> = own().map(|(_, ts, bytes, _)| (*ts, bytes.clone())).collect();
            prop_assert_eq!(&frames, capture);
            let named = matches!(captures[n].1, 2 | 3);
            for (i, (.., interface)) in own().enumerate() {
                let name = named.then_some(["eth0", "eth1"][i / 3 % 2]);
                prop_assert_eq!(interface.as_deref(), name);
            }
        }
    }
}
