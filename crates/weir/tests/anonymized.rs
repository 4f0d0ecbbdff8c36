//! The output of `anonymize`: no address at its true place, found by a reader of frames that shares
//! nothing with Weir's, and nothing at all of frames that can't be followed.

mod common;

use common::{files, shared, truths, workplace};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, LinkType};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// A frame: its time, its length on the wire, its link type, its bytes.
type Record = (i64, u32, u16, Vec<u8>);

/// Runs a query over a capture; says whether it succeeded, and what it told.
fn run(folder: &Path, query: &str, capture: &str, more: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["run", "-e", query, "-r", capture]).args(more).current_dir(folder);
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// All frames up to the end of a capture, or to what is wrong with it.
fn records(path: &Path) -> Vec<Record> {
    let options = weir_capture::Options { any_link: true, ..Default::default() };
    let opened = weir_capture::open(path.to_str().expect("a plain path"), &options);
    let (Ok(mut source), mut batch, mut all) = (opened, FrameBatch::new(), Vec::new()) else {
        return Vec::new();
    };
    while let Ok(true) = source.fill(&mut batch) {
        for i in 0..batch.len() {
            // A packet without a time may be written with the time 0.
            all.push((
                batch.ts()[i].max(0),
                batch.lens()[i],
                batch.link.0,
                batch.frame(i).to_vec(),
            ));
        }
    }
    all
}

/// The number in the line of the ledger with this name; 0 without such a line.
fn count(told: &str, name: &str) -> usize {
    let line = told.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |rest| {
        let number = rest.split_whitespace().next().expect("a number");
        number.parse().expect("a number")
    })
}

/// Finds the addresses of a frame, of MAC and IP, in the plainest way: the usual headers, and those
/// of the usual tunnels. It does not look at what is beyond the captured bytes.
struct Reader<'a> {
    frame: &'a [u8],
    found: Vec<Range<usize>>,
}

impl Reader<'_> {
    fn read(link: u16, frame: &[u8]) -> Vec<Range<usize>> {
        let mut reader = Reader { frame, found: Vec::new() };
        match link {
            1 => reader.ethernet(0),
            113 => reader.typed(14, 16),
            276 => reader.typed(0, 20),
            12 | 14 | 101 | 228 | 229 => reader.ip(0),
            // The number of the address family, in either byte order.
            0 | 108 if matches!(frame, [2 | 10 | 24 | 28 | 30, 0, 0, 0, ..]) => reader.ip(4),
            0 | 108 if matches!(frame, [0, 0, 0, 2 | 10 | 24 | 28 | 30, ..]) => reader.ip(4),
            _ => {}
        }
        reader.found
    }

    fn byte(&self, at: usize) -> usize {
        self.frame.get(at).map_or(0, |b| usize::from(*b))
    }

    fn word(&self, at: usize) -> usize {
        self.byte(at) << 8 | self.byte(at + 1)
    }

    fn add(&mut self, at: usize, len: usize) {
        if at + len <= self.frame.len() {
            self.found.push(at..at + len);
        }
    }

    fn ethernet(&mut self, at: usize) {
        self.add(at, 6);
        self.add(at + 6, 6);
        self.typed(at + 12, at + 14);
    }

    /// The header at `at`, which the EtherType at `kind` announces.
    fn typed(&mut self, kind: usize, at: usize) {
        match self.word(kind) {
            0x8100 | 0x88a8 | 0x9100 => self.typed(at + 2, at + 4),
            0x0800 | 0x86dd => self.ip(at),
            0x6558 => self.ethernet(at),
            0x0806 if self.frame.get(at..at + 6) == Some(&[0, 1, 8, 0, 6, 4]) => {
                for (at, len) in [(at + 8, 6), (at + 14, 4), (at + 18, 6), (at + 24, 4)] {
                    self.add(at, len);
                }
            }
            _ => {}
        }
    }

    fn ip(&mut self, at: usize) {
        let (proto, next, is_first) = match self.byte(at) >> 4 {
            4 => {
                self.add(at + 12, 4);
                self.add(at + 16, 4);
                let len = (self.byte(at) & 15) * 4;
                (self.byte(at + 9), at + len, self.word(at + 6) & 0x1fff == 0)
            }
            6 => {
                self.add(at + 8, 16);
                self.add(at + 24, 16);
                (self.byte(at + 6), at + 40, true)
            }
            _ => return,
        };
        match proto {
            _ if !is_first || next >= self.frame.len() => {}
            4 | 41 => self.ip(next),
            47 if self.byte(next + 1) & 7 == 0 => {
                let more = [0x80, 0x20, 0x10].iter().filter(|b| self.byte(next) & **b != 0).count();
                self.typed(next + 2, next + 4 + 4 * more);
            }
            17 if self.word(next + 2) == 4789 && self.byte(next + 8) == 8 => {
                self.ethernet(next + 16);
            }
            1 if matches!(self.byte(next), 3 | 5 | 11) => self.ip(next + 8),
            58 if matches!(self.byte(next), 1..=4) => self.ip(next + 8),
            _ => {}
        }
    }
}

