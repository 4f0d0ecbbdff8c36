//! The fields of TLS, which is looked for at the start of TCP payloads on any port.

use super::entry::{Entry, flag, int, string, whether};
use super::rows::Rows;
use crate::column::Column;
use crate::tls::ja4::{Carrier, ja4};
use crate::tls::{CLIENT_HELLO, Hello, Tls};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "tls",
        "Whether a TLS record starts the payload of the TCP segment, on any port (RFC 8446).",
        |rows| {
            let tls = |&i: &usize| Tls::new(rows.tcp_payload(i)).is_some();
            rows.has(Layer::TcpWhole).iter().filter(tls).collect()
        },
    ),
    int(
        "tls.content_type",
        8,
        "What the first TLS record holds: 20 change of cipher, 21 alert, 22 handshake, 23 data.",
        |rows, out| {
            rows.some_words(out, rows.has(Layer::TcpWhole), |i| {
                Some(Tls::new(rows.tcp_payload(i))?.content_type().into())
            })
        },
    ),
    int(
        "tls.handshake_type",
        8,
        "1 where the TLS record starts with a ClientHello, 2 with a ServerHello; else absent. Of \
         a first record that changes the cipher, this and the fields of hellos tell the next.",
        |rows, out| {
            rows.some_words(out, rows.has(Layer::TcpWhole), |i| {
                hello(rows, i, |hello| Some(hello.kind().into()))
            })
        },
    ),
    int(
        "tls.version",
        16,
        "Of a ClientHello the highest version it takes, of a ServerHello the one it chose: \
         0x0303 TLS 1.2, 0x0304 TLS 1.3; absent if that lies in a later segment.",
        |rows, out| {
            rows.some_words(out, rows.has(Layer::TcpWhole), |i| {
                hello(rows, i, |hello| Some(hello.version().ok()?.into()))
            })
        },
    ),
    string(
        "tls.sni",
        "Name of the server that a ClientHello wants, in lower case (RFC 6066); the outer name \
         where `tls.ech` is true.",
    ),
    string(
        "tls.alpn",
        "Protocols that a ClientHello offers, the best first, or that a ServerHello chose, with \
         commas between them: `h2,http/1.1` (RFC 7301).",
    ),
    string(
        "tls.ja4",
        "JA4 fingerprint of the client that sent a ClientHello, such as \
         `t13d1516h2_8daaf6152771_e5627efa2ab1`; absent if the hello goes on in the next segment, \
         which the stage `hello` puts together.",
    ),
    flag(
        "tls.ech",
        "Whether a ClientHello has the extension of an encrypted one (ECH), so that its name and \
         protocols are the outer ones only. Many clients send random bytes there, which look the \
         same; absent if that lies in a later segment.",
        |rows, out| {
            rows.some_bits(out, rows.has(Layer::TcpWhole), |i| {
                hello(rows, i, |hello| match hello.kind() {
                    CLIENT_HELLO => hello.has_ech().ok(),
                    _ => None,
                })
            })
        },
    ),
];

/// Reads the names of servers.
pub(crate) fn server_names(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        hello(rows, i, |hello| Some(text.write_host(hello.server_name()))).unwrap_or(false)
    });
}

/// Reads the names of protocols.
pub(crate) fn protocols(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        hello(rows, i, |hello| Some(text.write_list(hello.protocols()))).unwrap_or(false)
    });
}

/// Reads the fingerprints of clients.
pub(crate) fn fingerprints(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        hello(rows, i, |hello| Some(text.push(&ja4(hello, Carrier::Tcp)?))).unwrap_or(false)
    });
}

/// The result of `read` for the hello at the start of a segment.
fn hello<T>(rows: &Rows<'_>, i: usize, read: impl FnOnce(&Hello<'_>) -> Option<T>) -> Option<T> {
    rows.layers.hellos.of_tls(i, rows.tcp_payload(i), read)
}
