//! Counts that others keep in 32 bits, and that go on over their end.

use std::cell::Cell;

/// How much a count of 32 bits has grown since it was first read.
#[derive(Debug)]
pub(super) struct WrappingCount {
    last: Cell<u32>,
    grown: Cell<u64>,
}

impl WrappingCount {
    /// A count that is `now` at first.
    pub(super) fn new(now: u32) -> WrappingCount {
        WrappingCount { last: Cell::new(now), grown: Cell::new(0) }
    }

    /// The count is `now`; it has been read often enough to have gone over its end once at most.
    pub(super) fn update(&self, now: u32) {
        let more = now.wrapping_sub(self.last.replace(now));
        self.grown.set(self.grown.get() + u64::from(more));
    }

    /// How much it had grown when it was last read.
    pub(super) fn grown(&self) -> u64 {
        self.grown.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_over_their_end() {
        let count = WrappingCount::new(u32::MAX - 1);
        assert_eq!(count.grown(), 0);
        count.update(3);
        assert_eq!(count.grown(), 5);
        count.update(4);
        assert_eq!(count.grown(), 6);
    }
}
