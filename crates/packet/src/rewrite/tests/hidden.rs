//! Frames that hold addresses where Weir does not read them. None of these leaves.

use super::*;
use std::ops::Range;

/// A packet of the two hosts, and a frame of theirs.
fn packet() -> Vec<u8> {
    Frame::raw().ipv4(B, A).udp(1, 2).payload(b"inner").bytes()
}

fn inner() -> Vec<u8> {
    Frame::ethernet().mac(MAC_B, MAC_A).ipv4(B, A).udp(1, 2).payload(b"inner").bytes()
}

/// The description of a frame, the frame, and bytes of it that may be anything without letting an
/// address out.
pub(super) type Hidden = (&'static str, Frame, Range<usize>);

const NONE: Range<usize> = 0..0;

/// Addresses of a host of version 4 behind a translator, and of a segment.
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xc613, 0xc94d);
const SEGMENT: Ipv6Addr = Ipv6Addr::new(0x5f00, 1, 2, 3, 0, 0, 0, 4);

fn ethernet(kind: u16, parts: &[&[u8]]) -> Frame {
    TRUE.ethernet().put(12, &kind.to_be_bytes()).payload(&parts.concat())
}

fn ip(proto: u8, parts: &[&[u8]]) -> Frame {
    TRUE.four().put(9, &[proto]).payload(&parts.concat())
}

fn udp(port: u16, parts: &[&[u8]]) -> Frame {
    TRUE.four().udp(50_000, port).payload(&parts.concat())
}

/// An error that quotes a packet, cut or padded to 128 bytes, with an object of this class after
/// it.
fn error_with(length: u8, class: u8, content: [u8; 4]) -> Frame {
    let quoted = [&TRUE.quoted()[..], &[0; 128]].concat();
    let object = [&[0x20, 0, 0, 0, 0, 8, class, 1][..], &content].concat();
    TRUE.four().icmp(11, 0).put(5, &[length]).payload(&[&quoted[..128], &object].concat())
}

