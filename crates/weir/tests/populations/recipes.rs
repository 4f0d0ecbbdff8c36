//! Recipes of the cookbook, each against a computation of its own over decoded packets: of captures
//! made here, with SYNs, questions and segments that are sent again, ports, connections and numbers
//! that are used again; of fixtures; and of the shared captures, where they are.

use crate::common::{answer, files, program, root, shared, text, truths};
use crate::populations::{dns, tcp};
use crate::{MS, Packet, SECOND, START};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use weir_engine::functions::Functions;
use weir_packet::craft::Frame;
use weir_packet::source::LinkType;
use weir_packet::tcp::{ACK, FIN, SYN};
use weir_plan::Value;

type Row = Vec<Value>;

/// A capture, and the folder that holds it as long as it is needed.
pub(crate) struct Capture {
    pub(crate) path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

pub(crate) fn made(packets: &[Packet]) -> Capture {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.pcap");
    let header = weir_packet::pcap::FileHeader::new(LinkType::ETHERNET);
    let mut bytes = header.to_bytes().to_vec();
    for p in packets {
        header.put_record(&mut bytes, START + p.at, p.frame.len() as u32, &p.frame);
    }
    std::fs::write(&path, bytes).expect("writes");
    Capture { path, _folder: Some(folder) }
}

fn fixture(name: &str) -> Capture {
    Capture { path: root().join("fixtures").join(name), _folder: None }
}

/// The rows of a query over a capture; none where times step back too far for its windows.
fn rows(query: &str, capture: &Capture) -> Option<Vec<Row>> {
    let got = answer(&program(query, &Functions::default()), &capture.path, 2);
    if got.ledger.late > 0 || got.ledger.evicted > 0 || got.error.is_some() {
        return None;
    }
    Some(got.rows.into_iter().map(|(_, row)| row).collect())
}

/// The first query below a heading of the cookbook, without the stages at its end that only choose
/// rows.
fn recipe(heading: &str) -> String {
    let cookbook = text("docs/cookbook.md");
    let below = cookbook.split_once(&format!("\n## {heading}\n"));
    let below = below.unwrap_or_else(|| panic!("the cookbook has no recipe `{heading}`")).1;
    let block = below.split_once("```weir").expect("a query").1;
    let block = block.split_once('\n').expect("lines").1.split_once("```").expect("its end").0;
    let mut lines: Vec<&str> = block.lines().collect();
    while lines.last().is_some_and(|l| l.starts_with("| top ") || l.starts_with("| limit ")) {
        lines.pop();
    }
    lines.join("\n")
}

/// Rows as texts, in order, so that what differs can be read.
fn shown(rows: impl IntoIterator<Item = Row>) -> Vec<String> {
    let cell = |value: &Value| match value {
        // A mean of durations is a whole number of nanoseconds.
        Value::Float(f) => format!("{f:.9}"),
        other => other.to_string(),
    };
    let line = |row: Row| row.iter().map(cell).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = rows.into_iter().map(line).collect();
    lines.sort();
    lines
}

/// Compares a recipe with what `own` makes of the rows of `fields`; says how many rows there were.
fn compare(heading: &str, fields: &str, capture: &Capture, own: fn(&[Row]) -> Vec<Row>) -> usize {
    let packets = rows(fields, capture).expect("fields of packets have no windows");
    let Some(got) = rows(&recipe(heading), capture) else { return 0 };
    let (got, own) = (shown(got), shown(own(&packets)));
    assert_eq!(got, own, "{heading}: {}", capture.path.display());
    own.len()
}

fn int(value: &Value) -> i64 {
    match value {
        Value::Int(n) => *n,
        Value::Time(ns) | Value::Duration(ns) => *ns,
        Value::Bool(b) => i64::from(*b),
        other => panic!("no number: {other}"),
    }
}

/// Count, mean and the ends of times, as rows have them.
fn of_times(times: &[i64]) -> [Value; 4] {
    let [sum, n] = [times.iter().sum::<i64>(), times.len() as i64];
    let ends = [times.iter().min(), times.iter().max()].map(|t| Value::Duration(*t.expect("one")));
    let [least, most] = ends;
    [Value::Int(n), Value::Duration(sum / n), least, most]
}

const SEGMENTS: &str = "packets | where tcp and exists(tcp.payload_len)
    | project ts, ip.src, sport, ip.dst, dport, tcp.flags, tcp.seq, tcp.ackno, tcp.payload_len";

/// Both ends of a segment, the same in both directions, and whether it comes from the first of them.
fn ends(row: &Row) -> ([String; 2], bool) {
    let (from, to) = (format!("{} {}", row[1], row[2]), format!("{} {}", row[3], row[4]));
    let forward = from <= to;
    (if forward { [from, to] } else { [to, from] }, forward)
}

/// From the SYN to the SYN-ACK that acknowledges it, where both came once.
fn handshakes(segments: &[Row]) -> Vec<Row> {
    // Of each connection the number of its SYN, when it came, and whether it may be timed.
    let mut open: BTreeMap<[String; 2], (i64, i64, bool)> = BTreeMap::new();
    let mut times = Vec::new();
    for row in segments {
        let (flags, seq) = (int(&row[5]) as u16, int(&row[6]));
        let (ends, _) = ends(row);
        if flags & SYN == 0 {
            continue;
        }
        if flags & ACK == 0 {
            let known = open.get(&ends).filter(|(known, ..)| *known == seq);
            let first = known.map_or(int(&row[0]), |known| known.1);
            let once = known.is_none();
            open.insert(ends, (seq, first, once));
        } else if let Some((known, first, once)) = open.get_mut(&ends) {
            if *once && (*known + 1) & 0xffff_ffff == int(&row[7]) {
                times.push(int(&row[0]) - *first);
            }
            *once = false;
        }
    }
    if times.is_empty() {
        return vec![vec![Value::Int(0), Value::Absent, Value::Absent, Value::Absent]];
    }
    let [n, mean, least, most] = of_times(&times);
    vec![vec![n, least, mean, most]]
}

#[test]
fn handshakes_are_timed_once_and_anew_where_a_port_is_used_again() {
    let heading = "How long do handshakes take?";
    let mut made_here = tcp::packets();
    // A port that is used again: 20 ms the first time, 45 ms the second.
    let ends = (Ipv4Addr::new(192, 0, 2, 77), Ipv4Addr::new(198, 51, 100, 7));
    for (at, took, seq) in [(0, 20, 7_000), (30, 45, 900_000)] {
        let there = Frame::ethernet().ipv4(ends.0, ends.1).tcp(40_000, 80).seq(seq);
        let back = Frame::ethernet().ipv4(ends.1, ends.0).tcp(80, 40_000).seq(5).ackno(seq + 1);
        let at = at * SECOND;
        let packet = |at, frame: &Frame| Packet::new(at, ends, 6, frame);
        made_here.push(packet(at, &there.clone().flags(SYN)));
        made_here.push(packet(at + took * MS, &back.clone().flags(SYN | ACK)));
        made_here.push(packet(at + SECOND, &there.flags(FIN | ACK).seq(seq + 1)));
        made_here.push(packet(at + SECOND + MS, &back.flags(FIN | ACK).seq(6).ackno(seq + 2)));
    }
    made_here.sort_by_key(|p| p.at);
    assert_eq!(compare(heading, SEGMENTS, &made(&made_here), handshakes), 1);
    for name in ["web.pcap", "connect_scan.pcap", "detectors/tcp_syn_again.pcap"] {
        compare(heading, SEGMENTS, &fixture(name), handshakes);
    }
    let mut compared = 0;
    let captures = shared_captures("handshakes");
    for capture in &captures {
        compared += compare(heading, SEGMENTS, capture, handshakes);
    }
    assert!(captures.is_empty() || compared > 50, "{compared}");
}

/// Also of packets that are no messages: they say how long the capture goes on.
const MESSAGES: &str = "packets
    | project ts, ip.src, sport, ip.dst, dport, dns.qr, dns.id, dns.qname, dns.qtype";

/// Of each question its row, and the time to the first answer after it within five seconds.
fn answered(messages: &[Row]) -> Vec<(&Row, Option<i64>)> {
    let key = |row: &Row, answers: bool| {
        let (a, b) = if answers { (3, 1) } else { (1, 3) };
        [a, a + 1, b, 6, 7].map(|at| row[at].to_string())
    };
    let mut answers: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    let is_answer = |row: &Row| row[5] == Value::Bool(true);
    for row in messages.iter().filter(|row| is_answer(row)) {
        answers.entry(key(row, true)).or_default().push(int(&row[0]));
    }
    let mut seen = BTreeSet::new();
    let questions = messages.iter().filter(|row| row[5] == Value::Bool(false));
    let questions = questions.filter(|row| seen.insert((int(&row[0]), key(row, false))));
    let questions: Vec<&Row> = questions.collect();
    let took = |row: &Row| {
        let asked = int(&row[0]);
        let times = answers.get(&key(row, false)).into_iter().flatten().map(|at| at - asked);
        times.filter(|took| (0..=5 * SECOND).contains(took)).min()
    };
    questions.into_iter().map(|row| (row, took(row))).collect()
}

fn answer_times(messages: &[Row]) -> Vec<Row> {
    let mut types: BTreeMap<String, (Value, Vec<i64>)> = BTreeMap::new();
    for (row, took) in answered(messages) {
        let of = types.entry(row[8].to_string()).or_insert((row[8].clone(), Vec::new()));
        of.1.extend(took);
    }
    let row = |(kind, times): (Value, Vec<i64>)| {
        let [n, mean, _, most] = of_times(&times);
        vec![kind, n, mean, most]
    };
    types.into_values().filter(|(_, times)| !times.is_empty()).map(row).collect()
}

fn unanswered(messages: &[Row]) -> Vec<Row> {
    let mut names: BTreeMap<[String; 2], (Row, i64)> = BTreeMap::new();
    // An answer to a question that comes just before the end may have come after it.
    let timed = messages.iter().filter(|row| row[0] != Value::Absent);
    let end = timed.map(|row| int(&row[0])).max().unwrap_or(0);
    let is_lost = |row: &Row, took: Option<i64>| took.is_none() && int(&row[0]) + 5 * SECOND <= end;
    for (row, _) in answered(messages).into_iter().filter(|(row, took)| is_lost(row, *took)) {
        let key = [row[1].to_string(), row[7].to_string()];
        names.entry(key).or_insert((vec![row[1].clone(), row[7].clone()], 0)).1 += 1;
    }
    names.into_values().map(|(row, n)| [row, vec![Value::Int(n)]].concat()).collect()
}

#[test]
fn dns_questions_meet_their_own_answers() {
    let times = "How long do DNS answers take?";
    let lost = "Which questions to DNS stay without an answer?";
    let mut captures = vec![made(&dns::packets())];
    captures.extend(["dns.pcap", "dns_lost.pcap", "detectors/dns_slow.pcap"].map(fixture));
    for capture in captures {
        assert!(compare(times, MESSAGES, &capture, answer_times) > 0);
        compare(lost, MESSAGES, &capture, unanswered);
    }
    let mut compared = 0;
    let captures = shared_captures("dns");
    for capture in &captures {
        compared += compare(times, MESSAGES, capture, answer_times);
        compared += compare(lost, MESSAGES, capture, unanswered);
    }
    assert!(captures.is_empty() || compared > 50, "{compared}");
}

/// A connection whose numbers go on by what is sent.
struct Talk {
    at: i64,
    port: u16,
    seq: [u32; 2],
    packets: Vec<Packet>,
}

impl Talk {
    fn new(at: i64, port: u16, seq: u32) -> Talk {
        let mut talk = Talk { at, port, seq: [seq, seq / 2], packets: Vec::new() };
        talk.send(0, SYN, b"");
        talk.send(1, SYN | ACK, b"");
        talk.send(0, ACK, b"");
        talk
    }

