//! The frames that a case sends, and the counts of a run.

use super::receiver::Received;

/// The frames that a case sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LiveCase {
    pub(super) bytes: usize,
    pub(super) flows: u32,
}

/// The frames of one run: received, or lost and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LiveRun {
    /// Frames that the sender made.
    pub(super) offered: u64,
    /// Frames that the interface had no room for.
    pub(super) wire: u64,
    pub(super) received: Received,
    /// How they were received, in the receiver's words.
    pub(super) mode: String,
}

impl LiveRun {
    /// Frames per second.
    pub(super) fn rate(&self) -> f64 {
        self.received.rate()
    }

    /// The part of what was offered that was received.
    pub(super) fn share(&self) -> f64 {
        self.received.frames as f64 / self.offered as f64
    }
}
