//! Tests of `hello`: everything through the harness that compares with the naive model.

use crate::functions::Functions;
use crate::ops::testing::field;
use crate::tests::{Frames, check, program};
use std::net::Ipv4Addr;
use weir_model::TimeRules;
use weir_packet::craft::Frame;
use weir_packet::craft::messages::{client_hello, client_hello_with, in_records};
use weir_packet::craft::quic::{Initial, crypto_frame};
use weir_packet::fields::FlowKey;
use weir_packet::limits::HELLO_MAX;
use weir_packet::quic::V2;
use weir_packet::source::LinkType;
use weir_packet::tcp::{ACK, SYN};
use weir_packet::tls::{ENCRYPTED_CLIENT_HELLO, HEADER_LEN};
use weir_plan::limits::{HELLO_FLOWS_MAX, HELLO_IDLE_NS};
use weir_plan::{Expr, HELLO_COLUMNS, Hello, Schema, Stage};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// `hello`, and a projection of the number of the packet and these columns.
fn stages(idle_ns: i64, max_flows: u64, names: &[&str]) -> Vec<Stage> {
    let mut schema = Schema::default();
    let columns = Hello::put(&mut schema);
    let column = |name: &&str| {
        let at = HELLO_COLUMNS.iter().position(|(n, _)| n.ends_with(*name)).expect("a column");
        ((*name).to_owned(), Expr::column(at, HELLO_COLUMNS[at].1.clone()))
    };
    let shown = names.iter().map(column);
    let columns_shown = [("number".to_owned(), field("number"))].into_iter().chain(shown);
    let hello = Hello { keys: Hello::flow(FlowKey::default()), idle_ns, max_flows, columns };
    vec![Stage::Hello(hello), Stage::Project { columns: columns_shown.collect() }]
}

/// The rows over frames a millisecond apart, then how many hellos were unfinished and evicted.
fn shown_with(stages: Vec<Stage>, frames: Vec<Frame>) -> Vec<String> {
    let frame = |(i, frame): (usize, Frame)| (i as i64 * 1_000_000, frame.bytes());
    let frames: Vec<_> = frames.into_iter().enumerate().map(frame).collect();
    shown_at(stages, &frames)
}

fn shown_at(stages: Vec<Stage>, frames: &[(i64, Vec<u8>)]) -> Vec<String> {
    let frames = Frames::new(LinkType::ETHERNET, frames);
    let (program, functions) = (program(stages), Functions::default());
    let rows = check(&program, &functions, &frames);
    let line = |cells: &[weir_plan::Value]| {
        cells.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").replace('"', "")
    };
    let mut lines: Vec<String> = rows.iter().map(|(_, cells)| line(cells)).collect();
    let rules = TimeRules { lateness_ns: 1_000_000_000, jump_ns: 60_000_000_000 };
    let ledger = weir_model::run(&program, &functions, &mut frames.cut(&[256]), &rules).ledger;
    if ledger.unfinished + ledger.evicted > 0 {
        lines.push(format!("unfinished {} evicted {}", ledger.unfinished, ledger.evicted));
    }
    lines
}

fn shown(frames: Vec<Frame>) -> Vec<String> {
    let names = ["transport", "sni", "packets"];
    shown_with(stages(HELLO_IDLE_NS, HELLO_FLOWS_MAX, &names), frames)
}

/// A hello of so many bytes, in one record.
fn hello(name: &str, len: usize) -> Vec<u8> {
    let short = client_hello_with(name, &["h2"], &[0x304], &[(21, &[])]).len();
    client_hello_with(name, &["h2"], &[0x304], &[(21, &vec![0; len - short])])
}

fn tcp(port: u16, seq: u32, flags: u16, payload: &[u8]) -> Frame {
    let frame = Frame::ethernet().ipv4(CLIENT, SERVER).tcp(port, 443);
    frame.flags(flags).seq(seq).payload(payload)
}

