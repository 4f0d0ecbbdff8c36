//! The fields of radiotap headers.

use super::entry::{Entry, int, whether};
use super::rows::Rows;
use crate::column::Column;
use crate::radiotap::Radiotap;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("radiotap", "Whether the frame has a radiotap header (radiotap.org).", |rows| {
        rows.has(Layer::Radiotap)
    }),
    int(
        "radiotap.rate",
        17,
        "Rate of the transmission in kbit/s; absent for rates of 802.11n and later.",
        |rows, out| value(rows, out, |radio| Some(radio.rate()?.into())),
    ),
    int("radiotap.freq", 16, "Centre of the channel in MHz: 2412 is channel 1.", |rows, out| {
        value(rows, out, |radio| Some(radio.frequency()?.into()))
    }),
    int(
        "radiotap.signal",
        64,
        "Signal at the antenna in dBm; negative, nearer to 0 is stronger.",
        |rows, out| value(rows, out, |radio| Some(i64::from(radio.signal()?) as u64)),
    ),
];

fn value(rows: &Rows<'_>, out: &mut Column, of: impl Fn(&Radiotap<'_>) -> Option<u64>) {
    rows.some_words(out, rows.has(Layer::Radiotap), |i| {
        of(&Radiotap::new(rows.frames.frame(i)).ok()?)
    });
}
