//! Packets that go out on wires: which arrive at the other end, and that they are the ones that
//! came. Each test makes network namespaces of its own.

mod by_xdp;
#[path = "../common/mod.rs"]
mod common;
mod functions;
mod space;
mod steering;
mod tunnels;

use common::{files, root, workplace};
use space::{Space, Tap, until};
use std::path::Path;
use std::process::{Command, Output};
use weir_packet::craft::Frame;
use weir_packet::pcap::{ByteOrder, FileHeader};
use weir_packet::source::{FrameBatch, LinkType};

/// The frames of a capture that were captured whole, with their link types.
pub(crate) fn frames(path: &Path) -> Vec<(LinkType, Vec<u8>)> {
    let options = weir_capture::Options { any_link: true, ..Default::default() };
    let name = path.to_str().expect("a plain path");
    let mut source = weir_capture::open(name, &options).unwrap_or_else(|e| panic!("{e}"));
    let (mut batch, mut all) = (FrameBatch::new(), Vec::new());
    while source.fill(&mut batch).unwrap_or_else(|e| panic!("{e}")) {
        let whole = (0..batch.len()).filter(|&i| batch.caplens()[i] == batch.lens()[i]);
        all.extend(whole.map(|i| (batch.link, batch.frame(i).to_vec())));
    }
    all
}

/// The frames of a capture of Ethernet.
pub(crate) fn fixture(name: &str) -> Vec<Vec<u8>> {
    let all = frames(&root().join("fixtures").join(name)).into_iter();
    all.map(|(_, bytes)| bytes).collect()
}

/// A capture of such frames.
pub(crate) fn capture(link: LinkType, frames: &[Vec<u8>]) -> Vec<u8> {
    let header = header(link);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(records(frames));
    bytes
}

/// The header of a capture of such frames.
pub(crate) fn header(link: LinkType) -> FileHeader {
    let order = ByteOrder::Little;
    FileHeader { order, nanos: true, modified: false, version: (2, 4), snaplen: 0, link }
}

/// Frames as records of a capture.
pub(crate) fn records(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        header(LinkType::ETHERNET).put_record(&mut bytes, 0, frame.len() as u32, frame);
    }
    bytes
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The line of the ledger that begins so.
#[track_caller]
pub(crate) fn has_line(ledger: &str, words: &str) {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ledger.lines().any(|line| squeezed(line).starts_with(words)), "{words}:\n{ledger}");
}

/// Every frame of every Ethernet capture, byte for byte and in order, with any number of workers,
/// whether it passes or is forwarded.
#[test]
fn frames_leave_by_an_interface_as_they_came() {
    let test = "wires::frames_leave_by_an_interface_as_they_came";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let mut all = Vec::new();
    for (n, path) in files("fixtures", &[".pcap", ".pcapng"]).iter().enumerate() {
        let before = frames(path);
        let ethernet = before.iter().filter(|(link, _)| *link == LinkType::ETHERNET);
        let sent: Vec<Vec<u8>> = ethernet.map(|(_, bytes)| bytes.clone()).collect();
        if sent.is_empty() {
            continue;
        }
        let read = path.to_str().expect("a plain path");
        let workers = ["1", "2", "4"][n % 3];
        let args = match n % 2 {
            0 => ["-e", "packets | pass", "-w", "v0"],
            _ => ["-e", "param out: string = \"x.pcap\"\npackets | forward out", "-p", "out=v0"],
        };
        let args = [&["run", "-r", read, "-j", workers], &args[..]].concat();
        let ledger = space.weir(folder.path(), &args);
        let word = if n % 2 == 0 { "passed" } else { "sent" };
        has_line(&ledger, &format!("{word} {} packet", sent.len()));
        all.extend(sent);
        assert!(tap.frames(all.len()) == all, "{read}");
    }
    assert!(all.len() > 3000, "{} frames", all.len());
}