fn udp(payload: &[u8]) -> Frame {
    Frame::ethernet().ipv4(CLIENT, SERVER).udp(5, 443).payload(payload)
}

/// A datagram with one Initial packet of these pieces of a stream.
fn crypto(initial: Initial<'_>, stream: &[u8], pieces: &[(usize, usize)]) -> Vec<u8> {
    let piece = |&(from, to): &(usize, usize)| crypto_frame(from as u64, &stream[from..to]);
    let frames: Vec<u8> = pieces.iter().flat_map(piece).chain([0; 20]).collect();
    initial.packet(&frames)
}

#[test]
fn what_a_hello_says() {
    let all = HELLO_COLUMNS.map(|(name, _)| name.strip_prefix("hello.").expect("named so"));
    let more = [(ENCRYPTED_CLIENT_HELLO, &[0][..])];
    let secret = client_hello_with("Outer.example", &["h2", "http/1.1"], &[0x304], &more);
    let bare = client_hello("", &[], &[0x303]);
    let data = &secret[HEADER_LEN..];
    let quic = crypto(Initial::new(V2, &[7; 8]), data, &[(0, data.len())]);
    let frames = vec![tcp(1, 9, ACK, &secret), tcp(2, 9, ACK, &bare), udp(&quic)];
    assert_eq!(
        shown_with(stages(HELLO_IDLE_NS, HELLO_FLOWS_MAX, &all), frames),
        [
            "1 tcp 772 outer.example h2,http/1.1 t13d0104h2_0f2cb44170f4_19db675bb9c5 true 1 \
             1970-01-01T00:00:00Z",
            "2 tcp 771  absent t12d010300_0f2cb44170f4_b9a491fefe05 false 1 \
             1970-01-01T00:00:00.001Z",
            "3 quic 772 outer.example h2,http/1.1 q13d0104h2_0f2cb44170f4_19db675bb9c5 true 1 \
             1970-01-01T00:00:00.002Z",
        ]
    );
}

#[test]
fn segments_in_any_order() {
    let bytes = hello("a.example", 1800);
    let part = |port, seq: u32, from: usize, to: usize| {
        tcp(port, seq.wrapping_add(from as u32), ACK, &bytes[from..to])
    };
    let rows = shown(vec![
        // In order, without the SYN; the last one again, and data after it.
        part(1, 7, 0, 1460),
        part(1, 7, 1460, 1800),
        part(1, 7, 1460, 1800),
        tcp(1, 1807, ACK, &[23, 3, 3, 0, 9, 1]),
        // Out of order after the SYN, through the end of sequence numbers, and overlapping.
        tcp(2, u32::MAX - 100, SYN, &[]),
        part(2, u32::MAX - 99, 1400, 1800),
        part(2, u32::MAX - 99, 1000, 1500),
        part(2, u32::MAX - 99, 0, 1001),
        // A segment that starts before the hello does: a probe of a byte that came before.
        tcp(3, 49, SYN, &[]),
        tcp(3, 49, ACK, &[&[0][..], &bytes[..900]].concat()),
        part(3, 50, 900, 1800),
        // A SYN with data (TCP Fast Open).
        tcp(4, u32::MAX, SYN, &bytes[..5]),
        part(4, 0, 5, 1800),
    ]);
    let expected = ["2 tcp a.example 2", "8 tcp a.example 3", "11 tcp a.example 2"];
    assert_eq!(rows, [&expected[..], &["13 tcp a.example 2"]].concat());
}

/// Without the SYN nobody knows that a later segment is one of a hello.
#[test]
fn a_second_segment_that_comes_first_is_lost_without_the_syn() {
    let bytes = hello("a.example", 600);
    let rows = shown(vec![tcp(1, 307, ACK, &bytes[300..]), tcp(1, 7, ACK, &bytes[..300])]);
    assert_eq!(rows, ["unfinished 1 evicted 0"]);
}

