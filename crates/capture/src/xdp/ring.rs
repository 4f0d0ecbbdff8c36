//! The rings of an AF_XDP socket: words and two counters that one side moves and the other reads.
//!
//! A ring has a power of two of entries. The producer writes entries and then moves its counter
//! with release order; the consumer reads that counter with acquire order, then the entries, and
//! moves its own counter with release order, which the producer reads with acquire order before it
//! writes again. Counters wrap. Each side keeps its own counter, and a copy of the other's that it
//! looks at again only when that says that there is nothing left.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Memory that a ring shares with the kernel.
pub(crate) trait RingIndices {
    /// How many entries were ever put in.
    fn producer(&self) -> &AtomicU32;
    /// How many were ever taken out.
    fn consumer(&self) -> &AtomicU32;
    /// The flags by which the kernel asks for calls, see `XDP_RING_NEED_WAKEUP`.
    fn flags(&self) -> &AtomicU32;
    /// The entries; a power of two of them, each of as many words as its ring says.
    fn words(&self) -> &[AtomicU64];
}

/// `XDP_RING_NEED_WAKEUP`: the kernel goes on only when it is called.
const NEED_WAKEUP: u32 = 1;

/// The ring by which the kernel gets frames to fill. Its entries are addresses in the UMEM.
pub(crate) struct FillRing<S> {
    shared: S,
    size: u32,
    produced: u32,
    consumed: u32,
}

impl<S: RingIndices> FillRing<S> {
    /// The ring in this memory, in which nothing has happened yet.
    pub(crate) fn new(shared: S) -> FillRing<S> {
        let size = entries(shared.words().len());
        FillRing { shared, size, produced: 0, consumed: 0 }
    }

    /// Entries that can be put in.
    fn room(&mut self, wanted: u32) -> u32 {
        let room = self.size - self.produced.wrapping_sub(self.consumed).min(self.size);
        if room >= wanted {
            return room;
        }
        self.consumed = self.shared.consumer().load(Acquire);
        self.size - self.produced.wrapping_sub(self.consumed).min(self.size)
    }

    /// Puts frames in, as many as there is room for from the first on; how many.
    pub(crate) fn put(&mut self, frames: &[u32]) -> usize {
        let wanted = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let n = self.room(wanted).min(wanted);
        let words = self.shared.words();
        for (&frame, at) in frames.iter().zip(0..n) {
            let at = self.produced.wrapping_add(at) & (self.size - 1);
            words[at as usize].store(frame.into(), Relaxed);
        }
        self.produced = self.produced.wrapping_add(n);
        self.shared.producer().store(self.produced, Release);
        n as usize
    }

    /// Whether the kernel waits for a call to go on.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.shared.flags().load(Relaxed) & NEED_WAKEUP != 0
    }
}

/// The ring by which received frames come: address, length, options.
pub(crate) struct RxRing<S> {
    shared: S,
    size: u32,
    produced: u32,
    consumed: u32,
}

/// Where a received frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Descriptor {
    /// Its first byte in the UMEM.
    pub(crate) address: u64,
    /// How many bytes.
    pub(crate) len: u32,
}

impl<S: RingIndices> RxRing<S> {
    /// The ring in this memory, in which nothing has happened yet.
    pub(crate) fn new(shared: S) -> RxRing<S> {
        let size = entries(shared.words().len() / 2);
        RxRing { shared, size, produced: 0, consumed: 0 }
    }

    /// Frames that have come and were not taken, at least one if there is one.
    pub(crate) fn waiting(&mut self) -> u32 {
        if self.produced == self.consumed {
            self.produced = self.shared.producer().load(Acquire);
        }
        self.produced.wrapping_sub(self.consumed).min(self.size)
    }

    /// The same, and all that came meanwhile.
    pub(crate) fn all_waiting(&mut self) -> u32 {
        self.produced = self.shared.producer().load(Acquire);
        self.produced.wrapping_sub(self.consumed).min(self.size)
    }

    /// Takes up to `max` frames; how many.
    #[inline(always)]
    pub(crate) fn take(&mut self, max: u32, mut each: impl FnMut(Descriptor)) -> u32 {
        let mut n = self.waiting();
        if n < max {
            n = self.all_waiting();
        }
        let n = n.min(max);
        let words = self.shared.words();
        for at in 0..n {
            let at = (self.consumed.wrapping_add(at) & (self.size - 1)) as usize * 2;
            let address = words[at].load(Relaxed);
            let [a, b, c, d, ..] = words[at + 1].load(Relaxed).to_ne_bytes();
            each(Descriptor { address, len: u32::from_ne_bytes([a, b, c, d]) });
        }
        self.consumed = self.consumed.wrapping_add(n);
        self.shared.consumer().store(self.consumed, Release);
        n
    }
}

