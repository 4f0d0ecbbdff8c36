//! The fields of HTTP/1, which is looked for at the start of TCP payloads on any port.

use super::entry::{Entry, int, string, whether};
use super::rows::Rows;
use crate::column::Column;
use crate::http::Http;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "http",
        "Whether an HTTP/1 request or response starts the payload of the TCP segment, on any \
         port (RFC 9112).",
        |rows| rows.has(Layer::TcpWhole).iter().filter(|&i| http(rows, i).is_some()).collect(),
    ),
    string(
        "http.method",
        "Method of an HTTP request: GET, POST; also where the segment ends directly after it.",
    ),
    string(
        "http.uri",
        "Target of an HTTP request as sent: path and query, as far as the segment goes. Other \
         bytes than printable ASCII are `\\xNN`, here and in other texts but DNS names.",
    ),
    string(
        "http.host",
        "Host field of an HTTP request, in lower case, with its port if one was sent.",
    ),
    string("http.user_agent", "User-Agent field of an HTTP request."),
    int("http.status", 10, "Status of an HTTP response: 200 done, 404 not found.", |rows, out| {
        rows.some_words(out, rows.has(Layer::TcpWhole), |i| Some(http(rows, i)?.status()?.into()))
    }),
];

/// Reads the methods of requests.
pub(crate) fn methods(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        text.write_bytes(http(rows, i).and_then(|http| http.method()))
    });
}

/// Reads the targets of requests.
pub(crate) fn targets(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        text.write_bytes(http(rows, i).and_then(|http| http.target()))
    });
}

/// Reads the hosts of requests.
pub(crate) fn hosts(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        text.write_host(http(rows, i).and_then(|http| http.header("host")))
    });
}

/// Reads the user agents of requests.
pub(crate) fn user_agents(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.texts(out, rows.has(Layer::TcpWhole), put, |i, text| {
        text.write_bytes(http(rows, i).and_then(|http| http.header("user-agent")))
    });
}

fn http<'a>(rows: &Rows<'a>, i: usize) -> Option<Http<'a>> {
    Http::new(rows.tcp_payload(i))
}
