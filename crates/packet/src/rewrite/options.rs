//! Addresses in the variable parts of headers: options of IPv4, IPv6, TCP and GENEVE, routes, and
//! chunks of SCTP.
//!
//! An option is either known to hold addresses at certain places, or to hold none. Any other may
//! hold one, and so may what stands after an option that can't be read.

use super::address::Address;
use super::finder::Finder;
use super::source_route::{HOME_ADDRESS, LOOSE, RECORD, STRICT, options, options6, stops};
use crate::{geneve, ipv4, tcp};

/// The IPv4 option that asks for time stamps, with addresses where its flags say so.
const TIMESTAMP: u8 = 68;

/// IPv4 options without addresses: security (130, 133, 134), stream identifier, router alert.
const PLAIN_OPTIONS: [u8; 5] = [130, 133, 134, 136, 148];

/// The IPv6 option that makes the next one start where it should.
const PADDING6: u8 = 1;

/// IPv6 options without addresses: tunnel limit, router alert, CALIPSO, performance and in-band
/// measurements, routing of low-power networks, quick start, jumbo length, identifiers of lines and
/// nonces.
const PLAIN_OPTIONS6: [u8; 13] =
    [0x04, 0x05, 0x07, 0x0f, 0x11, 0x23, 0x26, 0x30, 0x31, 0x63, 0x8b, 0x8c, 0xc2];

/// TCP options without addresses: segment size, window scale, selective acknowledgement, echo, time
/// stamps, partial order (6 to 10), transactions (11 to 13), checksums (14, 15, 18), signatures
/// (19, 29), quick start, fast open, encryption (69), exact congestion (172, 174).
const PLAIN_TCP: [u8; 22] =
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 27, 29, 34, 69, 172, 174];

/// The TCP option of MPTCP, its subtype that announces an address, and the last one (RFC 8684).
const MPTCP: u8 = 30;
const ADD_ADDRESS: u8 = 3;
const MPTCP_LAST: u8 = 8;

/// Chunks of SCTP without addresses: data and its acknowledgements, the end of an association,
/// congestion, authentication, padding. A cookie or a heartbeat holds what its maker likes, which
/// may be an address.
const PLAIN_CHUNKS: [u8; 13] = [0, 3, 7, 8, 11, 12, 13, 14, 15, 64, 132, 192, 194];

/// The chunk of SCTP that opens an association, its length without parameters, and parameters of it
/// without addresses, with their lengths if these are fixed: more time for a cookie, types of
/// addresses (RFC 9260), congestion marks, checksums of zero (RFC 9653), what authenticates
/// (RFC 4895), extensions, skipped data (RFC 3758), the kind of the upper layer (RFC 5061).
const INIT: u8 = 1;
const INIT_LEN: usize = 20;
const INIT_PARAMETERS: [(u16, Option<usize>); 10] = [
    (9, Some(8)),
    (12, None),
    (0x8000, Some(4)),
    (0x8001, Some(8)),
    (0x8002, None),
    (0x8003, None),
    (0x8004, None),
    (0x8008, None),
    (0xc000, Some(4)),
    (0xc006, Some(8)),
];

/// The parameter of SCTP that is padding (RFC 4820).
const PADDING_PARAMETER: u16 = 0x8005;

/// The chunk of SCTP that resets or adds streams, and its parameters, which are numbers (RFC 6525).
const RECONFIGURATION: u8 = 130;
const STREAM_PARAMETERS: [(u16, Option<usize>); 6] =
    [(13, None), (14, None), (15, Some(8)), (16, None), (17, Some(12)), (18, Some(12))];

/// Classes of GENEVE options that hold identifiers of their own, and no addresses: Open Virtual
/// Network, load balancers of AWS.
const PLAIN_GENEVE: [u16; 2] = [0x0102, 0x0108];

/// TLVs of segment routing (RFC 8754): a byte of padding, more of it, a signature.
const PAD_BYTE: u8 = 0;
const PADDING: u8 = 4;
const SIGNATURE: u8 = 5;

