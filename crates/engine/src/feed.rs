//! The source with everything that is decided packet by packet in capture order: event time.

use crate::change::Changes;
use crate::clock::Clock;
use crate::closing::Closing;
use crate::counters::Ledger;
use crate::limits::{ABANDONED_BATCHES_MAX, ABANDONED_WAITS};
use crate::losses::LossRecord;
use crate::options::Options;
use crate::supply::Supply;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_packet::bits::Bits;
use weir_packet::source::{Account, FrameBatch, LinkType, Source, SourceError};
use weir_plan::Program;
use weir_plan::physical::{Tick, ticks};

/// Batches of packets and their time.
pub(crate) struct Feed<'a> {
    source: &'a mut dyn Source,
    clock: Clock,
    /// Where windows over packet time close.
    closing: Closing,
    stop: Option<Arc<AtomicBool>>,
    changes: Option<Arc<Changes>>,
    /// Whether this is no end, but a pause in which the program changes.
    breaks: bool,
    batches: u64,
    processed: u64,
    /// Packets whose length was doubted.
    overlong: u64,
    /// The losses, once a program looks them up.
    losses: LossRecord,
    error: Option<SourceError>,
}

impl Supply for Feed<'_> {
    fn is_ready(&mut self) -> bool {
        self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed))
            || self.changes.as_ref().is_some_and(|changes| changes.are_waiting())
            || self.source.is_ready()
    }
}

/// The time of a batch; refilled from batch to batch.
#[derive(Default)]
pub(crate) struct Times {
    /// The steps in which the batch is pushed: one at least. Each has one packet at least, but for
    /// the last where the source reported the time that it had reached.
    pub(crate) steps: Vec<Step>,
    /// The watermark after the batch.
    pub(crate) watermark: i64,
    /// Unless `own`: the later of each packet's time and the watermark when it came.
    clock: Vec<i64>,
    /// Whether that is the packet's own time, for all.
    own: bool,
}

/// A part of a batch within which no window closes.
pub(crate) struct Step {
    /// Windows to close before it.
    pub(crate) close: Option<i64>,
    /// The packets.
    pub(crate) rows: Bits,
}

impl Times {
    /// Of each packet the later of its time and the watermark when it came, as in
    /// [`crate::ops::operator::Batch`].
    pub(crate) fn clock<'a>(&'a self, frames: &'a FrameBatch) -> &'a [i64] {
        if self.own { frames.ts() } else { &self.clock }
    }
}

impl<'a> Feed<'a> {
    pub(crate) fn new(
        program: &Program,
        source: &'a mut dyn Source,
        options: &Options,
    ) -> Feed<'a> {
        Feed {
            source,
            clock: Clock::new(options.lateness_ns, options.jump_ns),
            closing: Closing::new(ticks(program)),
            stop: options.stop.clone(),
            changes: options.changes.clone(),
            breaks: false,
            batches: 0,
            processed: 0,
            overlong: 0,
            losses: LossRecord::new(options.kernel.clone()),
            error: None,
        }
    }

    /// The record of what was lost.
    pub(super) fn losses(&self) -> &LossRecord {
        &self.losses
    }

    /// The next batch; `false` at the end, or where the program [is to change](Feed::breaks).
    pub(crate) fn fill(&mut self, frames: &mut FrameBatch) -> bool {
        if self.stop.as_ref().is_some_and(|s| s.load(Ordering::Relaxed)) {
            return false;
        }
        if self.changes.as_ref().is_some_and(|changes| changes.are_waiting()) {
            self.breaks = true;
            return false;
        }
        self.batches += 1;
        match self.source.fill(frames) {
            Ok(more) => {
                self.overlong += frames.doubt_lengths();
                self.processed += frames.len() as u64;
                more
            }
            Err(e) => {
                self.error = Some(e);
                false
            }
        }
    }

    /// Whether it ended only for the program to change.
    pub(crate) fn breaks(&self) -> bool {
        self.breaks
    }

    /// Goes on, with another program.
    pub(super) fn go_on(&mut self, every: Vec<Tick>) {
        self.breaks = false;
        // The next watermark finds when windows close.
        self.closing = Closing::new(every);
    }

    /// Batches asked for so far.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    /// The account of the source so far.
    pub(crate) fn account(&self) -> Account {
        self.source.account()
    }

    /// The same of each interface.
    pub(crate) fn interfaces(&self) -> Vec<(String, Account)> {
        self.source.interfaces()
    }

    /// Writes the counts of the source and of the clock to the ledger.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        let account = self.account();
        (ledger.received, ledger.filtered) = (account.received, account.filtered);
        (ledger.kernel, ledger.lost) = (account.kernel, account.lost);
        (ledger.processed, ledger.untimed) = (self.processed, self.clock.untimed());
        (ledger.wild, ledger.behind.ns) = (self.clock.wild(), self.clock.behind_ns());
        (ledger.disordered, ledger.overlong) = (self.clock.disordered(), self.overlong);
    }

    /// Says that no packet comes any more.
    pub(crate) fn end(&mut self) {
        self.clock.end();
    }

    /// Reads what is left of a run that ended too early, and counts it.
    pub(crate) fn abandon_rest(&mut self, ledger: &mut Ledger) {
        read_rest(self.source);
        ledger.abandon_rest(self.account(), self.processed);
    }

    /// The clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The error that the source ended with, if any.
    pub(crate) fn take_error(&mut self) -> Option<SourceError> {
        self.error.take()
    }

    /// Whether the source failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether there are results to emit: not where the source failed before the first packet.
    pub(crate) fn began(&self) -> bool {
        self.processed > 0 || self.error.is_none()
    }

    /// Moves the clock over a batch.
    pub(crate) fn times(&mut self, frames: &FrameBatch, times: &mut Times) {
        times.steps.clear();
        let before = self.clock.watermark();
        if !frames.is_empty() {
            match frames.link {
                LinkType::FLOW_RECORDS => self.times_of_records(frames.ts(), times),
                _ => self.times_of_packets(frames.ts(), times),
            }
        }
        let watermark = frames.reached().map(|ts| self.clock.reach(ts));
        let close = watermark.filter(|&w| self.closing.closes(w));
        if close.is_some() || times.steps.is_empty() {
            times.steps.push(Step { close, rows: Bits::NONE });
        }
        times.watermark = self.clock.watermark();
        if self.losses.is_read() {
            self.losses.observe(frames.ts(), times.clock(frames), frames.gap(), before);
        }
    }

    /// The steps of packets.
    fn times_of_packets(&mut self, ts: &[i64], times: &mut Times) {
        // Of times that fall, each is looked at.
        times.own = rising(ts).is_some_and(|(min, max)| {
            let after = self.clock.watermark_after(max);
            after.is_some_and(|w| w < self.closing.next() && w <= min)
                && self.clock.observe_all(min, max)
        });
        if times.own {
            times.steps.push(Step { close: None, rows: Bits::first(ts.len()) });
        } else {
            self.times_by_packet(ts, times);
        }
    }

    /// The one step of flow records, which come in no order of time: only what the source has
    /// reached moves the clock.
    fn times_of_records(&mut self, ts: &[i64], times: &mut Times) {
        let watermark = self.clock.watermark();
        times.own = ts.iter().all(|&t| t >= watermark);
        times.clock.clear();
        times.clock.extend(ts.iter().map(|&t| t.max(watermark)));
        times.steps.push(Step { close: None, rows: Bits::first(ts.len()) });
    }

    /// The same, packet by packet.
    fn times_by_packet(&mut self, ts: &[i64], times: &mut Times) {
        let (mut from, mut close) = (0, None);
        times.clock.clear();
        for (i, &t) in ts.iter().enumerate() {
            let w = self.clock.observe(t);
            times.clock.push(t.max(w));
            if self.closing.closes(w) {
                if i > from || close.is_some() {
                    times.steps.push(Step { close, rows: Bits::range(from, i) });
                }
                (from, close) = (i, Some(w));
            }
        }
        times.steps.push(Step { close, rows: Bits::range(from, ts.len()) });
    }
}

