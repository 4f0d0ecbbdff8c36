//! Flow records beside those of other meters: `weir ipfix` and nfpcapd (nfdump), and softflowd,
//! over the fixtures and all shared captures, flow by flow. There is no package of YAF.

mod common;
#[path = "common/receiver.rs"]
mod receiver;
#[path = "common/signal.rs"]
mod signal;

use common::{root, shared, skip};
use receiver::Receiver;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Source, its port, destination, its port, protocol.
type Flow = (String, u64, String, u64, u64);

/// The records of a flow.
#[derive(Clone, PartialEq, Debug, Default)]
struct Records {
    packets: u64,
    bytes: u64,
    /// Start and end of each, in milliseconds since 1970, in order.
    times: Vec<(i64, i64)>,
}

impl Records {
    fn add(&mut self, packets: u64, bytes: u64, times: (i64, i64)) {
        (self.packets, self.bytes) = (self.packets + packets, self.bytes + bytes);
        self.times.push(times);
        self.times.sort_unstable();
    }

    /// When the first starts, and the last to end does.
    fn span(&self) -> (i64, i64) {
        let starts = self.times.iter().map(|times| times.0).min();
        let ends = self.times.iter().map(|times| times.1).max();
        (starts.expect("a flow has a record"), ends.expect("a flow has a record"))
    }
}

/// Facts from Weir about the packets of a flow, by which differences are explained.
#[derive(Clone, Copy, Default)]
struct Facts {
    /// Bytes on the wire after the link header, with padding.
    wire: u64,
    cut: bool,
    malformed: bool,
    fragment: bool,
    /// An IPv6 extension header stands before the transport.
    extended: bool,
    /// A VLAN tag, and two.
    tagged: bool,
    tagged_twice: bool,
    /// Whether a SYN comes after the first packet.
    syn_again: bool,
    /// The longest pause before a packet and how long it lasted, in milliseconds.
    pause_ms: i64,
    length_ms: i64,
    /// Whether times stepped back, and whether a packet has none.
    disorder: bool,
    untimed: bool,
}

/// Of a capture.
#[derive(Clone, Copy, Default)]
struct CaptureFacts {
    tunnels: bool,
    snapped: bool,
    malformed: bool,
    /// An IPv6 extension header stands before a transport.
    extended: bool,
    /// It has interfaces of several link types.
    mixed: bool,
    /// The other meter read nothing of it, or nothing of IPv6.
    unread: bool,
    unread_six: bool,
}

/// A difference that is meant: the row of `docs/flows.md`, and when it may be.
struct Argued {
    what: &'static str,
    why: &'static str,
    may: fn(&Difference<'_>) -> bool,
}

/// A flow that differs.
struct Difference<'a> {
    flow: &'a Flow,
    facts: Facts,
    capture: CaptureFacts,
    ours: Option<&'a Records>,
    theirs: Option<&'a Records>,
    /// When Weir's records of both directions of the flow start and end.
    both: (i64, i64),
}

impl Difference<'_> {
    /// Whether packets and bytes are the same.
    fn same_sums(&self) -> bool {
        let sums = |records: Option<&Records>| records.map(|r| (r.packets, r.bytes));
        sums(self.ours) == sums(self.theirs)
    }

    /// Whether a time is none.
    fn is_unreadable(&self) -> bool {
        let is_none = |times: &(i64, i64)| times.0 == UNREADABLE || times.1 == UNREADABLE;
        [self.ours, self.theirs].into_iter().flatten().any(|r| r.times.iter().any(is_none))
    }

    /// Whether packets may be seen otherwise that are cut, or of which a length lies.
    fn is_broken(&self) -> bool {
        let broken = self.facts.cut || self.facts.malformed || self.capture.snapped;
        broken || self.capture.malformed && self.ours.is_none()
    }
}

/// The timeouts of both meters, in milliseconds: without a packet, and of activity.
const IDLE_MS: i64 = 15_000;
const ACTIVE_MS: i64 = 60_000;

/// nfpcapd looks for flows that are over every few seconds only.
const SLACK_MS: i64 = 10_000;

