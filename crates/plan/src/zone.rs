//! Time zones, as the times at which their distance from UTC changes.
//!
//! A plan has these times in it: neither the engine nor another machine has to know a zone by its
//! name, and two machines that know a zone otherwise have different plans.
//!
//! Windows need a time that does not fall, as local time does where clocks are set back. So the
//! *clock* of a zone stands still then, until local time has come further. Windows are multiples of
//! their length by this clock: a day is one of 23 hours where clocks are set forward, and of 25
//! where they are set back; an hour that comes twice is in one window of two hours.
//!
//! A change by a multiple of their length does not concern windows: before and after it, local
//! clocks show multiples of the length at the same moments. So windows go by [a zone without such
//! changes](TimeZone::by), in which windows of an hour are hours, also where one comes twice. Other
//! changes may set the clock forward over whole windows: no time lies in these, and they do not
//! come out.

use parking_lot::Mutex;
use std::hash::{Hash, Hasher};

/// Changes of one zone.
const CHANGES_MAX: usize = 4096;
const HOUR: i64 = 3_600_000_000_000;
/// The largest distance from UTC, and the first and the last time of a change, so that no sum of
/// them leaves 64 bits.
const OFFSET_MAX: i64 = 26 * HOUR;
const CHANGE_MAX: i64 = i64::MAX - 4 * OFFSET_MAX;

/// All zones so far.
static ZONES: Mutex<Vec<&'static Rules>> = Mutex::new(Vec::new());

/// A time zone other than UTC. It is kept as long as the process lives: a run has one, by an
/// option, and one for each length of windows that not all its changes concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeZone(&'static Rules);

/// The rules of a zone.
#[derive(PartialEq, Eq, Debug)]
struct Rules {
    name: String,
    /// The distance from UTC before the first change.
    first: i64,
    /// When the distance changed, rising, and to what. All in nanoseconds.
    changes: Vec<(i64, i64)>,
    /// The latest local time before each change.
    peaks: Vec<i64>,
    /// By how much clocks are set, each once.
    shifts: Vec<i64>,
    /// The greatest number that divides all times and distances; 0 where all are 0.
    step: i64,
}

impl Rules {
    /// The rules of a zone; `None` if these are none.
    fn new(name: &str, first: i64, changes: &[(i64, i64)]) -> Option<Rules> {
        let near = |offset: i64| (-OFFSET_MAX..=OFFSET_MAX).contains(&offset);
        let sound = changes
            .iter()
            .all(|(at, offset)| (-CHANGE_MAX..=CHANGE_MAX).contains(at) && near(*offset));
        let rising = changes.windows(2).all(|two| two[0].0 < two[1].0);
        if !(near(first) && sound && rising && changes.len() <= CHANGES_MAX) {
            return None;
        }
        let all = changes.iter().flat_map(|(at, offset)| [*at, *offset]);
        let step = all.fold(first.abs(), |step, n| divisor(step, n.abs()));
        let (mut offset, mut peak) = (first, i64::MIN);
        let (mut peaks, mut shifts) = (Vec::new(), Vec::new());
        for &(at, next) in changes {
            peak = peak.max(at + offset - 1);
            peaks.push(peak);
            shifts.push((next - offset).abs());
            offset = next;
        }
        shifts.sort_unstable();
        shifts.dedup();
        let (name, changes) = (name.to_owned(), changes.to_vec());
        Some(Rules { name, first, changes, peaks, shifts, step })
    }

