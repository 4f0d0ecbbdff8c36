//! tshark as the judge of `anonymize`: no address that it shows in a packet before is shown in that
//! packet after, in any header, tunnel, error or message that it knows, but for payload that
//! operators.md names.

mod common;

use common::{files, shared, skip, supported, text, truths, workplace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Payload that holds addresses and is carried as it is, messages of applications and what a
/// station says of itself: how tshark's fields of it start, and its name in operators.md.
const PAYLOAD: &[(&str, &str)] = &[
    ("bootparams.", "RPC"),
    ("cdp.", "CDP"),
    ("classicstun.", "STUN"),
    ("dhcp.", "DHCP"),
    ("dhcpv6.", "DHCPv6"),
    ("diameter.", "Diameter"),
    ("dns.", "DNS"),
    ("ftp.", "FTP"),
    ("h225.", "H.323"),
    ("h245.", "H.323"),
    ("isakmp.", "IKE"),
    ("kerberos.", "Kerberos"),
    ("lacp.", "LACP"),
    ("lcp.", "link control of PPP"),
    ("lldp.", "LLDP"),
    ("mscldap.", "LDAP"),
    ("mstp.", "spanning tree"),
    ("nbdgm.", "NetBIOS"),
    ("nbns.", "NetBIOS"),
    ("ntp.", "NTP"),
    ("radius.", "RADIUS"),
    ("smb_netlogon.", "NetBIOS"),
    ("snmp.", "SNMP"),
    ("socks.", "SOCKS"),
    ("stp.", "spanning tree"),
    ("stun.", "STUN"),
    ("tacacs.", "TACACS"),
    ("wol.", "Wake-on-LAN"),
];

/// Decoders of tshark that take any payload for theirs.
const GUESSES: &[&str] = &["adwin_config."];

/// Tells tshark to look at each packet by itself: others may have been withheld.
const OPTIONS: [&str; 4] = [
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "wlan.defragment:FALSE",
];

/// Where each packet is to be found again, before and after: its time, its length, what is there.
const IDENTITY: [&str; 3] = ["frame.time_epoch", "frame.len", "frame.cap_len"];

/// Runs tshark over a capture; what it wrote, however it ended.
fn tshark(capture: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture);
    OPTIONS.iter().for_each(|option| {
        command.args(["-o", option]);
    });
    let output = command.args(arguments).stdin(Stdio::null()).output().expect("tshark runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All fields of tshark that are addresses; `None` where it is not installed.
fn address_fields(test: &str) -> Option<Vec<String>> {
    let Ok(output) = Command::new("tshark").args(["-G", "fields"]).output() else {
        skip(test, "there is no tshark (apt-get install tshark)");
        return None;
    };
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_address = |kind: &str| ["FT_IPv4", "FT_IPv6", "FT_ETHER"].contains(&kind);
    let field = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let &["F", _, name, kind, ..] = &columns[..] else { return None };
        // A mask is no address, and what tshark computes of an address is not in the packet.
        let mut payload = PAYLOAD.iter().map(|(start, _)| start).chain(GUESSES);
        let is_payload = payload.any(|start| name.starts_with(start));
        let holds = is_address(kind) && !name.contains("mask") && !is_payload;
        holds.then(|| name.to_string())
    };
    let fields: BTreeSet<String> = listing.lines().filter_map(field).collect();
    assert!(fields.len() > 1000, "tshark lists {} fields of addresses", fields.len());
    Some(fields.into_iter().collect())
}

/// A packet: which it is, and the addresses that tshark shows in it, each with a field.
type Shown = (String, BTreeMap<String, String>);

/// The fields of protocols that are in the capture, by tshark's own count.
fn present(capture: &Path, fields: &[String]) -> Vec<String> {
    let told = tshark(capture, &["-q", "-z", "io,phs"]);
    let family = |name: &str| name.split(['.', '_', '-', ':']).next().unwrap_or("").to_string();
    let families: BTreeSet<String> = told.split_whitespace().map(family).collect();
    fields.iter().filter(|field| families.contains(&family(field))).cloned().collect()
}

fn shown(capture: &Path, fields: &[String]) -> Vec<Shown> {
    let mut arguments = vec!["-T", "fields", "-E", "occurrence=a"];
    for field in IDENTITY.iter().copied().chain(fields.iter().map(String::as_str)) {
        arguments.extend(["-e", field]);
    }
    let told = tshark(capture, &arguments);
    let packet = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let (identity, values) = columns.split_at(IDENTITY.len().min(columns.len()));
        let mut addresses = BTreeMap::new();
        for (field, values) in fields.iter().zip(values) {
            for value in values.split(',').filter(|value| !is_nobody(value)) {
                addresses.insert(value.to_string(), field.clone());
            }
        }
        // A packet without a time may be written with the time 0.
        let zero = |value: &&str| !value.trim_start_matches(['0', '.']).is_empty();
        let identity: Vec<&str> = identity.iter().copied().filter(zero).collect();
        (identity.join(" "), addresses)
    };
    told.lines().map(packet).collect()
}

