//! The fields of Ethernet headers, and the EtherType of whatever link has one.

use super::entry::{Entry, int, mac, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::source::LinkType;
use crate::walk::Layer;
use crate::{ethernet, port_tag, vlan};
use std::hint::select_unpredictable as select;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("eth", "Whether the frame has an Ethernet header.", |rows| rows.has(Layer::Eth)),
    mac("eth.src", "Ethernet source address.", |rows, out| {
        rows.words(out, rows.has(Layer::Eth), |i| source(rows, i))
    }),
    mac("eth.dst", "Ethernet destination address.", |rows, out| {
        rows.words(out, rows.has(Layer::Eth), |i| destination(rows, i))
    }),
    int(
        "eth.type",
        16,
        "EtherType of the payload, after any VLAN tags (IEEE 802.3); also from Linux cooked \
         captures.",
        |rows, out| {
            let types = types(rows);
            rows.words(out, types.have, |i| types.of(rows, i))
        },
    ),
    mac(
        "link.a",
        "The smaller of the two Ethernet addresses: the same in both directions.",
        |rows, out| {
            rows.words(out, rows.has(Layer::Eth), |i| source(rows, i).min(destination(rows, i)))
        },
    ),
    mac(
        "link.b",
        "The larger of the two Ethernet addresses: the same in both directions.",
        |rows, out| {
            rows.words(out, rows.has(Layer::Eth), |i| source(rows, i).max(destination(rows, i)))
        },
    ),
];

#[inline(always)]
fn source(rows: &Rows<'_>, i: usize) -> u64 {
    rows.mac(i, ethernet::SOURCE)
}

#[inline(always)]
fn destination(rows: &Rows<'_>, i: usize) -> u64 {
    rows.mac(i, ethernet::DESTINATION)
}

/// Bytes of the link header before any tags; 0 for links that have none.
pub(super) fn link_len(link: LinkType) -> usize {
    match link {
        LinkType::ETHERNET => ethernet::HEADER_LEN,
        LinkType::LINUX_SLL => 16,
        LinkType::LINUX_SLL2 => 20,
        _ => 0,
    }
}

/// The type field of the last tag, or of the link header.
#[inline(always)]
fn ethertype(rows: &Rows<'_>, plain: &Bits, i: usize) -> u64 {
    let end = select(plain.has(i), rows.l3(i), rows.layers.below[i].link_end.into());
    let first = rows.frames.link == LinkType::LINUX_SLL2 && end == link_len(LinkType::LINUX_SLL2);
    rows.be16(i, if first { 0 } else { end.saturating_sub(2) })
}

/// The rows that the fast pass took.
pub(super) fn plain(rows: &Rows<'_>) -> Bits {
    rows.layers.plain.four.or(rows.layers.plain.six)
}

/// The rows of one EtherType.
pub(super) fn with_type(rows: &Rows<'_>, wanted: u16) -> Bits {
    let types = types(rows);
    types.have.iter().filter(|&i| types.of(rows, i) == u64::from(wanted)).collect()
}

/// EtherTypes of a batch.
pub(super) struct EtherTypes {
    /// The rows that have one.
    pub(super) have: Bits,
    plain: Bits,
}

impl EtherTypes {
    /// That of row `i`.
    pub(super) fn of(&self, rows: &Rows<'_>, i: usize) -> u64 {
        ethertype(rows, &self.plain, i)
    }
}

/// The EtherTypes of the rows that have one.
pub(super) fn types(rows: &Rows<'_>) -> EtherTypes {
    EtherTypes { have: with_ethertype(rows), plain: plain(rows) }
}

/// The rows whose type field is captured and says what the payload is. Not lengths, and not a
/// tag's announcement: the tag is cut then, or one too many.
fn with_ethertype(rows: &Rows<'_>) -> Bits {
    let (frames, plain) = (rows.frames, plain(rows));
    let says = |i: usize| {
        let ethertype = ethertype(rows, &plain, i) as u16;
        let tag = vlan::is_tag(ethertype) | port_tag::tag_len(ethertype).is_some();
        (ethertype >= ethernet::TYPE_MIN) & !tag
    };
    match frames.link {
        LinkType::ETHERNET => {
            let says = Bits::from_fn(frames.len(), says);
            rows.has(Layer::Eth).and(says)
        }
        LinkType::LINUX_SLL | LinkType::LINUX_SLL2 => {
            let hardware = if frames.link == LinkType::LINUX_SLL { 2 } else { 8 };
            Bits::from_fn(frames.len(), |i| {
                frames.frame(i).len() >= link_len(frames.link)
                    && crate::walk::has_ethertypes(rows.be16(i, hardware) as u16)
                    && says(i)
            })
        }
        _ => Bits::NONE,
    }
}
