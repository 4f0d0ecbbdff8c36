//! Random conditions, and the captures that lie elsewhere.

use super::HOOKS;
use super::choices::Choices;
use super::common::{self, Oracle, Tally, capture, check, crafted, fixtures, kernel};
use proptest::test_runner::{Config, TestRunner};
use std::path::{Path, PathBuf};
use weir_offload::Hook;

/// Numbers at the edges of every width, and some that packets have.
const INTS: [&str; 26] = [
    "0",
    "1",
    "2",
    "6",
    "17",
    "53",
    "64",
    "127",
    "128",
    "254",
    "255",
    "256",
    "443",
    "1500",
    "32767",
    "32768",
    "65534",
    "65535",
    "65536",
    "0x0800",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-1",
];

const INT_FIELDS: [&str; 26] = [
    "len",
    "sport",
    "dport",
    "ip.proto",
    "ip.len",
    "ip.ttl",
    "ip.id",
    "ip.hdr_len",
    "ip.dscp",
    "ip.ecn",
    "tcp.flags",
    "tcp.window",
    "tcp.seq",
    "tcp.ack_no",
    "tcp.hdr_len",
    "tcp.payload_len",
    "tcp.checksum",
    "udp.len",
    "udp.checksum",
    "vlan.id",
    "vlan.depth",
    "icmp.type",
    "icmp6.type",
    "eth.type",
    "ipv6.flow_label",
    "arp.op",
];

const BOOL_FIELDS: [&str; 13] = [
    "tcp",
    "udp",
    "ip",
    "tcp.syn",
    "tcp.ack",
    "tcp.fin",
    "tcp.rst",
    "ip.df",
    "vlan.dei",
    "icmp",
    "arp",
    "conn.forward",
    "malformed or cut",
];

const IPS: [&str; 7] =
    ["0.0.0.0", "255.255.255.255", "10.0.0.1", "192.0.2.1", "198.51.100.2", "::", "2001:db8:1::1"];

const NETS: [&str; 7] =
    ["0.0.0.0/0", "10.0.0.0/8", "192.0.2.0/24", "192.0.2.1/32", "::/0", "2001:db8::/32", "::1/128"];

const IP_FIELDS: [&str; 6] =
    ["ip.src", "ip.dst", "hosts.a", "hosts.b", "arp.sender_ip", "arp.target_ip"];

/// A condition of what the kernel level may have, no deeper than `depth`.
pub(super) fn condition(c: &mut Choices, depth: usize) -> String {
    if depth == 0 {
        return format!("({})", c.pick(&BOOL_FIELDS));
    }
    let d = depth - 1;
    match c.below(10) {
        0 => condition(c, 0),
        1 => format!("(not {})", condition(c, d)),
        2 => format!("({} and {})", condition(c, d), condition(c, d)),
        3 => format!("({} or {})", condition(c, d), condition(c, d)),
        4 => {
            let members: Vec<String> = (0..1 + c.below(4)).map(|_| int_member(c)).collect();
            format!("({} in {{{}}})", int(c, d), members.join(", "))
        }
        5 => {
            let members: Vec<&str> = (0..1 + c.below(4)).map(|_| *c.pick(&NETS)).collect();
            format!("({} in {{{}}})", ip(c, d), members.join(", "))
        }
        6 => format!("({} {} {})", ip(c, d), comparison(c), ip(c, d)),
        7 => format!("exists({})", c.pick(&INT_FIELDS)),
        _ => format!("({} {} {})", int(c, d), comparison(c), int(c, d)),
    }
}

fn comparison(c: &mut Choices) -> &'static str {
    const ALL: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
    ALL[c.below(ALL.len())]
}

fn int_member(c: &mut Choices) -> String {
    match c.below(3) {
        0 => {
            let (a, b) = (c.below(25), c.below(25));
            let (low, high) = (INTS[a.min(b)], INTS[a.max(b)]);
            format!("{low}..{high}")
        }
        _ => INTS[c.below(25)].to_owned(),
    }
}

fn int(c: &mut Choices, depth: usize) -> String {
    if depth == 0 || c.once_in(3) {
        let constant = c.once_in(4);
        return (*if constant { c.pick(&INTS) } else { c.pick(&INT_FIELDS) }).to_owned();
    }
    let d = depth - 1;
    match c.below(8) {
        0 => {
            let op = c.pick(&["+", "-", "*", "&", "|", "^"]);
            format!("({} {op} {})", int(c, d), int(c, d))
        }
        1 => format!("({} {} {})", int(c, d), c.pick(&["/", "%"]), c.pick(&INTS[1..])),
        2 => format!("({} {} {})", int(c, d), c.pick(&["<<", ">>"]), c.below(64)),
        3 => format!("({}{})", c.pick(&["~", "-"]), int(c, d)),
        4 => format!("coalesce({}, {})", int(c, d), int(c, d)),
        5 => format!("if({}, {}, {})", condition(c, d), int(c, d), int(c, d)),
        6 => format!("{}({}, {})", c.pick(&["min_of", "max_of"]), int(c, d), int(c, d)),
        _ => format!("int{}", condition(c, 0)),
    }
}

