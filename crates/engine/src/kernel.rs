//! The groups that the kernel level hands to the machine level: of frames that workers never see.
//!
//! A program in the kernel may run the partial half of a `summarize` over packets for frames that
//! nothing else wants. For the machine level it is one more producer: the groups of a window are
//! merged with those of the workers when the window closes. The window of a frame is decided by
//! the clock there, so the feed must have handed out what was counted for a window when the
//! watermark passes its end: the machine level asks for it, and later frames count for later
//! windows.
//!
//! It may run a `scan`, too, in front of what hands packets out. Each key's states are held by one
//! level: a frame that goes up takes those of its key along, so workers ask for them first.
//!
//! Frames that the kernel finished came over the wire, too: `completeness()` compares what was lost
//! with all that came.

use crate::counters::EndCounts;
use std::fmt;
use std::sync::Arc;
use weir_plan::physical::PipelineId;

/// Where groups of the kernel come from.
pub trait KernelFeed: Send + Sync + fmt::Debug {
    /// The pipelines over packets whose frames may be counted in the kernel. Each of them hands
    /// groups over, which need not be at one producer.
    fn pipelines(&self) -> Vec<PipelineId>;

    /// Hands out all groups of a pipeline whose windows (of overlapping ones: panes) start before
    /// this time and were not handed out; of `None` all there are, since the run ends. Frames that
    /// are counted from now on are counted for windows that start at this time or later. Without
    /// windows, groups come out at the end, with start 0.
    fn close(&self, pipeline: PipelineId, before: Option<i64>, out: &mut dyn FnMut(KernelGroups));

    /// Says, before the first packet, that [`KernelFeed::finished_before`] will be asked for
    /// multiples of this span of nanoseconds.
    fn count_by(&self, span_ns: i64);

    /// How many frames the kernel finished before this time, in whichever way: those for which
    /// nothing goes up. The time of a frame is decided by the clock there, as with groups. A number
    /// that was once given for a time stays; at `i64::MAX`, it is how many there are now.
    fn finished_before(&self, time: i64) -> u64;

    /// Says that from now on each frame goes up, and whole, since programs have changed (`true`);
    /// or that the kernel goes on as at the beginning (`false`). The state that it holds stays
    /// there.
    fn hand_up(&self, all: bool);

    /// Whether cells of `first` and `last` come, which are ordered by time.
    fn orders_by_time(&self) -> bool {
        false
    }

    /// Adds what the kernel dropped and handed out so far.
    fn count_ends(&self, _ends: &mut EndCounts) {}

    /// The states that the kernel holds of a `scan`: of the stage at this position of a pipeline
    /// over packets. `None`: it runs none there.
    fn states(&self, _pipeline: PipelineId, _stage: usize) -> Option<Arc<dyn KernelStates>> {
        None
    }
}

/// States of a `scan` that the kernel holds.
pub trait KernelStates: Send + Sync + fmt::Debug {
    /// Says that a worker holds the states of a key from now on, of which it has a row with this
    /// time at hand; returns the states, if the kernel held them. The parts of the key are as in
    /// [`KernelGroups::keys`].
    fn take(&self, key: &[Option<u128>], now: i64) -> Option<KernelState>;
}

/// The states of a key that the kernel held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelState {
    /// The largest time of its frames, in nanoseconds since 1970.
    pub last: i64,
    /// Its states, in the order of the stage: numbers as their bits, truths as 0 and 1.
    pub states: Vec<u64>,
}

/// Groups of one window that the kernel made. Keys may come several times.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct KernelGroups {
    /// When the window starts.
    pub start: i64,
    /// How many groups there are.
    pub groups: usize,
    /// The parts of the key of each group, one group after the other: numbers as their bits,
    /// without those of a sign above 64 bits; addresses as 128 bits; `None` where a part is absent.
    pub keys: Vec<Option<u128>>,
    /// The cells of each group, by aggregate of the plan.
    pub cells: Vec<KernelCell>,
}

/// The result of a group's aggregate in the kernel.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct KernelCell {
    /// The count, the sum, or the least or greatest value, as a signed number; the bits of
    /// `bit_or`; of `any` and `all` bit 0 if a false value was seen, bit 1 if a true one was; of
    /// `first` and `last` the value, of an address its lower half.
    pub word: u64,
    /// How many values it is of; where that does not matter, 1 stands for some.
    pub values: u64,
    /// Of `first` and `last` when the frame came, in nanoseconds since 1970.
    pub time: i64,
    /// Of `first` and `last` of addresses the upper half.
    pub high: u64,
}
