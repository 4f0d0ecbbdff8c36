//! Capture by libpcap, on veth pairs in network namespaces: the same frames as by AF_PACKET and
//! from files, and every one of them accounted for.

#![cfg(target_os = "linux")]

mod wires;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use weir_capture::bpf::Filter;
use weir_capture::live::{
    ANY, Directions, Event, LiveOptions, PcapSource, devices, interfaces, open_live, open_pcap,
};
use weir_packet::craft::Frame;
use weir_packet::pcap::FileHeader;
use weir_packet::source::{FrameBatch, Gap, LinkType, Source};
use wires::{Sender, came, ip, namespace, veth};

/// Batches without a frame after which nothing is expected any more: half a minute.
const QUIET: usize = 300;

/// A namespace, where there is libpcap; else says by name that the test is skipped.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn ready(test: &str) -> bool {
    if let Err(e) = devices() {
        eprintln!("SKIPPED {test}: libpcap does not list devices ({e})");
        return false;
    }
    namespace(test)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn open(on: &[&str], options: LiveOptions) -> PcapSource {
    open_pcap(&names(on), options).unwrap_or_else(|e| panic!("{e}"))
}

fn refusal(on: &[&str], options: LiveOptions) -> String {
    open_pcap(&names(on), options).map(|_| ()).expect_err("refused").to_string()
}

fn stoppable() -> (LiveOptions, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    (LiveOptions { stop: Some(Arc::clone(&stop)), ..LiveOptions::default() }, stop)
}

/// Link type, length and bytes of a frame, and how it came.
type Got = (LinkType, u32, Vec<u8>, String);

/// The frames that come until so many are there.
fn read(source: &mut dyn Source, n: usize) -> Vec<Got> {
    let (mut batch, mut got, mut quiet) = (FrameBatch::new(), Vec::new(), 0);
    while got.len() < n && quiet < QUIET {
        if !source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
            break;
        }
        quiet = if batch.is_empty() { quiet + 1 } else { 0 };
        for i in 0..batch.len() {
            let (len, bytes) = (batch.lens()[i], batch.frame(i).to_vec());
            got.push((batch.link, len, bytes, came(&batch, i)));
        }
    }
    got
}

/// Ends a source that `stop` ends, and says how many frames came besides.
fn end(source: &mut dyn Source, stop: &AtomicBool) -> usize {
    stop.store(true, Ordering::Relaxed);
    let (mut batch, mut more) = (FrameBatch::new(), 0);
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        more += batch.len();
    }
    assert!(!source.fill(&mut batch).expect("the end stays the end"));
    more
}

/// The `i`th of many frames, each unlike the others.
fn frame(i: usize) -> Vec<u8> {
    let frame = Frame::ethernet().ipv4([10, 0, (i >> 8) as u8, i as u8], [192, 0, 2, 1]);
    let frame =
        if i.is_multiple_of(3) { frame.tcp(1000, 80) } else { frame.udp(1000 + i as u16 % 7, 53) };
    frame.payload(&vec![i as u8; 20 + i * 37 % 1200]).bytes()
}

/// Tagged frames, and one that is not.
fn tagged() -> Vec<Vec<u8>> {
    let udp = |f: Frame| f.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 53).payload(b"x").bytes();
    vec![
        udp(Frame::ethernet().vlan(5)),
        udp(Frame::ethernet()),
        udp(Frame::ethernet().tag(0x88a8, 0x6007).vlan(5)),
        Frame::ethernet().vlan(5).ipv6([1; 16], [2; 16]).tcp(1, 80).bytes(),
    ]
}

fn bytes(got: &[Got]) -> Vec<&[u8]> {
    got.iter().map(|(_, _, bytes, _)| &bytes[..]).collect()
}

