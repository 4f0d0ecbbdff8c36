//! Frames are made twice, with the true addresses and with the others: rewriting the first gives
//! the second. The maker of frames ([`crate::craft`]) computes lengths and checksums by itself.

mod hidden;

use super::*;
use crate::craft::Frame;
use crate::walk::TunnelPorts;
use crate::walk::samples::{samples, tunnels, upper};
use crate::{arp, tcp};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses that no other bytes of these frames are like.
const A: [u8; 4] = [198, 19, 201, 77];
const B: [u8; 4] = [203, 113, 6, 250];
const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x77, 0x1234, 0x9abc, 0xdef0, 0x1357, 0x9bdf);
const B6: Ipv6Addr = Ipv6Addr::new(0xfd12, 0x3456, 0x789a, 1, 0x2468, 0xace0, 0xf0e1, 0xd2c3);
const MAC_A: [u8; 6] = [0x02, 0x5e, 0x91, 0x33, 0x47, 0xd8];
const MAC_B: [u8; 6] = [0x06, 0xc1, 0x7a, 0xe4, 0x15, 0x6b];

/// Addresses as a frame is made with them.
#[derive(Clone, Copy)]
struct Hosts {
    a: [u8; 4],
    b: [u8; 4],
    a6: Ipv6Addr,
    b6: Ipv6Addr,
    mac_a: [u8; 6],
    mac_b: [u8; 6],
}

const TRUE: Hosts = Hosts { a: A, b: B, a6: A6, b6: B6, mac_a: MAC_A, mac_b: MAC_B };

impl Hosts {
    /// All of them under their other names.
    fn renamed(self) -> Hosts {
        let six = |a: Ipv6Addr| Ipv6Addr::from(Flip.ipv6(a.into()));
        Hosts {
            a: self.a.map(|b| b ^ 0xa5),
            b: self.b.map(|b| b ^ 0xa5),
            a6: six(self.a6),
            b6: six(self.b6),
            mac_a: self.mac_a.map(|b| b ^ 0xa5),
            mac_b: self.mac_b.map(|b| b ^ 0xa5),
        }
    }

    fn ethernet(self) -> Frame {
        Frame::ethernet().mac(self.mac_a, self.mac_b)
    }

    fn four(self) -> Frame {
        self.ethernet().ipv4(self.a, self.b)
    }

    fn six(self) -> Frame {
        self.ethernet().ipv6(self.a6, self.b6)
    }

    /// A packet as an error quotes it: the whole of it.
    fn quoted(self) -> Vec<u8> {
        Frame::raw().ipv4(self.b, self.a).udp(53, 4_000).payload(b"a question").bytes()
    }

    fn quoted6(self) -> Vec<u8> {
        Frame::raw().ipv6(self.b6, self.a6).tcp(443, 4_000).payload(b"hello").bytes()
    }
}

type Make = fn(Hosts) -> Frame;

fn discovery(h: Hosts, kind: u8, addresses: &[Ipv6Addr], option: &[u8]) -> Frame {
    let addresses: Vec<u8> = addresses.iter().flat_map(|a| a.octets()).collect();
    let body = [&addresses[..], option].concat();
    h.six().icmp6(kind, 0).payload(&body)
}