/// Of nfpcapd.
const ARGUED: &[Argued] = &[
    Argued {
        what: "no records of a capture",
        why: "nfpcapd does not read the link type, nor interfaces of several link types",
        may: |d| d.capture.unread || d.capture.mixed,
    },
    Argued {
        what: "flows in tunnels",
        why: "Weir's records are of the tunnel, with `--headers inner` of the innermost packet; \
              nfpcapd has its own mixture",
        may: |d| d.capture.tunnels,
    },
    Argued {
        what: "packets that are cut or malformed",
        why: "Weir counts them by what could be read, with the length that the IP header says; \
              nfpcapd leaves them out",
        may: |d| d.is_broken(),
    },
    Argued {
        what: "fragments",
        why: "Weir counts each as a packet, later ones without ports unless `--fragments` finds \
              them; nfpcapd puts datagrams together",
        may: |d| d.facts.fragment,
    },
    Argued {
        what: "packets with extension headers or two VLAN tags",
        why: "Weir goes on to the transport header; nfpcapd does not",
        may: |d| d.facts.extended || d.facts.tagged_twice,
    },
    Argued {
        what: "packets without a time, and times that no clock shows",
        why: "Weir has no record of packets without a time, which nfpcapd counts at 1970; of \
              others nfdump prints what is no time",
        may: |d| d.facts.untimed || d.same_sums() && d.is_unreadable(),
    },
    Argued {
        what: "records of a flow that pauses or lasts",
        why: "Weir ends a record exactly after `idle_timeout` or `active_timeout`; nfpcapd looks \
              every few seconds",
        may: |d| {
            let near = d.facts.pause_ms + SLACK_MS >= IDLE_MS;
            d.same_sums() && (near || d.facts.length_ms + SLACK_MS >= ACTIVE_MS)
        },
    },
    Argued {
        what: "records of DNS",
        why: "nfpcapd ends a record with each answer",
        may: |d| d.same_sums() && d.flow.4 == 17 && (d.flow.1 == 53 || d.flow.3 == 53),
    },
    Argued {
        what: "times of packets out of order",
        why: "nfpcapd has the time of the packet that came last",
        may: |d| d.same_sums() && d.facts.disorder,
    },
    Argued {
        what: "a connection after one that was closed",
        why: "Weir begins a record with a SYN after a FIN or RST; nfpcapd adds it to the one \
              before",
        may: |d| d.same_sums() && d.facts.syn_again,
    },
];

/// Of softflowd.
const ARGUED_OF_SOFTFLOWD: &[Argued] = &[
    Argued {
        what: "no records of a capture, or of its IPv6 packets",
        why: "softflowd does not read the link type, nor IPv6 over a loopback interface of BSD",
        may: |d| {
            let is_six = d.flow.0.contains(':');
            d.theirs.is_none() && (d.capture.unread || is_six && d.capture.unread_six)
        },
    },
    Argued {
        what: "packets with VLAN tags, with softflowd",
        why: "softflowd leaves them out unless it is told `-T vlan`",
        may: |d| d.facts.tagged,
    },
    Argued {
        what: "fragments, with softflowd",
        why: "Weir gives the first one its ports; softflowd gives none to any, and leaves out what \
              is too short",
        may: |d| d.facts.fragment,
    },
    Argued {
        what: "packets that are cut or malformed, with softflowd",
        why: "Weir counts them by what could be read, with the length that the IP header says; \
              softflowd takes what stands there for ports",
        may: |d| d.is_broken(),
    },
    Argued {
        what: "times of packets out of order, with softflowd",
        why: "softflowd has the time of the packet that came last",
        may: |d| d.same_sums() && d.facts.disorder,
    },
    Argued {
        what: "packets without a time, and times from 2038 on, with softflowd",
        why: "Weir has no record of packets without a time; softflowd exports no times from \
              2038 on",
        may: |d| d.facts.untimed || d.same_sums() && d.is_unreadable(),
    },
    Argued {
        what: "IPv6 extension headers, with softflowd",
        why: "Weir goes on to the transport header behind all of them",
        may: |d| d.capture.extended && d.flow.0.contains(':'),
    },
];

