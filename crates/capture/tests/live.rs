//! Capture from interfaces, on veth pairs in network namespaces.

#![cfg(target_os = "linux")]

mod wires;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use weir_capture::bpf::{Filter, FilterError};
use weir_capture::live::{
    ANY, Directions, Event, Handover, LiveOptions, Stamps, interfaces, open_live,
};
use weir_packet::craft::Frame;
use weir_packet::source::{FrameBatch, Gap, LinkType, Source};
use wires::{Sender, came, ip, namespace, veth};

/// Batches without a frame after which nothing is expected any more: half a minute.
const QUIET: usize = 300;

thread_local! {
    /// How frames are handed over in the test that runs.
    static HANDOVER: Cell<Handover> = const { Cell::new(Handover::Blocks) };
}

/// Runs a test in a namespace of its own for each way in which the kernel may hand frames over.
fn both(test: &str, run: impl Fn()) {
    for handover in [Handover::Blocks, Handover::AtOnce] {
        if !namespace(test) {
            return;
        }
        HANDOVER.set(handover);
        run();
    }
}

fn open(names: &[&str], options: LiveOptions) -> Box<dyn Source> {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let options = LiveOptions { handover: HANDOVER.get(), ..options };
    open_live(&names, options).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(names: &[&str], options: LiveOptions) -> String {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    open_live(&names, options).map(|_| ()).expect_err("refused").to_string()
}

/// A frame as it came.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Got {
    link: LinkType,
    ts: i64,
    len: u32,
    bytes: Vec<u8>,
    came: String,
}

/// Reads until so many frames are there, or the source ends.
fn read(source: &mut dyn Source, n: usize) -> Vec<Got> {
    let mut got = Vec::new();
    read_on(source, n, &mut got);
    got
}

/// Goes on until there are so many.
fn read_on(source: &mut dyn Source, n: usize, got: &mut Vec<Got>) {
    let (mut batch, mut quiet) = (FrameBatch::new(), 0);
    while got.len() < n && quiet < QUIET {
        if !source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
            break;
        }
        quiet = if batch.is_empty() { quiet + 1 } else { 0 };
        assert!(!batch.is_empty() || batch.reached().is_some());
        take(&batch, got);
    }
}

fn take(batch: &FrameBatch, got: &mut Vec<Got>) {
    for i in 0..batch.len() {
        assert_eq!(batch.seq()[i], got.len() as u64);
        let (ts, len, bytes) = (batch.ts()[i], batch.lens()[i], batch.frame(i).to_vec());
        assert_eq!(bytes.len(), batch.caplens()[i] as usize);
        got.push(Got { link: batch.link, ts, len, bytes, came: came(batch, i) });
    }
}

/// Ends a source that `stop` ends, and says what else came.
fn end(source: &mut dyn Source, stop: &AtomicBool) -> usize {
    stop.store(true, Ordering::Relaxed);
    let (mut batch, mut more) = (FrameBatch::new(), 0);
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        more += batch.len();
    }
    assert!(!source.fill(&mut batch).expect("the end stays the end"));
    more
}

fn stoppable() -> (LiveOptions, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    (LiveOptions { stop: Some(Arc::clone(&stop)), ..LiveOptions::default() }, stop)
}

/// The `i`th of many frames, each unlike the others.
fn frame(i: usize) -> Vec<u8> {
    let frame = Frame::ethernet().ipv4([10, 0, (i >> 8) as u8, i as u8], [192, 0, 2, 1]);
    let frame =
        if i.is_multiple_of(3) { frame.tcp(1000, 80) } else { frame.udp(1000 + i as u16 % 7, 53) };
    frame.payload(&vec![i as u8; 20 + i * 37 % 1200]).bytes()
}

fn bytes(got: &[Got]) -> Vec<&[u8]> {
    got.iter().map(|g| &g.bytes[..]).collect()
}