/// A power of two, whatever the memory is like.
pub(crate) fn entries(n: usize) -> u32 {
    let n = u32::try_from(n).unwrap_or(0);
    if n.is_power_of_two() { n } else { n.next_power_of_two() / 2 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// A ring in plain memory, whose other side the test plays.
    pub(crate) struct Memory {
        producer: AtomicU32,
        consumer: AtomicU32,
        flags: AtomicU32,
        words: Vec<AtomicU64>,
    }

    impl RingIndices for Arc<Memory> {
        fn producer(&self) -> &AtomicU32 {
            &self.producer
        }

        fn consumer(&self) -> &AtomicU32 {
            &self.consumer
        }

        fn flags(&self) -> &AtomicU32 {
            &self.flags
        }

        fn words(&self) -> &[AtomicU64] {
            &self.words
        }
    }

    impl Memory {
        /// A memory whose counters start at `start`, so that they may wrap.
        pub(crate) fn new(words: usize, start: u32) -> Arc<Memory> {
            Arc::new(Memory {
                producer: AtomicU32::new(start),
                consumer: AtomicU32::new(start),
                flags: AtomicU32::new(0),
                words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            })
        }

        /// The kernel takes a frame to fill.
        pub(crate) fn kernel_takes(&self) -> Option<u64> {
            let at = self.consumer.load(Relaxed);
            if at == self.producer.load(Acquire) {
                return None;
            }
            let frame = self.words[at as usize & (self.words.len() - 1)].load(Relaxed);
            self.consumer.store(at.wrapping_add(1), Release);
            Some(frame)
        }

        /// The kernel hands out a frame; whether there was room.
        pub(crate) fn kernel_gives(&self, address: u64, len: u32) -> bool {
            let at = self.producer.load(Relaxed);
            let size = self.words.len() as u32 / 2;
            if at.wrapping_sub(self.consumer.load(Acquire)) == size {
                return false;
            }
            let slot = (at & (size - 1)) as usize * 2;
            self.words[slot].store(address, Relaxed);
            let [a, b, c, d] = len.to_ne_bytes();
            let second = u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]);
            self.words[slot + 1].store(second, Relaxed);
            self.producer.store(at.wrapping_add(1), Release);
            true
        }
    }

    fn fill_from(memory: &Arc<Memory>, start: u32) -> FillRing<Arc<Memory>> {
        FillRing { produced: start, consumed: start, ..FillRing::new(Arc::clone(memory)) }
    }

    fn rx_from(memory: &Arc<Memory>, start: u32) -> RxRing<Arc<Memory>> {
        RxRing { produced: start, consumed: start, ..RxRing::new(Arc::clone(memory)) }
    }

    proptest! {
        #[test]
        fn the_kernel_gets_the_frames_in_order(
            start in prop_oneof![Just(0), u32::MAX - 20..=u32::MAX],
            steps in proptest::collection::vec((0_usize..12, 0_usize..12), 0..60),
        ) {
            let memory = Memory::new(8, start);
            let mut ring = fill_from(&memory, start);
            let (mut model, mut next) = (VecDeque::<u32>::new(), 0_u32);
            for (put, take) in steps {
                let frames: Vec<u32> = (next..).take(put).collect();
                let n = ring.put(&frames);
                prop_assert_eq!(n, put.min(8 - model.len()));
                model.extend(&frames[..n]);
                next += n as u32;
                for _ in 0..take {
                    prop_assert_eq!(memory.kernel_takes(), model.pop_front().map(u64::from));
                }
            }
        }

        #[test]
        fn received_frames_come_once_and_in_order(
            start in prop_oneof![Just(0), u32::MAX - 20..=u32::MAX],
            steps in proptest::collection::vec((0_u32..12, 0_u32..12), 0..60),
        ) {
            let memory = Memory::new(16, start);
            let mut ring = rx_from(&memory, start);
            let (mut model, mut next) = (VecDeque::new(), 0_u32);
            for (give, take) in steps {
                for _ in 0..give {
                    let gave = memory.kernel_gives(u64::from(next) << 33, next);
                    prop_assert_eq!(gave, model.len() < 8);
                    if gave {
                        model.push_back(next);
                        next += 1;
                    }
                }
                prop_assert_eq!(ring.waiting() > 0, !model.is_empty());
                let mut got = Vec::new();
                let n = ring.take(take, |d| got.push((d.address, d.len)));
                prop_assert_eq!(n as usize, model.len().min(take as usize));
                let want: Vec<_> =
                    model.drain(..n as usize).map(|i| (u64::from(i) << 33, i)).collect();
                prop_assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn a_counter_that_lies_is_not_believed() {
        let memory = Memory::new(16, 0);
        memory.producer.store(1_000_000, Relaxed);
        let mut ring = RxRing::new(Arc::clone(&memory));
        assert_eq!((ring.waiting(), ring.take(100, |_| ())), (8, 8));
        let memory = Memory::new(8, 0);
        memory.consumer.store(77, Relaxed);
        assert!(FillRing::new(Arc::clone(&memory)).put(&[0; 20]) <= 8);
    }

    #[test]
    fn what_another_thread_gives_is_whole() {
        const FRAMES: u32 = 20_000;
        let memory = Memory::new(128, 0);
        let mut ring = RxRing::new(Arc::clone(&memory));
        let kernel = std::thread::spawn(move || {
            for i in 0..FRAMES {
                while !memory.kernel_gives(u64::from(i) * 3, i) {
                    std::thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < FRAMES {
            ring.take(50, |d| {
                assert_eq!((d.address, d.len), (u64::from(next) * 3, next));
                next += 1;
            });
            std::thread::yield_now();
        }
        kernel.join().expect("the other side");
    }

    #[test]
    fn the_kernel_says_when_it_wants_to_be_called() {
        let memory = Memory::new(8, 0);
        let ring = FillRing::new(Arc::clone(&memory));
        assert!(!ring.needs_wakeup());
        memory.flags.store(NEED_WAKEUP, Relaxed);
        assert!(ring.needs_wakeup());
    }
}
