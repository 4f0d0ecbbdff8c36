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

/// The number that a program returns, in XDP, for frames that the host is to get.
pub const TO_HOST: i32 = i32::MIN;

/// Interfaces that a program hands frames to: it returns -1 less the number of one or of a set of
/// them, or [`TO_HOST`].
pub struct KernelOutputs {
    /// How many numbers there are.
    pub count: u32,
    /// Numbers, and the interfaces that have them by their numbers in the system.
    pub interfaces: Vec<(u32, u32)>,
    /// Numbers of interfaces that get a frame together, each set in a map of its own: its number is
    /// `count` and its position here.
    pub sets: Vec<Vec<u32>>,
    /// The memory by which the program and the process tell each other about them.
    pub memory: Box<dyn OutputMemory>,
}

/// The memory by which a program and the process tell each other about outputs, by number.
pub trait OutputMemory: Send {
    /// Tells the program how long the longest frame without a VLAN tag is that an interface takes:
    /// 0 while it takes none.
    fn set_longest(&self, output: u32, longest: u64);

    /// Frames and bytes that the program handed to an interface so far.
    fn handed(&self, output: u32) -> (u64, u64);

    /// Counts frames and bytes of these which the interface may have dropped.
    fn doubt(&self, output: u32, traffic: (u64, u64));
}

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
