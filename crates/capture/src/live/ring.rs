//! A socket with its ring: frames of its blocks one after the other, and how many there were.

use super::block::{Captured, Rules, Walked, walk};
use super::indices::Indices;
use super::program::NOTHING;
use crate::sys;
use crate::sys::packet::Socket;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_packet::source::{Chunk, FrameBatch, LinkType};

/// Frames of one socket.
pub(super) struct Ring {
    /// The number of its interface.
    pub(super) wire: usize,
    pub(super) socket: Socket,
    ring: sys::ring::Ring,
    rules: Rules,
    /// The block being read, and its frames; refilled from block to block.
    block: usize,
    frames: Vec<Captured>,
    /// The next of them.
    next: usize,
    counts: Counts,
    told: Cell<Told>,
}

/// What this side counted.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    /// Frames put into batches.
    pub(super) delivered: u64,
    /// Frames refused by the capture filter behind the ring.
    pub(super) refused: u64,
    /// Frames that the kernel said were in a block and that were not found.
    pub(super) unread: u64,
}

/// What the kernel counted.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Told {
    /// Frames for the ring, with those that found no room.
    pub(super) passed: u64,
    /// Those that found no room.
    pub(super) dropped: u64,
}

impl Ring {
    pub(super) fn new(wire: usize, socket: Socket, ring: sys::ring::Ring, rules: Rules) -> Ring {
        let (frames, counts, told) = (Vec::new(), Counts::default(), Cell::default());
        Ring { wire, socket, ring, rules, block: 0, frames, next: 0, counts, told }
    }

    /// The time of the frame that comes next, from the block at hand.
    #[inline(always)]
    pub(super) fn head(&self) -> Option<i64> {
        self.frames.get(self.next).map(|frame| frame.ts)
    }

    /// Whether the frame that comes next is the first of its block.
    #[inline(always)]
    pub(super) fn is_fresh(&self) -> bool {
        self.next == 0
    }

    /// Looks for a block with frames, unless there is one at hand, and gives back those that no
    /// batch refers to. Returns how many are still referred to.
    pub(super) fn load(&mut self) -> usize {
        let reading = usize::from(self.head().is_some());
        let mut lent = self.ring.give_back(reading);
        while self.head().is_none() {
            let Some(block) = self.ring.take() else { break };
            let Walked { refused, unread } =
                walk(self.ring.bytes_mut(block), &self.rules, &mut self.frames);
            (self.block, self.next) = (block, 0);
            self.counts.refused += refused;
            self.counts.unread += unread;
            if self.frames.is_empty() {
                lent = self.ring.give_back(0);
            }
        }
        lent
    }

    /// Fills a batch from the block at hand.
    pub(super) fn fill(
        &mut self,
        batch: &mut FrameBatch,
        link: LinkType,
        seq: u64,
        indices: &mut Indices,
    ) {
        let chunk = Arc::clone(self.ring.block(self.block)) as Chunk;
        batch.restart(&chunk, 0, link);
        let to = self.frames.len().min(self.next + BATCH);
        let frames = &self.frames[self.next..to];
        for (seq, frame) in (seq..).zip(frames) {
            batch.push(frame.ts, seq, frame.start, frame.caplen, frame.len);
        }
        indices.refresh();
        let names = indices.names().clone();
        let via = |frame: &Captured| indices.via(frame.index).going(Some(frame.way));
        batch.set_vias(frames.iter().map(via), &names);
        self.counts.delivered += (to - self.next) as u64;
        self.next = to;
    }

    /// Lets no more frames into the ring.
    pub(super) fn mute(&self) -> io::Result<()> {
        self.socket.filter(&NOTHING)
    }

    /// What this side counted.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// What the kernel counted until now.
    pub(super) fn told(&self) -> Told {
        let mut told = self.told.get();
        // A socket that can't be asked has told all it had to tell.
        if let Ok(more) = self.socket.statistics() {
            told.passed += u64::from(more.passed);
            told.dropped += u64::from(more.dropped);
            self.told.set(told);
        }
        told
    }

    /// Whether every frame that the kernel put into the ring has come out of it.
    pub(super) fn is_drained(&self) -> bool {
        let (told, Counts { delivered, refused, unread }) = (self.told(), self.counts);
        self.head().is_none() && delivered + refused + unread >= told.passed - told.dropped
    }
}
