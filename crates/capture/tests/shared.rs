//! Every shared capture, against what tshark read in it (`truth.jsonl`): packets, bytes, times,
//! and how it ends.

use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use weir_capture::{Options, open, open_reader};
use weir_packet::source::{FrameBatch, LinkType, Source, SourceError};
use weir_packet::time::NO_TIME;
use weir_packet::walk;

/// `(packets, bytes on the wire, bytes captured)` where we read a capture otherwise than tshark,
/// and why.
const OTHERWISE: &[(&str, [u64; 3], &str)] = &[
    ("bug-6875-01/fuzz.pcap", [1, 188, 188], GUESSED),
    ("atm-heapoverflow.pcap", [1, 262_144, 4], PSEUDO_HEADER),
    ("atm-oam-loopback-print-overrun.pcap", [1, 65_622, 64], PSEUDO_HEADER),
    ("frf16_magic_ie-oobr.pcap", [1, 262_144, 6], REFUSED),
    ("hoobr_juniper3.pcap", [1, 262_144, 6], REFUSED),
    ("juniper_es_oobr.pcap", [1, 262_144, 5], REFUSED),
    ("juniper_monitor_invalid_cookie_length.pcap", [1, 82, 82], REFUSED),
    ("vtp_asan-2.pcap", [1, 262_144, 68], REFUSED),
    ("vtp_asan-3.pcap", [1, 262_144, 145], REFUSED),
    ("timestamp_invalid_micro.pcap", [3, 220, 220], WILD_FRACTION),
    ("timestamp_invalid_nano.pcap", [3, 220, 220], WILD_FRACTION),
    ("basic/test017.pcapng", [0, 0, 0], CUSTOM_BLOCKS),
    ("basic/test018.pcapng", [4, 1312, 1312], CUSTOM_BLOCKS),
    ("advanced/test102.pcapng", [5, 1480, 798], CUSTOM_BLOCKS),
];

const GUESSED: &str = "tshark tries other record headers when the given one makes no sense; \
                       libpcap and we don't";
const PSEUDO_HEADER: &str = "tshark counts without the link type's pseudo-header";
const REFUSED: &str = "tshark refuses the link type, as we do unless told otherwise";
const WILD_FRACTION: &str = "a fraction of more than a second overflows in tshark; we add it up";
const CUSTOM_BLOCKS: &str = "tshark counts custom blocks as packets";

#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    packets: u64,
    bytes_wire: u64,
    bytes_captured: u64,
    truncated: u64,
    first: Option<i64>,
    last: Option<i64>,
}

