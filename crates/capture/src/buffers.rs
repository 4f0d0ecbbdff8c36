//! Buffers that batches refer to while they are in flight, used again once none does.

use crate::limits::{BUFFERS_KEPT, STREAM_BUFFER};
use std::sync::Arc;

/// Memory filled from the front; reads as the bytes filled so far.
pub(crate) struct Buffer {
    /// Always initialised to its full length, so that filling needs neither clearing nor unsafe.
    bytes: Vec<u8>,
    filled: usize,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Buffer {
    /// Empties the buffer and makes room for `size` bytes.
    fn reset(&mut self, size: usize) {
        self.filled = 0;
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
    }

    /// Bytes filled.
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// The memory not filled yet; say with [`Buffer::advance`] how much of it was.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.filled..]
    }

    /// Counts `n` more bytes as filled.
    pub(crate) fn advance(&mut self, n: usize) {
        self.filled = (self.filled + n).min(self.bytes.len());
    }

    /// Appends bytes, for which there must be room.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room()[..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }
}

/// Buffers that may still be referred to by batches on any thread.
#[derive(Default)]
pub(crate) struct Buffers {
    kept: Vec<Arc<Buffer>>,
}

impl Buffers {
    /// An empty buffer of at least `size` bytes that nothing else refers to.
    pub(crate) fn take(&mut self, size: usize) -> Arc<Buffer> {
        let size = size.max(STREAM_BUFFER);
        let free = self.kept.iter_mut().position(|b| Arc::get_mut(b).is_some());
        let mut buffer = match free {
            Some(i) => self.kept.swap_remove(i),
            None => Arc::new(Buffer { bytes: Vec::new(), filled: 0 }),
        };
        if let Some(b) = Arc::get_mut(&mut buffer) {
            b.reset(size);
        }
        buffer
    }

    /// Gives a buffer back; batches may still refer to it. Oversized ones are let go.
    pub(crate) fn put(&mut self, buffer: Arc<Buffer>) {
        if self.kept.len() < BUFFERS_KEPT && buffer.bytes.len() <= STREAM_BUFFER {
            self.kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_in_use_is_not_taken() {
        let mut buffers = Buffers::default();
        let first = buffers.take(1);
        let (address, in_flight) = (Arc::as_ptr(&first), Arc::clone(&first));
        buffers.put(first);
        let second = buffers.take(1);
        assert_ne!(Arc::as_ptr(&second), address);
        drop(in_flight);
        assert_eq!(Arc::as_ptr(&buffers.take(1)), address);
    }

    #[test]
    fn few_and_small_ones_are_kept() {
        let mut buffers = Buffers::default();
        let big = buffers.take(STREAM_BUFFER + 1);
        assert_eq!(big.bytes.len(), STREAM_BUFFER + 1);
        buffers.put(big);
        assert!(buffers.kept.is_empty());
        let many: Vec<_> = (0..BUFFERS_KEPT + 1).map(|_| buffers.take(1)).collect();
        many.into_iter().for_each(|b| buffers.put(b));
        assert_eq!(buffers.kept.len(), BUFFERS_KEPT);
    }

    #[test]
    fn what_was_filled_reads_back() {
        let mut buffer = Buffers::default().take(1);
        let b = Arc::get_mut(&mut buffer).unwrap();
        b.append(b"ab");
        b.room()[0] = b'c';
        b.advance(1);
        assert_eq!((b.len(), (*b).as_ref()), (3, &b"abc"[..]));
    }
}
