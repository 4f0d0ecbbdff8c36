//! `analyze tcp`: every TCP segment of the shared captures, compared with `tcp.analysis` of tshark
//! 4.0.17, column by column.

use super::{FIELD, Lines, VALUE, csv, outer, shared_with_tshark, supported, truths};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use weir_plan::Type;
use weir_plan::analyze::{TCP_COLUMNS, TCP_PREFIX, TcpColumn};

/// Columns that tshark does not have, or not for single segments.
const OURS: [&str; 6] =
    ["flags", "new_connection", "new_direction", "server_rtt", "client_rtt", "tsval_rtt"];

/// Captures that are not compared, and why.
const CAPTURES: &[(&str, &str)] = &[
    ("malformed/", "each side gives up at a place of its own in headers that are no good"),
    ("mercury/unit_tests/pcaps/geneve.pcap", "one direction of its connections is in a tunnel"),
    ("zeek/testing/btest/Traces/pppoe-over-qinq.pcap", "tshark reads on where PPPoE says less"),
    ("zeek/testing/btest/Traces/ipv6-http-atomic-frag.pcap", "lengths of fragments are absent"),
];

/// Tells tshark to look at segments by themselves, but for what is compared.
const OPTIONS: [&str; 3] =
    ["ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE"];

/// Fields of a segment that the conditions below ask for, before the columns that are compared.
const ASKED: [&str; 6] =
    ["conn.forward", "tcp.seq", "tcp.ackno", "tcp.flags", "tcp.payload_len", "tcp.window"];

/// The events of a connection before the segment at hand, and with it, by either side.
#[derive(Default)]
struct Seen {
    /// A reset came before.
    reset: bool,
    /// Something was sent again or probed, and so something is not timed.
    again: bool,
    /// Something was not captured.
    gap: bool,
    /// Data was acknowledged before that was not captured.
    told: bool,
    reused: bool,
    /// More than eight segments of a direction were not acknowledged.
    many: bool,
    /// Ends of those, by direction.
    open: [Vec<u32>; 2],
}

/// One column of a segment.
struct Difference<'a> {
    column: &'a str,
    ours: &'a str,
    theirs: &'a str,
    has_ack: bool,
    seen: &'a Seen,
}

/// Differences that are meant: condition and reason.
type Meant = (fn(&Difference<'_>) -> bool, &'static str);

const MEANT: &[Meant] = &[
    (|d| d.seen.reset, "the number of a reset moves what tshark expects next"),
    (
        |d| d.column.starts_with("duplicate_ack") && !d.has_ack,
        "a segment without the flag acknowledges nothing",
    ),
    (
        |d| d.column == "ack_lost_segment" && d.seen.told,
        "of several ACKs of what is missing, each that goes further is told",
    ),
    (
        |d| d.column == "ack_rtt" && d.ours.is_empty() && (d.seen.again || d.seen.many),
        "what was sent twice is not timed, nor the ninth segment in flight",
    ),
    (
        |d| d.column == "ack_rtt" && d.theirs.is_empty() && number(d.ours) == Some(0.0),
        "tshark shows no time of 0",
    ),
    (
        |d| d.column == "initial_rtt" && d.theirs.is_empty(),
        "tshark shows it where a segment has another analysis",
    ),
    (
        |d| {
            let one = number(d.theirs).zip(number(d.ours)).is_some_and(|(t, o)| t == o + 1.0);
            d.column == "bytes_in_flight" && one
        },
        "tshark counts a SYN that was not acknowledged as a byte",
    ),
    (
        |d| {
            let Seen { again, gap, told, reused, many, .. } = *d.seen;
            d.column == "bytes_in_flight" && (again || gap || told || reused || many)
        },
        "tshark adds up the segments that it saw, not the numbers",
    ),
];

fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

/// The columns that both have.
fn compared() -> impl Iterator<Item = &'static TcpColumn> {
    TCP_COLUMNS.iter().filter(|column| !OURS.contains(&column.name))
}

#[derive(Default)]
struct Found {
    segments: u64,
    /// How often each column had a value that both agree on, and each difference was met.
    agreed: BTreeMap<&'static str, u64>,
    met: BTreeMap<&'static str, u64>,
    wrong: Vec<String>,
}

#[test]
fn segments_are_what_tshark_says() {
    let test = "tshark::segments_are_what_tshark_says";
    let Some((folder, _)) = shared_with_tshark(test) else { return };
    let mut found = Found::default();
    for truth in truths(&folder).iter().filter(|truth| supported(truth)) {
        let file = truth["file"].as_str().expect("a name");
        if !CAPTURES.iter().any(|(start, _)| file.starts_with(start)) {
            compare(&folder, file, &mut found);
        }
    }
    let Found { segments, agreed, met, wrong } = &found;
    let _ = writeln!(std::io::stderr().lock(), "{segments} segments; {agreed:?}; {met:?}");
    let shown = wrong[..wrong.len().min(100)].join("\n");
    assert!(wrong.is_empty(), "{} differences:\n{shown}", wrong.len());
    let stale: Vec<_> = MEANT.iter().filter(|(_, why)| !met.contains_key(why)).collect();
    assert!(stale.is_empty(), "{} differences that there are none of any more", stale.len());
    assert!(*segments > 250_000, "{segments} segments");
    for (column, least) in [("retransmission", 10_000), ("ack_rtt", 100_000), ("keep_alive", 1000)]
    {
        assert!(agreed[column] > least, "{column}: {}", agreed[column]);
    }
}

