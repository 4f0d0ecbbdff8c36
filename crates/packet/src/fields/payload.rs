//! Payloads, and bytes by their place in a header.

use super::bytes::{Header, HeaderBytes};
use super::entry::{Entry, bytes};
use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::limits::TEXT_MAX;
use crate::tcp::Tcp;
use crate::udp::Udp;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[bytes(
    "payload",
    "What follows a whole TCP or UDP header, as far as it was captured: at most 1,024 bytes.",
)];

/// Reads payloads.
pub(crate) fn payloads(rows: &Rows<'_>, out: &mut Column, put: &mut impl FnMut(&[u8]) -> u64) {
    rows.some_words(out, having(rows, Header::Payload), |i| {
        let payload = from(rows, Header::Payload, i)?;
        Some(put(&payload[..payload.len().min(TEXT_MAX)]))
    });
}

/// Reads bytes that are an integer.
pub(crate) fn read_int(rows: &Rows<'_>, bytes: HeaderBytes, out: &mut Column) {
    rows.some_words(out, having(rows, bytes.header()), |i| {
        let found = find(rows, bytes, i)?;
        Some(found.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    });
}

/// Reads more bytes than an integer has.
pub(crate) fn read_many(
    rows: &Rows<'_>,
    bytes: HeaderBytes,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) {
    rows.some_words(out, having(rows, bytes.header()), |i| find(rows, bytes, i).map(&mut *put));
}

fn find<'a>(rows: &Rows<'a>, bytes: HeaderBytes, i: usize) -> Option<&'a [u8]> {
    let at = bytes.offset();
    from(rows, bytes.header(), i)?.get(at..at + bytes.size())
}

/// The rows that have a header.
fn having(rows: &Rows<'_>, header: Header) -> Bits {
    let known = |layer| rows.has(layer);
    match header {
        Header::Frame => Bits::ALL,
        Header::Eth => known(Layer::Eth),
        Header::Arp => known(Layer::Arp),
        Header::Ip => rows.ip(),
        Header::Tcp => known(Layer::Tcp),
        Header::Udp => known(Layer::Udp),
        Header::Icmp => known(Layer::Icmp),
        Header::Icmp6 => known(Layer::Icmp6),
        Header::Payload => known(Layer::TcpWhole).or(known(Layer::Udp)),
        Header::Transport => {
            let first = [Layer::Tcp, Layer::Udp, Layer::Icmp, Layer::Icmp6];
            let first = first.into_iter().map(known).fold(Bits::NONE, Bits::or);
            rows.layers.proto_known.minus(known(Layer::Fragment)).or(first)
        }
    }
}

/// The captured bytes of the packet from a header on, without what follows the packet; of a row
/// that has the header.
fn from<'a>(rows: &Rows<'a>, header: Header, i: usize) -> Option<&'a [u8]> {
    let frame = rows.frames.frame(i);
    match header {
        Header::Frame | Header::Eth => Some(frame),
        Header::Arp => frame.get(rows.l3(i)..),
        Header::Ip => frame.get(rows.l3(i)..rows.packet_end(i).min(frame.len())),
        Header::Payload if rows.layers.has(Layer::Udp).has(i) => {
            Some(Udp::new(rows.body(i)).ok()?.payload())
        }
        Header::Payload => Some(Tcp::new(rows.body(i)).ok()?.payload()),
        _ => Some(rows.body(i)),
    }
}
