//! Readers of DNS fields.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::dns::{self, Dns, PORTS};
use crate::fields::Item;
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::walk::Layer;

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let flag = match item {
        Item::Dns => {
            let has = candidates(rows).iter().filter(|&i| message(rows, i).is_some()).collect();
            return rows.truth(out, Bits::ALL, has);
        }
        Item::DnsAddr => {
            let address = |i: usize| message(rows, i)?.answers().find_map(|r| r.address());
            return rows.some_pairs(out, candidates(rows), address);
        }
        Item::DnsQr => dns::QR,
        Item::DnsAa => dns::AA,
        Item::DnsTc => dns::TC,
        Item::DnsRd => dns::RD,
        Item::DnsRa => dns::RA,
        _ => return words(rows, item, out),
    };
    rows.some_bits(out, candidates(rows), |i| Some(message(rows, i)?.flags() & flag != 0))
}

/// Reads `item` if it is a text of DNS; returns whether it is.
pub(super) fn read_text(
    rows: &Rows<'_>,
    item: Item,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) -> bool {
    if item != Item::DnsQname {
        return false;
    }
    rows.texts(out, candidates(rows), put, |i, text| {
        let question = message(rows, i).and_then(|dns| dns.question());
        question.is_some_and(|question| question.name.write(text))
    })
}

fn words(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    match item {
        Item::DnsId => each(rows, out, |dns| Some(dns.id().into())),
        Item::DnsOpcode => each(rows, out, |dns| Some(dns.opcode().into())),
        Item::DnsRcode => each(rows, out, |dns| Some(dns.rcode().into())),
        Item::DnsQtype => each(rows, out, |dns| Some(dns.question()?.kind.into())),
        Item::DnsQclass => each(rows, out, |dns| Some(dns.question()?.class.into())),
        Item::DnsQdcount => each(rows, out, |dns| Some(dns.counts()[0].into())),
        Item::DnsAncount => each(rows, out, |dns| Some(dns.counts()[1].into())),
        Item::DnsNscount => each(rows, out, |dns| Some(dns.counts()[2].into())),
        Item::DnsArcount => each(rows, out, |dns| Some(dns.counts()[3].into())),
        Item::DnsTtl => each(rows, out, |dns| Some(dns.answers().next()?.ttl.into())),
        _ => false,
    }
}

fn each(rows: &Rows<'_>, out: &mut Column, value: impl Fn(Dns<'_>) -> Option<u64>) -> bool {
    rows.some_words(out, candidates(rows), |i| value(message(rows, i)?))
}

/// The rows whose ports are those of DNS.
pub(super) fn candidates(rows: &Rows<'_>) -> Bits {
    rows.on_ports(Layer::Udp, &PORTS).or(rows.on_ports(Layer::TcpWhole, &PORTS[..1]))
}

/// The message of a candidate.
pub(super) fn message<'a>(rows: &Rows<'a>, i: usize) -> Option<Dns<'a>> {
    let body = rows.body(i);
    if rows.has(Layer::Udp).has(i) {
        return Dns::new(Udp::new(body).ok()?.payload());
    }
    let tcp = Tcp::new(body).ok()?;
    Dns::in_segment(
        tcp.payload(),
        (rows.packet_end(i) - rows.l4(i)).saturating_sub(tcp.header_len()),
    )
}
