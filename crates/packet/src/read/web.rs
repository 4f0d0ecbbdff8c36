//! Readers of TLS and HTTP fields, which are looked for at the start of TCP payloads on any port.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::http::Http;
use crate::tcp::Tcp;
use crate::text::Text;
use crate::tls::{Hello, Tls};
use crate::walk::Layer;

/// Reads `item` if it is one of these fields; returns whether it is.
pub(super) fn read(rows: &Rows<'_>, item: Item, out: &mut Column) -> bool {
    let tcp = rows.has(Layer::TcpWhole);
    match item {
        Item::Tls => {
            let has = tcp.iter().filter(|&i| Tls::new(payload(rows, i)).is_some()).collect();
            rows.truth(out, Bits::ALL, has)
        }
        Item::TlsContentType => {
            rows.some_words(out, tcp, |i| Some(Tls::new(payload(rows, i))?.content_type().into()))
        }
        Item::TlsHandshakeType => {
            rows.some_words(out, tcp, |i| Some(hello(rows, i)?.kind().into()))
        }
        Item::TlsVersion => {
            rows.some_words(out, tcp, |i| Some(hello(rows, i)?.version().ok()?.into()))
        }
        Item::Http => {
            let has = tcp.iter().filter(|&i| Http::new(payload(rows, i)).is_some()).collect();
            rows.truth(out, Bits::ALL, has)
        }
        Item::HttpStatus => {
            rows.some_words(out, tcp, |i| Some(Http::new(payload(rows, i))?.status()?.into()))
        }
        _ => false,
    }
}

/// Reads `item` if it is a text of these; returns whether it is.
pub(super) fn read_text(
    rows: &Rows<'_>,
    item: Item,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) -> bool {
    let tcp = rows.has(Layer::TcpWhole);
    let http = |i: usize| Http::new(payload(rows, i));
    match item {
        Item::TlsSni => rows.texts(out, tcp, put, |i, text| {
            let name = hello(rows, i).and_then(|hello| hello.server_name());
            host(name, text)
        }),
        Item::TlsAlpn => rows.texts(out, tcp, put, |i, text| protocols(hello(rows, i), text)),
        Item::HttpMethod => {
            rows.texts(out, tcp, put, |i, text| any(http(i).and_then(|http| http.method()), text))
        }
        Item::HttpUri => {
            rows.texts(out, tcp, put, |i, text| any(http(i).and_then(|http| http.target()), text))
        }
        Item::HttpHost => rows.texts(out, tcp, put, |i, text| {
            host(http(i).and_then(|http| http.header("host")), text)
        }),
        Item::HttpUserAgent => rows.texts(out, tcp, put, |i, text| {
            any(http(i).and_then(|http| http.header("user-agent")), text)
        }),
        _ => false,
    }
}

/// The payload of a row with a whole TCP header.
fn payload<'a>(rows: &Rows<'a>, i: usize) -> &'a [u8] {
    Tcp::new(rows.body(i)).map_or(&[], |tcp| tcp.payload())
}

fn hello<'a>(rows: &Rows<'a>, i: usize) -> Option<Hello<'a>> {
    Tls::new(payload(rows, i))?.hello()
}

/// Writes a text, if there is one.
fn any(bytes: Option<&[u8]>, text: &mut Text) -> bool {
    bytes.map(|bytes| text.push_escaped(bytes)).is_some()
}

/// Writes the name of a host, if there is one: in lower case, as it means the same in either.
fn host(bytes: Option<&[u8]>, text: &mut Text) -> bool {
    let there = any(bytes, text);
    text.lower_from(0);
    there
}

/// Writes the names of protocols with commas between them, if there are any.
fn protocols(hello: Option<Hello<'_>>, text: &mut Text) -> bool {
    let Some(hello) = hello else { return false };
    for (n, name) in hello.protocols().enumerate() {
        if n > 0 {
            text.push(b",");
        }
        text.push_escaped(name);
    }
    !text.bytes().is_empty()
}
