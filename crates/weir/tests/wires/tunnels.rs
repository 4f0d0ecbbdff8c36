//! Tunnels to another host: what its kernel, or a program there, takes out of them.

use crate::common::{root, skip, workplace};
use crate::over_wires::until;
use crate::space::{Space, Tap, connect};
use crate::{capture, fixture, frames, has_line};
use std::net::UdpSocket;
use std::time::Duration;
use weir_packet::source::LinkType;

/// Sends every frame of a capture into a tunnel, and expects them on a device at the other end, if
/// the kernel has such; before that, each in a packet of its own with `header` before it.
fn check(test: &str, made: &str, to: &str, capture: &str, header: &[u8]) {
    let (Some(here), Some(there)) = (Space::new(test), Space::new(test)) else { return };
    let folder = workplace();
    connect((&here, "v0"), (&there, "v1"));
    let device = there.try_ip(&format!("link add t1 {made}"));
    let sent: Vec<Vec<u8>> =
        frames(&root().join("fixtures").join(capture)).into_iter().map(|(_, f)| f).collect();
    let read = format!("fixtures/{capture}");
    let query = format!("packets | mirror {to:?} | where false");
    let run = || {
        let ledger = here.weir(folder.path(), &["run", "-e", &query, "-r", &read]);
        has_line(&ledger, &format!("sent {} packets to {to}", sent.len()));
    };
    match device {
        Ok(()) => {
            there.set("net/ipv6/conf/t1/disable_ipv6", "1");
            there.ip("link set t1 up");
            let Some(tap) = Tap::start(test, &there, "t1", folder.path()) else { return };
            run();
            let got = tap.frames(sent.len());
            assert!(got == sent, "{to}: {} of {}", got.len(), sent.len());
        }
        Err(e) => skip(test, &format!("only packets were looked at: {}", e.trim())),
    }
    // And now in one piece.
    here.ip("link set v0 mtu 9000");
    there.ip("link set v1 mtu 9000");
    let Some(tap) = Tap::start(test, &there, "v1", folder.path()) else { return };
    run();
    let mut outer = Vec::new();
    until("all packets of the tunnel have come", || {
        outer = tap.frames(0).iter().filter_map(|frame| inner(frame, header)).collect();
        outer.len() >= sent.len()
    });
    assert!(outer == sent, "{to}: {} of {}", outer.len(), sent.len());
}

/// The bytes in a packet of the tunnel, after the header that it must have: in UDP, or as GRE,
/// whose number, if it has one, rises.
fn inner(frame: &[u8], header: &[u8]) -> Option<Vec<u8>> {
    let (at, protocol) = match frame[12..14] {
        [0x08, 0x00] => {
            let sum: u32 =
                frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the checksum of the outer header");
            (34, frame[23])
        }
        [0x86, 0xdd] => (54, frame[20]),
        _ => return None,
    };
    let at = match protocol {
        17 => at + 8,
        47 => at,
        _ => return None,
    };
    let (got, rest) = frame[at..].split_at(header.len());
    let numbered = header.starts_with(&[0x10]);
    // Of IP packets the type says the version.
    match (&header[2..4], rest[0] >> 4) {
        ([0x08, 0x00], 6) => assert_eq!(got[..4], [0, 0, 0x86, 0xdd]),
        _ => assert_eq!(got[..4], header[..4]),
    }
    let from = if numbered { 8 } else { 4 };
    assert_eq!(got[from..], header[from..]);
    Some(rest.to_vec())
}

#[test]
fn vxlan() {
    let made = "type vxlan id 7 dstport 4789 local 192.0.2.2 dev v1";
    check(
        "wires::tunnels::vxlan",
        made,
        "vxlan://192.0.2.2?vni=7",
        "web.pcap",
        &[8, 0, 0, 0, 0, 0, 7, 0],
    );
}

#[test]
fn vxlan_over_ipv6() {
    let made = "type vxlan id 16777215 dstport 8472 local 2001:db8::2 dev v1";
    let to = "vxlan://[2001:db8::2]:8472?vni=16777215";
    check(
        "wires::tunnels::vxlan_over_ipv6",
        made,
        to,
        "mixed.pcap",
        &[8, 0, 0, 0, 255, 255, 255, 0],
    );
}

#[test]
fn gre_of_ethernet() {
    let made = "type gretap local 192.0.2.2 remote 192.0.2.1";
    check(
        "wires::tunnels::gre_of_ethernet",
        made,
        "gre://192.0.2.2",
        "mixed.pcap",
        &[0, 0, 0x65, 0x58],
    );
}

