//! All headers of a frame, outer ones and those inside tunnels and ICMP errors.

use super::layers::Layer;
use super::link::Next;
use super::reason::Reason;
use super::site::{Site, Sites as _};
use super::walker::Walk;
use crate::limits::TUNNELS_MAX;
use crate::source::LinkType;
use crate::{icmp, ipv6, tcp};

/// Notes the headers of a frame that is so long on the wire, from the outside in; those of a packet
/// that an ICMP error quotes come last.
pub(crate) fn find(link: LinkType, frame: &[u8], len: u32, sites: &mut Vec<Site>) {
    let end = frame.len().max(len as usize);
    follow(Next::Link(link), frame, (0, end), sites);
    // A quote holds no further error: those are not answered (RFC 1122, section 3.2.2).
    let last = sites.iter().rev().find(|site| matches!(site, Site::Transport { .. }));
    if let Some(&Site::Transport { proto, at, end }) = last
        && let Some(at) = quote(proto, at, frame)
    {
        let frame = &frame[..frame.len().min(end)];
        follow(Next::Ip, frame, (at, QUOTE_END), sites);
    }
}

/// Where a quoted packet ends: it says so itself, and that is mostly beyond the quote.
const QUOTE_END: usize = u32::MAX as usize;

fn follow(next: Next, frame: &[u8], (at, end): (usize, usize), sites: &mut Vec<Site>) {
    let mut walk = Walk::new(frame, end, sites);
    let _ = walk.follow(next, at);
    let tunnels = (0..=TUNNELS_MAX).take_while(|_| walk.enter().is_some()).count();
    let found = walk.found;
    // After a TCP header there are no more headers, whatever its length says.
    let faulty = found.reason.is_some_and(|reason| reason != Reason::TcpDataOffset);
    // A later fragment may begin with any header that the first one had no room for.
    // A tunnel in a first fragment is not entered where its packet goes on in the next.
    let is_cut = found.layers & 1 << Layer::Cut as usize != 0;
    let in_part = !walk.whole && found.proto_known || walk.partial && is_cut;
    let torn = in_part && found.proto != tcp::PROTOCOL;
    if faulty || torn || tunnels > TUNNELS_MAX {
        sites.note(Site::Unread);
    }
}

/// Where the packet starts that an ICMP error quotes.
fn quote(proto: u8, at: usize, frame: &[u8]) -> Option<usize> {
    let kind = *frame.get(at)?;
    let (first, link_options) = match (proto, kind) {
        (icmp::PROTOCOL, 3 | 4 | 5 | 11 | 12) | (icmp::PROTOCOL_V6, 1..=4) => return Some(at + 8),
        // A redirect of neighbour discovery: the packet is in an option (RFC 4861, section 4.5).
        (icmp::PROTOCOL_V6, 137) => (at + 40, 4),
        _ => return None,
    };
    options(frame, first).find(|(kind, ..)| *kind == link_options).map(|(_, at, _)| at + 8)
}

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
