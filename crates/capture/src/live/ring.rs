//! A socket with its ring: frames of its blocks one after the other, and how many there were.

use super::block::{QUEUED, RingFrame, Rules, Walked, is_queued, walk, walk_slots, whole_slot};
use super::indices::Indices;
use super::program::NOTHING;
use crate::limits::{OVERFLOW_APART_NS, RINGS_APART_NS};
use crate::sys;
use crate::sys::packet::PacketSocket;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use weir_packet::limits::BATCH;
use weir_packet::source::{Chunk, FrameBatch, LinkType};

/// Which frames come by a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Frames of some flows.
    Flows,
    /// Frames that found the ring of their flow full.
    Overflow,
}

/// Frames of one socket.
pub(super) struct SocketRing {
    /// The number of its interface.
    pub(super) interface: usize,
    pub(super) part: Part,
    pub(super) socket: PacketSocket,
    memory: Memory,
    rules: Rules,
    /// The memory being read, and its frames; refilled from block to block, or run to run.
    frames: Vec<RingFrame>,
    /// The next of them.
    next: usize,
    counts: Counts,
    kernel: Cell<KernelCounts>,
}

/// How the kernel hands frames over.
pub(super) enum Memory {
    /// Many at a time, when their block is full or some time is over.
    Blocks {
        /// The ring.
        ring: sys::ring::BlockRing,
        /// The block being read.
        reading: usize,
    },
    /// One by one, as they come.
    Slots {
        /// The ring.
        ring: sys::ring::Slots,
        /// The frame being read, if it is longer than a slot: then it has memory of its own.
        long: Option<Arc<Vec<u8>>>,
        /// The error on the socket that was reported instead of such a frame.
        error: Option<io::Error>,
    },
}

impl Memory {
    /// Gives back what no batch refers to, but for the `keep` last. Returns how much of the rest is
    /// still referred to.
    #[inline(always)]
    fn give_back(&mut self, keep: usize) -> usize {
        match self {
            Memory::Blocks { ring, .. } => ring.give_back(keep),
            Memory::Slots { ring, .. } => ring.give_back(keep),
        }
    }

    /// Takes the next frames that the kernel has handed over; what became of them, if there are
    /// any.
    #[inline(always)]
    fn take(
        &mut self,
        socket: &PacketSocket,
        rules: &Rules,
        frames: &mut Vec<RingFrame>,
    ) -> Option<Walked> {
        match self {
            Memory::Blocks { ring, reading } => {
                *reading = ring.take()?;
                Some(walk(ring.bytes_mut(*reading), rules, frames))
            }
            Memory::Slots { ring, long, error } => {
                *long = None;
                if !ring.take(BATCH, QUEUED) {
                    return None;
                }
                let slot = ring.slot();
                let slots = ring.latest_mut();
                if is_queued(slots) {
                    let mut whole = Vec::new();
                    let receive = |room: &mut [u8]| {
                        // An error that is pending is reported first, and then is no more.
                        socket.receive(room).or_else(|e| {
                            *error = Some(e);
                            socket.receive(room)
                        })
                    };
                    // Where it is not in the queue after all, there is its beginning.
                    if whole_slot(slots, &mut whole, receive).is_ok() {
                        let walked = walk_slots(&mut whole, usize::MAX, rules, frames);
                        *long = Some(Arc::new(whole));
                        return Some(walked);
                    }
                }
                Some(walk_slots(slots, slot, rules, frames))
            }
        }
    }

    /// The memory that frames of the last take lie in.
    #[inline(always)]
    fn chunk(&self) -> Option<Chunk> {
        match self {
            Memory::Blocks { ring, reading } => Some(Arc::clone(ring.block(*reading)) as Chunk),
            Memory::Slots { long: Some(long), .. } => Some(Arc::clone(long) as Chunk),
            Memory::Slots { ring, .. } => ring.latest().map(|run| Arc::clone(run) as Chunk),
        }
    }
}

/// The counts of this side.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    /// Frames put into batches.
    pub(super) delivered: u64,
    /// Frames from the ring that the capture filter refused here, since the kernel does not run it.
    pub(super) refused: u64,
    /// Frames that the kernel said were in a block and that were not found.
    pub(super) unread: u64,
}