/// Frames of each shape that holds addresses.
const MADE: &[(&str, Make)] = &[
    ("tcp", |h| h.four().tcp(40_000, 80).payload(b"GET /")),
    ("udp", |h| h.four().udp(5_000, 53).payload(b"odd")),
    ("tcp6", |h| h.six().tcp(40_000, 80).payload(b"GET /x")),
    ("udp6 in vlan", |h| h.ethernet().vlan(7).ipv6(h.a6, h.b6).udp(5_000, 53).payload(b"odd")),
    ("echo", |h| h.four().icmp(8, 0).echo(1, 2).payload(b"ping")),
    ("echo6", |h| h.six().icmp6(128, 0).echo(1, 2).payload(b"ping")),
    ("arp", |h| h.ethernet().arp(arp::REPLY, (h.mac_a, h.a.into()), (h.mac_b, h.b.into()))),
    ("unreachable", |h| h.four().icmp(3, 1).payload(&h.quoted())),
    ("redirect", |h| h.four().icmp(5, 1).put(4, &h.a).payload(&h.quoted())),
    ("quoted tunnel", |h| {
        let inner = Frame::raw().ipv4(h.a, h.b).udp(1, 2).payload(&[1; 40]);
        let tunnel = Frame::raw().ipv4(h.b, h.a).put(9, &[4]).payload(&inner.bytes()).bytes();
        h.four().icmp(3, 1).payload(&tunnel[..64])
    }),
    ("error about an error", |h| {
        let error = Frame::raw().ipv4(h.b, h.a).icmp(3, 1).payload(&h.quoted());
        h.four().icmp(11, 0).payload(&error.bytes())
    }),
    ("error about a redirect", |h| {
        let redirect = Frame::raw().ipv4(h.b, h.a).icmp(5, 1).put(4, &h.a).payload(&h.quoted());
        h.four().icmp(3, 3).payload(&redirect.bytes())
    }),
    ("error about an error6", |h| {
        let error = Frame::raw().ipv6(h.b6, h.a6).icmp6(3, 0).payload(&h.quoted6());
        h.six().icmp6(1, 4).payload(&error.bytes())
    }),
    ("quote of a packet of 28 bytes", |h| {
        let tcp = Frame::raw().ipv4(h.b, h.a).put(9, &[6]).payload(&[0, 80, 1, 2, 3, 4, 5, 6]);
        h.four().icmp(3, 3).payload(&tcp.bytes())
    }),
    ("reverse arp", |h| {
        let arp = h.ethernet().arp(4, (h.mac_a, h.a.into()), (h.mac_b, h.b.into())).bytes();
        h.ethernet().put(12, &[0x80, 0x35]).payload(&arp[14..])
    }),
    ("segments with padding", |h| {
        let start = [59, 3, 4, 0, 0, 0, 0, 0];
        let header = [&start[..], &h.b6.octets(), &[4, 6], &[0; 6]].concat();
        h.six().put(6, &[43]).payload(&header)
    }),
    ("too big", |h| h.six().icmp6(2, 0).payload(&h.quoted6())),
    ("solicitation", |h| discovery(h, 135, &[h.b6], &[&[1, 1][..], &h.mac_a].concat())),
    ("advertisement", |h| discovery(h, 136, &[h.a6], &[&[2, 1][..], &h.mac_a].concat())),
    ("redirect6", |h| {
        let packet = h.quoted6();
        let padded =
            [&packet[..], &vec![0; packet.len().next_multiple_of(8) - packet.len()]].concat();
        let words = (8 + padded.len() / 8 * 8) / 8;
        let option = [&[4, words as u8, 0, 0, 0, 0, 0, 0][..], &padded].concat();
        discovery(h, 137, &[h.a6, h.b6], &option)
    }),
    ("first fragment", |h| h.four().fragment(0, true).tcp(1, 2).payload(&[7; 12])),
    ("later fragment", |h| h.four().fragment(1480, true).put(9, &[6]).payload(&[7; 16])),
    ("raw", |h| Frame::raw().ipv4(h.a, h.b).tcp(1, 2)),
    ("cooked", |h| Frame::cooked().put(6, &h.mac_a).ipv4(h.a, h.b).udp(1, 2)),
    ("cooked2", |h| Frame::cooked2().put(12, &h.mac_a).ipv6(h.a6, h.b6).udp(1, 2)),
    ("loopback", |h| Frame::loopback().ipv4(h.a, h.b).tcp(1, 2)),
    ("ip in ip", |h| {
        let inner = Frame::raw().ipv4(h.b, h.a).tcp(1, 2).payload(b"in");
        h.four().put(9, &[4]).payload(&inner.bytes())
    }),
    ("vxlan", |h| {
        let inner =
            Frame::ethernet().mac(h.mac_b, h.mac_a).ipv6(h.b6, h.a6).udp(1, 2).payload(b"x");
        h.four().udp(9, 4789).payload(&[&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner.bytes()].concat())
    }),
    ("arp in vxlan", |h| {
        let inner = Frame::ethernet().mac(h.mac_b, h.mac_a);
        let inner = inner.arp(arp::REQUEST, (h.mac_b, h.b.into()), (h.mac_a, h.a.into()));
        h.four().udp(9, 4789).payload(&[&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner.bytes()].concat())
    }),
    ("gre", |h| {
        let inner = Frame::raw().ipv4(h.b, h.a).udp(1, 2).payload(b"in");
        h.four().put(9, &[47]).payload(&[&[0, 0, 8, 0][..], &inner.bytes()].concat())
    }),
];