fn links() -> Vec<Hidden> {
    let (packet, inner) = (packet(), inner());
    let of = |link: LinkType, parts: &[&[u8]]| Frame::of(link, &parts.concat());
    let ppp = |protocol: [u8; 2], rest: &[u8]| of(LinkType::PPP, &[&[0xff, 3], &protocol, rest]);
    let mesh = |control: [u8; 2], more: &[u8]| {
        let qos = [&[0, 1][..], more, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet].concat();
        let start = [&control[..], &[0, 0], &MAC_A, &MAC_B, &[2, 0, 0, 0, 0, 9], &[0, 0]].concat();
        let fourth: &[u8] = if control[1] & 3 == 3 { &[2, 0, 0, 0, 0, 8] } else { &[] };
        of(LinkType::IEEE802_11, &[&start, fourth, &qos])
    };
    let length = |parts: &[&[u8]]| {
        let body = parts.concat();
        ethernet(body.len() as u16, &[&body])
    };
    let cisco = |number: u16, parts: &[&[u8]]| {
        let number = number.to_be_bytes();
        length(&[&[0xaa, 0xaa, 3, 0, 0, 0x0c], &number, &parts.concat()])
    };
    let cooked = |protocol: u16| {
        let frame = Frame::cooked().put(14, &protocol.to_be_bytes());
        frame.payload(&packet)
    };
    vec![
        ("mesh control", mesh([0x88, 3], &[0, 31, 0, 0, 0, 1]), 32..38),
        (
            "two more addresses",
            mesh([0x88, 3], &[&[2, 31, 0, 0, 0, 1][..], &MAC_A, &MAC_B].concat()),
            32..38,
        ),
        ("one more address", mesh([0x88, 2], &[&[1, 31, 0, 0, 0, 1][..], &MAC_A].concat()), 26..32),
        ("compressed TCP headers", ppp([0, 0x2d], &packet), NONE),
        ("uncompressed TCP headers", ppp([0, 0x2f], &packet), NONE),
        (
            "several links",
            ppp([0, 0x3d], &[&[0xc0, 0, 0, 1, 0, 0x21][..], &packet].concat()),
            4..10,
        ),
        ("a bridged frame", ppp([0, 0x31], &[&[0, 1][..], &inner].concat()), 4..6),
        ("a compressed packet", ppp([0, 0xfd], &[&[0x80, 0][..], &packet].concat()), NONE),
        (
            "an address for a host",
            ppp([0x80, 0x21], &[&[1, 1, 0, 10, 3, 6][..], &A].concat()),
            4..10,
        ),
        (
            "a serial line's address",
            of(LinkType::C_HDLC, &[&[0x8f, 0, 0x80, 0x35, 0, 0, 0, 1], &A]),
            4..7,
        ),
        ("a length on a serial line", of(LinkType::C_HDLC, &[&[0x8f, 0, 0, 99], &packet]), NONE),
        (
            "frame relay of another kind",
            of(LinkType::FRELAY, &[&[0x18, 0x41, 3, 0xb1], &packet]),
            NONE,
        ),
        (
            "frame relay of an organization",
            of(LinkType::FRELAY, &[&[0x18, 0x41, 3, 0, 0x80, 0, 0x80, 0xc2, 0, 9], &packet]),
            NONE,
        ),
        ("an address family", of(LinkType::NULL, &[&[99, 0, 0, 0], &packet]), NONE),
        ("cooked PPP", cooked(7), NONE),
        (
            "a cooked address of no length",
            Frame::cooked().put(4, &[0, 0]).put(6, &MAC_A).ipv4(A, B).udp(1, 2),
            NONE,
        ),
        (
            "a log of ARP",
            {
                let arp = TRUE.ethernet().arp(1, (MAC_A, A.into()), (MAC_B, B.into())).bytes();
                of(LinkType::NFLOG, &[&[3, 0, 0, 0, 32, 0, 9, 0], &arp[14..]])
            },
            0..1,
        ),
        (
            "a log of a connection",
            {
                let log = [&[2, 0, 0, 0, 8, 0, 18, 0][..], &A, &[4 + packet.len() as u8, 0, 9, 0]]
                    .concat();
                of(LinkType::NFLOG, &[&log, &packet])
            },
            NONE,
        ),
        (
            "frames between switches",
            {
                let start = [0xaa, 0xaa, 3, 0, 0, 0x0c, 0, 2, 0, 0, 0, 0];
                length(&[&start, &inner]).put(0, &[1, 0, 0x0c, 0, 0])
            },
            20..26,
        ),
        (
            "bridged over SNAP",
            length(&[&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0], &inner]),
            20..24,
        ),
        ("SNAP of a length", length(&[&[0xaa, 0xaa, 3, 0, 0, 0, 0, 9], &packet]), NONE),
        (
            "SNAP that asks for an answer",
            length(&[&[0xaa, 0xaa, 0x13, 0, 0, 0, 8, 0], &packet]),
            NONE,
        ),
        ("LLC of ARP", length(&[&[0x98, 0x98, 3], &packet]), NONE),
        ("LLC of IPX", length(&[&[0xe0, 0xe0, 3], &inner]), 16..20),
        ("link aggregation of Cisco", cisco(0x0104, &[&[1, 5], &MAC_A, &[0; 8]]), NONE),
        (
            "a link in one direction",
            cisco(0x0111, &[&[0x21, 0, 0, 0, 0, 1, 0, 10], &MAC_A]),
            22..26,
        ),
        ("the last to change VLANs", cisco(0x2003, &[&[1, 1, 0, 4], &[7; 36], &A]), 22..26),
        ("a neighbour of a trunk", cisco(0x2004, &[&[1, 0, 4, 0, 10], &MAC_A]), 22..27),
        ("IPX without LLC", length(&[&[0xff, 0xff, 0, 40], &inner]), 16..20),
    ]
}

