//! Detectors beside floods of keys that no memory could hold: whoever sends one must not choose
//! what else is seen.

mod common;

use assert_cmd::Command;
use common::root;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use tempfile::TempDir;
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::LinkType;
use weir_packet::tcp::{ACK, PSH, SYN};

/// When the attacks of the fixtures begin, and a minute before.
const START: i64 = 1_795_240_140_000_000_000;
/// How long the floods last: beyond the end of all attacks.
const SPAN: i64 = 150_000_000_000;
const PACKETS: u32 = 40_000;

/// A capture of an attack, and the detector that finds it.
const ATTACKS: [(&str, &str); 11] = [
    ("ports_40", "port_scan"),
    ("dns_tunnel", "dns_tunnel"),
    ("dns_information", "dns_information"),
    ("ssh_30", "ssh_brute_force"),
    ("ddos_45", "ddos"),
    ("half_open_128", "syn_flood"),
    ("slowloris_50", "slowloris"),
    ("blacknurse_251", "blacknurse"),
    ("mirai_2", "mirai_scan"),
    ("spreader_40", "superspreader"),
    ("dns_nxdomain", "dns_nxdomain"),
];

/// The rules and keys of the alerts of all detectors over these captures, and what else is said.
fn alerts(captures: &[String], memory: &str) -> (BTreeSet<(String, String)>, String) {
    let mut command = Command::cargo_bin("weir").expect("the binary");
    command.current_dir(root()).args(["watch", "-o", "json", "--memory", memory]);
    command.args(captures.iter().flat_map(|capture| ["-r", capture]));
    let output = command.output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let rows = String::from_utf8(output.stdout).expect("text");
    let alert = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let cell = |name: &str| Some(row[name].as_str()?.to_owned());
        Some((cell("alert.rule")?, cell("alert.key")?))
    };
    (rows.lines().filter_map(alert).collect(), said)
}

/// Well-mixed bits of a number.
fn mixed(n: u32) -> u32 {
    let n = (n ^ n >> 16).wrapping_mul(0x7feb_352d);
    let n = (n ^ n >> 15).wrapping_mul(0x846c_a68b);
    n ^ n >> 16
}

/// A host that is none of those of the attacks.
fn host(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(101 << 24 | mixed(n) & 0x00ff_ffff)
}

fn port(n: u32) -> u16 {
    1024 + (mixed(n ^ 0x5bd1_e995) % 60_000) as u16
}

/// Packet `n` of a flood, with keys that no other packet has.
fn packet(flood: &str, n: u32) -> Vec<u8> {
    let target = Ipv4Addr::new(198, 51, 100, 153);
    let (a, b) = (host(n), host(n ^ 1 << 31));
    match flood {
        "SYNs of forged sources" => {
            Frame::ethernet().ipv4(a, target).tcp(port(n), 80).flags(SYN).bytes()
        }
        "questions for random names" => {
            let mut dns = (n as u16).to_be_bytes().to_vec();
            dns.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            for label in [format!("{:08x}", mixed(n)), format!("d{n:07x}"), "com".to_owned()] {
                dns.push(label.len() as u8);
                dns.extend(label.bytes());
            }
            dns.extend([0, 0, 1, 0, 1]);
            Frame::ethernet().ipv4(a, target).udp(port(n), 53).payload(&dns).bytes()
        }
        "datagrams between all ports" => {
            Frame::ethernet().ipv4(a, b).udp(port(n), port(!n)).payload(&[0; 20]).bytes()
        }
        "echo requests to all hosts" => Frame::ethernet().ipv4(a, b).icmp(8, 0).bytes(),
        _ => {
            let of = |net: u128, n: u32| Ipv6Addr::from(net << 96 | u128::from(mixed(n)) << 32 | 1);
            let (a, b) = (of(0x2001_0db8, n), of(0x2001_0db9, !n));
            Frame::ethernet()
                .ipv6(a, b)
                .tcp(port(n), 443)
                .flags(ACK | PSH)
                .payload(&[0; 20])
                .bytes()
        }
    }
}

/// A capture of so many packets of a flood, which last as long as the attacks.
fn write_flood(folder: &TempDir, flood: &str, packets: u32) -> String {
    let header = FileHeader::new(LinkType::ETHERNET);
    let mut file = header.to_bytes().to_vec();
    for n in 0..packets {
        let frame = packet(flood, n);
        let ts = START + SPAN / i64::from(packets) * i64::from(n);
        header.put_record(&mut file, ts, frame.len() as u32, &frame);
    }
    let path = folder.path().join("flood.pcap");
    std::fs::write(&path, file).expect("writes");
    path.to_str().expect("a plain path").to_owned()
}

/// With a tenth of a usual machine's memory: bounds that look at the worst case of all stages gave
/// up rows of a tenth of these.
#[test]
fn a_crowd_of_harmless_names_hides_no_tunnel() {
    let folder = tempfile::tempdir().expect("a folder");
    let tunnels = ["dns_tunnel", "dns_information"];
    let mut captures = tunnels.map(|name| format!("fixtures/detectors/{name}.pcap.gz")).to_vec();
    captures.push(write_flood(&folder, "questions for random names", 90_000));
    let (found, said) = alerts(&captures, "1200m");
    assert!(!said.contains("evicted"), "{said}");
    for rule in tunnels {
        assert!(found.iter().any(|(of, _)| of == rule), "{rule}: {found:?}");
    }
    assert!(found.iter().all(|(rule, _)| rule != "evictions"), "{found:?}");
}

#[test]
fn no_flood_hides_an_attack_from_a_detector() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut captures: Vec<String> =
        ATTACKS.iter().map(|(name, _)| format!("fixtures/detectors/{name}.pcap.gz")).collect();
    let (alone, said) = alerts(&captures, "50%");
    assert!(!said.contains("evicted"), "{said}");
    for (capture, rule) in ATTACKS {
        assert!(alone.iter().any(|(found, _)| found == rule), "{capture}: {alone:?}");
    }
    for flood in [
        "SYNs of forged sources",
        "questions for random names",
        "datagrams between all ports",
        "echo requests to all hosts",
        "segments of IPv6",
    ] {
        // Few detectors keep anything of these.
        let packets = if flood.starts_with("echo") { 3 * PACKETS } else { PACKETS };
        captures.push(write_flood(&folder, flood, packets));
        let (found, said) = alerts(&captures, "10m");
        captures.pop();
        assert!(said.contains("\nevicted "), "the flood finds room: {said}");
        // The alerts say that detectors gave up rows, and which ones.
        let blind: Vec<_> = found.iter().filter(|(rule, _)| rule == "evictions").collect();
        assert!(!blind.is_empty(), "{flood}: {found:?}");
        for (_, key) in blind {
            let detector = key.strip_prefix("program=").expect("a detector");
            let path = root().join(format!("queries/detectors/{detector}.weir"));
            assert!(path.exists(), "{flood}: {key}");
        }
        for (_, rule) in ATTACKS {
            let of = |all: &BTreeSet<(String, String)>| {
                all.iter().filter(|(name, _)| name == rule).cloned().collect::<BTreeSet<_>>()
            };
            let missing: Vec<_> = of(&alone).difference(&of(&found)).cloned().collect();
            assert!(missing.is_empty(), "{flood} hides {missing:?}\n{said}");
        }
    }
}
