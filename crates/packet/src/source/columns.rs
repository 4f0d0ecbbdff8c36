//! What is known of the frames of a batch, a column for each.

use super::batch::FrameBatch;
use crate::interface::CapturePoint;
use crate::limits::{BATCH, FRAME_MAX};
use crate::walk::Look;

/// A column for each thing that is known of frames.
pub(super) struct FrameColumns {
    pub(super) ts: [i64; BATCH],
    pub(super) seq: [u64; BATCH],
    pub(super) off: [u32; BATCH],
    pub(super) caplen: [u32; BATCH],
    pub(super) len: [u32; BATCH],
    pub(super) look: [Look; BATCH],
    pub(super) ports: [[u16; 2]; BATCH],
    pub(super) point: [CapturePoint; BATCH],
}

impl FrameBatch {
    /// Takes the captured bytes for the length of frames whose record claims more than
    /// [`FRAME_MAX`]: one forged number would outweigh all others in a sum. Returns how many there
    /// are.
    pub fn doubt_lengths(&mut self) -> u64 {
        let FrameColumns { len, caplen, .. } = &mut *self.cols;
        let longest = len[..self.n].iter().fold(0, |most, &len| most.max(len));
        if longest <= FRAME_MAX {
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