    /// These rules in the one copy that the process keeps.
    fn kept(self) -> &'static Rules {
        let mut all = ZONES.lock();
        if let Some(known) = all.iter().copied().find(|known| **known == self) {
            return known;
        }
        let new: &'static Rules = Box::leak(Box::new(self));
        all.push(new);
        new
    }

    /// Whether every change concerns windows of this length.
    fn all_concern(&self, every: i64) -> bool {
        every <= 0 || self.shifts.iter().all(|shift| shift % every != 0)
    }

    /// The rules without the changes that do not; `None` where the others lead too far from UTC.
    fn concerning(&self, name: &str, every: i64) -> Option<Rules> {
        let (mut before, mut offset) = (self.first, self.first);
        let mut changes = Vec::new();
        for &(at, next) in &self.changes {
            let shift = next - before;
            before = next;
            if shift % every != 0 {
                offset += shift;
                changes.push((at, offset));
            }
        }
        Rules::new(name, self.first, &changes)
    }

    fn span(&self, t: i64) -> ZoneSpan {
        let Rules { changes, peaks, .. } = self;
        let n = changes.partition_point(|(at, _)| *at <= t);
        let before = n.checked_sub(1);
        ZoneSpan {
            from: before.map_or(i64::MIN, |i| changes[i].0),
            last: changes.get(n).map_or(i64::MAX, |(at, _)| at - 1),
            offset: before.map_or(self.first, |i| changes[i].1),
            peak: before.map_or(i64::MIN, |i| peaks[i]),
        }
    }

    fn when(&self, clock: i64) -> i64 {
        if clock == i64::MIN {
            return clock;
        }
        let Rules { first, changes, peaks, .. } = self;
        let before = peaks.partition_point(|peak| *peak < clock).checked_sub(1);
        let (since, offset) = before.map_or((i64::MIN, *first), |i| changes[i]);
        clock.saturating_sub(offset).max(since)
    }
}

/// A time within which the distance from UTC does not change.
#[derive(Clone, Copy, Debug)]
pub struct ZoneSpan {
    /// Its first nanosecond.
    pub from: i64,
    /// Its last nanosecond.
    pub last: i64,
    /// How far local time is ahead of UTC.
    pub offset: i64,
    /// The latest local time before it.
    peak: i64,
}

impl ZoneSpan {
    /// Whether a time lies in it.
    pub fn holds(self, t: i64) -> bool {
        self.from <= t && t <= self.last
    }

    /// Local time at a time in it, as if it were UTC.
    pub fn local(self, t: i64) -> i64 {
        t.saturating_add(self.offset)
    }

    /// The reading of the clock at a time in it.
    pub fn clock(self, t: i64) -> i64 {
        self.local(t).max(self.peak)
    }
}

impl Hash for TimeZone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl TimeZone {
    /// A zone of a name, with its distance from UTC before its first change, and when it changed,
    /// rising, and to what: all in nanoseconds. `None` if these are no zone.
    pub fn new(name: &str, first: i64, changes: &[(i64, i64)]) -> Option<TimeZone> {
        Rules::new(name, first, changes).map(|rules| TimeZone(rules.kept()))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// The distance from UTC before the first change, in nanoseconds.
    pub fn first(self) -> i64 {
        self.0.first
    }

    /// When the distance changed, rising, and to what, in nanoseconds.
    pub fn changes(self) -> &'static [(i64, i64)] {
        &self.0.changes
    }

    /// Whether windows of this length begin elsewhere than in UTC. Windows whose length is no part
    /// of an hour, as 7 minutes, do not: no clock shows where they begin.
    pub fn moves(self, every: i64) -> bool {
        let is_shown = every > HOUR || every > 0 && HOUR % every == 0;
        let Rules { first, shifts, .. } = self.0;
        is_shown && (first % every != 0 || shifts.iter().any(|shift| shift % every != 0))
    }

    /// The zone by whose clock windows of this length are: without the changes by a multiple of it.
    pub fn by(self, every: i64) -> TimeZone {
        if self.0.all_concern(every) {
            return self;
        }
        let rules = self.0.concerning(self.name(), every);
        rules.map_or(self, |rules| TimeZone(rules.kept()))
    }

    /// The number that divides every time at which a window of this length begins.
    pub fn tick(self, every: i64) -> i64 {
        divisor(every, self.0.step)
    }

    /// How long a span of this length by the clock may last, in nanoseconds.
    pub fn longest(self, span: i64) -> i64 {
        let offsets = || self.0.changes.iter().map(|(_, offset)| *offset).chain([self.0.first]);
        let (least, most) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        span.saturating_add(most - least)
    }

    /// The time around `t` within which the distance from UTC does not change.
    pub fn span(self, t: i64) -> ZoneSpan {
        self.0.span(t)
    }

    /// The reading of the clock at a time, in nanoseconds since it was 1970 by it.
    pub fn clock(self, t: i64) -> i64 {
        self.span(t).clock(t)
    }

