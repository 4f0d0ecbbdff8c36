//! The daily questions beside tshark: the same pairs, stacks, names and segments.

mod common;

use common::{root, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;

/// The fixtures that the questions are asked of.
fn captures() -> Vec<PathBuf> {
    let names = ["mixed", "web", "dns", "dns_lost", "ipv6", "ssh", "vlan", "syn_flood", "sessions"];
    names.iter().map(|name| root().join(format!("fixtures/{name}.pcap"))).collect()
}

/// The output of tshark, or nothing where there is none.
fn tshark(capture: &Path, words: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-n", "-o", "ip.defragment:FALSE"]);
    command.args(["-o", "tcp.reassemble_out_of_order:TRUE"]).args(words);
    match command.output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            skip("daily", "there is no tshark");
            None
        }
    }
}

/// The rows of a query as CSV, without the header.
fn rows(query: &str, capture: &Path, words: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.arg(query).arg(capture).args(["-o", "csv", "-q"]).args(words).output();
    let output = output.expect("weir runs");
    assert!(output.status.success(), "{query}: {}", String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8(output.stdout).expect("text");
    out.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// How often each line is there.
fn counted<T: Ord>(all: impl IntoIterator<Item = T>) -> BTreeMap<T, u64> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

/// Each pair of hosts with packets and bytes of both directions.
#[test]
fn conversations_are_those_of_tshark() {
    for capture in captures() {
        let fields = ["-T", "fields", "-e", "ip.src", "-e", "ip.dst", "-e", "ipv6.src"];
        let more = ["-e", "ipv6.dst", "-e", "frame.len", "-E", "occurrence=f"];
        let Some(out) = tshark(&capture, &[&fields[..], &more].concat()) else { return };
        let mut expected: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
        for line in out.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let (from, to) =
                if parts[0].is_empty() { (parts[2], parts[3]) } else { (parts[0], parts[1]) };
            if from.is_empty() {
                continue;
            }
            let counts = expected.entry((from.to_owned(), to.to_owned())).or_default();
            counts[0] += 1;
            counts[1] += number(parts[4]);
        }
        let mut found: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
        for row in rows("conversations", &capture, &["-p", "n=100000"]) {
            let (a, b) = (row[0].clone(), row[1].clone());
            let both = [number(&row[2]), number(&row[3])];
            let sides = [4, 6].map(|at| [number(&row[at]), number(&row[at + 1])]);
            assert_eq!([0, 1].map(|i| sides[0][i] + sides[1][i]), both, "{row:?}");
            for (pair, side) in [((a.clone(), b.clone()), sides[0]), ((b, a), sides[1])] {
                if side[0] > 0 {
                    *found.entry(pair).or_default() = side;
                }
            }
        }
        assert!(!found.is_empty());
        assert_eq!(found, expected, "{}", capture.display());
    }
}

/// The hierarchy of protocols, down to the transport: above it tshark knows more protocols, and
/// follows streams.
#[test]
fn protocols_are_those_of_tshark() {
    for capture in captures() {
        let Some(out) = tshark(&capture, &["-q", "-z", "io,phs"]) else { return };
        let (mut stack, mut expected) = (Vec::new(), BTreeMap::new());
        for line in out.lines().filter(|line| line.contains("frames:")) {
            let depth = (line.len() - line.trim_start().len()) / 2;
            let (name, counts) = line.trim().split_once(' ').expect("a name and counts");
            let counts = counts.trim().strip_prefix("frames:").expect("frames");
            let (frames, bytes) = counts.split_once(" bytes:").expect("bytes");
            stack.truncate(depth);
            stack.push(match name {
                "icmpv6" => "icmp6",
                name => name,
            });
            expected.insert(stack.join(":"), [number(frames), number(bytes)]);
        }
        let found = rows("protocols", &capture, &[]);
        let mut compared = 0;
        for row in &found {
            let depth = row[0].split(':').filter(|part| *part != "vlan").count();
            // Later fragments are of their protocol here, and data there.
            let parent = row[0].rsplit_once(':').map_or("", |(parent, _)| parent);
            let has_fragments = expected.contains_key(&format!("{parent}:data"));
            if depth <= 3 && !has_fragments {
                let wanted = expected.get(&row[0]);
                let got = [number(&row[1]), number(&row[2])];
                assert_eq!(Some(&got), wanted, "{}: {} {expected:?}", capture.display(), row[0]);
                compared += 1;
            }
        }
        assert!(compared >= 2, "{}: {found:?}", capture.display());
    }
}

/// Questions for each name, requests to each host, and hellos for each name.
#[test]
fn names_are_those_of_tshark() {
    let mut compared = [0; 3];
    // The packets of the flood are cut, some of them within a name, which is absent here; in the
    // other one a request is sent again, which tshark does not read twice.
    let others = ["syn_flood.pcap", "sessions.pcap"];
    let whole =
        captures().into_iter().filter(|path| !others.iter().any(|name| path.ends_with(name)));
    for capture in whole.chain([root().join("fixtures/hellos.pcap")]) {
        for (kind, (query, filter, field, column)) in [
            ("dns", "dns.flags.response==0", "dns.qry.name", 0),
            ("http", "http.request.method", "http.host", 0),
            (
                "tls",
                "tls.handshake.type==1 and not quic",
                "tls.handshake.extensions_server_name",
                0,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let words = ["-Y", filter, "-T", "fields", "-e", field, "-E", "occurrence=f"];
            let Some(out) = tshark(&capture, &words) else { return };
            let expected = counted(out.lines().map(str::to_owned));
            let quic = |row: &[String]| if query == "tls" { number(&row[2]) } else { 0 };
            let found = rows(query, &capture, &["-p", "n=100000"]);
            let found = found.iter().map(|row| (row[column].clone(), number(&row[1]) - quic(row)));
            let found: BTreeMap<_, _> = found.filter(|(_, n)| *n > 0).collect();
            assert_eq!(found, expected, "{}: {query}", capture.display());
            compared[kind] += found.len();
        }
    }
    assert!(compared.iter().all(|n| *n > 0), "{compared:?}");
}

/// The packets of the segments that were sent again.
#[test]
fn retransmissions_are_those_of_tshark() {
    let mut compared = 0;
    for capture in captures() {
        let words = ["-Y", "tcp.analysis.retransmission", "-T", "fields", "-e", "frame.number"];
        let Some(out) = tshark(&capture, &words) else { return };
        let expected: Vec<u64> = out.lines().map(number).collect();
        let found = rows("retransmissions", &capture, &[]);
        let found: Vec<u64> = found.iter().map(|row| number(&row[1])).collect();
        assert_eq!(found, expected, "{}", capture.display());
        compared += found.len();
    }
    assert!(compared > 0);
}

/// Flags of the segments of a connection, `<` before those of the end that answers, and its state.
const STATES: &[(&str, &str)] = &[
    ("S", "S0"),
    ("S <R", "REJ"),
    ("S <SA A", "S1"),
    ("S <SA A F <A", "S2"),
    ("S <SA A <F A", "S3"),
    ("S <SA A F <F A", "SF"),
    ("S <SA R", "RSTO"),
    ("S <SA A <R", "RSTR"),
    ("S R", "RSTOS0"),
    ("S F", "SH"),
    ("SA <R", "RSTRH"),
    ("A <A", "OTH"),
];

/// Each name of a state of Zeek's conn.log, from packets that are made for it; but for those of
/// connections whose first packet is an answer, the end of which sends it is the source here.
#[test]
fn connections_have_the_states_of_zeek() {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    let mut at = 1_714_564_800_000_000_000;
    for (port, (segments, _)) in (40_000..).zip(STATES) {
        for segment in segments.split(' ') {
            let (back, letters) = match segment.strip_prefix('<') {
                Some(letters) => (true, letters),
                None => (false, segment),
            };
            let flag = |letter| match letter {
                'F' => 1,
                'S' => 2,
                'R' => 4,
                _ => 16,
            };
            let flags = letters.chars().map(flag).sum::<u16>();
            let (a, b) = ([10, 0, 0, 9], [10, 0, 0, 2]);
            let frame = match back {
                false => Frame::ethernet().ipv4(a, b).tcp(port, 7),
                true => Frame::ethernet().ipv4(b, a).tcp(7, port),
            };
            let frame = frame.flags(flags).bytes();
            header.put_record(&mut bytes, at, frame.len() as u32, &frame);
            at += 1_000_000;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let capture = folder.path().join("states.pcap");
    std::fs::write(&capture, bytes).expect("writes");
    let found = rows("conns", &capture, &[]);
    let found: Vec<(&str, &str)> =
        found.iter().map(|row| (row[3].as_str(), row[9].as_str())).collect();
    let ports: Vec<String> = (40_000..).take(STATES.len()).map(|port| port.to_string()).collect();
    let states = ports.iter().zip(STATES).map(|(port, (_, state))| (port.as_str(), *state));
    assert_eq!(found, states.collect::<Vec<_>>());
}

/// The columns of a connection have the names of conn.log where that is asked.
#[test]
fn connections_have_the_columns_of_zeek() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let capture = root().join("fixtures/web.pcap");
    let output = command.arg("conns").arg(&capture).args(["-o", "csv", "-q", "--names", "zeek"]);
    let output = output.output().expect("weir runs");
    let out = String::from_utf8(output.stdout).expect("text");
    let first = out.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "ts,community_id,id.orig_h,id.orig_p,id.resp_h,id.resp_p,ip_proto,service,duration,\
         conn_state,orig_pkts,orig_ip_bytes,resp_pkts,resp_ip_bytes"
    );
}
