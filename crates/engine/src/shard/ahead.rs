//! The work of a worker while another has the feed: it fetches what it will read itself.
//!
//! Reading walks from record to record, and most of its time goes into waiting for memory that no
//! core has touched yet; while one worker walks, the others would only wait. So a worker that waits
//! for the feed guesses which bytes it will get (as many as the last turn took, after those of
//! the worker that reads now) and has them fetched into its own cache. When its turn comes the walk
//! is short. Where the guess is wrong, nothing but a little time is lost.

use crate::processor::prefetch;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_packet::source::FrameBatch;

/// Bytes fetched between two looks whether the feed is free.
const BITE: usize = 1 << 10;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a page, the least there is: a page is touched, since fetching ahead does not map it.
const PAGE: usize = 4 << 10;

/// Bytes fetched at most by one worker: they must stay in its second-level cache.
const SPAN_MAX: usize = 256 << 10;

/// Where reading is.
#[derive(Default)]
pub(super) struct Ahead {
    /// The address of the memory that was read from last.
    memory: AtomicUsize,
    /// Where in it the last turn ended.
    at: AtomicUsize,
    /// Bytes that the last turn took; 0: no guess.
    span: AtomicUsize,
    /// Workers that are fetching.
    waiting: AtomicUsize,
}

impl Ahead {
    /// Says which batches a turn has read.
    pub(super) fn note(&self, first: &FrameBatch, last: &FrameBatch) {
        let ((memory, start), (after, end)) = (start(first), end(last));
        let span = if memory == after { end.saturating_sub(start) } else { 0 };
        self.memory.store(after, Ordering::Relaxed);
        self.at.store(end, Ordering::Relaxed);
        self.span.store(span.min(SPAN_MAX), Ordering::Relaxed);
    }

    /// Fetches what this worker will read, until the turn ends that others wait for; returns how
    /// many bytes. `mine` is a batch that this worker read before.
    pub(super) fn fetch(&self, mine: &FrameBatch) -> usize {
        let bytes = (**mine.chunk().0).as_ref();
        let span = self.span.load(Ordering::Relaxed);
        if span == 0 || bytes.as_ptr() as usize != self.memory.load(Ordering::Relaxed) {
            return 0;
        }
        let before = 1 + self.waiting.fetch_add(1, Ordering::Relaxed);
        let now = self.at.load(Ordering::Relaxed);
        let from = now.saturating_add(span * before).min(bytes.len());
        let end = from.saturating_add(span).min(bytes.len());
        let mut at = from;
        while at < end && self.at.load(Ordering::Relaxed) == now {
            let bite = (at + BITE).min(end);
            for line in (at..bite).step_by(LINE) {
                if line % PAGE < LINE {
                    black_box(bytes[line]);
                }
                prefetch(bytes, line);
            }
            at = bite;
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        at - from
    }
}

/// The memory that a batch lies in, and where its first frame starts.
fn start(batch: &FrameBatch) -> (usize, usize) {
    let (chunk, base) = batch.chunk();
    let first = batch.offsets().first().map_or(0, |&offset| offset as usize);
    ((**chunk).as_ref().as_ptr() as usize, base + first)
}

/// The memory that a batch lies in, and where its last frame ends.
fn end(batch: &FrameBatch) -> (usize, usize) {
    let (chunk, base) = batch.chunk();
    let last = batch.offsets().last().zip(batch.caplens().last());
    let end = last.map_or(0, |(&offset, &caplen)| offset as usize + caplen as usize);
    ((**chunk).as_ref().as_ptr() as usize, base + end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weir_packet::source::{Chunk, LinkType};

    fn batch(chunk: &Chunk, offsets: &[u32]) -> FrameBatch {
        let mut batch = FrameBatch::new();
        batch.restart(chunk, 100, LinkType::RAW);
        for (i, &offset) in offsets.iter().enumerate() {
            batch.push(0, i as u64, offset, 50, 50);
        }
        batch
    }

    #[test]
    fn the_bytes_after_the_next_turn_are_fetched() {
        let chunk: Chunk = Arc::new(vec![0u8; 3 * BITE]);
        let ahead = Ahead::default();
        let (first, last) = (batch(&chunk, &[0, 60]), batch(&chunk, &[1000, 1100]));
        assert_eq!(ahead.fetch(&first), 0, "no turn has ended");
        ahead.note(&first, &last);
        assert_eq!((start(&first).1, end(&last).1), (100, 1250));
        assert_eq!(ahead.fetch(&first), 3 * BITE - 1250 - 1150, "up to the end of the memory");
        assert_eq!(ahead.fetch(&FrameBatch::new()), 0, "other memory");
    }
}