/// A filter, or nothing where libpcap is not installed.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn filter(expression: &str) -> Option<Filter> {
    match Filter::new(expression) {
        Err(FilterError::Library(why)) => {
            eprintln!("SKIPPED a test of capture filters: {why}");
            None
        }
        other => Some(other.unwrap()),
    }
}

#[test]
fn every_frame_comes_once_as_it_was_sent() {
    both("every_frame_comes_once_as_it_was_sent", || {
        veth("v0", "v1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], options);
        let sender = Sender::new("v0");
        let sent: Vec<Vec<u8>> = (0..5000).map(frame).collect();
        sent.iter().for_each(|f| sender.send(f));
        let got = read(&mut *source, sent.len());
        assert_eq!(bytes(&got), sent);
        assert!(
            got.iter().all(|g| g.link == LinkType::ETHERNET && g.len as usize == g.bytes.len())
        );
        assert!(got.is_sorted_by_key(|g| g.ts), "one processor sent, one ring was filled");
        assert_eq!(end(&mut *source, &stop), 0);
        let account = source.account();
        assert_eq!((account.received, account.filtered, account.lost.total()), (5000, 0, 0));
        assert_eq!(source.interfaces(), [("v1".to_owned(), account)]);
    });
}

#[test]
fn a_quiet_wire_says_what_time_it_is() {
    both("a_quiet_wire_says_what_time_it_is", || {
        veth("v0", "v1");
        let mut source = open(&["v1"], LiveOptions::default());
        let (sender, mut batch) = (Sender::new("v0"), FrameBatch::new());
        let mut reached = i64::MIN;
        for i in 0..5 {
            sender.send(&frame(i));
            // The reached time grows beyond the frame, and no frame comes that is older.
            let ts = read(&mut *source, 1)[0].ts;
            assert!(ts > reached, "frame {i} at {ts}, and {reached} was reached");
            while reached < ts {
                assert!(source.fill(&mut batch).expect("frames, or none"));
                assert!(batch.is_empty());
                reached = batch.reached().expect("a time").max(reached);
            }
            // Frames are numbered from 0 again.
            source = open(&["v1"], LiveOptions::default());
        }
    });
}

#[test]
fn what_finds_no_room_is_counted() {
    both("what_finds_no_room_is_counted", || {
        veth("v0", "v1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], LiveOptions { buffer: 0, ..options });
        let sender = Sender::new("v0");
        let sent: Vec<Vec<u8>> = (0..24_000).map(frame).collect();
        let (mut batches, mut got) = (Vec::new(), 0);
        // All blocks in flight: the batches keep what they refer to, whatever else is sent.
        for part in sent.chunks(8000) {
            part.iter().for_each(|f| sender.send(f));
            let mut quiet = 0;
            while got < 600 {
                let mut batch = FrameBatch::new();
                assert!(source.fill(&mut batch).expect("frames"));
                quiet = if batch.is_empty() { quiet + 1 } else { 0 };
                assert!(quiet < QUIET, "{:?}", source.account());
                got += batch.len();
                batches.push(batch);
            }
        }
        let held = batches.iter().flat_map(|b| (0..b.len()).map(|i| b.frame(i).to_vec()));
        assert!(held.eq(sent.iter().take(got).cloned()));
        // Gaps tell of all that is lost, one after the other.
        let mut gaps: Vec<Gap> = batches.iter().filter_map(FrameBatch::gap).collect();
        drop(batches);
        stop.store(true, Ordering::Relaxed);
        let mut batch = FrameBatch::new();
        while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
            got += batch.len();
            gaps.extend(batch.gap());
        }
        assert!(gaps.iter().all(|gap| gap.since <= gap.until), "{gaps:?}");
        assert!(gaps.is_sorted_by_key(|gap| (gap.since, gap.until)), "{gaps:?}");
        let told: u64 = gaps.iter().map(|gap| gap.frames).sum();
        assert_eq!(told, source.account().lost.total(), "{gaps:?}");
        let account = source.account();
        assert_eq!(account.received, got as u64);
        assert!(account.lost.ring > 1000, "{account:?}");
        assert_eq!(account.received + account.lost.ring, 24_000, "{account:?}");
        assert_eq!(account.lost.total(), account.lost.ring, "{account:?}");
    });
}

#[test]
fn blocks_go_round_while_batches_are_in_flight() {
    both("blocks_go_round_while_batches_are_in_flight", || {
        veth("v0", "v1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], LiveOptions { buffer: 0, ..options });
        let (sender, mut n) = (Sender::new("v0"), 0);
        let mut flight: Vec<(FrameBatch, usize)> = Vec::new();
        while n < 10_000 {
            (n..n + 200).for_each(|i| sender.send(&frame(i)));
            let mut from = n;
            n += 200;
            let mut quiet = 0;
            while from < n {
                let (mut batch, _) = match flight.len() {
                    0..4 => (FrameBatch::new(), 0),
                    _ => flight.remove(0),
                };
                assert!(source.fill(&mut batch).expect("frames"));
                let len = batch.len();
                quiet = if len == 0 { quiet + 1 } else { 0 };
                assert!(quiet < QUIET, "{:?}", source.account());
                flight.push((batch, from));
                from += len;
            }
            for (batch, from) in &flight {
                for i in 0..batch.len() {
                    assert_eq!(batch.frame(i), frame(from + i), "frame {}", from + i);
                }
            }
        }
        drop(flight);
        assert_eq!(end(&mut *source, &stop), 0);
        let account = source.account();
        assert_eq!((account.received, account.lost.total()), (10_000, 0));
    });
}

#[test]
fn flows_are_spread_over_rings_and_keep_their_order() {
    let by = |handover| [2, 4].map(|rings| (rings, handover));
    for (rings, handover) in [Handover::Blocks, Handover::AtOnce].into_iter().flat_map(by) {
        if !namespace("flows_are_spread_over_rings_and_keep_their_order") {
            return;
        }
        HANDOVER.set(handover);
        veth("v0", "v1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], LiveOptions { rings, ..options });
        let sender = Sender::new("v0");
        let flow = |i: usize| Frame::ethernet().ipv4([10, 0, 0, (i % 50) as u8], [192, 0, 2, 1]);
        let sent: Vec<_> = (0..4000u32)
            .map(|i| flow(i as usize).udp(7, 8).payload(&i.to_be_bytes()).bytes())
            .collect();
        sent.iter().for_each(|f| sender.send(f));
        let got = read(&mut *source, sent.len());
        assert_eq!(end(&mut *source, &stop), 0);
        assert_eq!((got.len(), source.account().lost.total()), (4000, 0), "{rings} rings");
        let by_flow = |frames: &[&[u8]]| {
            let mut flows: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
            frames.iter().for_each(|f| flows.entry(f[29]).or_default().push(f.to_vec()));
            flows
        };
        let sent: Vec<&[u8]> = sent.iter().map(|f| &f[..]).collect();
        assert_eq!(by_flow(&bytes(&got)), by_flow(&sent), "{rings} rings");
    }
}

/// Frames of both directions, in two families, between two tags or none.
fn of_a_flow(i: usize, back: bool) -> Vec<u8> {
    let (here, there) = ([10, 0, 0, (i % 40) as u8], [192, 0, 2, 1]);
    let (from, to) = if back { (there, here) } else { (here, there) };
    let frame =
        if i.is_multiple_of(3) { Frame::ethernet().vlan(6).vlan(5) } else { Frame::ethernet() };
    let frame = match i % 2 {
        0 => frame.ipv4(from, to),
        _ => frame.ipv6(std::array::from_fn(|n| from[n % 4]), std::array::from_fn(|n| to[n % 4])),
    };
    let (a, b) = if back { (53, 7) } else { (7, 53) };
    frame.udp(a, b).payload(&(i as u32).to_be_bytes()).bytes()
}

/// Both directions of a flow come by one ring, received or sent: their order is that on the wire.
#[test]
fn both_directions_of_a_flow_keep_their_order() {
    for direction in [Directions::In, Directions::Out] {
        if !namespace("both_directions_of_a_flow_keep_their_order") {
            return;
        }
        veth("v0", "v1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], LiveOptions { rings: 8, direction, ..options });
        let sender = Sender::new(if direction == Directions::In { "v0" } else { "v1" });
        for i in 0..2400 {
            sender.send(&of_a_flow(i, i / 120 % 2 == 1));
        }
        let got = read(&mut *source, 2400);
        assert_eq!(end(&mut *source, &stop), 0);
        assert_eq!((got.len(), source.account().lost.total()), (2400, 0), "{direction:?}");
        let mut last = BTreeMap::new();
        for frame in &got {
            let n = frame.bytes.last_chunk().copied().map_or(0, u32::from_be_bytes);
            let before = last.insert(n % 120, n);
            assert!(before.is_none_or(|before| before < n), "{n} after {before:?}");
        }
        assert_eq!(last.len(), 120);
    }
}

/// Blocks of a ring were used up in 20 ms each, however few frames were in them: a reader that
/// paused for a second lost what came then, and with several rings the earlier.
#[test]
fn a_ring_that_is_not_read_held_time_and_not_frames() {
    const ROUNDS: usize = 30;
    for rings in [1, 8] {
        both("a_ring_that_is_not_read_held_time_and_not_frames", || {
            veth("v0", "v1");
            let (options, stop) = stoppable();
            let mut source = open(&["v1"], LiveOptions { rings, buffer: 0, ..options });
            let sender = Sender::new("v0");
            for i in 0..20 * ROUNDS {
                sender.send(&of_a_flow(i, false));
                if i % 20 == 19 {
                    wires::pause();
                }
            }
            let mut got = read(&mut *source, 20 * ROUNDS);
            // Frames that come now are in their ring again, after those that overflowed.
            (20 * ROUNDS..25 * ROUNDS).for_each(|i| sender.send(&of_a_flow(i, false)));
            read_on(&mut *source, 25 * ROUNDS, &mut got);
            assert_eq!(end(&mut *source, &stop), 0);
            let account = source.account();
            assert_eq!((account.received, account.lost.total()), (25 * ROUNDS as u64, 0));
            let slack_ns = if rings == 1 { 0 } else { 25_000_000 };
            let mut last = BTreeMap::new();
            for (frame, next) in got.iter().zip(&got[1..]) {
                assert!(next.ts >= frame.ts - slack_ns, "{rings} rings");
                let n = frame.bytes.last_chunk().copied().map_or(0, u32::from_be_bytes);
                let before = last.insert(n % 120, n);
                assert!(before.is_none_or(|before| before < n), "{rings}: {n} after {before:?}");
            }
        });
    }
}

#[test]
fn several_interfaces_have_accounts_of_their_own() {
    both("several_interfaces_have_accounts_of_their_own", || {
        veth("v0", "v1");
        veth("w0", "w1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1", "w1"], LiveOptions { rings: 2, ..options });
        let (v, w) = (Sender::new("v0"), Sender::new("w0"));
        for i in 0..900 {
            v.send(&frame(i));
            if i % 3 == 0 {
                w.send(&frame(i));
            }
        }
        let got = read(&mut *source, 1200);
        assert_eq!(end(&mut *source, &stop), 0);
        let by = |name: &str| got.iter().filter(|g| g.came == name).count();
        assert_eq!((by("v1 in"), by("w1 in"), got.len()), (900, 300, 1200));
        let accounts = source.interfaces();
        let counts: Vec<_> = accounts.iter().map(|(n, a)| (&n[..], a.received)).collect();
        assert_eq!(counts, [("v1", 900), ("w1", 300)]);
        assert_eq!(source.account().received, 1200);
    });
}

/// Tagged frames, and one that is not.
fn tagged() -> Vec<Vec<u8>> {
    let udp = |f: Frame| f.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 53).payload(b"x").bytes();
    vec![
        udp(Frame::ethernet().vlan(5)),
        udp(Frame::ethernet()),
        udp(Frame::ethernet().tag(0x88a8, 0x6007).vlan(5)),
        udp(Frame::ethernet().vlan(4095)),
        udp(Frame::ethernet().vlan(0)),
        Frame::ethernet().vlan(5).ipv6([1; 16], [2; 16]).tcp(1, 80).bytes(),
    ]
}

#[test]
fn tags_are_where_they_were() {
    both("tags_are_where_they_were", || {
        veth("v0", "v1");
        let mut source = open(&["v1"], LiveOptions::default());
        let (sender, sent) = (Sender::new("v0"), tagged());
        sent.iter().for_each(|f| sender.send(f));
        let got = read(&mut *source, sent.len());
        assert_eq!(bytes(&got), sent);
        assert!(got.iter().all(|g| g.len as usize == g.bytes.len()));
        // Cut before, in and behind the tag.
        for snaplen in [1, 11, 12, 13, 15, 16, 17, 20] {
            let mut source = open(&["v1"], LiveOptions { snaplen, ..LiveOptions::default() });
            sent.iter().for_each(|f| sender.send(f));
            for (got, sent) in read(&mut *source, sent.len()).iter().zip(&sent) {
                assert_eq!(got.bytes, sent[..snaplen as usize], "{snaplen}");
                assert_eq!(got.len as usize, sent.len());
            }
        }
    });
}

#[test]
fn filters_mean_what_they_mean_for_files() {
    both("filters_mean_what_they_mean_for_files", || {
        veth("v0", "v1");
        let sender = Sender::new("v0");
        let ethernet = LinkType::ETHERNET;
        let mut frames = tagged();
        frames.extend((0..30).map(frame));
        frames.push(Frame::ethernet().ipv6([1; 16], [2; 16]).tcp(1, 80).payload(&[7; 300]).bytes());
        let expressions = [
            "udp port 53",
            "vlan",
            "vlan 5",
            "vlan 7 and vlan 5 and udp",
            "not vlan",
            "ip6",
            "vlan and ip6 and tcp port 80",
            "tcp or vlan 4095",
            "greater 500",
            "ip[2:2] > 400",
        ];
        for expression in expressions {
            let Some(filter) = filter(expression) else { return };
            let file = weir_packet::pcap::FileHeader::new(ethernet);
            let mut capture = file.to_bytes().to_vec();
            frames.iter().for_each(|f| file.put_record(&mut capture, 0, f.len() as u32, f));
            let options =
                weir_capture::Options { filter: Some(filter.clone()), ..Default::default() };
            let mut read_file =
                weir_capture::open_bytes("x", capture, &options).expect("a capture");
            let (mut batch, mut want) = (FrameBatch::new(), Vec::new());
            while read_file.fill(&mut batch).expect("whole") {
                want.extend((0..batch.len()).map(|i| batch.frame(i).to_vec()));
            }
            assert!(!want.is_empty() && want.len() < frames.len(), "{expression}");
            for snaplen in [262_144, 64] {
                let (options, stop) = stoppable();
                let filter = Some(filter.clone());
                let mut source = open(&["v1"], LiveOptions { filter, snaplen, ..options });
                frames.iter().for_each(|f| sender.send(f));
                let got = read(&mut *source, want.len());
                let cut: Vec<&[u8]> =
                    want.iter().map(|f| &f[..f.len().min(snaplen as usize)]).collect();
                assert_eq!(bytes(&got), cut, "{expression}");
                assert_eq!(end(&mut *source, &stop), 0, "{expression}");
                let account = source.account();
                assert_eq!(account.received, account.filtered + want.len() as u64, "{expression}");
            }
        }
    });
}

#[test]
fn directions() {
    both("directions", || {
        veth("v0", "v1");
        for (direction, n) in [(Directions::In, 3), (Directions::Out, 2), (Directions::InOut, 5)] {
            let (options, stop) = stoppable();
            let mut source = open(&["v1"], LiveOptions { direction, ..options });
            let (there, here) = (Sender::new("v0"), Sender::new("v1"));
            (0..3).for_each(|i| there.send(&frame(i)));
            (3..5).for_each(|i| here.send(&frame(i)));
            let got = read(&mut *source, n);
            for g in &got {
                let sent_here = (3..5).any(|i| g.bytes == frame(i));
                assert_eq!(g.came, if sent_here { "v1 out" } else { "v1 in" });
            }
            let mut got: Vec<_> = got.into_iter().map(|g| g.bytes).collect();
            got.sort();
            let mut want: Vec<_> = (5 - n..5).map(frame).collect();
            if direction == Directions::In {
                want = (0..3).map(frame).collect();
            } else if direction == Directions::Out {
                want = (3..5).map(frame).collect();
            }
            want.sort();
            assert_eq!(got, want, "{direction:?}");
            assert_eq!(end(&mut *source, &stop), 0, "{direction:?}");
        }
    });
}

#[test]
fn what_the_loopback_carries_comes_once() {
    both("what_the_loopback_carries_comes_once", || {
        for name in ["lo", ANY] {
            let (options, stop) = stoppable();
            let mut source = open(&[name], options);
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let to = socket.local_addr().expect("an address");
            for i in 0..10u8 {
                socket.send_to(&[i; 9], to).expect("sends");
            }
            let got = read(&mut *source, 10);
            assert_eq!(end(&mut *source, &stop), 0, "{name}");
            let payloads: Vec<u8> = got.iter().map(|g| g.bytes[g.bytes.len() - 1]).collect();
            assert_eq!(payloads, (0..10).collect::<Vec<u8>>(), "{name}");
            assert!(got.iter().all(|g| g.came == "lo in"), "{name}");
            let head = if name == ANY { 20 } else { 14 };
            assert_eq!(got[0].bytes.len(), head + 20 + 8 + 9, "{name}");
        }
    });
}

#[test]
fn any_is_all_interfaces_as_cooked_frames() {
    both("any_is_all_interfaces_as_cooked_frames", || {
        veth("v0", "v1");
        let index = |name: &str| {
            interfaces().expect("interfaces").iter().find(|i| i.name == name).expect("there").index
        };
        let (options, stop) = stoppable();
        let filter = filter("udp port 53");
        let filtered = filter.is_some();
        let mut source = open(&[ANY], LiveOptions { filter, ..options });
        let sender = Sender::new("v0");
        let payload =
            |f: Frame| f.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 53).payload(b"x").bytes();
        let (plain, tagged) = (payload(Frame::ethernet()), payload(Frame::ethernet().vlan(5)));
        sender.send(&plain);
        sender.send(&Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).tcp(1, 80).bytes());
        sender.send(&tagged);
        if !filtered {
            return;
        }
        // Each twice: as v0 sends it, and as v1 receives it. A tag hides what is behind it from a
        // filter, here as in files.
        let got = read(&mut *source, 2);
        assert_eq!(end(&mut *source, &stop), 0);
        assert!(got.iter().all(|g| g.link == LinkType::LINUX_SLL2));
        let sll2 = |name: &str, kind: u8| {
            let mut head = vec![8, 0, 0, 0];
            head.extend(index(name).to_be_bytes());
            head.extend([0, 1, kind, 6]);
            head.extend(&plain[6..12]);
            head.extend([0, 0]);
            [&head[..], &plain[14..]].concat()
        };
        assert_eq!(bytes(&got), [sll2("v0", 4), sll2("v1", 3)]);
        assert_eq!([&got[0].came[..], &got[1].came], ["v0 out", "v1 in"]);
        let account = source.account();
        assert_eq!((account.received, account.filtered), (6, 4));

        let (options, stop) = stoppable();
        let mut source = open(&[ANY], LiveOptions { direction: Directions::In, ..options });
        sender.send(&tagged);
        let got = read(&mut *source, 1);
        assert_eq!(end(&mut *source, &stop), 0);
        assert_eq!(got[0].bytes[..2], [0x81, 0]);
        assert_eq!(got[0].bytes[20..], tagged[14..]);
        assert_eq!(got[0].len as usize, tagged.len() + 6);
    });
}