#[test]
fn what_an_interface_cannot_take_is_counted_by_reason() {
    let test = "wires::what_an_interface_cannot_take_is_counted_by_reason";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    space.ip("link set v0 mtu 1500");
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let frame = |len: usize, tags: usize| {
        let mut frame = vec![2; len];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        (0..tags).for_each(|_| drop(frame.splice(12..12, [0x81, 0, 0, 5])));
        frame
    };
    // As long as its MTU allows, with a tag, and without a header.
    let sent = [frame(1514, 0), frame(1515, 0), frame(60, 0), frame(1514, 1), frame(1516, 1)];
    let sent = [&sent[..], &[vec![3; 13], vec![4; 14]]].concat();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let args = ["run", "-e", "packets | forward \"v0\"", "-r", "a.pcap"];
    let ledger = space.weir(folder.path(), &args);
    has_line(&ledger, "sent 4 packets to v0, ");
    has_line(&ledger, "refused 3 by v0: 1 shorter than a header of its frames; 2 longer than its");
    let want: Vec<_> = [0, 2, 3, 6].into_iter().map(|i| sent[i].clone()).collect();
    assert!(tap.frames(4) == want);
    // What the snap length cut is not the frame that came; what `trim` cut is as it is to be.
    let mut cut = header(LinkType::ETHERNET).to_bytes().to_vec();
    header(LinkType::ETHERNET).put_record(&mut cut, 0, 200, &sent[0][..90]);
    std::fs::write(folder.path().join("cut.pcap"), cut).expect("writes");
    let args = ["run", "-e", "packets | pass", "-w", "v0", "-r", "cut.pcap"];
    let ledger = space.weir(folder.path(), &args);
    has_line(&ledger, "passed 0 packets, 0 bytes");
    has_line(&ledger, "refused 1: 1 cut by the snap length: capture whole frames");
    let args = ["run", "-e", "packets | trim 80 | pass", "-w", "v0", "-r", "cut.pcap"];
    has_line(&space.weir(folder.path(), &args), "passed 1 packet, 200 bytes");
    assert_eq!(tap.frames(5)[4], sent[0][..80]);
    // IP packets have no Ethernet header.
    let args = ["run", "-e", "packets | pass", "-w", "v0", "-r", "fixtures/raw.pcap"];
    let ledger = space.weir(folder.path(), &args);
    has_line(&ledger, "passed 0 packets");
    assert!(ledger.contains("of another link type than it takes"), "{ledger}");
}

/// It goes down, comes back, is removed and made anew; a run survives all of it.
#[test]
fn an_interface_may_go_and_come_back() {
    let test = "wires::an_interface_may_go_and_come_back";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    let frame = |n: u8| [&[2; 12][..], &[0x08, 0], &[n; 50]].concat();
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    let mut run = space.stream(folder.path(), &["run", "-e", "packets | forward \"v0\""]);
    run.write(&header(LinkType::ETHERNET).to_bytes());
    run.write(&records(&[frame(1)]));
    tap.frames(1);
    space.ip("link set v0 down");
    run.write(&records(&[frame(2), frame(3)]));
    run.told("v0: is down or gone", 1);
    space.ip("link set v0 up");
    run.write(&records(&[frame(4)]));
    run.told("v0: is back", 1);
    assert_eq!(tap.frames(2), [frame(1), frame(4)]);
    // Its peer down, it has no carrier.
    space.ip("link set v1 down");
    run.write(&records(&[frame(5)]));
    run.told("v0: is down or gone", 2);
    space.ip("link delete v0");
    drop(tap);
    space.veth("v0", "v1");
    let Some(tap) = Tap::start(test, &space, "v1", folder.path()) else { return };
    run.write(&records(&[frame(6)]));
    run.told("v0: is back", 2);
    assert_eq!(tap.frames(1), [frame(6)]);
    let ledger = run.end();
    has_line(&ledger, "sent 3 packets to v0, 192 bytes");
    has_line(&ledger, "refused 3 by v0: 3 while it was down or gone");
}

#[test]
fn a_queue_that_stays_full_is_counted() {
    let test = "wires::a_queue_that_stays_full_is_counted";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    // Nobody reads what the kernel sends by this device, so its queue fills.
    let mut idle = space.stream(folder.path(), &["run", "-e", "packets | pass", "-w", "tap:t0"]);
    idle.write(&header(LinkType::ETHERNET).to_bytes());
    until("t0 is up", || {
        let output = space.run(|| Command::new("ip").args(["link", "show", "t0"]).output());
        let output = output.expect("ip, of iproute2");
        String::from_utf8_lossy(&output.stdout).contains(",UP").then_some(())
    });
    space.ip("link set t0 txqueuelen 100");
    let sent: Vec<Vec<u8>> = (0..300u32).map(|n| vec![n as u8; 60]).collect();
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let args = ["run", "-e", "packets | pass", "-w", "t0", "-r", "a.pcap"];
    let ledger = space.weir(folder.path(), &args);
    let number = |word: &str| -> u64 {
        let line =
            ledger.lines().find(|l| l.starts_with(word)).unwrap_or_else(|| panic!("{ledger}"));
        let n = line.split_whitespace().nth(1).expect("a number").trim_end_matches(':');
        n.parse().expect("a number")
    };
    assert_eq!(number("passed") + number("refused"), 300, "{ledger}");
    assert!(number("passed") >= 100 && number("refused") > 0, "{ledger}");
    assert!(ledger.contains("while its queue was full"), "{ledger}");
    idle.end();
}