/// Whether an address has no other name: nobody's, everybody's.
fn is_kept(address: &[u8]) -> bool {
    address.len() == 6 && (address == [0; 6] || address == [255; 6])
}

/// Checks what left against what came: each frame that left is one that came, and shows none of the
/// addresses that it has.
fn check(name: &str, came: &[Record], left: &[Record]) {
    let mut rest = came.iter();
    for (ts, len, link, frame) in left {
        let is_same = |r: &&Record| (r.0, r.1, r.2, r.3.len()) == (*ts, *len, *link, frame.len());
        let Some((.., before)) = rest.find(is_same) else {
            panic!("{name}: a frame left that did not come, or not in its turn: {frame:02x?}");
        };
        let places = Reader::read(*link, before);
        for place in places.iter().filter(|place| !is_kept(&before[(*place).clone()])) {
            let (was, is) = (&before[place.clone()], &frame[place.clone()]);
            assert_ne!(was, is, "{name}: a true address at {place:?} of {frame:02x?}");
        }
        // Long addresses are not there by chance: they are nowhere in the headers.
        let end = places.iter().map(|place| place.end).max().unwrap_or(0);
        let long: BTreeSet<&[u8]> = places
            .iter()
            .map(|place| &before[place.clone()])
            .filter(|a| a.len() > 4 && a.iter().filter(|b| **b == 0).count() < 3 && !is_kept(a))
            .collect();
        for address in long {
            let is_there = frame[..end].windows(address.len()).any(|bytes| bytes == address);
            assert!(!is_there, "{name}: {address:02x?} in the headers of {frame:02x?}");
        }
    }
}

/// The packets of a capture, those that left, and the number of withheld ones; `None` where a run
/// over it fails.
fn anonymized(folder: &Path, capture: &Path) -> Option<(Vec<Record>, Vec<Record>, usize)> {
    let out = folder.join("out.pcapng");
    let query = format!(
        "packets | anonymize ip.src, ip.dst, eth.src, eth.dst with \"{KEY}\" | forward \
         \"out.pcapng\""
    );
    let (done, told) = run(folder, &query, capture.to_str().expect("a plain path"), &["-j", "2"]);
    let left = records(&out);
    let _ = std::fs::remove_file(&out);
    let came = records(capture);
    check(&capture.display().to_string(), &came, &left);
    done.then(|| (came, left, count(&told, "withheld")))
}