#[test]
fn the_piece_that_came_first_holds() {
    let (first, second) = (hello("a.example", 400), hello("b.example", 400));
    let rows = shown(vec![
        tcp(1, 7, SYN, &[]),
        tcp(1, 158, ACK, &first[150..]),
        // The name stands last.
        tcp(1, 8, ACK, &second),
    ]);
    assert_eq!(rows, ["3 tcp a.example 2"]);
}

#[test]
fn several_hellos_of_one_flow() {
    let one = hello("a.example", 300);
    let again = hello("a.example", 320);
    let rows = shown(vec![
        tcp(1, 0, ACK, &one),
        // Sent again; then the hello after a HelloRetryRequest, in two segments.
        tcp(1, 0, ACK, &one),
        tcp(1, 300, ACK, &[20, 3, 3, 0, 1, 1]),
        tcp(1, 306, ACK, &again[..100]),
        tcp(1, 406, ACK, &again[100..]),
        // Another connection between the same ports.
        tcp(1, 99_999, SYN, &[]),
        tcp(1, 100_000, ACK, &one),
        // And one without its SYN, while a hello is awaited.
        tcp(2, 5, ACK, &one[..100]),
        tcp(2, 1 << 31, ACK, &one),
    ]);
    let expected = ["1 tcp a.example 1", "5 tcp a.example 2", "7 tcp a.example 1"];
    let rest = ["9 tcp a.example 1", "unfinished 1 evicted 0"];
    assert_eq!(rows, [&expected[..], &rest].concat());
}

/// A client of TLS 1.3 sends a ChangeCipherSpec record just before its second hello.
#[test]
fn a_hello_after_a_change_of_cipher_in_its_segment() {
    let (one, again) = (hello("a.example", 300), hello("b.example", 320));
    let change = [20, 3, 3, 0, 1, 1];
    let changed = |hello: &[u8]| [&change[..], hello].concat();
    let expected = ["1 tcp a.example 1", "2 tcp b.example 1"];
    let rows = shown(vec![
        tcp(1, 0, ACK, &one),
        tcp(1, 300, ACK, &changed(&again)),
        // Sent again: all of it, and each record.
        tcp(1, 300, ACK, &changed(&again)),
        tcp(1, 300, ACK, &change),
        tcp(1, 306, ACK, &again),
    ]);
    assert_eq!(rows, expected);
    let rows = shown(vec![
        // The record in a segment of its own, then once more together with the hello.
        tcp(1, 0, ACK, &one),
        tcp(1, 300, ACK, &change),
        tcp(1, 306, ACK, &again),
        tcp(1, 300, ACK, &changed(&again)),
    ]);
    assert_eq!(rows, ["1 tcp a.example 1", "3 tcp b.example 1"]);
    let rows = shown(vec![
        // In two segments, and the first of them again.
        tcp(1, 0, ACK, &changed(&one[..100])),
        tcp(1, 0, ACK, &changed(&one[..100])),
        tcp(1, 106, ACK, &one[100..]),
        // After the SYN, through the end of sequence numbers; and with the record alone first.
        tcp(2, u32::MAX - 1, SYN, &[]),
        tcp(2, u32::MAX, ACK, &changed(&one)),
        tcp(3, 9, SYN, &[]),
        tcp(3, 10, ACK, &change),
        tcp(3, 16, ACK, &one),
        // A piece of a hello that looks like the record belongs to the hello.
        tcp(4, 9, SYN, &[]),
        tcp(4, 10, ACK, &one[..100]),
        tcp(4, 110, ACK, &change),
    ]);
    let expected = ["3 tcp a.example 2", "5 tcp a.example 1", "8 tcp a.example 1"];
    assert_eq!(rows, [&expected[..], &["unfinished 1 evicted 0"]].concat());
    // The end of a handshake of TLS 1.2.
    let finished = [22, 3, 3, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0];
    let data = [23, 3, 3, 0, 9, 1];
    assert!(shown(vec![tcp(1, 0, ACK, &change)]).is_empty());
    assert!(shown(vec![tcp(1, 0, ACK, &changed(&finished))]).is_empty());
    assert!(shown(vec![tcp(1, 9, SYN, &[]), tcp(1, 10, ACK, &changed(&data))]).is_empty());
}

