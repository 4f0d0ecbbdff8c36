//! Where the addresses of a frame stand.

use super::address::{Address, Addresses};
use super::checksum::{LOOSE, RECORD, STRICT, options, stops};
use crate::walk::{Site, sites};
use crate::{arp, icmp, igmp, ipv4, ipv6, tcp, wlan};
use std::ops::Range;

/// An address: of 4 or 16 bytes one of IP, of 6 a MAC address.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressPlace {
    pub(super) at: usize,
    pub(super) width: usize,
}

/// The IPv4 option that asks for time stamps, with addresses where its flags say so.
const TIMESTAMP: u8 = 68;

/// IPv4 options without addresses: security (130, 133, 134), stream identifier, router alert.
const PLAIN_OPTIONS: [u8; 5] = [130, 133, 134, 136, 148];

/// The IPv6 option that holds an address.
const HOME_ADDRESS: u8 = 0xc9;

/// IPv6 options without addresses: padding, tunnel limit, router alert, CALIPSO, performance and
/// in-band measurements, routing of low-power networks, quick start, jumbo length, identifiers of
/// lines and nonces.
const PLAIN_OPTIONS6: [u8; 14] =
    [0x01, 0x04, 0x05, 0x07, 0x0f, 0x11, 0x23, 0x26, 0x30, 0x31, 0x63, 0x8b, 0x8c, 0xc2];

/// Options of neighbour discovery without addresses: MTU, advertisement interval, home agent,
/// time stamp, nonce, flags, search list, captive portal.
const PLAIN_DISCOVERY: [u8; 8] = [5, 7, 8, 13, 14, 26, 31, 37];

/// Bytes of the checksum at the end of an 802.11 frame, where it was captured.
const FCS_LEN: usize = 4;

/// The TCP option of MPTCP, and its subtype that announces an address (RFC 8684).
const MPTCP: u8 = 30;
const ADD_ADDRESS: u8 = 3;

/// Finds the places of addresses that are among `which`; says whether it knows of all.
pub(super) fn places(
    sites: &[Site],
    frame: &[u8],
    which: Addresses,
    out: &mut Vec<AddressPlace>,
) -> bool {
    let mut finder = Finder { frame, which, out, is_complete: true };
    sites.iter().for_each(|site| finder.site(site));
    finder.is_complete
}

struct Finder<'a> {
    frame: &'a [u8],
    which: Addresses,
    out: &'a mut Vec<AddressPlace>,
    is_complete: bool,
}

