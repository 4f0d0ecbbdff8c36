//! The fields of UDP headers.

use super::entry::{Entry, int, whether};
use super::rows::{Rows, be16};
use crate::bits::Bits;
use crate::udp;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("udp", "Whether the packet has a UDP header, its ports captured (RFC 768).", |rows| {
        rows.has(Layer::Udp)
    }),
    int("udp.sport", 16, "UDP source port.", |rows, out| {
        rows.loads(out, rows.has(Layer::Udp), udp::SPORT, be16)
    }),
    int("udp.dport", 16, "UDP destination port.", |rows, out| {
        rows.loads(out, rows.has(Layer::Udp), udp::DPORT, be16)
    }),
    int("udp.len", 16, "UDP length as sent: header and payload, in bytes.", |rows, out| {
        rows.loads(out, with_header(rows, udp::LENGTH, 2), udp::LENGTH, be16)
    }),
    int(
        "udp.checksum",
        16,
        "UDP checksum as sent; 0 where the sender computed none.",
        |rows, out| rows.loads(out, with_header(rows, udp::CHECKSUM, 2), udp::CHECKSUM, be16),
    ),
];

/// The rows whose UDP header has the bytes `at..at + n`.
fn with_header(rows: &Rows<'_>, at: usize, n: usize) -> Bits {
    let have = rows.has(Layer::Udp);
    let doubtful = have.and(rows.has(Layer::Cut).or(rows.has(Layer::Malformed)));
    if doubtful.is_empty() {
        return have;
    }
    have.minus(doubtful).or(rows.reach(doubtful, at, n))
}
