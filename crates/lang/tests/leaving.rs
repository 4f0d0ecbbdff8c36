//! Packets leave as they were captured. A query that replaces one of their fields and lets them
//! leave all the same is refused, whichever field it is and however they leave.

use weir_lang::{Code, Options, Query, compile};
use weir_packet::fields::FIELDS;

/// Ways of packets out.
const LEAVE: &[&str] = &[
    "pass",
    "forward \"a.pcap\"",
    "mirror \"a.pcap\"",
    "broadcast to (\"a.pcap\", \"b.pcap\")",
    "steer by number to (\"a.pcap\", \"b.pcap\")",
    "trim 60 | pass",
    "tag 5 | forward \"a.pcap\"",
    "where number > 5 | limit 7 | pass",
    "branch when number > 1 -> pass else -> drop",
    "branch when number > 1 -> drop when number > 0 -> next | pass",
    "branch when number > 1 -> mirror \"a.pcap\" | next else -> drop",
];

/// Stages that packets may go through, whatever columns say.
const STAY: &[&str] = &["drop", "branch when number > 1 -> next else -> drop", "limit 5"];

fn kinds(text: &str) -> Vec<Code> {
    match compile(&Query { name: "q", text }, &Options::default()) {
        Ok(compiled) => compiled.warnings.iter().map(|d| d.code).collect(),
        Err(all) => all.iter().map(|d| d.code).collect(),
    }
}

/// Stages that give a column of this name to packets.
fn replacing(name: &str) -> [String; 2] {
    [
        format!("extend {name} = 1"),
        format!("scan other = 0, {name} = 0 by number => (other, {name} + 1)"),
    ]
}

#[test]
fn an_anonymized_address_left_with_the_packet_unchanged() {
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let text = format!("packets | extend ip.src = anonymize(ip.src, \"{key}\") | pass");
    assert_eq!(kinds(&text), [Code::ReplacedField]);
    let under_another = format!("packets | extend client = anonymize(ip.src, \"{key}\") | pass");
    assert_eq!(kinds(&under_another), []);
}

#[test]
fn every_replaced_field_is_refused_on_every_way_out() {
    for field in FIELDS.iter().map(|field| field.name).filter(|name| *name != "number") {
        for replace in replacing(field) {
            for leave in LEAVE {
                let direct = format!("packets | {replace} | {leave}");
                let behind_let = format!("let p = packets | {replace}\np | {leave}");
                for text in [direct, behind_let] {
                    assert_eq!(kinds(&text), [Code::ReplacedField], "{text}");
                }
            }
        }
    }
}

#[test]
fn columns_of_other_names_and_packets_that_stay_are_allowed() {
    for replace in replacing("mine") {
        for leave in LEAVE.iter().chain(STAY) {
            let text = format!("packets | {replace} | {leave}");
            assert_eq!(kinds(&text), [], "{text}");
        }
    }
    for replace in replacing("ip.src") {
        for stay in STAY {
            let text = format!("packets | {replace} | {stay}");
            assert_eq!(kinds(&text), [], "{text}");
        }
    }
    // A packet that left before does not bear the column, and its stage says so by its place.
    assert_eq!(kinds("packets | mirror \"a.pcap\" | extend ip.src = 1 | limit 5"), []);
}

#[test]
fn several_replaced_fields_are_each_told_once() {
    let text = "let p = packets | extend ip.src = 1, sport = 2\np | mirror \"a.pcap\" | pass";
    assert_eq!(kinds(text), [Code::ReplacedField; 2]);
}

/// Packets leave with other addresses, and stages after it see them.
#[test]
fn what_is_anonymized_is_so_wherever_it_is_read() {
    let key = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let stage = format!("anonymize ip.src, ip.dst with \"{key}\"");
    assert_eq!(kinds(&format!("packets | {stage} | pass")), []);
    assert_eq!(kinds(&format!("packets | {stage} | summarize count() by ip.src")), []);
    assert_eq!(kinds(&format!("packets | branch when tcp -> {stage} | pass else -> drop")), []);
    for gone in ["hosts", "conn", "payload", "ip[12:4]", "frame[0]", "tcp.checksum"] {
        let text = format!("packets | {stage} | where exists({gone})");
        assert!(kinds(&text).contains(&Code::FieldGone), "{gone}");
    }
    let captured = format!("packets | {stage} | project ts, ip.src | capture 1s by ip.src");
    assert_eq!(kinds(&captured), [Code::Unsupported]);
    let macs = format!("packets | anonymize eth.src with \"{key}\"");
    assert_eq!(kinds(&format!("{macs} | summarize count() by ip.src")), []);
    assert_eq!(kinds(&format!("{macs} | summarize count() by eth.src")), [Code::FieldGone]);

    let shown = |text: &str| {
        let compiled = compile(&Query { name: "q", text }, &Options::default()).expect("compiles");
        weir_plan::print::explain(&compiled.program, 1)
    };
    let plan = shown(&format!("packets | {stage} | where arp | mirror \"a.pcap\""));
    assert!(plan.contains("anonymize ip.src, ip.dst with … | mirror"), "{plan}");
    assert!(plan.contains("ip.src = anonymize(ip.src, …)"), "{plan}");
    let plan = shown(&format!("packets | {stage} | project arp.sender_ip, tunnel.dst, dport"));
    let columns = "arp.sender_ip = anonymize(arp.sender_ip, …), \
                   tunnel.dst = anonymize(tunnel.dst, …), dport";
    assert!(plan.contains(columns), "{plan}");
    assert!(!plan.contains("0011"), "a key is not shown");
}
