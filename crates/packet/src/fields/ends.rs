//! The ends of a packet and of its connection: addresses and ports, in canonical order.
//!
//! A later fragment has no ports. Where the batch says which it belongs to, it is read as if it
//! did.
//!
//! The endpoints of a connection are ordered by address, then port, an absent port before any
//! other. The ports of one packet are both there or both absent, so 0 may stand for absent.

use super::entry::{Entry, flag, int, ip};
use super::ip::{DESTINATION, SOURCE};
use super::rows::{Rows, be16};
use crate::bits::Bits;
use crate::column::Column;
use crate::ipv4;
use crate::walk::Layer;
use std::hint::select_unpredictable as select;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    int(
        "sport",
        16,
        "Source port of TCP, UDP, UDP-Lite, SCTP or DCCP; absent in later fragments, unless \
         --fragments finds it.",
        |rows, out| {
            rows.loads(out, rows.has(Layer::Ports), 0, be16);
            late_words(rows, out, |late, i| late.ports(i).0);
        },
    ),
    int(
        "dport",
        16,
        "Destination port of TCP, UDP, UDP-Lite, SCTP or DCCP; absent in later fragments, unless \
         --fragments finds it.",
        |rows, out| {
            rows.loads(out, rows.has(Layer::Ports), 2, be16);
            late_words(rows, out, |late, i| late.ports(i).1);
        },
    ),
    ip(
        "hosts.a",
        "The smaller of the two IP addresses: the same in both directions.",
        |rows, out| {
            rows.ip_pairs(out, |i, six| {
                let (source, destination) = addresses(rows, i, six);
                source.min(destination)
            })
        },
    ),
    ip(
        "hosts.b",
        "The larger of the two IP addresses: the same in both directions.",
        |rows, out| {
            rows.ip_pairs(out, |i, six| {
                let (source, destination) = addresses(rows, i, six);
                source.max(destination)
            })
        },
    ),
    ip(
        "conn.a_ip",
        "Address of the connection's smaller (address, port) endpoint: the same in both \
         directions.",
        |rows, out| {
            let ports = rows.has(Layer::Ports);
            rows.ip_pairs(out, |i, six| {
                let (source, destination) = addresses(rows, i, six);
                select(forward(rows, &ports, i, six), source, destination)
            });
            late_pairs(rows, out, |late, i| late.ends(i).a.address);
        },
    ),
    int(
        "conn.a_port",
        16,
        "Port of the connection's smaller endpoint; absent without ports.",
        |rows, out| {
            let ports = rows.has(Layer::Ports);
            rows.ip_words(out, ports, |i, six| {
                let both = rows.be32(i, rows.l4(i));
                select(forward(rows, &ports, i, six), both >> 16, both & 0xffff)
            });
            late_words(rows, out, |late, i| late.ends(i).a.port);
        },
    ),
    ip("conn.b_ip", "Address of the connection's larger (address, port) endpoint.", |rows, out| {
        let ports = rows.has(Layer::Ports);
        rows.ip_pairs(out, |i, six| {
            let (source, destination) = addresses(rows, i, six);
            select(forward(rows, &ports, i, six), destination, source)
        });
        late_pairs(rows, out, |late, i| late.ends(i).b.address);
    }),
    int(
        "conn.b_port",
        16,
        "Port of the connection's larger endpoint; absent without ports.",
        |rows, out| {
            let ports = rows.has(Layer::Ports);
            rows.ip_words(out, ports, |i, six| {
                let both = rows.be32(i, rows.l4(i));
                select(forward(rows, &ports, i, six), both & 0xffff, both >> 16)
            });
            late_words(rows, out, |late, i| late.ends(i).b.port);
        },
    ),
    flag(
        "conn.forward",
        "Direction bit: whether the packet goes from the smaller endpoint to the larger one.",
        |rows, out| {
            let (ports, six) = (rows.has(Layer::Ports), rows.has(Layer::Ipv6));
            rows.bits(out, rows.ip(), |i| forward(rows, &ports, i, six.has(i)));
            late_bits(rows, out, |late, i| late.ends(i).forward);
        },
    ),
];

#[inline(always)]
fn addresses(rows: &Rows<'_>, i: usize, six: bool) -> (Address, Address) {
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

/// The high and the low word of an address.
type Address = (u64, u64);

/// One end of a connection; they are ordered by address, then port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Endpoint {
    address: Address,
    port: u64,
}

/// The ends of a connection in their order, and whether the packet goes from `a` to `b`.
struct Endpoints {
    a: Endpoint,
    b: Endpoint,
    forward: bool,
}

/// Later fragments of which the batch says what their ports are.
struct LateFragments<'a> {
    rows: &'a Rows<'a>,
    six: Bits,
}

impl<'a> LateFragments<'a> {
    /// With the rows that they are, where there are any.
    fn new(rows: &'a Rows<'a>) -> Option<(LateFragments<'a>, Bits)> {
        if rows.frames.with_ports().is_empty() {
            return None;
        }
        let late = LateFragments { rows, six: rows.has(Layer::Ipv6) };
        Some((late, rows.late().and(rows.ip())))
    }

    fn ports(&self, i: usize) -> (u64, u64) {
        let [source, destination] = self.rows.frames.ports(i).unwrap_or_default();
        (source.into(), destination.into())
    }

    fn ends(&self, i: usize) -> Endpoints {
        let ((source, destination), ports) =
            (addresses(self.rows, i, self.six.has(i)), self.ports(i));
        let from = Endpoint { address: source, port: ports.0 };
        let to = Endpoint { address: destination, port: ports.1 };
        let forward = from <= to;
        let (a, b) = if forward { (from, to) } else { (to, from) };
        Endpoints { a, b, forward }
    }
}

/// Reads what later fragments get from elsewhere into a word column.
#[cold]
#[inline(never)]
fn late_words(rows: &Rows<'_>, out: &mut Column, of: fn(&LateFragments<'_>, usize) -> u64) {
    if let Some((late, have)) = LateFragments::new(rows) {
        rows.few(out, have, |i| of(&late, i));
    }
}

/// The same into an address column.
#[cold]
#[inline(never)]
fn late_pairs(rows: &Rows<'_>, out: &mut Column, of: fn(&LateFragments<'_>, usize) -> Address) {
    if let Some((late, have)) = LateFragments::new(rows) {
        rows.pairs(out, have, |i| of(&late, i));
    }
}

/// The same into a boolean column.
#[cold]
#[inline(never)]
fn late_bits(rows: &Rows<'_>, out: &mut Column, of: fn(&LateFragments<'_>, usize) -> bool) {
    if let Some((late, have)) = LateFragments::new(rows) {
        rows.truth(out, have, have.iter().filter(|&i| of(&late, i)).collect());
    }
}
