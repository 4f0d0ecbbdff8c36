//! The watermark when each frame of a batch came, for results that other machines merge.

use super::FrameBatch;

impl FrameBatch {
    /// Takes note of the watermark when each frame came. Most runs do not.
    pub fn note_watermarks(&mut self, watermarks: &[i64]) {
        self.watermarks.clear();
        self.watermarks.extend_from_slice(watermarks);
    }

    /// The watermark when the frame of this number came, where it was noted.
    #[inline]
    pub fn watermark_at(&self, number: u64) -> Option<i64> {
        if self.watermarks.is_empty() {
            return None;
        }
        self.watermarks.get(self.seq().binary_search(&number).ok()?).copied()
    }
}