    fn send(&mut self, side: usize, flags: u16, payload: &[u8]) {
        let ends = [(Ipv4Addr::new(192, 0, 2, 5), self.port), (Ipv4Addr::new(198, 51, 100, 5), 80)];
        let (from, to) = (ends[side], ends[1 - side]);
        let frame = Frame::ethernet().ipv4(from.0, to.0).tcp(from.1, to.1).flags(flags);
        let frame = frame.seq(self.seq[side]).ackno(self.seq[1 - side]).payload(payload);
        self.packets.push(Packet::new(self.at, (from.0, to.0), 6, &frame));
        let more = payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        self.seq[side] = self.seq[side].wrapping_add(more);
        self.at += 20 * MS;
    }

    fn asks(&mut self, method: &str, uri: &str) {
        let text = format!("{method} {uri} HTTP/1.1\r\nHost: www.example.test\r\n\r\n");
        self.send(0, ACK, text.as_bytes());
    }

    fn answers(&mut self, status: u16) {
        let text = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n");
        self.send(1, ACK, text.as_bytes());
    }

    /// The last packet once more, 400 ms later.
    fn again(&mut self) {
        let mut last = self.packets.last().expect("a packet").clone();
        last.at = self.at + 400 * MS;
        self.at += 420 * MS;
        self.packets.push(last);
    }

