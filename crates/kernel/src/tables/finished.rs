//! Frames that programs in the kernel finished, by time: what `completeness()` needs to know beside
//! the frames that came up.
//!
//! Programs count what they do with frames without looking at a clock. So their counts are read
//! when a window may end, and what they grew by since the reading before is of the windows in
//! between. Where the reading is late, frames count for the window before, as groups do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_capture::ebpf::SharedMemory;
use weir_offload::FrameCount;
use weir_packet::source::KernelCounts;

/// Readings that are kept; frames before the oldest are not told apart from none.
const READINGS_MAX: usize = 65_536;

/// The least time between two readings: 1 ms. Of windows that are shorter, the first has all frames
/// of this time.
const READING_NS: i64 = 1_000_000;

/// The memory in which a program counts frames.
#[derive(Clone, Debug)]
pub struct FrameCounts {
    pub memory: Arc<SharedMemory>,
    /// Whether its last word says that all frames go up, since pipelines may come and go.
    pub may_change: bool,
}

impl FrameCounts {
    /// The sums of all processors.
    pub fn sums(&self) -> KernelCounts {
        let mut sums = [0_u64; FrameCount::COUNT];
        for cpu in self.memory.words().chunks_exact(FrameCount::WORDS) {
            for (sum, word) in sums.iter_mut().zip(cpu) {
                *sum += word.load(Ordering::Relaxed);
            }
        }
        let of = |count: FrameCount| sums[count as usize];
        KernelCounts {
            filtered: of(FrameCount::Filtered),
            counted: of(FrameCount::Counted),
            wanted: of(FrameCount::Wanted),
            unclear: of(FrameCount::Unclear),
            full: of(FrameCount::Full),
            acted: of(FrameCount::Acted),
        }
    }

    /// Lets all frames go up from now on, or as pipelines say.
    pub(super) fn hand_up(&self, all: bool) {
        if let Some(word) = self.memory.words().last().filter(|_| self.may_change) {
            word.store(all.into(), Ordering::SeqCst);
        }
    }
}

/// Readings of how many frames were finished.
#[derive(Debug)]
pub(super) struct FinishedLog {
    /// Lengths of spans of which each start is a time to read.
    spans: Vec<i64>,
    /// Times, and how many frames were finished before; both rise.
    readings: VecDeque<(i64, u64)>,
}

impl FinishedLog {
    /// Begins now: no frame was finished.
    pub(super) fn new(now: i64) -> FinishedLog {
        FinishedLog { spans: Vec::new(), readings: VecDeque::from([(now, 0)]) }
    }

    /// Tells frames apart by spans of this length.
    pub(super) fn count_by(&mut self, span: i64) {
        if span > 0 && !self.spans.contains(&span) {
            self.spans.push(span);
        }
    }

    /// When to read next.
    pub(super) fn next(&self) -> Option<i64> {
        let last = self.last();
        let after = |&span: &i64| window_start(last, span).saturating_add(span);
        let next = self.spans.iter().map(after).min()?;
        Some(next.max(last.saturating_add(READING_NS)))
    }

    /// Notes a reading where it is time for one.
    pub(super) fn tick(&mut self, now: i64, finished: impl FnOnce() -> u64) {
        if self.next().is_some_and(|next| next <= now) {
            let start = |&span: &i64| window_start(now, span);
            let time = self.spans.iter().map(start).max().unwrap_or(now);
            // Of short spans the latest may have begun just after the reading before.
            self.note(time.max(self.last().saturating_add(1)), finished());
        }
    }

    /// How many frames were finished before a time: those of the first reading from then on. Where
    /// there is none yet, that is now.
    pub(super) fn before(&mut self, time: i64, finished: impl FnOnce() -> u64) -> u64 {
        if time == i64::MIN {
            return 0;
        }
        let at = self.readings.partition_point(|reading| reading.0 < time);
        match self.readings.get(at) {
            Some(reading) => reading.1,
            None if time == i64::MAX => finished(),
            None => {
                self.note(time, finished());
                self.readings.back().map_or(0, |reading| reading.1)
            }
        }
    }

