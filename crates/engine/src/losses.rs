//! Which frames a wire lost, and when: what [`completeness`](weir_plan::AggFunc::Completeness) of a
//! window is made of.
//!
//! A source says of a [`Gap`] between which times it lost how many frames. A window that any time
//! of a gap lies in may lack all of them, so all of them count for it: completeness is at least
//! what is said. Frames that came are counted by pane, where packets come in, as `summarize` takes
//! them: those that are late for their pane do not count. The kernel level counts those that it
//! finished, by its clock.
//!
//! The completeness of a window does not depend on when it is asked for. A gap that is found later
//! begins at the watermark or after it, when the window has closed; and so does every pane that
//! frames are still counted in. Of sessions, which come out before the time of their last row has
//! closed, only gaps that were known at their tick count, and frames of panes that had closed.

use crate::checkpoint::{Checkpoint, Passed, Saved};
use crate::kernel::KernelFeed;
use crate::limits::{COUNTED_PANES_MAX, GAPS_MAX};
use crate::ops::window_time::window_start;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use weir_packet::source::Gap;
use weir_plan::{AggFunc, Session, Summarize, TimeZone, Window};

/// The losses of a run: the feed writes them, and final aggregations look their windows up in them.
#[derive(Clone, Default)]
pub(crate) struct LossRecord(Arc<Pages>);

#[derive(Default)]
struct Pages {
    /// Whether anybody ever looked up anything.
    read: AtomicBool,
    /// The feed that counts the frames that the kernel finished, if it finishes any.
    kernel: Option<Arc<dyn KernelFeed>>,
    losses: Mutex<Losses>,
}

/// Where one `summarize` looks its windows up.
pub(crate) struct LossLookup {
    record: LossRecord,
    /// Which of the counts by pane is its own.
    count: usize,
    /// Which of its aggregates ask.
    pub(crate) aggs: Vec<usize>,
    /// Length of a window, if there are any of time, and by whose clock.
    over: Option<i64>,
    zone: Option<TimeZone>,
    /// Frames seen, and lost, before it asked for the first time: a program that comes while a run
    /// goes on knows nothing of them.
    before: (u64, u64),
    /// Keeps the count.
    _kept: Arc<()>,
}

/// The losses that are known so far.
#[derive(Default)]
struct Losses {
    gaps: VecDeque<KnownGap>,
    /// Frames of all gaps.
    lost: u64,
    /// Frames that came.
    seen: u64,
    counts: Vec<Count>,
    /// The losses that other machines reported, each of its own frames.
    others: Vec<Losses>,
}

/// The losses that another machine reports since its last report.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct LossNews {
    /// Gaps in the order in which they were found, each with the watermark at that time.
    pub(crate) gaps: Vec<(i64, Gap)>,
    /// Frames that came, by the start of their pane; of the whole input under 0.
    pub(crate) panes: Vec<(i64, u64)>,
}

/// The losses that are reported to another machine for one `summarize` that asks for them.
pub(crate) struct LossNotes {
    count: Option<Count>,
    news: LossNews,
}

impl LossNotes {
    /// The notes of a `summarize`, if it asks.
    pub(crate) fn of(s: &Summarize) -> Option<LossNotes> {
        if !s.aggs.iter().any(|agg| agg.func == AggFunc::Completeness) {
            return None;
        }
        let new = |pane| Count::new(pane, s.lateness_ns, Arc::default());
        let count = pane(s).map(|pane| Count { zone: s.zone, ..new(pane) });
        Some(LossNotes { count, news: LossNews::default() })
    }

    /// As [`LossRecord::observe`].
    pub(crate) fn observe(&mut self, ts: &[i64], clock: &[i64], gap: Option<Gap>, watermark: i64) {
        self.news.gaps.extend(gap.map(|gap| (watermark, gap)));
        match &mut self.count {
            Some(count) => count.take(ts, clock),
            None if ts.is_empty() => {}
            None => match self.news.panes.last_mut() {
                Some((_, frames)) => *frames += ts.len() as u64,
                None => self.news.panes.push((0, ts.len() as u64)),
            },
        }
    }

