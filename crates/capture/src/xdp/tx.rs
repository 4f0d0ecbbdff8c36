//! The rings of an AF_XDP socket that sends: frames to be sent, and those that the kernel is done
//! with. As of [`ring`](super::ring), each side moves one counter.
//!
//! The kernel takes frames only while it is called, so that entries it has not taken can be written
//! anew before the next call. It may have taken more of them than its counter says: it moves that
//! only when it has sent one.

use super::ring::{Descriptor, RingIndices, entries};
use std::sync::atomic::Ordering::*;

/// The ring by which the kernel gets frames to send: address, length, options.
pub(crate) struct TxRing<S> {
    shared: S,
    size: u32,
    produced: u32,
    /// As far as is known.
    consumed: u32,
}

impl<S: RingIndices> TxRing<S> {
    /// The ring in this memory, in which nothing has happened yet.
    pub(crate) fn new(shared: S) -> TxRing<S> {
        let size = entries(shared.words().len() / 2);
        TxRing { shared, size, produced: 0, consumed: 0 }
    }

    /// Entries that the kernel has not taken.
    pub(crate) fn waiting(&self) -> u32 {
        self.produced.wrapping_sub(self.consumed).min(self.size)
    }

    /// Has these be the entries that the kernel takes next, at most as many as the ring has, in
    /// place of those that it has not taken. Such as are left over become ones that it refuses.
    pub(crate) fn put(&mut self, frames: &[Descriptor]) {
        /// Beyond all memory there is.
        const NOWHERE: Descriptor = Descriptor { address: u64::MAX, len: 0 };
        let frames = &frames[..frames.len().min(self.size as usize)];
        let n = frames.len().max(self.waiting() as usize);
        let all = frames.iter().chain(std::iter::repeat(&NOWHERE)).take(n);
        let words = self.shared.words();
        let mut at = self.consumed;
        for Descriptor { address, len } in all {
            let slot = (at & (self.size - 1)) as usize * 2;
            words[slot].store(*address, Relaxed);
            let [a, b, c, d] = len.to_ne_bytes();
            words[slot + 1].store(u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]), Relaxed);
            at = at.wrapping_add(1);
        }
        self.produced = at;
        self.shared.producer().store(at, Release);
    }

    /// How many entries the kernel has taken in a call since the last time this was asked.
    /// `dropped`: it said that it took one in vain, the last.
    pub(crate) fn taken(&mut self, dropped: bool) -> u32 {
        let taken = self.shared.consumer().load(Acquire).wrapping_sub(self.consumed);
        // Its counter stands still, or where it stood, if the first was the one in vain.
        let moved = if taken == 0 || taken > self.waiting() { u32::from(dropped) } else { taken };
        self.consumed = self.consumed.wrapping_add(moved);
        moved
    }
}

/// The ring by which the kernel gives frames back. Which they are is not looked at: some kernels
/// (Linux 6.18) say where a frame was in a place that is overwritten on its way.
pub(crate) struct CompletionRing<S> {
    shared: S,
    size: u32,
    consumed: u32,
}

impl<S: RingIndices> CompletionRing<S> {
    /// The ring in this memory, in which nothing has happened yet.
    pub(crate) fn new(shared: S) -> CompletionRing<S> {
        let size = entries(shared.words().len());
        CompletionRing { shared, size, consumed: 0 }
    }

    /// How many frames came back since this was last asked.
    pub(crate) fn take(&mut self) -> u32 {
        let come = self.shared.producer().load(Acquire);
        let n = come.wrapping_sub(self.consumed).min(self.size);
        self.consumed = self.consumed.wrapping_add(n);
        self.shared.consumer().store(self.consumed, Release);
        n
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::tests::Memory;
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// The kernel's side of a ring, as `__xsk_generic_xmit` of net/xdp/xsk.c has it: how far it has
    /// looked, and how far it has gone.
    struct Kernel {
        memory: Arc<Memory>,
        seen: u32,
        gone: u32,
        /// Whether an entry that it refuses is the end of a call; older ones pass over all of them.
        strict: bool,
    }

    impl Kernel {
        /// Sends up to `budget` frames, of which the one of this number finds no room; what it
        /// sent, and whether there was that one.
        fn call(&mut self, budget: usize, full_at: usize) -> (Vec<u64>, bool) {
            let (mut sent, mut dropped) = (Vec::new(), false);
            loop {
                if self.seen == self.gone {
                    self.memory.consumer().store(self.gone, Release);
                    self.seen = self.memory.producer().load(Acquire);
                }
                let next = loop {
                    if self.seen == self.gone {
                        break None;
                    }
                    let slot = (self.gone & 7) as usize * 2;
                    let address = self.memory.words()[slot].load(Relaxed);
                    if address != u64::MAX {
                        break Some(address);
                    }
                    self.gone = self.gone.wrapping_add(1);
                    if self.strict {
                        break None;
                    }
                };
                let Some(address) = next.filter(|_| sent.len() < budget) else { break };
                self.gone = self.gone.wrapping_add(1);
                if sent.len() == full_at {
                    dropped = true;
                    break;
                }
                sent.push(address);
            }
            if !sent.is_empty() {
                self.memory.consumer().store(self.gone, Release);
            }
            (sent, dropped)
        }
    }

    proptest! {
        /// Whatever the kernel takes or drops: each frame is sent once, in order, but for those
        /// that were given up.
        #[test]
        fn frames_are_sent_once_and_in_order(
            start in prop_oneof![Just(0), u32::MAX - 20..=u32::MAX],
            strict in any::<bool>(),
            steps in proptest::collection::vec(
                (1_usize..9, 0_usize..9, 0_usize..9, any::<bool>()),
                1..60,
            ),
        ) {
            let memory = Memory::new(16, start);
            let shared = Arc::clone(&memory);
            let mut ring = TxRing { produced: start, consumed: start, ..TxRing::new(shared) };
            let mut kernel = Kernel { memory, seen: start, gone: start, strict };
            let (mut next, mut want) = (0_u64, 0_u64);
            for (put, budget, full_at, give_up) in steps {
                let frame = |address| Descriptor { address, len: 60 };
                let frames: Vec<_> = (next..).take(put).map(frame).collect();
                ring.put(&frames);
                let (sent, dropped) = kernel.call(budget, full_at);
                let taken = ring.taken(dropped) as usize;
                let taken = taken.min(put) - usize::from(dropped);
                prop_assert_eq!(sent.len(), taken);
                for address in sent {
                    prop_assert_eq!(address, want);
                    want += 1;
                }
                next += taken as u64;
                if give_up && taken < put {
                    // Frames that nobody will see.
                    next += (put - taken) as u64;
                    want = next;
                }
            }
        }

        #[test]
        fn frames_come_back_once(
            start in prop_oneof![Just(0), u32::MAX - 20..=u32::MAX],
            steps in proptest::collection::vec(0_u32..9, 0..40),
        ) {
            let memory = Memory::new(8, start);
            let shared = Arc::clone(&memory);
            let mut ring = CompletionRing { consumed: start, ..CompletionRing::new(shared) };
            let mut given = start;
            for give in steps {
                given = given.wrapping_add(give.min(8));
                memory.producer().store(given, Release);
                prop_assert_eq!(ring.take(), give.min(8));
                prop_assert_eq!((ring.take(), memory.consumer().load(Acquire)), (0, given));
            }
        }
    }
}
