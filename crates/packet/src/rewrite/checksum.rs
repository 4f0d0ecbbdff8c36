//! Checksums over addresses that were renamed (RFC 1071, RFC 1624).

use super::change::Change;
use super::source_route::{HOME_ADDRESS, LOOSE, STRICT, options, options6, stops};
use crate::walk::Site;
use crate::{gre, icmp, igmp, ipv4, ipv6, tcp, udp};
use std::ops::Range;

/// Protocol numbers of transports with a checksum where UDP has it.
const DCCP: u8 = 33;
const UDP_LITE: u8 = 136;

/// A checksum and what it covers.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    /// Where it stands.
    field: usize,
    /// Bytes that it covers.
    pub(super) covers: Range<usize>,
    /// Addresses of the pseudo-header.
    pseudo: [Range<usize>; 2],
    /// Whether 0 says that there is none, as of UDP.
    optional: bool,
}

/// The IP header around what comes next.
#[derive(Clone, Default)]
struct Ip {
    pseudo: [Range<usize>; 2],
}

/// Says what the checksums in these headers cover.
pub(super) fn covers(sites: &[Site], frame: &[u8], out: &mut Vec<Cover>) {
    let mut ip = Ip::default();
    for site in sites {
        match *site {
            Site::Ipv4 { at } => {
                let len = frame.get(at).map_or(0, |b| usize::from(b & 15) * 4);
                let len = len.max(ipv4::HEADER_LEN);
                ip.pseudo = [at + ipv4::SOURCE, at + ipv4::DESTINATION].map(|at| at..at + 4);
                if let Some(last) = route(frame, at, len) {
                    ip.pseudo[1] = last..last + 4;
                }
                let field = at + ipv4::CHECKSUM;
                let (pseudo, optional) = ([0..0, 0..0], false);
                out.push(Cover { field, covers: at..at + len, pseudo, optional });
            }
            Site::Ipv6 { at } => {
                ip.pseudo = [at + ipv6::SOURCE, at + ipv6::DESTINATION].map(|at| at..at + 16);
            }
            Site::Extension { kind: ipv6::ROUTING, at, len } => {
                // On the way the destination is the next stop; the pseudo-header has the last one
                // (RFC 8200, section 8.1).
                if let Some(last) = last_stop(frame, at, len) {
                    ip.pseudo[1] = last..last + 16;
                }
            }
            Site::Extension { kind: ipv6::DESTINATION_OPTIONS, at, len } => {
                // A mobile node sends from where it is; the pseudo-header has its address at home
                // (RFC 6275, section 11.3.1).
                let mut options = options6(frame, at, len);
                let home = options.find(|&(kind, _, len)| kind == HOME_ADDRESS && len == 16);
                if let Some((_, home, _)) = home {
                    ip.pseudo[0] = home..home + 16;
                }
            }
            Site::Transport { proto, at, end } => out.extend(transport(&ip, frame, proto, at..end)),
            Site::Gre { at, end }
                if frame.get(at).is_some_and(|flags| flags & gre::CHECKSUM != 0) =>
            {
                let (pseudo, optional) = ([0..0, 0..0], false);
                out.push(Cover { field: at + 4, covers: at..end, pseudo, optional });
            }
            _ => {}
        }
    }
}

fn transport(ip: &Ip, frame: &[u8], proto: u8, packet: Range<usize>) -> Option<Cover> {
    let at = packet.start;
    let length = || Some(usize::from(u16::from_be_bytes(*frame.get(at + 4..)?.first_chunk()?)));
    let (offset, covers, has_pseudo, optional) = match proto {
        tcp::PROTOCOL => (tcp::CHECKSUM, packet, true, false),
        udp::PROTOCOL => {
            let end = match length()? {
                0 => packet.end,
                length => packet.end.min(at + length),
            };
            (udp::CHECKSUM, at..end, true, true)
        }
        UDP_LITE => {
            let end = match length()? {
                0 => packet.end,
                covered => packet.end.min(at + covered),
            };
            (udp::CHECKSUM, at..end, true, false)
        }
        // How much of the data is covered does not matter: no tunnel is in it.
        DCCP => (udp::CHECKSUM, at..at, true, false),
        icmp::PROTOCOL => (icmp::CHECKSUM, packet, false, false),
        icmp::PROTOCOL_V6 => (icmp::CHECKSUM, packet, true, false),
        igmp::PROTOCOL => (icmp::CHECKSUM, packet, false, false),
        _ => return None,
    };
    let pseudo = if has_pseudo { ip.pseudo.clone() } else { [0..0, 0..0] };
    Some(Cover { field: at + offset, covers, pseudo, optional })
}

/// Where the last address of a source route stands, unless it was used up: that is then where the
/// packet goes (RFC 1122, section 3.2.1.8).
fn route(frame: &[u8], at: usize, len: usize) -> Option<usize> {
    options(frame, at, len).find_map(|(kind, start, len)| {
        let pointer = usize::from(*frame.get(start + 2)?);
        let source = matches!(kind, LOOSE | STRICT);
        (source && pointer <= len && len >= 7).then(|| start + 3 + (len - 3) / 4 * 4 - 4)
    })
}

/// Where the last stop of a route stands that the packet is still on.
fn last_stop(frame: &[u8], at: usize, len: usize) -> Option<usize> {
    let (&kind, &left) = frame.get(at + 2).zip(frame.get(at + 3))?;
    let mut stops = stops(frame, at, len);
    // Segments stand in the opposite order.
    let last = if kind == 4 { stops.next() } else { stops.last() };
    last.filter(|_| left > 0)
}

impl Cover {
    /// Carries changes on to the checksum, if it is there.
    pub(super) fn update(&self, frame: &mut [u8], changes: &mut Vec<Change>) {
        let Some(&field) = frame.get(self.field..).and_then(|b| b.first_chunk::<2>()) else {
            return;
        };
        let before = u16::from_be_bytes(field);
        if self.optional && before == 0 {
            return;
        }
        let mut difference = difference(frame, changes, &self.covers);
        difference += self.pseudo.iter().map(|p| self::difference(frame, changes, p)).sum::<i64>();
        if difference == 0 {
            return;
        }
        let mut sum = (i64::from(!before) + difference).rem_euclid(0xffff);
        if sum == 0 {
            // A sum over bytes that are not all 0 is never 0.
            sum = 0xffff;
        }
        let mut after = !(sum as u16);
        if self.optional && after == 0 {
            after = 0xffff;
        }
        frame[self.field..self.field + 2].copy_from_slice(&after.to_be_bytes());
        let mut bytes = [0; 16];
        bytes[..2].copy_from_slice(&field);
        changes.push(Change { at: self.field, len: 2, before: bytes });
    }
}

/// By how much the sum of the 16-bit words from the start of a range on changed.
fn difference(frame: &[u8], changes: &[Change], range: &Range<usize>) -> i64 {
    let mut sum = 0;
    for change in changes {
        let pairs = frame[change.range()].iter().zip(&change.before);
        for (at, (&after, &before)) in (change.at..).zip(pairs) {
            if range.contains(&at) {
                let by = i64::from(after) - i64::from(before);
                sum += if (at - range.start).is_multiple_of(2) { by << 8 } else { by };
            }
        }
    }
    sum
}