/// A client that got no answer sends its hello again and again, for longer than a flow is idle.
#[test]
fn a_hello_that_is_sent_again_is_no_other() {
    let bytes = hello("a.example", 300);
    let frame = |i: i64| (i * 8_000_000_000, tcp(1, 0, ACK, &bytes).bytes());
    let frames: Vec<_> = (0..20).map(frame).collect();
    let stages = stages(HELLO_IDLE_NS, HELLO_FLOWS_MAX, &["transport"]);
    assert_eq!(shown_at(stages, &frames), ["1 tcp"]);
}

#[test]
fn records_of_any_size() {
    let bytes = hello("a.example", 300);
    for size in [1, 5, 100, 294] {
        let stream = in_records(&bytes, size);
        let (first, second) = stream.split_at(stream.len() / 2);
        let rows = shown(vec![tcp(1, 0, ACK, first), tcp(1, first.len() as u32, ACK, second)]);
        assert_eq!(rows, ["2 tcp a.example 2"], "{size}");
    }
}

#[test]
fn other_streams_are_none() {
    let (bytes, syn) = (hello("a.example", 300), tcp(1, 0, SYN, &[]));
    let http = b"GET / HTTP/1.1\r\n";
    assert!(shown(vec![syn.clone(), tcp(1, 1, ACK, http), tcp(1, 17, ACK, http)]).is_empty());
    // A server says the same to a client.
    assert!(shown(vec![tcp(1, 0, SYN | ACK, &bytes)]).is_empty());
    // After something else a hello may begin all the same: in a proxy's tunnel, after STARTTLS.
    let rows = shown(vec![syn, tcp(1, 1, ACK, http), tcp(1, 17, ACK, &bytes)]);
    assert_eq!(rows, ["3 tcp a.example 1"]);
    assert!(shown(vec![udp(&[0xc0, 0, 0, 0, 1, 0, 0, 0, 5, 1, 1, 1, 1, 1])]).is_empty());
}

#[test]
fn one_that_does_not_complete_is_counted() {
    let bytes = hello("a.example", 300);
    let start = |port| tcp(port, 0, ACK, &bytes[..200]);
    assert_eq!(shown(vec![start(1), start(2)]), ["unfinished 2 evicted 0"]);
    // A byte is not enough to say what it is.
    assert!(shown(vec![tcp(1, 0, ACK, &bytes[..1])]).is_empty());
    // Idle for as long as it may, and a bit less.
    for (idle, expected) in [(1_000_000, "unfinished 1 evicted 0"), (1_000_001, "2 tcp")] {
        let frames = vec![start(1), tcp(1, 200, ACK, &bytes[200..])];
        let rows = shown_with(stages(idle, HELLO_FLOWS_MAX, &["transport"]), frames);
        assert_eq!(rows, [expected]);
    }
    // Longer than any is.
    let mut long = bytes.clone();
    (long[7], long[8]) = (0xff, 0xff);
    assert_eq!(shown(vec![tcp(1, 0, ACK, &long)]), ["unfinished 1 evicted 0"]);
    // In more packets than may be.
    let many = (0..300).map(|i| tcp(1, i, ACK, &bytes[i as usize..=i as usize])).collect();
    assert_eq!(shown(many), ["unfinished 1 evicted 0"]);
}

#[test]
fn beyond_its_bound_flows_are_evicted_and_counted() {
    let bytes = hello("a.example", 300);
    let start = |port| tcp(port, 0, ACK, &bytes[..200]);
    let rest = |port| tcp(port, 200, ACK, &bytes[200..]);
    let frames = vec![start(1), start(2), rest(1), start(3), rest(2), rest(3), start(4), rest(4)];
    let rows = shown_with(stages(HELLO_IDLE_NS, 2, &["transport"]), frames);
    assert_eq!(rows, ["3 tcp", "6 tcp", "8 tcp", "unfinished 0 evicted 1"]);
}

