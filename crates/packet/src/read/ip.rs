//! Readers of IPv4 and IPv6 header fields, but for the addresses.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::ipv6::{Extension, Fragment};
use crate::walk::Layer;
use crate::{ipv4, ipv6};

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let (four, six) = (rows.has(Layer::Ipv4), rows.has(Layer::Ipv6));
    let ip = four.or(six);
    let known = rows.layers.proto_known;
    let class = |i: usize, six: bool| {
        let word = rows.be16(i, rows.l3(i));
        if six { word >> 4 & 0xff } else { word & 0xff }
    };
    match item {
        Item::IpProto => rows.words(out, known, |i| rows.layers.proto[i].into()),
        Item::IpVersion => rows.ip_words(out, ip, |_, six| if six { 6 } else { 4 }),
        Item::IpLen => rows.ip_words(out, ip, |i, six| rows.ip_len(i, six)),
        Item::IpHdrLen => rows.words(out, known, |i| rows.l4(i).saturating_sub(rows.l3(i)) as u64),
        Item::IpTtl => rows.ip_loads(out, ip, [ipv4::TTL, ipv6::HOP_LIMIT], |[ttl]| ttl.into()),
        Item::IpDscp => rows.ip_words(out, ip, |i, six| class(i, six) >> 2),
        Item::IpEcn => rows.ip_words(out, ip, |i, six| class(i, six) & 3),
        Item::Ipv6FlowLabel => rows.words(out, six, |i| rows.be32(i, rows.l3(i)) & 0xf_ffff),
        Item::IpDf => {
            let df = u64::from(ipv4::DONT_FRAGMENT);
            rows.bits(out, four, |i| rows.be16(i, rows.l3(i) + ipv4::FRAGMENT) & df != 0)
        }
        _ => fragments(rows, item, out),
    }
}

fn fragments(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let (four, six) = (rows.has(Layer::Ipv4), rows.has(Layer::Ipv6));
    let fragments = rows.has(Layer::Fragment);
    // Where the chain of extension headers is cut, a fragment header may be in what is missing.
    let known = four.or(six.and(rows.layers.proto_known.or(fragments)));
    let word = |i: usize| rows.be16(i, rows.l3(i) + ipv4::FRAGMENT);
    match item {
        Item::IpId => rows.ip_words(out, four.or(six.and(fragments)), |i, six| match six {
            true => fragment(rows, i).map_or(0, |f| f.id.into()),
            false => rows.be16(i, rows.l3(i) + ipv4::ID),
        }),
        Item::IpFrag => rows.truth(out, known, fragments),
        Item::IpFragOffset => rows.ip_words(out, known, |i, six| match six {
            true if !fragments.has(i) => 0,
            true => fragment(rows, i).map_or(0, |f| f.offset.into()),
            false => (word(i) & u64::from(ipv4::OFFSET_BITS)) * 8,
        }),
        Item::IpMoreFrags => {
            let more = |i: usize| match six.has(i) {
                true => fragment(rows, i).is_some_and(|f| f.more),
                false => word(i) & u64::from(ipv4::MORE_FRAGMENTS) != 0,
            };
            let more: Bits = fragments.iter().filter(|&i| more(i)).collect();
            rows.truth(out, known, more)
        }
        _ => false,
    }
}

/// The fragment header of an IPv6 fragment.
#[cold]
#[inline(never)]
pub(super) fn fragment(rows: &Rows<'_>, i: usize) -> Option<Fragment> {
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
