//! Where the addresses of a frame stand.

use super::checksum::{LOOSE, RECORD, STRICT, options, stops};
use super::{Address, Addresses};
use crate::walk::sites::{self, Site};
use crate::{arp, icmp, igmp, ipv4, ipv6, wlan};

/// An address: of 4 or 16 bytes one of IP, of 6 a MAC address.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressPlace {
    pub(super) at: usize,
    pub(super) width: usize,
}

/// The IPv4 option that asks for time stamps, with addresses where its flags say so.
const TIMESTAMP: u8 = 68;

/// Finds the places of addresses that are among `which`.
pub(super) fn places(sites: &[Site], frame: &[u8], which: Addresses, out: &mut Vec<AddressPlace>) {
    let mut finder = Finder { frame, which, out };
    sites.iter().for_each(|site| finder.site(site));
}

struct Finder<'a> {
    frame: &'a [u8],
    which: Addresses,
    out: &'a mut Vec<AddressPlace>,
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
                if length == Some(6) {
                    self.put(Address::EthSrc, start, 6);
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
                stops(self.frame, at, len).for_each(|at| self.put(Address::IpDst, at, 16));
            }
            Site::Extension { kind: ipv6::DESTINATION_OPTIONS, at, len } => self.home(at, len),
            Site::Transport { proto: icmp::PROTOCOL, at, .. } if self.byte(at) == Some(5) => {
                // The gateway of a redirect.
                self.either(at + 4, 4);
            }
            Site::Transport { proto: icmp::PROTOCOL_V6, at, .. } => self.icmp6(at),
            Site::Transport { proto: igmp::PROTOCOL, at, .. } => self.igmp(at),
            Site::Extension { .. } | Site::Transport { .. } | Site::Gre { .. } => {}
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
                (RECORD | LOOSE | STRICT, _) => {
                    (0..(len - 2) / 4).for_each(|i| {
                        self.put(Address::IpDst, start + 3 + 4 * i, 4);
                    });
                    continue;
                }
                (TIMESTAMP, Some(1 | 3)) => 8,
                _ => continue,
            };
            (0..len.saturating_sub(4) / step).for_each(|i| {
                self.put(Address::IpDst, start + 4 + step * i, 4);
            });
        }
    }

    /// The home address of a mobile node (RFC 6275, section 6.3).
    fn home(&mut self, at: usize, len: usize) {
        let end = at + len;
        let mut at = at + 2;
        while at < end {
            let Some(kind) = self.byte(at) else { return };
            let Some(len) = self.byte(at + 1).filter(|_| kind != 0) else {
                at += 1;
                if kind == 0 { continue } else { return }
            };
            if kind == 0xc9 && len == 16 {
                self.put(Address::IpSrc, at + 2, 16);
            }
            at += 2 + usize::from(len);
        }
    }

    /// Neighbour discovery (RFC 4861) and listeners of groups (RFC 2710, RFC 3810).
    fn icmp6(&mut self, at: usize) {
        let first = match self.byte(at) {
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
            _ => return,
        };
        for (kind, start, _) in sites::options(self.frame, first) {
            match kind {
                1 | 2 => self.either_mac(start + 2),
                // The prefix of a network.
                3 => self.either(start + 16, 16),
                // A router for names (RFC 8106).
                25 => {
                    let servers = self.byte(start + 1).map(|words| u16::from(words / 2));
                    self.list(start + 8, servers, 16);
                }
                _ => {}
            }
        }
    }

    /// Listeners of groups (RFC 2236, RFC 3376).
    fn igmp(&mut self, at: usize) {
        if self.byte(at) == Some(0x22) {
            return self.records(at, 4);
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
        }
    }
}