/// Addresses that have no other name, or are none: nobody's and everybody's.
fn is_nobody(value: &str) -> bool {
    matches!(value, "" | "00:00:00:00:00:00" | "ff:ff:ff:ff:ff:ff" | "0.0.0.0" | "::")
}

/// Runs a query over captures, whatever becomes of some of them; the file that it wrote, if any.
fn run(folder: &Path, query: &str, captures: &[PathBuf], name: &str) -> Option<PathBuf> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let query = format!("packets | {query}forward \"{name}\"");
    command.args(["run", "-q", "-e", &query, "-j", "2"]).current_dir(folder);
    captures.iter().for_each(|capture| {
        command.arg("-r").arg(capture);
    });
    let _ = command.stdin(Stdio::null()).output().expect("it runs");
    Some(folder.join(name)).filter(|path| path.exists())
}

/// The findings: how many packets left, and of each field that showed an address again, how often
/// it did and the first time.
#[derive(Default)]
struct Findings {
    left: usize,
    faults: BTreeMap<String, (usize, String)>,
}

impl Findings {
    /// Adds what tshark shows that it may not.
    fn judge(&mut self, folder: &Path, captures: &[PathBuf], fields: &[String]) {
        let anonymize = format!("anonymize ip.src, ip.dst, eth.src, eth.dst with \"{KEY}\" | ");
        let Some(came) = run(folder, "", captures, "came.pcapng") else { return };
        let Some(out) = run(folder, &anonymize, captures, "out.pcapng") else { return };
        let fields = present(&came, fields);
        let (before, after) = (shown(&came, &fields), shown(&out, &fields));
        [came, out].iter().for_each(|path| std::fs::remove_file(path).expect("a file"));
        let mut rest = before.iter().enumerate();
        self.left += after.len();
        for (identity, addresses) in &after {
            let came = rest.find(|(_, packet)| packet.0 == *identity);
            let Some((n, (_, known))) = came else {
                panic!("{identity} of {captures:?} is no packet that came")
            };
            for (address, field) in addresses {
                if let Some(was) = known.get(address) {
                    let example = format!("packet {} of {captures:?}: {was} {address}", n + 1);
                    self.faults.entry(field.clone()).or_insert((0, example)).0 += 1;
                }
            }
        }
    }

    fn check(&self) {
        assert!(self.faults.is_empty(), "addresses leave: {:#?}", self.faults);
    }
}

/// Captures that are looked at together: tshark takes its time to start.
const TOGETHER: usize = 24;

#[test]
fn tshark_shows_no_address_of_a_capture_again() {
    let name = "tshark_shows_no_address_of_a_capture_again";
    let Some(fields) = address_fields(name) else { return };
    let mut captures = files("fixtures", &[".pcap", ".pcapng"]);
    if let Some(shared) = shared(name) {
        // Nothing leaves of link types that are not known, as other tests say.
        let truths = truths(&shared);
        let known = truths.iter().filter(|truth| supported(truth));
        captures.extend(known.filter_map(|t| t["file"].as_str().map(|file| shared.join(file))));
    }
    let (folder, mut findings) = (workplace(), Findings::default());
    for some in captures.chunks(TOGETHER) {
        findings.judge(folder.path(), some, &fields);
    }
    findings.check();
    assert!(findings.left > 1_000, "{} packets left", findings.left);
}

