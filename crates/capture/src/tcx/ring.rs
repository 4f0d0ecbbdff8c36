//! Reading the records of a ring, which batches refer to where they lie.
//!
//! A record begins with its length, with bits for records that are being written and for those that
//! were given up. Records are read in the order in which room was made for them, up to the first
//! that is still being written. Their room goes back in the same order, when no batch refers to it.

use crate::limits::LOANS_MAX;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use weir_packet::source::Chunk;

/// Memory that a ring shares with the kernel. It reads as the records, twice.
pub(crate) trait Records: AsRef<[u8]> + Send + Sync + 'static {
    /// How many bytes were ever written.
    fn produced(&self) -> &AtomicU64;
    /// How many were ever given back.
    fn consumed(&self) -> &AtomicU64;
    /// The length of the record at this place.
    fn header(&self, at: usize) -> &AtomicU32;
    /// Bytes of the records, a power of two.
    fn size(&self) -> usize;
}

/// `BPF_RINGBUF_BUSY_BIT`, `BPF_RINGBUF_DISCARD_BIT`, `BPF_RINGBUF_HDR_SZ`.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
pub(super) const HEADER: usize = 8;

/// Where a record is: in the memory of the ring as it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) start: usize,
    pub(super) len: usize,
}

/// A reference to the memory of a ring with a count of its own.
struct View<R>(Arc<R>);

impl<R: Records> AsRef<[u8]> for View<R> {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// The reader of a ring.
pub(super) struct Reader<R> {
    memory: Arc<R>,
    /// The next record to read, counted as `consumed` is.
    next: u64,
    /// What was found to be written.
    produced: u64,
    /// What was given back.
    given: u64,
    /// What batches refer to, in order: up to where each refers.
    lent: VecDeque<(Chunk, u64)>,
    free: Vec<Chunk>,
}

impl<R: Records> Reader<R> {
    pub(super) fn new(memory: Arc<R>) -> Reader<R> {
        let start = memory.consumed().load(Relaxed);
        let chunk = || -> Chunk { Arc::new(View(Arc::clone(&memory))) };
        let free = (0..LOANS_MAX).map(|_| chunk()).collect();
        Reader { memory, next: start, produced: start, given: start, lent: VecDeque::new(), free }
    }

    pub(super) fn memory(&self) -> &R {
        &self.memory
    }

    /// The next record that is written, if there is one.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<Record> {
        loop {
            if self.next == self.produced {
                self.produced = self.memory.produced().load(Acquire);
                if self.next == self.produced {
                    return None;
                }
            }
            let mask = self.memory.size() - 1;
            let at = self.next as usize & mask & !7;
            let header = self.memory.header(at).load(Acquire);
            if header & BUSY != 0 {
                return None;
            }
            let len = (header & !(BUSY | DISCARDED)) as usize;
            let record = Record { start: at + HEADER, len: len.min(mask) };
            if header & DISCARDED == 0 {
                return Some(record);
            }
            self.pass(record);
        }
    }

    /// Goes on to the record after this one, which is the next.
    #[inline(always)]
    pub(super) fn pass(&mut self, record: Record) {
        let whole = (HEADER + record.len).next_multiple_of(8) as u64;
        // A length that can't be true would lead beyond what was written.
        self.next += whole.min(self.produced.wrapping_sub(self.next));
    }

    /// Whether a batch can be lent.
    pub(super) fn can_lend(&self) -> bool {
        !self.free.is_empty()
    }

    /// Lends the records that `take` passes, by the chunk that it gets.
    pub(super) fn lend(&mut self, take: impl FnOnce(&mut Self, &Chunk)) {
        let Some(chunk) = self.free.pop() else { return };
        take(self, &chunk);
        self.lent.push_back((chunk, self.next));
    }

    /// Gives back the room of records that no batch refers to any more. Whether some are still
    /// referred to.
    pub(super) fn give_back(&mut self) -> bool {
        let mut to = self.given;
        while let Some((chunk, end)) = self.lent.front_mut() {
            if Arc::get_mut(chunk).is_none() {
                break;
            }
            to = *end;
            self.free.extend(self.lent.pop_front().map(|(chunk, _)| chunk));
        }
        if self.lent.is_empty() {
            // Records that were given up are nobody's.
            to = self.next;
        }
        if to != self.given {
            self.given = to;
            self.memory.consumed().store(to, Release);
        }
        !self.lent.is_empty()
    }

    /// Bytes that there is room for.
    pub(super) fn size(&self) -> usize {
        self.memory.size()
    }

    /// How many bytes were read, and not given back.
    pub(super) fn held(&self) -> usize {
        self.next.wrapping_sub(self.given) as usize
    }

    /// Whether all that was written was read.
    pub(super) fn is_empty(&self) -> bool {
        self.next == self.memory.produced().load(Acquire)
    }
}