#[test]
fn devices_receive_what_is_written_to_them() {
    let test = "wires::devices_receive_what_is_written_to_them";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    let sent = fixture("mixed.pcap");
    let ip: Vec<Vec<u8>> = sent
        .iter()
        .filter(|frame| matches!(frame[12..14], [0x08, 0x00] | [0x86, 0xdd]))
        .map(|frame| frame[14..].to_vec())
        .collect();
    assert!(!ip.is_empty() && ip.len() < sent.len(), "some are no IP packets");
    for (name, want) in [("tap:weir0", &sent), ("tun:weir0", &ip)] {
        let args = ["run", "-e", "packets | pass", "-w", name];
        let mut run = space.stream(folder.path(), &args);
        run.write(&header(LinkType::ETHERNET).to_bytes());
        until("the device is there", || {
            let show = || Command::new("ip").args(["link", "show", "up", "weir0"]).output();
            let output = space.run(show).expect("ip, of iproute2");
            (!output.stdout.is_empty()).then_some(())
        });
        let Some(tap) = Tap::start(test, &space, "weir0", folder.path()) else { return };
        run.write(&records(&sent));
        assert!(tap.frames(want.len()) == *want, "{name}");
        let ledger = run.end();
        has_line(&ledger, &format!("passed {} packets", want.len()));
        if want.len() < sent.len() {
            let refused = sent.len() - want.len();
            has_line(&ledger, &format!("refused {refused}: {refused} of another link type"));
        }
        let gone = space.run(|| Command::new("ip").args(["link", "show", "weir0"]).output());
        assert!(!gone.expect("ip, of iproute2").status.success(), "gone with the process");
    }
}

/// A packet cut by `trim` is a whole, shorter one: the host that gets it takes it.
#[test]
fn trimmed_packets_are_taken() {
    let test = "wires::trimmed_packets_are_taken";
    let (Some(here), Some(there)) = (Space::new(test), Space::new(test)) else { return };
    let folder = workplace();
    space::connect((&here, "v0"), (&there, "v1"));
    there.ip("link set v1 address 02:00:00:00:00:02");
    let payload: Vec<u8> = (0..200).collect();
    let receivers = ["192.0.2.2:7000", "[2001:db8::2]:7000"].map(|address| {
        there.run(move || {
            let socket = std::net::UdpSocket::bind(address).expect("binds");
            socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("sets");
            socket
        })
    });
    let ethernet = || Frame::ethernet().mac([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let four = ethernet().ipv4([192, 0, 2, 1], [192, 0, 2, 2]).udp(9, 7000).payload(&payload);
    let six: [[u16; 8]; 2] = [1, 2].map(|n| [0x2001, 0xdb8, 0, 0, 0, 0, 0, n]);
    let six = ethernet().ipv6(six[0], six[1]).udp(9, 7000).payload(&payload);
    let sent = [four.bytes(), six.bytes()];
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let args = ["run", "-e", "packets | trim 100 | forward \"v0\"", "-r", "a.pcap"];
    has_line(&here.weir(folder.path(), &args), "sent 2 packets to v0");
    let mut buffer = [0; 300];
    for (socket, headers) in receivers.iter().zip([42, 62]) {
        let n = socket.recv(&mut buffer).expect("the datagram comes");
        assert_eq!(buffer[..n], payload[..100 - headers]);
    }
}

#[test]
fn names_that_mean_nothing_are_refused_first() {
    let test = "wires::names_that_mean_nothing_are_refused_first";
    let Some(space) = Space::new(test) else { return };
    let folder = workplace();
    let check = |to: &str, status: i32, part: &str| {
        let args = ["run", "-e", "packets | pass", "-r", "fixtures/dns.pcap", "-w", to];
        let output = space.attempt(folder.path(), &args);
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(status), "{told}");
        assert!(told.contains(&format!("{to}: {part}")), "{told}");
        let read = told.contains("received") && !told.contains("received   0 packets");
        assert!(!read, "before any packet is read: {told}");
    };
    space.veth("v0", "v1");
    std::fs::write(folder.path().join("eth7"), "").expect("writes");
    check("eth7", 1, "there is no such interface, of lo, v1, v0; the file of this name is ./eth7");
    check("eth8", 1, "there is no such interface, of lo, v1, v0; the name of a file ends in .pcap");
    check("ftp://x", 2, "there is no tunnel ftp://; those there are: udp://, vxlan://, gre://");
    check("vxlan://192.0.2.1", 2, "the segment is missing, as in vxlan://192.0.2.1?vni=7");
    check("tun:v0", 1, "");
    check("udp://192.0.2.9:9", 1, "Network is unreachable");
}