    /// The first time at which the clock shows this, or more.
    pub fn when(self, clock: i64) -> i64 {
        self.0.when(clock)
    }

    /// The start of the window of length `every` that a time lies in, by the clock of the zone [by
    /// this length](TimeZone::by), which it is quicker for; `None` for times before the first there
    /// are. `every` is more than 0.
    pub fn bin(self, t: i64, every: i64) -> Option<i64> {
        let floor = |t: i64| t.checked_sub(t.rem_euclid(every));
        if !self.moves(every) {
            return floor(t);
        }
        // Not kept: each row may have a length of its own.
        let by = match self.0.all_concern(every) {
            true => None,
            false => self.0.concerning("", every),
        };
        let rules = by.as_ref().unwrap_or(self.0);
        Some(rules.when(floor(rules.span(t).clock(t))?))
    }

    /// The start of the first window in which the clock shows a time, of windows of length `every`,
    /// one after the other from `start` on. Clocks that are set forward may leave out whole ones,
    /// of which start and end are the same moment.
    pub fn first_shown(self, start: i128, every: i128) -> i128 {
        let Rules { changes, peaks, .. } = self.0;
        let before = peaks.partition_point(|peak| i128::from(*peak) < start).checked_sub(1);
        // Where the clock goes on, if it does not show the start. It shows that time for a while.
        let left_out = before.map_or(0, |i| i128::from(changes[i].0 + changes[i].1) - start);
        start + left_out.max(0).div_euclid(every) * every
    }

    /// In how many windows of length `every` the clock shows no time, of those that start at
    /// multiples of it, from the first time of `within` on and before the second.
    pub fn count_left_out(self, within: (i128, i128), every: i128) -> i128 {
        // How many multiples of the length are less.
        let below = |t: i128| (t - 1).div_euclid(every);
        let of = |((at, offset), peak): (&(i64, i64), &i64)| {
            let (gap, end) = (i128::from(*peak) + 1, i128::from(at + offset));
            (below(within.1.min(end - every + 1)) - below(within.0.max(gap))).max(0)
        };
        self.0.changes.iter().zip(&self.0.peaks).map(of).sum()
    }
}

