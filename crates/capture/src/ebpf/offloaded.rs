//! What a query does with frames in the kernel, before a capture takes them.

use crate::sys::bpf::SharedMemory;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_ebpf::Code;
use weir_packet::source::Account;

/// A program of a query at a hook of one interface. The program of the capture calls it for each
/// frame, and hands up what it says.
#[derive(Clone)]
pub struct Offloaded {
    /// A function of the hook's context (`R1`), with the descriptors of its maps: how many bytes of
    /// the frame go up; 0: it is finished. It may use 448 bytes of stack.
    pub code: Code,
    /// Whether it may say fewer bytes than a frame has.
    pub trims: bool,
    /// Where it counts the frames that it finishes.
    pub counts: OffloadedCounts,
}

/// Numbers of 64 bits in memory that a program shares with this process, by CPU.
#[derive(Clone)]
pub struct OffloadedCounts {
    /// The memory.
    pub memory: Arc<SharedMemory>,
    /// How many numbers each CPU has.
    pub words: usize,
    /// Which of them are of frames that are finished, since no pipeline wants them or all that do
    /// aggregate in the kernel.
    pub finished: Vec<usize>,
}

impl OffloadedCounts {
    /// The sum of a number over all CPUs.
    pub fn sum(&self, word: usize) -> u64 {
        let by_cpu = self.memory.words().chunks_exact(self.words.max(1));
        by_cpu.filter_map(|words| words.get(word)).map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Frames that the program finished.
    pub fn finished(&self) -> u64 {
        self.finished.iter().map(|&word| self.sum(word)).sum()
    }

    /// Adds the frames that the program finished to what the capture handed out.
    pub(crate) fn add_to(&self, account: &mut Account) {
        let finished = self.finished();
        account.received += finished;
        account.filtered += finished;
    }
}

impl fmt::Debug for Offloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.code.instructions().len();
        write!(f, "Offloaded({n} instructions, trims: {})", self.trims)
    }
}
