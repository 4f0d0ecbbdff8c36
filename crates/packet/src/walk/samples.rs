//! One crafted frame of each shape that the walk knows, for the tests of walk and readers.

use crate::craft::Frame;
use crate::craft::messages::{client_hello, dhcp, dns_in_tcp, dns_query, dns_response};
use crate::{arp, ipv4, ipv6, tcp, udp, vlan};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const A: [u8; 4] = [10, 0, 0, 1];
pub(crate) const B: [u8; 4] = [10, 0, 0, 2];
pub(crate) const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub(crate) const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// Name and frame. The names are shown in snapshots.
pub(crate) fn samples() -> Vec<(&'static str, Frame)> {
    let mut samples = links();
    samples.extend(ip());
    samples.extend(faults());
    samples
}

/// Packets with messages of the protocols above the transport. The walk does not see these.
pub(crate) fn upper() -> Vec<(&'static str, Frame)> {
    let udp = |sport, dport| Frame::ethernet().ipv4(A, B).udp(sport, dport);
    let tcp = |sport, dport| Frame::ethernet().ipv4(A, B).tcp(sport, dport).flags(tcp::ACK);
    let ip_of = |protocol| Frame::ethernet().ipv4(A, B).put(ipv4::PROTOCOL, &[protocol]);
    let query = dns_query(7, "www.example.org", 1);
    let syn = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 0, 1, 3, 3, 7];
    let sack = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    vec![
        ("tcp options", tcp(40_000, 80).flags(tcp::SYN).options(&syn)),
        ("sack", tcp(40_000, 80).options(&sack)),
        ("dns query", udp(5_000, 53).payload(&query)),
        (
            "dns response",
            udp(53, 5_000).payload(&dns_response(7, "www.example.org", 1, 0, &[&[192, 0, 2, 1]])),
        ),
        ("dns in tcp", tcp(5_000, 53).payload(&dns_in_tcp(&query))),
        (
            "client hello",
            tcp(40_000, 443).payload(&client_hello("www.example.org", &["h2"], &[0x0304])),
        ),
        ("http request", tcp(40_000, 80).payload(b"GET /a HTTP/1.1\r\nHost: A.example\r\n\r\n")),
        ("http response", tcp(80, 40_000).payload(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n")),
        (
            "dhcp",
            udp(67, 68).payload(&dhcp(2, 7, [2; 6], [10, 0, 0, 9], &[(53, &[5]), (12, b"h")])),
        ),
        ("ntp", udp(123, 123).payload(&[&[0x24, 2][..], &[9; 46]].concat())),
        ("ntp6 private", Frame::ethernet().ipv6(A6, B6).udp(9, 123).payload(&[0x17; 8])),
        ("igmp", ip_of(2).payload(&[0x16, 0, 0, 0, 224, 0, 0, 251])),
        ("igmp report", ip_of(2).payload(&[0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 239, 1, 2, 3])),
        ("esp", ip_of(50).payload(&[0, 0, 0, 9, 0, 0, 0, 8, 1, 2, 3, 4])),
        ("lldp in vlan", Frame::ethernet().vlan(7).put(2, &[0x88, 0xcc]).payload(&[2; 40])),
        ("mdns6", Frame::ethernet().ipv6(A6, B6).udp(5353, 5353).payload(&query)),
    ]
}

fn links() -> Vec<(&'static str, Frame)> {
    let eth = Frame::ethernet;
    let sender = ([2, 0, 0, 0, 0, 1], Ipv4Addr::from(A));
    let target = ([0; 6], Ipv4Addr::from(B));
    let tags = |n: u16| (0..n).fold(eth(), Frame::vlan).ipv4(A, B).udp(1, 2);
    vec![
        ("tcp", eth().ipv4(A, B).tcp(40_000, 80).flags(tcp::SYN).payload(b"hi")),
        ("udp", eth().ipv4(A, B).udp(5_000, 53).payload(b"query")),
        ("tcp6", eth().ipv6(A6, B6).tcp(40_000, 80).flags(tcp::ACK).options(&[1; 12])),
        ("udp6", eth().ipv6(A6, B6).udp(5_000, 53).payload(b"query")),
        (
            "padded",
            eth()
                .ipv4(A, B)
                .put(ipv4::TOTAL_LENGTH, &[0, 28])
                .udp(1, 2)
                .put(udp::LENGTH, &[0, 8])
                .payload(&[0; 18]),
        ),
        ("tagged", eth().vlan(7).ipv4(A, B).tcp(1, 2)),
        ("tagged6", eth().vlan(7).ipv6(A6, B6).udp(1, 2)),
        ("qinq", eth().tag(vlan::SERVICE, 0x5064).vlan(200).ipv4(A, B).udp(1, 2)),
        ("old qinq", eth().tag(vlan::SERVICE_OLD, 1).vlan(2).ipv6(A6, B6).udp(1, 2)),
        ("eight tags", tags(8)),
        ("nine tags", tags(9)),
        ("arp", eth().arp(arp::REQUEST, sender, target)),
        ("arp in vlan", eth().vlan(1).arp(arp::REPLY, sender, target).payload(&[0; 18])),
        ("llc", eth().put(12, &[0, 38]).payload(&[0x42; 38])),
        ("lldp", eth().put(12, &[0x88, 0xcc]).payload(&[2; 40])),
        ("raw", Frame::raw().ipv4(A, B).tcp(1, 2)),
        ("raw6", Frame::raw().ipv6(A6, B6).tcp(1, 2)),
        ("loopback", Frame::loopback().ipv4(A, B).tcp(1, 2)),
        ("loopback big-endian", Frame::loopback().put(0, &[0, 0, 0, 24]).ipv6(A6, B6).udp(1, 2)),
        ("loopback other", Frame::loopback().put(0, &[7, 0, 0, 0]).payload(&[0; 30])),
        ("cooked", Frame::cooked().ipv4(A, B).udp(1, 2)),
        ("cooked tagged", Frame::cooked().vlan(9).ipv6(A6, B6).tcp(1, 2)),
        ("cooked netlink", Frame::cooked().put(2, &[3, 56, 0, 6]).ipv4(A, B).udp(1, 2)),
        ("cooked2", Frame::cooked2().ipv4(A, B).udp(1, 2)),
        ("cooked2 tagged", Frame::cooked2().vlan(9).ipv4(A, B).udp(1, 2)),
    ]
}

fn ip() -> Vec<(&'static str, Frame)> {
    let four = || Frame::ethernet().ipv4(A, B);
    let six = || Frame::ethernet().ipv6(A6, B6);
    let ah = ipv6::AUTHENTICATION;
    vec![
        ("ping", four().icmp(8, 0).echo(7, 1).payload(b"x")),
        ("unreachable", four().icmp(3, 1).payload(&[0; 28])),
        ("ping6", six().icmp6(128, 0).echo(7, 1)),
        ("neighbour", six().icmp6(135, 0).payload(&[0; 16])),
        ("sctp", four().put(ipv4::PROTOCOL, &[132]).payload(&[0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("dccp6", six().put(ipv6::NEXT_HEADER, &[33]).payload(&[0, 5, 0, 6, 0, 0, 0, 0])),
        ("udp-lite", four().put(ipv4::PROTOCOL, &[136]).payload(&[0, 5, 0, 6])),
        ("gre", four().put(ipv4::PROTOCOL, &[47]).payload(&[0; 24])),
        ("options", four().options(&[7, 7, 4, 0, 0, 0, 0]).tcp(1, 2).flags(tcp::ACK)),
        ("first fragment", four().id(9).fragment(0, true).udp(1, 2).put(udp::LENGTH, &[9, 0])),
        ("first fragment tcp", four().fragment(0, true).tcp(1, 2)),
        ("later fragment", four().id(9).fragment(1480, false).payload(&[6; 40])),
        ("dont fragment", four().dont_fragment().tcp(1, 2)),
        ("unsegmented", four().put(ipv4::TOTAL_LENGTH, &[0, 0]).tcp(1, 2).payload(&[7; 100])),
        ("unsegmented6", six().put(ipv6::PAYLOAD_LENGTH, &[0, 0]).tcp(1, 2).payload(&[7; 100])),
        (
            "jumbo",
            six()
                .put(ipv6::PAYLOAD_LENGTH, &[0, 0])
                .extension(0, &[0xc2, 4, 0, 1, 0, 0])
                .udp(1, 2)
                .put(udp::LENGTH, &[0, 0]),
        ),
        ("empty6", six().put(ipv6::NEXT_HEADER, &[59])),
        ("ah", four().extension(ah, &[0; 22]).tcp(1, 2)),
        ("ah6", six().extension(ah, &[0; 22]).tcp(1, 2)),
        ("ah in a later fragment", four().fragment(64, false).extension(ah, &[0; 22])),
        (
            "extensions",
            six().extension(0, &[]).extension(43, &[0; 14]).extension(60, &[]).udp(1, 2),
        ),
        (
            "extensions 2",
            six().extension(135, &[]).extension(139, &[]).extension(140, &[]).tcp(1, 2),
        ),
        ("first fragment6", six().extension(0, &[]).fragment(0, true).udp(1, 2)),
        ("later fragment6", six().fragment(1448, false).payload(&[6; 40])),
        ("atomic fragment6", six().fragment(0, false).udp(1, 2)),
        ("esp6", six().extension(60, &[]).put(0, &[50]).payload(&[0; 20])),
        ("ip in ip", four().ipv4(B, A).udp(1, 2)),
    ]
}

fn faults() -> Vec<(&'static str, Frame)> {
    let four = || Frame::ethernet().ipv4(A, B);
    let six = || Frame::ethernet().ipv6(A6, B6);
    vec![
        ("arp for token ring", {
            let zero = ([0; 6], Ipv4Addr::UNSPECIFIED);
            Frame::ethernet().arp(1, zero, zero).put(0, &[0, 6])
        }),
        ("short ethernet", Frame::raw().payload(&[0x45; 3])),
        ("version", four().put(0, &[0x65]).udp(1, 2)),
        ("version6", six().put(0, &[0x40]).udp(1, 2)),
        ("raw version", Frame::raw().payload(&[0x55; 40])),
        ("header length", four().put(0, &[0x44]).udp(1, 2)),
        ("header length beyond total", four().put(0, &[0x4f]).udp(1, 2)),
        ("total length", four().put(ipv4::TOTAL_LENGTH, &[5, 0]).tcp(1, 2)),
        ("payload length", six().put(ipv6::PAYLOAD_LENGTH, &[5, 0]).udp(1, 2)),
        ("extension length", six().extension(60, &[]).put(1, &[90]).udp(1, 2)),
        ("many extensions", (0..17).fold(six(), |f, _| f.extension(60, &[])).udp(1, 2)),
        ("sixteen extensions", (0..16).fold(six(), |f, _| f.extension(60, &[])).udp(1, 2)),
        ("data offset", four().tcp(1, 2).flags(tcp::SYN).put(tcp::DATA_OFFSET, &[0x40])),
        ("data offset beyond", four().tcp(1, 2).flags(tcp::SYN).put(tcp::DATA_OFFSET, &[0xf0])),
        ("data offset6", six().tcp(1, 2).put(tcp::DATA_OFFSET, &[0x10])),
        ("udp length", four().udp(1, 2).put(udp::LENGTH, &[0, 7])),
        ("udp length 0", four().udp(1, 2).put(udp::LENGTH, &[0, 0])),
        ("udp length beyond", four().udp(1, 2).put(udp::LENGTH, &[1, 0])),
        ("tcp in 8 bytes", four().put(ipv4::PROTOCOL, &[6]).payload(&[0, 1, 0, 2, 0, 0, 0, 0])),
        ("udp in 3 bytes", four().put(ipv4::PROTOCOL, &[17]).payload(&[0; 3])),
        ("padding is no header", four().put(ipv4::TOTAL_LENGTH, &[0, 28]).tcp(1, 2)),
        ("icmp in 2 bytes", four().put(ipv4::PROTOCOL, &[1]).payload(&[8, 0])),
    ]
}
