//! Frames that batches refer to, until none does.
//!
//! A batch refers to memory that others fill (a UMEM of AF_XDP, buffers of DPDK) by a [`Chunk`],
//! which is the whole of it. Each loan has a chunk of its own, so that its reference count says
//! whether some batch still reads its frames; when it is down to ours, they can be filled again.
//! Loans are made once and used again and again.

use crate::limits::LOANS_MAX;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_packet::source::Chunk;

/// Loans out that are looked at each time, besides those at the front: more than come in between.
const LOOKS: usize = 4;

/// Frames of one batch.
struct Loan {
    chunk: Chunk,
    /// Where each frame's room starts in the memory.
    frames: Vec<u32>,
}

/// The loans of one piece of memory.
pub struct Loans {
    free: Vec<Loan>,
    /// In the order they were made, nearly.
    out: VecDeque<Loan>,
    /// Where to look next.
    next: usize,
    frames_out: usize,
}

impl Loans {
    /// As many as there can be, of memory that a chunk each refers to.
    pub fn new(frames: usize, mut chunk: impl FnMut() -> Chunk) -> Loans {
        let n = frames.clamp(1, LOANS_MAX);
        let loan = |_| Loan { chunk: chunk(), frames: Vec::new() };
        Loans {
            free: (0..n).map(loan).collect(),
            out: VecDeque::with_capacity(n),
            next: 0,
            frames_out: 0,
        }
    }

    /// Whether a batch can be lent.
    pub fn can_lend(&self) -> bool {
        !self.free.is_empty()
    }

    /// Frames that batches refer to.
    pub fn frames_out(&self) -> usize {
        self.frames_out
    }

    /// Lends frames, those that `take` puts into the list. It gets the chunk by which a batch is to
    /// refer to them. Whether there was a loan to make.
    pub fn lend(&mut self, take: impl FnOnce(&Chunk, &mut Vec<u32>)) -> bool {
        let Some(mut loan) = self.free.pop() else { return false };
        loan.frames.clear();
        take(&loan.chunk, &mut loan.frames);
        self.frames_out += loan.frames.len();
        self.out.push_back(loan);
        true
    }

    /// Takes frames back that no batch refers to any more: `give` gets them. Looks at the oldest
    /// loans and some others, at all of them with `thorough`.
    pub fn collect(&mut self, thorough: bool, mut give: impl FnMut(&[u32])) {
        while self.out.front_mut().is_some_and(returned) {
            self.end(0, &mut give);
        }
        let looks = if thorough { self.out.len() } else { LOOKS.min(self.out.len()) };
        for _ in 0..looks {
            if self.next >= self.out.len() {
                self.next = 0;
            }
            if self.out.get_mut(self.next).is_some_and(returned) {
                self.end(self.next, &mut give);
            } else {
                self.next += 1;
            }
        }
    }

    fn end(&mut self, at: usize, give: &mut impl FnMut(&[u32])) {
        // Of two ways to close the gap the shorter; the order need not be kept for good.
        if let Some(loan) = self.out.remove(at) {
            self.frames_out -= loan.frames.len();
            give(&loan.frames);
            self.free.push(loan);
        }
    }
}

/// Whether nobody else refers to the chunk. Reads by others through it happened before.
fn returned(loan: &mut Loan) -> bool {
    Arc::get_mut(&mut loan.chunk).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn loans(n: usize) -> Loans {
        let memory: Arc<Vec<u8>> = Arc::new(vec![0; 64]);
        // A chunk each, of the same memory.
        struct View(Arc<Vec<u8>>);
        impl AsRef<[u8]> for View {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Loans::new(n, || Arc::new(View(Arc::clone(&memory))))
    }

    fn lend(loans: &mut Loans, frames: &[u32]) -> Option<Chunk> {
        let mut held = None;
        loans.lend(|chunk, list| {
            list.extend(frames);
            held = Some(Arc::clone(chunk));
        });
        held
    }

    #[test]
    fn frames_come_back_when_their_batch_is_let_go() {
        let mut loans = loans(2);
        let first = lend(&mut loans, &[1, 2]);
        let second = lend(&mut loans, &[3]);
        assert!(!loans.can_lend() && lend(&mut loans, &[9]).is_none());
        let mut back = Vec::new();
        loans.collect(true, |frames| back.extend_from_slice(frames));
        assert!(back.is_empty());
        assert_eq!(loans.frames_out(), 3);
        // The later one first: the older does not hold it up.
        drop(second);
        loans.collect(false, |frames| back.extend_from_slice(frames));
        assert_eq!((&back[..], loans.frames_out(), loans.can_lend()), (&[3][..], 2, true));
        drop(first);
        loans.collect(false, |frames| back.extend_from_slice(frames));
        assert_eq!((&back[..], loans.frames_out()), (&[3, 1, 2][..], 0));
    }

    proptest! {
        /// Whatever is held how long: no frame is lent twice at a time, and all come back.
        #[test]
        fn each_frame_is_in_one_place(
            steps in proptest::collection::vec((0_usize..4, 0_usize..6, any::<bool>()), 0..80),
        ) {
            let mut free: Vec<u32> = (0..24).collect();
            let mut loans = loans(6);
            let mut held: Vec<(Chunk, Vec<u32>)> = Vec::new();
            for (take, drop_at, thorough) in steps {
                let frames: Vec<u32> = free.iter().take(take).copied().collect();
                if let Some(chunk) = lend(&mut loans, &frames) {
                    free.drain(..frames.len());
                    held.push((chunk, frames));
                }
                if drop_at < held.len() {
                    held.swap_remove(drop_at);
                }
                loans.collect(thorough, |frames| free.extend_from_slice(frames));
                if thorough {
                    let out: usize = held.iter().map(|(_, frames)| frames.len()).sum();
                    prop_assert_eq!(loans.frames_out(), out);
                }
                for (_, frames) in &held {
                    prop_assert!(frames.iter().all(|f| !free.contains(f)));
                }
            }
            held.clear();
            loans.collect(true, |frames| free.extend_from_slice(frames));
            free.sort_unstable();
            prop_assert_eq!(free, (0..24).collect::<Vec<_>>());
        }
    }
}
