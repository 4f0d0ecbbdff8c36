//! Packets that no header announces: in tunnels that are not known, or on other ports.
//!
//! Bytes are taken for a packet where chance does not make them one: a sound checksum of IPv4, the
//! length of IPv6 to the byte with addresses that hosts have, the fixed start of ARP. IPv6 of
//! another length, which goes on elsewhere or is followed by a tag, also has to lead to a transport
//! header that agrees with it. Of 1400 random bytes that is one in some 40,000.

use super::finder::Finder;
use super::transport::{self, CARRIED};
use crate::checksum::checksum;
use crate::walk::Site;
use crate::{arp, ethernet, ipv4, ipv6};

/// IPv4 options that a packet in a tunnel is taken to start with.
const OPTIONS: [u8; 9] = [0, 1, 7, 68, 130, 131, 136, 137, 148];

/// Bytes that may follow a packet in its tunnel: a checksum, a pad.
const PAD_MAX: usize = 8;

/// The same with a tag that authenticates it, as of ESP that does not encrypt (RFC 2410).
const TRAILER_MAX: usize = 32;

/// The longest packet that networks carry in pieces: one of a jumbo frame.
const PACKET_MAX: usize = 9216;

impl Finder<'_> {
    /// Notes that there is a packet elsewhere than the walk says.
    pub(super) fn unannounced(&mut self) {
        let sites = self.sites;
        let ends = sites.iter().filter_map(|site| match *site {
            Site::Transport { end, .. } => Some(end),
            _ => None,
        });
        let len = self.len.max(self.frame.len());
        let ends = [ends.min().unwrap_or(len), len];
        for at in 0..self.frame.len() {
            let bytes = &self.frame[at..];
            let left = || ends.map(|end| end.saturating_sub(at));
            let is_packet = match bytes[0] >> 4 {
                4 => is_ipv4(bytes, left),
                6 => is_ipv6(bytes, left),
                _ => bytes.starts_with(&arp::IPV4_OVER_ETHERNET),
            };
            if is_packet && !sites.iter().any(|site| overlaps(site, at)) {
                self.unread_ip();
                let before = at.checked_sub(2).and_then(|before| self.word(before));
                if matches!(before, Some(ethernet::IPV4 | ethernet::IPV6 | ethernet::ARP)) {
                    self.unread_mac();
                }
            }
        }
    }
}

/// Whether a header that the walk knows of shares bytes with one that starts there.
fn overlaps(site: &Site, at: usize) -> bool {
    let (start, len) = match *site {
        Site::Ipv4 { at } => (at, ipv4::HEADER_LEN),
        Site::Ipv6 { at } => (at, ipv6::HEADER_LEN),
        Site::Arp { at } => (at, arp::PACKET_LEN),
        _ => return false,
    };
    at < start + len && start < at + ipv4::HEADER_LEN
}

/// Whether a packet of this length ends where one of these numbers of bytes is left, on the wire,
/// or so many bytes before.
fn fits(len: usize, left: [usize; 2], trailer: usize) -> bool {
    left.iter().any(|left| (len..=len + trailer).contains(left))
}

/// Whether there can be no more than the start of a packet of this length.
fn goes_on(len: usize, left: [usize; 2]) -> bool {
    len <= PACKET_MAX && left.iter().all(|left| len > *left)
}

/// Of a header that is cut, the length of its packet counts for the checksum.
fn is_ipv4(bytes: &[u8], left: impl Fn() -> [usize; 2]) -> bool {
    let Some(start) = bytes.first_chunk::<{ ipv4::SOURCE }>() else { return false };
    let word = |at: usize| u16::from_be_bytes([start[at], start[at + 1]]);
    let (len, total) = (usize::from(start[0] & 15) * 4, usize::from(word(ipv4::TOTAL_LENGTH)));
    len >= ipv4::HEADER_LEN
        && total >= len
        && CARRIED.contains(&start[ipv4::PROTOCOL])
        && word(ipv4::FRAGMENT) & 0x8000 == 0
        && bytes
            .get(ipv4::HEADER_LEN)
            .is_none_or(|o| len == ipv4::HEADER_LEN || OPTIONS.contains(o))
        && match bytes.get(..len) {
            Some(header) => checksum(&[header]) == 0,
            None => fits(total, left(), TRAILER_MAX),
        }
}

fn is_ipv6(bytes: &[u8], left: impl Fn() -> [usize; 2]) -> bool {
    let Some(start) = bytes.first_chunk::<{ ipv6::SOURCE }>() else { return false };
    let payload =
        u16::from_be_bytes([start[ipv6::PAYLOAD_LENGTH], start[ipv6::PAYLOAD_LENGTH + 1]]);
    let next = start[ipv6::NEXT_HEADER];
    let is_end = |to: &[u8]| is_host(to) || to[0] == 0xff;
    if !CARRIED.contains(&next)
        || !bytes.get(ipv6::SOURCE..ipv6::DESTINATION).is_none_or(is_host)
        || !bytes.get(ipv6::DESTINATION..ipv6::HEADER_LEN).is_none_or(is_end)
    {
        return false;
    }
    let (left, len) = (left(), ipv6::HEADER_LEN + usize::from(payload));
    if fits(len, left, PAD_MAX) {
        return true;
    }
    let agrees = || match bytes.get(ipv6::HEADER_LEN..) {
        Some(rest) if start[ipv6::HOP_LIMIT] > 0 => transport::agrees(next, payload, rest),
        Some(_) => Some(false),
        None => None,
    };
    match (fits(len, left, TRAILER_MAX), goes_on(len, left)) {
        (true, _) => agrees() != Some(false),
        (_, true) => agrees() == Some(true),
        _ => false,
    }
}

/// Whether hosts have such an address: a global, unique local or link-local one, one of segment
/// routing (RFC 9602), one with an IPv4 address in it (RFC 4291, RFC 6052, RFC 8215).
fn is_host(address: &[u8]) -> bool {
    match (address[0], address[1]) {
        (0x20..=0x2f | 0x3f | 0xfc | 0xfd, _) | (0x5f, 0) => true,
        (0xfe, second) => second & 0xc0 == 0x80,
        _ => address.starts_with(&[0, 0x64, 0xff, 0x9b]) || address[..8] == [0; 8],
    }
}