fn run(program: &str, args: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).current_dir(root()).env("TZ", "UTC").stdin(Stdio::null());
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn weir(args: &[&str]) -> Vec<Value> {
    let args = [args, &["-o", "json", "-q", "--time", "epoch-ns"]].concat();
    let text = run(env!("CARGO_BIN_EXE_weir"), &args).expect("weir runs");
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Milliseconds of a time in nanoseconds, which JSON may hold as a text; packets may have none.
fn ms(value: &Value) -> i64 {
    if value.is_null() {
        return UNREADABLE;
    }
    let ns = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    ns.unwrap_or_else(|| panic!("{value} is no time")).div_euclid(1_000_000)
}

fn flow(row: &Value, names: [&str; 5]) -> Flow {
    let [a, sport, b, dport, proto] = names.map(|name| &row[name]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(a), number(sport), text(b), number(dport), number(proto))
}

const OWN: [&str; 5] = ["ip.src", "sport", "ip.dst", "dport", "ip.proto"];

fn of_weir(capture: &str) -> BTreeMap<Flow, Records> {
    let mut all: BTreeMap<Flow, Records> = BTreeMap::new();
    for row in weir(&["ipfix", "-r", capture]) {
        let times = (ms(&row["ts"]), ms(&row["end"]));
        assert!(times.0 <= times.1, "{capture}: {row} ends before it starts");
        all.entry(flow(&row, OWN)).or_default().add(
            number(&row["packets"]),
            number(&row["bytes"]),
            times,
        );
    }
    all
}

/// The value for a time that can't be read.
const UNREADABLE: i64 = i64::MIN;

/// `None` where nfdump is not installed.
fn of_nfpcapd(capture: &str) -> Option<BTreeMap<Flow, Records>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a plain path");
    run("nfpcapd", &["-r", capture, "-l", path, "-t", "86400", "-e", "60,15"])?;
    let text = run("nfdump", &["-R", path, "-o", "json", "-q"])?;
    let mut all: BTreeMap<Flow, Records> = BTreeMap::new();
    // Objects with commas between them, in brackets if there are any.
    for object in text.split("\n}").filter_map(|part| part.find('{').map(|at| &part[at..])) {
        let row: Value = serde_json::from_str(&format!("{object}\n}}")).expect("a record");
        let [a, b] = match row["src4_addr"].is_string() {
            true => ["src4_addr", "dst4_addr"],
            false => ["src6_addr", "dst6_addr"],
        };
        let time = |name: &str| {
            let text = format!("{}Z", row[name].as_str().expect("a time"));
            let parsed = weir_packet::time::parse_rfc3339(&text);
            parsed.map_or(UNREADABLE, |ns| ns.div_euclid(1_000_000))
        };
        let key = flow(&row, [a, "src_port", b, "dst_port", "proto"]);
        all.entry(key).or_default().add(
            number(&row["in_packets"]),
            number(&row["in_bytes"]),
            (time("first"), time("last")),
        );
    }
    Some(all)
}

/// `None` where softflowd is not installed.
fn of_softflowd(capture: &str) -> Option<BTreeMap<Flow, Records>> {
    let query =
        "flows | project start, end, ip.src, sport, ip.dst, dport, ip.proto, packets, bytes";
    let receiver = Receiver::start(query, "ipfix", &["--time", "epoch-ns"]);
    let folder = tempfile::tempdir().expect("a folder");
    let pid = folder.path().join("pid");
    let (to, pid) = (receiver.to(), pid.to_str().expect("a plain path"));
    let idle = ["tcp=15", "udp=15", "icmp=15", "general=15", "tcp.fin=15", "tcp.rst=15"];
    let times = idle.into_iter().chain(["maxlife=60"]).flat_map(|time| ["-t", time]);
    // With a socket for control it may wait there for somebody. Times are of the packets, in
    // milliseconds.
    let args = ["-d", "-6", "-a", "-A", "milli", "-v", "10", "-n", &to, "-p", pid, "-c", "none"];
    let args: Vec<&str> = args.into_iter().chain(times).chain(["-r", capture]).collect();
    run("softflowd", &args)?;
    let mut all: BTreeMap<Flow, Records> = BTreeMap::new();
    for line in receiver.end().0.iter().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [start, end, a, sport, b, dport, proto, packets, bytes] = cells[..] else {
            panic!("{line} is no record")
        };
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        let ms = |text: &str| text.parse::<i64>().map_or(UNREADABLE, |ns| ns.div_euclid(1_000_000));
        let key = (a.to_owned(), number(sport), b.to_owned(), number(dport), number(proto));
        let times = (ms(start), ms(end));
        all.entry(key).or_default().add(number(packets), number(bytes), times);
    }
    Some(all)
}

