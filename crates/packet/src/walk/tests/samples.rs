//! One crafted frame of each shape that the walk knows, for the tests of walk and readers.

use crate::craft::Frame;
use crate::craft::messages::{client_hello, dhcp, dns_in_tcp, dns_query, dns_response};
use crate::source::LinkType;
use crate::{arp, ipv4, ipv6, mpls, nsh, port_tag, pppoe, tcp, udp, vlan};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const A: [u8; 4] = [10, 0, 0, 1];
pub(crate) const B: [u8; 4] = [10, 0, 0, 2];
pub(crate) const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub(crate) const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// Name and frame. The names are shown in snapshots.
pub(crate) fn samples() -> Vec<(&'static str, Frame)> {
    let mut samples = links();
    samples.extend(serial());
    samples.extend(wireless());
    samples.extend(shims());
    samples.extend(ip());
    samples.extend(faults());
    samples.extend(tunnels());
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

/// Packets in tunnels, and what only looks so.
pub(crate) fn tunnels() -> Vec<(&'static str, Frame)> {
    let (c, d) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let out = |proto: u8| Frame::ethernet().ipv4(A, B).put(ipv4::PROTOCOL, &[proto]);
    let port =
        |port: u16, header: &[u8]| Frame::ethernet().ipv4(A, B).udp(50_000, port).header(0, header);
    let inner = Frame::raw().ipv4(c, d).tcp(3, 4).bytes();
    let frame = Frame::ethernet().vlan(5).ipv4(c, d).tcp(3, 4).bytes();
    let wlan = [&[8, 2][..], &[0; 22], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    let vxlan = [8, 0, 0, 0, 0, 0, 9, 0];
    vec![
        ("ip in ip in ip", out(4).ipv4(B, A).ipv4(c, d).tcp(3, 4)),
        ("6in4", out(41).ipv6(A6, B6).udp(3, 4)),
        ("4in6", Frame::raw().ipv6(A6, B6).ipv4(c, d).tcp(3, 4)),
        ("etherip", out(97).header(0, &[0x30, 0]).payload(&frame)),
        ("mpls in ip", out(137).header(0, &[0, 1, 0x11, 64]).payload(&inner)),
        ("gre ip", out(47).header(0, &[0, 0, 8, 0]).payload(&inner)),
        ("gre bridged", out(47).header(0, &[0x20, 0, 0x65, 0x58, 0, 0, 0, 7]).payload(&frame)),
        (
            "gre ppp",
            out(47)
                .header(0, &[0x30, 1, 0x88, 0x0b, 0, 44, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21])
                .payload(&inner),
        ),
        (
            "gre ppp of version 0",
            out(47).header(0, &[0, 0, 0x88, 0x0b, 0xff, 3, 0, 0x21]).payload(&inner),
        ),
        (
            "gre ppp with a key",
            out(47).header(0, &[0x20, 0, 0x88, 0x0b, 0, 0, 0, 7, 0x21]).payload(&inner),
        ),
        (
            "gre ppp acknowledgement",
            out(47).header(0, &[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 1]),
        ),
        ("gre arp", out(47).header(0, &[0, 0, 8, 6]).payload(&[0; 28])),
        ("gre aruba", out(47).header(0, &[0, 0, 0x82, 0]).payload(&[&wlan[..], &inner].concat())),
        ("erspan", out(47).header(0, &[0, 0, 0x88, 0xbe]).payload(&frame)),
        (
            "erspan ii",
            out(47)
                .header(0, &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 0, 0, 0, 0, 0])
                .payload(&frame),
        ),
        ("erspan iii", {
            let header = [&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20][..], &[0; 11]].concat();
            out(47).header(0, &header).payload(&frame)
        }),
        ("vxlan", port(4789, &vxlan).payload(&frame)),
        ("vxlan gpe", port(4790, &[0x0c, 0, 0, 1, 0, 0, 9, 0]).payload(&inner)),
        ("vxlan without identifier", port(4789, &[0; 8]).payload(&frame)),
        ("geneve", port(6081, &[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 4]).payload(&frame)),
        ("gtp", port(2152, &[0x30, 255, 0, 40, 0, 0, 0, 9]).payload(&inner)),
        ("gtp echo", port(2152, &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0])),
        ("gtp garbage", port(2152, &[0x30, 255, 0, 40, 0, 0, 0, 9]).payload(&[0x55; 30])),
        ("teredo", port(3544, &[0, 0, 1, 2, 3, 4, 5, 6]).ipv6(A6, B6).udp(3, 4)),
        ("answer on the port of teredo", port(3544, &[0x60, 0, 0x81, 0x80]).payload(&[0; 60])),
        ("in a tagged frame", {
            let udp = Frame::ethernet().vlan(7).ipv4(A, B).udp(4789, 9).header(0, &vxlan);
            udp.payload(&frame)
        }),
        ("tunnels without end", (0..20).fold(Frame::ethernet(), |f, _| f.ipv4(A, B)).udp(1, 2)),
        ("in a first fragment", {
            let first = Frame::ethernet().ipv4(A, B).fragment(0, true);
            first.put(ipv4::PROTOCOL, &[4]).payload(&inner[..30])
        }),
        ("in a later fragment", {
            let later = Frame::ethernet().ipv4(A, B).fragment(64, true);
            later.put(ipv4::PROTOCOL, &[4]).payload(&inner)
        }),
        ("malformed inside", out(4).ipv4(c, d).tcp(3, 4).put(tcp::DATA_OFFSET, &[0])),
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

/// Serial links and logs.
fn serial() -> Vec<(&'static str, Frame)> {
    let of = |link: LinkType, header: &[u8]| Frame::of(link, header).ipv4(A, B).udp(1, 2);
    let six = |link: LinkType, header: &[u8]| Frame::of(link, header).ipv6(A6, B6).udp(1, 2);
    let log = [2, 0, 0, 5, 8, 0, 1, 0, 0, 1, 0, 0, 5, 0, 10, 0, b'x', 0, 0, 0];
    vec![
        ("slip", of(LinkType::SLIP, &[0; 16])),
        ("ppp", of(LinkType::PPP, &[0xff, 3, 0, 0x21])),
        ("ppp bare", six(LinkType::PPP, &[0, 0x57])),
        ("ppp one byte", of(LinkType::PPP, &[0x21])),
        ("ppp mpls", of(LinkType::PPP, &[0xff, 3, 2, 0x81, 0, 1, 1, 64])),
        ("ppp lcp", Frame::of(LinkType::PPP, &[0xff, 3, 0xc0, 0x21, 1, 1, 0, 4])),
        ("ppp serial", of(LinkType::PPP_SERIAL, &[0xff, 3, 0, 0x21])),
        ("ppp or hdlc", of(LinkType::PPP, &[0x0f, 0, 8, 0])),
        ("hdlc", six(LinkType::C_HDLC, &[0x8f, 0, 0x86, 0xdd])),
        ("hdlc slarp", Frame::of(LinkType::C_HDLC, &[0x8f, 0, 0x80, 0x35]).payload(&[0; 18])),
        ("frame relay", of(LinkType::FRELAY, &[0x18, 0x41, 3, 0xcc])),
        ("frame relay6", six(LinkType::FRELAY, &[0x18, 0x41, 3, 0x8e])),
        ("frame relay snap", of(LinkType::FRELAY, &[0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0])),
        ("frame relay cisco", of(LinkType::FRELAY, &[0x18, 0x41, 8, 0])),
        ("frame relay address", Frame::of(LinkType::FRELAY, &[0; 8])),
        ("nflog", of(LinkType::NFLOG, &[&log[..], &[32, 0, 9, 0]].concat())),
        ("nflog big-endian", {
            let log = [10, 0, 0, 5, 0, 5, 0, 10, b'x', 0, 0, 0, 0, 52, 0, 9];
            six(LinkType::NFLOG, &log)
        }),
        ("nflog without packet", Frame::of(LinkType::NFLOG, &log)),
        ("nflog attribute", of(LinkType::NFLOG, &[2, 0, 0, 0, 3, 0, 9, 0])),
        ("nflog length", of(LinkType::NFLOG, &[2, 0, 0, 0, 99, 0, 9, 0])),
    ]
}

fn wireless() -> Vec<(&'static str, Frame)> {
    let addresses = [[2, 0, 0, 0, 0, 7], [2, 0, 0, 0, 0, 8], [2, 0, 0, 0, 0, 9]].concat();
    let header = |control: [u8; 2], more: &[u8]| {
        [&control[..], &[0, 0], &addresses, &[0x30, 0], more].concat()
    };
    let snap = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let data = header([8, 1], &snap);
    let wlan = |header: &[u8]| Frame::of(LinkType::IEEE802_11, header);
    let behind = |link: LinkType, front: &[u8], rest: &[u8]| {
        Frame::of(link, &[front, rest].concat()).ipv4(A, B).udp(1, 2)
    };
    let ppi = [0, 0, 8, 0, 105, 0, 0, 0];
    let radio = [0, 0, 14, 0, 0x2e, 0, 0, 0, 0, 12, 0x6c, 9, 0xa0, 0, 0xc4, 0];
    let radio = |flags: u8, len: u8| {
        let mut radio = radio.to_vec();
        (radio[2], radio[8]) = (len, flags);
        radio.truncate(len.into());
        radio
    };
    vec![
        ("wlan", wlan(&data).ipv4(A, B).tcp(1, 2)),
        ("wlan qos", wlan(&header([0x88, 2], &[&[0, 0], &snap[..]].concat())).ipv4(A, B).udp(1, 2)),
        ("wlan aggregate", {
            let body = [&[0x80, 0], &[0; 14][..], &snap].concat();
            wlan(&header([0x88, 2], &body)).ipv4(A, B).udp(1, 2)
        }),
        ("wlan between", {
            let body = [&[2, 0, 0, 0, 0, 6][..], &snap].concat();
            wlan(&header([8, 3], &body)).ipv4(A, B).udp(1, 2)
        }),
        ("wlan encrypted", wlan(&header([8, 0x41], &[7; 40]))),
        ("wlan beacon", wlan(&header([0x80, 0], &[0; 30]))),
        ("wlan acknowledgement", wlan(&[0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 9])),
        ("wlan version", wlan(&[1; 40])),
        ("wlan short", wlan(&data[..20])),
        ("radiotap", behind(LinkType::RADIOTAP, &radio(0, 15), &data)),
        ("radiotap checksum", {
            let front = [&radio(0x10, 16)[..], &data].concat();
            let checksum = |frame: Frame| frame.put(udp::LENGTH, &[0, 8]).payload(&[0; 4]);
            let ip = Frame::of(LinkType::RADIOTAP, &front).ipv4(A, B);
            checksum(ip.put(ipv4::TOTAL_LENGTH, &[0, 28]).udp(1, 2))
        }),
        ("radiotap padded", {
            let body = [&[0, 0, 0, 0][..], &snap].concat();
            behind(LinkType::RADIOTAP, &radio(0x20, 15), &header([0x88, 2], &body))
        }),
        ("radiotap length", behind(LinkType::RADIOTAP, &[0, 0, 255, 0, 0, 0, 0, 0], &data)),
        ("radiotap version", behind(LinkType::RADIOTAP, &[1, 0, 8, 0, 0, 0, 0, 0], &data)),
        ("ppi", behind(LinkType::PPI, &ppi, &data)),
        ("ppi in ppi", behind(LinkType::PPI, &[0, 0, 8, 0, 192, 0, 0, 0], &ppi)),
        ("ppi length", behind(LinkType::PPI, &[0, 0, 7, 0, 1, 0, 0, 0], &data)),
    ]
}

/// Frames with headers between Ethernet and IP.
fn shims() -> Vec<(&'static str, Frame)> {
    let eth = Frame::ethernet;
    let four = |frame: Frame| frame.ipv4(A, B).udp(1, 2);
    let label = |n: u8, bottom: u8| [0, n, n << 4 | bottom, 64];
    let stack = |n: u16| (1..=n).flat_map(|i| label(i as u8, u8::from(i == n))).collect::<Vec<_>>();
    let inner = Frame::ethernet().vlan(5).ipv4(A, B).udp(1, 2).bytes();
    let nsh = |next: u8| [0x0f, 0xc2, 1, next, 0, 0, 1, 255];
    let session = |len: u16| [&[0x11, 0, 0, 9][..], &len.to_be_bytes(), &[0, 0x21]].concat();
    vec![
        ("snap", four(eth().header(46, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]))),
        ("snap unsegmented", {
            let ip = eth().header(52, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]).ipv4(A, B);
            ip.put(ipv4::TOTAL_LENGTH, &[0, 0]).tcp(1, 2).payload(b"snap").payload(&[9; 6])
        }),
        ("snap cdp", eth().header(46, &[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0]).payload(&[0; 40])),
        ("etag", eth().header(port_tag::ETAG, &[0, 0, 0, 0, 0, 0, 0x81, 0, 0, 7, 8, 0]).ipv4(A, B)),
        ("vntag", four(eth().header(port_tag::VNTAG, &[0, 0, 0, 0, 8, 0]))),
        ("mpls", four(eth().header(mpls::UNICAST, &stack(1)))),
        ("mpls6", eth().vlan(3).header(mpls::UNICAST, &stack(3)).ipv6(A6, B6).tcp(1, 2)),
        ("17 labels", four(eth().header(mpls::MULTICAST, &stack(17)))),
        ("255 labels", four(eth().header(mpls::MULTICAST, &stack(255)))),
        ("256 labels", four(eth().header(mpls::UNICAST, &stack(256)))),
        ("mpls ends", eth().header(mpls::UNICAST, &label(1, 0))),
        ("mpls other", eth().header(mpls::UNICAST, &label(1, 1)).payload(&[0x10; 40])),
        ("pseudowire", eth().header(mpls::UNICAST, &stack(2)).payload(&inner)),
        (
            "pseudowire controlled",
            eth().header(mpls::UNICAST, &[&stack(1)[..], &[0; 4]].concat()).payload(&inner),
        ),
        ("pppoe", four(eth().header(pppoe::SESSION, &session(30)))),
        ("pppoe unsegmented", {
            let ip = eth().header(pppoe::SESSION, &session(50)).ipv4(A, B);
            ip.put(ipv4::TOTAL_LENGTH, &[0, 0]).tcp(1, 2).payload(&[7; 8]).payload(&[9; 6])
        }),
        ("pppoe total length", {
            let ip = eth().header(pppoe::SESSION, &session(30)).ipv4(A, B);
            ip.put(ipv4::TOTAL_LENGTH, &[0, 34]).udp(1, 2).payload(&[9; 6])
        }),
        ("pppoe length", four(eth().header(pppoe::SESSION, &session(31)))),
        (
            "pppoe discovery",
            eth().header(pppoe::DISCOVERY, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]).payload(&[0; 36]),
        ),
        ("pppoe version", eth().header(pppoe::SESSION, &[0x21; 40])),
        ("nsh", four(eth().header(nsh::ETHERTYPE, &nsh(1)))),
        ("nsh ethernet", eth().header(nsh::ETHERTYPE, &nsh(3)).payload(&inner)),
        ("nsh mpls", four(eth().header(nsh::ETHERTYPE, &[&nsh(5)[..], &stack(1)].concat()))),
        ("nsh without end", {
            let nsh: Vec<u8> = (0..40).flat_map(|_| nsh(4)).collect();
            eth().header(nsh::ETHERTYPE, &nsh)
        }),
        ("nsh version", eth().header(nsh::ETHERTYPE, &[0xff; 40])),
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
        ("jumbo", {
            let jumbo = six().put(ipv6::PAYLOAD_LENGTH, &[0, 0]);
            let jumbo = jumbo.extension(0, &[1, 0, 0xc2, 4, 0, 0, 0, 30, 1, 4, 0, 0, 0, 0]);
            jumbo.udp(1, 2).put(udp::LENGTH, &[0, 0]).payload(b"jumbo!").payload(&[9; 5])
        }),
        (
            "jumbo beyond the frame",
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