impl Finder<'_> {
    pub(super) fn ipv4(&mut self, at: usize) {
        self.put(Address::IpSrc, at + ipv4::SOURCE, 4);
        self.put(Address::IpDst, at + ipv4::DESTINATION, 4);
        let len = self.byte(at).map_or(0, |b| usize::from(b & 15) * 4);
        for (kind, start, len) in options(self.frame, at, len) {
            match kind {
                _ if len == 0 => return self.unread_ip(),
                0 => self.unread_ip_in(start, start + len),
                RECORD | LOOSE | STRICT => {
                    self.addresses(start + 3, start + len, 4);
                }
                TIMESTAMP => match self.byte(start + 3).map_or(0, |flags| flags & 15) {
                    0 => {}
                    1 | 3 => self.addresses(start + 4, start + len, 8),
                    _ => self.unread_ip(),
                },
                _ if PLAIN_OPTIONS.contains(&kind) => {}
                _ => self.unread_ip(),
            }
        }
        let fragment = self.word(at + ipv4::FRAGMENT).map_or(0, |word| word & ipv4::OFFSET_BITS);
        let is_tcp = self.byte(at + ipv4::PROTOCOL) == Some(tcp::PROTOCOL);
        self.torn_tcp(is_tcp, fragment);
    }

    /// The header of TCP may go on in a fragment that starts so many times 8 bytes into it.
    pub(super) fn torn_tcp(&mut self, is_tcp: bool, fragment: u16) {
        if is_tcp && (1..8).contains(&fragment) {
            self.unread_ip();
        }
    }

    /// Addresses of a route, each of which is the start of so many bytes.
    fn addresses(&mut self, from: usize, to: usize, step: usize) {
        if !to.saturating_sub(from).is_multiple_of(step) {
            self.unread_ip();
        }
        (from..to).step_by(step).for_each(|at| self.put(Address::IpDst, at, 4));
    }

    /// The options of an IPv6 header: the home address of a mobile node (RFC 6275, section 6.3).
    pub(super) fn options6(&mut self, at: usize, len: usize) {
        for (kind, start, len) in options6(self.frame, at, len) {
            match (kind, len) {
                (HOME_ADDRESS, 16) => self.put(Address::IpSrc, start, 16),
                (PADDING6, _) => self.unread_ip_in(start, start + len),
                _ if PLAIN_OPTIONS6.contains(&kind) => {}
                _ => self.unread_ip(),
            }
        }
    }

    /// The addresses of a routing header, and what may stand after them.
    pub(super) fn routing(&mut self, at: usize, len: usize) {
        let kind = self.byte(at + 2);
        if kind.is_some_and(|kind| !matches!(kind, 0 | 2 | 4)) {
            return self.unread_ip();
        }
        let mut next = at + 8;
        for stop in stops(self.frame, at, len) {
            self.put(Address::IpDst, stop, 16);
            next = stop + 16;
        }
        let end = at + len;
        if kind != Some(4) {
            return self.unread_ip_in(next, end);
        }
        while let Some(kind) = self.byte(next).filter(|_| next < end) {
            let len = usize::from(self.byte(next + 1).unwrap_or(0));
            match kind {
                PAD_BYTE => {
                    next += 1;
                    continue;
                }
                PADDING => self.unread_ip_in(next + 2, next + 2 + len),
                SIGNATURE => {}
                _ => return self.unread_ip(),
            }
            next += 2 + len;
        }
    }

    /// The options of a TCP header; says where its data starts.
    pub(super) fn tcp(&mut self, at: usize) -> usize {
        let words = self.byte(at + tcp::DATA_OFFSET).map_or(0, |byte| usize::from(byte >> 4));
        let end = at + words * 4;
        self.tcp_options(at + tcp::HEADER_LEN, end);
        end.max(at + tcp::HEADER_LEN)
    }

    fn tcp_options(&mut self, mut at: usize, end: usize) {
        while at < end {
            let (kind, len) = match (self.byte(at), self.byte(at + 1)) {
                (Some(1), _) => {
                    at += 1;
                    continue;
                }
                (Some(kind), Some(len)) if kind != 0 && len >= 2 => (kind, len),
                // The end, or nothing that can be read. The bytes after it are no options.
                (Some(_), _) => return self.unread_ip_in(at, end),
                (None, _) => return,
            };
            let is_plain = match kind {
                MPTCP => {
                    self.byte(at + 2).is_none_or(|b| b >> 4 != ADD_ADDRESS && b >> 4 <= MPTCP_LAST)
                }
                _ => PLAIN_TCP.contains(&kind),
            };
            // No address stands in fewer than 4 bytes.
            if !is_plain && len >= 6 {
                self.unread_ip();
            }
            at += usize::from(len);
        }
    }

    /// Chunks of SCTP (RFC 9260), which are not rewritten.
    pub(super) fn sctp(&mut self, at: usize, end: usize) {
        let end = end.min(self.frame.len());
        let mut at = at + 12;
        while at + 4 <= end {
            let len = usize::from(self.word(at + 2).unwrap_or(0));
            match self.byte(at) {
                Some(INIT) => {
                    self.sctp_parameters(at + INIT_LEN, (at + len).min(end), &INIT_PARAMETERS);
                }
                Some(RECONFIGURATION) => {
                    self.sctp_parameters(at + 4, (at + len).min(end), &STREAM_PARAMETERS);
                }
                Some(kind) if PLAIN_CHUNKS.contains(&kind) => {}
                _ => self.unread_ip(),
            }
            if len < 4 {
                return self.unread_ip_in(at, end);
            }
            at += len.next_multiple_of(4);
        }
    }

    /// Parameters of a chunk, of which these hold no addresses.
    fn sctp_parameters(&mut self, mut at: usize, end: usize, plain: &[(u16, Option<usize>)]) {
        while at + 4 <= end {
            let (kind, len) = (self.word(at), usize::from(self.word(at + 2).unwrap_or(0)));
            let is_plain = |&(known, fixed): &(u16, Option<usize>)| {
                kind == Some(known) && fixed.is_none_or(|fixed| fixed == len)
            };
            match kind {
                _ if len < 4 => return self.unread_ip(),
                Some(PADDING_PARAMETER) => self.unread_ip_in(at + 4, (at + len).min(end)),
                _ if plain.iter().any(is_plain) => {}
                _ => return self.unread_ip(),
            }
            at += len.next_multiple_of(4);
        }
    }

    pub(super) fn geneve(&mut self, at: usize, len: usize) {
        let (mut next, end) = (at + geneve::HEADER_LEN, at + len);
        while next < end {
            let (Some(class), Some(words)) = (self.word(next), self.byte(next + 3)) else { return };
            if !PLAIN_GENEVE.contains(&class) {
                self.unread_ip();
                self.unread_mac();
            }
            next += 4 + usize::from(words & 0x1f) * 4;
        }
    }
}
