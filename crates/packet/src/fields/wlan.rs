//! The fields of 802.11 headers.

use super::entry::{Entry, flag, int, mac, whether};
use super::rows::Rows;
use crate::column::Column;
use crate::walk::Layer;
use crate::wlan::{self, Wlan};

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("wlan", "Whether the frame has an 802.11 header (IEEE 802.11).", |rows| {
        rows.has(Layer::Wlan)
    }),
    int("wlan.type", 2, "802.11 type: 0 management, 1 control, 2 data.", |rows, out| {
        rows.words(out, rows.has(Layer::Wlan), |i| control(rows, i) >> 10 & 3)
    }),
    int(
        "wlan.subtype",
        4,
        "802.11 subtype; of management frames 4 probe request, 8 beacon, 11 authentication, 12 \
         deauthentication.",
        |rows, out| rows.words(out, rows.has(Layer::Wlan), |i| control(rows, i) >> 12),
    ),
    flag("wlan.retry", "Whether the 802.11 frame was sent again.", |rows, out| {
        rows.bits(out, rows.has(Layer::Wlan), |i| control(rows, i) & u64::from(wlan::RETRY) != 0)
    }),
    flag("wlan.protected", "Whether the body of the 802.11 frame is encrypted.", |rows, out| {
        rows.bits(out, rows.has(Layer::Wlan), |i| {
            control(rows, i) & u64::from(wlan::PROTECTED) != 0
        })
    }),
    mac("wlan.ra", "802.11 receiver address: who is to hear the transmission.", |rows, out| {
        address(rows, out, |wlan| wlan.receiver())
    }),
    mac("wlan.ta", "802.11 transmitter address; absent in acknowledgements.", |rows, out| {
        address(rows, out, |wlan| wlan.transmitter())
    }),
    mac("wlan.da", "802.11 destination address; absent in control frames.", |rows, out| {
        address(rows, out, |wlan| wlan.destination())
    }),
    mac("wlan.sa", "802.11 source address; absent in control frames.", |rows, out| {
        address(rows, out, |wlan| wlan.source())
    }),
    mac(
        "wlan.bssid",
        "802.11 address of the network; absent in control frames and between access points.",
        |rows, out| address(rows, out, |wlan| wlan.bssid()),
    ),
];

/// The frame control field, its bytes in network order.
#[inline(always)]
fn control(rows: &Rows<'_>, i: usize) -> u64 {
    rows.be16(i, rows.layers.below[i].wlan.into())
}

fn address(rows: &Rows<'_>, out: &mut Column, of: impl Fn(&Wlan<'_>) -> Option<[u8; 6]>) {
    rows.some_words(out, rows.has(Layer::Wlan), |i| {
        let start = usize::from(rows.layers.below[i].wlan);
        let wlan = Wlan::new(rows.frames.frame(i).get(start..)?).ok()?;
        let [a, b, c, d, e, f] = of(&wlan)?;
        Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    });
}
