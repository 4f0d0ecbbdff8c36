//! Readers of Ethernet, VLAN and ARP fields.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::source::LinkType;
use crate::walk::Layer;
use crate::{arp, ethernet, vlan};

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
            let have = with_ethertype(rows);
            rows.words(out, have, |i| ethertype(rows, i))
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
    let first = link_len(rows.frames.link);
    let control = |i: usize| rows.be16(i, first + vlan::CONTROL);
    match item {
        Item::VlanId => rows.words(out, vlan, |i| control(i) & 0xfff),
        Item::VlanPcp => rows.words(out, vlan, |i| control(i) >> 13),
        Item::VlanDei => rows.bits(out, vlan, |i| control(i) & 0x1000 != 0),
        _ => {
            let second = first + vlan::TAG_LEN + vlan::CONTROL;
            let have = vlan.iter().filter(|&i| rows.layers.vlan_depth[i] >= 2).collect();
            rows.words(out, have, |i| rows.be16(i, second) & 0xfff)
        }
    }
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
fn ethertype(rows: &Rows<'_>, i: usize) -> u64 {
    let link = rows.frames.link;
    let at = match usize::from(rows.layers.vlan_depth[i]) {
        0 if link == LinkType::LINUX_SLL2 => 0,
        depth => link_len(link) + depth * vlan::TAG_LEN - 2,
    };
    rows.be16(i, at)
}

/// The rows of one EtherType.
pub(super) fn with_type(rows: &Rows<'_>, wanted: u16) -> Bits {
    let is = |&i: &usize| ethertype(rows, i) == u64::from(wanted);
    with_ethertype(rows).iter().filter(is).collect()
}

/// The rows whose type field is captured and says what the payload is. Not lengths, and not a
/// tag's announcement: the tag is cut then, or one too many.
fn with_ethertype(rows: &Rows<'_>) -> Bits {
    let frames = rows.frames;
    let says = |i: usize| {
        let ethertype = ethertype(rows, i) as u16;
        (ethertype >= ethernet::TYPE_MIN) & !vlan::is_tag(ethertype)
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
