//! The results of compiling: the program, its maps, and what it runs of each pipeline.

use crate::hook::Hook;
use crate::options::KernelOutlet;
use crate::states::StateTable;
use crate::table::Table;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_ebpf::Code;
use weir_plan::physical::Prefix;

/// The return value of a program for frames that workers need to see whole.
pub const WHOLE: i32 = i32::MAX;

/// The return value of a program for frames that the outlet of this number is to send, or all
/// outlets of one of its [sets](Actions::sets), whose numbers follow.
pub const fn redirect_to(outlet: usize) -> i32 {
    -1 - outlet as i32
}

/// The return value of a program for frames that the host gets.
pub const TO_HOST: i32 = i32::MIN;

/// A program for the kernel.
#[derive(Clone, Debug)]
pub struct KernelProgram {
    /// Where it runs.
    pub hook: Hook,
    /// Its instructions: a function of the hook's context (`R1`), which returns how many bytes of
    /// the frame workers need to see. 0: the frame is finished; [`WHOLE`]: all; in XDP also
    /// [`redirect_to`] an outlet, and [`TO_HOST`]. To the kernel that is what a socket filter
    /// returns. At the other hooks, the program of the capture calls it and hands frames up; so it
    /// has [`STACK_BYTES`](crate::STACK_BYTES) of stack. Maps are named by their position in
    /// `maps`, until [`Code::with_maps`] puts file descriptors there.
    pub code: Code,
    /// The maps that it uses; the first holds the [`FrameCount`]s.
    pub maps: Vec<MapSpec>,
    /// The tables of pipelines that count. Where there are any, the second map is the
    /// [`Control`](crate::Control), and those of the tables follow in this order.
    pub tables: Vec<Table>,
    /// The tables of `scan`s. Their maps follow, of which all programs of a run have the same:
    /// frames of a key may come by several interfaces. Where there are any, there is a
    /// [`Control`](crate::Control), too.
    pub states: Vec<StateTable>,
    /// Whether the plan compares the frames that were lost with those that came
    /// (`completeness()`): then the run has to count by time those that the program finished.
    pub asks_for_losses: bool,
    /// Why workers get frames whole: one clause. `None`: of those whose headers the program found
    /// they get no more than these.
    pub whole: Option<String>,
    /// Where it counts what it does with frames, if it drops any or hands any out: the last map.
    pub actions: Option<Actions>,
    /// The prefix that it runs of each pipeline over packets, in program order.
    pub prefixes: Vec<Prefix>,
}

/// The program's counts of frames: positions of words in the part of each CPU of its first map,
/// which has [`FrameCount::WORDS`] for each CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum FrameCount {
    /// No pipeline wants them.
    Filtered,
    /// Finished in kernel maps.
    Counted,
    /// Some pipeline wants to see them.
    Wanted,
    /// The program can't tell what their layers are.
    Unclear,
    /// A map had no room for their group.
    Full,
    /// Dropped or handed out, as the query says.
    Acted,
}

impl FrameCount {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// Words of 8 bytes that each CPU has of the map: a cache line, since a CPU writes to its own
    /// alone.
    pub const WORDS: usize = 8;

    /// The word after those of so many CPUs. Of a program whose pipelines may come and go it is not
    /// 0 while all frames are to go up, whole.
    pub const fn hand_up(cpus: u32) -> usize {
        cpus as usize * FrameCount::WORDS
    }
}

/// The actions of a program on frames, and where it counts them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actions {
    /// The outlets, in the order of their numbers.
    pub outlets: Vec<KernelOutlet>,
    /// Interfaces that get a frame together: the numbers of their outlets.
    pub sets: Vec<Vec<usize>>,
    /// The memory of this.
    pub memory: ActionMemory,
}

/// The memory that a program which hands frames out shares with the process: of each outlet the
/// length of the longest frame without a VLAN tag that it takes, which the process sets, 0 while it
/// takes none; then of each outlet the frames and bytes that it may have dropped, which the process
/// counts; then what each CPU did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActionMemory {
    /// How many outlets there are.
    pub outlets: usize,
    /// The number after that of the last CPU there may be.
    pub cpus: usize,
}

/// Words of a cache line: CPUs write to their own lines only.
const LINE_WORDS: usize = 8;

impl ActionMemory {
    /// How many words there are.
    pub fn words(self) -> usize {
        self.counts() + self.cpus * self.cpu_words()
    }

    /// The word that says how long a frame for this outlet may be.
    pub fn longest(self, outlet: usize) -> usize {
        outlet
    }

    /// The words that count frames and bytes which this outlet may have dropped.
    pub fn doubted(self, outlet: usize) -> [usize; 2] {
        let first = self.outlets + 2 * outlet;
        [first, first + 1]
    }

    /// The first word of the counts.
    pub(crate) fn counts(self) -> usize {
        (3 * self.outlets).next_multiple_of(LINE_WORDS)
    }

    /// Words of the counts of one CPU: frames and bytes that were dropped, then those of each
    /// outlet.
    pub(crate) fn cpu_words(self) -> usize {
        (2 * (1 + self.outlets)).next_multiple_of(LINE_WORDS)
    }

    /// Frames and bytes that all CPUs dropped, then those that they handed to each outlet.
    pub fn sums(self, words: &[AtomicU64]) -> Vec<(u64, u64)> {
        let mut sums = vec![(0, 0); 1 + self.outlets];
        let counts = words.get(self.counts()..).unwrap_or_default();
        for cpu in counts.chunks_exact(self.cpu_words()) {
            for (sum, pair) in sums.iter_mut().zip(cpu.chunks_exact(2)) {
                sum.0 += pair[0].load(Ordering::Relaxed);
                sum.1 += pair[1].load(Ordering::Relaxed);
            }
        }
        sums
    }
}

/// A map that a program needs: one entry, whose value programs address by `LoadMapValue`, and the
/// process maps into its memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapSpec {
    /// Its name, for listings.
    pub name: String,
    /// Words of 8 bytes.
    pub words: usize,
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hook::Socket => "socket filter",
            Hook::Tcx => "tcx",
            Hook::Xdp => "XDP",
        })
    }
}
