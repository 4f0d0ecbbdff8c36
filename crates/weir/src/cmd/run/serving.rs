//! What a run does for its page: it stays when packets end, and reads files again when its programs
//! change.

use super::screen::PassSource;
use super::serves::Serving;
use super::session::Run;
use crate::partitions::outlets::PacketOutlets;
use crate::stats::{RunCounts, Stats};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_control::{Answers, QueryText, Request};
use weir_engine::rows::Sink;
use weir_engine::run::{Options, Outcome};
use weir_packet::source::{FrameBatch, Source as _, SourceError};
use weir_plan::Program;

/// The param of the page's programs.
const INTERVAL: &str = "interval";

/// How many windows a capture has at most, if the lengths of windows allow for that.
const WINDOWS_MAX: i64 = 240;

const SECOND: i64 = 1_000_000_000;

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

/// What a run reads from, and where its rows and packets go.
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
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        while !self.stop.load(Ordering::Relaxed) {
            batch.clear();
            // The pass reports what can't be read.
            let Ok(more) = source.fill(&mut batch) else { break };
            first = batch.ts().iter().copied().fold(first, i64::min);
            last = batch.ts().iter().copied().fold(last, i64::max);
            if !more {
                break;
            }
        }
        let (length, text) = interval(last.saturating_sub(first).max(0));
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
