//! Addresses in messages of ICMP, ICMPv6 and IGMP.

use super::address::Address;
use super::finder::Finder;
use crate::icmp;
use crate::walk::{Site, sites};
use std::ops::Range;

/// Options of neighbour discovery without addresses, with their lengths if these are fixed: MTU,
/// advertisement interval, home agent, time stamp, nonce, flags, search list. The address of a
/// captive portal (37) is a text, which may name a host by its number.
const PLAIN_DISCOVERY: [(u8, Option<usize>); 7] = [
    (5, Some(8)),
    (7, Some(8)),
    (8, Some(8)),
    (13, Some(16)),
    (14, None),
    (26, Some(8)),
    (31, None),
];

impl Finder<'_> {
    pub(super) fn icmp(&mut self, packet: Range<usize>) {
        let at = packet.start;
        match self.byte(at) {
            // The gateway of a redirect.
            Some(5) => self.either(at + 4, 4),
            // The routers of an advertisement (RFC 1256).
            Some(9) => {
                let routers = self.byte(at + 4).map_or(0, usize::from);
                let size = self.byte(at + 5).map_or(0, |words| usize::from(words) * 4);
                (0..routers).for_each(|i| self.either(at + 8 + i * size, 4));
                // Entries of another form, or what a mobile agent says of itself (RFC 5944).
                let end = if size == 8 { at + 8 + routers * size } else { at + 8 };
                self.unread_ip_in(end, packet.end);
            }
            Some(3 | 11 | 12) => self.extended(icmp::PROTOCOL, packet),
            // Echo, solicitations, time stamps, information and masks hold none.
            None | Some(0 | 4 | 8 | 10 | 13..=18) => {}
            Some(_) => self.unread_ip(),
        }
    }

    /// The extension after the packet that an ICMP error quotes (RFC 4884). Of the objects there
    /// only labels hold no address (RFC 4950, RFC 5837).
    fn extended(&mut self, proto: u8, packet: Range<usize>) {
        let end = packet.end.min(self.frame.len());
        let frame = &self.frame[..end];
        let Some(start) = sites::extension(proto, packet.start, frame) else { return };
        let mut at = start + 4;
        while at < end {
            let (len, class) = (self.word(at), self.byte(at + 2));
            match (len, class) {
                (Some(len), Some(1)) if len >= 4 => at += usize::from(len),
                _ => return self.unread_ip(),
            }
        }
    }

    /// Neighbour discovery (RFC 4861) and listeners of groups (RFC 2710, RFC 3810).
    pub(super) fn icmp6(&mut self, packet: Range<usize>) {
        let at = packet.start;
        let first = match self.byte(at) {
            Some(1 | 3) => return self.extended(icmp::PROTOCOL_V6, packet),
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
                1 | 2 if len == 8 => self.either_mac(start + 2),
                // The prefix of a network.
                3 if len == 32 => self.either(start + 16, 16),
                // A router for names (RFC 8106).
                25 if len % 16 == 8 => {
                    let servers = self.byte(start + 1).map(|words| u16::from(words / 2));
                    self.list(start + 8, servers, 16);
                }
                // A packet that was redirected. The walk goes into one of a redirect, and into none
                // of other messages.
                sites::REDIRECTED if self.is_entered(start + 8, end.min(start + len)) => {}
                _ if PLAIN_DISCOVERY.contains(&(kind, None)) => {}
                _ if PLAIN_DISCOVERY.contains(&(kind, Some(len))) => {}
                _ => self.unread(),
            }
        }
        if next + 1 < end {
            // An option of no length: what comes after it can't be told.
            self.unread();
        }
    }

    /// Whether the walk went into a packet that starts there, or none of it was captured.
    fn is_entered(&self, at: usize, end: usize) -> bool {
        let starts = |site: &Site| *site == Site::Ipv4 { at } || *site == Site::Ipv6 { at };
        at >= end || self.sites.iter().any(starts)
    }

    /// Listeners of groups (RFC 2236, RFC 3376).
    pub(super) fn igmp(&mut self, at: usize) {
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
            if more > 0 {
                // It is not known what this is.
                self.unread_ip();
            }
            start += 4 + width * (1 + usize::from(sources)) + 4 * usize::from(more);
        }
    }

    /// Addresses one after the other, as many as were captured.
    fn list(&mut self, at: usize, n: Option<u16>, width: usize) {
        let there = self.frame.len().saturating_sub(at).div_ceil(width);
        (0..usize::from(n.unwrap_or(0)).min(there))
            .for_each(|i| self.either(at + i * width, width));
    }
}
