//! Time zones of the naive model: each answer by looking at all changes.

use weir_plan::TimeZone;

/// Each time within which the distance from UTC is the same: its first moment, the first after it,
/// and the distance.
fn spans(zone: TimeZone) -> impl Iterator<Item = (i128, i128, i128)> {
    let starts = [(i64::MIN, zone.first())].into_iter().chain(zone.changes().iter().copied());
    let ends =
        zone.changes().iter().map(|(at, _)| i128::from(*at)).chain([i128::from(i64::MAX) + 1]);
    starts.zip(ends).map(|((from, offset), end)| (from.into(), end, offset.into()))
}

/// The local time at a time, as if it were UTC.
pub(super) fn local(zone: TimeZone, t: i64) -> i64 {
    let t = i128::from(t);
    let span = spans(zone).find(|(from, end, _)| (*from..*end).contains(&t));
    clamp(t + span.expect("they are all times").2)
}

/// The latest local time that there has been at a time.
pub(super) fn clock(zone: TimeZone, t: i64) -> i64 {
    let t = i128::from(t);
    let begun = spans(zone).filter(|(from, ..)| *from <= t);
    clamp(begun.map(|(_, end, offset)| t.min(end - 1) + offset).max().expect("one has begun"))
}

/// The first time at which the clock shows this or more.
pub(super) fn when(zone: TimeZone, shown: i64) -> i64 {
    let all = spans(zone).map(|(from, end, offset)| (from.max(i128::from(shown) - offset), end));
    let first = all.filter(|(t, end)| t < end).map(|(t, _)| t).min();
    match shown {
        i64::MIN => i64::MIN,
        _ => first.map_or(i64::MAX, clamp),
    }
}

/// As far as time goes.
fn clamp(t: i128) -> i64 {
    t.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