fn shims() -> Vec<Hidden> {
    let (packet, inner) = (packet(), inner());
    let nsh = |start: [u8; 8], rest: &[u8]| ethernet(0x894f, &[&start, rest]);
    let label = [0, 1, 0x11, 64];
    vec![
        (
            "reverse ARP of token ring",
            {
                let arp =
                    TRUE.ethernet().arp(3, (MAC_A, A.into()), (MAC_B, B.into())).put(0, &[0, 6]);
                ethernet(0x8035, &[&arp.bytes()[14..]])
            },
            16..22,
        ),
        ("ARP of AppleTalk", ethernet(0x80f3, &[&[0, 1, 0x80, 0x9b, 6, 4, 0, 1], &MAC_A]), 14..22),
        ("IPX", ethernet(0x8137, &[&inner]), NONE),
        ("a backbone bridge", ethernet(0x88e7, &[&[0, 0, 0, 1], &inner]), 14..18),
        ("a signed frame", ethernet(0x88e5, &[&[0, 0, 0, 0, 0, 1, 8, 0], &packet]), 15..22),
        (
            "an encrypted frame that names its sender",
            ethernet(0x88e5, &[&[0x2c, 0, 0, 0, 0, 1], &MAC_A, &[0, 1, 7, 7]]),
            15..20,
        ),
        ("a redundant frame", ethernet(0x892f, &[&[0, 52, 0, 1, 8, 0], &packet]), 14..20),
        ("a frame on a ring", ethernet(0xf1c1, &[&[0, 0, 0, 1, 8, 0], &packet]), 14..20),
        (
            "a frame with metadata",
            ethernet(0x8909, &[&[1, 1, 0, 1, 0, 100, 8, 0], &packet]),
            14..22,
        ),
        ("transparent interconnection", ethernet(0x22f3, &[&[0, 16, 0, 1, 0, 2], &inner]), 14..20),
        ("a tag under another number", ethernet(0x9300, &[&[0, 7, 8, 0], &packet]), 14..18),
        ("NSH before an unknown header", nsh([15, 0xc2, 2, 9, 0, 0, 1, 255], &packet), NONE),
        (
            "NSH with context",
            {
                let context = [&[0; 12][..], &A, &packet].concat();
                nsh([15, 0xc6, 1, 1, 0, 0, 1, 255], &context)
            },
            22..34,
        ),
        (
            "a channel beside labels",
            ethernet(0x8847, &[&label, &[0x10, 0, 0, 0x21], &packet]),
            19..22,
        ),
        (
            "an unknown pseudowire",
            {
                let frame = [&inner[..12], &[0x88, 0xcc], &inner[14..]].concat();
                ethernet(0x8847, &[&label, &[0; 4], &frame])
            },
            18..22,
        ),
        (
            "a session with compressed headers",
            ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 35, 0, 0x2f], &packet]),
            NONE,
        ),
    ]
}

fn tunnels_of_no_form() -> Vec<Hidden> {
    let (packet, inner) = (packet(), inner());
    let vxlan = |start: [u8; 4], port| udp(port, &[&start, &[0, 0, 7, 0], &inner]);
    let quoted6 = Frame::raw().ipv6(B6, A6).udp(1, 2).payload(b"inner").bytes();
    vec![
        ("VXLAN without a network", vxlan([0, 0, 0, 0], 4789), 42..46),
        ("VXLAN with a next protocol", vxlan([0x0c, 0, 0, 3], 4789), 43..50),
        ("VXLAN-GPE of another version", vxlan([0x1c, 0, 0, 3], 4790), 43..50),
        (
            "VXLAN-GPE of an unknown protocol",
            udp(4790, &[&[0x0c, 0, 0, 9, 0, 0, 7, 0], &packet]),
            43..45,
        ),
        ("VXLAN on Linux's port", vxlan([8, 0, 0, 0], 8472), 42..50),
        (
            "ports of two tunnels",
            TRUE.four().udp(2152, 4789).payload(&[&[8, 0, 0, 0, 0, 0, 7, 0], &inner[..]].concat()),
            NONE,
        ),
        (
            "GENEVE of another version",
            udp(6081, &[&[0x40, 0, 0x65, 0x58, 0, 0, 7, 0], &inner]),
            43..50,
        ),
        ("GENEVE control", udp(6081, &[&[0, 0x80, 0x65, 0x58, 0, 0, 7, 0], &packet]), NONE),
        ("GENEVE of an unknown type", udp(6081, &[&[0, 0, 0x12, 0x34, 0, 0, 7, 0], &packet]), NONE),
        (
            "GENEVE with an option",
            udp(6081, &[&[2, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 0x4b, 1, 1], &A, &inner]),
            52..53,
        ),
        ("GRE of an unknown type", ip(47, &[&[0, 0, 0x12, 0x34], &packet]), NONE),
        ("GRE of redirected packets", ip(47, &[&[0, 0, 0x88, 0x3e, 0, 0, 0, 0], &packet]), 38..42),
        ("GRE of a length", ip(47, &[&[0, 0, 0, 40], &packet]), NONE),
        (
            "an acknowledgement with more",
            ip(47, &[&[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 1], &packet]),
            38..46,
        ),
        (
            "a GTP error",
            udp(
                2152,
                &[&[0x32, 26, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0x85, 0, 4], &A],
            ),
            44..50,
        ),
        (
            "a GTP signal that names an address",
            udp(2152, &[&[0x32, 31, 0, 11, 0, 0, 0, 0, 0, 1, 0, 0, 0x85, 0, 4], &A]),
            54..55,
        ),
        ("GTP of another version", udp(2152, &[&[0x50, 255, 0, 33, 0, 0, 0, 0], &packet]), 43..50),
        (
            "an address behind a bubble of Teredo",
            {
                let bubble = Frame::raw().ipv6(A6, B6).put(6, &[59]).bytes();
                udp(3544, &[&bubble, &[1, 4], &A])
            },
            NONE,
        ),
        ("an address behind a packet of Teredo", udp(3544, &[&quoted6, &[1, 4], &A]), NONE),
        ("L2TP", udp(1701, &[&[0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x21], &packet]), 42..52),
        ("labels over UDP", udp(6635, &[&[0, 1, 0x11, 64], &packet]), 42..46),
        ("minimal encapsulation", ip(55, &[&[17, 0x80, 0, 0], &B, &A, &packet[20..]]), 34..38),
        (
            "a registered multicast packet",
            ip(103, &[&[0x21, 0, 0, 0, 0, 0, 0, 0], &packet]),
            34..42,
        ),
        ("a compressed IP packet", ip(108, &[&[4, 0, 0, 2], &packet]), 34..38),
        ("L2TP over IP", ip(115, &[&[0, 0, 0, 1], &inner]), 34..38),
        ("a frame in IP", ip(143, &[&inner]), NONE),
        ("a frame after no header", TRUE.six().put(6, &[59]).payload(&inner), NONE),
    ]
}