    /// The news to report since the last time, if there is any.
    pub(crate) fn news(&mut self) -> Option<LossNews> {
        if let Some(count) = &mut self.count {
            let mut before = std::mem::take(&mut count.forgotten);
            for (start, upto) in count.panes.drain(..) {
                self.news.panes.push((start, upto - before));
                before = upto;
            }
        }
        let news = std::mem::take(&mut self.news);
        (news != LossNews::default()).then_some(news)
    }
}

/// Length of the panes that frames are counted by, if windows end.
fn pane(s: &Summarize) -> Option<i64> {
    match s.window {
        Window::Session(session) => Some(session.tick_ns()),
        window => window.pane(),
    }
}

/// A gap. Of gaps in a row no number falls.
#[derive(Clone, Copy, Default)]
struct KnownGap {
    /// The watermark when it was found.
    at: i64,
    since: i64,
    until: i64,
    /// Frames lost in this and in all before.
    upto: u64,
}

/// Frames by pane.
struct Count {
    pane: i64,
    lateness: i64,
    zone: Option<TimeZone>,
    /// Panes with frames by their start, each with the frames of it and of all before.
    panes: VecDeque<(i64, u64)>,
    /// Frames of panes that were forgotten.
    forgotten: u64,
    /// Held by the lookup, too.
    kept: Arc<()>,
}

impl LossRecord {
    /// A record of a run of which this feed hands over what the kernel does, if there is one.
    pub(crate) fn new(kernel: Option<Arc<dyn KernelFeed>>) -> LossRecord {
        LossRecord(Arc::new(Pages { kernel, ..Pages::default() }))
    }

    /// Where a `summarize` looks up what these of its aggregates ask for.
    pub(crate) fn lookup(&self, s: &Summarize, aggs: Vec<usize>) -> LossLookup {
        let pane = pane(s);
        self.0.read.store(true, Ordering::Relaxed);
        if let (Some(kernel), Some(pane)) = (&self.0.kernel, pane) {
            kernel.count_by(s.zone.map_or(pane, |zone| zone.tick(pane)));
        }
        let mut losses = self.lock();
        let (count, kept) = match pane {
            Some(pane) => losses.count(pane, s.lateness_ns),
            None => (0, Arc::default()),
        };
        if let Some(count) = losses.counts.get_mut(count).filter(|_| pane.is_some()) {
            count.zone = s.zone;
        }
        let before = (losses.seen, losses.lost);
        let (over, zone) = (s.window.over(), s.zone);
        LossLookup { record: self.clone(), count, aggs, over, zone, before, _kept: kept }
    }

    /// Whether anybody looks up anything.
    pub(crate) fn is_read(&self) -> bool {
        self.0.read.load(Ordering::Relaxed)
    }

    /// Takes the frames of a batch, with the later of each one's time and the watermark when it
    /// came; and what was found lost before it, when the watermark was here.
    pub(crate) fn observe(&self, ts: &[i64], clock: &[i64], gap: Option<Gap>, watermark: i64) {
        let mut losses = self.lock();
        if let Some(gap) = gap {
            losses.lose(gap, watermark);
        }
        losses.seen += ts.len() as u64;
        losses.counts.iter_mut().for_each(|count| count.take(ts, clock));
    }

    /// Adds what the machine of this number reports of the frames that the first lookup is about.
    pub(crate) fn add_report(&self, machine: usize, news: &LossNews) {
        let mut losses = self.lock();
        let Losses { counts, others, .. } = &mut *losses;
        while others.len() <= machine {
            others.push(Losses {
                counts: counts.iter().map(Count::like).collect(),
                ..Losses::default()
            });
        }
        let other = &mut others[machine];
        news.gaps.iter().for_each(|(watermark, gap)| other.lose(*gap, *watermark));
        for &(start, frames) in &news.panes {
            other.seen = other.seen.saturating_add(frames);
            other.counts.iter_mut().take(1).for_each(|count| count.add(start, frames));
        }
    }

