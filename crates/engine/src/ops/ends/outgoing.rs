//! Frames on their way to the outlets, as rows: what the words of their columns mean.

use weir_packet::interface::CapturePoint;
use weir_packet::source::LinkType;
use weir_plan::{Column, Schema, Type};

/// In the place of the outlet that was chosen: all of the act's.
pub(crate) const ALL: u32 = u32::MAX;

/// The columns of outgoing frames: which act sends the frame and which of its outlets it goes to
/// ([`address`]), the frame, its length on the wire, its [`FrameKind`], and the hash of the key
/// that it was steered by. Its time is that of its row.
pub(super) fn outgoing_schema() -> Schema {
    let column = |name: &str, ty| Column::new(name, &ty);
    let columns = vec![
        column("to", Type::Int),
        column("frame", Type::Bytes),
        column("len", Type::Int),
        column("kind", Type::Int),
        column("key", Type::Int),
    ];
    Schema { columns }
}

/// The word of the act with this number in its stage, and of which of its outlets, or [`ALL`].
pub(super) fn address_word(act: usize, outlet: u32) -> u64 {
    (act as u64) << 32 | u64::from(outlet)
}

/// The act and the outlet that such a word stands for.
pub(crate) fn address(word: u64) -> (usize, u32) {
    ((word >> 32) as usize, word as u32)
}

/// The properties of a frame besides its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameKind {
    pub(crate) link: LinkType,
    /// Whether it was cut by `trim`.
    pub(crate) trimmed: bool,
    /// Whether it has a key that it was steered by.
    pub(crate) keyed: bool,
    pub(crate) point: CapturePoint,
}

impl FrameKind {
    pub(super) fn word(self) -> u64 {
        let bits = u64::from(self.trimmed) << 16 | u64::from(self.keyed) << 17;
        origin(self.link, self.point) | bits
    }

    /// The kind that such a word stands for.
    pub(crate) fn of(word: u64) -> FrameKind {
        let (link, point) = of_origin(word);
        FrameKind { link, trimmed: word & 1 << 16 != 0, keyed: word & 1 << 17 != 0, point }
    }
}

/// The link type of a frame, and by which interface it came, as a word in which 16 bits are free.
pub(super) fn origin(link: LinkType, point: CapturePoint) -> u64 {
    u64::from(point.word()) << 32 | u64::from(link.0)
}

/// The link type and the interface that such a word stands for.
pub(super) fn of_origin(word: u64) -> (LinkType, CapturePoint) {
    (LinkType(word as u16), CapturePoint::of((word >> 32) as u32))
}
