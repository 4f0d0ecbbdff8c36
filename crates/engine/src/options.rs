//! How a program is run.

use crate::change::Changes;
use crate::inquiry::Inquiry;
use crate::kernel::KernelFeed;
use crate::limits::{JUMP_NS, LATENESS_NS};
use crate::room::MemoryRoom;
use crate::suppress::SuppressionList;
use crate::table::HashKey;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a program is run. `lateness_ns` and `jump_ns` say what is late. The number of workers
/// changes no row as long as no state reaches its bound.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that process packets; 1 means the calling thread. At most
    /// [`WORKERS_MAX`](crate::limits::WORKERS_MAX).
    pub workers: usize,
    /// How far the watermark stays behind the latest packet, in nanoseconds.
    pub lateness_ns: i64,
    /// How far ahead of the clock one packet may be and still move it, in nanoseconds.
    pub jump_ns: i64,
    /// About how many groups a `summarize` over packets will hold: tables begin with room for so
    /// many, instead of growing to it. A wrong guess changes no row; 0 for no guess.
    pub groups_hint: usize,
    /// The memory that stages [share](crate::room) whose bounds no query names; `None` bounds each
    /// by its default alone.
    pub memory: Option<Arc<MemoryRoom>>,
    /// Set from elsewhere to end the input early: windows close and everything is emitted.
    pub stop: Option<Arc<AtomicBool>>,
    /// The key that tables hash keys with, and that packets are spread by. It changes no row and no
    /// order of rows; but a sender that knows it can slow the run down. Drawn by the system unless
    /// given.
    pub hash_key: HashKey,
    /// Asks from elsewhere what happened so far.
    pub inquiry: Option<Arc<Inquiry>>,
    /// Whether the sink gets [the counts so far](crate::rows::Sink::counted) with each answer to an
    /// inquiry; otherwise it gets those of the end alone. Rows that it makes of them depend on when
    /// somebody asked, and not on the packets alone.
    pub tell_counts: bool,
    /// Alerts that are not reported; the list may change from elsewhere.
    pub suppressions: SuppressionList,
    /// Changes from elsewhere what runs.
    pub changes: Option<Arc<Changes>>,
    /// The kernel's counts of frames that are not among those of the source. A run whose programs
    /// change takes none.
    pub kernel: Option<Arc<dyn KernelFeed>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 1,
            lateness_ns: LATENESS_NS,
            jump_ns: JUMP_NS,
            groups_hint: 0,
            memory: None,
            hash_key: HashKey::random(),
            stop: None,
            inquiry: None,
            tell_counts: false,
            suppressions: SuppressionList::default(),
            changes: None,
            kernel: None,
        }
    }
}