    fn last(&self) -> i64 {
        self.readings.back().map_or(i64::MIN, |reading| reading.0)
    }

    fn note(&mut self, time: i64, finished: u64) {
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back((time, finished));
    }
}

/// The start of the window that a time is in.
pub(super) fn window_start(time: i64, every: i64) -> i64 {
    time.saturating_sub(time.rem_euclid(every.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Frames between two times.
    fn between(log: &mut FinishedLog, start: i64, end: i64, now: u64) -> u64 {
        let upto = log.before(start, || now);
        log.before(end, || now) - upto
    }

    #[test]
    fn frames_are_of_the_window_in_which_they_were_finished() {
        let mut log = FinishedLog::new(15 * MS);
        assert_eq!(log.next(), None);
        log.count_by(10 * MS);
        log.count_by(10 * MS);
        log.count_by(20 * MS);
        assert_eq!(log.next(), Some(20 * MS));
        log.tick(19 * MS, || unreachable!("it is no time to read"));
        log.tick(20 * MS, || 5);
        log.tick(30 * MS + 3, || 7);
        assert_eq!(between(&mut log, 10 * MS, 20 * MS, 0), 5);
        assert_eq!(between(&mut log, 20 * MS, 30 * MS, 0), 2);
        // The window at hand has what there is now, and it stays so.
        assert_eq!(between(&mut log, 30 * MS, 40 * MS, 11), 4);
        log.tick(40 * MS, || 13);
        assert_eq!(between(&mut log, 30 * MS, 40 * MS, 99), 4);
        log.tick(50 * MS, || 20);
        assert_eq!(between(&mut log, 40 * MS, 50 * MS, 0), 9);
        assert_eq!(log.before(i64::MAX, || 31), 31);
        assert_eq!(log.before(60 * MS, || 32), 32, "the end is no time");
        assert_eq!(log.before(i64::MIN, || 99), 0);
    }

    #[test]
    fn a_late_reading_is_of_the_windows_before() {
        let mut log = FinishedLog::new(0);
        log.count_by(10 * MS);
        log.tick(10 * MS, || 1);
        log.tick(45 * MS, || 4);
        let all = [1, 2, 3, 4].map(|n| between(&mut log, n * 10 * MS, (n + 1) * 10 * MS, 4));
        assert_eq!(all, [3, 0, 0, 0]);
    }

    #[test]
    fn short_windows_share_a_reading() {
        let mut log = FinishedLog::new(0);
        log.count_by(10);
        assert_eq!(log.next(), Some(MS));
        (1..=10).for_each(|n| log.tick(n * MS, || n as u64));
        assert_eq!(log.before(10 * MS, || 99), 10);
        assert!(log.readings.len() <= 11);
    }

    #[test]
    fn readings_are_bounded() {
        let mut log = FinishedLog::new(0);
        log.count_by(MS);
        let n = READINGS_MAX as i64 + 100;
        (1..=n).for_each(|i| log.tick(i * MS, || i as u64));
        assert_eq!(log.readings.len(), READINGS_MAX);
        assert_eq!(log.before(n * MS, || 0), n as u64);
        // The whole run has what is forgotten, too.
        assert_eq!(log.before(i64::MIN, || 9), 0);
        // It counts for no window.
        assert_eq!(between(&mut log, 0, 10 * MS, 0), 0);
        // A clock that steps back reads nothing.
        log.tick(5 * MS, || unreachable!("it was read"));
    }

    #[test]
    fn times_at_the_ends_of_time() {
        let mut log = FinishedLog::new(0);
        log.count_by(i64::MAX);
        log.count_by(0);
        log.count_by(-5);
        assert_eq!(log.next(), Some(i64::MAX));
        log.tick(i64::MAX, || 3);
        assert_eq!(log.before(i64::MIN, || 9), 0);
        assert_eq!(log.before(i64::MAX, || 9), 3);
    }
}