/// The counts of the kernel.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct KernelCounts {
    /// Frames for the ring, with those that found no room.
    pub(super) passed: u64,
    /// Frames that found no room.
    pub(super) dropped: u64,
}

impl SocketRing {
    pub(super) fn new(
        interface: usize,
        (part, socket, memory): (Part, PacketSocket, Memory),
        rules: Rules,
    ) -> SocketRing {
        let (frames, counts, kernel) = (Vec::new(), Counts::default(), Cell::default());
        SocketRing { interface, part, socket, memory, rules, frames, next: 0, counts, kernel }
    }

    /// The time of the frame that comes next, of those at hand.
    #[inline(always)]
    pub(super) fn head(&self) -> Option<i64> {
        self.frames.get(self.next).map(|frame| frame.ts)
    }

    /// Whether the frame that comes next is the first of its block, or run of slots.
    #[inline(always)]
    pub(super) fn is_fresh(&self) -> bool {
        self.next == 0
    }

    /// Looks for frames, unless there are some at hand, and gives back blocks or slots that no
    /// batch refers to. Returns how many of them are still referred to.
    pub(super) fn load(&mut self) -> usize {
        let reading = usize::from(self.head().is_some());
        let mut lent = self.memory.give_back(reading);
        while self.head().is_none() {
            let taken = self.memory.take(&self.socket, &self.rules, &mut self.frames);
            let Some(Walked { refused, unread }) = taken else { break };
            self.next = 0;
            self.counts.refused += refused;
            self.counts.unread += unread;
            if self.frames.is_empty() {
                lent = self.memory.give_back(0);
            }
        }
        lent
    }

    /// Fills a batch from the frames at hand: the first, and those after it until `next_head`, the
    /// time of the oldest frame at hand of the other rings.
    pub(super) fn fill(
        &mut self,
        batch: &mut FrameBatch,
        (link, next_head): (LinkType, i64),
        seq: u64,
        indices: &mut Indices,
    ) {
        let Some(chunk) = self.memory.chunk() else { return };
        batch.restart(&chunk, 0, link);
        let mut to = self.frames.len().min(self.next + BATCH);
        let until = next_head.saturating_add(match self.part {
            Part::Flows => RINGS_APART_NS,
            Part::Overflow => OVERFLOW_APART_NS,
        });
        if self.frames[to - 1].ts > until {
            let before = self.frames[self.next..to].partition_point(|frame| frame.ts <= until);
            to = self.next + before.max(1);
        }
        let frames = &self.frames[self.next..to];
        for (seq, frame) in (seq..).zip(frames) {
            batch.push(frame.ts, seq, frame.start, frame.caplen, frame.len);
        }
        indices.refresh();
        let names = indices.names().clone();
        let point =
            |frame: &RingFrame| indices.point(frame.index).with_direction(Some(frame.direction));
        batch.set_capture_points(frames.iter().map(point), &names);
        self.counts.delivered += (to - self.next) as u64;
        self.next = to;
    }

    /// The error that is pending on the socket, which it then is no more.
    pub(super) fn take_error(&mut self) -> io::Result<Option<io::Error>> {
        let mut pending = None;
        if let Memory::Slots { error, .. } = &mut self.memory {
            pending = error.take().filter(|e| e.kind() != io::ErrorKind::WouldBlock);
        }
        pending.map_or_else(|| self.socket.take_error(), |e| Ok(Some(e)))
    }

    /// Whether an error was reported where a frame was asked for.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.memory, Memory::Slots { error: Some(_), .. })
    }

    /// Lets no more frames into the ring.
    pub(super) fn mute(&self) -> io::Result<()> {
        self.socket.filter(&NOTHING)
    }

    /// The counts of this side.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// The counts of the kernel until now.
    pub(super) fn kernel_counts(&self) -> KernelCounts {
        let mut counted = self.kernel.get();
        // A socket that can't be asked has no further counts.
        if let Ok(more) = self.socket.statistics() {
            counted.passed += u64::from(more.passed);
            counted.dropped += u64::from(more.dropped);
            self.kernel.set(counted);
        }
        counted
    }

    /// Whether every frame that the kernel put into the ring has come out of it.
    pub(super) fn is_drained(&self) -> bool {
        let (counted, Counts { delivered, refused, unread }) = (self.kernel_counts(), self.counts);
        self.head().is_none() && delivered + refused + unread >= counted.passed - counted.dropped
    }
}