/// Softflowd counts the padding of frames. Both of its records of a connection have the times of
/// the connection, which it rounds, and a file is over before its clock ends a record.
fn is_as_of_softflowd(d: &Difference<'_>) -> bool {
    let (Some(ours), Some(theirs)) = (d.ours, d.theirs) else { return false };
    let near = |a: i64, b: i64| a.abs_diff(b) <= 1;
    let (start, end) = theirs.span();
    let same_bytes = theirs.bytes == ours.bytes || theirs.bytes == d.facts.wire;
    let own = ours.span();
    let is_start = near(start, d.both.0) || near(start, own.0);
    let same_times = is_start && (near(end, d.both.1) || near(end, own.1));
    theirs.packets == ours.packets && same_bytes && same_times
}

fn facts(capture: &str) -> BTreeMap<Flow, Facts> {
    let query = "packets | where ip | scan last = ts, pause = 0s by flow idle 1000d => \
                     (ts, if(ts - last > pause, ts - last, pause)) \
                 | scan latest = ts, back = false by flow idle 1000d => \
                     (max_of(ts, latest), back or ts < latest) \
                 | extend wire = if(linktype == 1, len - 14 - 4 * vlan.depth, \
                     if(linktype == 113, len - 16, ip.len)) \
                 | summarize wire = sum(wire), cut = any(cut), malformed = any(malformed), \
                     fragment = any(ip.frag), \
                     extended = any(ipv6 and ip[6] != ip.proto), \
                     tagged = any(vlan.depth > 0), twice = any(vlan.depth > 1), \
                     syn = max(if(coalesce(tcp.syn, false), ts, @1970-01-01T00:00:00Z)), \
                     pause = max(pause), from = min(ts), \
                     to = max(ts), back = any(back), untimed = any(not exists(ts)) by flow";
    let is = |value: &Value| value.as_bool().unwrap_or(false);
    let of = |row: Value| {
        let facts = Facts {
            wire: number(&row["wire"]),
            cut: is(&row["cut"]),
            malformed: is(&row["malformed"]),
            fragment: is(&row["fragment"]),
            extended: is(&row["extended"]),
            tagged: is(&row["tagged"]),
            tagged_twice: is(&row["twice"]),
            syn_again: ms(&row["syn"]) > ms(&row["from"]),
            pause_ms: (row["pause"].as_f64().unwrap_or(0.0) * 1e3) as i64,
            length_ms: ms(&row["to"]).saturating_sub(ms(&row["from"])),
            disorder: is(&row["back"]),
            untimed: is(&row["untimed"]),
        };
        (flow(&row, OWN), facts)
    };
    weir(&["run", "-e", query, "-r", capture]).into_iter().map(of).collect()
}

fn capture_facts(capture: &str, theirs: &BTreeMap<Flow, Records>) -> CaptureFacts {
    let query = "packets | summarize tunnels = any(tunnel), snapped = any(len > caplen), \
                 malformed = any(malformed), links = distinct(linktype), \
                 extended = any(ipv6 and ip[6] != ip.proto)";
    let rows = weir(&["run", "-e", query, "-r", capture, "--headers", "inner"]);
    let is = |name: &str| rows.first().is_some_and(|row| row[name].as_bool() == Some(true));
    let mixed = rows.first().is_some_and(|row| number(&row["links"]) > 1);
    let (tunnels, snapped, malformed) = (is("tunnels"), is("snapped"), is("malformed"));
    let (unread, unread_six) = (theirs.is_empty(), !theirs.keys().any(|flow| flow.0.contains(':')));
    let extended = is("extended");
    CaptureFacts { tunnels, snapped, malformed, extended, mixed, unread, unread_six }
}