#[test]
fn no_true_address_of_any_capture_leaves() {
    let folder = workplace();
    let (mut whole, mut sum, mut withheld) = (0, 0, 0);
    let mut captures = files("fixtures", &[".pcap", ".pcapng"]);
    if let Some(shared) = shared("no_true_address_of_any_capture_leaves") {
        let of = |truth: &serde_json::Value| truth["file"].as_str().map(|file| shared.join(file));
        captures.extend(truths(&shared).iter().filter_map(of));
    }
    for capture in captures {
        let Some((came, left, missing)) = anonymized(folder.path(), &capture) else { continue };
        assert_eq!(came.len(), left.len() + missing, "{}", capture.display());
        (whole, sum, withheld) = (whole + 1, sum + came.len(), withheld + missing);
    }
    assert!(whole >= 10, "{whole} captures were read to their end");
    // Frames that can't be followed are rare.
    assert!(withheld * 20 < sum, "{withheld} of {sum} were withheld");
}

/// Frames that hide an address where it can't be told, and one that does not.
fn hostile() -> Vec<Vec<u8>> {
    let ip = |proto: u8, fragment: [u8; 2], payload: &[u8]| {
        let len = (20 + payload.len() as u16).to_be_bytes();
        let start = [0x45, 0, len[0], len[1], 0, 1, fragment[0], fragment[1], 64, proto, 0, 0];
        [&start[..], &[198, 51, 100, 7, 203, 0, 113, 9], payload].concat()
    };
    let ethernet = |kind: u16, payload: &[u8]| {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &kind.to_be_bytes(), payload].concat()
    };
    let udp = ip(17, [0; 2], &[0, 9, 0, 9, 0, 12, 0, 0, 1, 2, 3, 4]);
    let tunnels = |n| (0..n).fold(udp.clone(), |inner, _| ip(4, [0; 2], &inner));
    let mut version = udp.clone();
    version[0] = 0x55;
    let mut beyond = udp.clone();
    beyond[2] = 0x7f;
    let ports = |port: u16, payload: &[u8]| {
        let (port, len) = (port.to_be_bytes(), (8 + payload.len() as u16).to_be_bytes());
        ip(17, [0; 2], &[&[0xc3, 0x50][..], &port, &len, &[0; 2], payload].concat())
    };
    let bridged = ethernet(0x0800, &udp);
    let toa =
        [&[0xc3, 0x50, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x70, 2, 0, 9, 0, 0, 0, 0][..], &[254, 8]];
    let toa = [toa.concat(), vec![0x4e, 0x20, 198, 51, 100, 7]].concat();
    vec![
        ethernet(0x0800, &udp),
        ethernet(
            0x0800,
            &ports(6081, &[&[0x40, 0, 0x65, 0x58, 0, 0, 7, 0][..], &bridged].concat()),
        ),
        ethernet(0x0800, &ports(4789, &[&[0, 0, 0, 0, 0, 0, 7, 0][..], &bridged].concat())),
        ethernet(0x0800, &ip(47, [0; 2], &[&[0, 0, 0x88, 0x3e, 0, 0, 0, 0][..], &udp].concat())),
        ethernet(0x0800, &ip(103, [0; 2], &[&[0x21, 0, 0, 0, 0, 0, 0, 0][..], &udp].concat())),
        ethernet(0x0800, &ip(6, [0; 2], &toa)),
        ethernet(0x894f, &[&[15, 0xc2, 2, 9, 0, 0, 1, 255][..], &udp].concat()),
        ethernet(0x8847, &[&[0, 1, 0x11, 64, 0x10, 0, 0, 0x21][..], &udp].concat()),
        ethernet(0x0800, &version),
        ethernet(0x0800, &beyond),
        ethernet(0x0800, &tunnels(9)),
        ethernet(0x0800, &ip(47, [0, 3], &udp)),
        ethernet(0x0800, &ip(17, [0, 1], &udp)),
        ethernet(0x0800, &ip(4, [0; 2], &version)),
        ethernet(0x0800, &ip(47, [0; 2], &[&[0x40, 0, 8, 0][..], &udp].concat())),
        ethernet(0x0806, &[&[0, 6, 8, 0, 6, 4, 0, 1][..], &[7; 20]].concat()),
        (0..9).fold(ethernet(0x0800, &udp), |frame, _| {
            [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat()
        }),
    ]
}

