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
