//! The fields of the tunnels that a packet came in.

use super::entry::{Entry, int, ip, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::walk::Layer;
use crate::{ipv4, ipv6};
use weir_base::address::V4;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "tunnel",
        "Whether the fields from `ip` on are those of a packet in a tunnel; only with --headers \
         inner.",
        |rows| rows.has(Layer::Tunnel),
    ),
    int(
        "tunnel.depth",
        4,
        "How many tunnels that packet is in; 0 without --headers inner.",
        |rows, out| {
            let inside = rows.has(Layer::Tunnel);
            rows.words(out, Bits::ALL, |i| {
                if inside.has(i) { rows.layers.below[i].tunnels.into() } else { 0 }
            })
        },
    )
    .always(),
    int(
        "tunnel.id",
        32,
        "The identifier of the innermost tunnel that has one: network (VXLAN, GENEVE), TEID \
         (GTP-U, of one direction), key (GRE), call (PPTP), session (ERSPAN); where `tunnel` \
         holds.",
        |rows, out| {
            let id = |i: usize| rows.layers.below[i].tunnel_id;
            let inside = rows.has(Layer::Tunnel).iter().filter(|&i| id(i).is_some()).collect();
            rows.words(out, inside, |i| id(i).unwrap_or(0).into())
        },
    ),
    ip(
        "tunnel.src",
        "Source address of the outermost packet, where `tunnel` holds.",
        |rows, out| address(rows, out, ipv4::SOURCE, ipv6::SOURCE),
    ),
    ip(
        "tunnel.dst",
        "Destination address of the outermost packet, where `tunnel` holds.",
        |rows, out| address(rows, out, ipv4::DESTINATION, ipv6::DESTINATION),
    ),
];

/// Reads an address of the outermost IP header.
fn address(rows: &Rows<'_>, out: &mut Column, in_four: usize, in_six: usize) {
    rows.pairs(out, rows.has(Layer::Tunnel), |i| {
        let outer = usize::from(rows.layers.below[i].outer);
        let [version] = rows.load(i, outer);
        match version >> 4 {
            4 => (0, V4 | rows.be32(i, outer + in_four)),
            _ => rows.v6(i, outer + in_six),
        }
    });
}
