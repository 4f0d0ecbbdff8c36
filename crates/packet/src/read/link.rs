//! Readers of Ethernet, VLAN and ARP fields.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::source::LinkType;
use crate::walk::Layer;
use crate::{arp, ethernet, port_tag, vlan};
use std::hint::select_unpredictable as select;

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let (eth, arp) = (rows.has(Layer::Eth), rows.has(Layer::Arp));
    let mac = |i: usize, at: usize| rows.be64(i, at) >> 16;
    let source = |i: usize| mac(i, ethernet::SOURCE);
    let destination = |i: usize| mac(i, ethernet::DESTINATION);
    match item {
        Item::EthSrc => rows.words(out, eth, source),
        Item::EthDst => rows.words(out, eth, destination),
        Item::LinkA => rows.words(out, eth, |i| source(i).min(destination(i))),
        Item::LinkB => rows.words(out, eth, |i| source(i).max(destination(i))),
        Item::EthType => {
            let (have, plain) = (with_ethertype(rows), plain(rows));
            rows.words(out, have, |i| ethertype(rows, &plain, i))
        }
        Item::VlanId | Item::VlanPcp | Item::VlanDei | Item::VlanInner => tags(rows, item, out),
        Item::VlanDepth => rows.words(out, Bits::ALL, |i| rows.layers.vlan_depth[i].into()),
        Item::ArpOp => rows.words(out, arp, |i| rows.be16(i, rows.l3(i) + arp::OPERATION)),
        // Both hardware addresses have two bytes or more behind them.
        Item::ArpSenderMac => rows.words(out, arp, |i| mac(i, rows.l3(i) + arp::SENDER_MAC)),
        Item::ArpTargetMac => rows.words(out, arp, |i| mac(i, rows.l3(i) + arp::TARGET_MAC)),
        Item::ArpSenderIp => rows.v4_pairs(out, arp, |i| rows.be32(i, rows.l3(i) + arp::SENDER_IP)),
        Item::ArpTargetIp => rows.v4_pairs(out, arp, |i| rows.be32(i, rows.l3(i) + arp::TARGET_IP)),
        _ => false,
    }
}

fn tags(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let vlan = rows.has(Layer::Vlan);
    let (link_end, plain) = (link_len(rows.frames.link), plain(rows));
    // The fast pass takes frames with a tag only where all that stands before it is the link
    // header.
    let first = |i: usize| select(plain.has(i), link_end, rows.layers.below[i].tags[0].into());
    let control = |i: usize| rows.be16(i, first(i) + vlan::CONTROL);
    match item {
        Item::VlanId => rows.words(out, vlan, |i| control(i) & 0xfff),
        Item::VlanPcp => rows.words(out, vlan, |i| control(i) >> 13),
        Item::VlanDei => rows.bits(out, vlan, |i| control(i) & 0x1000 != 0),
        _ => {
            let second = |i: usize| usize::from(rows.layers.below[i].tags[1]) + vlan::CONTROL;
            let have = vlan.iter().filter(|&i| rows.layers.vlan_depth[i] >= 2).collect();
            rows.words(out, have, |i| rows.be16(i, second(i)) & 0xfff)
        }
    }
}

/// Where the first tag of a row that has one starts.
pub(super) fn first_tag(rows: &Rows<'_>, i: usize) -> usize {
    match plain(rows).has(i) {
        true => link_len(rows.frames.link),
        false => rows.layers.below[i].tags[0].into(),
    }
}

/// Where the second tag of a row that has two starts.
pub(super) fn second_tag(rows: &Rows<'_>, i: usize) -> usize {
    rows.layers.below[i].tags[1].into()
}

/// Bytes of the link header before any tags; 0 for links that have none.
fn link_len(link: LinkType) -> usize {
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
fn plain(rows: &Rows<'_>) -> Bits {
    rows.layers.plain.four.or(rows.layers.plain.six)
}

/// The rows of one EtherType.
pub(super) fn with_type(rows: &Rows<'_>, wanted: u16) -> Bits {
    let plain = plain(rows);
    let is = |&i: &usize| ethertype(rows, &plain, i) == u64::from(wanted);
    with_ethertype(rows).iter().filter(is).collect()
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