    /// Saves the reports of other machines, or restores them in a record of which the same lookups
    /// were asked for.
    pub(crate) fn pass_reports(&self, at: &mut Checkpoint<'_>) -> Passed {
        let mut losses = self.lock();
        let Losses { counts, others, .. } = &mut *losses;
        let new =
            || Losses { counts: counts.iter().map(Count::like).collect(), ..Losses::default() };
        at.list(others, new, Saved::pass)
    }

    /// Frames that the kernel finished from one time to another.
    fn finished(&self, start: i128, end: i128) -> u64 {
        let Some(kernel) = &self.0.kernel else { return 0 };
        let before = |time: i128| {
            let clamped = time.clamp(i64::MIN.into(), i64::MAX.into());
            kernel.finished_before(clamped as i64)
        };
        // In this order: what is asked for later is not less.
        let upto_start = before(start);
        before(end).saturating_sub(upto_start)
    }

    fn lock(&self) -> MutexGuard<'_, Losses> {
        self.0.losses.lock().expect("nothing in here panics")
    }
}

impl LossLookup {
    /// The completeness of the window that starts here, or of the whole input.
    pub(crate) fn window(&self, start: i64) -> f64 {
        let Some(over) = self.over else {
            let finished = self.record.finished(i64::MIN.into(), i64::MAX.into());
            let losses = self.record.lock();
            let (seen, lost) = self.before;
            let others = losses.others.iter();
            let more = total(others.clone().map(|other| other.seen));
            let gone = total(others.map(|other| other.lost));
            let (seen, lost) = (losses.seen - seen, losses.lost - lost);
            let seen = total([seen, more, finished].into_iter());
            return share(seen, lost.saturating_add(gone));
        };
        let end = i128::from(start) + i128::from(over);
        self.of((start.into(), end), end, i64::MAX)
    }

    /// The completeness of a session that came out at this tick.
    pub(crate) fn session(&self, (start, last): (i64, i64), session: Session, tick: i64) -> f64 {
        let pane = i128::from(session.tick_ns());
        let floor = |t: i64| i128::from(t).div_euclid(pane) * pane;
        let end = floor(last) + pane;
        // At the end of input all has, though that need be no tick.
        let closed = if tick == i64::MAX { end } else { end.min(tick.into()) };
        // Of one that began only now, what came just before shows how much was seen.
        let start = floor(start).min(closed - pane);
        self.of((start, end), closed, tick)
    }

    /// Of the time from `start` to `end` by the clock, of which frames count that came before
    /// `closed`, and gaps found before the watermark `at`.
    fn of(&self, time: (i128, i128), closed: i128, at: i64) -> f64 {
        let real = |t: i128| match self.zone {
            None => t,
            Some(zone) => zone.when(t.clamp(i64::MIN.into(), i64::MAX.into()) as i64).into(),
        };
        let span = (real(time.0), real(time.1));
        let losses = self.record.lock();
        let all = || std::iter::once(&*losses).chain(&losses.others);
        let lost = total(all().map(|one| one.lost_in(self, span, at)));
        if lost == 0 {
            return 1.0;
        }
        let count = |one: &Losses| Some(one.counts.get(self.count)?.between(time.0, closed));
        let seen = total(all().filter_map(count));
        drop(losses);
        share(seen.saturating_add(self.record.finished(span.0, real(closed))), lost)
    }
}

/// The share of all frames that was seen.
pub(crate) fn share(seen: u64, lost: u64) -> f64 {
    match lost {
        0 => 1.0,
        _ => seen as f64 / (seen as f64 + lost as f64),
    }
}

/// The sum, which sticks at the top: other machines may report any numbers.
fn total(all: impl Iterator<Item = u64>) -> u64 {
    all.fold(0, u64::saturating_add)
}

impl Losses {
    /// The number of a new count by panes of this length, and what keeps it.
    fn count(&mut self, pane: i64, lateness: i64) -> (usize, Arc<()>) {
        let kept = Arc::default();
        let new = Count::new(pane, lateness, Arc::clone(&kept));
        // In the place of one that no lookup asks for any more.
        let free = |c: &Count| Arc::strong_count(&c.kept) == 1;
        match self.counts.iter().position(free) {
            Some(at) => {
                self.counts[at] = new;
                (at, kept)
            }
            None => {
                self.counts.push(new);
                (self.counts.len() - 1, kept)
            }
        }
    }