    fn closes(mut self) -> Vec<Packet> {
        self.send(0, FIN | ACK, b"");
        self.send(1, FIN | ACK, b"");
        self.packets
    }
}

#[test]
fn http_responses_meet_their_own_requests() {
    let mut all = Vec::new();
    // Kept alive; a request and a response are sent twice.
    let mut talk = Talk::new(0, 5000, 1000);
    talk.asks("GET", "/1");
    talk.answers(200);
    talk.asks("GET", "/2");
    talk.again();
    talk.answers(500);
    talk.again();
    talk.asks("GET", "/3");
    talk.answers(200);
    talk.asks("GET", "/4");
    talk.answers(301);
    all.extend(talk.closes());
    // The same port again.
    let mut talk = Talk::new(10 * SECOND, 5000, 5_000_000);
    talk.asks("POST", "/form");
    talk.answers(404);
    talk.asks("GET", "/fine");
    talk.answers(200);
    all.extend(talk.closes());
    // Asked before the answers come; and one that goes on first.
    let mut talk = Talk::new(0, 5001, 77);
    talk.asks("GET", "/a");
    talk.asks("GET", "/b");
    talk.answers(200);
    talk.answers(503);
    talk.asks("PUT", "/up");
    talk.answers(100);
    talk.answers(201);
    all.extend(talk.closes());
    // An answer whose question was not captured, and a question without an answer.
    let mut talk = Talk::new(0, 5002, 88);
    talk.answers(404);
    talk.asks("GET", "/x");
    talk.answers(410);
    talk.asks("GET", "/never");
    all.extend(talk.closes());
    all.sort_by_key(|p| p.at);
    let capture = made(&all);
    let got = rows(&recipe("What is asked over HTTP, and what fails?"), &capture).expect("in time");
    let own = [
        ("GET", "/2", 500),
        ("GET", "/4", 301),
        ("POST", "/form", 404),
        ("GET", "/b", 503),
        ("PUT", "/up", 201),
        ("GET", "/x", 410),
    ];
    let own = own.map(|(method, uri, status)| {
        let text = |text: &str| Value::Str(text.into());
        vec![text("www.example.test"), text(method), text(uri), Value::Int(status)]
    });
    assert_eq!(shown(got), shown(own));
}

#[test]
fn what_is_sent_again_is_counted_by_flow() {
    let packets = tcp::packets();
    let mut flows: BTreeMap<Vec<String>, [i64; 2]> = BTreeMap::new();
    for p in packets.iter().filter(|p| p.data > 0) {
        let (sport, dport) = p.ports.expect("TCP");
        let key = vec![p.src.to_string(), sport.to_string(), p.dst.to_string(), dport.to_string()];
        let of = flows.entry(key).or_default();
        *of = [of[0] + 1, of[1] + i64::from(p.again)];
    }
    let own: Vec<String> = flows
        .into_iter()
        .filter(|(_, [_, again])| *again > 0)
        .map(|(key, [data, again])| format!("{} 6 {data} {again}", key.join(" ")))
        .collect();
    let got = rows(&recipe("Which flows retransmit?"), &made(&packets)).expect("in time");
    let got = got.into_iter().map(|row| row[..7].to_vec());
    assert_eq!(shown(got), own);
}

/// Segments that do not start where the one before them ended.
fn out_of_sequence(segments: &[Row]) -> Vec<Row> {
    let mut flows: BTreeMap<Vec<String>, (Row, Option<i64>, i64, i64)> = BTreeMap::new();
    for row in segments {
        let (flags, seq, len) = (int(&row[5]) as u16, int(&row[6]), int(&row[8]));
        if flags & SYN == 0 && len == 0 {
            continue;
        }
        let key = row[1..5].iter().map(Value::to_string).collect();
        let of = flows.entry(key).or_insert((row[1..5].to_vec(), None, 0, 0));
        if len > 0 {
            of.2 += 1;
            of.3 += i64::from(flags & SYN == 0 && of.1.is_some_and(|end| end != seq));
        }
        of.1 = Some((seq + len + i64::from(flags & SYN != 0)) & 0xffff_ffff);
    }
    let row = |(flow, _, n, gaps): (Row, _, i64, i64)| {
        [flow, vec![Value::Int(6), Value::Int(n), Value::Int(gaps)]].concat()
    };
    flows.into_values().filter(|of| of.2 > 0).map(row).collect()
}

#[test]
fn sequence_numbers_go_round_and_begin_anew() {
    let heading = "Which connections deliver out of sequence?";
    let mut all = Vec::new();
    for (at, seq) in [(0, u32::MAX - 150), (10, 5), (20, 3_000_000_000)] {
        let mut talk = Talk::new(at * SECOND, 6000, 1);
        talk.seq[0] = seq;
        for _ in 0..5 {
            talk.send(0, ACK, &[b'x'; 50]);
        }
        all.extend(talk.closes());
    }
    let captures = [made(&all), made(&tcp::packets()), fixture("mixed.pcap")];
    for capture in captures.iter().chain(&shared_captures("sequence")) {
        compare(heading, SEGMENTS, capture, out_of_sequence);
    }
    assert!(compare(heading, SEGMENTS, &captures[0], out_of_sequence) > 0);
}

const LENGTHS: &str = "packets | where ip | project ts, ip.src, ip.dst, len";

/// Bytes by second and host, also of those seconds in which a host has none.
fn seconds(packets: &[Row], host: usize) -> BTreeMap<String, (Value, BTreeMap<i64, i64>)> {
    let mut hosts: BTreeMap<String, (Value, BTreeMap<i64, i64>)> = BTreeMap::new();
    let all = packets.iter().map(|row| int(&row[0]).div_euclid(SECOND));
    let (first, last) = (all.clone().min().unwrap_or(0), all.max().unwrap_or(0));
    for row in packets {
        let of = hosts.entry(row[host].to_string()).or_insert_with(|| {
            (row[host].clone(), (first..=last).map(|second| (second, 0)).collect())
        });
        *of.1.entry(int(&row[0]).div_euclid(SECOND)).or_default() += int(&row[3]);
    }
    hosts
}

fn percentiles(packets: &[Row]) -> Vec<Row> {
    let row = |(host, seconds): (Value, BTreeMap<i64, i64>)| {
        let mut bytes: Vec<i64> = seconds.into_values().collect();
        bytes.sort_unstable();
        let at = |percent: usize| Value::Int(bytes[(bytes.len() * percent).div_ceil(100) - 1]);
        vec![host, Value::Int(bytes.len() as i64), at(50), at(95)]
    };
    seconds(packets, 1).into_values().map(row).collect()
}

#[test]
fn percentiles_are_those_of_all_seconds() {
    let heading = "How much does a host send at most, for 95 % of the time?";
    let made_here = made(&crate::populations::traffic::packets());
    for capture in [fixture("mixed.pcap"), made_here] {
        assert!(compare(heading, LENGTHS, &capture, percentiles) > 2);
    }
}

/// Of what all packets of two seconds carry, the whole percents of a network.
fn customer(packets: &[Row]) -> Vec<Row> {
    let mut windows: BTreeMap<i64, [i64; 2]> = BTreeMap::new();
    for row in packets {
        let inside = [&row[1], &row[2]].iter().any(|host| host.to_string().starts_with("192.0.2."));
        let of = windows.entry(int(&row[0]).div_euclid(2 * SECOND)).or_default();
        *of = [of[0] + int(&row[3]) * i64::from(inside), of[1] + int(&row[3])];
    }
    let row = |(window, [theirs, all]): (i64, [i64; 2])| {
        vec![Value::Time(window * 2 * SECOND), Value::Int(100 * theirs / all)]
    };
    windows.into_iter().map(row).collect()
}

#[test]
fn a_share_of_the_traffic_is_one_of_all_of_it() {
    let heading = "Which share of the traffic is a customer's?";
    for capture in ["mixed.pcap", "web.pcap", "dns.pcap"].map(fixture) {
        assert!(compare(heading, LENGTHS, &capture, customer) > 0);
    }
}

const PAIRS: &str = "packets | where ip | project ts, hosts, len";

/// Pairs with more than a fifth of what four seconds carry, every two seconds.
fn large_pairs(packets: &[Row]) -> Vec<Row> {
    // Of a pair its columns, and its bytes.
    type Pairs = BTreeMap<[String; 2], (Row, i64)>;
    let mut windows: BTreeMap<i64, (i64, Pairs)> = BTreeMap::new();
    for row in packets {
        let last = int(&row[0]).div_euclid(2 * SECOND);
        for window in [last - 1, last] {
            let of = windows.entry(window).or_default();
            of.0 += int(&row[3]);
            let pair = [1, 2].map(|at| row[at].to_string());
            of.1.entry(pair).or_insert((row[1..3].to_vec(), 0)).1 += int(&row[3]);
        }
    }
    let mut own = Vec::new();
    for (window, (all, pairs)) in windows {
        for (pair, bytes) in pairs.into_values().filter(|(_, n)| 5 * n > all) {
            let ts = Value::Time(window * 2 * SECOND);
            own.push([vec![ts], pair, vec![Value::Int(100 * bytes / all)]].concat());
        }
    }
    own
}

/// The bytes that a host gets each second, how their number changed, and what is usual.
fn levels(packets: &[Row]) -> Vec<Row> {
    let mut own = Vec::new();
    let hosts = seconds(packets, 2);
    let Some((_, all)) = hosts.get("192.0.2.1") else { return own };
    let (mut last, mut usual) = (None, 0.0);
    for (&second, &bytes) in all.iter().skip_while(|(_, bytes)| **bytes == 0) {
        let before = last.replace(bytes).unwrap_or(bytes);
        usual = if own.is_empty() { bytes as f64 } else { usual };
        usual = 0.8 * usual + 0.2 * bytes as f64;
        let ts = Value::Time(second * SECOND);
        own.push(vec![ts, Value::Int(bytes), Value::Int(bytes - before), Value::Float(usual)]);
    }
    own
}

/// Bits of each second that has more than 100,000 of them.
fn loads(packets: &[Row]) -> Vec<Row> {
    let mut all: BTreeMap<i64, i64> = BTreeMap::new();
    for row in packets {
        *all.entry(int(&row[0]).div_euclid(SECOND)).or_default() += 8 * int(&row[3]);
    }
    let row = |(second, bits)| vec![Value::Time(second * SECOND), Value::Int(bits)];
    all.into_iter().filter(|(_, bits)| *bits > 100_000).map(row).collect()
}

const FLOWS: &str = "packets | where tcp | project ts, flow, len";

/// How long each flow lasts, and its kilobits a second.
fn flow_rates(packets: &[Row]) -> Vec<Row> {
    let mut flows: BTreeMap<Vec<String>, (Row, i64, i64, i64)> = BTreeMap::new();
    for row in packets {
        let key = row[1..5].iter().map(Value::to_string).collect();
        let at = int(&row[0]);
        let of = flows.entry(key).or_insert((row[1..3].to_vec(), at, at, 0));
        *of = (of.0.clone(), of.1.min(at), of.2.max(at), of.3 + int(&row[6]));
    }
    let row = |(flow, first, last, bytes): (Row, i64, i64, i64)| {
        let lasted = (last - first) as f64 / SECOND as f64;
        let rate = Value::Float(bytes as f64 * 0.008 / lasted);
        [flow, vec![Value::Duration(last - first), rate]].concat()
    };
    flows.into_values().map(row).collect()
}

#[test]
fn means_and_rates_are_those_of_all_packets() {
    const ALL: &str = "packets | project ts, ip.src, ip.dst, len";
    let shares = "Which pairs of hosts carry more than their share?";
    let usual = "Is traffic far from its usual level?";
    let load = "When is the link loaded?";
    let last = "How long do flows last?";
    for capture in ["mixed.pcap", "web.pcap"].map(fixture) {
        assert!(compare(shares, PAIRS, &capture, large_pairs) > 0);
        assert!(compare(usual, LENGTHS, &capture, levels) > 0);
        assert!(compare(load, ALL, &capture, loads) > 0);
    }
    for capture in ["iperf3.pcap", "web.pcap"].map(fixture) {
        assert!(compare(last, FLOWS, &capture, flow_rates) > 2);
    }
}

/// How long each segment takes from an interface to another: to the first one that leaves with its
/// number and identification.
fn delays(segments: &[Row]) -> Vec<Row> {
    let key = |row: &Row| row[3..].iter().map(Value::to_string).collect::<Vec<_>>();
    let goes = |row: &&Row, way: &str| row[2] == Value::Str(way.into());
    let mut ways: BTreeMap<[String; 2], (Row, Vec<i64>)> = BTreeMap::new();
    for came in segments.iter().filter(|row| goes(row, "in")) {
        let left = segments.iter().filter(|row| goes(row, "out") && key(row) == key(came));
        let took = |row: &Row| int(&row[0]) - int(&came[0]);
        let first =
            left.filter(|row| (0..=SECOND).contains(&took(row))).min_by_key(|row| took(row));
        let Some(first) = first else { continue };
        let way = vec![came[1].clone(), first[1].clone()];
        let of = ways.entry([0, 1].map(|i| way[i].to_string())).or_insert((way, Vec::new()));
        of.1.push(took(first));
    }
    let row = |(way, mut times): (Row, Vec<i64>)| {
        times.sort_unstable();
        let ends = [times[times.len().div_ceil(2) - 1], times[times.len() - 1]];
        [way, vec![Value::Int(times.len() as i64)], ends.map(Value::Duration).to_vec()].concat()
    };
    ways.into_values().map(row).collect()
}

#[test]
fn a_segment_leaves_once() {
    let fields = "packets | where tcp.payload_len > 0
        | project ts, interface, direction, ip.src, sport, ip.dst, dport, tcp.seq, ip.id";
    let heading = "How long does a packet take through this machine?";
    assert_eq!(compare(heading, fields, &fixture("router.pcapng"), delays), 2);
}

/// The shared captures that are no faulty files, the smaller ones.
fn shared_captures(test: &str) -> Vec<Capture> {
    let Some(folder) = shared(test) else { return Vec::new() };
    let small = |truth: &&serde_json::Value| {
        let file = truth["file"].as_str().unwrap_or_default();
        let sound = crate::common::supported(truth) && !file.starts_with("malformed/");
        sound && truth["packets"].as_u64().is_some_and(|n| n < 20_000)
    };
    let truths = truths(&folder);
    let names = truths.iter().filter(small).filter_map(|truth| truth["file"].as_str());
    names.map(|name| Capture { path: folder.join(name), _folder: None }).collect()
}

/// Recipes that count, list or choose packets one by one. Their rows in the cookbook are compared
/// with what runs give, and there is nothing that two packets could be mistaken for.
const PLAIN: &[&str] = &[
    "Who talks the most?",
    "Which services are used, and by how many hosts?",
    "Who scans ports?",
    "Which packets belong to an alert?",
    "Is a server under a SYN flood?",
    "How much is DNS, over time?",
    "Which names are asked that do not exist?",
    "Which TCP options do hosts open connections with?",
    "Which TLS servers are contacted, by whom?",
    "Is there a DHCP server that should not be?",
    "Who abuses a time server to amplify?",
    "Who is unreachable?",
    "What runs in which VLAN?",
    "What comes and goes by which interface?",
    "How much is IPv6?",
    "Which datagrams arrived in pieces?",
    "Which packets come after a pause?",
    "How much does each flow carry, until it pauses?",
    "How long are the bursts of a flow?",
    "Which are the two busiest services of each server?",
    "When was it silent?",
    "Which addresses stand behind a name?",
    "Which banners do servers show?",
    "How do I share a capture without addresses?",
    "Which packets does a SPAN port deliver twice?",
];

#[test]
fn every_recipe_is_computed_here_or_is_plain() {
    let source = files("crates/weir/tests/populations", &["recipes.rs"]);
    let source = std::fs::read_to_string(&source[0]).expect("this file");
    let tests = source.split_once("const PLAIN").expect("the list").0;
    for heading in text("docs/cookbook.md").lines().filter_map(|line| line.strip_prefix("## ")) {
        let computed = tests.contains(&format!("\"{heading}\""));
        assert!(
            computed != PLAIN.contains(&heading),
            "{heading}: a recipe that pairs packets has a computation in tests/populations, and \
             any other a line in PLAIN"
        );
    }
}
