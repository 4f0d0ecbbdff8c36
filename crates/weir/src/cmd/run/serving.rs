//! The service of a run for its page: the run stays when packets end, and reads files again when
//! its programs change.

use super::screen::PassSource;
use super::serves::Serving;
use super::session::Run;
use crate::stats::{RunCounts, Stats};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_control::{Answers, QueryText, Request};
use weir_engine::clock::Clock;
use weir_engine::limits::JUMP_NS;
use weir_engine::rows::Sink;
use weir_engine::run::{Options, Outcome};
use weir_packet::source::{FrameBatch, Source as _, SourceError};
use weir_packet::time::NO_TIME;
use weir_partitions::outlets::PacketOutlets;
use weir_plan::Program;

/// The param of the page's programs.
const INTERVAL: &str = "interval";

/// How many windows a capture has at most, if the lengths of windows allow for that.
const WINDOWS_MAX: i64 = 240;

const SECOND: i64 = 1_000_000_000;

/// How far times may be apart that confirm each other, in nanoseconds.
const NEAR: u64 = JUMP_NS.unsigned_abs();

/// Lengths of windows, in nanoseconds, and as queries write them.
const INTERVALS: [(i64, &str); 16] = [
    (1_000_000, "1ms"),
    (10_000_000, "10ms"),
    (50_000_000, "50ms"),
    (100_000_000, "100ms"),
    (250_000_000, "250ms"),
    (SECOND, "1s"),
    (5 * SECOND, "5s"),
    (15 * SECOND, "15s"),
    (60 * SECOND, "1m"),
    (300 * SECOND, "5m"),
    (900 * SECOND, "15m"),
    (3600 * SECOND, "1h"),
    (4 * 3600 * SECOND, "4h"),
    (24 * 3600 * SECOND, "24h"),
    (168 * 3600 * SECOND, "168h"),
    (720 * 3600 * SECOND, "720h"),
];

/// The length of windows by which a capture of such a length is shown.
fn interval(span: i64) -> (i64, &'static str) {
    let fits = |(length, _): &&(i64, &str)| span / length <= WINDOWS_MAX;
    *INTERVALS.iter().find(fits).unwrap_or(&INTERVALS[INTERVALS.len() - 1])
}

/// The first and the last time of a capture, but for those that no other packet confirms: one
/// packet with a wrong time must not make all others one window.
struct BelievedTimes {
    clock: Clock,
    /// Times before the clock has started.
    before: Vec<i64>,
    first: Option<i64>,
}

impl Default for BelievedTimes {
    fn default() -> BelievedTimes {
        BelievedTimes { clock: Clock::new(0, JUMP_NS), before: Vec::new(), first: None }
    }
}

impl BelievedTimes {
    fn take(&mut self, ts: i64) {
        let has_started = self.clock.observe(ts) > i64::MIN;
        if self.first.is_some() || ts == NO_TIME {
            return;
        }
        self.before.push(ts);
        if has_started {
            let near = |a: &i64| self.before.iter().filter(|b| a.abs_diff(**b) <= NEAR).count() > 1;
            let least = self.before.iter().copied().min();
            self.first = self.before.iter().copied().filter(near).min().or(least);
        }
    }

    /// Nanoseconds between them; 0 of fewer than two.
    fn span(&self) -> i64 {
        self.first.map_or(0, |first| self.clock.watermark().saturating_sub(first).max(0))
    }
}

/// The source of a run, and where its rows and packets go.
pub(super) struct RunEnds<'a> {
    pub(super) source: PassSource,
    pub(super) sink: Box<dyn Sink + 'a>,
    pub(super) outlets: PacketOutlets,
}