/// Tunnels and messages that only a port announces, and packets that nothing does.
fn elsewhere() -> Vec<Hidden> {
    let (packet, inner) = (packet(), inner());
    let six = Frame::raw().ipv6(B6, A6).udp(1, 2).payload(b"inner").bytes();
    let arp = TRUE.ethernet().arp(arp::REPLY, (MAC_A, A.into()), (MAC_B, B.into())).bytes();
    let tcp = |port: u16, parts: &[&[u8]]| TRUE.four().tcp(port, 50_000).payload(&parts.concat());
    let lite = |port: u16, parts: &[&[u8]]| {
        let [a, b] = port.to_be_bytes();
        ip(136, &[&[0xc3, 0x50, a, b, 0, 8, 0, 0], &parts.concat()])
    };
    let discovered = [&MAC_B[..], &MAC_A, &[0x88, 0xcc, 2, 7, 4], &MAC_A].concat();
    let six_to = |to: Ipv6Addr| Frame::raw().ipv6(B6, to).udp(1, 2).payload(b"inner").bytes();
    let route = [&[2, 2, 0, 0, 0, 2, 0, 0][..], &A, &[255; 4], &B, &[0, 0, 0, 1]].concat();
    vec![
        ("GRE in UDP", udp(4754, &[&[0, 0, 8, 0], &packet]), 42..46),
        ("GRE in encrypted UDP, in the clear", udp(4755, &[&[0, 0, 8, 0], &packet]), 42..46),
        ("AYIYA", udp(5072, &[&[0x44, 2, 0x10, 41], &[0; 4], &A6.octets(), &six]), 42..66),
        ("stateless TCP", tcp(7471, &[&[0; 18], &inner]), 54..72),
        ("bit indices", ethernet(0xab37, &[&[0; 24], &packet]), 14..38),
        ("labels in a datagram", udp(6635, &[&[0, 0, 1, 255], &packet]), 42..46),
        ("a route of RIP", udp(520, &[&route]), 42..46),
        ("a neighbour of BGP", tcp(179, &[&[255; 16], &[0, 29, 1, 4, 0, 1, 0, 90], &A]), 54..78),
        ("a sample of packets", udp(6343, &[&[0, 0, 0, 5, 0, 0, 0, 1], &A]), 42..50),
        ("mirrored 802.11", udp(5000, &[&[0, 255, 171, 205, 0, 0, 0, 0], &MAC_A]), 46..50),
        ("a packet on any port", udp(7777, &[&[9; 5], &packet]), 42..47),
        ("a packet of version 6 on any port", udp(7777, &[&[9; 7], &six]), 42..49),
        ("ARP on any port", udp(7777, &[&[9; 3], &arp[14..]]), 42..45),
        ("a neighbour of DLEP", udp(854, &[&[b'D', b'L', b'E', b'P', 0, 1, 0, 11], &A]), 42..50),
        ("a session of DLEP", tcp(854, &[&[0, 9, 0, 9, 0, 8, 0, 5, 1], &A]), 54..63),
        (
            "the origin of a route",
            tcp(323, &[&[0, 4, 0, 0, 0, 0, 0, 20, 1, 24, 24, 0], &A]),
            54..66,
        ),
        ("the same over TLS", tcp(324, &[&[0, 4, 0, 0, 0, 0, 0, 20, 1, 24, 24, 0], &A]), 54..66),
        ("a route of Zebra", tcp(2600, &[&[0, 24, 255, 2, 0, 0, 0, 0, 0, 7], &A]), 54..64),
        ("another daemon of Zebra", tcp(2609, &[&[0, 24, 255, 2, 0, 0, 0, 0, 0, 7], &A]), 54..64),
        ("an interface of LMP", udp(701, &[&[0x10, 0, 0, 1, 0, 28, 0, 0, 1, 1, 0, 8], &A]), 42..54),
        ("a route of RIP in UDP-Lite", lite(520, &[&route]), 42..46),
        ("VXLAN in UDP-Lite", lite(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], &discovered]), 42..50),
        ("version 6 to a host of version 4", udp(7777, &[&[9; 7], &six_to(NAT64)]), 42..49),
        ("version 6 to a segment", udp(7777, &[&[9; 7], &six_to(SEGMENT)]), 42..49),
        ("version 6 before a tag", udp(7777, &[&[9; 4], &six, &[9; 16]]), 42..46),
        (
            "ESP that does not encrypt",
            ip(50, &[&[0, 0, 16, 1, 0, 0, 0, 1], &six, &[1, 2, 3, 3, 41], &[9; 16]]),
            34..42,
        ),
        ("a packet in an echo", TRUE.four().icmp(8, 0).payload(&packet), 38..42),
        (
            "a packet after its packet",
            {
                let short = TRUE.four().udp(1, 2).bytes();
                Frame::of(LinkType::ETHERNET, &[&short[..], &packet].concat())
            },
            NONE,
        ),
    ]
}