#[test]
fn other_names_are_learned() {
    both("other_names_are_learned", || {
        veth("v0", "v1");
        let (options, _stop) = stoppable();
        wires::other_names_are_learned(&mut *open(&[ANY], options));
    });
}

#[test]
fn interfaces_come_and_go() {
    both("interfaces_come_and_go", || {
        veth("v0", "v1");
        veth("w0", "w1");
        ip("link set w1 down");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&seen);
        let tell = move |event: &Event| events.lock().expect("whole").push(event.clone());
        let options =
            LiveOptions { events: Some(Box::new(tell)), rings: 2, ..LiveOptions::default() };
        let mut source = open(&["v1", "w1"], options);
        let mut batch = FrameBatch::new();
        let mut until = |source: &mut dyn Source, event: Event| {
            for _ in 0..QUIET {
                if seen.lock().expect("whole").contains(&event) {
                    seen.lock().expect("whole").clear();
                    return;
                }
                assert!(source.fill(&mut batch).expect("goes on") && batch.is_empty());
            }
            panic!("{event} was not told");
        };
        until(&mut *source, Event::Down("w1".to_owned()));
        ip("link set w1 up");
        until(&mut *source, Event::Up("w1".to_owned()));
        ip("link set v1 down");
        until(&mut *source, Event::Down("v1".to_owned()));
        ip("link set v1 up");
        until(&mut *source, Event::Up("v1".to_owned()));
        let (v, w) = (Sender::new("v0"), Sender::new("w0"));
        (0..100).for_each(|i| v.send(&frame(i)));
        (0..100).for_each(|i| w.send(&frame(i)));
        assert_eq!(read(&mut *source, 200).len(), 200);
        ip("link del v0");
        until(&mut *source, Event::Gone("v1".to_owned()));
        (0..50).for_each(|i| w.send(&frame(i)));
        ip("link del w0");
        let mut rest = 0;
        let mut batch = FrameBatch::new();
        while source.fill(&mut batch).expect("ends well") {
            rest += batch.len();
        }
        assert_eq!(rest, 50, "what came before the interface went is delivered");
        let accounts = source.interfaces();
        let counts: Vec<_> = accounts.iter().map(|(n, a)| (&n[..], a.received)).collect();
        assert_eq!(counts, [("v1", 100), ("w1", 150)]);
        assert!(seen.lock().expect("whole").contains(&Event::Gone("w1".to_owned())));
    });
}

