//! Where windows start and end.
//!
//! Times are 128 bits wide where windows slide: one may begin before the first time there is.

use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_plan::TimeZone;

/// The start of the window of length `d` that `t` lies in.
pub(crate) fn window_start(t: i64, d: i64) -> i64 {
    t.checked_sub(t.rem_euclid(d)).unwrap_or(i64::MIN)
}

/// The largest multiple of `d` at or below `t`.
pub(super) fn floor(t: i128, d: i128) -> i128 {
    t.div_euclid(d) * d
}

/// The watermark after sliding windows, when panes that end at or before `closed` have closed:
/// where the first window starts that does not end there.
pub(super) fn downstream(closed: i128, over: i64, every: i64) -> i64 {
    let next = floor(closed - over as i128, every as i128) + every as i128;
    clamp(next)
}

/// Whether a window may start here: some way beyond the times that there are.
pub(super) fn is_start(t: &i128) -> bool {
    t.unsigned_abs() < 1 << 80
}

/// As far as time goes.
pub(super) fn clamp(t: i128) -> i64 {
    t.clamp(i64::MIN as i128, i64::MAX as i128) as i64
}

/// The start of the window that holds all rows, if that is quickly seen: almost always. Its loop
/// goes four times at a time, so that it has wide instructions wherever it is compiled.
pub(super) fn one_window(time: &[u64; BATCH], rows: Bits, every: i64) -> Option<i64> {
    const FAR: i64 = 1 << 62;
    let n = rows.count();
    let start = window_start(time[0] as i64, every);
    // Farther out a difference might not fit.
    if n == 0 || rows != Bits::first(n) || every >= FAR || !(-FAR..FAR).contains(&start) {
        return None;
    }
    // Negative if a time is before the window or after it.
    let outside = |t: u64| {
        let since = (t as i64).wrapping_sub(start);
        since | (every - 1).wrapping_sub(since)
    };
    let (fours, rest) = time[..n].as_chunks::<4>();
    let mut any = [0; 4];
    for four in fours {
        for (any, &t) in any.iter_mut().zip(four) {
            *any |= outside(t);
        }
    }
    let any = rest.iter().fold(any[0] | any[1] | any[2] | any[3], |any, &t| any | outside(t));
    (any >= 0).then_some(start)
}

/// The readings of the clock of a zone at these times.
#[cold]
pub(super) fn clock_times(zone: TimeZone, time: &[u64; BATCH]) -> [u64; BATCH] {
    let mut span = zone.span(time[0] as i64);
    time.map(|t| {
        let t = t as i64;
        if !span.holds(t) {
            span = zone.span(t);
        }
        span.clock(t) as u64
    })
}

/// The rows that came when the watermark had passed the end of their window. `start` is where the
/// window begins that holds a time.
#[cold]
pub(super) fn late_rows(
    time: &[u64; BATCH],
    clock: &[i64],
    start: impl Fn(i64) -> i64,
    rows: Bits,
) -> Bits {
    let is_late = |i: &usize| start(clock[*i]) > start(time[*i] as i64);
    rows.iter().filter(is_late).collect()
}

/// The rows that the watermark had passed when they came.
pub(super) fn passed_rows(times: &[u64; BATCH], clock: &[i64], rows: Bits) -> Bits {
    let differ = times.iter().zip(clock).fold(0, |all, (&ts, &at)| all | ts ^ at as u64);
    if differ == 0 {
        return Bits::NONE;
    }
    rows.and(Bits::from_fn(clock.len().min(BATCH), |i| (times[i] as i64) < clock[i]))
}