#[test]
fn every_frame_comes_once_as_it_was_sent() {
    if !ready("every_frame_comes_once_as_it_was_sent") {
        return;
    }
    veth("v0", "v1");
    let (options, stop) = stoppable();
    let mut source = open(&["v1"], options);
    let said = source.describe();
    assert!(said[0].starts_with("v1: libpcap version "), "{said:?}");
    assert!(said[0].ends_with(", ETHERNET, times in nanoseconds"), "{said:?}");
    let sender = Sender::new("v0");
    let sent: Vec<Vec<u8>> = (0..5000).map(frame).chain(tagged()).collect();
    sent.iter().for_each(|f| sender.send(f));
    let got = read(&mut source, sent.len());
    assert_eq!(bytes(&got), sent);
    assert!(got.iter().all(|(link, len, bytes, _)| {
        *link == LinkType::ETHERNET && *len as usize == bytes.len()
    }));
    assert_eq!(end(&mut source, &stop), 0);
    let account = source.account();
    assert_eq!((account.received, account.filtered, account.lost.total()), (5004, 0, 0));
    assert_eq!(source.interfaces(), [("v1".to_owned(), account)]);
}

/// Packets that came until the end was asked for are read, though nobody read them before.
#[test]
fn what_has_come_is_read_at_the_end() {
    if !ready("what_has_come_is_read_at_the_end") {
        return;
    }
    veth("v0", "v1");
    let (options, stop) = stoppable();
    let mut source = open(&["v1"], options);
    let sender = Sender::new("v0");
    (0..3000).for_each(|i| sender.send(&frame(i)));
    assert_eq!(end(&mut source, &stop), 3000);
    assert_eq!((source.account().received, source.account().lost.total()), (3000, 0));
}

#[test]
fn batches_in_flight_keep_their_bytes() {
    if !ready("batches_in_flight_keep_their_bytes") {
        return;
    }
    veth("v0", "v1");
    let mut source = open(&["v1"], LiveOptions::default());
    let sender = Sender::new("v0");
    let (mut flight, mut n, mut quiet) = (Vec::new(), 0, 0);
    while n < 3000 {
        if quiet == 0 {
            (n..n + 100).for_each(|i| sender.send(&frame(i)));
        }
        let mut batch = FrameBatch::new();
        assert!(source.fill(&mut batch).expect("frames"));
        quiet = if batch.is_empty() { quiet + 1 } else { 0 };
        assert!(quiet < QUIET, "{:?}", source.account());
        // All that was sent has to come before more is.
        let mut come = batch.len();
        flight.push(batch);
        while come < 100 && n + come < 3000 && come > 0 {
            let mut batch = FrameBatch::new();
            assert!(source.fill(&mut batch).expect("frames"));
            come += batch.len();
            flight.push(batch);
        }
        n += come;
    }
    let held = flight.iter().flat_map(|b| (0..b.len()).map(|i| b.frame(i).to_vec()));
    assert!(held.eq((0..n).map(frame)));
}

#[test]
fn what_finds_no_room_is_counted() {
    if !ready("what_finds_no_room_is_counted") {
        return;
    }
    veth("v0", "v1");
    let (options, stop) = stoppable();
    let mut source = open(&["v1"], LiveOptions { buffer: 1 << 20, ..options });
    let sender = Sender::new("v0");
    (0..24_000).for_each(|i| sender.send(&frame(i)));
    stop.store(true, Ordering::Relaxed);
    let (mut batch, mut got, mut gaps) = (FrameBatch::new(), 0, Vec::<Gap>::new());
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        got += batch.len() as u64;
        gaps.extend(batch.gap());
    }
    let account = source.account();
    assert_eq!(account.received, got);
    assert!(account.lost.ring > 1000, "{account:?}");
    assert_eq!(account.received + account.lost.ring, 24_000, "{account:?}");
    assert_eq!(account.lost.total(), account.lost.ring, "{account:?}");
    let told: u64 = gaps.iter().map(|gap| gap.frames).sum();
    assert_eq!(told, account.lost.total(), "{gaps:?}");
}

