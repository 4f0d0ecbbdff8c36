//! Frames of which the end was cut off, made whole and shorter: lengths and checksums of the
//! outermost IP packet say what is there.
//!
//! A cut frame on a wire would be a packet that breaks off, which every host on its way throws
//! away. The fields that are set: the total length and checksum of an IPv4 header or the payload
//! length of an IPv6 header; the length in a UDP header; the checksum of TCP, UDP, ICMP and ICMPv6.
//! A checksum of zero in UDP over IPv4 (RFC 768: none) stays. Fragments keep the checksum of their
//! datagram, which nobody can know here, and so do other protocols theirs, such as SCTP. A header
//! that is cut itself stays as it is. So do packets in tunnels: only their outermost lengths are
//! those of what is there.

use crate::checksum::checksum;
use crate::source::LinkType;
use crate::{ethernet, icmp, ipv4, ipv6, tcp, udp, vlan};

/// IP protocol numbers with a checksum that can be set.
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Bytes of a Linux cooked header, and where its EtherType is.
const COOKED: (usize, usize) = (16, 14);
const COOKED2: (usize, usize) = (20, 0);

/// Bytes before IP in frames of BSD loopback.
const LOOPBACK_LEN: usize = 4;

/// Where in a frame its IP packet starts: behind an Ethernet header with any VLAN tags, a cooked or
/// a loopback header, or at once. `None` if the frame carries something else.
pub fn ip_start(link: LinkType, frame: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let ethertype = |(len, at): (usize, usize)| {
        matches!(word(at)?, ethernet::IPV4 | ethernet::IPV6).then_some(len)
    };
    let at = match link {
        LinkType::ETHERNET => {
            let mut at = ethernet::TYPE;
            while vlan::is_tag(word(at)?) {
                at += vlan::TAG_LEN;
            }
            matches!(word(at)?, ethernet::IPV4 | ethernet::IPV6).then_some(at + 2)?
        }
        LinkType::RAW | LinkType::RAW_BSD | LinkType::IPV4 | LinkType::IPV6 => 0,
        LinkType::NULL | LinkType::LOOP => LOOPBACK_LEN,
        LinkType::LINUX_SLL => ethertype(COOKED)?,
        LinkType::LINUX_SLL2 => ethertype(COOKED2)?,
        _ => return None,
    };
    version(frame.get(at..)?).map(|_| at)
}

/// Whether [`ip_start`] may find an IP packet in frames of this link type.
pub fn may_be_ip(link: LinkType) -> bool {
    matches!(
        link,
        LinkType::ETHERNET
            | LinkType::RAW
            | LinkType::RAW_BSD
            | LinkType::IPV4
            | LinkType::IPV6
            | LinkType::NULL
            | LinkType::LOOP
            | LinkType::LINUX_SLL
            | LinkType::LINUX_SLL2
    )
}

/// The version of the IP packet that begins here, if one does.
pub fn version(packet: &[u8]) -> Option<u8> {
    packet.first().map(|byte| byte >> 4).filter(|version| matches!(version, 4 | 6))
}

/// Makes a frame whose end was cut off a whole, shorter one. Whatever carries no IP packet stays as
/// it is, and so does a packet of which nothing is missing.
pub fn make_whole(link: LinkType, frame: &mut [u8]) {
    let Some(packet) = ip_start(link, frame).and_then(|at| frame.get_mut(at..)) else { return };
    match version(packet) {
        Some(4) => whole_ipv4(packet),
        Some(6) => whole_ipv6(packet),
        _ => {}
    }
}

