//! How long a run took. The one place that looks at a clock.

use crate::sys::{self, Who};
use std::io;
use std::time::{Duration, Instant};

/// Time spent between two moments.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Spent {
    /// CPU time of this process in user mode: what the machine's other work disturbs least.
    pub(crate) user: Duration,
    /// Time on the wall.
    pub(crate) wall: Duration,
}

/// Does `work` and says what it took.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> io::Result<(T, Spent)> {
    let (user, wall) = (sys::cpu_time(Who::Me)?.user, Instant::now());
    let result = work();
    let wall = wall.elapsed();
    let user = sys::cpu_time(Who::Me)?.user.saturating_sub(user);
    Ok((result, Spent { user, wall }))
}

/// Time of a whole process, from its start to its end.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Whole {
    /// CPU time in user mode and in the kernel.
    pub(crate) cpu: Duration,
    /// Time on the wall.
    pub(crate) wall: Duration,
}

/// Does `work`, which starts a process and waits for it, and says what that process took. Nothing
/// else may start processes meanwhile.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn time_child<T>(work: impl FnOnce() -> T) -> io::Result<(T, Whole)> {
    let (before, wall) = (sys::cpu_time(Who::Children)?, Instant::now());
    let result = work();
    let wall = wall.elapsed();
    let after = sys::cpu_time(Who::Children)?;
    let cpu = (after.user + after.system).saturating_sub(before.user + before.system);
    Ok((result, Whole { cpu, wall }))
}

/// Two clocks: the wall's and this thread's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), cpu: sys::thread_time() }
    }

    /// Since the start: time on the wall, and CPU time of this thread.
    pub(crate) fn read(&self) -> Whole {
        let cpu = sys::thread_time().saturating_sub(self.cpu);
        Whole { cpu, wall: self.wall.elapsed() }
    }
}

/// A moment to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm(Instant);

impl Alarm {
    /// So long from now.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn after(time: Duration) -> Alarm {
        Alarm(Instant::now() + time)
    }

    /// Whether it has come.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.0
    }
}

/// Does nothing for some milliseconds.
#[expect(clippy::disallowed_methods, reason = "what is measured goes on meanwhile")]
pub(crate) fn pause_ms(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Does nothing until the stopwatch shows this time.
#[expect(clippy::disallowed_methods, reason = "what is sent at a rate waits between")]
pub(crate) fn pause_until(watch: &Stopwatch, time: Duration) {
    std::thread::sleep(time.saturating_sub(watch.read().wall));
}

/// Frames of a wire, and how many came within a window of time that begins some time after the
/// first of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// From the first frame to the window, and from there to its end.
    warm_up: Duration,
    length: Duration,
    /// All so far.
    pub(crate) frames: u64,
    first: Option<Instant>,
    opened: Option<(Instant, u64)>,
    closed: Option<(Instant, u64)>,
}

impl Window {
    /// Of this length, after so long a warm-up.
    pub(crate) fn new(warm_up: Duration, length: Duration) -> Window {
        Window { warm_up, length, frames: 0, first: None, opened: None, closed: None }
    }

    /// Some frames were processed; at least one. They count from the moment at which this is said.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn add(&mut self, frames: usize) {
        self.frames += frames as u64;
        if self.closed.is_some() {
            return;
        }
        let now = Instant::now();
        let first = *self.first.get_or_insert(now);
        match self.opened {
            None if now - first >= self.warm_up => self.opened = Some((now, self.frames)),
            Some((opened, _)) if now - opened >= self.length => {
                self.closed = Some((now, self.frames));
            }
            _ => {}
        }
    }

    /// Frames within the window, and how long it was; nothing where it did not come to its end.
    pub(crate) fn read(&self) -> Option<(u64, Duration)> {
        let ((from, before), (to, after)) = (self.opened?, self.closed?);
        Some((after - before, to - from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_what_comes_within_it() {
        let mut none = Window::new(Duration::from_secs(1000), Duration::from_secs(1));
        (0..10).for_each(|_| none.add(3));
        assert_eq!((none.frames, none.read()), (30, None));
        let mut at_once = Window::new(Duration::ZERO, Duration::ZERO);
        at_once.add(5);
        assert_eq!(at_once.read(), None);
        at_once.add(7);
        at_once.add(100);
        assert_eq!((at_once.frames, at_once.read().map(|(n, _)| n)), (112, Some(7)));
    }
}
