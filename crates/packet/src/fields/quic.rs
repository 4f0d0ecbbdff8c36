//! The fields of QUIC, which is looked for at the start of UDP payloads on any port.

use super::entry::{Entry, int, string, whether};
use super::rows::Rows;
use crate::column::Column;
use crate::quic::LongHeader;
use crate::quic::initial::Crypto;
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
         keys that the packet itself gives (RFC 9001, section 5.2).",
    ),
    string(
        "quic.alpn",
        "Protocols that a client's Initial packet offers, the best first, with commas between \
         them.",
    ),
    string(
        "quic.ja4",
        "JA4 fingerprint of the client that sent an Initial packet; absent if its hello goes on in \
         the next packet.",
    ),
];

/// Reads the names of servers.
pub(crate) fn server_names(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::Udp), put, |i, text| {
        of_hello(rows, i, |hello| text.write_host(hello.server_name()))
    });
}

/// Reads the names of protocols.
pub(crate) fn protocols(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::Udp), put, |i, text| {
        of_hello(rows, i, |hello| text.write_list(hello.protocols()))
    });
}

/// Reads the fingerprints of clients.
pub(crate) fn fingerprints(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::Udp), put, |i, text| {
        of_hello(rows, i, |hello| {
            let fingerprint = ja4(hello, Carrier::Quic);
            text.write_bytes(fingerprint.as_ref().map(|fingerprint| &fingerprint[..]))
        })
    });
}

fn header<'a>(rows: &Rows<'a>, i: usize) -> Option<LongHeader<'a>> {
    LongHeader::new(rows.udp_payload(i))
}

/// What `read` says of the hello in a client's Initial packet; false where there is none.
fn of_hello(rows: &Rows<'_>, i: usize, read: impl FnOnce(&Hello<'_>) -> bool) -> bool {
    let Some(crypto) = Crypto::of_client(rows.udp_payload(i)) else { return false };
    Hello::new(crypto.bytes()).is_some_and(|hello| read(&hello))
}