impl Finder<'_> {
    fn put(&mut self, address: Address, at: usize, width: usize) {
        if self.which.has(address) {
            self.out.push(AddressPlace { at, width });
        }
    }

    /// An IP address that stands for either end.
    fn either(&mut self, at: usize, width: usize) {
        let address = if self.which.has(Address::IpSrc) { Address::IpSrc } else { Address::IpDst };
        self.put(address, at, width);
    }

    /// A MAC address that stands for either end.
    fn either_mac(&mut self, at: usize) {
        let mac = if self.which.has(Address::EthSrc) { Address::EthSrc } else { Address::EthDst };
        self.put(mac, at, 6);
    }

    /// An IP address may stand where nothing here knows of it.
    fn unread_ip(&mut self) {
        self.is_complete &= !self.which.has(Address::IpSrc) && !self.which.has(Address::IpDst);
    }

    /// The same of a MAC address.
    fn unread_mac(&mut self) {
        self.is_complete &= !self.which.has(Address::EthSrc) && !self.which.has(Address::EthDst);
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.frame.get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        self.frame.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
    }

    fn site(&mut self, site: &Site) {
        match *site {
            Site::Ethernet { at } => {
                self.put(Address::EthDst, at, 6);
                self.put(Address::EthSrc, at + 6, 6);
            }
            Site::Cooked { at, len } => {
                // The sender's address: its length, and where it starts.
                let (length, start) = match len {
                    16 => (self.word(at + 4), at + 6),
                    _ => (self.byte(at + 11).map(u16::from), at + 12),
                };
                match length {
                    None | Some(0) => {}
                    Some(6) => self.put(Address::EthSrc, start, 6),
                    // Of a tunnel's interface it is an IP address.
                    Some(_) => {
                        self.unread_ip();
                        self.unread_mac();
                    }
                }
            }
            Site::Wlan { at, padded } => self.wlan(at, padded),
            Site::Arp { at } => self.arp(at),
            Site::Ipv4 { at } => self.ipv4(at),
            Site::Ipv6 { at } => {
                self.put(Address::IpSrc, at + ipv6::SOURCE, 16);
                self.put(Address::IpDst, at + ipv6::DESTINATION, 16);
            }
            Site::Extension { kind: ipv6::ROUTING, at, len } => {
                if self.byte(at + 2).is_some_and(|kind| !matches!(kind, 0 | 2 | 4)) {
                    self.unread_ip();
                }
                stops(self.frame, at, len).for_each(|at| self.put(Address::IpDst, at, 16));
            }
            Site::Extension { kind: ipv6::DESTINATION_OPTIONS | ipv6::HOP_BY_HOP, at, len } => {
                self.options6(at, len);
            }
            // Mobility, host identity and Shim6 messages hold addresses.
            Site::Extension { kind: 135 | 139 | 140, .. } => self.unread_ip(),
            Site::Transport { proto, at, end } => self.transport(proto, at..end),
            Site::Extension { .. } | Site::Gre { .. } => {}
            // Attributes tell the link header.
            Site::Nflog => self.unread_mac(),
            Site::Unread => self.is_complete = false,
        }
    }

    fn transport(&mut self, proto: u8, packet: Range<usize>) {
        match proto {
            tcp::PROTOCOL => self.tcp(packet.start),
            icmp::PROTOCOL => self.icmp(packet),
            icmp::PROTOCOL_V6 => self.icmp6(packet),
            igmp::PROTOCOL => self.igmp(packet.start),
            _ => {}
        }
    }

    fn tcp(&mut self, at: usize) {
        let Some(words) = self.byte(at + tcp::DATA_OFFSET) else { return };
        let end = at + usize::from(words >> 4) * 4;
        let mut at = at + tcp::HEADER_LEN;
        while at < end {
            match (self.byte(at), self.byte(at + 1)) {
                (Some(1), _) => at += 1,
                (Some(kind), Some(len)) if kind != 0 && len >= 2 => {
                    let subtype = self.byte(at + 2).map(|b| b >> 4);
                    if kind == MPTCP && subtype == Some(ADD_ADDRESS) {
                        self.unread_ip();
                    }
                    at += usize::from(len);
                }
                _ => return,
            }
        }
    }

    fn icmp(&mut self, packet: Range<usize>) {
        let at = packet.start;
        match self.byte(at) {
            // The gateway of a redirect.
            Some(5) => self.either(at + 4, 4),
            // The routers of an advertisement (RFC 1256).
            Some(9) => {
                let routers = self.byte(at + 4).unwrap_or(0);
                let words = self.byte(at + 5).unwrap_or(0);
                for i in 0..usize::from(routers) {
                    self.either(at + 8 + i * usize::from(words) * 4, 4);
                }
            }
            Some(3 | 11 | 12) => {
                let words = self.byte(at + 5).map_or(0, usize::from);
                self.extended(packet, words * 4);
            }
            // Echo, solicitations, time stamps, information and masks hold none.
            None | Some(0 | 4 | 8 | 10 | 13..=18) => {}
            Some(_) => self.unread_ip(),
        }
    }

    /// What follows the so many bytes of a packet that an ICMP error quotes (RFC 4884). Of the
    /// objects there only labels hold no address (RFC 4950, RFC 5837).
    fn extended(&mut self, packet: Range<usize>, quoted: usize) {
        let end = packet.end.min(self.frame.len());
        let mut at = packet.start + 8 + quoted + 4;
        while quoted > 0 && at < end {
            let (len, class) = (self.word(at), self.byte(at + 2));
            match (len, class) {
                (Some(len), Some(1)) if len >= 4 => at += usize::from(len),
                _ => return self.unread_ip(),
            }
        }
    }

    fn arp(&mut self, at: usize) {
        let there = self.frame.get(at..).unwrap_or(&[]);
        let known = there.len().min(arp::IPV4_OVER_ETHERNET.len());
        // Other protocols have other addresses; of a header that is cut nothing else is known.
        if there[..known] != arp::IPV4_OVER_ETHERNET[..known] {
            return;
        }
        self.put(Address::EthSrc, at + arp::SENDER_MAC, 6);
        self.put(Address::IpSrc, at + arp::SENDER_IP, 4);
        self.put(Address::EthDst, at + arp::TARGET_MAC, 6);
        self.put(Address::IpDst, at + arp::TARGET_IP, 4);
    }

    fn ipv4(&mut self, at: usize) {
        self.put(Address::IpSrc, at + ipv4::SOURCE, 4);
        self.put(Address::IpDst, at + ipv4::DESTINATION, 4);
        let len = self.byte(at).map_or(0, |b| usize::from(b & 15) * 4);
        for (kind, start, len) in options(self.frame, at, len) {
            let step = match (kind, self.byte(start + 3).map(|flags| flags & 15)) {
                _ if len == 0 => return self.unread_ip(),
                (RECORD | LOOSE | STRICT, _) => {
                    (0..(len - 2) / 4).for_each(|i| {
                        self.put(Address::IpDst, start + 3 + 4 * i, 4);
                    });
                    continue;
                }
                (TIMESTAMP, Some(1 | 3)) => 8,
                (TIMESTAMP, _) => continue,
                _ => {
                    if !PLAIN_OPTIONS.contains(&kind) {
                        self.unread_ip();
                    }
                    continue;
                }
            };
            (0..len.saturating_sub(4) / step).for_each(|i| {
                self.put(Address::IpDst, start + 4 + step * i, 4);
            });
        }
    }

    /// The options of an IPv6 header: the home address of a mobile node (RFC 6275, section 6.3).
    fn options6(&mut self, at: usize, len: usize) {
        let end = at + len;
        let mut at = at + 2;
        while at < end {
            let Some(kind) = self.byte(at) else { return };
            if kind == 0 {
                at += 1;
                continue;
            }
            let Some(len) = self.byte(at + 1) else { return };
            match (kind, len) {
                (HOME_ADDRESS, 16) => self.put(Address::IpSrc, at + 2, 16),
                _ if PLAIN_OPTIONS6.contains(&kind) => {}
                _ => self.unread_ip(),
            }
            at += 2 + usize::from(len);
        }
    }

    /// Neighbour discovery (RFC 4861) and listeners of groups (RFC 2710, RFC 3810).
    fn icmp6(&mut self, packet: Range<usize>) {
        let at = packet.start;
        let first = match self.byte(at) {
            Some(1 | 3) => {
                let words = self.byte(at + 4).map_or(0, usize::from);
                return self.extended(packet, words * 8);
            }
            Some(133) => at + 8,
            Some(134) => at + 16,
            Some(135 | 136) => {
                self.either(at + 8, 16);
                at + 24
            }
            Some(137) => {
                self.either(at + 8, 16);
                self.either(at + 24, 16);
                at + 40
            }
            Some(130..=132) => {
                self.put(Address::IpDst, at + 8, 16);
                let sources = self.word(at + 26).filter(|_| self.byte(at) == Some(130));
                return self.list(at + 28, sources, 16);
            }
            Some(143) => return self.records(at, 16),
            // Errors, echo, and the search for routers of groups hold none.
            None | Some(2 | 4 | 128 | 129 | 151..=153) => return,
            Some(_) => return self.unread_ip(),
        };
        let end = packet.end.min(self.frame.len());
        let mut next = first;
        for (kind, start, len) in sites::options(&self.frame[..end], first) {
            next = start + len;
            match kind {
                1 | 2 => self.either_mac(start + 2),
                // The prefix of a network.
                3 => self.either(start + 16, 16),
                // A router for names (RFC 8106).
                25 => {
                    let servers = self.byte(start + 1).map(|words| u16::from(words / 2));
                    self.list(start + 8, servers, 16);
                }
                // A packet that was redirected, which the walk went into.
                4 => {}
                _ if PLAIN_DISCOVERY.contains(&kind) => {}
                _ => {
                    self.unread_ip();
                    self.unread_mac();
                }
            }
        }
        if next + 1 < end {
            // An option of no length: what comes after it can't be told.
            self.unread_ip();
            self.unread_mac();
        }
    }

    /// Listeners of groups (RFC 2236, RFC 3376).
    fn igmp(&mut self, at: usize) {
        if self.byte(at) == Some(0x22) {
            return self.records(at, 4);
        }
        if self.byte(at).is_some_and(|kind| !matches!(kind, 0x11 | 0x12 | 0x16 | 0x17)) {
            return self.unread_ip();
        }
        self.put(Address::IpDst, at + 4, 4);
        let sources = self.word(at + 10).filter(|_| self.byte(at) == Some(0x11));
        self.list(at + 12, sources, 4);
    }

    /// The records of a report: of each its group and its sources.
    fn records(&mut self, at: usize, width: usize) {
        let mut start = at + 8;
        for _ in 0..self.word(at + 6).unwrap_or(0) {
            let (Some(more), Some(sources)) = (self.byte(start + 1), self.word(start + 2)) else {
                return;
            };
            self.put(Address::IpDst, start + 4, width);
            self.list(start + 4 + width, Some(sources), width);
            start += 4 + width * (1 + usize::from(sources)) + 4 * usize::from(more);
        }
    }

    /// Addresses one after the other, as many as were captured.
    fn list(&mut self, at: usize, n: Option<u16>, width: usize) {
        let there = self.frame.len().saturating_sub(at).div_ceil(width);
        (0..usize::from(n.unwrap_or(0)).min(there))
            .for_each(|i| self.either(at + i * width, width));
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