fn rewritten(link: LinkType, frame: &[u8], which: &[Address]) -> Vec<u8> {
    attempt(link, frame, frame.len(), which).expect("a frame that can be rewritten")
}

/// A frame that is so long on the wire, rewritten, if it can be. Else it is as it was.
fn attempt(link: LinkType, frame: &[u8], len: usize, which: &[Address]) -> Option<Vec<u8>> {
    let mut out = frame.to_vec();
    let which = which.iter().copied().collect();
    let done = Rewriter::default().rewrite(link, &mut out, len as u32, which, &mut Flip);
    assert!(done || out == frame);
    done.then_some(out)
}

/// A tunnel on a port of its own hides nothing where the port is named, and is held back where it
/// is not but is known to be used for one.
#[test]
fn a_tunnel_on_a_named_port_is_looked_into() {
    let make = |h: Hosts, port| {
        let inner = Frame::ethernet().mac(h.mac_b, h.mac_a).ipv6(h.b6, h.a6).udp(1, 2);
        let carried = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &inner.payload(b"x").bytes()].concat();
        h.four().udp(9, port).payload(&carried)
    };
    let frame = make(TRUE, 8472).bytes();
    let named = TunnelPorts::NONE.with("vxlan", 8472).unwrap();
    let (mut out, len) = (frame.clone(), frame.len() as u32);
    let mut rewriter = Rewriter::default();
    let all = || Address::ALL.into_iter().collect();
    assert!(!rewriter.rewrite(LinkType::ETHERNET, &mut out, len, all(), &mut Flip));
    assert_eq!(out, frame);
    rewriter.set_ports(&named);
    assert!(rewriter.rewrite(LinkType::ETHERNET, &mut out, len, all(), &mut Flip));
    assert_eq!(out, make(TRUE.renamed(), 8472).bytes());
}

#[test]
fn a_frame_is_as_if_it_had_been_sent_under_the_other_names() {
    for (name, make) in MADE {
        let frame = make(TRUE);
        let expected = make(TRUE.renamed()).bytes();
        assert_eq!(rewritten(frame.link(), &frame.bytes(), &Address::ALL), expected, "{name}");
    }
}

#[test]
fn only_what_is_named_is_rewritten() {
    for (name, make) in MADE {
        let frame = make(TRUE);
        assert_eq!(rewritten(frame.link(), &frame.bytes(), &[]), frame.bytes(), "{name}");
        let other = TRUE.renamed();
        let expected = make(Hosts { mac_a: MAC_A, mac_b: MAC_B, ..other });
        let ip = [Address::IpSrc, Address::IpDst];
        assert_eq!(rewritten(frame.link(), &frame.bytes(), &ip), expected.bytes(), "{name}");
    }
    let frame = TRUE.four().udp(1, 2).payload(b"x");
    let source = Hosts { a: TRUE.renamed().a, ..TRUE }.four().udp(1, 2).payload(b"x");
    let out = rewritten(frame.link(), &frame.bytes(), &[Address::IpSrc]);
    assert_eq!(out, source.bytes());
}

#[test]
fn no_true_address_is_left_in_a_frame_however_it_is_cut() {
    let addresses: [&[u8]; 6] = [&A, &B, &A6.octets(), &B6.octets(), &MAC_A, &MAC_B];
    for (name, make) in MADE {
        let (frame, other) = (make(TRUE), make(TRUE.renamed()).bytes());
        let bytes = frame.bytes();
        for cut in 0..=bytes.len() {
            let out = attempt(frame.link(), &bytes[..cut], bytes.len(), &Address::ALL);
            let Some(out) = out else { continue };
            for (at, byte) in out.iter().enumerate() {
                let address = bytes[at] != other[at] && other[at] == bytes[at] ^ 0xa5;
                assert!(!address || *byte != bytes[at], "{name} cut to {cut}: byte {at}");
            }
            for address in addresses {
                let left = out.windows(address.len()).any(|w| w == address);
                assert!(!left, "{name} cut to {cut} still has {address:?}");
            }
        }
    }
}