    /// Ends the gaps that were open: at the watermark or after it, so that windows that have
    /// closed have what they had.
    fn end(&mut self, until: i64, watermark: i64) {
        let open = self.gaps.partition_point(|gap| gap.until < Gap::OPEN);
        let Some(last) = self.gaps.range(open..).last() else { return };
        let before = open.checked_sub(1).map_or(i64::MIN, |i| self.gaps[i].until);
        let until = until.max(watermark).max(last.since).max(before);
        self.gaps.range_mut(open..).for_each(|gap| gap.until = until);
    }

    fn lose(&mut self, gap: Gap, watermark: i64) {
        if gap.until < Gap::OPEN {
            self.end(gap.until, watermark);
        }
        if gap.frames == 0 {
            return;
        }
        self.lost = self.lost.saturating_add(gap.frames);
        let (mut since, mut until) = (gap.since.max(watermark), gap.until);
        if let Some(last) = self.gaps.back() {
            (since, until) = (since.max(last.since), until.max(last.until));
        }
        if self.gaps.len() >= GAPS_MAX {
            self.halve();
        }
        let until = until.max(since);
        self.gaps.push_back(KnownGap { at: watermark, since, until, upto: self.lost });
    }

    /// Takes gaps two by two as one.
    #[cold]
    fn halve(&mut self) {
        let gaps: Vec<KnownGap> = self.gaps.drain(..).collect();
        self.gaps.extend(gaps.chunks(2).map(|two| {
            let (first, last) = (two[0], two[two.len() - 1]);
            KnownGap { until: last.until, upto: last.upto, ..first }
        }));
    }

    /// Frames of the gaps that touch a time.
    fn lost_in(&self, lookup: &LossLookup, (start, end): (i128, i128), at: i64) -> u64 {
        let upto = |n: usize| n.checked_sub(1).map_or(0, |i| self.gaps[i].upto);
        let from = self.gaps.partition_point(|gap| i128::from(gap.until) < start);
        let to = self.gaps.partition_point(|gap| i128::from(gap.since) < end && gap.at < at);
        upto(to).saturating_sub(upto(from).max(lookup.before.1))
    }
}

/// The losses that another machine reported. Its list of counts is as long as ours.
impl Saved for Losses {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        at.pass(&mut self.gaps)?;
        at.pass(&mut self.lost)?;
        at.pass(&mut self.seen)?;
        self.counts.iter_mut().try_for_each(|count| {
            at.pass(&mut count.panes)?;
            at.pass(&mut count.forgotten)
        })
    }
}

impl Saved for KnownGap {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let KnownGap { at: found, since, until, upto } = self;
        [found, since, until].into_iter().try_for_each(|time| at.pass(time))?;
        at.pass(upto)
    }
}

impl Saved for LossNews {
    fn pass(&mut self, at: &mut Checkpoint<'_>) -> Passed {
        let gap = || (0, Gap { frames: 0, since: 0, until: 0 });
        at.list(&mut self.gaps, gap, |(watermark, Gap { frames, since, until }), at| {
            at.pass(watermark)?;
            at.pass(frames)?;
            at.pass(since)?;
            at.pass(until)
        })?;
        at.pass(&mut self.panes)
    }
}

impl Count {
    fn new(pane: i64, lateness: i64, kept: Arc<()>) -> Count {
        Count { pane, lateness, zone: None, panes: VecDeque::new(), forgotten: 0, kept }
    }

    /// One by the same panes, without frames.
    fn like(&self) -> Count {
        let new = Count::new(self.pane, self.lateness, Arc::clone(&self.kept));
        Count { zone: self.zone, ..new }
    }

    fn take(&mut self, ts: &[i64], clock: &[i64]) {
        if let Some(zone) = self.zone {
            return self.take_by(zone, ts, clock);
        }
        let (mut start, mut n) = (i64::MAX, 0);
        for (&t, &clock) in ts.iter().zip(clock) {
            let since = t.wrapping_sub(start);
            if n > 0 && clock == t && t >= start && (0..self.pane).contains(&since) {
                n += 1;
                continue;
            }
            let own = window_start(t, self.pane);
            if window_start(clock.saturating_sub(self.lateness), self.pane) > own {
                continue;
            }
            self.add(start, n);
            (start, n) = (own, 1);
        }
        self.add(start, n);
    }

