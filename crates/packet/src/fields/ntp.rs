//! The fields of NTP messages.

use super::entry::{Entry, int, time, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::ntp::{self, Ntp};
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether(
        "ntp",
        "Whether the packet is an NTP message: UDP of port 123, of a version from 1 to 4 (RFC \
         5905).",
        |rows| candidates(rows).iter().filter(|&i| message(rows, i).is_some()).collect(),
    ),
    int("ntp.version", 3, "NTP version.", |rows, out| {
        rows.some_words(out, candidates(rows), |i| Some(message(rows, i)?.version().into()))
    }),
    int(
        "ntp.mode",
        3,
        "NTP mode: 1 and 2 peers, 3 client, 4 server, 5 broadcast, 6 control, 7 private.",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| Some(message(rows, i)?.mode().into()))
        },
    ),
    int(
        "ntp.leap",
        2,
        "NTP leap indicator: 1 or 2 before a leap second, 3 not synchronized; not in modes 6 \
         and 7.",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| Some(message(rows, i)?.leap()?.into()))
        },
    ),
    int(
        "ntp.stratum",
        8,
        "Distance of the NTP sender from a reference clock, 0 if it refuses; not in modes 6 and \
         7.",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| Some(message(rows, i)?.stratum()?.into()))
        },
    ),
    int(
        "ntp.refid",
        32,
        "NTP reference identifier: four letters at strata 0 and 1, else an IPv4 address or a \
         digest; not in modes 6 and 7.",
        |rows, out| {
            rows.some_words(out, candidates(rows), |i| {
                Some(message(rows, i)?.reference_id()?.into())
            })
        },
    ),
    time(
        "ntp.transmit",
        "When the NTP message left, by the sender's clock; absent if it does not say.",
        |rows, out| {
            rows.some_words(
                out,
                candidates(rows),
                |i| Some(message(rows, i)?.transmit_ns()? as u64),
            )
        },
    ),
];

/// The rows whose ports are those of NTP.
fn candidates(rows: &Rows<'_>) -> Bits {
    rows.on_ports(Layer::Udp, &[ntp::PORT])
}

fn message<'a>(rows: &Rows<'a>, i: usize) -> Option<Ntp<'a>> {
    Ntp::new(rows.udp_payload(i))
}
