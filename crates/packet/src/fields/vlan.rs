//! The fields of VLAN tags.

use super::entry::{Entry, flag, int, whether};
use super::ethernet::{link_len, plain};
use super::rows::Rows;
use crate::bits::Bits;
use crate::vlan;
use crate::walk::Layer;
use std::hint::select_unpredictable as select;

/// The rows of the catalogue.
pub(super) const FIELDS: &[Entry] = &[
    whether("vlan", "Whether the frame has a VLAN tag (802.1Q, 802.1ad).", |rows| {
        rows.has(Layer::Vlan)
    }),
    int("vlan.id", 12, "VLAN identifier of the outermost tag.", |rows, out| {
        let first = First::new(rows);
        rows.words(out, rows.has(Layer::Vlan), |i| first.control(i) & 0xfff)
    }),
    int("vlan.pcp", 3, "Priority code point of the outermost tag.", |rows, out| {
        let first = First::new(rows);
        rows.words(out, rows.has(Layer::Vlan), |i| first.control(i) >> 13)
    }),
    flag("vlan.dei", "Drop eligible indicator of the outermost tag.", |rows, out| {
        let first = First::new(rows);
        rows.bits(out, rows.has(Layer::Vlan), |i| first.control(i) & 0x1000 != 0)
    }),
    int(
        "vlan.inner",
        12,
        "VLAN identifier of the second tag, where there are two or more (QinQ).",
        |rows, out| {
            let tagged = rows.has(Layer::Vlan);
            let have = tagged.iter().filter(|&i| rows.layers.vlan_depth[i] >= 2).collect();
            rows.words(out, have, |i| rows.be16(i, second_tag(rows, i) + vlan::CONTROL) & 0xfff)
        },
    ),
    int("vlan.depth", 4, "How many VLAN tags the frame has; 0 without any.", |rows, out| {
        rows.words(out, Bits::ALL, |i| rows.layers.vlan_depth[i].into())
    })
    .always(),
];

/// The first tags of the rows that have one.
struct First<'a> {
    rows: &'a Rows<'a>,
    link_len: usize,
    plain: Bits,
}

impl<'a> First<'a> {
    fn new(rows: &'a Rows<'a>) -> First<'a> {
        First { rows, link_len: link_len(rows.frames.link), plain: plain(rows) }
    }

    /// Priority, drop eligible indicator and identifier of row `i`. The fast pass takes frames with
    /// a tag only where all that stands before it is the link header.
    #[inline(always)]
    fn control(&self, i: usize) -> u64 {
        let noted = self.rows.layers.below[i].tags[0].into();
        let start = select(self.plain.has(i), self.link_len, noted);
        self.rows.be16(i, start + vlan::CONTROL)
    }
}

/// Where the first tag of a row that has one starts.
pub(crate) fn first_tag(rows: &Rows<'_>, i: usize) -> usize {
    match plain(rows).has(i) {
        true => link_len(rows.frames.link),
        false => rows.layers.below[i].tags[0].into(),
    }
}

/// Where the second tag of a row that has two starts.
pub(crate) fn second_tag(rows: &Rows<'_>, i: usize) -> usize {
    rows.layers.below[i].tags[1].into()
}
