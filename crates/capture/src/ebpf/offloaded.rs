//! Programs of queries, which see frames in the kernel before a capture takes them.

use std::fmt;
use weir_ebpf::Code;
use weir_packet::source::{Account, KernelCounts};

/// A program of a query at the XDP or traffic control hook of one interface. The program of the
/// capture calls it for each frame, and hands up what it says.
pub struct Offloaded {
    /// A function of the hook's context (`R1`), with the descriptors of its maps: how many bytes of
    /// the frame go up; 0: it is finished. It may use 448 bytes of stack.
    pub code: Code,
    /// Whether it may say fewer bytes than a frame has.
    pub trims: bool,
    /// Reads what it has counted, without a system call.
    pub counts: ReadCounts,
    /// The interfaces that it hands frames to by itself, in XDP.
    pub outputs: Option<KernelOutputs>,
}

/// What a program returns, in XDP, for frames that the host is to get.
pub const TO_HOST: i32 = i32::MIN;

/// Interfaces that a program hands frames to: it returns -1 less the number of one, or
/// [`TO_HOST`].
pub struct KernelOutputs {
    /// How many numbers there are.
    pub count: u32,
    /// Numbers, and the interfaces that have them by their numbers in the system.
    pub interfaces: Vec<(u32, u32)>,
    /// Tells the program how long the longest frame is that an interface takes.
    pub set_longest: SetLongest,
}

/// Tells a program how long the longest frame is that the interface of a number takes: 0 while it
/// takes none.
pub type SetLongest = Box<dyn Fn(u32, u64) + Send>;

/// Reads what a program has counted.
pub type ReadCounts = Box<dyn Fn() -> KernelCounts + Send>;

/// Adds what a program finished to what the capture handed out.
pub(crate) fn add_finished(counts: Option<&ReadCounts>, account: &mut Account) {
    if let Some(counts) = counts {
        account.kernel = counts();
        account.received += account.kernel.finished();
    }
}

impl fmt::Debug for Offloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.code.instructions().len();
        write!(f, "Offloaded({n} instructions, trims: {})", self.trims)
    }
}