#[test]
fn gre_of_ethernet_over_ipv6() {
    let made = "type ip6gretap local 2001:db8::2 remote 2001:db8::1 key 9";
    let to = "gre://2001:db8::2?key=9";
    check(
        "wires::tunnels::gre_of_ethernet_over_ipv6",
        made,
        to,
        "mixed.pcap",
        &[0x20, 0, 0x65, 0x58, 0, 0, 0, 9],
    );
}

#[test]
fn gre_of_ip() {
    let made = "type gre local 192.0.2.2 remote 192.0.2.1";
    check("wires::tunnels::gre_of_ip", made, "gre://192.0.2.2", "raw.pcap", &[0, 0, 0x08, 0]);
}

#[test]
fn erspan() {
    let made = "type erspan seq local 192.0.2.2 remote 192.0.2.1 key 5 erspan_ver 1 erspan 1";
    check(
        "wires::tunnels::erspan",
        made,
        "erspan://192.0.2.2?session=5",
        "mixed.pcap",
        &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 0, 0x10, 0, 0x18, 5, 0, 0, 0, 0],
    );
}

#[test]
fn udp() {
    let test = "wires::tunnels::udp";
    let (Some(here), Some(there)) = (Space::new(test), Space::new(test)) else { return };
    let folder = workplace();
    connect((&here, "v0"), (&there, "v1"));
    let socket = there.run(|| {
        let socket = UdpSocket::bind("192.0.2.2:9000").expect("binds");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("sets");
        socket
    });
    // As many as its buffer surely has room for.
    let sent: Vec<Vec<u8>> = fixture("mixed.pcap").into_iter().take(60).collect();
    let file = folder.path().join("some.pcap");
    std::fs::write(file, capture(LinkType::ETHERNET, &sent)).expect("writes");
    let to = "udp://192.0.2.2:9000";
    let args = ["run", "-e", "packets | pass", "-w", to, "-r", "some.pcap"];
    has_line(&here.weir(folder.path(), &args), "passed 60 packets");
    let mut buffer = vec![0; 70_000];
    for frame in &sent {
        let n = socket.recv(&mut buffer).expect("a datagram comes");
        assert!(buffer[..n] == frame[..]);
    }
}

/// A packet that IP must not fragment and that is too long for the way is refused.
#[test]
fn long_frames() {
    let test = "wires::tunnels::long_frames";
    let (Some(here), Some(there)) = (Space::new(test), Space::new(test)) else { return };
    let folder = workplace();
    connect((&here, "v0"), (&there, "v1"));
    let made = "type vxlan id 7 dstport 4789 local 192.0.2.2 dev v1";
    there.ip(&format!("link add t1 {made}"));
    there.set("net/ipv6/conf/t1/disable_ipv6", "1");
    there.ip("link set t1 up");
    let Some(tap) = Tap::start(test, &there, "t1", folder.path()) else { return };
    let frame = |len: usize| [&[2; 12][..], &[8, 0], &vec![7; len - 14]].concat();
    // The outer headers have 36 bytes besides the frame.
    let sent = [frame(1464), frame(1465)];
    std::fs::write(folder.path().join("a.pcap"), capture(LinkType::ETHERNET, &sent)).expect("ok");
    let run = |to: &str| {
        let args = ["run", "-e", "packets | pass", "-r", "a.pcap", "-w", to];
        here.weir(folder.path(), &args)
    };
    let ledger = run("vxlan://192.0.2.2?vni=7&fragment=no");
    has_line(&ledger, "passed 1 packet, 1464 bytes");
    has_line(&ledger, "refused 1: 1 longer than its MTU");
    assert_eq!(tap.frames(1), sent[..1]);
    has_line(&run("vxlan://192.0.2.2?vni=7"), "passed 2 packets");
    assert_eq!(tap.frames(3)[1..], sent);
}

/// Where nobody listens, the other host says so; the run goes on.
#[test]
fn nobody_there() {
    let test = "wires::tunnels::nobody_there";
    let (Some(here), Some(there)) = (Space::new(test), Space::new(test)) else { return };
    let folder = workplace();
    connect((&here, "v0"), (&there, "v1"));
    let to = "udp://192.0.2.2:9";
    let args = ["run", "-e", "packets | pass", "-w", to, "-r", "fixtures/mixed.pcap"];
    let told = here.weir(folder.path(), &args);
    assert!(told.contains("received   336 packets"), "{told}");
    // No route leads there: said before anything is read.
    let args =
        ["run", "-e", "packets | pass", "-w", "udp://203.0.113.1:9", "-r", "fixtures/dns.pcap"];
    let output = here.attempt(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is there a route to it?"));
}
