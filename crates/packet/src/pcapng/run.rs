//! The common case: enhanced packet blocks that follow one another.

use super::block::{BLOCK_FRAME, BLOCK_HEADER, PACKET};
use super::interface::Declared;
use super::section::{Section, direction};
use crate::interface::CapturePoint;
use crate::limits::{BLOCK_MAX, CAPLEN_MAX};
use crate::pcap::{ByteOrder, word};
use crate::prefetch::{Ahead, FAR, LINE, ask_far};
use crate::source::{FrameBatch, LinkType};
use crate::walk::{HEADS, Heads, WINDOW};

/// Bytes before the frame in an enhanced packet block.
const HEADER: usize = BLOCK_HEADER + 20;

/// Bytes behind it and its padding: the block's length once more.
const TAIL: usize = BLOCK_FRAME - BLOCK_HEADER;

/// Bytes of a block that are looked at.
const HEADED: usize = HEADER + WINDOW;

/// Blocks that are taken as long as they are whole, sound, and of the batch's link type. Whatever
/// else comes is left where it is, to be looked at one by one.
pub(super) struct Run<'a> {
    pub(super) section: &'a mut Section,
    /// From the base of the batch on.
    pub(super) bytes: &'a [u8],
    /// Where the next block starts in them.
    pub(super) at: usize,
    pub(super) batch: &'a mut FrameBatch,
}

impl Run<'_> {
    /// Pushes blocks until the batch is full or one is not such; `looks` says whether each frame is
    /// looked at for the classifier.
    #[inline(never)]
    pub(super) fn take<const BIG: bool>(&mut self, looks: bool) {
        let ahead = Ahead::walk(self.section.span);
        if !looks {
            return self.push::<BIG, HEADER>(usize::MAX, |bytes, at, _, _| ahead.ask(bytes, at));
        }
        let mut heads = Heads::new();
        while !self.batch.is_full() {
            let from = self.batch.len();
            // Where much is at hand, some of it is asked for.
            self.look::<BIG, { FAR + LINE + 1 }>(&mut heads);
            if self.batch.len() == from {
                self.look::<BIG, HEADED>(&mut heads);
            }
            let looked = self.batch.len() - from;
            if looked == 0 {
                return;
            }
            heads.look_ethernet(&self.batch.caplens()[from..], &self.batch.lens()[from..]);
            self.batch.set_looks(from, &heads.looks[..looked]);
        }
    }

    /// Pushes some blocks, as long as `AHEAD` bytes are there from the start of each, and gathers
    /// what a look at them takes.
    #[inline(always)]
    fn look<const BIG: bool, const AHEAD: usize>(&mut self, heads: &mut Heads) {
        self.push::<BIG, AHEAD>(HEADS, |_, _, i, ahead| {
            if let Some(far) = ahead.first_chunk() {
                ask_far(far);
            }
            if let Some(frame) = ahead.get(HEADER..).and_then(<[u8]>::first_chunk) {
                heads.put_ethernet(i, frame);
            }
        });
    }

    /// Pushes blocks, `most` at most, as long as `AHEAD` bytes are there from the start of each.
    /// `each` gets all bytes, where the block starts in them, its number and those bytes.
    #[inline(always)]
    fn push<const BIG: bool, const AHEAD: usize>(
        &mut self,
        most: usize,
        mut each: impl FnMut(&[u8], usize, usize, &[u8; AHEAD]),
    ) {
        let Run { section, bytes, at, batch } = self;
        // Positions have 32 bits.
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        let (from, link, interfaces) = (batch.len(), batch.link, &section.interfaces);
        // The interface of the block before, if that had no options.
        let mut known: Option<(u32, &Declared)> = None;
        // How the first came, and whether all did so.
        let (mut first, mut same) = (None, true);
        let mut start = *at;
        batch.push_all_with_points(most, section.seq - from as u64, |i| {
            let ahead: &[u8; AHEAD] = bytes.get(start..)?.first_chunk()?;
            let h: &[u8; HEADER] = ahead.first_chunk()?;
            let (total, caplen) = (word::<BIG>(h, 4), word::<BIG>(h, 20));
            if word::<BIG>(h, 0) != PACKET || caplen > CAPLEN_MAX {
                return None;
            }
            let behind = HEADER as u32 + ((caplen + 3) & !3);
            let plain = behind + TAIL as u32 == total;
            if !plain {
                known = None;
                if !fits(total, behind) {
                    return None;
                }
            }
            let end = start + total as usize;
            let tail: &[u8; TAIL] = bytes.get(end - TAIL..end)?.first_chunk()?;
            if word::<BIG>(tail, 0) != total {
                return None;
            }
            let id = word::<BIG>(h, 8);
            let (interface, came) = match known {
                Some((same, interface)) if same == id => (interface, interface.point),
                _ => {
                    let options = bytes.get(start + behind as usize..end - TAIL)?;
                    let (interface, came) = meet::<BIG>(interfaces, id, link, options)?;
                    known = plain.then_some((id, interface));
                    same &= *first.get_or_insert(came) == came;
                    (interface, came)
                }
            };
            each(bytes, start, i, ahead);
            let offset = (start + HEADER) as u32;
            start = end;
            let ticks = u64::from(word::<BIG>(h, 12)) << 32 | u64::from(word::<BIG>(h, 16));
            Some(((interface.clock.ns(ticks), offset, caplen, word::<BIG>(h, 24)), came))
        });
        *at = start;
        if batch.len() > from {
            batch.set_written_points(from, first.filter(|_| same), &section.names);
        }
        section.seq += (batch.len() - from) as u64;
    }
}

/// The interface of a packet that is not like the one before, and how it came; none where it
/// belongs into no batch of this link type. Apart, so that the loop keeps what it needs in
/// registers.
#[inline(never)]
fn meet<'a, const BIG: bool>(
    interfaces: &'a [Declared],
    id: u32,
    link: LinkType,
    options: &[u8],
) -> Option<(&'a Declared, CapturePoint)> {
    let interface = interfaces.get(id as usize).filter(|interface| interface.link == link)?;
    let order = if BIG { ByteOrder::Big } else { ByteOrder::Little };
    Some((interface, interface.point.with_direction(direction(order, options))))
}

/// Whether a block with options can be so long, whose frame and padding end there.
#[cold]
fn fits(total: u32, behind: u32) -> bool {
    // A length that is no multiple of 4 is large when its lowest bits have become the highest.
    total.rotate_right(2) <= BLOCK_MAX / 4 && behind + TAIL as u32 <= total
}