/// Another meter.
struct Meter {
    name: &'static str,
    package: &'static str,
    /// Its records; `None` where it is not installed.
    records: fn(&str) -> Option<BTreeMap<Flow, Records>>,
    /// Whether its records of a flow are as Weir's are.
    is_same: fn(&Difference<'_>) -> bool,
    argued: &'static [Argued],
}

const NFPCAPD: Meter = Meter {
    name: "nfpcapd",
    package: "nfdump",
    records: of_nfpcapd,
    is_same: |d| d.ours == d.theirs,
    argued: ARGUED,
};

const SOFTFLOWD: Meter = Meter {
    name: "softflowd",
    package: "softflowd",
    records: of_softflowd,
    is_same: is_as_of_softflowd,
    argued: ARGUED_OF_SOFTFLOWD,
};

/// Compares the flows of TCP and UDP; says which differences there were, and how many flows were
/// the same. `None` where the meter is not installed.
fn compare(meter: &Meter, capture: &Path) -> Option<(u64, BTreeSet<&'static str>)> {
    let capture = capture.to_str().expect("a plain path");
    let is_compared = |(flow, _): &(Flow, Records)| matches!(flow.4, 6 | 17);
    let theirs: BTreeMap<_, _> =
        (meter.records)(capture)?.into_iter().filter(is_compared).collect();
    let ours: BTreeMap<_, _> = of_weir(capture).into_iter().filter(is_compared).collect();
    let (facts, whole) = (facts(capture), capture_facts(capture, &theirs));
    let (mut same, mut found) = (0, BTreeSet::new());
    let flows: BTreeSet<&Flow> = ours.keys().chain(theirs.keys()).collect();
    for flow in flows {
        let (a, sport, b, dport, proto) = flow.clone();
        let directions = [ours.get(flow), ours.get(&(b, dport, a, sport, proto))];
        let spans = || directions.into_iter().flatten().map(Records::span);
        let difference = Difference {
            flow,
            facts: facts.get(flow).copied().unwrap_or_default(),
            capture: whole,
            ours: ours.get(flow),
            theirs: theirs.get(flow),
            both: (
                spans().map(|span| span.0).min().unwrap_or(0),
                spans().map(|span| span.1).max().unwrap_or(0),
            ),
        };
        if (meter.is_same)(&difference) {
            same += 1;
            continue;
        }
        let argued = meter.argued.iter().find(|argued| (argued.may)(&difference));
        let Some(argued) = argued else {
            let Difference { ours, theirs, .. } = difference;
            panic!("{capture}: {flow:?}\n  Weir {ours:?}\n  {} {theirs:?}", meter.name)
        };
        found.insert(argued.what);
    }
    Some((same, found))
}

fn captures(folder: &Path) -> Vec<PathBuf> {
    common::files(folder.to_str().expect("a plain path"), &[".pcap", ".pcapng", ".cap"])
}

/// Compares all captures of a folder; says how many flows were the same, and which differences
/// there were. `None`, and it is said, where the meter is not installed.
fn compare_all(meter: &Meter, folder: &Path, test: &str) -> Option<(u64, BTreeSet<&'static str>)> {
    let (mut same, mut found) = (0, BTreeSet::new());
    for capture in captures(folder) {
        if capture.metadata().expect("a file").len() > LARGEST {
            continue;
        }
        let Some((flows, differences)) = compare(meter, &capture) else {
            let Meter { name, package, .. } = meter;
            skip(test, &format!("there is no {name} (apt-get install {package})"));
            return None;
        };
        same += flows;
        found.extend(differences);
    }
    Some((same, found))
}

#[test]
fn records_of_the_fixtures_are_those_of_nfpcapd() {
    let folder = root().join("fixtures");
    let Some((same, _)) = compare_all(&NFPCAPD, &folder, "meters::fixtures") else { return };
    assert!(same > 500, "{same} flows are the same");
}

#[test]
fn records_of_the_fixtures_are_those_of_softflowd() {
    let folder = root().join("fixtures");
    let Some((same, _)) = compare_all(&SOFTFLOWD, &folder, "meters::softflowd") else { return };
    assert!(same > 500, "{same} flows are the same");
}

/// Each difference that is argued for is seen, there or in the fixtures.
fn compare_shared(meter: &Meter, test: &str) {
    let Some(folder) = shared(test) else { return };
    let Some((same, mut found)) = compare_all(meter, &folder, test) else { return };
    assert!(same > 1000, "{same} flows are the same");
    let of_fixtures = compare_all(meter, &root().join("fixtures"), test);
    found.extend(of_fixtures.into_iter().flat_map(|(_, found)| found));
    let all: BTreeSet<_> = meter.argued.iter().map(|argued| argued.what).collect();
    assert_eq!(found, all, "{}", meter.name);
}

#[test]
fn records_of_shared_captures_are_those_of_nfpcapd() {
    compare_shared(&NFPCAPD, "meters::shared");
}

#[test]
fn records_of_shared_captures_are_those_of_softflowd() {
    compare_shared(&SOFTFLOWD, "meters::shared_softflowd");
}

/// Larger captures take long, and show nothing else.
const LARGEST: u64 = 3 << 20;

#[test]
fn the_table_of_differences_is_that_of_the_docs() {
    let docs = common::text("docs/flows.md");
    for Argued { what, why, .. } in ARGUED.iter().chain(ARGUED_OF_SOFTFLOWD) {
        let row = format!("| {what} | {why} |\n");
        assert!(docs.contains(&row), "docs/flows.md lacks {row}");
    }
}
