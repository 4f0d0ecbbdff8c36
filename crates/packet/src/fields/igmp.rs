//! The fields of IGMP messages.

use super::carried::carries;
use super::entry::{Entry, int, ip, whether};
use crate::igmp::{Igmp, PROTOCOL};

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("igmp", "Whether the packet is an IGMP message (RFC 9776).", |rows| {
        let there = |&i: &usize| Igmp::new(rows.body(i)).kind().is_some();
        carries(rows, PROTOCOL).iter().filter(there).collect()
    }),
    int(
        "igmp.type",
        8,
        "IGMP type: 0x11 query, 0x12, 0x16 and 0x22 reports of versions 1, 2 and 3, 0x17 leave.",
        |rows, out| {
            rows.some_words(out, carries(rows, PROTOCOL), |i| {
                Some(Igmp::new(rows.body(i)).kind()?.into())
            })
        },
    ),
    ip(
        "igmp.group",
        "Group that the IGMP message is about, 0.0.0.0 for all; in a report of version 3 the \
         first one.",
        |rows, out| rows.some_v4(out, carries(rows, PROTOCOL), |i| Igmp::new(rows.body(i)).group()),
    ),
];
