//! Readers of what IP carries beside TCP, UDP and ICMP, and of LLDP.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::igmp::{self, Igmp};
use crate::ipsec::{self, AH_SPI, ESP_SPI, Ipsec};
use crate::ipv6::{self, Extension};
use crate::sctp::{self, Sctp};
use crate::walk::Layer;
use crate::{ethernet, ipv4};

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let of = |protocol: u8| carries(rows, protocol);
    match item {
        Item::Sctp => rows.truth(out, Bits::ALL, of(sctp::PROTOCOL).and(rows.has(Layer::Ports))),
        Item::SctpVtag => rows
            .some_words(out, of(sctp::PROTOCOL), |i| Some(Sctp::new(rows.body(i)).tag()?.into())),
        Item::SctpChunkType => rows.some_words(out, of(sctp::PROTOCOL), |i| {
            Some(Sctp::new(rows.body(i)).chunk_type()?.into())
        }),
        Item::Igmp => {
            let there = |&i: &usize| Igmp::new(rows.body(i)).kind().is_some();
            rows.truth(out, Bits::ALL, of(igmp::PROTOCOL).iter().filter(there).collect())
        }
        Item::IgmpType => rows
            .some_words(out, of(igmp::PROTOCOL), |i| Some(Igmp::new(rows.body(i)).kind()?.into())),
        Item::IgmpGroup => {
            rows.some_v4(out, of(igmp::PROTOCOL), |i| Igmp::new(rows.body(i)).group())
        }
        Item::Esp => {
            let there = |&i: &usize| Ipsec::new(rows.body(i), ESP_SPI).spi().is_some();
            rows.truth(out, Bits::ALL, of(ipsec::ESP).iter().filter(there).collect())
        }
        Item::EspSpi => rows.some_words(out, of(ipsec::ESP), |i| {
            Some(Ipsec::new(rows.body(i), ESP_SPI).spi()?.into())
        }),
        Item::EspSeq => rows.some_words(out, of(ipsec::ESP), |i| {
            Some(Ipsec::new(rows.body(i), ESP_SPI).seq()?.into())
        }),
        Item::Ah => {
            let there = |&i: &usize| authentication(rows, i).is_some_and(|ah| ah.spi().is_some());
            rows.truth(out, Bits::ALL, ip(rows).iter().filter(there).collect())
        }
        Item::AhSpi => {
            rows.some_words(out, ip(rows), |i| Some(authentication(rows, i)?.spi()?.into()))
        }
        Item::AhSeq => {
            rows.some_words(out, ip(rows), |i| Some(authentication(rows, i)?.seq()?.into()))
        }
        Item::Lldp => rows.truth(out, Bits::ALL, super::link::with_type(rows, ethernet::LLDP)),
        _ => false,
    }
}

fn ip(rows: &Rows<'_>) -> Bits {
    rows.has(Layer::Ipv4).or(rows.has(Layer::Ipv6))
}

/// The rows whose IP packets carry a protocol, from its first byte on.
fn carries(rows: &Rows<'_>, protocol: u8) -> Bits {
    let known = rows.layers.proto_known.and(ip(rows));
    let of = |&i: &usize| rows.layers.proto[i] == protocol && !later(rows, i);
    known.iter().filter(of).collect()
}

/// Whether a packet is a later fragment, which has no header of what it carries.
fn later(rows: &Rows<'_>, i: usize) -> bool {
    if !rows.has(Layer::Fragment).has(i) {
        return false;
    }
    match rows.has(Layer::Ipv6).has(i) {
        true => super::ip::fragment(rows, i).is_some_and(|fragment| fragment.offset > 0),
        false => {
            let word = rows.be16(i, rows.l3(i) + ipv4::FRAGMENT);
            word & u64::from(ipv4::OFFSET_BITS) != 0
        }
    }
}

/// The authentication header of an IP packet: the one behind an IPv4 header, or the first in the
/// chain of IPv6.
fn authentication<'a>(rows: &Rows<'a>, i: usize) -> Option<Ipsec<'a>> {
    if later(rows, i) {
        return None;
    }
    let (frame, l3) = (rows.frames.frame(i), rows.l3(i));
    let (mut at, mut kind) = if rows.has(Layer::Ipv6).has(i) {
        (l3 + ipv6::HEADER_LEN, *frame.get(l3 + ipv6::NEXT_HEADER)?)
    } else {
        let words = usize::from(*frame.get(l3)? & 15);
        (l3 + words * 4, *frame.get(l3 + ipv4::PROTOCOL)?)
    };
    while kind != ipv6::AUTHENTICATION {
        if !ipv6::is_extension(kind) || rows.has(Layer::Ipv4).has(i) {
            return None;
        }
        let header = Extension::new(kind, frame.get(at..)?).ok()?;
        (at, kind) = (at + header.header_len(), header.next_header());
    }
    // Up to the end of the packet, not of what pads it.
    let end = rows.packet_end(i).min(frame.len());
    Some(Ipsec::new(frame.get(at..end)?, AH_SPI))
}