fn messages() -> Vec<Hidden> {
    let option = |bytes: &[u8]| TRUE.four().options(bytes).udp(1, 2).payload(b"x");
    let tcp = |bytes: &[u8]| TRUE.four().tcp(1, 2).options(bytes);
    let with = |start: &[u8]| [start, &A].concat();
    let segments = |tlv: &[u8]| {
        let len = (24 + tlv.len()) / 8 - 1;
        let start = [59, len as u8, 4, 0, 0, 0, 0, 0];
        TRUE.six().put(6, &[43]).payload(&[&start[..], &B6.octets(), tlv].concat())
    };
    let error = Frame::raw().ipv4(B, A).icmp(3, 1).payload(&TRUE.quoted());
    let errors =
        (0..5).fold(error, |inner, _| Frame::raw().ipv4(B, A).icmp(3, 1).payload(&inner.bytes()));
    let redirected = |n: usize| {
        // Of a packet of 1440 bytes only these are there.
        let mut packet = TRUE.quoted6();
        packet[4..6].copy_from_slice(&1400u16.to_be_bytes());
        let option = [&[4, 9, 0, 0, 0, 0, 0, 0][..], &packet[..64]].concat();
        option.repeat(n)
    };
    let sctp = |chunk: &[u8]| ip(132, &[&[0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], chunk]);
    vec![
        ("errors about errors", TRUE.four().icmp(3, 1).payload(&errors.bytes()), NONE),
        ("an interface after a quote of no length", error_with(0, 2, A), NONE),
        ("an interface after a quote", error_with(32, 2, A), 39..40),
        (
            "more than a quoted packet says",
            {
                let short = TRUE.four().put(2, &[0, 28]).udp(1, 4789).put(4, &[0, 8]);
                let quoted = [&short.bytes()[14..], &[8, 0, 0, 0, 0, 0, 7, 0], &inner()].concat();
                TRUE.four().icmp(3, 3).payload(&quoted)
            },
            NONE,
        ),
        (
            "routers of no size",
            TRUE.four()
                .icmp(9, 0)
                .put(4, &[2, 0])
                .payload(&[&A[..], &[0; 4], &B, &[0; 4]].concat()),
            38..40,
        ),
        (
            "routers and more",
            TRUE.four()
                .icmp(9, 0)
                .put(4, &[1, 2])
                .payload(&[&A[..], &[0; 4], &[16, 6], &[9; 6], &B].concat()),
            NONE,
        ),
        ("an unknown time stamp", option(&with(&[68, 8, 9, 2])), NONE),
        ("a time stamp without a time", option(&with(&[68, 8, 9, 1])), 36..37),
        ("a route with half an address", option(&[7, 8, 8, B[0], B[1], B[2], B[3], A[0]]), NONE),
        ("an option after the end", option(&with(&[0, 7, 7, 8])), 34..35),
        ("an unknown TCP option", tcp(&with(&[254, 8, 0x4e, 0x20])), 56..58),
        ("a TCP option of another length", tcp(&with(&[28, 8, 0, 1])), 56..58),
        (
            "an address after an option of no length",
            tcp(&with(&[2, 0, 0, 0, 30, 8, 0x34, 1])),
            NONE,
        ),
        ("an address after the end", tcp(&with(&[0, 30, 8, 0x34])), NONE),
        ("an unknown message of MPTCP", tcp(&with(&[30, 8, 0x94, 1])), 57..58),
        (
            "the rest of a TCP header",
            {
                let rest = [&[0x60, 2, 0, 9, 0, 0, 0, 0, 30, 8, 0x34, 1][..], &A].concat();
                TRUE.four().fragment(8, false).put(9, &[6]).payload(&rest)
            },
            NONE,
        ),
        (
            "the rest of a TCP header6",
            {
                let rest = [&[0x60, 2, 0, 9, 0, 0, 0, 0, 30, 8, 0x34, 1][..], &A].concat();
                TRUE.six().put(6, &[44]).payload(&[&[6, 0, 0, 9, 0, 0, 0, 7][..], &rest].concat())
            },
            58..62,
        ),
        (
            "a node after segments",
            segments(&[&[1, 18, 0, 0][..], &A6.octets(), &[4, 2, 0, 0]].concat()),
            79..82,
        ),
        ("padding after segments that is not", segments(&[&[4, 6, 0, 0][..], &A].concat()), NONE),
        (
            "padding of options that is not",
            TRUE.six().extension(60, &[&[1, 4][..], &A].concat()).udp(1, 2),
            NONE,
        ),
        (
            "half a stop",
            {
                let stops =
                    [&[59, 3, 0, 1, 0, 0, 0, 0][..], &B6.octets(), &A6.octets()[..8]].concat();
                TRUE.six().put(6, &[43]).payload(&stops)
            },
            NONE,
        ),
        ("a host's identity", ip(139, &[&[59, 4, 1, 17], &A6.octets()]), 34..38),
        ("a mobile host", ip(135, &[&A6.octets()]), NONE),
        ("a virtual router", ip(112, &[&[0x21, 1, 100, 1, 0, 1, 0, 0], &A]), 34..42),
        ("a route", ip(89, &[&[2, 1, 0, 44], &A, &[0; 36]]), 34..38),
        (
            "addresses of an association",
            { sctp(&[&[1, 0, 0, 28][..], &[0; 16], &[0, 5, 0, 8], &A].concat()) },
            47..48,
        ),
        (
            "another address of an association",
            sctp(
                &[&[1, 0, 0, 36][..], &[0; 16], &[0xc0, 4, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8], &A]
                    .concat(),
            ),
            67..68,
        ),
        (
            "an address that joins an association",
            sctp(
                &[&[1, 0, 0, 36][..], &[0; 16], &[0xc0, 1, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8], &A]
                    .concat(),
            ),
            67..68,
        ),
        (
            "a parameter of another length",
            sctp(&[&[1, 0, 0, 28][..], &[0; 16], &[0xc0, 0, 0, 8], &A].concat()),
            NONE,
        ),
        (
            "padding of an association that is not",
            sctp(&[&[1, 0, 0, 28][..], &[0; 16], &[0x80, 5, 0, 8], &A].concat()),
            NONE,
        ),
        ("an address in a reset of streams", sctp(&with(&[130, 0, 0, 12, 0, 5, 0, 8])), 47..48),
        ("a cookie", sctp(&with(&[10, 0, 0, 8])), 47..48),
        ("a chunk of no length", sctp(&with(&[3, 0, 0, 0, 5, 0, 0, 8])), NONE),
        (
            "an address in a longer option",
            {
                let option = [&[1, 2][..], &[7; 8], &MAC_A].concat();
                discovery(TRUE, 135, &[B6], &option)
            },
            80..86,
        ),
        ("a second redirected packet", discovery(TRUE, 137, &[A6, B6], &redirected(2)), NONE),
        (
            "a redirected packet in an advertisement",
            discovery(TRUE, 136, &[A6], &redirected(1)),
            NONE,
        ),
        (
            "a portal",
            {
                let option = [&[0; 8][..], &[37, 2], b"http://1.2.3.4"].concat();
                discovery(TRUE, 134, &[], &option)
            },
            NONE,
        ),
        (
            "a longer option of a size",
            {
                let option = [&[5, 3][..], &[0; 6], &A6.octets()].concat();
                discovery(TRUE, 136, &[A6], &option)
            },
            NONE,
        ),
        (
            "more of a record",
            {
                let record = [&[1, 1, 0, 0][..], &A6.octets(), &A].concat();
                TRUE.six().icmp6(143, 0).put(4, &[0, 0, 0, 1]).payload(&record)
            },
            NONE,
        ),
    ]
}