#[test]
fn filters_mean_what_they_mean_for_files() {
    if !ready("filters_mean_what_they_mean_for_files") {
        return;
    }
    veth("v0", "v1");
    let sender = Sender::new("v0");
    let frames: Vec<_> = tagged().into_iter().chain((0..30).map(frame)).collect();
    for expression in
        ["udp port 53", "vlan", "vlan 5", "vlan 7 and vlan 5 and udp", "not vlan", "greater 500"]
    {
        let filter = Filter::new(expression).expect("libpcap is there");
        let file = FileHeader::new(LinkType::ETHERNET);
        let mut capture = file.to_bytes().to_vec();
        frames.iter().for_each(|f| file.put_record(&mut capture, 0, f.len() as u32, f));
        let options = weir_capture::Options { filter: Some(filter.clone()), ..Default::default() };
        let mut file = weir_capture::open_bytes("x", capture, &options).expect("a capture");
        let want = read(&mut *file, usize::MAX);
        assert!(!want.is_empty() && want.len() < frames.len(), "{expression}");
        for snaplen in [262_144, 30] {
            let (options, stop) = stoppable();
            let filter = Some(filter.clone());
            let mut source = open(&["v1"], LiveOptions { filter, snaplen, ..options });
            frames.iter().for_each(|f| sender.send(f));
            let got = read(&mut source, want.len());
            let cut: Vec<&[u8]> =
                want.iter().map(|(_, _, f, _)| &f[..f.len().min(snaplen as usize)]).collect();
            assert_eq!(bytes(&got), cut, "{expression}");
            assert_eq!(end(&mut source, &stop), 0, "{expression}");
            let account = source.account();
            assert_eq!(account.received, account.filtered + want.len() as u64, "{expression}");
        }
    }
}

#[test]
fn directions() {
    if !ready("directions") {
        return;
    }
    veth("v0", "v1");
    let all = [(Directions::In, 0..3), (Directions::Out, 3..5), (Directions::InOut, 0..5)];
    for (direction, range) in all {
        let (options, stop) = stoppable();
        let mut source = open(&["v1"], LiveOptions { direction, ..options });
        let (there, here) = (Sender::new("v0"), Sender::new("v1"));
        (0..3).for_each(|i| there.send(&frame(i)));
        (3..5).for_each(|i| here.send(&frame(i)));
        let got = read(&mut source, range.len());
        assert_eq!(bytes(&got), range.map(frame).collect::<Vec<_>>(), "{direction:?}");
        let way = match direction {
            Directions::In => "v1 in",
            Directions::Out => "v1 out",
            // libpcap does not say.
            Directions::InOut => "v1 -",
        };
        assert!(got.iter().all(|(.., came)| came == way), "{direction:?}");
        assert_eq!(end(&mut source, &stop), 0, "{direction:?}");
    }
}

/// The same cooked frames as by AF_PACKET, tags and all.
#[test]
fn any_is_all_interfaces_as_cooked_frames() {
    if !ready("any_is_all_interfaces_as_cooked_frames") {
        return;
    }
    veth("v0", "v1");
    let (options, stop) = stoppable();
    let mut theirs = open(&[ANY], options);
    assert_eq!(theirs.links(), [LinkType::LINUX_SLL2]);
    let (options, own_stop) = stoppable();
    let mut own = open_live(&names(&[ANY]), options).expect("opens");
    let sender = Sender::new("v0");
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    udp.send_to(b"once", udp.local_addr().expect("an address")).expect("sends");
    let plain = (0..3).map(frame).chain([tagged().remove(1)]);
    plain.for_each(|f| sender.send(&f));
    // Each twice, as v0 sends it and as v1 receives it; what the loopback carries once.
    let got = read(&mut theirs, 9);
    assert_eq!(got.len(), 9);
    assert_eq!(got, read(&mut *own, 9));
    assert_eq!((end(&mut theirs, &stop), end(&mut *own, &own_stop)), (0, 0));
}

#[test]
fn a_quiet_wire_says_what_time_it_is() {
    if !ready("a_quiet_wire_says_what_time_it_is") {
        return;
    }
    veth("v0", "v1");
    veth("w0", "w1");
    // On any the filter is applied here, and what it refuses is time that goes on, too.
    let udp = || Some(Filter::new("udp").expect("libpcap is there"));
    for (on, filter) in [(&["v1", "w1"][..], None), (&["v1"], udp()), (&[ANY], udp())] {
        let mut source = open(on, LiveOptions { filter, ..LiveOptions::default() });
        let (sender, mut batch) = (Sender::new("v0"), FrameBatch::new());
        sender.send(&frame(1));
        let mut last = i64::MIN;
        for turn in 0.. {
            assert!(turn < QUIET, "time does not go on: {on:?} {:?}", source.account());
            assert!(source.fill(&mut batch).expect("goes on"));
            last = batch.ts().iter().copied().fold(last, i64::max);
            if batch.reached().is_some_and(|reached| last > i64::MIN && reached >= last) {
                break;
            }
            if on == [ANY] {
                sender.send(&frame(3));
            }
        }
    }
}

