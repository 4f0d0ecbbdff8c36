//! What compiling gives: the program, its maps, and what it runs of each pipeline.

use crate::table::Table;
use std::fmt;
use weir_ebpf::Code;
use weir_plan::physical::Prefix;

/// Where in the kernel a program meets frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// The filter of an AF_PACKET socket: on packet buffers, before they are copied.
    Socket,
    /// The traffic control hook of an interface (Linux 6.6): on packet buffers, and the host goes
    /// on receiving them.
    Tcx,
    /// XDP: in the driver, before there is a packet buffer; the host does not get what it takes.
    Xdp,
}

/// What a program returns for frames that workers need to see whole.
pub const WHOLE: i32 = i32::MAX;

/// Bytes of stack that a program may use, since another calls it.
pub const STACK_BYTES: i16 = 448;

/// A program for the kernel.
#[derive(Clone, Debug)]
pub struct KernelProgram {
    /// Where it runs.
    pub hook: Hook,
    /// Its instructions: a function of the hook's context (`R1`), which returns how many bytes of
    /// the frame workers need to see. 0: the frame is finished; [`WHOLE`]: all. To the kernel that
    /// is what a socket filter returns. At the other hooks, the program of the capture calls it and
    /// hands frames up; so it has [`STACK_BYTES`] of stack. Maps are named by their position in
    /// `maps`, until [`Code::with_maps`] puts file descriptors there.
    pub code: Code,
    /// The maps that it uses; the first holds the [`FrameCount`]s.
    pub maps: Vec<MapSpec>,
    /// The tables of pipelines that count. Where there are any, the second map is the
    /// [`Control`](crate::Control), and those of the tables follow in this order.
    pub tables: Vec<Table>,
    /// Whether the plan compares the frames that were lost with those that came
    /// (`completeness()`): then the run has to count by time those that the program finished.
    pub asks_for_losses: bool,
    /// Why workers get frames whole: one clause. `None`: of those whose headers the program found
    /// they get no more than these.
    pub whole: Option<String>,
    /// What it runs of each pipeline over packets, in program order.
    pub prefixes: Vec<Prefix>,
}

/// What the program counts of frames: positions of words in the part of each CPU of its first map,
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
}

impl FrameCount {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// Words of 8 bytes that each CPU has of the map: a cache line, since a CPU writes to its own
    /// alone.
    pub const WORDS: usize = 8;
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