#[test]
fn what_is_asked_in_vain_is_said() {
    if !namespace("what_is_asked_in_vain_is_said") {
        return;
    }
    veth("v0", "v1");
    let plain = LiveOptions::default;
    let missing = "v2: there is no such interface; there are lo, v1, v0, any";
    assert_eq!(refusal(&["v1", "v2"], plain()), missing);
    assert_eq!(
        refusal(&["v1", "v0", "v1"], plain()),
        "v1: is given twice; its frames would count twice"
    );
    assert!(refusal(&["v1", ANY], plain()).contains("give it alone"));
    assert!(refusal(&["v1"], LiveOptions { rings: 65, ..plain() }).contains("1 to 64"));
    assert!(refusal(&["v1"], LiveOptions { buffer: usize::MAX, ..plain() }).contains("KiB"));
    for stamps in [Stamps::Adapter, Stamps::AdapterUnsynced] {
        let told = refusal(&["v1"], LiveOptions { stamps, ..plain() });
        assert!(told.starts_with("v1: its adapter puts no times on"), "{told}");
    }
    if let Some(filter) = filter("inbound") {
        let told = refusal(&["v1"], LiveOptions { filter: Some(filter), ..plain() });
        assert!(told.starts_with("v1: capture filter 'inbound': "), "{told}");
    }
}

