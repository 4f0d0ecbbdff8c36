//! The fields of SCTP packets.

use super::carried::carries;
use super::entry::{Entry, int, whether};
use crate::sctp::{PROTOCOL, Sctp};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "sctp",
        "Whether the packet has an SCTP header, its ports captured (RFC 9260).",
        |rows| carries(rows, PROTOCOL).and(rows.has(Layer::Ports)),
    ),
    int("sctp.vtag", 32, "SCTP verification tag; 0 with the INIT chunk.", |rows, out| {
        rows.some_words(out, carries(rows, PROTOCOL), |i| {
            Some(Sctp::new(rows.body(i)).tag()?.into())
        })
    }),
    int(
        "sctp.chunk_type",
        8,
        "Type of the first SCTP chunk: 0 data, 1 INIT, 2 INIT ACK, 3 SACK, 4 HEARTBEAT, 6 \
         ABORT, 7 SHUTDOWN.",
        |rows, out| {
            rows.some_words(out, carries(rows, PROTOCOL), |i| {
                Some(Sctp::new(rows.body(i)).chunk_type()?.into())
            })
        },
    ),
];