fn ip(c: &mut Choices, depth: usize) -> String {
    match c.below(if depth == 0 { 3 } else { 5 }) {
        0 => (*c.pick(&IPS)).to_owned(),
        1 | 2 => (*c.pick(&IP_FIELDS)).to_owned(),
        3 => format!("prefix({}, {})", ip(c, depth - 1), c.pick(&[0, 1, 24, 31, 32])),
        _ => format!("coalesce({}, {})", ip(c, depth - 1), ip(c, depth - 1)),
    }
}

/// Which conditions were tried.
#[derive(Default, Debug)]
struct Tried {
    /// Programs that the language refuses, such as one of a constant only.
    refused: u32,
    /// Programs that the kernel can't run, such as one that could overflow.
    left: u32,
    compiled: u32,
}

#[test]
fn random_conditions_decide_as_the_engine_does() {
    if !common::may("random_conditions_decide_as_the_engine_does") {
        return;
    }
    let config = Config { failure_persistence: None, ..Config::default() };
    let cases = config.cases;
    // Every seventh, which is another part of each frame's mutations.
    let all: Vec<Vec<u8>> = crafted().into_iter().step_by(7).chain(fixtures()).collect();
    let (mut tried, mut tally) = (Tried::default(), Tally::default());
    let state = std::cell::RefCell::new((&mut tried, &mut tally));
    let tape = proptest::collection::vec(proptest::num::u16::ANY, 40);
    let result = TestRunner::new(config).run(&tape, |tape| {
        let mut c = Choices::new(tape);
        let hook = *c.pick(&HOOKS);
        let text = format!("packets | where {}", condition(&mut c, 3));
        let (tried, tally) = &mut *state.borrow_mut();
        match common::try_plan(&text).map(|_| kernel(&text, hook)) {
            None => tried.refused += 1,
            Some(Err(_)) => tried.left += 1,
            Some(Ok(kernel)) => {
                tried.compiled += 1;
                check(&kernel, &Oracle::new(&text, &all), &all, &text, tally);
            }
        }
        Ok(())
    });
    eprintln!("{tried:?}; {tally}");
    if let Err(e) = result {
        panic!("{e}");
    }
    assert!(tried.compiled * 4 > cases && tally.filtered > 1000 && tally.wanted > 1000);
}

/// All captures below a folder.
pub(super) fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            captures(&path, found);
        } else if path.extension().is_some_and(|e| e == "pcap" || e == "pcapng" || e == "cap") {
            found.push(path);
        }
    }
}

/// Real frames of many networks: few of them may be unclear, or offloading saves nothing.
#[test]
fn frames_of_captures_decide_as_the_engine_does() {
    const NAME: &str = "frames_of_captures_decide_as_the_engine_does";
    /// Frames of one capture, taken evenly.
    const MOST: usize = 600;
    let Some(folder) = std::env::var_os("WEIR_CAPTURES") else {
        eprintln!("SKIPPED {NAME}: WEIR_CAPTURES names no folder of further captures");
        return;
    };
    if !common::may(NAME) {
        return;
    }
    let mut found = Vec::new();
    captures(Path::new(&folder), &mut found);
    found.sort();
    let mut frames = Vec::new();
    for path in &found {
        let all = capture(&path.to_string_lossy());
        let step = all.len().div_ceil(MOST).max(1);
        frames.extend(all.into_iter().step_by(step));
    }
    let text = "packets | where tcp.syn and not tcp.ack or udp and dport in {53, 443} or \
                icmp.type == 8 or arp.op == 1";
    let oracle = Oracle::new(text, &frames);
    for hook in HOOKS {
        let mut tally = Tally::default();
        let kernel = kernel(text, hook).unwrap_or_else(|e| panic!("{hook}: {e}"));
        check(&kernel, &oracle, &frames, text, &mut tally);
        let all = tally.filtered + tally.wanted + tally.unclear;
        let share = tally.unclear as f64 / all as f64;
        eprintln!("{} captures at {hook}: {tally}: {:.1} % unclear", found.len(), 100.0 * share);
        // Without the Ethernet header that a socket filter is tried without.
        assert!(hook == Hook::Socket || all as usize * 10 > frames.len() * 9, "few frames ran");
        assert!(tally.filtered > 0 && tally.wanted > 0);
    }
}
