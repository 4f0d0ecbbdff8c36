//! Packets that go out on wires: which arrive at the other end, and that they are the ones that
//! came. Each test makes network namespaces of its own.

mod bridge;
mod by_xdp;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod flapping;
mod functions;
mod in_kernel;
#[path = "../common/over_wires.rs"]
mod over_wires;
mod passing;
mod sending;
mod space;
mod steering;
mod to_host;
mod tunnels;

use common::{root, workplace};
use over_wires::until;
use space::{Space, Tap};
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

#[test]
fn frames_leave_by_an_interface_as_they_came() {
    sending::frames_leave_as_they_came("wires::frames_leave_by_an_interface", "v0", None);
}

#[test]
fn what_an_interface_cannot_take_is_counted_by_reason() {
    sending::what_it_cannot_take_is_counted_by_reason("wires::what_an_interface_cannot", "v0");
}

#[test]
fn an_interface_may_go_and_come_back() {
    sending::it_may_go_and_come_back("wires::an_interface_may_go_and_come_back", "v0");
}

#[test]
fn a_queue_that_stays_full_is_counted() {
    sending::a_queue_that_stays_full_is_counted("wires::a_queue_that_stays_full", "t0");
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
            !output.stdout.is_empty()
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

/// By which interface a frame came, and which way it went, is what queries see, on the wire and in
/// the file that it is written to.
#[test]
fn a_capture_says_who_brought_its_frames() {
    let Some(space) = Space::new("wires::a_capture_says_who_brought_its_frames") else { return };
    let folder = workplace();
    space.veth("v0", "v1");
    space.veth("w0", "w1");
    let n = fixture("mixed.pcap").len();
    let count = "summarize n = count(), bytes = sum(len) by interface, direction";
    let live = format!("packets | mirror \"x.pcapng\" | {count}");
    let all = (3 * n).to_string();
    let args = ["run", "-e", &live, "-i", "v1", "-i", "w1", "-c", &all, "-o", "csv"];
    let run = space.live(folder.path(), &args);
    run.wait_for_report("listening on", 1);
    for to in ["v0", "w0", "w0"] {
        let args = ["run", "-e", "packets | pass", "-r", "fixtures/mixed.pcap", "-w", to];
        space.weir(&root(), &args);
    }
    let seen = run.rows();
    let bytes: usize = fixture("mixed.pcap").iter().map(Vec::len).sum();
    let rows = [format!("v1,in,{n},{bytes}"), format!("w1,in,{},{}", 2 * n, 2 * bytes)];
    assert_eq!(seen.lines().skip(1).collect::<Vec<_>>(), rows);
    let read = format!("packets | {count}");
    let output = space.attempt(folder.path(), &["run", "-e", &read, "-r", "x.pcapng", "-o", "csv"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), seen, "{}", errors(&output));
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