#[test]
fn a_wrong_checksum_stays_wrong_and_one_that_was_not_computed_stays_so() {
    let make = |h: Hosts, udp: &[u8; 2], ip: u16| {
        let frame = Frame::ethernet().ipv4(h.a, h.b).udp(1, 2).put(6, udp).payload(b"abc");
        let mut bytes = frame.bytes();
        let wrong = u16::from_be_bytes([bytes[24], bytes[25]]) ^ ip;
        bytes[24..26].copy_from_slice(&wrong.to_be_bytes());
        bytes
    };
    let none = rewritten(LinkType::ETHERNET, &make(TRUE, &[0, 0], 0), &Address::ALL);
    assert_eq!(none[40..42], [0, 0]);
    let all = rewritten(LinkType::ETHERNET, &make(TRUE, &[0x12, 0x34], 0x40), &Address::ALL);
    // The error is the same distance from the right sum before and after.
    let distance = |frame: &[u8], right: &[u8], at: usize| {
        let word = |b: &[u8]| i64::from(u16::from_be_bytes([b[at], b[at + 1]]));
        (word(frame) - word(right)).rem_euclid(0xffff)
    };
    let right = |h: Hosts| h.four().udp(1, 2).payload(b"abc").bytes();
    let (before, after) = (make(TRUE, &[0x12, 0x34], 0x40), right(TRUE.renamed()));
    for at in [24, 40] {
        assert_ne!(distance(&all, &after, at), 0);
        assert_eq!(distance(&all, &after, at), distance(&before, &right(TRUE), at));
    }
}

#[test]
fn a_sum_of_zero_is_written_as_udp_writes_it() {
    // Some payload makes the sum come out as 0 under the other names.
    let hit = (0..=u16::MAX).find(|n| {
        let make = |h: Hosts| h.four().udp(1, 2).payload(&n.to_be_bytes());
        make(TRUE.renamed()).bytes()[40..42] == [0xff, 0xff]
    });
    let n = hit.expect("one of all sums");
    let make = |h: Hosts| h.four().udp(1, 2).payload(&n.to_be_bytes());
    let frame = make(TRUE).bytes();
    let out = rewritten(LinkType::ETHERNET, &frame, &Address::ALL);
    assert_eq!(out, make(TRUE.renamed()).bytes());
}

#[test]
fn routes_and_reports_are_rewritten() {
    let route = |h: Hosts| [&[0, 2, 0, 1, 0, 0, 0, 0][..], &h.a6.octets()].concat();
    let frame = |h: Hosts| {
        // On the way: the pseudo-header has the last stop.
        let packet = Frame::raw().ipv6(h.a6, h.a6).udp(1, 2).payload(b"routed").bytes();
        let mut out = Frame::raw().ipv6(h.a6, h.b6).extension(43, &route(h)[2..]).bytes();
        out[4..6].copy_from_slice(&((24 + packet.len() - 40) as u16).to_be_bytes());
        out[40] = 17;
        out.extend(&packet[40..]);
        out
    };
    let out = rewritten(LinkType::RAW, &frame(TRUE), &Address::ALL);
    assert_eq!(out, frame(TRUE.renamed()));
    let moved = |h: Hosts| {
        // The pseudo-header has the address at home.
        let packet = Frame::raw().ipv6(h.a6, h.b6).udp(1, 2).payload(b"moved").bytes();
        let home = [&[1, 2, 0, 0, 0xc9, 16][..], &h.a6.octets()].concat();
        let mut out = Frame::raw().ipv6(h.b6, h.b6).extension(60, &home).bytes();
        out[4..6].copy_from_slice(&((24 + packet.len() - 40) as u16).to_be_bytes());
        out[40] = 17;
        out.extend(&packet[40..]);
        out
    };
    let out = rewritten(LinkType::RAW, &moved(TRUE), &Address::ALL);
    assert_eq!(out, moved(TRUE.renamed()));
    let options = |h: Hosts| [&[7, 11, 12][..], &h.a, &h.b, &[0]].concat();
    let recorded =
        |h: Hosts| Frame::raw().ipv4(h.a, h.b).options(&options(h)).udp(1, 2).payload(b"x").bytes();
    let out = rewritten(LinkType::RAW, &recorded(TRUE), &Address::ALL);
    assert_eq!(out, recorded(TRUE.renamed()));
}

