//! The decisions of programs about frames, run in the kernel (`BPF_PROG_TEST_RUN`), against what
//! the engine keeps: a frame is filtered only if no pipeline keeps it, and wanted only if one does.

#![expect(clippy::print_stderr, reason = "tests say what they leave out, and what they counted")]

#[path = "oracle/act.rs"]
mod act;
#[path = "../../engine/tests/sim/choices.rs"]
mod choices;
mod common;
#[path = "oracle/library.rs"]
mod library;
#[path = "oracle/random.rs"]
mod random;
#[path = "oracle/scan.rs"]
mod scan;
#[path = "oracle/trim.rs"]
mod trim;
#[path = "oracle/tunnel.rs"]
mod tunnel;

use common::{Kernel, Oracle, Tally, check, crafted, fixtures, kernel, plan_of};
use weir_offload::{Hook, OffloadOptions, compile};

const HOOKS: [Hook; 3] = [Hook::Socket, Hook::Tcx, Hook::Xdp];

/// Conditions that the whole of is offloaded.
const CONDITIONS: &[&str] = &[
    "tcp",
    "not tcp",
    "tcp.syn",
    "tcp.syn and not tcp.ack",
    "not (tcp.syn == true)",
    "tcp.flags == 2 or tcp.flags & 18 == 18",
    "udp and dport == 53",
    "sport in {53, 80, 443, 1024..2048} or dport in {22}",
    "ip.src in {10.0.0.0/8, 192.0.2.0/24, 2001:db8::/32}",
    "ip.dst == 198.51.100.2",
    "ip.src != ip.dst and hosts.a == ip.src",
    "ip.src < ip.dst",
    "conn.a_ip == ip.src and conn.a_port == sport",
    "conn.forward",
    "conn.b_port > conn.a_port",
    "not conn.forward and ip",
    "len > 100",
    "ip.len + 14 == len",
    "ip.hdr_len > 20",
    "tcp.payload_len == 0",
    "tcp.payload_len > 0 and tcp.hdr_len > 20",
    "ip.ttl < 64",
    "ip.dscp > 0 or ip.ecn > 0",
    "ip.df",
    "ip.version == 6",
    "ip.proto in {6, 17}",
    "ipv6.flow_label > 0",
    "eth.type == 0x0806",
    "arp.op == 1 and arp.sender_ip in {10.0.0.0/8, 192.0.2.0/24}",
    "arp.sender_mac == eth.src",
    "eth.src < eth.dst or link.a == eth.src",
    "eth.type in {2048} or vlan.id > 0",
    "vlan.depth == 0",
    "vlan.inner == 20 or vlan.pcp == 3 or vlan.dei",
    "icmp.type == 8 or icmp6.type in {128, 135..136}",
    "exists(tcp.seq) and not exists(udp.len)",
    "coalesce(dport, 0) == 0",
    "if(tcp, tcp.dport, udp.dport) == 53",
    "min_of(sport, dport) < 1024",
    "max_of(sport, dport) - min_of(sport, dport) > 1000",
    "(sport ^ dport) & 1 == 1",
    "tcp.seq / 3 % 7 == 2",
    "len * 8 << 2 > 4000",
    "tcp.seq >> 16 > 0x7fff",
    "~len < -100",
    "-len < -100",
    "is_private(ip.src) or is_multicast(ip.dst)",
    "is_global(ip.src)",
    "is_ipv6(ip.src)",
    "prefix(ip.src, 24) == 192.0.2.0",
    "malformed or cut",
    "udp.checksum == 0",
    "linktype == 1 and eth",
    "int(tcp.syn) + int(tcp.ack) == 2",
    "tcp.window == 0 or tcp.urgent > 0 or tcp.checksum == 0",
];

#[test]
fn conditions_decide_as_the_engine_does() {
    if !common::may("conditions_decide_as_the_engine_does") {
        return;
    }
    let frames: Vec<Vec<u8>> = crafted().into_iter().chain(fixtures()).collect();
    let mut tally = Tally::default();
    for condition in CONDITIONS {
        let text = format!("packets | where {condition}");
        let oracle = Oracle::new(&text, &frames);
        for hook in HOOKS {
            let kernel = kernel(&text, hook).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(kernel.program.prefixes[0].stopped_by, None, "{text}");
            check(&kernel, &oracle, &frames, &text, &mut tally);
        }
    }
    eprintln!("{tally}");
    assert!(tally.filtered > 1000 && tally.wanted > 1000, "{tally}");
}

