//! The fields of IPsec headers.

use super::carried::carries;
use super::entry::{Entry, int, whether};
use super::ip::later;
use super::rows::Rows;
use crate::ipsec::{AH_SPI, ESP, ESP_SPI, Ipsec};
use crate::ipv4;
use crate::ipv6::{self, Extension};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("esp", "Whether the packet has an ESP header (RFC 4303).", |rows| {
        carries(rows, ESP).iter().filter(|&i| esp(rows, i).spi().is_some()).collect()
    }),
    int("esp.spi", 32, "ESP security parameters index.", |rows, out| {
        rows.some_words(out, carries(rows, ESP), |i| Some(esp(rows, i).spi()?.into()))
    }),
    int("esp.seq", 32, "ESP sequence number.", |rows, out| {
        rows.some_words(out, carries(rows, ESP), |i| Some(esp(rows, i).seq()?.into()))
    }),
    whether(
        "ah",
        "Whether the packet has an IP authentication header; `ip.proto` is what follows it (RFC \
         4302).",
        |rows| {
            let there = |&i: &usize| authentication(rows, i).is_some_and(|ah| ah.spi().is_some());
            rows.ip().iter().filter(there).collect()
        },
    ),
    int("ah.spi", 32, "AH security parameters index.", |rows, out| {
        rows.some_words(out, rows.ip(), |i| Some(authentication(rows, i)?.spi()?.into()))
    }),
    int("ah.seq", 32, "AH sequence number.", |rows, out| {
        rows.some_words(out, rows.ip(), |i| Some(authentication(rows, i)?.seq()?.into()))
    }),
];

fn esp<'a>(rows: &Rows<'a>, i: usize) -> Ipsec<'a> {
    Ipsec::new(rows.body(i), ESP_SPI)
}

/// The authentication header of an IP packet: the one after an IPv4 header, or the first in the
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
