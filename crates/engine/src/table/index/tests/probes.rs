//! Counts how many times four slots are looked at, by one thread, so that tests can say what keys
//! cost without a clock.

use std::cell::Cell;

thread_local! {
    static PROBES: Cell<usize> = const { Cell::new(0) };
}

/// Counts some.
pub(crate) fn count(probes: usize) {
    PROBES.with(|all| all.set(all.get() + probes));
}

/// How many there are in a call of `work`, of this thread.
pub(crate) fn during(work: impl FnOnce()) -> usize {
    let before = PROBES.with(Cell::get);
    work();
    PROBES.with(Cell::get) - before
}