/// The greatest number that divides both.
fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: i64 = HOUR;
    /// 2023-03-26 01:00 UTC and 2023-10-29 01:00 UTC, when Rome's clocks change.
    const MARCH: i64 = 1_679_792_400_000_000_000;
    const OCTOBER: i64 = 1_698_541_200_000_000_000;

    fn rome() -> TimeZone {
        TimeZone::new("Europe/Rome", H, &[(MARCH, 2 * H), (OCTOBER, H)]).expect("a zone")
    }

    /// Start and end of a window, in hours from a time in it.
    fn hours(zone: TimeZone, every: i64, t: i64) -> (i64, i64) {
        let start = zone.clock(t) - zone.clock(t).rem_euclid(every);
        ((zone.when(start) - t) / H, (zone.when(start + every) - t) / H)
    }

    #[test]
    fn days_begin_at_local_midnight() {
        let day = 24 * H;
        // At the change it is 02:00, then 03:00.
        assert_eq!(hours(rome(), day, MARCH), (-2, 21));
        assert_eq!(hours(rome(), day, MARCH - H), (-1, 22));
        assert_eq!(hours(rome(), day, OCTOBER), (-3, 22));
        assert_eq!(hours(rome(), day, OCTOBER + 100 * H), (-6, 18));
        assert_eq!(rome().bin(OCTOBER, day), Some(OCTOBER - 3 * H));
    }

    #[test]
    fn hours_that_come_twice_are_in_one_window() {
        // 02:00 to 04:00 has three hours in October: 02:00 to 03:00 comes twice.
        assert_eq!(hours(rome(), 2 * H, OCTOBER), (-1, 2));
        // In March 02:00 to 03:00 does not come: the window has one hour.
        assert_eq!(hours(rome(), 2 * H, MARCH), (0, 1));
        let span = rome().span(OCTOBER);
        assert_eq!((span.local(OCTOBER), span.clock(OCTOBER)), (OCTOBER + H, OCTOBER + 2 * H - 1));
    }

    #[test]
    fn a_midnight_that_does_not_come_is_the_change() {
        // Clocks go from 00:00 to 01:00, as in Cairo, and back from 00:00 to 23:00.
        let cairo = TimeZone::new("t", 0, &[(48 * H, H), (479 * H, 0)]).expect("a zone");
        assert_eq!(hours(cairo, 24 * H, 48 * H), (0, 23));
        assert_eq!(hours(cairo, 24 * H, 479 * H), (-24, 1));
        assert_eq!(hours(cairo, 24 * H, 481 * H), (-1, 23));
    }

    #[test]
    fn windows_move_where_a_clock_shows_it() {
        let check = |zone: TimeZone, moved: &[i64], not: &[i64]| {
            moved.iter().for_each(|every| assert!(zone.moves(*every), "{every}"));
            not.iter().for_each(|every| assert!(!zone.moves(*every), "{every}"));
        };
        let minute = H / 60;
        check(rome(), &[2 * H, 24 * H, 90 * minute], &[H, minute, 7 * minute, 45 * minute, 1, 0]);
        let kolkata = TimeZone::new("t", 11 * H / 2, &[]).expect("a zone");
        check(kolkata, &[H, 24 * H, 20 * minute], &[H / 2, minute, 7 * minute, -H]);
        let london = TimeZone::new("t", 0, &[]).expect("a zone");
        check(london, &[], &[H, 24 * H, 2 * H]);
        assert_eq!((rome().tick(24 * H), rome().longest(24 * H)), (H, 25 * H));
        assert_eq!(kolkata.bin(0, H), Some(-H / 2));
    }

    /// 2025-04-05 16:30 UTC and 2025-10-04 16:30 UTC, when Adelaide's clocks change.
    const APRIL: i64 = 1_743_870_600_000_000_000;
    const ADELAIDE_OCTOBER: i64 = 1_759_595_400_000_000_000;

    fn adelaide() -> TimeZone {
        let changes = [(APRIL, 19 * H / 2), (ADELAIDE_OCTOBER, 21 * H / 2)];
        TimeZone::new("Australia/Adelaide", 21 * H / 2, &changes).expect("a zone")
    }

    #[test]
    fn an_hour_that_comes_twice_is_two_windows_also_at_half_hours() {
        let by = adelaide().by(H);
        assert_eq!((by.name(), by.first(), by.changes()), (adelaide().name(), 21 * H / 2, &[][..]));
        assert!(adelaide().moves(H) && by.moves(H));
        for zone in [adelaide(), by] {
            let quarters = (-8..12).map(|i| i * H / 4);
            for (change, t) in [APRIL, ADELAIDE_OCTOBER].map(|t| (t, quarters.clone())) {
                // Hours begin at each change, so that they do an hour before and after it.
                t.for_each(|t| {
                    let start = change + t.div_euclid(H) * H;
                    assert_eq!(zone.bin(change + t, H), Some(start), "{t} of {}", zone.name());
                });
            }
            // Longer windows go on through both.
            assert_eq!(zone.bin(APRIL + H / 2, H), Some(APRIL));
        }
        assert_eq!(adelaide().by(2 * H), adelaide());
        assert_eq!(adelaide().bin(APRIL + H / 2, 2 * H), Some(APRIL - H));
        // Clocks that are set by half an hour: an hour with the half that comes twice is one.
        let howe = TimeZone::new("t", 11 * H, &[(15 * H, 21 * H / 2)]).expect("a zone");
        assert_eq!((howe.by(H), howe.by(H / 2).changes()), (howe, &[][..]));
        assert_eq!(howe.bin(15 * H + H / 4, H), Some(14 * H));
        assert_eq!(howe.bin(15 * H + 1, H / 2), Some(15 * H));
        // A change a minute after midnight, as in St. John's once, leaves hours as they are.
        let at = 7 * H / 2 + H / 60;
        let johns = TimeZone::new("t", -7 * H / 2, &[(at, -5 * H / 2)]).expect("a zone");
        assert_eq!((johns.by(H).changes(), johns.bin(at, H)), (&[][..], Some(7 * H / 2)));
    }

    #[test]
    fn a_zone_is_kept_once() {
        assert!(std::ptr::eq(adelaide().by(H).0, adelaide().by(H / 2).0));
        assert!(std::ptr::eq(rome().0, rome().0) && rome().by(0) == rome());
    }

    /// Zones of small numbers, and the lengths of windows.
    fn small() -> impl Iterator<Item = (TimeZone, i64)> {
        let zones = [
            vec![(5, -3), (6, 10), (20, -20), (21, 5), (40, 0), (47, 24)],
            vec![(10, 70), (30, -70), (31, -10), (32, 80)],
            vec![(0, 27), (12, 3), (13, 33), (60, 33)],
        ];
        let zone = |changes: Vec<_>| TimeZone::new("t", 3, &changes).expect("a zone");
        zones.into_iter().map(zone).flat_map(|zone| [1, 2, 3, 4, 8, 24].map(|every| (zone, every)))
    }

    #[test]
    fn bins_are_those_of_the_zone_by_their_length() {
        for (zone, every) in small() {
            let (mut last, by) = (None, zone.by(every));
            assert_eq!(by.by(every), by);
            for t in -200..300 {
                let bin = zone.bin(t, every);
                assert!(bin >= last && bin <= Some(t), "{t} every {every} of {zone:?}");
                assert_eq!(bin, by.bin(t, every), "{t} every {every} of {zone:?}");
                last = bin;
            }
        }
    }

    #[test]
    fn windows_that_start_when_they_end_are_left_out() {
        for (zone, every) in small() {
            let is_out = |start: i64| zone.when(start) == zone.when(start + every);
            let wide = i128::from;
            for start in (-30..30).map(|i| i * every) {
                let first = (start..).step_by(every as usize).find(|start| !is_out(*start));
                let found = zone.first_shown(wide(start), wide(every));
                assert_eq!(Some(found), first.map(wide), "{start} every {every} of {zone:?}");
                for n in 0..20 {
                    let out = (0..n).filter(|i| is_out(start + i * every)).count() as i128;
                    let within = (wide(start), wide(start + n * every));
                    assert_eq!(zone.count_left_out(within, wide(every)), out, "{within:?}");
                }
            }
        }
        assert_eq!(small().next().map(|(zone, _)| zone.first_shown(i128::MIN, 1)), Some(i128::MIN));
        // Neither hours nor days are: there are none by the clock that they go by.
        let samoa = TimeZone::new("t", -10 * H, &[(34 * H, 14 * H)]).expect("a zone");
        let day = i128::from(24 * H);
        assert_eq!(
            (samoa.first_shown(day, day), samoa.by(24 * H).first_shown(day, day)),
            (2 * day, day)
        );
    }

    #[test]
    fn the_clock_never_falls_and_when_is_its_inverse() {
        for changes in [
            vec![],
            vec![(MARCH, 2 * H), (OCTOBER, H)],
            vec![(5, -3), (6, 10), (20, -20), (21, 5), (40, 0), (47, 24)],
            vec![(10, 7 * H), (30, -7 * H)],
        ] {
            let zone = TimeZone::new("t", 3, &changes).expect("a zone");
            let times = || (-100..200).chain(MARCH - 3..MARCH + 3).chain(OCTOBER - 3..OCTOBER + 3);
            let mut last = i64::MIN;
            for t in times() {
                assert!(zone.clock(t) >= last && zone.span(t).holds(t), "{t} of {changes:?}");
                last = zone.clock(t);
                let first = zone.when(last);
                assert!(first <= t && zone.clock(first) >= last, "{t} of {changes:?}");
                assert!(zone.clock(first - 1) < last, "{t} of {changes:?}");
            }
            for t in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                let _ = (zone.clock(t), zone.when(t), zone.bin(t, 24 * H));
            }
        }
    }

    #[test]
    fn no_zone_is_made_of_nonsense() {
        assert_eq!(TimeZone::new("t", 27 * H, &[]), None);
        assert_eq!(TimeZone::new("t", 0, &[(5, 0), (5, 1)]), None);
        assert_eq!(TimeZone::new("t", 0, &[(i64::MAX, 0)]), None);
        assert_eq!(TimeZone::new("t", 0, &vec![(0, 0); CHANGES_MAX + 1]), None);
        assert_eq!(rome(), rome());
    }
}