/// Samples of keys keep the packets that the engine keeps: their hash is part of the language.
#[test]
fn samples_decide_as_the_engine_does() {
    if !common::may("samples_decide_as_the_engine_does") {
        return;
    }
    let frames: Vec<Vec<u8>> = crafted().into_iter().chain(fixtures()).collect();
    let mut tally = Tally::default();
    for stages in [
        "sample 1 in 2 by len",
        "sample 30% by ip.src, ip.dst",
        "sample 1 in 3 by hosts, sport",
        "sample 50% by conn",
        "sample 5 in 9 by tcp.syn, eth.src, vlan.id, -len",
        "sample 1 in 1 by ip.proto",
        "where ip | extend net = prefix(ip.src, 24) | sample 40% by net | sample 60% by sport",
        "where udp or not tcp.ack | sample 2 in 5 by if(tcp, tcp.seq, len)",
    ] {
        let text = format!("packets | {stages}");
        let oracle = Oracle::new(&text, &frames);
        for hook in HOOKS {
            let kernel = kernel(&text, hook).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(kernel.program.prefixes[0].stopped_by, None, "{text}");
            check(&kernel, &oracle, &frames, &text, &mut tally);
        }
    }
    eprintln!("{tally}");
    assert!(tally.filtered > 1000 && tally.wanted > 1000, "{tally}");
}

#[test]
fn queries_of_the_library_decide_as_the_engine_does() {
    if !common::may("queries_of_the_library_decide_as_the_engine_does") {
        return;
    }
    let frames: Vec<Vec<u8>> = crafted().into_iter().chain(fixtures()).collect();
    let (mut tally, mut offloaded, mut counting) = (Tally::default(), 0, 0);
    for (name, text) in common::queries() {
        let oracle = Oracle::new(&text, &frames);
        for (hook, make) in HOOKS.into_iter().flat_map(|hook| {
            [(hook, kernel as fn(&str, Hook) -> _), (hook, common::counting_kernel)]
        }) {
            match make(&text, hook) {
                Ok(kernel) => {
                    offloaded += 1;
                    counting += usize::from(!kernel.program.tables.is_empty());
                    check(&kernel, &oracle, &frames, &name, &mut tally);
                }
                Err(why) if hook == Hook::Xdp => eprintln!("{name}: {why}"),
                Err(_) => {}
            }
        }
    }
    eprintln!("{offloaded} programs, of which {counting} make groups; {tally}");
    assert!(offloaded > 3 * 10 && counting > 3 && tally.filtered > 1000 && tally.counted > 1000);
}

#[test]
fn what_is_not_offloaded_says_why() {
    let why = |text: &str| {
        let options = OffloadOptions::new(Hook::Xdp, 2);
        match compile(&plan_of(text), &options) {
            Ok(program) => program.prefixes[0].stopped_by.clone().unwrap_or_default(),
            Err(why) => why.to_string(),
        }
    };
    for (text, expected) in [
        ("packets | project len", "pipeline 1 wants every frame: it has no condition"),
        ("packets | where dns.qname == \"a\"", "`dns.qname` is not at a fixed place"),
        ("packets | where tcp and number > 3", "which counts frames that no pipeline wants"),
        ("packets | where tcp.seq * tcp.seq * len > 1", "could overflow"),
        ("packets | where 10 / (len - 60) > 1", "could divide by zero"),
        ("packets | where udp and 1 << sport > 4", "could shift by less than 0 or more than 63"),
        ("packets | where len / 2.0 > 3.0", "the kernel level has no"),
        ("packets | where ts > @2020-01-01T00:00:00Z", "the kernel level has no `ts`"),
    ] {
        let why = why(text);
        assert!(why.contains(expected), "{text}: {why}");
    }
}

#[test]
fn snap_lengths_and_links_that_hide_headers_are_not_offloaded() {
    let plan = plan_of("packets | where tcp");
    let options = OffloadOptions::new(Hook::Socket, 1);
    let short = OffloadOptions { snaplen: 255, ..options };
    assert!(compile(&plan, &short).is_err());
    let enough = OffloadOptions { snaplen: 256, ..options };
    assert!(compile(&plan, &enough).is_ok());
    let cooked = OffloadOptions { link: weir_packet::source::LinkType::LINUX_SLL, ..options };
    assert!(compile(&plan, &cooked).is_err());
}

#[test]
fn programs_load_fast() {
    if !common::may("programs_load_fast") {
        return;
    }
    for condition in CONDITIONS {
        let text = format!("packets | where {condition}");
        let kernel: Kernel = kernel(&text, Hook::Xdp).unwrap_or_else(|e| panic!("{text}: {e}"));
        let slots = kernel.program.code.slots().len();
        let frame = &crafted()[0];
        let run = kernel.loaded.test_run(frame, 100_000).expect("a frame");
        eprintln!("{slots:4} instructions, {:3} ns: {condition}", run.duration_ns);
    }
}
