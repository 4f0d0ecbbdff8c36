//! The error bound of the system's clock, as the kernel keeps it.
//!
//! The call is sound because adjtimex(2) reads and writes a `struct timex`, which lives on the
//! stack for the length of the call. With no mode set, it changes nothing in the kernel.

use std::time::Duration;

/// By how much the system's clock is off at most, as the kernel knows from what keeps it in step
/// (NTP, PTP); `None` where it is not synchronised, or the kernel does not say.
pub(crate) fn max_error() -> Option<Duration> {
    // SAFETY: plain data, of which zero is a value.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the struct that it reads and writes.
    let said = unsafe { libc::adjtimex(&raw mut state) };
    if said < 0 || said == libc::TIME_ERROR || state.status & libc::STA_UNSYNC != 0 {
        return None;
    }
    // Microseconds, also where the offset is in nanoseconds.
    u64::try_from(state.maxerror).ok().map(Duration::from_micros)
}
