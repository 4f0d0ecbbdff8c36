//! The fields of ICMP and ICMPv6.

use super::entry::{Entry, int, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::icmp;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("icmp", "Whether the packet has an ICMP header (RFC 792).", |rows| {
        rows.has(Layer::Icmp)
    }),
    int(
        "icmp.type",
        8,
        "ICMP type: 0 echo reply, 3 unreachable, 8 echo request, 11 time exceeded.",
        |rows, out| rows.words(out, rows.has(Layer::Icmp), |i| type_and_code(rows, i) >> 8),
    ),
    int("icmp.code", 8, "ICMP code.", |rows, out| {
        rows.words(out, rows.has(Layer::Icmp), |i| type_and_code(rows, i) & 0xff)
    }),
    int("icmp.id", 16, "Identifier of ICMP echo requests and replies.", |rows, out| {
        of_echoes(rows, out, ECHO, icmp::ID)
    }),
    int("icmp.seq", 16, "Sequence number of ICMP echo requests and replies.", |rows, out| {
        of_echoes(rows, out, ECHO, icmp::SEQ)
    }),
    int(
        "icmp.mtu",
        16,
        "Of ICMP messages that fragmentation is needed (type 3, code 4): the MTU of the next hop \
         in bytes, 0 from routers that do not say it (RFC 1191).",
        |rows, out| {
            let needed = |&i: &usize| type_and_code(rows, i) == FRAGMENTATION_NEEDED;
            let needed = rows.has(Layer::Icmp).iter().filter(needed).collect();
            rows.words(out, rows.reach(needed, 6, 2), |i| rows.be16(i, rows.l4(i) + 6))
        },
    ),
    whether("icmp6", "Whether the packet has an ICMPv6 header (RFC 4443).", |rows| {
        rows.has(Layer::Icmp6)
    }),
    int(
        "icmp6.type",
        8,
        "ICMPv6 type: 128 echo request, 129 echo reply, 135 neighbour solicitation.",
        |rows, out| rows.words(out, rows.has(Layer::Icmp6), |i| type_and_code(rows, i) >> 8),
    ),
    int("icmp6.code", 8, "ICMPv6 code.", |rows, out| {
        rows.words(out, rows.has(Layer::Icmp6), |i| type_and_code(rows, i) & 0xff)
    }),
    int("icmp6.id", 16, "Identifier of ICMPv6 echo requests and replies.", |rows, out| {
        of_echoes(rows, out, ECHO6, icmp::ID)
    }),
    int("icmp6.seq", 16, "Sequence number of ICMPv6 echo requests and replies.", |rows, out| {
        of_echoes(rows, out, ECHO6, icmp::SEQ)
    }),
    int(
        "icmp6.mtu",
        32,
        "Of ICMPv6 messages that a packet is too big (type 2): the MTU of the next hop in bytes \
         (RFC 4443).",
        |rows, out| {
            let too_big = |&i: &usize| type_and_code(rows, i) >> 8 == PACKET_TOO_BIG;
            let too_big = rows.has(Layer::Icmp6).iter().filter(too_big).collect();
            rows.words(out, rows.reach(too_big, 4, 4), |i| rows.be32(i, rows.l4(i) + 4))
        },
    ),
];

/// The layer of an ICMP version, and the types of its echo messages.
type Echo = (Layer, [u8; 2]);
const ECHO: Echo = (Layer::Icmp, [icmp::ECHO_REQUEST, icmp::ECHO_REPLY]);
const ECHO6: Echo = (Layer::Icmp6, [icmp::ECHO_REQUEST_V6, icmp::ECHO_REPLY_V6]);

/// Type and code of the ICMP message that a packet may not be fragmented and is too long.
const FRAGMENTATION_NEEDED: u64 = 0x0304;

/// Type of the ICMPv6 message that a packet is too long.
const PACKET_TOO_BIG: u64 = 2;

#[inline(always)]
fn type_and_code(rows: &Rows<'_>, i: usize) -> u64 {
    rows.be16(i, rows.l4(i) + icmp::TYPE)
}

/// Reads the two bytes at `at` of echo messages. The walk asks for less than an echo message's
/// header, so each row is asked.
fn of_echoes(rows: &Rows<'_>, out: &mut Column, (layer, types): Echo, at: usize) {
    let is_echo = |&i: &usize| types.contains(&((type_and_code(rows, i) >> 8) as u8));
    let echoes: Bits = rows.has(layer).iter().filter(is_echo).collect();
    let have = rows.reach(echoes, at, 2);
    rows.words(out, have, |i| rows.be16(i, rows.l4(i) + at));
}
