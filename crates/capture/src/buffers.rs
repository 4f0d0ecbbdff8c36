//! Buffers that batches refer to while they are in flight, used again once none does.

use crate::limits::BUFFERS_KEPT;
use parking_lot::Mutex;
use std::sync::Arc;

/// Memory filled from some position on; reads as the bytes filled so far and not yet consumed.
pub(crate) struct Buffer {
    /// Always initialised to its full length, so that filling needs neither clearing nor unsafe.
    bytes: Vec<u8>,
    start: usize,
    /// Where the filled bytes end.
    end: usize,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

impl Buffer {
    /// Empties the buffer, makes room for `size` bytes, and leaves the first `headroom` of them
    /// for [`Buffer::prepend`].
    fn reset(&mut self, size: usize, headroom: usize) {
        (self.start, self.end) = (headroom, headroom);
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
    }

    /// Bytes filled and not consumed.
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// The memory not filled yet; say with [`Buffer::advance`] how much of it was.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// Counts `n` more bytes as filled.
    pub(crate) fn advance(&mut self, n: usize) {
        self.end = (self.end + n).min(self.bytes.len());
    }

    /// Appends bytes, for which there must be room.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room()[..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Appends bytes; makes room for them where there is none.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.append(bytes);
    }

    /// Puts bytes before the first; `false`, and nothing is done, if there is no room for them.
    pub(crate) fn prepend(&mut self, bytes: &[u8]) -> bool {
        let Some(start) = self.start.checked_sub(bytes.len()) else { return false };
        self.bytes[start..self.start].copy_from_slice(bytes);
        self.start = start;
        true
    }

    /// Drops the first `n` bytes; their place is room to prepend to.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
    }
}

/// Buffers of one size that may still be referred to by batches on any thread.
pub(crate) struct Buffers {
    size: usize,
    kept: Mutex<Vec<Arc<Buffer>>>,
}

impl Buffers {
    /// None yet; they will be of `size` bytes.
    pub(crate) fn new(size: usize) -> Buffers {
        Buffers { size, kept: Mutex::default() }
    }

    /// An empty buffer of at least `size` bytes that nothing else refers to, to be filled from
    /// `headroom` on.
    pub(crate) fn take(&self, size: usize, headroom: usize) -> Arc<Buffer> {
        let free = {
            let mut kept = self.kept.lock();
            let free = kept.iter_mut().position(|b| Arc::get_mut(b).is_some());
            free.map(|i| kept.swap_remove(i))
        };
        let mut buffer =
            free.unwrap_or_else(|| Arc::new(Buffer { bytes: Vec::new(), start: 0, end: 0 }));
        if let Some(b) = Arc::get_mut(&mut buffer) {
            b.reset(size.max(self.size), headroom);
        }
        buffer
    }

    /// Gives a buffer back; batches may still refer to it. Oversized ones are let go.
    pub(crate) fn put(&self, buffer: Arc<Buffer>) {
        let mut kept = self.kept.lock();
        if kept.len() < BUFFERS_KEPT && buffer.bytes.len() <= self.size {
            kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 100;

    #[test]
    fn a_buffer_in_use_is_not_taken() {
        let buffers = Buffers::new(SIZE);
        let first = buffers.take(1, 0);
        let (address, in_flight) = (Arc::as_ptr(&first), Arc::clone(&first));
        buffers.put(first);
        let second = buffers.take(1, 0);
        assert_ne!(Arc::as_ptr(&second), address);
        drop(in_flight);
        assert_eq!(Arc::as_ptr(&buffers.take(1, 0)), address);
    }

    #[test]
    fn few_and_small_ones_are_kept() {
        let buffers = Buffers::new(SIZE);
        let big = buffers.take(SIZE + 1, 0);
        assert_eq!(big.bytes.len(), SIZE + 1);
        buffers.put(big);
        assert!(buffers.kept.lock().is_empty());
        let many: Vec<_> = (0..BUFFERS_KEPT + 1).map(|_| buffers.take(1, 0)).collect();
        many.into_iter().for_each(|b| buffers.put(b));
        assert_eq!(buffers.kept.lock().len(), BUFFERS_KEPT);
    }

    #[test]
    fn what_was_filled_reads_back() {
        let mut buffer = Buffers::new(SIZE).take(1, 0);
        let b = Arc::get_mut(&mut buffer).unwrap();
        b.append(b"ab");
        b.room()[0] = b'c';
        b.advance(1);
        assert_eq!((b.len(), (*b).as_ref()), (3, &b"abc"[..]));
        b.extend(&[b'd'; SIZE]);
        assert_eq!((b.len(), b.room().len()), (SIZE + 3, 0));
        assert_eq!((*b).as_ref()[..5], *b"abcdd");
    }

    #[test]
    fn what_was_consumed_is_room_to_prepend_to() {
        let mut buffer = Buffers::new(SIZE).take(1, 2);
        let b = Arc::get_mut(&mut buffer).unwrap();
        assert_eq!((b.len(), b.room().len()), (0, SIZE - 2));
        b.append(b"cde");
        assert!(!b.prepend(b"xyz"));
        assert!(b.prepend(b"ab"));
        assert_eq!((*b).as_ref(), b"abcde");
        b.consume(4);
        assert_eq!((*b).as_ref(), b"e");
        assert!(!b.prepend(b"vwxyz") && b.prepend(b"wxyz"));
        assert_eq!((b.len(), (*b).as_ref()), (5, &b"wxyze"[..]));
    }
}