#[test]
fn every_link_type_is_looked_into() {
    let all: Vec<Frame> =
        samples().into_iter().chain(tunnels()).chain(upper()).map(|(_, frame)| frame).collect();
    for frame in all {
        let (bytes, link) = (frame.bytes(), frame.link());
        for cut in 0..=bytes.len() {
            let Some(once) = attempt(link, &bytes[..cut], bytes.len(), &Address::ALL) else {
                continue;
            };
            let twice = attempt(link, &once, bytes.len(), &Address::ALL);
            assert_eq!(twice.as_deref(), Some(&bytes[..cut]), "{frame:?} {cut}");
        }
    }
}

/// A frame that leaves shows none of these addresses, so one of which that is not sure stays.
#[test]
fn a_frame_that_may_hold_an_unknown_address_is_left_alone() {
    let is_rewritten = |frame: &Frame| {
        let bytes = frame.bytes();
        attempt(frame.link(), &bytes, bytes.len(), &[Address::IpSrc, Address::IpDst]).is_some()
    };
    let ip = |proto: u8| TRUE.four().put(9, &[proto]);
    let later = |proto: u8| ip(proto).fragment(1480, false).payload(&[7; 16]);
    let inner = Frame::raw().ipv4(B, A).udp(1, 2).bytes();
    let tunnels = |n: u32| (0..n).fold(TRUE.ethernet(), |f, _| f.ipv4(A, B)).ipv4(A, B).udp(1, 2);
    let option = |bytes: &[u8]| TRUE.four().options(bytes).udp(1, 2);
    let advertised = |option: &[u8]| discovery(TRUE, 136, &[A6], option);
    let announced = [30, 8, 0x30, 1, A[0], A[1], A[2], A[3]];
    let extended = |class: u8| {
        let quoted = [&TRUE.quoted()[..], &[0; 128]].concat();
        let objects = [0x20, 0, 0, 0, 0, 8, class, 1, A[0], A[1], A[2], A[3]];
        TRUE.four().icmp(11, 0).put(5, &[32]).payload(&[&quoted[..128], &objects].concat())
    };
    let whole: Vec<(&str, Frame)> = vec![
        ("LLDP", TRUE.ethernet().put(12, &[0x88, 0xcc]).payload(&[2; 40])),
        ("an encrypted packet", ip(50).payload(&inner[..19])),
        ("a later fragment of TCP", later(6)),
        ("a TCP header of no length", TRUE.four().tcp(1, 2).put(tcp::DATA_OFFSET, &[0])),
        ("eight tunnels", tunnels(8)),
        ("TCP in a tunnel in a first fragment", {
            let mut long = Frame::raw().ipv4(B, A).tcp(1, 2).payload(&[7; 12]).bytes();
            long[2] = 1;
            ip(4).fragment(0, true).payload(&long)
        }),
        ("labels after a quote", extended(1)),
        ("a router's alert", option(&[148, 4, 0, 0])),
        ("GRE that only acknowledges", ip(47).payload(&[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1])),
    ];
    for (name, frame) in whole {
        assert!(is_rewritten(&frame), "{name}");
    }
    let withheld: Vec<(&str, Frame)> = vec![
        ("an unknown EtherType", TRUE.ethernet().put(12, &[0x12, 0x34]).payload(&[2; 40])),
        ("an unknown protocol", ip(253).payload(&[7; 16])),
        ("a version that is none", TRUE.ethernet().ipv4(A, B).put(0, &[0x75]).udp(1, 2)),
        ("a header beyond the packet", TRUE.four().put(0, &[0x4f]).udp(1, 2)),
        ("nine tunnels", tunnels(9)),
        ("a later fragment of GRE", later(47)),
        ("two tunnels in a first fragment", {
            let mut long = Frame::raw().ipv4(B, A).put(9, &[4]).payload(&inner).bytes();
            long[2] = 1;
            ip(4).fragment(0, true).payload(&long)
        }),
        ("a later fragment of UDP", later(17)),
        ("GRE with a route", ip(47).payload(&[&[0x40, 0, 8, 0][..], &inner].concat())),
        ("EtherIP of another version", ip(97).payload(&[&[0x40, 0][..], &inner].concat())),
        ("a tunnel to no version", ip(4).payload(&[&[0x75][..], &inner[1..]].concat())),
        ("an unknown option", option(&[82, 12, 0, 1, 0, 1, 0, 1, A[0], A[1], A[2], A[3]])),
        ("an option that goes on", option(&[7, 12, 4, A[0], A[1], A[2], A[3], 0])),
        ("an interface after a quote", extended(2)),
        ("an ICMP message of another kind", TRUE.four().icmp(43, 0).payload(&A)),
        ("an option of discovery", advertised(&[24, 2, 64, 0, 0, 0, 0, 0, 0x20, 1, 13, 184, 0, 0])),
        ("an option of no length", advertised(&[1, 0, 0, 0, 0, 0, 0, 0])),
        ("an address announced by MPTCP", TRUE.four().tcp(1, 2).options(&announced)),
        ("the route of a low-power network", {
            TRUE.six().extension(43, &[3, 1, 0, 0, 0, 0, 1, 2]).udp(1, 2)
        }),
    ];
    for (name, frame) in withheld {
        assert!(!is_rewritten(&frame), "{name}");
    }
    let bytes = TRUE.four().udp(1, 2).bytes();
    assert_eq!(attempt(LinkType(195), &bytes, bytes.len(), &Address::ALL), None, "a link type");
    // Attributes of netfilter logs hold MAC addresses.
    let log = [&[2, 0, 0, 1, 32, 0, 9, 0][..], &bytes[14..42]].concat();
    assert!(attempt(LinkType::NFLOG, &log, log.len(), &[Address::IpSrc]).is_some());
    assert_eq!(attempt(LinkType::NFLOG, &log, log.len(), &[Address::EthSrc]), None);
}

