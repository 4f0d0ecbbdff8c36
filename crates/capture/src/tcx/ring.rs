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
pub(super) struct RingRecord {
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
    /// The end of the bytes found to be written.
    produced: u64,
    /// The end of the bytes given back.
    given: u64,
    /// The chunks that batches refer to, in order: up to where each refers.
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
    pub(super) fn peek(&mut self) -> Option<RingRecord> {
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
            let record = RingRecord { start: at + HEADER, len: len.min(mask) };
            if header & DISCARDED == 0 {
                return Some(record);
            }
            self.pass(record);
        }
    }

    /// Goes on to the record after this one, which is the next.
    #[inline(always)]
    pub(super) fn pass(&mut self, record: RingRecord) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: usize = 256;

    /// A ring in plain memory, whose other side the test plays. Bytes of records are not written.
    struct Memory {
        produced: AtomicU64,
        consumed: AtomicU64,
        headers: Vec<AtomicU32>,
        bytes: Vec<u8>,
    }

    impl AsRef<[u8]> for Memory {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }

    impl Records for Memory {
        fn produced(&self) -> &AtomicU64 {
            &self.produced
        }

        fn consumed(&self) -> &AtomicU64 {
            &self.consumed
        }

        fn header(&self, at: usize) -> &AtomicU32 {
            &self.headers[at / 8]
        }

        fn size(&self) -> usize {
            SIZE
        }
    }

    impl Memory {
        fn new(start: u64) -> Arc<Memory> {
            let headers = (0..SIZE / 8).map(|_| AtomicU32::new(0)).collect();
            let (produced, consumed) = (start.into(), start.into());
            Arc::new(Memory { produced, consumed, headers, bytes: vec![0; 2 * SIZE] })
        }

        /// Makes room for a record, as the kernel does; where, if there is room.
        fn reserve(&self, len: u32) -> Option<usize> {
            let at = self.produced.load(Relaxed);
            let end = at + (HEADER as u64 + u64::from(len)).next_multiple_of(8);
            if end - self.consumed.load(Acquire) > SIZE as u64 - 1 {
                return None;
            }
            let place = at as usize % SIZE;
            self.headers[place / 8].store(len | BUSY, Release);
            self.produced.store(end, Release);
            Some(place)
        }

        /// Hands a record over, or gives it up.
        fn commit(&self, place: usize, discarded: bool) {
            let header = &self.headers[place / 8];
            let bit = if discarded { DISCARDED } else { 0 };
            header.store(header.load(Relaxed) & !BUSY | bit, Release);
        }
    }

    /// The next step of a test.
    #[derive(Clone, Debug)]
    enum Step {
        Reserve(u32),
        /// Commits one of those that are being written.
        Commit(usize, bool),
        /// Lends up to so many records.
        Lend(usize),
        /// Lets go of one of the chunks that are held.
        LetGo(usize),
        GiveBack,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u32..100).prop_map(Step::Reserve),
            (0_usize..4, any::<bool>()).prop_map(|(n, discarded)| Step::Commit(n, discarded)),
            (0_usize..4).prop_map(Step::Lend),
            (0_usize..4).prop_map(Step::LetGo),
            Just(Step::GiveBack),
        ]
    }

    proptest! {
        /// Each record that is handed over is read once, in order; the room of what a batch refers
        /// to is not given back.
        #[test]
        fn records_are_read_once_and_in_order(
            start in prop_oneof![Just(0_u64), Just((1 << 32) - 64)],
            steps in proptest::collection::vec(step(), 0..120),
        ) {
            let memory = Memory::new(start);
            let mut reader = Reader::new(Arc::clone(&memory));
            // In order: where, how long, and what became of it.
            let mut written: VecDeque<(usize, u32, Option<bool>)> = VecDeque::new();
            let mut held: Vec<(Chunk, u64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Reserve(len) => {
                        written.extend(memory.reserve(len).map(|place| (place, len, None)));
                    }
                    Step::Commit(n, discarded) => {
                        let busy = written.iter_mut().filter(|w| w.2.is_none()).nth(n);
                        if let Some(one) = busy {
                            memory.commit(one.0, discarded);
                            one.2 = Some(discarded);
                        }
                    }
                    Step::Lend(most) => {
                        let (mut got, mut first) = (Vec::new(), None);
                        reader.lend(|reader, chunk| {
                            while got.len() < most && let Some(record) = reader.peek() {
                                first.get_or_insert((Arc::clone(chunk), reader.next));
                                got.push((record.start - HEADER, record.len as u32));
                                reader.pass(record);
                            }
                        });
                        held.extend(first);
                        for one in got {
                            while written.front().is_some_and(|w| w.2 == Some(true)) {
                                written.pop_front();
                            }
                            let front = written.pop_front();
                            prop_assert_eq!(front, Some((one.0, one.1, Some(false))));
                        }
                    }
                    Step::LetGo(n) if n < held.len() => drop(held.remove(n)),
                    Step::LetGo(_) => {}
                    Step::GiveBack => {
                        reader.give_back();
                    }
                }
                let consumed = memory.consumed.load(Relaxed);
                prop_assert!(consumed <= memory.produced.load(Relaxed));
                prop_assert!(held.iter().all(|(_, first)| consumed <= *first), "{}", consumed);
            }
        }

        /// Whatever headers say, reading ends, within what was written.
        #[test]
        fn headers_that_lie_are_not_believed(
            headers in proptest::collection::vec(any::<u32>(), SIZE / 8),
            produced in 0_u64..2 * SIZE as u64,
        ) {
            let memory = Memory::new(0);
            memory.produced.store(produced, Relaxed);
            memory.headers.iter().zip(headers).for_each(|(to, h)| to.store(h, Relaxed));
            let mut reader = Reader::new(Arc::clone(&memory));
            let mut n = 0;
            while let Some(record) = reader.peek() {
                prop_assert!(record.start + record.len <= 2 * SIZE);
                reader.pass(record);
                prop_assert!(reader.next <= produced);
                n += 1;
            }
            prop_assert!(n <= SIZE);
            reader.give_back();
            prop_assert!(memory.consumed.load(Relaxed) <= produced);
        }
    }
}
