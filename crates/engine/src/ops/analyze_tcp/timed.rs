//! Segments whose acknowledgment is waited for, each with the time when it was sent.

use super::segment::after;

/// Segments of a direction that are timed at once.
const TIMED: usize = 8;

/// Words of a direction: ends of segments, two a word, then times.
pub(super) const WORDS: usize = TIMED / 2 + TIMED;

/// The segments of one direction that are timed. Segments that are held come first, by their ends.
pub(super) struct Timed<'a> {
    words: &'a mut [u64],
    len: &'a mut u8,
}

impl Timed<'_> {
    /// The segments that `words` hold, `len` of them.
    pub(super) fn new<'a>(words: &'a mut [u64], len: &'a mut u8) -> Timed<'a> {
        Timed { words, len }
    }

    fn held(&self) -> usize {
        usize::from(*self.len).min(TIMED)
    }

    fn end(&self, i: usize) -> u32 {
        (self.words[i / 2] >> (i % 2 * 32)) as u32
    }

    fn put(&mut self, i: usize, end: u32, time: i64) {
        let shift = i % 2 * 32;
        let word = &mut self.words[i / 2];
        *word = *word & !(0xffff_ffff << shift) | u64::from(end) << shift;
        self.words[TIMED / 2 + i] = time as u64;
    }

    /// Forgets the first `n`.
    fn forget_first(&mut self, n: usize) {
        for i in n..self.held() {
            let (end, time) = (self.end(i), self.words[TIMED / 2 + i] as i64);
            self.put(i - n, end, time);
        }
        *self.len -= n as u8;
    }

    /// Times a segment that ends there, beyond all others. Where too many are timed already, it is
    /// not.
    pub(super) fn sent(&mut self, end: u32, time: i64) {
        let n = self.held();
        if n < TIMED {
            self.put(n, end, time);
            *self.len += 1;
        }
    }

    /// Forgets the segments that end after this sequence number: it was sent again, so nobody knows
    /// which of the two an acknowledgment answers (Karn and Partridge 1987; RFC 6298, section 3).
    pub(super) fn sent_again(&mut self, seq: u32) {
        let n = self.held();
        *self.len = (0..n).find(|&i| after(self.end(i), seq)).unwrap_or(n) as u8;
    }

    /// Takes an acknowledgment; the time when the segment was sent that ends just there.
    pub(super) fn acknowledged(&mut self, ack: u32) -> Option<i64> {
        let covered = (0..self.held()).take_while(|&i| !after(self.end(i), ack)).count();
        let last = covered.checked_sub(1)?;
        let time = self.words[TIMED / 2 + last] as i64;
        let exact = self.end(last) == ack;
        self.forget_first(covered);
        exact.then_some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgment_finds_the_segment_that_ends_there() {
        let (mut words, mut len) = ([0; WORDS], 0);
        let mut timed = Timed::new(&mut words, &mut len);
        // Across the wrap.
        for i in 0..10u32 {
            timed.sent((u32::MAX - 30).wrapping_add(10 * i), i64::from(i));
        }
        assert_eq!(timed.held(), TIMED);
        assert_eq!(timed.acknowledged(u32::MAX - 31), None);
        assert_eq!(timed.acknowledged(u32::MAX - 20), Some(1));
        assert_eq!(timed.acknowledged(u32::MAX - 20), None);
        assert_eq!(timed.acknowledged(u32::MAX - 5), None);
        // u32::MAX - 30 + 50 = 19 after the wrap.
        assert_eq!(timed.held(), 5);
        assert_eq!(timed.acknowledged(19), Some(5));
        timed.sent_again(29);
        assert_eq!(timed.held(), 1);
        assert_eq!(timed.acknowledged(39), None);
        assert_eq!(timed.held(), 0);
    }
}