impl Run<'_> {
    /// Whether packets are read again when programs change.
    pub(super) fn reads_again(&self) -> bool {
        self.serves.as_ref().is_some_and(|serves| serves.reads_again)
    }

    /// Chooses the length of the windows of the page's programs by that of the captures, unless
    /// somebody has chosen it. The programs are replaced before the first pass.
    pub(super) fn fit_windows(&self, answers: &Answers) -> Result<(), SourceError> {
        let is_ours = |name: &str| name.rsplit('.').next() == Some(INTERVAL);
        let given = self.options.params.iter().any(|(name, _)| is_ours(name));
        if !self.reads_again() || given {
            return Ok(());
        }
        let mut source = self.counted(self.captures()?.start()?);
        let mut batch = FrameBatch::new();
        let mut times = BelievedTimes::default();
        while !self.stop.load(Ordering::Relaxed) {
            batch.clear();
            // The pass reports what can't be read.
            let Ok(more) = source.fill(&mut batch) else { break };
            batch.ts().iter().for_each(|ts| times.take(*ts));
            if !more {
                break;
            }
        }
        let (length, text) = interval(times.span());
        self.phase.set_interval(length);
        for (name, query) in weir_dashboard::PROGRAMS {
            let reply = answers.reply(Request::Replace(QueryText {
                name: name.to_owned(),
                source: format!("{name}.weir"),
                text: query.to_owned(),
                params: vec![(INTERVAL.to_owned(), text.to_owned())],
                files: Vec::new(),
            }));
            debug_assert!(reply.error.is_none(), "{:?}", reply.error);
        }
        Ok(())
    }

    /// Runs, and stays for the page until somebody ends it. `run` makes one pass, which ends when
    /// its flag is set.
    pub(super) fn stay(
        &self,
        serves: &Serving,
        run_ends: &mut RunEnds<'_>,
        stats: &Stats,
        mut run: impl FnMut(&Program, &mut RunEnds<'_>, Arc<AtomicBool>) -> Outcome,
    ) -> anyhow::Result<Outcome> {
        let mut program = None;
        loop {
            self.phase.goes_on();
            stats.set_last(None);
            let stop = match serves.reads_again {
                true => serves.passes.begin(),
                false => Arc::clone(&self.stop),
            };
            let outcome = run(program.as_ref().unwrap_or(&self.program), run_ends, stop);
            if !serves.passes.has_next() {
                let interfaces = run_ends.source.interfaces();
                let ledger = outcome.ledger.clone();
                stats.set_last(Some(RunCounts { ledger, interfaces }));
                self.phase.has_ended(outcome.error.as_ref().map(ToString::to_string));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Ok(outcome);
            }
            if !serves.passes.wait() {
                return Ok(outcome);
            }
            // In this order: who has asked for a change does not see that all is read.
            self.phase.goes_on();
            let Some(next) = serves.passes.next() else {
                return Ok(outcome);
            };
            program = Some(next);
            run_ends.source = self.read_through(self.counted(self.captures()?.start()?), None)?;
        }
    }

    /// The options of a pass that such a flag ends.
    pub(super) fn pass_options(&self, options: &Options, stop: Arc<AtomicBool>) -> Options {
        Options { stop: options.stop.is_some().then_some(stop), ..options.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_nothing_confirms_make_no_window_longer() {
        let span = |times: &[i64]| {
            let mut all = BelievedTimes::default();
            times.iter().for_each(|ts| all.take(ts * SECOND));
            all.span() / SECOND
        };
        let years = 10 * 365 * 24 * 3600;
        assert_eq!((span(&[]), span(&[7]), span(&[7, 9])), (0, 0, 2));
        assert_eq!(span(&[0, 1, 2, years, 3, 4]), 4);
        assert_eq!((span(&[years, 0, 1, 2, 3]), span(&[-years, 5, 6, 7, 8, 9])), (3, 4));
        // A capture may go on after years.
        let after = [0, 1, 2, 3, 4].map(|s| years + s);
        assert_eq!(span(&[&[0, 1], &after[..]].concat()), years + 4);
        assert_eq!(span(&[i64::MAX / SECOND, 0, 1, i64::MIN / SECOND]), 1);
    }

    #[test]
    fn windows_fit_the_length_of_a_capture() {
        let year = 365 * 24 * 3600 * SECOND;
        for (span, expected) in [
            (0, "1ms"),
            (1, "1ms"),
            (5 * SECOND, "50ms"),
            (100 * SECOND, "1s"),
            (3600 * SECOND, "15s"),
            (10 * year, "720h"),
            (i64::MAX, "720h"),
        ] {
            assert_eq!(interval(span).1, expected, "{span}");
        }
        assert!(INTERVALS.is_sorted());
    }
}
