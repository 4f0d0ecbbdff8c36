//! The facts known of the frames of a batch, a column for each.

use crate::interface::CapturePoint;
use crate::limits::BATCH;
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
