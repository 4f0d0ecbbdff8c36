//! Frames as they come to an end, and as they are to look when they go out.

use super::carried::FrameSlots;
use super::outgoing::of_origin;
use crate::anonymize::Anonymizer;
use crate::expr::Ctx;
use crate::rows::Arena;
use weir_packet::column::Column;
use weir_packet::interface::CapturePoint;
use weir_packet::limits::CAPLEN_MAX;
use weir_packet::source::{FrameBatch, LinkType};
use weir_plan::ends::Edit;

/// Where the addresses of an Ethernet frame end, and a tag goes.
const ADDRESSES: usize = 12;

/// Bytes of an 802.1Q tag.
const TAG: usize = 4;

/// The frames of a batch: of packets, or of rows that took theirs along.
pub(super) enum BatchFrames<'a> {
    View(&'a FrameBatch),
    Rows { arena: &'a Arena, bytes: &'a Column, len: &'a Column, origin: &'a Column },
}

impl<'a> BatchFrames<'a> {
    pub(super) fn new(ctx: &'a Ctx<'_>, slots: Option<FrameSlots>) -> BatchFrames<'a> {
        match (slots, &ctx.view) {
            (Some(FrameSlots { bytes, len, origin }), _) => {
                let [bytes, len, origin] = [bytes, len, origin].map(|src| ctx.column(src));
                BatchFrames::Rows { arena: &ctx.regs.arena, bytes, len, origin }
            }
            (None, Some(view)) => BatchFrames::View(view.frames()),
            (None, None) => unreachable!("rows that are packets have frames"),
        }
    }

    /// The length on the wire of frame `i`.
    #[inline(always)]
    pub(super) fn len(&self, i: usize) -> u32 {
        match self {
            BatchFrames::View(frames) => frames.lens()[i],
            BatchFrames::Rows { len, .. } => len.word()[i] as u32,
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Out<'a> {
        let len = self.len(i);
        match self {
            BatchFrames::View(frames) => Out {
                bytes: frames.frame(i),
                len,
                link: frames.link,
                point: frames.capture_point(i),
            },
            BatchFrames::Rows { arena, bytes, origin, .. } => {
                let (link, point) = of_origin(origin.word()[i]);
                Out { bytes: arena.get(bytes.word()[i]), len, link, point }
            }
        }
    }
}

/// A frame to be written.
#[derive(Clone, Copy)]
pub(super) struct Out<'a> {
    bytes: &'a [u8],
    len: u32,
    pub(super) link: LinkType,
    pub(super) point: CapturePoint,
}

/// The length of a frame that was written, and whether it was cut.
#[derive(Clone, Copy)]
pub(super) struct EditedFrame {
    /// Its length on the wire.
    pub(super) len: u32,
    pub(super) trimmed: bool,
}

impl Out<'_> {
    /// Its length on the wire once it is tagged and trimmed. A tag without a place is counted.
    pub(super) fn wire_len(&self, edits: &[Edit], untagged: &mut u64) -> u32 {
        let (mut there, mut len) = (self.bytes.len(), self.len);
        for edit in edits {
            match edit {
                Edit::Trim(n) => there = there.min(*n as usize),
                Edit::Tag(_) if self.is_tagged(there) => {
                    (there, len) = (there + TAG, len.saturating_add(TAG as u32));
                }
                Edit::Tag(_) => *untagged += 1,
                Edit::Anonymize(_) => {}
            }
        }
        len
    }

    /// Whether a tag has a place in so many bytes of it.
    fn is_tagged(&self, there: usize) -> bool {
        self.link == LinkType::ETHERNET && there >= ADDRESSES
    }

    /// Appends it to memory as it is to look; `None` and nothing appended where it can't be
    /// anonymized.
    pub(super) fn write(
        &self,
        edits: &[Edit],
        anonymizers: &mut [Anonymizer],
        memory: &mut Vec<u8>,
        untagged: &mut u64,
    ) -> Option<EditedFrame> {
        let start = memory.len();
        let mut anonymizers = anonymizers.iter_mut();
        // Bytes that are cut off at once need not be copied.
        let most = match edits.first() {
            Some(Edit::Trim(n)) => (*n as usize).min(self.bytes.len()),
            _ => self.bytes.len(),
        };
        memory.extend_from_slice(&self.bytes[..most]);
        let (mut len, mut trimmed) = (self.len, most < self.bytes.len());
        let mut without_tag = 0;
        for edit in edits {
            match edit {
                Edit::Trim(n) => {
                    let end = start.saturating_add(*n as usize);
                    trimmed |= end < memory.len();
                    memory.truncate(end);
                }
                Edit::Tag(id) if self.is_tagged(memory.len() - start) => {
                    let (at, end) = (start + ADDRESSES, memory.len());
                    memory.extend_from_slice(&[0; TAG]);
                    memory.copy_within(at..end, at + TAG);
                    let [hi, lo] = id.to_be_bytes();
                    memory[at..at + TAG].copy_from_slice(&[0x81, 0x00, hi, lo]);
                    len = len.saturating_add(TAG as u32);
                }
                Edit::Tag(_) => without_tag += 1,
                Edit::Anonymize(_) => {
                    let next = anonymizers.next().expect("one for each such edit");
                    if !next.rewrite(self.link, &mut memory[start..], len) {
                        memory.truncate(start);
                        return None;
                    }
                }
            }
        }
        *untagged += without_tag;
        memory.truncate(start + CAPLEN_MAX as usize);
        Some(EditedFrame { len, trimmed })
    }
}
