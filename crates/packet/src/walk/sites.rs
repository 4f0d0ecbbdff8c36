//! All headers of a frame, outer ones and those inside tunnels and ICMP errors.

use super::layers::Layer;
use super::link::Next;
use super::ports::TunnelPorts;
use super::reason::Reason;
use super::site::{Site, Sites as _};
use super::walker::Walk;
use crate::limits::TUNNELS_MAX;
use crate::source::LinkType;
use crate::{icmp, ipv4, ipv6, tcp};
use std::ops::Range;

/// Notes the headers of a frame that is so long on the wire, from the outside in; those of a packet
/// that an ICMP error quotes come last.
pub(crate) fn find(
    link: LinkType,
    ports: &TunnelPorts,
    frame: &[u8],
    len: u32,
    sites: &mut Vec<Site>,
) {
    let end = frame.len().max(len as usize);
    follow(Next::Link(link), ports, frame, 0..end, sites);
    // Errors are no answer to errors (RFC 1122, section 3.2.2), but bytes can be anything.
    let (mut frame, mut seen) = (frame, 0);
    for quotes in 0.. {
        let last = sites[seen..].iter().rev().find(|site| matches!(site, Site::Transport { .. }));
        let Some(&Site::Transport { proto, at, end }) = last else { return };
        let Some(quote) = quote(proto, at, &frame[..frame.len().min(end)]) else { return };
        if quotes == QUOTES_MAX {
            return sites.push(Site::Unread);
        }
        seen = sites.len();
        frame = &frame[..quote.end];
        let packet = &frame[quote.start..];
        let end = stated_len(packet).unwrap_or(packet.len());
        if packet.iter().skip(end).any(|&byte| byte != 0) {
            // More of the packet than it says that there is.
            sites.push(Site::Unread);
        }
        follow(Next::Ip, ports, frame, quote.start..QUOTE_END, sites);
    }
}

/// How many packets are looked into of which each is quoted by the one before.
const QUOTES_MAX: usize = 4;

/// Where a quoted packet ends: it says so itself, and that is mostly beyond the quote.
const QUOTE_END: usize = u32::MAX as usize;

fn follow(
    next: Next,
    ports: &TunnelPorts,
    frame: &[u8],
    packet: Range<usize>,
    sites: &mut Vec<Site>,
) {
    let mut walk = Walk::new(frame, packet.end, ports, sites);
    let _ = walk.follow(next, packet.start);
    let tunnels = (0..=TUNNELS_MAX).take_while(|_| walk.enter().is_some()).count();
    let found = walk.found;
    // After a TCP header there are no more headers, whatever its length says, nor where a quoted
    // packet ends within its transport header, as hosts quote 8 bytes of that.
    let ends = |reason| match reason {
        Reason::TcpDataOffset => true,
        Reason::ShortHeader => packet.end == QUOTE_END && found.proto_known,
        _ => false,
    };
    let faulty = found.reason.is_some_and(|reason| !ends(reason));
    // A later fragment may begin with any header that the first one had no room for.
    // A tunnel in a first fragment is not entered where its packet goes on in the next.
    let is_cut = found.layers & 1 << Layer::Cut as usize != 0;
    let in_part = !walk.whole && found.proto_known || walk.partial && is_cut;
    let torn = in_part && found.proto != tcp::PROTOCOL;
    if faulty || torn || tunnels > TUNNELS_MAX {
        sites.note(Site::Unread);
    }
}

/// Where in a message the packet stands that an ICMP error quotes.
fn quote(proto: u8, at: usize, frame: &[u8]) -> Option<Range<usize>> {
    let kind = *frame.get(at)?;
    let end = extension(proto, at, frame).unwrap_or(frame.len());
    let whole = Some(at + 8..frame.len().min(end));
    let quoted = match (proto, kind) {
        (icmp::PROTOCOL, 3 | 4 | 5 | 11 | 12) | (icmp::PROTOCOL_V6, 1..=4) => whole,
        // A redirect of neighbour discovery: the packet is in an option (RFC 4861, section 4.5).
        (icmp::PROTOCOL_V6, 137) => options(frame, at + 40)
            .find(|(kind, ..)| *kind == REDIRECTED)
            .map(|(_, at, len)| at + 8..frame.len().min(at + len)),
        _ => None,
    };
    quoted.filter(|quote| quote.start < quote.end)
}

/// Where the extension of an ICMP error starts (RFC 4884): after so many bytes of the packet as it
/// says. If it does not say, old routers put it after 128 (section 5.5).
pub(crate) fn extension(proto: u8, at: usize, frame: &[u8]) -> Option<usize> {
    let packet = at + 8;
    let quoted = match (proto, *frame.get(at)?) {
        (icmp::PROTOCOL, 3 | 11 | 12) => usize::from(*frame.get(at + 5)?) * 4,
        (icmp::PROTOCOL_V6, 1 | 3) => usize::from(*frame.get(at + 4)?) * 8,
        _ => return None,
    };
    let is_header = || frame.get(packet + 128..).is_some_and(|rest| rest.starts_with(&[0x20, 0]));
    match quoted {
        0 => is_header().then_some(packet + 128),
        quoted => Some(packet + quoted),
    }
}

/// The length of an IP packet by its header, if that is there and does not leave it open.
fn stated_len(packet: &[u8]) -> Option<usize> {
    let word = |at: usize| packet.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b));
    let len = match packet.first()? >> 4 {
        4 => word(ipv4::TOTAL_LENGTH)?.into(),
        _ => match word(ipv6::PAYLOAD_LENGTH)? {
            0 => 0,
            len => usize::from(len) + ipv6::HEADER_LEN,
        },
    };
    (len > 0).then_some(len)
}

/// The option of neighbour discovery that holds a packet.
pub(crate) const REDIRECTED: u8 = 4;

/// The options of neighbour discovery from `at` on: kind, start, length.
pub(crate) fn options(
    frame: &[u8],
    mut at: usize,
) -> impl Iterator<Item = (u8, usize, usize)> + '_ {
    std::iter::from_fn(move || {
        let &[kind, words] = frame.get(at..)?.first_chunk()?;
        let (start, len) = (at, usize::from(words) * ipv6::EXTENSION_LEN_MIN);
        at += len;
        (len > 0).then_some((kind, start, len))
    })
}