#[test]
fn a_filter_that_matches_nothing_here_lets_nothing_through() {
    both("a_filter_that_matches_nothing_here_lets_nothing_through", || {
        ip("tuntap add dev t0 mode tun");
        ip("link set t0 up");
        let Some(filter) = filter("arp") else { return };
        let (options, stop) = stoppable();
        let mut source = open(&["t0"], LiveOptions { filter: Some(filter), ..options });
        assert_eq!(end(&mut *source, &stop), 0);
        let there = interfaces().expect("interfaces");
        assert_eq!(there.iter().find(|i| i.name == "t0").map(|i| i.link), Some(LinkType::RAW));
    });
}

/// Frames that are longer than the slots of their ring: receivers join segments, and an MTU may be
/// made larger while it is captured.
#[test]
fn frames_longer_than_a_slot_come_whole_and_in_order() {
    both("frames_longer_than_a_slot_come_whole_and_in_order", || {
        veth("v0", "v1");
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], options);
        ip("link set v0 mtu 65535");
        ip("link set v1 mtu 65535");
        let sender = Sender::new("v0");
        let long =
            |i: usize| [60, 1900, 1933, 1934, 1935, 2048, 9000, 40_000, 65_500][i % 9] + i / 9;
        let frame = |i: usize| {
            let frame = Frame::ethernet();
            let frame = if i % 4 == 3 { frame.vlan(5) } else { frame };
            let frame = frame.ipv4([10, 0, 0, i as u8], [192, 0, 2, 1]).udp(1, 53);
            let mut bytes = frame.bytes();
            bytes.resize(long(i).min(65_530), i as u8);
            bytes
        };
        let mut batch = FrameBatch::new();
        for i in 0..90 {
            sender.send(&frame(i));
            let mut got = Vec::new();
            for _ in 0..QUIET {
                assert!(source.fill(&mut batch).expect("goes on"));
                if !batch.is_empty() {
                    got.extend((0..batch.len()).map(|n| batch.frame(n).to_vec()));
                    break;
                }
            }
            assert!(got == [frame(i)], "frame {i} of {} bytes", frame(i).len());
            assert_eq!(batch.lens()[0] as usize, frame(i).len());
        }
        assert_eq!(end(&mut *source, &stop), 0);
        assert_eq!((source.account().received, source.account().lost.total()), (90, 0));
    });
}

/// A frame waited for others in its block, up to 40 ms, also where it was to go on. A frame sent by
/// a virtual wire has been received when the call returns that sent it, but for a processor that is
/// busy.
#[test]
fn a_frame_is_there_at_once_where_that_is_asked_for() {
    if !namespace("a_frame_is_there_at_once_where_that_is_asked_for") {
        return;
    }
    veth("v0", "v1");
    HANDOVER.set(Handover::AtOnce);
    let mut source = open(&["v1"], LiveOptions::default());
    let (sender, mut batch, mut at_once) = (Sender::new("v0"), FrameBatch::new(), 0);
    for i in 0..200 {
        assert!(!source.is_ready());
        sender.send(&frame(i));
        at_once += usize::from(source.is_ready());
        while source.fill(&mut batch).expect("goes on") && batch.is_empty() {}
        assert_eq!((batch.len(), batch.frame(0)), (1, &frame(i)[..]));
        batch.clear();
    }
    assert!(at_once > 100, "{at_once} of 200");
}
