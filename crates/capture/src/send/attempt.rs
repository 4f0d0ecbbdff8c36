//! The result of an attempt to send.

use std::io;
use weir_packet::egress::Refusal;

/// The result of an attempt to send some frames.
pub(super) enum Attempt {
    /// So many frames were taken.
    Took(usize),
    /// The queue is full, and the descriptor becomes writable when there is room.
    Full,
    /// The queue is full, and nothing says when there is room.
    FullUntold,
    /// The first frame can't be sent, for this reason; others may be.
    Refused(Refusal, io::Error),
    /// Nothing can be sent for now.
    Away(Refusal),
    /// The error is that of an earlier frame: try again.
    Again(io::Error),
}
