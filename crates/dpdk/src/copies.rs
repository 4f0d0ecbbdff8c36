//! Memory for copies of frames, which batches refer to: reused, and no more of it than a bound.

use std::sync::Arc;

/// The memory of copies, a piece for each batch.
#[derive(Debug)]
pub(crate) struct Copies {
    /// Pieces that batches refer to, or did: few, for each is large.
    all: Vec<Arc<Vec<u8>>>,
    /// Bytes of all pieces, unless a single one takes more.
    bytes_max: usize,
    /// Whether none was to be had when one was last asked for.
    pub(crate) full: bool,
}

impl Copies {
    /// Up to so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Copies {
        Copies { all: Vec::new(), bytes_max, full: false }
    }

    /// An empty piece with room for so many bytes; `None`: batches hold too much.
    pub(crate) fn take(&mut self, need: usize) -> Option<Vec<u8>> {
        let mut fit = None;
        for at in (0..self.all.len()).rev() {
            if Arc::get_mut(&mut self.all[at]).is_none_or(|bytes| bytes.capacity() < need) {
                continue;
            }
            fit = Arc::try_unwrap(self.all.swap_remove(at)).ok();
            break;
        }
        if fit.is_none() {
            // A buffer that nothing refers to, and that is too small, makes room.
            self.all.retain_mut(|piece| Arc::get_mut(piece).is_none());
            let held: usize = self.all.iter().map(|piece| piece.capacity()).sum();
            let room = held == 0 || held.saturating_add(need) <= self.bytes_max;
            fit = room.then(|| Vec::with_capacity(need));
        }
        self.full = fit.is_none();
        fit.as_mut().into_iter().for_each(Vec::clear);
        fit
    }

    /// The memory that a batch refers to, until it is let go.
    pub(crate) fn lend(&mut self, bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let piece = Arc::new(bytes);
        self.all.push(Arc::clone(&piece));
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lend(copies: &mut Copies, need: usize) -> Option<Arc<Vec<u8>>> {
        let mut bytes = copies.take(need)?;
        assert!(bytes.is_empty() && bytes.capacity() >= need);
        bytes.resize(need, 1);
        Some(copies.lend(bytes))
    }

    #[test]
    fn there_is_no_more_memory_than_the_bound_and_it_comes_back() {
        let mut copies = Copies::new(1000);
        let mut held: Vec<_> = (0..3).map(|_| lend(&mut copies, 300).expect("room")).collect();
        assert!(lend(&mut copies, 300).is_none() && copies.full);
        let address = held[1].as_ptr();
        held.remove(1);
        let again = lend(&mut copies, 250).expect("what came back");
        assert!(again.as_ptr() == address && !copies.full, "is used again");
        // A buffer that is too small gives way.
        held.clear();
        held.push(lend(&mut copies, 700).expect("room"));
        assert!(lend(&mut copies, 100).is_none());
        // A single batch is taken, however large.
        drop((held, again));
        let large = lend(&mut copies, 5000).expect("alone");
        assert!(lend(&mut copies, 1).is_none());
        drop(large);
        assert!(lend(&mut copies, 1).is_some());
    }
}