fn write(folder: &Path, name: &str, link: LinkType, frames: &[(u32, Vec<u8>)]) {
    let header = FileHeader::new(link);
    let mut file = header.to_bytes().to_vec();
    for (ts, (len, frame)) in (1..).zip(frames) {
        header.put_record(&mut file, ts * 1_000_000_000, *len, frame);
    }
    std::fs::write(folder.join(name), file).expect("a file");
}

/// By every way out; with and without somebody who takes the packets, and with rows that go on.
#[test]
fn frames_that_cant_be_followed_do_not_leave() {
    let folder = workplace();
    let frames: Vec<(u32, Vec<u8>)> =
        hostile().into_iter().map(|frame| (frame.len() as u32, frame)).collect();
    write(folder.path(), "hostile.pcap", LinkType::ETHERNET, &frames);
    let came = records(&folder.path().join("hostile.pcap"));
    let anonymize = format!("anonymize ip.src, ip.dst with \"{KEY}\"");
    for (ways, ends, files) in [
        ("pass", 1, &["p.pcap"][..]),
        ("mirror \"m.pcap\" | forward \"f.pcap\"", 2, &["m.pcap", "f.pcap"]),
        ("top 100 by ts | forward \"t.pcap\"", 1, &["t.pcap"]),
        ("branch when ip -> forward \"b.pcap\" else -> forward \"b.pcap\"", 1, &["b.pcap"]),
        ("mirror \"r.pcap\" | summarize n = count()", 1, &["r.pcap"]),
    ] {
        for (workers, taken) in [("1", true), ("2", true), ("2", false)] {
            let mut more = vec!["-j", workers];
            if ways == "pass" && taken {
                more.extend(["-w", "p.pcap"]);
            }
            let query = format!("packets | {anonymize} | {ways}");
            let (done, told) = run(folder.path(), &query, "hostile.pcap", &more);
            assert!(done, "{ways}: {told}");
            assert_eq!(count(&told, "withheld"), ends * (came.len() - 1), "{ways}: {told}");
            for file in files.iter().filter(|_| taken || ways != "pass") {
                let left = records(&folder.path().join(file));
                assert_eq!(left.len(), 1, "{ways} {file}");
                for (.., frame) in &left {
                    let true_address = |a: [u8; 4]| frame.windows(4).any(|w| w == a);
                    assert!(!true_address([198, 51, 100, 7]) && !true_address([203, 0, 113, 9]));
                }
                std::fs::remove_file(folder.path().join(file)).expect("a file");
            }
        }
    }
    let quiet = ["-q", "--fail-on-loss"];
    let query = format!("packets | {anonymize} | pass");
    let (done, told) = run(folder.path(), &query, "hostile.pcap", &quiet);
    assert!(!done && told.contains("withheld   16 packets"), "{told}");
}

/// However it is cut, a frame shows nothing of its addresses.
#[test]
fn frames_are_cut_anywhere() {
    let folder = workplace();
    for (n, frame) in hostile().into_iter().enumerate() {
        let len = frame.len() as u32;
        let cut: Vec<_> = (1..=frame.len()).map(|cut| (len, frame[..cut].to_vec())).collect();
        write(folder.path(), "cut.pcap", LinkType::ETHERNET, &cut);
        let (came, left, withheld) =
            anonymized(folder.path(), &folder.path().join("cut.pcap")).expect("a capture");
        assert_eq!(came.len(), left.len() + withheld, "frame {n}");
        assert!(n != 0 || withheld == 0, "the sound frame leaves however it is cut");
        for (.., frame) in &left {
            let is_true = |a: &[u8]| frame.windows(3).any(|w| w == &a[..3]);
            assert!(!is_true(&[198, 51, 100]) && !is_true(&[203, 0, 113]), "{n}: {frame:02x?}");
        }
    }
}
