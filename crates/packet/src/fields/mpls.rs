//! The fields of MPLS labels. Frames that have one are never plain, so the walk has noted where it
//! starts.

use super::entry::{Entry, int, whether};
use super::rows::Rows;
use crate::bits::Bits;
use crate::mpls;
use crate::walk::Layer;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("mpls", "Whether the frame has an MPLS label (RFC 3032).", |rows| {
        rows.has(Layer::Mpls)
    }),
    int("mpls.label", 20, "The outermost MPLS label.", |rows, out| {
        rows.words(out, rows.has(Layer::Mpls), |i| label(rows, i, 0) >> 12)
    }),
    int(
        "mpls.exp",
        3,
        "Traffic class of the outermost MPLS label, once its experimental bits (RFC 5462).",
        |rows, out| rows.words(out, rows.has(Layer::Mpls), |i| label(rows, i, 0) >> 9 & 7),
    ),
    int("mpls.ttl", 8, "Time to live of the outermost MPLS label.", |rows, out| {
        rows.words(out, rows.has(Layer::Mpls), |i| label(rows, i, 0) & 0xff)
    }),
    int(
        "mpls.bottom",
        20,
        "The innermost MPLS label captured, such as that of a virtual private network; the \
         outermost one where there is one.",
        |rows, out| {
            rows.words(out, rows.has(Layer::Mpls), |i| {
                let above = usize::from(rows.layers.below[i].mpls_depth).saturating_sub(1);
                label(rows, i, above) >> 12
            })
        },
    ),
    int("mpls.depth", 8, "How many MPLS labels the frame has; 0 without any.", |rows, out| {
        let stack = rows.has(Layer::Mpls);
        rows.words(out, Bits::ALL, |i| {
            if stack.has(i) { rows.layers.below[i].mpls_depth.into() } else { 0 }
        })
    })
    .always(),
];

/// The label below `above` others.
#[inline(always)]
fn label(rows: &Rows<'_>, i: usize, above: usize) -> u64 {
    rows.be32(i, usize::from(rows.layers.below[i].mpls) + above * mpls::ENTRY_LEN)
}