fn set(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn whole_ipv4(packet: &mut [u8]) {
    let Ok(len) = u16::try_from(packet.len()) else { return };
    let header_len = usize::from(packet[ipv4::VERSION_IHL] & 0xf) * 4;
    if header_len < ipv4::HEADER_LEN
        || packet.len() < header_len
        || get(packet, ipv4::TOTAL_LENGTH) <= len
    {
        return;
    }
    let (header, payload) = packet.split_at_mut(header_len);
    set(header, ipv4::TOTAL_LENGTH, len);
    set(header, ipv4::CHECKSUM, 0);
    let sum = checksum(&[header]);
    set(header, ipv4::CHECKSUM, sum);
    let fragment = get(header, ipv4::FRAGMENT) & (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_BITS) != 0;
    let addresses = &header[ipv4::SOURCE..ipv4::HEADER_LEN];
    whole_transport(header[ipv4::PROTOCOL], addresses, payload, fragment);
}

fn whole_ipv6(packet: &mut [u8]) {
    let Some((header, mut payload)) = packet.split_at_mut_checked(ipv6::HEADER_LEN) else { return };
    let Ok(len) = u16::try_from(payload.len()) else { return };
    if get(header, ipv6::PAYLOAD_LENGTH) <= len {
        return;
    }
    set(header, ipv6::PAYLOAD_LENGTH, len);
    let mut protocol = header[ipv6::NEXT_HEADER];
    let mut fragment = false;
    while ipv6::is_extension(protocol) {
        let Ok(extension) = ipv6::Extension::new(protocol, payload) else { return };
        fragment |= extension.fragment().is_some();
        protocol = extension.next_header();
        let Some((_, rest)) = payload.split_at_mut_checked(extension.header_len()) else { return };
        payload = rest;
    }
    let addresses = &header[ipv6::SOURCE..ipv6::HEADER_LEN];
    whole_transport(protocol, addresses, payload, fragment);
}

/// Sets the length and the checksum in the header of a transport protocol.
fn whole_transport(protocol: u8, addresses: &[u8], payload: &mut [u8], fragment: bool) {
    let (header_len, sum_at) = match protocol {
        tcp::PROTOCOL => (tcp::HEADER_LEN, tcp::CHECKSUM),
        udp::PROTOCOL => (udp::HEADER_LEN, udp::CHECKSUM),
        ICMP | ICMP6 => (icmp::HEADER_LEN, icmp::CHECKSUM),
        _ => return,
    };
    if fragment || payload.len() < header_len {
        return;
    }
    let len = payload.len() as u32;
    if protocol == udp::PROTOCOL {
        set(payload, udp::LENGTH, len as u16);
        if addresses.len() == 8 && get(payload, sum_at) == 0 {
            return;
        }
    }
    set(payload, sum_at, 0);
    let sum = if protocol == ICMP {
        checksum(&[payload])
    } else {
        checksum(&[addresses, &len.to_be_bytes(), &[0, 0, 0, protocol], payload])
    };
    // RFC 768: a checksum of zero is sent as all ones.
    let zero = sum == 0 && protocol == udp::PROTOCOL;
    set(payload, sum_at, if zero { 0xffff } else { sum });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::Frame;

    const A: [u8; 4] = [192, 0, 2, 1];
    const B: [u8; 4] = [198, 51, 100, 2];
    const A6: [u16; 8] = [0x2001, 0xdb8, 1, 0, 0, 0, 0, 1];
    const B6: [u16; 8] = [0x2001, 0xdb8, 2, 0, 0, 0, 0, 2];

    /// A frame cut and made whole is the one that would have been sent with the shorter payload.
    fn check(name: &str, frame: impl Fn(&[u8]) -> Frame) {
        let payload: Vec<u8> = (0..200u8).map(|i| i.wrapping_mul(37)).collect();
        let long = frame(&payload);
        let whole = long.bytes();
        let empty = frame(&[]).bytes().len();
        for keep in empty..whole.len() {
            let mut cut = whole[..keep].to_vec();
            make_whole(long.link(), &mut cut);
            let want = frame(&payload[..keep - empty]).bytes();
            assert!(cut == want, "{name}, {} bytes of payload:\n{cut:x?}\n{want:x?}", keep - empty);
        }
        // Nothing is missing, so nothing changes; padding behind the packet is no part of it.
        let mut padded = [&whole[..], &[0; 9]].concat();
        make_whole(long.link(), &mut padded);
        assert_eq!(padded, [&whole[..], &[0; 9]].concat(), "{name}");
        // Whatever is left of it, nothing panics, and nothing but headers changes.
        for keep in 0..empty {
            let mut cut = whole[..keep].to_vec();
            make_whole(long.link(), &mut cut);
            assert_eq!(cut.len(), keep, "{name}");
        }
    }

    #[test]
    fn as_if_the_payload_had_been_shorter() {
        check("tcp", |p| Frame::ethernet().ipv4(A, B).tcp(1, 2).payload(p));
        check("udp", |p| Frame::ethernet().ipv4(A, B).udp(1, 2).payload(p));
        check("icmp", |p| Frame::ethernet().ipv4(A, B).icmp(8, 0).payload(p));
        check("tcp6", |p| Frame::ethernet().ipv6(A6, B6).tcp(1, 2).payload(p));
        check("udp6", |p| Frame::ethernet().ipv6(A6, B6).udp(1, 2).payload(p));
        check("icmp6", |p| Frame::ethernet().ipv6(A6, B6).icmp6(128, 0).payload(p));
        check("vlans", |p| Frame::ethernet().vlan(7).vlan(8).ipv4(A, B).udp(1, 2).payload(p));
        check("raw", |p| Frame::raw().ipv4(A, B).tcp(1, 2).payload(p));
        check("cooked", |p| Frame::cooked().ipv4(A, B).tcp(1, 2).payload(p));
        check("cooked2", |p| Frame::cooked2().ipv6(A6, B6).udp(1, 2).payload(p));
        let options = [1, 1, 1, 1];
        check("options", |p| Frame::ethernet().ipv4(A, B).options(&options).udp(1, 2).payload(p));
        check("extension", |p| {
            let hop = [1, 4, 0, 0, 0, 0];
            Frame::ethernet().ipv6(A6, B6).extension(ipv6::HOP_BY_HOP, &hop).tcp(1, 2).payload(p)
        });
    }

    #[test]
    fn an_absent_udp_checksum_stays_absent() {
        let none = |p: &[u8]| {
            Frame::ethernet().ipv4(A, B).udp(1, 2).put(udp::CHECKSUM, &[0, 0]).payload(p)
        };
        check("no checksum", none);
    }

    /// Only the checksum of the whole datagram could be right.
    #[test]
    fn fragments_keep_the_checksum_of_their_datagram() {
        let frame = Frame::raw().ipv4(A, B).fragment(0, true).udp(1, 2).payload(&[9; 64]);
        let whole = frame.bytes();
        let mut cut = whole[..50].to_vec();
        make_whole(frame.link(), &mut cut);
        assert_eq!(get(&cut, ipv4::TOTAL_LENGTH), 50);
        assert_eq!(checksum(&[&cut[..20]]), 0);
        assert_eq!(cut[20..], whole[20..50]);
    }

    #[test]
    fn what_is_no_ip_has_no_start() {
        let arp = [&[0; 12][..], &[0x08, 0x06], &[0x45; 40]].concat();
        assert_eq!(ip_start(LinkType::ETHERNET, &arp), None);
        let ip = Frame::ethernet().vlan(1).ipv4(A, B).bytes();
        assert_eq!(ip_start(LinkType::ETHERNET, &ip), Some(18));
        assert_eq!(ip_start(LinkType::ETHERNET, &ip[..18]), None);
        assert_eq!(ip_start(LinkType::RADIOTAP, &ip), None);
        assert_eq!(ip_start(LinkType::NULL, &[2, 0, 0, 0, 0x60]), Some(4));
    }

    #[test]
    fn any_bytes_are_taken() {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u8
        };
        let links = [LinkType::RAW, LinkType::ETHERNET, LinkType::LINUX_SLL, LinkType::LOOP];
        for round in 0..20_000 {
            let mut frame: Vec<u8> = (0..next() % 90).map(|_| next()).collect();
            if let (1, Some(first)) = (round % 2, frame.first_mut()) {
                *first = if *first < 128 { 0x45 } else { 0x60 };
            }
            make_whole(links[round % 4], &mut frame);
        }
    }
}
