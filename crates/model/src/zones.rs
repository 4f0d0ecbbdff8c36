//! Time zones of the naive model: each answer by looking at all changes.

use weir_plan::TimeZone;

/// The distance from UTC at first, and when it changed, and to what.
type Changes<'a> = (i64, &'a [(i64, i64)]);

fn changes(zone: TimeZone) -> Changes<'static> {
    (zone.first(), zone.changes())
}

/// Each time within which the distance from UTC is the same: its first moment, the first after it,
/// and the distance.
fn spans((first, changes): Changes<'_>) -> impl Iterator<Item = (i128, i128, i128)> {
    let starts = [(i64::MIN, first)].into_iter().chain(changes.iter().copied());
    let ends = changes.iter().map(|(at, _)| i128::from(*at)).chain([i128::from(i64::MAX) + 1]);
    starts.zip(ends).map(|((from, offset), end)| (from.into(), end, offset.into()))
}

/// The local time at a time, as if it were UTC.
pub(super) fn local(zone: TimeZone, t: i64) -> i64 {
    let t = i128::from(t);
    let span = spans(changes(zone)).find(|(from, end, _)| (*from..*end).contains(&t));
    clamp(t + span.expect("they are all times").2)
}

/// The latest local time that there has been at a time.
pub(super) fn clock(zone: TimeZone, t: i64) -> i64 {
    clock_by(changes(zone), t)
}

fn clock_by(changes: Changes<'_>, t: i64) -> i64 {
    let t = i128::from(t);
    let begun = spans(changes).filter(|(from, ..)| *from <= t);
    clamp(begun.map(|(_, end, offset)| t.min(end - 1) + offset).max().expect("one has begun"))
}

/// The first time at which the clock shows this or more.
pub(super) fn when(zone: TimeZone, shown: i64) -> i64 {
    when_by(changes(zone), shown)
}

fn when_by(changes: Changes<'_>, shown: i64) -> i64 {
    let all = spans(changes).map(|(from, end, offset)| (from.max(i128::from(shown) - offset), end));
    let first = all.filter(|(t, end)| t < end).map(|(t, _)| t).min();
    match shown {
        i64::MIN => i64::MIN,
        _ => first.map_or(i64::MAX, clamp),
    }
}

/// The start of the window of length `every`, more than 0, that a time lies in. Changes by a
/// multiple of the length do not concern it.
pub(super) fn bin(zone: TimeZone, t: i64, every: i64) -> Option<i64> {
    let floor = |t: i64| t.checked_sub(t.rem_euclid(every));
    if !zone.moves(every) {
        return floor(t);
    }
    let (mut before, mut offset) = (zone.first(), zone.first());
    let mut concerning = Vec::new();
    for (at, next) in zone.changes() {
        if (next - before) % every != 0 {
            offset += next - before;
            concerning.push((*at, offset));
        }
        before = *next;
    }
    let by = (zone.first(), &concerning[..]);
    Some(when_by(by, floor(clock_by(by, t))?))
}

/// The start of the first window that a time lies in, of windows of length `every` from `start` on:
/// whole ones are left out where clocks are set forward.
pub(super) fn first_shown(zone: TimeZone, start: i128, every: i128) -> i128 {
    let gap = gaps(zone).find(|(from, to)| (*from..*to).contains(&start));
    start + gap.map_or(0, |(_, to)| (to - start) / every * every)
}

/// How many windows of length `every`, at multiples of it, are left out like that of those which
/// start from `from` on and before `to`.
pub(super) fn count_left_out(zone: TimeZone, (from, to): (i128, i128), every: i128) -> i128 {
    let of = |(first, end): (i128, i128)| {
        let first = (first.max(from) + every - 1).div_euclid(every);
        let last = (end - every).min(to - 1).div_euclid(every);
        (last - first + 1).max(0)
    };
    gaps(zone).map(of).sum()
}

/// The first reading that each change leaves out, and the first after these.
fn gaps(zone: TimeZone) -> impl Iterator<Item = (i128, i128)> {
    let times = zone.changes().iter().map(|(at, _)| *at);
    let gap = move |at| (i128::from(clock(zone, at - 1)) + 1, i128::from(clock(zone, at)));
    times.map(gap).filter(|(from, to)| from < to)
}

/// As far as time goes.
fn clamp(t: i128) -> i64 {
    t.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
