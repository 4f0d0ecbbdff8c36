//! The fields of IPv4 and IPv6 headers.

use super::entry::{Entry, flag, int, ip, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::ipv6::{Extension, Fragment};
use crate::walk::Layer;
use crate::{ipv4, ipv6};

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("ip", "Whether the packet is IPv4 or IPv6.", |rows| rows.ip()),
    whether("ipv4", "Whether the packet is IPv4 (RFC 791).", |rows| rows.has(Layer::Ipv4)),
    whether("ipv6", "Whether the packet is IPv6 (RFC 8200).", |rows| rows.has(Layer::Ipv6)),
    ip("ip.src", "Source address, IPv4 or IPv6.", |rows, out| rows.ip_addresses(out, SOURCE)),
    ip("ip.dst", "Destination address, IPv4 or IPv6.", |rows, out| {
        rows.ip_addresses(out, DESTINATION)
    }),
    int(
        "ip.proto",
        8,
        "Protocol number of the payload, after IPv6 extension headers and AH; fragments keep \
         it. Absent where an extension header is cut.",
        |rows, out| rows.words(out, rows.layers.proto_known, |i| rows.layers.proto[i].into()),
    ),
    int("ip.version", 4, "4 or 6.", |rows, out| {
        rows.ip_words(out, rows.ip(), |_, six| if six { 6 } else { 4 })
    }),
    int(
        "ip.len",
        32,
        "Length of the IP packet in bytes: IPv4 total length, or 40 plus IPv6 payload length. If \
         that field is 0 (segmentation offload, jumbograms): the length that the enclosing layer \
         gives.",
        |rows, out| rows.ip_words(out, rows.ip(), |i, six| rows.ip_len(i, six)),
    ),
    int(
        "ip.hdr_len",
        16,
        "Length of the IP header in bytes, with IPv4 options and IPv6 extension headers.",
        |rows, out| {
            rows.words(out, rows.layers.proto_known, |i| {
                rows.l4(i).saturating_sub(rows.l3(i)) as u64
            })
        },
    ),
    int("ip.ttl", 8, "Time to live, or hop limit of IPv6.", |rows, out| {
        rows.ip_loads(out, rows.ip(), [ipv4::TTL, ipv6::HOP_LIMIT], |[ttl]| ttl.into())
    }),
    int("ip.dscp", 6, "Differentiated services code point (RFC 2474).", |rows, out| {
        rows.ip_words(out, rows.ip(), |i, six| class(rows, i, six) >> 2)
    }),
    int("ip.ecn", 2, "Explicit congestion notification bits (RFC 3168).", |rows, out| {
        rows.ip_words(out, rows.ip(), |i, six| class(rows, i, six) & 3)
    }),
    int(
        "ip.id",
        32,
        "Identification: of every IPv4 packet, and of IPv6 fragments.",
        |rows, out| {
            let six = rows.has(Layer::Ipv6).and(rows.has(Layer::Fragment));
            rows.ip_words(out, rows.has(Layer::Ipv4).or(six), |i, six| match six {
                true => fragment(rows, i).map_or(0, |f| f.id.into()),
                false => rows.be16(i, rows.l3(i) + ipv4::ID),
            })
        },
    ),
    flag("ip.df", "Don't fragment flag; IPv4 only.", |rows, out| {
        rows.bits(out, rows.has(Layer::Ipv4), |i| {
            fragment_word(rows, i) & u64::from(ipv4::DONT_FRAGMENT) != 0
        })
    }),
    flag("ip.frag", "Whether the packet is a fragment, the first one included.", |rows, out| {
        rows.truth(out, fragment_known(rows), rows.has(Layer::Fragment))
    }),
    int(
        "ip.frag_offset",
        16,
        "Fragment offset in bytes; 0 for a first fragment and for a whole packet.",
        |rows, out| {
            let fragments = rows.has(Layer::Fragment);
            rows.ip_words(out, fragment_known(rows), |i, six| match six {
                true if !fragments.has(i) => 0,
                true => fragment(rows, i).map_or(0, |f| f.offset.into()),
                false => (fragment_word(rows, i) & u64::from(ipv4::OFFSET_BITS)) * 8,
            })
        },
    ),
    flag("ip.more_frags", "More fragments flag.", |rows, out| {
        let six = rows.has(Layer::Ipv6);
        let more = |&i: &usize| match six.has(i) {
            true => fragment(rows, i).is_some_and(|f| f.more),
            false => fragment_word(rows, i) & u64::from(ipv4::MORE_FRAGMENTS) != 0,
        };
        let more = rows.has(Layer::Fragment).iter().filter(more).collect();
        rows.truth(out, fragment_known(rows), more)
    }),
    int("ipv6.flow_label", 20, "IPv6 flow label (RFC 6437).", |rows, out| {
        rows.words(out, rows.has(Layer::Ipv6), |i| rows.be32(i, rows.l3(i)) & 0xf_ffff)
    }),
];

/// Where addresses stand in an IP header, of IPv4 and of IPv6.
pub(super) const SOURCE: [usize; 2] = [ipv4::SOURCE, ipv6::SOURCE];
pub(super) const DESTINATION: [usize; 2] = [ipv4::DESTINATION, ipv6::DESTINATION];

/// Differentiated services and congestion notification.
#[inline(always)]
fn class(rows: &Rows<'_>, i: usize, six: bool) -> u64 {
    let word = rows.be16(i, rows.l3(i));
    if six { word >> 4 & 0xff } else { word & 0xff }
}

/// Flags and fragment offset of an IPv4 header.
#[inline(always)]
fn fragment_word(rows: &Rows<'_>, i: usize) -> u64 {
    rows.be16(i, rows.l3(i) + ipv4::FRAGMENT)
}

/// The rows of which it is known whether they are fragments: where the chain of extension headers
/// is cut, a fragment header may be in what is missing.
fn fragment_known(rows: &Rows<'_>) -> Bits {
    let known = rows.layers.proto_known.or(rows.has(Layer::Fragment));
    rows.has(Layer::Ipv4).or(rows.has(Layer::Ipv6).and(known))
}

/// Whether a packet is a later fragment, which has no header of what it carries.
pub(super) fn later(rows: &Rows<'_>, i: usize) -> bool {
    if !rows.has(Layer::Fragment).has(i) {
        return false;
    }
    match rows.has(Layer::Ipv6).has(i) {
        true => fragment(rows, i).is_some_and(|fragment| fragment.offset > 0),
        false => fragment_word(rows, i) & u64::from(ipv4::OFFSET_BITS) != 0,
    }
}

/// The fragment header of an IPv6 fragment.
#[cold]
#[inline(never)]
fn fragment(rows: &Rows<'_>, i: usize) -> Option<Fragment> {
    let frame = rows.frames.frame(i);
    let mut at = rows.l3(i) + ipv6::HEADER_LEN;
    let mut kind = *frame.get(rows.l3(i) + ipv6::NEXT_HEADER)?;
    while ipv6::is_extension(kind) {
        let header = Extension::new(kind, frame.get(at..)?).ok()?;
        if let Some(fragment) = header.fragment() {
            return Some(fragment);
        }
        (at, kind) = (at + header.header_len(), header.next_header());
    }
    None
}
