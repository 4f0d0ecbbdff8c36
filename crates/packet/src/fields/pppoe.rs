//! The fields of PPPoE headers.

use super::entry::{Entry, int, whether};
use crate::pppoe;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "pppoe",
        "Whether the frame has a PPPoE header, of a session or its discovery (RFC 2516).",
        |rows| rows.has(Layer::Pppoe),
    ),
    int(
        "pppoe.code",
        8,
        "PPPoE code: 0 session data, 9 initiation, 7 offer, 25 request, 101 confirmation, 167 \
         termination.",
        |rows, out| {
            rows.words(out, rows.has(Layer::Pppoe), |i| {
                let [code] = rows.load(i, usize::from(rows.layers.below[i].pppoe) + pppoe::CODE);
                code.into()
            })
        },
    ),
    int("pppoe.session", 16, "PPPoE session number.", |rows, out| {
        rows.words(out, rows.has(Layer::Pppoe), |i| {
            rows.be16(i, usize::from(rows.layers.below[i].pppoe) + pppoe::SESSION_ID)
        })
    }),
];