#[test]
fn other_names_are_learned() {
    if !ready("other_names_are_learned") {
        return;
    }
    veth("v0", "v1");
    let (options, _stop) = stoppable();
    wires::other_names_are_learned(&mut open(&[ANY], options));
}

#[test]
fn interfaces_come_and_go() {
    if !ready("interfaces_come_and_go") {
        return;
    }
    veth("v0", "v1");
    veth("w0", "w1");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&seen);
    let tell = move |event: &Event| events.lock().expect("whole").push(event.clone());
    let options = LiveOptions { events: Some(Box::new(tell)), ..LiveOptions::default() };
    let mut source = open(&["v1", "w1"], options);
    let until = |source: &mut dyn Source, event: Event| {
        let mut batch = FrameBatch::new();
        for _ in 0..QUIET {
            if seen.lock().expect("whole").contains(&event) {
                seen.lock().expect("whole").clear();
                return;
            }
            assert!(source.fill(&mut batch).expect("goes on") && batch.is_empty());
        }
        panic!("{event} was not told");
    };
    ip("link set v1 down");
    until(&mut source, Event::Down("v1".to_owned()));
    ip("link set v1 up");
    until(&mut source, Event::Up("v1".to_owned()));
    let (v, w) = (Sender::new("v0"), Sender::new("w0"));
    (0..100).for_each(|i| v.send(&frame(i)));
    (0..100).for_each(|i| w.send(&frame(i)));
    assert_eq!(read(&mut source, 200).len(), 200);
    ip("link del v0");
    until(&mut source, Event::Gone("v1".to_owned()));
    (0..50).for_each(|i| w.send(&frame(i)));
    ip("link del w0");
    let (mut rest, mut batch) = (0, FrameBatch::new());
    while source.fill(&mut batch).expect("ends well") {
        rest += batch.len();
    }
    assert_eq!(rest, 50, "what came before the interface went is delivered");
    let accounts = source.interfaces();
    let counts: Vec<_> = accounts.iter().map(|(n, a)| (&n[..], a.received)).collect();
    assert_eq!(counts, [("v1", 100), ("w1", 150)]);
}

#[test]
fn what_is_asked_in_vain_is_said() {
    if !ready("what_is_asked_in_vain_is_said") {
        return;
    }
    veth("v0", "v1");
    let plain = LiveOptions::default;
    let told = refusal(&["v1", "v2"], plain());
    assert!(told.starts_with("v2: libpcap knows no such device; there are "), "{told}");
    assert!(told.contains("v1") && told.contains("lo"), "{told}");
    assert!(refusal(&["v1", ANY], plain()).contains("give it alone"));
    ip("link set v1 down");
    let told = refusal(&["v1"], plain());
    assert!(told.starts_with("v1: is down") && told.ends_with("ip link set v1 up"), "{told}");
    let stamps = weir_capture::live::Stamps::Adapter;
    ip("link set v1 up");
    let told = refusal(&["v1"], LiveOptions { stamps, ..plain() });
    assert!(told.contains("use --time-stamp-type host"), "{told}");
}

#[test]
fn devices_are_interfaces_and_more() {
    if !ready("devices_are_interfaces_and_more") {
        return;
    }
    veth("v0", "v1");
    let known = devices().expect("libpcap tells");
    for interface in interfaces().expect("the kernel tells") {
        let device = known.iter().find(|device| device.name == interface.name);
        let device = device.unwrap_or_else(|| panic!("{} is not listed", interface.name));
        assert_eq!((device.up, device.loopback), (interface.up, interface.loopback));
    }
    assert!(known.iter().any(|device| device.name == ANY && device.description.is_some()));
}