    /// The same by the clock of a zone.
    #[cold]
    fn take_by(&mut self, zone: TimeZone, ts: &[i64], clock: &[i64]) {
        for (&t, &clock) in ts.iter().zip(clock) {
            let own = window_start(zone.clock(t), self.pane);
            let closing = zone.clock(clock.saturating_sub(self.lateness));
            if window_start(closing, self.pane) <= own {
                self.add(own, 1);
            }
        }
    }

    /// Adds frames to a pane.
    fn add(&mut self, start: i64, n: u64) {
        if n == 0 {
            return;
        }
        let at = self.panes.partition_point(|pane| pane.0 < start);
        if self.panes.get(at).is_none_or(|pane| pane.0 != start) {
            let before = at.checked_sub(1).map_or(self.forgotten, |i| self.panes[i].1);
            self.panes.insert(at, (start, before));
        }
        self.panes.range_mut(at..).for_each(|pane| pane.1 = pane.1.saturating_add(n));
        if self.panes.len() > COUNTED_PANES_MAX {
            self.forgotten = self.panes.pop_front().map_or(0, |pane| pane.1);
        }
    }

    /// Frames of the panes that start from here to there.
    fn between(&self, start: i128, end: i128) -> u64 {
        let upto = |t: i128| {
            let n = self.panes.partition_point(|pane| i128::from(pane.0) < t);
            n.checked_sub(1).map_or(self.forgotten, |i| self.panes[i].1)
        };
        upto(end).saturating_sub(upto(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record, and what keeps its one count.
    struct Kept(LossRecord, #[expect(dead_code, reason = "keeps it")] Arc<()>);

    impl std::ops::Deref for Kept {
        type Target = LossRecord;

        fn deref(&self) -> &LossRecord {
            &self.0
        }
    }

    fn record(pane: i64, lateness: i64) -> Kept {
        let record = LossRecord::default();
        let (_, kept) = record.lock().count(pane, lateness);
        Kept(record, kept)
    }

    fn lookup(record: &LossRecord, over: Option<i64>) -> LossLookup {
        let (before, _kept) = ((0, 0), Arc::default());
        LossLookup {
            record: record.clone(),
            count: 0,
            aggs: vec![0],
            over,
            zone: None,
            before,
            _kept,
        }
    }

    fn gap(frames: u64, since: i64, until: i64) -> Option<Gap> {
        Some(Gap { frames, since, until })
    }

    #[test]
    fn a_gap_counts_for_every_window_it_touches() {
        let record = record(10, 0);
        record.observe(&[1, 5, 9], &[1, 5, 9], None, 0);
        record.observe(&[11, 12, 31], &[11, 12, 31], gap(3, 9, 11), 5);
        record.observe(&[35], &[35], gap(1, 32, 33), 31);
        let lookup = lookup(&record, Some(10));
        let all: Vec<f64> = (0..4).map(|i| lookup.window(i * 10)).collect();
        assert_eq!(all, [0.5, 0.4, 1.0, 2.0 / 3.0]);
        assert_eq!(self::lookup(&record, None).window(0), 7.0 / 11.0);
    }

    #[test]
    fn a_gap_that_is_found_late_counts_for_what_is_open() {
        let record = record(10, 0);
        record.observe(&[5, 15, 25], &[5, 15, 25], None, 0);
        record.observe(&[], &[], gap(1, 3, 4), 22);
        let lookup = lookup(&record, Some(10));
        let all: Vec<f64> = (0..4).map(|i| lookup.window(i * 10)).collect();
        assert_eq!(all, [1.0, 1.0, 0.5, 1.0]);
    }

    #[test]
    fn a_gap_that_is_open_ends_with_the_next_that_is_not() {
        let record = record(10, 0);
        record.observe(&[5, 15], &[5, 15], gap(1, 3, Gap::OPEN), 0);
        record.observe(&[25], &[25], gap(1, 14, Gap::OPEN), 15);
        let lookup = lookup(&record, Some(10));
        let all = || (0..5).map(|i| lookup.window(i * 10)).collect::<Vec<f64>>();
        assert_eq!(all(), [0.5, 1.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
        // Not before what has closed.
        record.observe(&[35, 45], &[35, 45], gap(0, 22, 22), 25);
        assert_eq!(all(), [0.5, 1.0 / 3.0, 1.0 / 3.0, 1.0, 1.0]);
        record.observe(&[], &[], gap(1, 44, 46), 45);
        assert_eq!(all(), [0.5, 1.0 / 3.0, 1.0 / 3.0, 1.0, 0.5]);
    }

    #[test]
    fn counts_that_nobody_asks_for_make_room() {
        let record = LossRecord::default();
        let (first, kept) = record.lock().count(10, 0);
        let (second, other) = record.lock().count(20, 0);
        assert_eq!((first, second), (0, 1));
        drop(kept);
        assert_eq!(record.lock().count(30, 0).0, 0);
        drop(other);
    }

    #[test]
    fn who_comes_later_knows_nothing_of_what_was_before() {
        let early = record(10, 0);
        early.observe(&[1, 2], &[1, 2], gap(4, 0, 5), 0);
        let (count, kept) = early.lock().count(10, 0);
        let late = |over| LossLookup {
            before: (2, 4),
            count,
            _kept: Arc::clone(&kept),
            ..lookup(&early, over)
        };
        assert_eq!((late(Some(10)).window(0), late(None).window(0)), (1.0, 1.0));
        early.observe(&[6, 7, 8], &[6, 7, 8], gap(1, 5, 6), 2);
        assert_eq!((late(Some(10)).window(0), late(None).window(0)), (0.75, 0.75));
        assert_eq!(lookup(&early, Some(10)).window(0), 0.5);
    }

    #[test]
    fn what_is_late_is_not_seen() {
        let record = record(10, 5);
        // The second is in time by the lateness, the third is not.
        record.observe(&[1, 2, 3], &[1, 14, 15], gap(2, 0, 1), i64::MIN);
        assert_eq!(lookup(&record, Some(10)).window(0), 0.5);
    }

    #[test]
    fn what_found_no_room_counts_as_not_seen() {
        let record = record(1, 0);
        for t in 0..COUNTED_PANES_MAX as i64 + 3 {
            record.observe(&[t], &[t], None, t);
        }
        record.observe(&[2], &[2], gap(1, 0, 5), i64::MIN);
        assert_eq!(lookup(&record, Some(4)).window(2), 0.75, "from 3 on");
        assert_eq!(lookup(&record, Some(2)).window(0), 0.0);
    }

    #[test]
    fn gaps_beyond_the_bound_are_taken_together() {
        let record = record(10, 0);
        for i in 0..GAPS_MAX as i64 * 3 {
            record.observe(&[i * 10], &[i * 10], gap(1, i * 10, i * 10 + 1), i64::MIN);
        }
        assert!(record.lock().gaps.len() <= GAPS_MAX);
        let lookup = lookup(&record, Some(10));
        // Never better than it was.
        assert!((0..GAPS_MAX as i64 * 3).all(|i| lookup.window(i * 10) <= 0.5));
        assert_eq!(self::lookup(&record, None).window(0), 0.5);
    }

    #[test]
    fn times_at_the_ends_of_time() {
        let record = record(10, 5);
        let all = [i64::MIN, -1, 0, i64::MAX];
        record.observe(&all, &all, gap(1, i64::MIN, i64::MAX), i64::MIN);
        record.observe(&all, &[i64::MAX; 4], gap(1, i64::MAX, i64::MIN), i64::MAX);
        for start in all {
            let share = lookup(&record, Some(10)).window(start);
            assert!((0.0..=1.0).contains(&share), "{start}: {share}");
        }
        let session = Session { gap_ns: 10, active_ns: None, rows: None, linger_ns: None };
        let share = lookup(&record, None).session((i64::MIN, i64::MAX), session, i64::MAX);
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
}
