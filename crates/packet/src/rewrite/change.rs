//! Changes to the bytes of a frame.

use std::ops::Range;

/// Bytes that were changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) at: usize,
    pub(super) len: usize,
    pub(super) before: [u8; 16],
}

impl Change {
    pub(super) fn range(&self) -> Range<usize> {
        self.at..self.at + self.len
    }
}
