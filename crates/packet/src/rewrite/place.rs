//! Where the addresses of a frame stand: header by header.

use super::address::{Address, Addresses};
use super::finder::{AddressPlace, Finder};
use crate::walk::{Site, TunnelPorts, opaque};
use crate::{arp, ethernet, gre, icmp, igmp, ipv6, nflog, tcp, udp, wlan};
use std::ops::Range;

/// Bytes of the checksum at the end of an 802.11 frame, where it was captured.
const FCS_LEN: usize = 4;

/// Frames that one switch sends to another, by the start of their destination: an Ethernet frame is
/// in them, after a header of 26 bytes (Cisco's ISL).
const INTER_SWITCH: [[u8; 5]; 2] = [[1, 0, 0x0c, 0, 0], [3, 0, 0x0c, 0, 0]];

/// Protocol numbers of SCTP and UDP-Lite.
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// Protocols whose payload the walk goes into: packets in packets, GRE, EtherIP, MPLS.
const TUNNELS: [u8; 5] = [4, 41, gre::PROTOCOL, 97, 137];

/// Whether data from or to this port may hide addresses.
type MayHide = fn(u16, &[u8]) -> bool;

/// Attributes of netfilter logs up to the link header; those of connections (18) hold IP addresses.
const LAST_ATTRIBUTE: u16 = 21;
const CONNECTION: u16 = 18;

/// Finds the places of addresses that are among `which`; says whether it knows of all.
pub(super) fn places(
    sites: &[Site],
    ports: &TunnelPorts,
    frame: &[u8],
    len: usize,
    which: Addresses,
    out: &mut Vec<AddressPlace>,
) -> bool {
    let mut finder = Finder { frame, sites, ports, len, which, out, is_complete: true };
    sites.iter().for_each(|site| finder.site(site));
    finder.unannounced();
    finder.is_complete
}

