//! The times of the frames of a batch as their order among those of other probes.

use super::FrameBatch;

impl FrameBatch {
    /// Takes note of a time for each frame, by which it is ordered among frames of other probes.
    /// Most runs do not.
    pub fn note_times(&mut self, times: &[i64]) {
        self.noted_times.clear();
        self.noted_times.extend_from_slice(times);
    }

    /// The time of the frame of this number, where it was noted.
    #[inline]
    pub fn noted_time(&self, number: u64) -> Option<i64> {
        if self.noted_times.is_empty() {
            return None;
        }
        self.noted_times.get(self.seq().binary_search(&number).ok()?).copied()
    }
}