pub(super) fn all() -> Vec<Hidden> {
    [links(), shims(), tunnels_of_no_form(), elsewhere(), messages()].concat()
}

/// A frame that was rewritten holds none of the addresses any more.
fn check(name: &str, link: LinkType, bytes: &[u8], len: usize) -> bool {
    let out = attempt(link, bytes, len, &Address::ALL);
    if let Some(out) = &out {
        for address in [&A[..], &B, &A6.octets(), &B6.octets(), &MAC_A, &MAC_B] {
            let is_left = out.windows(address.len()).any(|window| window == address);
            assert!(!is_left, "{name}: {address:02x?} in {out:02x?}");
        }
    }
    out.is_some()
}

#[test]
fn frames_with_addresses_at_unread_places_do_not_leave() {
    for (name, frame, _) in all() {
        let bytes = frame.bytes();
        let out = attempt(frame.link(), &bytes, bytes.len(), &Address::ALL);
        assert_eq!(out, None, "{name}: {bytes:02x?}");
    }
}

/// Cut before its IP header, nothing says that it is one.
#[test]
fn a_frame_on_any_port_does_not_leave() {
    let frame = udp(7777, &[&[9; 3], &inner()]).bytes();
    for which in [Address::IpSrc, Address::EthSrc] {
        assert_eq!(attempt(LinkType::ETHERNET, &frame, frame.len(), &[which]), None);
    }
    let stream = [&[9; 40][..], &packet(), &[9; 40]].concat();
    let segment = TRUE.four().tcp(7777, 50_000).payload(&stream).bytes();
    assert_eq!(attempt(LinkType::ETHERNET, &segment, segment.len(), &[Address::IpDst]), None);
}

