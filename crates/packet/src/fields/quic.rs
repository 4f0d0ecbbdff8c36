//! The fields of QUIC, which is looked for at the start of UDP payloads on any port.

use super::entry::{Entry, flag, int, string, whether};
use super::rows::Rows;
use crate::column::Column;
use crate::quic::LongHeader;
use crate::tls::Hello;
use crate::tls::ja4::{Carrier, ja4};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "quic",
        "Whether a QUIC long header starts the UDP payload, on any port: version 1 or 2, or a \
         negotiation of versions (RFC 8999, 9000, 9369). Packets after the handshake have short \
         headers, which nothing tells from other bytes.",
        |rows| rows.has(Layer::Udp).iter().filter(|&i| header(rows, i).is_some()).collect(),
    ),
    int(
        "quic.version",
        32,
        "Version of QUIC: 1, or 0x6b3343cf for version 2; 0 where a server names those it has.",
        |rows, out| {
            rows.some_words(out, rows.has(Layer::Udp), |i| Some(header(rows, i)?.version().into()))
        },
    ),
    int(
        "quic.type",
        3,
        "What the first QUIC packet of the datagram is, as in version 1: 0 Initial, 1 early data, \
         2 handshake, 3 retry; 4 where a server names the versions it has.",
        |rows, out| {
            rows.some_words(out, rows.has(Layer::Udp), |i| Some(header(rows, i)?.kind() as u64))
        },
    ),
    string(
        "quic.sni",
        "Name of the server that a client's Initial packet wants, in lower case; decrypted with \
         keys that the packet itself gives (RFC 9001, section 5.2). The outer name where \
         `quic.ech` is true.",
    ),
    string(
        "quic.alpn",
        "Protocols that a client's Initial packet offers, the best first, with commas between \
         them.",
    ),
    string(
        "quic.ja4",
        "JA4 fingerprint of the client that sent an Initial packet; absent if its hello goes on in \
         the next packet, which the stage `hello` puts together.",
    ),
    flag(
        "quic.ech",
        "Whether the hello in a client's Initial packet has the extension of an encrypted one \
         (ECH), as `tls.ech` says.",
        |rows, out| {
            rows.some_bits(out, rows.has(Layer::Udp), |i| {
                of_hello(rows, i, |hello| hello.has_ech().ok())
            })
        },
    ),
];

/// Reads the names of servers.
pub(crate) fn server_names(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::Udp), put, |i, text| {
        of_hello(rows, i, |hello| Some(text.write_host(hello.server_name()))).unwrap_or(false)
    });
}

/// Reads the names of protocols.
pub(crate) fn protocols(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::Udp), put, |i, text| {
        of_hello(rows, i, |hello| Some(text.write_list(hello.protocols()))).unwrap_or(false)
    });
}

/// Reads the fingerprints of clients.
pub(crate) fn fingerprints(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::Udp), put, |i, text| {
        of_hello(rows, i, |hello| Some(text.push(&ja4(hello, Carrier::Quic)?))).unwrap_or(false)
    });
}

fn header<'a>(rows: &Rows<'a>, i: usize) -> Option<LongHeader<'a>> {
    LongHeader::new(rows.udp_payload(i))
}

/// The result of `read` for the hello in a client's Initial packets.
fn of_hello<T>(rows: &Rows<'_>, i: usize, read: impl FnOnce(&Hello<'_>) -> Option<T>) -> Option<T> {
    rows.layers.hellos.of_quic(i, rows.udp_payload(i), read)
}
