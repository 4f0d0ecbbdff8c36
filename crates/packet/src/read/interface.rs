//! By which interface a frame came, and which way it went.

use super::rows::Rows;
use crate::bits::Bits;
use crate::column::Column;
use crate::fields::Item;
use crate::interface::{Via, Way};
use crate::source::{FrameBatch, LinkType};

/// Where cooked headers say which way a packet went: the low byte of `sll_pkttype` and
/// `sll2_pkttype`, whose values need no more.
const SLL_PACKET_TYPE: usize = 1;
const SLL2_PACKET_TYPE: usize = 10;

/// Returns whether `item` is one of these texts.
pub(super) fn read_text(
    rows: &Rows<'_>,
    item: Item,
    out: &mut Column,
    put: &mut impl FnMut(&[u8]) -> u64,
) -> bool {
    let frames = rows.frames;
    match item {
        Item::Interface => {
            let Some(names) = frames.interface_names() else { return true };
            names.read(|names| {
                each(
                    rows,
                    out,
                    |i| frames.via(i).going(None),
                    |via| {
                        let name = names.get(usize::from(via.interface()?))?;
                        Some(put(name.text.as_bytes()))
                    },
                )
            })
        }
        Item::Direction => {
            let way = |i| Via::UNKNOWN.going(frames.via(i).way().or_else(|| cooked(frames, i)));
            each(rows, out, way, |via| Some(put(via.way()?.name().as_bytes())))
        }
        _ => false,
    }
}

/// Sets what `word` makes of each row; neighbours are mostly alike, and made only once.
fn each(
    rows: &Rows<'_>,
    out: &mut Column,
    via: impl Fn(usize) -> Via,
    mut word: impl FnMut(Via) -> Option<u64>,
) -> bool {
    let mut known: Option<(Via, Option<u64>)> = None;
    rows.some_words(out, Bits::ALL, |i| {
        let via = via(i);
        match known {
            Some((same, word)) if same == via => word,
            _ => known.insert((via, word(via))).1,
        }
    })
}

/// What the header of a Linux cooked capture says.
fn cooked(frames: &FrameBatch, i: usize) -> Option<Way> {
    let at = match frames.link {
        LinkType::LINUX_SLL => SLL_PACKET_TYPE,
        LinkType::LINUX_SLL2 => SLL2_PACKET_TYPE,
        _ => return None,
    };
    frames.frame(i).get(at).map(|&packet_type| Way::of_packet_type(packet_type))
}