/// An inner packet of version 6 that is longer than what is there of it.
#[test]
fn a_packet_that_goes_on_elsewhere_does_not_leave() {
    let six = |to: Ipv6Addr| Frame::raw().ipv6(B6, to).udp(1, 2).payload(&[7; 1400]).bytes();
    let stream = Frame::raw().ipv6(B6, A6).tcp(1, 2).payload(&[7; 1400]).bytes();
    let frame = [&MAC_B[..], &MAC_A, &[0x86, 0xdd], &six(A6)].concat();
    let datagram = Frame::raw().ipv4(A, B).udp(50_000, 7777);
    let datagram = datagram.payload(&[&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat()).bytes();
    let tcp = |data: &[u8]| TRUE.four().tcp(7777, 50_000).payload(&[&[5, 0xdc], data].concat());
    let frames = [
        ("in a quote", TRUE.four().icmp(11, 0).payload(&datagram[..128])),
        ("in a first fragment", {
            TRUE.four().fragment(0, true).put(9, &[17]).payload(&datagram[20..1420])
        }),
        ("in a segment", tcp(&six(A6)[..1200])),
        ("to a host of version 4", tcp(&six(NAT64)[..1200])),
        ("of TCP", tcp(&stream[..1200])),
    ];
    for (name, frame) in frames {
        let bytes = frame.bytes();
        let out = attempt(frame.link(), &bytes, bytes.len(), &Address::ALL);
        assert_eq!(out, None, "{name}: {bytes:02x?}");
    }
}

/// The captured bytes of such a frame that was cut show no address either.
#[test]
fn nor_do_their_addresses_where_they_are_cut() {
    for (name, frame, _) in all() {
        let bytes = frame.bytes();
        (0..bytes.len()).for_each(|cut| {
            check(name, frame.link(), &bytes[..cut], bytes.len());
        });
    }
}

/// The frames around each: other flags, versions, identifiers and kinds.
#[test]
fn nor_do_those_of_their_neighbours() {
    for (name, frame, range) in all() {
        let mut bytes = frame.bytes();
        assert!(range.end <= bytes.len(), "{name}");
        for at in range {
            let before = bytes[at];
            for value in 0..=255 {
                bytes[at] = value;
                check(name, frame.link(), &bytes, bytes.len());
            }
            bytes[at] = before;
        }
    }
}

/// Frames like these that hold no address, and leave.
#[test]
fn what_can_hold_no_address_leaves() {
    let of = |link: LinkType, parts: &[&[u8]]| Frame::of(link, &parts.concat());
    let packet = packet();
    let length = |bytes: &[u8]| ethernet(bytes.len() as u16, &[bytes]);
    let tcp = |bytes: &[u8]| TRUE.four().tcp(1, 2).options(bytes);
    let frames = [
        ("spanning tree", length(&[0x42, 0x42, 3, 0, 0, 0])),
        ("a test between stations", length(&[0, 1, 0xaf, 0x81, 1, 0])),
        ("Cisco's discovery", length(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0, 1, 2])),
        ("LLDP", ethernet(0x88cc, &[&[2; 40]])),
        ("an encrypted frame", ethernet(0x88e5, &[&[0x0c, 0, 0, 0, 0, 1], &[7; 40]])),
        ("an encrypted packet", of(LinkType::PPP, &[&[0xff, 3, 0, 0xfd, 0x90, 1], &[7; 40]])),
        ("link control", of(LinkType::PPP, &[&[0xff, 3, 0xc0, 0x21, 1, 1, 0, 4]])),
        (
            "a serial line that is alive",
            of(LinkType::C_HDLC, &[&[0x8f, 0, 0x80, 0x35, 0, 0, 0, 2], &[7; 8]]),
        ),
        ("a local management message", of(LinkType::FRELAY, &[&[0, 1, 3, 8, 0, 0x75]])),
        (
            "a frame of CAN",
            Frame::cooked().put(14, &[0, 0x0c]).payload(&[0, 0, 1, 0x23, 4, 0, 0, 0, 1, 2, 3, 4]),
        ),
        ("QoS that is no mesh's", {
            let start = [&[0x88, 1, 0, 0][..], &MAC_A, &MAC_B, &MAC_B, &[0, 0, 0, 1]].concat();
            of(LinkType::IEEE802_11, &[&start, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet])
        }),
        (
            "NSH without context",
            ethernet(0x894f, &[&[15, 0xc6, 1, 1, 0, 0, 1, 255], &[0; 16], &packet]),
        ),
        ("a tunnel that is alive", ip(47, &[&[0, 0, 0, 0]])),
        (
            "GENEVE of a load balancer",
            udp(6081, &[&[2, 0, 8, 0, 0, 0, 7, 0, 1, 8, 3, 1, 1, 2, 3, 4], &packet]),
        ),
        ("VXLAN with a policy", udp(4789, &[&[0x88, 0, 0, 5, 0, 0, 7, 0], &inner()])),
        ("spanning tree of Cisco", length(&[0xaa, 0xaa, 3, 0, 0, 0x0c, 1, 0x0b, 0, 0])),
        ("a text in zeros", udp(7777, &[b"hello foo", &[0; 61]])),
        ("UDP-Lite", ip(136, &[&[0xc3, 0x50, 0, 53, 0, 8, 0, 0], &[7; 40]])),
        (
            "extension headers of GTP",
            udp(2152, &[&[0x32, 31, 0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 141, 2, 0x85, 0xc0]]),
        ),
        ("a GTP echo", udp(2152, &[&[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]])),
        ("a short TCP option", tcp(&[28, 4, 0, 7, 254, 4, 0xf9, 0x89])),
        ("fast open", tcp(&[34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0])),
        (
            "an acknowledgement of SCTP",
            ip(132, &[&[0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 16], &[7; 12]]),
        ),
        (
            "an association",
            ip(
                132,
                &[&[0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 24], &[7; 16], &[0x80, 0, 0, 4]],
            ),
        ),
        ("an association with extensions", {
            let known = [0x80, 8, 0, 6, 0xc1, 0x80, 0, 0, 0xc0, 0, 0, 4, 0x80, 5, 0, 8, 0, 0, 0, 0];
            let start = [0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 40];
            ip(132, &[&start, &[7; 16], &known])
        }),
        (
            "a reset of streams",
            ip(
                132,
                &[&[0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 130, 0, 0, 12, 0, 15, 0, 8, 0, 0, 0, 1]],
            ),
        ),
        ("labels after a quote of no length", error_with(0, 1, [9; 4])),
        ("an encrypted IP packet", ip(50, &[&[0, 0, 0, 1, 0, 0, 0, 1], &[7; 40]])),
    ];
    for (name, frame) in frames {
        let bytes = frame.bytes();
        assert!(check(name, frame.link(), &bytes, bytes.len()), "{name}");
    }
}
