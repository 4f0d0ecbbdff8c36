//! Opening what users name: files of every format and compression, and what is no capture.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use weir_capture::bpf::Filter;
use weir_capture::{Options, open, open_bytes, size_hint};
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::pcapng::{Interface, Writer};
use weir_packet::source::{FrameBatch, LinkType, Source, SourceError};

fn pcap() -> Vec<u8> {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut out = header.to_bytes().to_vec();
    for i in 0..1000u32 {
        header.put_record(&mut out, i64::from(i), 100, &vec![i as u8; i as usize % 90]);
    }
    out
}

fn pcapng() -> Vec<u8> {
    let (w, mut out) = (Writer { order: ByteOrder::Big }, Vec::new());
    w.section(&mut out);
    let nanos = Interface { resolution: 9, ..Interface::new(LinkType::ETHERNET) };
    w.interface(&mut out, &nanos);
    for i in 0..1000u32 {
        w.packet(&mut out, 0, u64::from(i), 100, &vec![i as u8; i as usize % 90]);
    }
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Gzip in two members, cut in the middle of a record.
fn two_members(bytes: &[u8]) -> Vec<u8> {
    let (a, b) = bytes.split_at(bytes.len() / 2 + 1);
    [gzip(a), gzip(b)].concat()
}

type Pack = fn(&[u8]) -> Vec<u8>;

fn save(dir: &Path, name: &str, bytes: &[u8]) -> String {
    let path: PathBuf = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// All frames as `(time, length, bytes)`; the account must add up.
fn frames(mut source: Box<dyn Source>) -> Vec<(i64, u32, Vec<u8>)> {
    let (mut batch, mut out) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).unwrap() {
        for i in 0..batch.len() {
            out.push((batch.ts()[i], batch.lens()[i], batch.frame(i).to_vec()));
        }
    }
    let account = source.account();
    assert_eq!(account.received, out.len() as u64 + account.filtered);
    out
}

#[test]
fn every_format_and_compression_gives_the_same_frames() {
    let dir = tempfile::tempdir().unwrap();
    let expected: Vec<_> =
        (0..1000u32).map(|i| (i64::from(i), 100, vec![i as u8; i as usize % 90])).collect();
    for (format, bytes) in [("pcap", pcap()), ("pcapng", pcapng())] {
        let packings: [(&str, Pack); 4] =
            [("plain", <[u8]>::to_vec), ("gz", gzip), ("members", two_members), ("zst", zstd)];
        for (packing, pack) in packings {
            let packed = pack(&bytes);
            // The name says nothing; the first bytes do.
            let name = save(dir.path(), "capture", &packed);
            let source = open(&name, &Options::default()).unwrap();
            assert!(frames(source) == expected, "{format} {packing}, a file");
            let source = open_bytes("x", packed, &Options::default()).unwrap();
            assert!(frames(source) == expected, "{format} {packing}, in memory");
        }
    }
}

#[test]
fn progress_ends_at_the_size_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in [pcap(), gzip(&pcap()), zstd(&pcapng())] {
        let name = save(dir.path(), "capture", &bytes);
        let mut source = open(&name, &Options::default()).unwrap();
        let mut batch = FrameBatch::new();
        while source.fill(&mut batch).unwrap() {}
        assert_eq!(Some(source.account().bytes_read), size_hint(&name));
    }
    assert_eq!(size_hint("-"), None);
    assert_eq!(size_hint(dir.path().to_str().unwrap()), None);
}

#[test]
fn a_filter_counts_what_it_refuses() {
    let filter = match Filter::new("len > 50 and ether[0] < 10") {
        Ok(filter) => filter,
        Err(error) => return skip("a_filter_counts_what_it_refuses", &error.to_string()),
    };
    let options = Options { filter: Some(filter), ..Options::default() };
    let kept = frames(open_bytes("x", pcap(), &options).unwrap());
    // Frame i is i % 90 bytes of the value i; those of no bytes have no first byte.
    let expected = (0..1000u32).filter(|i| i % 90 > 0 && (*i as u8) < 10).count();
    assert_eq!(kept.len(), expected);
    let mut source = open_bytes("x", pcap(), &options).unwrap();
    while source.fill(&mut FrameBatch::new()).unwrap() {}
    let account = source.account();
    assert_eq!((account.received, account.filtered), (1000, 1000 - expected as u64));
}

#[test]
fn what_cannot_be_opened_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let check = |name: &str, expected: &str| {
        let Err(error) = open(name, &Options::default()) else { panic!("{name} was opened") };
        let text = error.to_string();
        assert!(text.starts_with(name) && text.contains(expected), "{text}");
        error
    };
    let missing = dir.path().join("missing.pcap");
    let error = check(missing.to_str().unwrap(), "No such file");
    assert!(matches!(error, SourceError::Io { .. }));
    check(dir.path().to_str().unwrap(), "is a directory");
    check(&save(dir.path(), "empty", b""), "is empty");
    check(&save(dir.path(), "empty.gz", &gzip(b"")), "is empty");
    check(&save(dir.path(), "text", b"hello, world"), "neither pcap nor pcapng");
    check(&save(dir.path(), "cut.gz", &gzip(&pcap())[..12]), "the gzip data break off");
    check(&save(dir.path(), "cut.zst", &zstd(&pcap())[..12]), "the zstd data break off");
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}
