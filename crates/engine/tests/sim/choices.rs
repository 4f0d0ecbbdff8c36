//! A tape of random choices that a builder reads.
//!
//! Well-typed programs are made by a plain function that asks the tape at each turn; proptest
//! makes and shrinks the tape. The first of several choices is the simplest one, and a tape that
//! has ended answers with it, so a shrunk tape gives a small program.

/// Random choices, used up one by one.
#[derive(Debug)]
pub(crate) struct Choices {
    tape: Vec<u16>,
    at: usize,
}

impl Choices {
    pub(crate) fn new(tape: Vec<u16>) -> Choices {
        Choices { tape, at: 0 }
    }

    /// A number below `n`; 0 at the end of the tape.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let choice = self.tape.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        choice as usize % n
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }
}