fn captures() -> Option<PathBuf> {
    std::env::var_os("WEIR_CAPTURES").map(PathBuf::from)
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(test: &str) {
    eprintln!("SKIPPED {test}: WEIR_CAPTURES names no folder");
}

fn truth(root: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(root.join("truth.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|v| (v["file"].as_str().unwrap().to_owned(), v)).collect()
}

/// All that a source delivers, and its error if it ends in one.
fn totals(mut source: Box<dyn Source>) -> (Totals, Option<SourceError>) {
    let (mut batch, mut t) = (FrameBatch::new(), Totals::default());
    let error = loop {
        match source.fill(&mut batch) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
        for i in 0..batch.len() {
            let (caplen, len, ts) = (batch.caplens()[i], batch.lens()[i], batch.ts()[i]);
            assert_eq!(batch.frame(i).len(), caplen as usize);
            t.packets += 1;
            t.bytes_captured += u64::from(caplen);
            t.bytes_wire += u64::from(len);
            t.truncated += u64::from(caplen < len);
            if ts != NO_TIME {
                t.first = t.first.or(Some(ts));
                t.last = Some(ts);
            }
        }
    };
    assert_eq!(source.account().received, t.packets);
    (t, error)
}

/// `seconds.fraction`, the fraction a number of nanoseconds; saturating, as our readers do.
fn nanoseconds(text: &str) -> i64 {
    let (seconds, fraction) = text.split_once('.').unwrap();
    let seconds: i128 = seconds.parse().unwrap();
    let ns = seconds * 1_000_000_000 + fraction.parse::<i128>().unwrap();
    i64::try_from(ns).unwrap_or(i64::MAX).min(weir_packet::time::LAST_TIME)
}

/// Whether no packet has a time: all are simple packet blocks, and none is an (enhanced) packet
/// block, whose time may be 0.
fn is_untimed(truth: &Value) -> bool {
    let has = |block: &str| truth["pcapng_blocks"][block].is_number();
    has("3") && !has("2") && !has("6")
}

fn expected(truth: &Value) -> Totals {
    let number = |key: &str| truth[key].as_u64().unwrap();
    // Where a packet has no time, tshark says 0.
    let time = |key: &str| {
        let ts = truth[key].as_str().map(nanoseconds);
        ts.filter(|ts| *ts != 0 || !is_untimed(truth))
    };
    Totals {
        packets: number("packets"),
        bytes_wire: number("bytes_wire"),
        bytes_captured: number("bytes_captured"),
        truncated: number("packets_truncated"),
        first: time("ts_first"),
        last: time("ts_last"),
    }
}

/// Whether the reader's last word is the one that tshark's makes us expect.
fn ends_alike(file: &str, error: Option<&SourceError>, tshark: Option<&str>) -> bool {
    let refused = OTHERWISE.iter().any(|(f, _, why)| file.ends_with(f) && *why == REFUSED);
    match (error, tshark) {
        (None, None) => true,
        (None, Some(_)) => refused,
        (Some(SourceError::Corrupt { reason, records, .. }), Some(tshark)) => {
            let part = if tshark.contains("cut short") { "breaks off" } else { "a record claims" };
            reason.contains(part) && *records > 0
        }
        _ => false,
    }
}

#[test]
fn totals_are_those_of_tshark() {
    let Some(root) = captures() else { return skip("totals_are_those_of_tshark") };
    let options = Options { any_link: true, ..Options::default() };
    for (file, truth) in truth(&root) {
        let source = open(root.join(&file).to_str().unwrap(), &options).unwrap();
        let (got, error) = totals(source);
        match OTHERWISE.iter().find(|(f, ..)| file.ends_with(f)) {
            Some((_, numbers, why)) => {
                let got = [got.packets, got.bytes_wire, got.bytes_captured];
                assert_eq!(got, *numbers, "{file}: {why}");
            }
            None => assert_eq!(got, expected(&truth), "{file}"),
        }
        let tshark = truth["tshark_error"].as_str();
        assert!(ends_alike(&file, error.as_ref(), tshark), "{file}: {error:?}, tshark {tshark:?}");
    }
}

#[test]
fn streams_give_what_files_give() {
    let Some(root) = captures() else { return skip("streams_give_what_files_give") };
    let options = Options { any_link: true, ..Options::default() };
    for (file, _) in truth(&root) {
        let path = root.join(&file);
        let path = path.to_str().unwrap();
        let (mapped, error) = totals(open(path, &options).unwrap());
        let stream = open_reader(path, File::open(path).unwrap(), &options).unwrap();
        let (streamed, stream_error) = totals(stream);
        assert_eq!(mapped, streamed, "{file}");
        let text = |e: Option<SourceError>| e.map(|e| e.to_string());
        assert_eq!(text(error), text(stream_error), "{file}");
    }
}

#[test]
fn link_types_that_are_not_decoded_are_named() {
    let Some(root) = captures() else { return skip("link_types_that_are_not_decoded_are_named") };
    let mut named = 0;
    for (file, truth) in truth(&root) {
        let links = truth["linktypes"].as_array().unwrap();
        let links: Vec<_> = links.iter().map(|n| LinkType(n.as_u64().unwrap() as u16)).collect();
        let source = open(root.join(&file).to_str().unwrap(), &Options::default()).unwrap();
        match totals(source).1 {
            Some(SourceError::LinkType { link, .. }) => {
                assert!(links.contains(&link) && !walk::supported(link), "{file}: {link:?}");
                named += 1;
            }
            _ if truth["packets"] == 0 => {}
            _ => assert!(links.iter().all(|l| walk::supported(*l)), "{file}: {links:?} passed"),
        }
    }
    assert!(named > 8, "{named}");
}
