//! Bytes that come in pieces, in any order: of a message in one packet or in several.

use crate::limits::HELLO_MAX;

/// The start of a stream, as much of it as came: at most [`HELLO_MAX`] bytes. Of pieces that
/// overlap, the one that came first holds.
#[derive(Clone, Default, Debug)]
pub struct Pieces {
    /// From the start to the end of the furthest piece; zeros where nothing came.
    bytes: Vec<u8>,
    /// A bit for each of them: whether it came.
    there: Vec<u64>,
    /// So many came from the start on without a gap.
    front: usize,
}

impl Pieces {
    /// Forgets all pieces, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.there.clear();
        self.front = 0;
    }

    /// Adds a piece that starts at `at`, as much of it as lies below the bound; returns how many of
    /// its bytes are new.
    pub fn put(&mut self, at: usize, data: &[u8]) -> usize {
        let Some(room) = HELLO_MAX.checked_sub(at) else { return 0 };
        let data = &data[..data.len().min(room)];
        let end = at + data.len();
        if data.is_empty() || end <= self.front {
            return 0;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.there.resize(end.div_ceil(64), 0);
        }
        let mut new = 0;
        for (i, &byte) in (at..end).zip(data) {
            let (word, bit) = (&mut self.there[i / 64], 1 << (i % 64));
            if *word & bit == 0 {
                *word |= bit;
                self.bytes[i] = byte;
                new += 1;
            }
        }
        let is_there = |i: usize| self.there[i / 64] >> (i % 64) & 1 == 1;
        while self.front < self.bytes.len() && is_there(self.front) {
            self.front += 1;
        }
        new
    }

    /// The bytes that came from the start on without a gap.
    pub fn front(&self) -> &[u8] {
        &self.bytes[..self.front]
    }

    /// Bytes of memory.
    pub fn held(&self) -> usize {
        self.bytes.capacity() + 8 * self.there.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_of_two_holds() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.put(2, b"cd"), 2);
        assert_eq!(pieces.front(), b"");
        assert_eq!(pieces.put(0, b"ABCDE"), 3);
        assert_eq!(pieces.front(), b"ABcdE");
        assert_eq!((pieces.put(1, b"xyz"), pieces.put(5, b"")), (0, 0));
        assert_eq!(pieces.front(), b"ABcdE");
        pieces.clear();
        assert_eq!((pieces.put(1, b"b"), pieces.front()), (1, &b""[..]));
    }

    #[test]
    fn nothing_lies_beyond_the_bound() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.put(HELLO_MAX, b"a"), 0);
        assert_eq!(pieces.put(usize::MAX, b"a"), 0);
        assert_eq!(pieces.put(HELLO_MAX - 1, b"ab"), 1);
        assert_eq!(pieces.put(0, &vec![7; 2 * HELLO_MAX]), HELLO_MAX - 1);
        assert_eq!(pieces.front().len(), HELLO_MAX);
        assert_eq!(pieces.front()[HELLO_MAX - 1], b'a');
        assert!(pieces.held() <= 4 * HELLO_MAX);
    }

    proptest! {
        #[test]
        fn any_order_gives_the_same_bytes(
            cuts in proptest::collection::vec((0_usize..300, 0_usize..90), 0..40),
        ) {
            let all: Vec<u8> = (0..400_u32).map(|i| (i * 7) as u8).collect();
            let mut pieces = Pieces::default();
            let mut there = vec![false; 400];
            for (at, len) in cuts {
                let new = there[at..at + len].iter().filter(|there| !**there).count();
                there[at..at + len].fill(true);
                prop_assert_eq!(pieces.put(at, &all[at..at + len]), new);
                let front = there.iter().take_while(|there| **there).count();
                prop_assert_eq!(pieces.front(), &all[..front]);
            }
        }
    }
}
