//! Readers of a packet's endpoints: addresses and ports, by direction and in canonical order.
//!
//! A later fragment has no ports. Where the batch says which it belongs to, it is read as if it
//! did.
//!
//! The endpoints of a connection are ordered by address, then port, an absent port before any
//! other. The ports of one packet are both there or both absent, so 0 may stand for absent.

use super::rows::{Rows, be16};
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::walk::Layer;
use crate::{ipv4, ipv6};
use std::hint::select_unpredictable as select;

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let known = captured(rows, item, out);
    if known && !rows.frames.with_ports().is_empty() {
        late(rows, item, out);
    }
    known
}

/// Reads what later fragments get from elsewhere.
#[cold]
#[inline(never)]
fn late(rows: &Rows<'_>, item: Item, out: &mut Column) {
    let ip = rows.has(Layer::Ipv4).or(rows.has(Layer::Ipv6));
    let (have, six) = (rows.late().and(ip), rows.has(Layer::Ipv6));
    let ports = |i: usize| {
        let [source, destination] = rows.frames.ports(i).unwrap_or_default();
        (u64::from(source), u64::from(destination))
    };
    // Source and destination in their order, and whether that turned them around.
    let ends = |i: usize| {
        let ((source, destination), (sport, dport)) = (addresses(rows, i, six.has(i)), ports(i));
        let (from, to) = ((source, sport), (destination, dport));
        if from <= to { (from, to, true) } else { (to, from, false) }
    };
    match item {
        Item::Sport => rows.few(out, have, |i| ports(i).0),
        Item::Dport => rows.few(out, have, |i| ports(i).1),
        Item::ConnAIp => rows.pairs(out, have, |i| ends(i).0.0),
        Item::ConnBIp => rows.pairs(out, have, |i| ends(i).1.0),
        Item::ConnAPort => rows.few(out, have, |i| ends(i).0.1),
        Item::ConnBPort => rows.few(out, have, |i| ends(i).1.1),
        Item::ConnForward => rows.truth(out, have, have.iter().filter(|&i| ends(i).2).collect()),
        _ => true,
    };
}

/// Reads what the packets themselves say.
fn captured(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let ports = rows.has(Layer::Ports);
    let ip = rows.has(Layer::Ipv4).or(rows.has(Layer::Ipv6));
    match item {
        Item::IpSrc => rows.ip_addresses(out, SOURCE),
        Item::IpDst => rows.ip_addresses(out, DESTINATION),
        Item::Sport => rows.loads(out, ports, 0, be16),
        Item::Dport => rows.loads(out, ports, 2, be16),
        Item::HostsA => rows.ip_pairs(out, |i, six| {
            let (source, destination) = addresses(rows, i, six);
            source.min(destination)
        }),
        Item::HostsB => rows.ip_pairs(out, |i, six| {
            let (source, destination) = addresses(rows, i, six);
            source.max(destination)
        }),
        Item::ConnAIp => rows.ip_pairs(out, |i, six| {
            let (source, destination) = addresses(rows, i, six);
            select(forward(rows, &ports, i, six), source, destination)
        }),
        Item::ConnBIp => rows.ip_pairs(out, |i, six| {
            let (source, destination) = addresses(rows, i, six);
            select(forward(rows, &ports, i, six), destination, source)
        }),
        Item::ConnAPort => rows.ip_words(out, ports, |i, six| {
            let both = rows.be32(i, rows.l4(i));
            select(forward(rows, &ports, i, six), both >> 16, both & 0xffff)
        }),
        Item::ConnBPort => rows.ip_words(out, ports, |i, six| {
            let both = rows.be32(i, rows.l4(i));
            select(forward(rows, &ports, i, six), both & 0xffff, both >> 16)
        }),
        Item::ConnForward => {
            let six = rows.has(Layer::Ipv6);
            rows.bits(out, ip, |i| forward(rows, &ports, i, six.has(i)))
        }
        _ => false,
    }
}

/// Where addresses stand in an IP header, of IPv4 and of IPv6.
const SOURCE: [usize; 2] = [ipv4::SOURCE, ipv6::SOURCE];
const DESTINATION: [usize; 2] = [ipv4::DESTINATION, ipv6::DESTINATION];

#[inline(always)]
fn addresses(rows: &Rows<'_>, i: usize, six: bool) -> ((u64, u64), (u64, u64)) {
    (rows.address(i, six, SOURCE), rows.address(i, six, DESTINATION))
}

/// Whether the packet goes from the smaller endpoint to the larger one, or to itself.
#[inline(always)]
fn forward(rows: &Rows<'_>, ports: &Bits, i: usize, six: bool) -> bool {
    let both = select(ports.has(i), rows.be32(i, rows.l4(i)), 0);
    let (sport, dport) = (both >> 16, both & 0xffff);
    if six {
        return forward6(rows, i, sport, dport);
    }
    let both = rows.be64(i, rows.l3(i) + ipv4::SOURCE);
    (both >> 32 << 16 | sport) <= ((both & 0xffff_ffff) << 16 | dport)
}

/// Apart, so that the loops over IPv4 packets stay small.
#[inline(never)]
fn forward6(rows: &Rows<'_>, i: usize, sport: u64, dport: u64) -> bool {
    let (source, destination) = addresses(rows, i, true);
    (source, sport) <= (destination, dport)
}