/// Reads the packets of a wire that have come already, after a run ended too early to look at them:
/// each of them is in its account then. A file has no such packets.
pub(crate) fn read_rest(source: &mut dyn Source) {
    if source.interfaces().is_empty() {
        return;
    }
    let (mut frames, mut waits) = (FrameBatch::new(), 0);
    for _ in 0..ABANDONED_BATCHES_MAX {
        // The kernel may hand over the last of them a moment later.
        waits += u32::from(!source.is_ready());
        if waits > ABANDONED_WAITS || !matches!(source.fill(&mut frames), Ok(true)) {
            return;
        }
    }
}

/// The first and the last of times that never fall.
fn rising(ts: &[i64]) -> Option<(i64, i64)> {
    let (&first, &last) = (ts.first()?, ts.last()?);
    (rises(ts, first, last) || ts.is_sorted()).then_some((first, last))
}

/// Whether times never fall, as they do not in most captures; `false` also where that cannot be
/// seen cheaply. Comparing 64-bit numbers is not in every processor's vector unit, subtracting
/// them is: all differences are put together by `or`, and none may have a high bit.
fn rises(ts: &[i64], first: i64, last: i64) -> bool {
    let steps = ts.iter().zip(&ts[1..]);
    let all = steps.fold(0, |all, (&a, &b)| all | b.wrapping_sub(a) as u64);
    // So small steps cannot go round once, and once round would end below the first.
    all < 1 << 54 && ts.len() <= 1 << 9 && first <= last
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn extremes_rise_and_fall() {
        assert_eq!(rising(&[]), None);
        assert_eq!(rising(&[5]), Some((5, 5)));
        assert_eq!(rising(&[i64::MIN, i64::MAX]), Some((i64::MIN, i64::MAX)));
        assert_eq!(rising(&[i64::MAX, i64::MIN]), None);
        assert_eq!(rising(&[i64::MAX, i64::MIN, i64::MAX]), None);
        assert!(rises(&[1, 1, 2], 1, 2) && !rises(&[1, 3, 2], 1, 2));
    }

    proptest! {
        #[test]
        fn times_rise_where_they_are_sorted(
            start in any::<i64>(), steps in proptest::collection::vec(-2i64..50, 1..256),
        ) {
            let ts: Vec<i64> = steps.iter().scan(start, |t, d| {
                *t = t.wrapping_add(*d);
                Some(*t)
            }).collect();
            let want = ts.is_sorted().then(|| (ts[0], ts[ts.len() - 1]));
            prop_assert_eq!(rising(&ts), want);
        }
    }
}
