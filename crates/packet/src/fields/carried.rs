//! The protocols that IP packets carry.

use super::ip::later;
use super::rows::Rows;
use crate::bits::Bits;

/// The rows whose IP packets carry a protocol, from its first byte on.
pub(crate) fn carries(rows: &Rows<'_>, protocol: u8) -> Bits {
    let known = rows.layers.proto_known.and(rows.ip());
    let of = |&i: &usize| rows.layers.proto[i] == protocol && !later(rows, i);
    known.iter().filter(of).collect()
}