#[test]
fn quic_over_packets() {
    let stream = &hello("a.example", 1800)[HEADER_LEN..];
    let first = Initial::new(1, &[7; 8]);
    let one = crypto(first, stream, &[(900, 1795), (0, 100)]);
    // Later packets may have another destination ID, and the keys of the first.
    let later = Initial { keys_of: Some(&one), ..Initial::new(1, &[3; 4]) };
    let two = crypto(later, stream, &[(300, 900), (50, 120)]);
    let three = crypto(later, stream, &[(100, 300)]);
    let shown = |datagrams: &[&[u8]]| shown(datagrams.iter().map(|d| udp(d)).collect());
    let rows = shown(&[&one, &two, &two, &three, &three, &one]);
    assert_eq!(rows, ["4 quic a.example 3"]);
    let rows = shown(&[&[&one[..], &two].concat(), &three]);
    assert_eq!(rows, ["2 quic a.example 2"]);
    assert_eq!(shown(&[&one, &three]), ["unfinished 1 evicted 0"]);
    // It cannot be read without the first.
    assert!(shown(&[&two, &three]).is_empty());
}

#[test]
fn quic_after_retry_and_between_the_same_ports() {
    let stream = &hello("a.example", 600)[HEADER_LEN..];
    let all = &[(0, 595)][..];
    let shown = |datagrams: &[&[u8]]| shown(datagrams.iter().map(|d| udp(d)).collect());
    let first = crypto(Initial::new(1, &[7; 8]), stream, all);
    let retried = Initial { token: b"again", ..Initial::new(1, &[9; 8]) };
    // The same hello comes again; of a part of it nothing stays.
    assert_eq!(shown(&[&first, &crypto(retried, stream, all)]), ["1 quic a.example 1"]);
    let part = crypto(Initial::new(1, &[7; 8]), stream, &[(0, 300)]);
    let rest = crypto(retried, stream, &[(300, 595)]);
    let rows = shown(&[&part, &rest, &crypto(retried, stream, &[(0, 300)])]);
    assert_eq!(rows, ["3 quic a.example 2"]);
    // Another connection.
    let other = crypto(Initial::new(1, &[1; 8]), stream, all);
    assert_eq!(shown(&[&first, &other]), ["1 quic a.example 1", "2 quic a.example 1"]);
    let rows = shown(&[&part, &other]);
    assert_eq!(rows, ["2 quic a.example 1", "unfinished 1 evicted 0"]);
}

/// A hello after a HelloRetryRequest goes on where the first one ended.
#[test]
fn a_second_hello_of_one_quic_connection() {
    let one = &hello("a.example", 300)[HEADER_LEN..];
    let both = [one, &hello("b.example", 400)[HEADER_LEN..]].concat();
    let first = crypto(Initial::new(1, &[7; 8]), &both, &[(0, 295)]);
    let later = Initial { keys_of: Some(&first), ..Initial::new(1, &[]) };
    let second = crypto(later, &both, &[(400, 690), (200, 420)]);
    assert_eq!(
        shown(vec![udp(&first), udp(&second)]),
        ["1 quic a.example 1", "2 quic b.example 1"]
    );
}

#[test]
fn offsets_at_the_edges() {
    let stream = &hello("a.example", 300)[HEADER_LEN..];
    let far = [HELLO_MAX as u64 - 1, HELLO_MAX as u64, 1 << 32, (1 << 62) - 1];
    let far: Vec<u8> = far.iter().flat_map(|&at| crypto_frame(at, b"xy")).collect();
    let frames = [far, crypto_frame(0, stream)].concat();
    let packet = Initial::new(1, &[7; 8]).packet(&frames);
    assert_eq!(shown(vec![udp(&packet)]), ["1 quic a.example 1"]);
}