/// Bytes that are not there can't leave: a cut is no reason to hold a frame back, but where a
/// header that says what follows was cut.
#[test]
fn a_cut_frame_is_rewritten_as_far_as_it_goes() {
    for (name, make) in MADE {
        let frame = make(TRUE);
        let bytes = frame.bytes();
        let is_withheld = |cut: &usize| {
            attempt(frame.link(), &bytes[..*cut], bytes.len(), &Address::ALL).is_none()
        };
        let withheld: Vec<usize> = (0..=bytes.len()).filter(is_withheld).collect();
        let expected = match *name {
            "vxlan" | "arp in vxlan" => (43..50).collect(),
            "gre" => (35..38).collect(),
            _ => Vec::new(),
        };
        assert_eq!(withheld, expected, "{name}");
    }
}

proptest! {
    #[test]
    fn any_bytes(link in any::<u8>(), which in any::<u8>(), bytes: Vec<u8>) {
        fuzz_rewrite(&[&[link, which][..], &bytes].concat());
    }

    #[test]
    fn mutated_frames(
        n in 0usize..1000, which in any::<u8>(),
        at in 0usize..200,
        byte in prop_oneof![Just(0u8), Just(1), Just(254), Just(255), any::<u8>()],
        cut in 0usize..300,
    ) {
        let all: Vec<Frame> = samples().into_iter().chain(tunnels()).map(|(_, f)| f)
            .chain(MADE.iter().map(|(_, make)| make(TRUE)))
            .chain(hidden::all().into_iter().map(|(_, frame, _)| frame)).collect();
        let frame = &all[n % all.len()];
        let mut bytes = frame.bytes();
        bytes.truncate(cut.max(1));
        let n = bytes.len();
        bytes[at % n] = byte;
        fuzz_rewrite(&[&[frame.link().0 as u8, which][..], &bytes].concat());
    }

    #[test]
    fn random_addresses(a: u32, b: u32, a6: u128, b6: u128, n in 0usize..MADE.len()) {
        let (a, b) = (Ipv4Addr::from(a).octets(), Ipv4Addr::from(b).octets());
        let hosts = Hosts { a, b, a6: a6.into(), b6: b6.into(), ..TRUE };
        let (name, make) = MADE[n];
        let frame = make(hosts);
        let out = rewritten(frame.link(), &frame.bytes(), &Address::ALL);
        prop_assert_eq!(out, make(hosts.renamed()).bytes(), "{}", name);
    }
}