/// The addresses inside; nowhere else.
const A: [u8; 4] = [203, 0, 113, 77];
const A6: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 0x77];

fn outer() -> Frame {
    Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2])
}

/// All numbers of one of tshark's tables of decoders.
fn numbers(listing: &str, table: &str) -> BTreeSet<u16> {
    let number = |line: &str| {
        let mut columns = line.split('\t');
        (columns.next() == Some(table)).then(|| columns.next()?.parse().ok()).flatten()
    };
    listing.lines().filter_map(number).collect()
}

/// Everything that may be inside of a header that tshark knows by its number: a packet of either
/// version, a frame, and addresses in a row, each after so many bytes of header.
fn insides() -> Vec<Vec<u8>> {
    let four = Frame::raw().ipv4(A, A).udp(5, 6).payload(b"inner").bytes();
    let six = Frame::raw().ipv6(A6, A6).udp(5, 6).payload(b"inner").bytes();
    let frame = Frame::ethernet().ipv4(A, A).udp(5, 6).payload(b"inner").bytes();
    let rows = [A.repeat(16), A6.repeat(6)];
    let mut all = Vec::new();
    for inside in [four, six, frame].iter().chain(&rows) {
        for len in [0, 2, 3, 4, 6, 8, 10, 12, 16, 18, 20, 24, 28, 32, 40] {
            for byte in [0, 1] {
                all.push([&vec![byte; len][..], inside].concat());
            }
        }
    }
    all
}

fn write(folder: &Path, name: &str, frames: &[Vec<u8>]) {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    for (ts, frame) in (1..).zip(frames) {
        header.put_record(&mut file, ts * 1_000_000_000, frame.len() as u32, frame);
    }
    std::fs::write(folder.join(name), file).expect("a file");
}

/// Makes the headers that announce a number.
type MakeFrame = fn(u16) -> Frame;

/// Each number by which tshark finds a decoder, with each inside.
#[test]
fn no_number_that_tshark_knows_lets_an_address_out() {
    let Some(fields) = address_fields("no_number_that_tshark_knows_lets_an_address_out") else {
        return;
    };
    let output = Command::new("tshark").args(["-G", "decodes"]).output().expect("tshark runs");
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let makers: [(&str, MakeFrame); 5] = [
        ("ethertype", |n| Frame::ethernet().put(12, &n.max(0x600).to_be_bytes())),
        ("udp.port", |n| outer().udp(50_000, n)),
        ("tcp.port", |n| outer().tcp(50_000, n)),
        ("ip.proto", |n| outer().put(9, &[n as u8])),
        ("gre.proto", |n| outer().put(9, &[47]).payload(&[&[0, 0][..], &n.to_be_bytes()].concat())),
    ];
    let (folder, insides, mut findings) = (workplace(), insides(), Findings::default());
    let mut judge = |frames: &[Vec<u8>]| {
        write(folder.path(), "numbers.pcap", frames);
        findings.judge(folder.path(), &["numbers.pcap".into()], &fields);
    };
    for (table, make) in makers {
        let numbers = numbers(&listing, table);
        assert!(numbers.len() > 20, "{table}");
        let with = |n: &u16| {
            let header = make(*n);
            insides.iter().map(move |inside| header.clone().payload(inside).bytes())
        };
        let frames: Vec<Vec<u8>> = numbers.iter().flat_map(with).collect();
        judge(&frames);
    }
    findings.check();
}

/// Payload whose addresses stay is named where users read of `anonymize`.
#[test]
fn the_payload_that_stays_is_named() {
    let page = text("docs/operators.md");
    for (_, name) in PAYLOAD {
        assert!(page.contains(name), "operators.md does not name {name}");
    }
}
