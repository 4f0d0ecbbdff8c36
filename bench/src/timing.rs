//! How long a run took. The one place that looks at a clock.

use crate::sys;
use std::io;
use std::time::{Duration, Instant};

/// Time spent between two moments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spent {
    /// CPU time of this process in user mode: what the machine's other work disturbs least.
    pub(crate) user: Duration,
    /// Time on the wall.
    pub(crate) wall: Duration,
}

/// Does `work` and says what it took.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> io::Result<(T, Spent)> {
    let (user, wall) = (sys::user_time()?, Instant::now());
    let result = work();
    let wall = wall.elapsed();
    Ok((result, Spent { user: sys::user_time()?.saturating_sub(user), wall }))
}
