//! Lengths that records claim and no frame has.

use super::batch::FrameBatch;
use super::columns::FrameColumns;
use crate::limits::FRAME_MAX;
use crate::processor::wide;

impl FrameBatch {
    /// Takes the captured bytes for the length of frames whose record claims more than
    /// [`FRAME_MAX`]: one forged number would outweigh all others in a sum. Returns how many there
    /// are.
    pub fn doubt_lengths(&mut self) -> u64 {
        let FrameColumns { len, caplen, .. } = &mut *self.cols;
        // None is above it where all bits together are not; their greatest takes twice as long.
        let lens = &len[..self.n];
        if wide(|| lens.iter().fold(0, |all, &len| all | len)) <= FRAME_MAX {
            return 0;
        }
        let mut doubted = 0;
        for (len, caplen) in len[..self.n].iter_mut().zip(caplen).filter(|(l, _)| **l > FRAME_MAX) {
            *len = *caplen;
            doubted += 1;
        }
        doubted
    }
}