/// Compares one capture.
fn compare(folder: &Path, file: &str, found: &mut Found) {
    let path = folder.join(file);
    let columns: Vec<String> = compared()
        .enumerate()
        .map(|(i, column)| format!("v{i} = {TCP_PREFIX}{}", column.name))
        .collect();
    let query = format!(
        "packets | analyze tcp idle 3650d | project {}, {}",
        ASKED.join(", "),
        columns.join(", ")
    );
    let mut ours = Command::new(env!("CARGO_BIN_EXE_weir"));
    ours.args(["run", "-q", "-o", "csv", "-e", &query, "-r"]).arg(&path);
    let mut theirs = Command::new("tshark");
    theirs.args(["-n", "-T", "fields", "-E", "occurrence=a"]);
    theirs.args(["-E", &format!("separator={FIELD}"), "-E", &format!("aggregator={VALUE}")]);
    OPTIONS.iter().for_each(|option| _ = theirs.args(["-o", *option]));
    theirs.args(["-e", "frame.protocols", "-e", "tcp.stream"]);
    compared().for_each(|c| _ = theirs.args(["-e", &format!("{TCP_PREFIX}{}", c.name)]));
    theirs.arg("-r").arg(&path);
    let (mut ours, theirs) = (Lines::of(ours), Lines::of(theirs));
    ours.next();
    let mut streams: HashMap<String, Seen> = HashMap::new();
    for (i, (mine, line)) in ours.zip(theirs).enumerate() {
        let cells: Vec<&str> = line.split(FIELD).collect();
        let is_one = !cells[1].is_empty() && !cells[1].contains(VALUE);
        let mine = csv(&mine);
        if !is_one
            || !outer(cells[0]).contains(&"tcp")
            || mine[..ASKED.len()].iter().any(String::is_empty)
        {
            continue;
        }
        found.segments += 1;
        let seen = streams.entry(cells[1].to_owned()).or_default();
        segment(&format!("{file}: {}", i + 1), &mine, &cells[2..], seen, found);
    }
}

/// Compares one segment.
fn segment(at: &str, mine: &[String], theirs: &[&str], seen: &mut Seen, found: &mut Found) {
    let (fields, mine) = mine.split_at(ASKED.len());
    let values: Vec<(&TcpColumn, String, String)> = compared()
        .zip(mine.iter().zip(theirs))
        .map(|(column, (ours, theirs))| (column, ours.clone(), shown(column, theirs)))
        .collect();
    let holds = |names: &[&str]| {
        let either = |(c, ours, theirs): &(&TcpColumn, String, String)| {
            names.contains(&c.name) && (ours == "true" || theirs == "true")
        };
        values.iter().any(either)
    };
    seen.again |= holds(&["retransmission", "out_of_order", "keep_alive", "zero_window_probe"]);
    seen.gap |= holds(&["lost_segment"]);
    seen.reused |= holds(&["reused_ports"]);
    let flags = fields[3].parse::<u32>().expect("flags");
    seen.fly(fields, flags);
    for (column, ours, theirs) in &values {
        let same = ours == theirs
            || number(ours).zip(number(theirs)).is_some_and(|(o, t)| (o - t).abs() < 2e-9);
        if same {
            let count = !matches!(ours.as_str(), "" | "false");
            *found.agreed.entry(column.name).or_default() += u64::from(count);
            continue;
        }
        let has_ack = flags & 16 != 0;
        let difference = Difference { column: column.name, ours, theirs, has_ack, seen };
        match MEANT.iter().find(|(when, _)| when(&difference)) {
            Some((_, why)) => *found.met.entry(*why).or_default() += 1,
            None => found.wrong.push(format!("{at}: {}: {ours}, tshark {theirs}", column.name)),
        }
    }
    seen.reset |= flags & 4 != 0;
    seen.told |= holds(&["ack_lost_segment"]);
}

/// A value of tshark's as ours are written.
fn shown(column: &TcpColumn, theirs: &str) -> String {
    match column.ty {
        Type::Bool => (!theirs.is_empty()).to_string(),
        _ => theirs.to_owned(),
    }
}

impl Seen {
    /// Counts segments in flight.
    fn fly(&mut self, fields: &[String], flags: u32) {
        let n = |i: usize| fields[i].parse::<u32>().expect("a number");
        let side = usize::from(fields[0] == "true");
        if flags & 16 != 0 {
            let ack = n(2);
            self.open[1 - side].retain(|end| (end.wrapping_sub(ack) as i32) > 0);
        }
        if n(4) > 0 || flags & 3 != 0 {
            self.open[side].push(n(1).wrapping_add(n(4)).wrapping_add(u32::from(flags & 3 != 0)));
            self.many |= self.open[side].len() > 8;
        }
    }
}
