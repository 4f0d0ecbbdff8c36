//! Frames given one by one, as a [`Source`]: for tests, examples and generators.

use std::sync::Arc;
use weir_packet::source::{Account, Chunk, FrameBatch, LinkType, Source, SourceError};

/// A source over frames in memory. All go into one chunk, once, when the source is made.
pub struct MemorySource {
    link: LinkType,
    chunk: Chunk,
    frames: Vec<Frame>,
    next: usize,
}

struct Frame {
    ts: i64,
    offset: usize,
    caplen: u32,
    len: u32,
}

impl MemorySource {
    /// A source of `(time in nanoseconds since 1970, length on the wire, captured bytes)`.
    ///
    /// ```
    /// use weir_capture::memory::MemorySource;
    /// use weir_packet::source::{FrameBatch, LinkType, Source};
    ///
    /// let mut source = MemorySource::new(LinkType::RAW, [(5, 60, vec![0x45, 0])]);
    /// let mut batch = FrameBatch::new();
    /// assert!(source.fill(&mut batch)?);
    /// assert_eq!((batch.ts()[0], batch.lens()[0], batch.frame(0)), (5, 60, &[0x45, 0][..]));
    /// assert!(!source.fill(&mut batch)?);
    /// # Ok::<(), weir_packet::source::SourceError>(())
    /// ```
    pub fn new(
        link: LinkType,
        frames: impl IntoIterator<Item = (i64, u32, Vec<u8>)>,
    ) -> MemorySource {
        let mut bytes = Vec::new();
        let frames = frames.into_iter().map(|(ts, len, frame)| {
            let offset = bytes.len();
            bytes.extend_from_slice(&frame);
            Frame { ts, offset, caplen: frame.len() as u32, len }
        });
        let frames = frames.collect();
        MemorySource { link, chunk: Arc::new(bytes), frames, next: 0 }
    }
}

impl Source for MemorySource {
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<bool, SourceError> {
        let rest = &self.frames[self.next..];
        let base = rest.first().map_or(0, |f| f.offset);
        batch.restart(&self.chunk, base, self.link);
        for frame in rest {
            let Ok(offset) = u32::try_from(frame.offset - base) else { break };
            if batch.is_full() {
                break;
            }
            batch.push(frame.ts, self.next as u64, offset, frame.caplen, frame.len);
            self.next += 1;
        }
        Ok(!batch.is_empty())
    }

    fn is_ready(&mut self) -> bool {
        true
    }

    fn account(&self) -> Account {
        let bytes_read = match self.frames[..self.next].last() {
            Some(last) => last.offset as u64 + u64::from(last.caplen),
            None => 0,
        };
        Account { received: self.next as u64, filtered: 0, bytes_read, ..Account::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::limits::BATCH;

    #[test]
    fn frames_come_back_in_order() {
        let n = 2 * BATCH + 1;
        let frames = (0..n).map(|i| (i as i64, 99, vec![i as u8; i % 5]));
        let mut source = MemorySource::new(LinkType::NULL, frames);
        let (mut batch, mut i, mut sizes) = (FrameBatch::new(), 0, Vec::new());
        while source.fill(&mut batch).unwrap() {
            assert_eq!(batch.link, LinkType::NULL);
            sizes.push(batch.len());
            for row in 0..batch.len() {
                assert_eq!((batch.ts()[row], batch.seq()[row]), (i as i64, i as u64));
                assert_eq!(batch.frame(row), vec![i as u8; i % 5]);
                i += 1;
            }
        }
        assert_eq!((i, sizes), (n, vec![BATCH, BATCH, 1]));
        assert!(batch.is_empty());
        let bytes_read = (0..n as u64).map(|i| i % 5).sum();
        let expected =
            Account { received: n as u64, filtered: 0, bytes_read, ..Account::default() };
        assert_eq!(source.account(), expected);
    }

    #[test]
    fn no_frames_at_all() {
        let mut source = MemorySource::new(LinkType::RAW, []);
        assert!(!source.fill(&mut FrameBatch::new()).unwrap());
        assert_eq!(source.account(), Account::default());
    }
}