impl Finder<'_> {
    fn site(&mut self, site: &Site) {
        match *site {
            Site::Ethernet { at } => self.ethernet(at),
            Site::Cooked { at, len } => self.cooked(at, len),
            Site::Wlan { at, padded } => self.wlan(at, padded),
            Site::Arp { at } => self.arp(at),
            Site::Ipv4 { at } => self.ipv4(at),
            Site::Ipv6 { at } => {
                self.put(Address::IpSrc, at + ipv6::SOURCE, 16);
                self.put(Address::IpDst, at + ipv6::DESTINATION, 16);
            }
            Site::Extension { kind, at, len } => self.extension(kind, at, len),
            Site::Transport { proto, at, end } => self.transport(proto, at..end),
            Site::Gre { .. } => {}
            Site::Geneve { at, len } => self.geneve(at, len),
            Site::Nflog => self.nflog(),
            Site::Unread => self.is_complete = false,
        }
    }

    /// An address may stand where nothing here knows of it.
    pub(super) fn unread(&mut self) {
        self.unread_ip();
        self.unread_mac();
    }

    fn ethernet(&mut self, at: usize) {
        self.put(Address::EthDst, at, 6);
        self.put(Address::EthSrc, at + 6, 6);
        let destination = self.frame.get(at..).and_then(|bytes| bytes.first_chunk());
        let is_length = self.word(at + ethernet::TYPE).is_some_and(|n| n < ethernet::TYPE_MIN);
        if is_length && destination.is_some_and(|start| INTER_SWITCH.contains(start)) {
            self.unread();
        }
    }

    fn cooked(&mut self, at: usize, len: usize) {
        // The sender's address: its length, and where it starts.
        let (length, start) = match len {
            16 => (self.word(at + 4), at + 6),
            _ => (self.byte(at + 11).map(u16::from), at + 12),
        };
        match length {
            None => {}
            Some(6) => self.put(Address::EthSrc, start, 6),
            // Of a tunnel's interface it is an IP address.
            Some(_) => {
                let address = self.frame.iter().skip(start).take(8);
                if length != Some(0) || address.copied().any(|byte| byte != 0) {
                    self.unread();
                }
            }
        }
    }

    /// Netfilter logs: attributes tell the link header, and the connection.
    fn nflog(&mut self) {
        self.unread_mac();
        let is_plain = |kind: u16| (1..=LAST_ATTRIBUTE).contains(&kind) && kind != CONNECTION;
        if !nflog::kinds(self.frame).all(|kind| is_plain(kind & 0x3fff)) {
            self.unread_ip();
        }
    }

    fn extension(&mut self, kind: u8, at: usize, len: usize) {
        match kind {
            ipv6::ROUTING => self.routing(at, len),
            ipv6::DESTINATION_OPTIONS | ipv6::HOP_BY_HOP => self.options6(at, len),
            ipv6::FRAGMENT => {
                let offset = self.word(at + 2).map_or(0, |word| word >> 3);
                self.torn_tcp(self.byte(at) == Some(tcp::PROTOCOL), offset);
            }
            // Mobility, host identity and Shim6 messages hold addresses.
            135 | 139 | 140 => self.unread_ip(),
            _ => {}
        }
    }

    fn transport(&mut self, proto: u8, packet: Range<usize>) {
        let ports = [self.word(packet.start), self.word(packet.start + 2)];
        match proto {
            tcp::PROTOCOL => {
                let data = self.tcp(packet.start);
                self.by_port(ports, data..packet.end, opaque::in_segment);
            }
            udp::PROTOCOL => {
                // The walk goes into a tunnel whose port was named.
                let ports = ports.map(|port| port.map(|port| self.ports.standard(port)));
                let data = packet.start + udp::HEADER_LEN;
                self.by_port(ports, data..packet.end, opaque::in_datagram);
            }
            UDP_LITE => {
                let ports = ports.map(|port| port.map(|port| self.ports.standard(port)));
                let data = packet.start + udp::HEADER_LEN;
                self.by_port(ports, data..packet.end, opaque::in_lite_datagram);
            }
            icmp::PROTOCOL => self.icmp(packet),
            icmp::PROTOCOL_V6 => self.icmp6(packet),
            igmp::PROTOCOL => self.igmp(packet.start),
            SCTP => self.sctp(packet.start, packet.end),
            _ if TUNNELS.contains(&proto) || !opaque::in_protocol(proto) => {}
            _ => self.unread_in(packet),
        }
    }

    /// Data from or to a port that may hide addresses.
    fn by_port(&mut self, ports: [Option<u16>; 2], data: Range<usize>, may_hide: MayHide) {
        let there = data.start..data.end.min(self.frame.len());
        let bytes = self.frame.get(there).unwrap_or(&[]);
        if ports.into_iter().flatten().any(|port| may_hide(port, bytes)) {
            self.unread_in(data);
        }
    }

    /// An address may stand in these bytes, if any of them was captured.
    fn unread_in(&mut self, bytes: Range<usize>) {
        if bytes.start < bytes.end.min(self.frame.len()) {
            self.unread();
        }
    }

    fn arp(&mut self, at: usize) {
        let there = self.frame.get(at..).unwrap_or(&[]);
        let known = there.len().min(arp::IPV4_OVER_ETHERNET.len());
        // Other protocols have other addresses; of a header that is cut nothing else is known.
        if there[..known] != arp::IPV4_OVER_ETHERNET[..known] {
            return self.unread();
        }
        self.put(Address::EthSrc, at + arp::SENDER_MAC, 6);
        self.put(Address::IpSrc, at + arp::SENDER_IP, 4);
        self.put(Address::EthDst, at + arp::TARGET_MAC, 6);
        self.put(Address::IpDst, at + arp::TARGET_IP, 4);
    }

    fn wlan(&mut self, at: usize, padded: bool) {
        let Some(control) = self.frame.get(at..).and_then(|b| b.first_chunk()) else { return };
        let len = wlan::header_len(*control);
        match (control[0] >> 2 & 3, control[0] >> 4) {
            // Their addresses stand as those of no other frame.
            (wlan::CONTROL, 0..8) | (3, _) => self.unread_mac(),
            _ => {}
        }
        for start in [4, 10, 16, 24] {
            // Of the fourth place data frames between access points only make an address.
            let both = wlan::TO_DS | wlan::FROM_DS;
            let fourth = start == 24 && (control[1] & both != both || control[0] >> 2 & 3 != 2);
            if start + 6 <= len && !fourth {
                self.either_mac(at + start);
            }
        }
        let bytes = self.frame.get(at..).unwrap_or(&[]);
        let Some(llc) = wlan::Wlan::new(bytes).ok().and_then(|header| header.llc()) else { return };
        if llc >= 12 {
            let body = at + if padded { len.next_multiple_of(4) } else { len };
            self.either_mac(body);
            self.either_mac(body + 6);
            let subframe = self.word(body + 12).map_or(0, |len| 14 + usize::from(len));
            if body + subframe.next_multiple_of(4) + FCS_LEN < self.frame.len() {
                // Another packet of an aggregate.
                self.unread_ip();
                self.unread_mac();
            }
        }
    }
}
