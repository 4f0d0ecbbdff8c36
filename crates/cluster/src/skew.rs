//! How far the clocks of probes are apart: by what their kernels say, and by when their windows
//! come.
//!
//! Every probe reports that a window is closed once its own clock has passed the end. The windows
//! of all probes are the same, so what passes between the first such report and that of another
//! probe is the difference of their clocks, and of the times that messages take. The least delay of
//! several windows counts: a single message may be late.

use crate::head::ProbeHead;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

/// Reports of a probe that are compared with those of the others; all have to agree.
const COMPARED: usize = 8;

/// Reports of a probe that are kept.
const KEPT: usize = 64;

/// That windows of a probe are closed.
#[derive(Clone, Copy)]
struct CloseReport {
    /// Up to this time, in nanoseconds since 1970.
    closed: i64,
    came: Instant,
    /// It came as time went. Otherwise it had waited, such as in a topic, and when it comes says
    /// nothing about a clock.
    is_prompt: bool,
}

/// By how much the windows of a probe come later than those of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowDelay {
    pub(crate) delay: Duration,
    /// The number of the other probe, which was the first.
    pub(crate) first: u128,
}

/// The reports of all live probes.
#[derive(Default)]
pub(crate) struct CloseReports {
    probes: BTreeMap<u128, VecDeque<CloseReport>>,
}

impl CloseReports {
    /// A life of a probe begins. Only one that captures now has a clock that goes with those of
    /// others.
    pub(crate) fn begin_life(&mut self, probe: u128, is_live: bool) {
        self.probes.remove(&probe);
        if is_live {
            self.probes.insert(probe, VecDeque::new());
        }
    }

    /// A message came, after which the windows of a probe are closed up to this time; whether that
    /// is news.
    pub(crate) fn note(&mut self, probe: u128, closed: i64, came: Instant) -> bool {
        let Some(reports) = self.probes.get_mut(&probe) else { return false };
        let is_prompt = match reports.back() {
            Some(last) if closed <= last.closed => return false,
            Some(last) if last.closed > i64::MIN => {
                let passed = closed.saturating_sub(last.closed);
                let between = came.saturating_duration_since(last.came);
                between >= Duration::from_nanos(passed.unsigned_abs() / 2)
            }
            _ => false,
        };
        if reports.len() == KEPT {
            reports.pop_front();
        }
        reports.push_back(CloseReport { closed, came, is_prompt });
        true
    }

    /// By how much later than the first of the other probes this one closes windows, at least;
    /// `None` as long as too little is known. Its last report is left out, since those of others
    /// may not have been taken yet that came before.
    pub(crate) fn delay(&self, probe: u128) -> Option<WindowDelay> {
        let reports = self.probes.get(&probe)?;
        let judged = reports.iter().rev().skip(1).filter(|report| report.is_prompt).take(COMPARED);
        let mut delays = Vec::with_capacity(COMPARED);
        for report in judged {
            let others = self.probes.iter().filter(|(other, _)| **other != probe);
            let (first, came) = others
                .filter_map(|(other, reports)| {
                    let at = reports.partition_point(|other| other.closed < report.closed);
                    // An earlier one may be forgotten, so the first that is kept says nothing.
                    let first = reports.get(at).filter(|_| at > 0)?;
                    Some((*other, first.came))
                })
                .min_by_key(|(_, came)| *came)?;
            delays.push(WindowDelay { delay: report.came.saturating_duration_since(came), first });
        }
        let is_enough = delays.len() == COMPARED;
        delays.into_iter().min_by_key(|delay| delay.delay).filter(|_| is_enough)
    }
}

/// Why the clocks of probes may be further apart than they are to be.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClockFault {
    /// The clock of the machine on which this stream was written is not synchronised.
    Unsynchronised {
        /// The name of the stream.
        stream: String,
    },
    /// Two clocks may be further apart: the names of the streams.
    Apart {
        /// The names of the streams.
        streams: [String; 2],
        /// By how much each clock is off at most.
        errors: [Duration; 2],
    },
}

impl fmt::Display for ClockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockFault::Unsynchronised { stream } => write!(
                f,
                "{stream}: the clock of its probe is not synchronised, as the kernel there says: \
                 nobody knows how far it is from those of others"
            ),
            ClockFault::Apart { streams: [first, other], errors: [a, b] } => write!(
                f,
                "{other}: the clock of its probe is off by up to {b:?}, as the kernel there says, \
                 and that of {first} by up to {a:?}: together that is more than the clocks may \
                 differ"
            ),
        }
    }
}

/// The errors of the clocks of live probes, which together have a bound.
#[derive(Clone)]
pub(crate) struct ClockErrors {
    /// By how much two clocks may differ.
    most: Duration,
    /// Of each probe a stream, and the largest error that one of its lives has told of.
    probes: BTreeMap<u128, (String, Duration)>,
}

impl ClockErrors {
    pub(crate) fn new(most: Duration) -> ClockErrors {
        ClockErrors { most, probes: BTreeMap::new() }
    }

    /// Adds a life of a probe, unless its clock and that of another probe may differ by more than
    /// they are to. A probe that reads files has no clock.
    pub(crate) fn add(&mut self, stream: &str, head: &ProbeHead) -> Result<(), ClockFault> {
        let Some(clock) = head.clock else { return Ok(()) };
        let Some(error) = clock.max_error() else {
            return Err(ClockFault::Unsynchronised { stream: stream.to_owned() });
        };
        let probe = head.id().probe;
        let others = self.probes.iter().filter(|(other, _)| **other != probe);
        let largest = others.map(|(_, other)| other).max_by_key(|(_, error)| *error);
        if let Some((other, of_other)) = largest
            && of_other.saturating_add(error) > self.most
        {
            let streams = [other.clone(), stream.to_owned()];
            return Err(ClockFault::Apart { streams, errors: [*of_other, error] });
        }
        let known = self.probes.entry(probe).or_insert_with(|| (stream.to_owned(), error));
        known.1 = known.1.max(error);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{PacketRules, ProbeClock};

    const SECOND_NS: i64 = 1_000_000_000;

    #[expect(clippy::disallowed_methods, reason = "some moment, from which the test counts")]
    fn start() -> Instant {
        Instant::now()
    }

    /// Reports of seconds 0 and following, of which each probe's come so many milliseconds late.
    fn reports(seconds: i64, late_ms: &[&dyn Fn(i64) -> u64]) -> CloseReports {
        let begin = start();
        let mut reports = CloseReports::default();
        (0..late_ms.len()).for_each(|probe| reports.begin_life(probe as u128, true));
        for second in 0..seconds {
            for (probe, late) in late_ms.iter().enumerate() {
                let at = begin + Duration::from_secs(second as u64);
                let came = at + Duration::from_millis(late(second));
                assert!(reports.note(probe as u128, second * SECOND_NS, came));
            }
        }
        reports
    }

    fn delay(reports: &CloseReports, probe: u128) -> Option<(u128, u128)> {
        reports.delay(probe).map(|WindowDelay { delay, first }| (delay.as_millis(), first))
    }

    #[test]
    fn a_clock_that_is_behind_is_seen_and_so_is_who_was_first() {
        let reports = reports(20, &[&|_| 20, &|_| 2_300, &|_| 0]);
        assert_eq!(delay(&reports, 0), Some((20, 2)));
        assert_eq!(delay(&reports, 1), Some((2_300, 2)));
        assert_eq!(delay(&reports, 2), Some((0, 0)));
        assert_eq!(delay(&reports, 9), None, "nobody has told of this one");
    }

    /// Times at the ends of the scale are times like others.
    #[test]
    fn reports_at_the_ends_of_time_are_compared() {
        let mut reports = CloseReports::default();
        let begin = start();
        for probe in [0, 1] {
            reports.begin_life(probe, true);
            for closed in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX, i64::MAX] {
                reports.note(probe, closed, begin);
            }
            assert_eq!(delay(&reports, probe), None);
        }
    }

    #[test]
    fn few_reports_say_nothing() {
        // The first one has none before it, and the last one is left out.
        assert_eq!(delay(&reports(9, &[&|_| 0, &|_| 2_000]), 1), None);
        assert_eq!(delay(&reports(10, &[&|_| 0, &|_| 2_000]), 1), Some((2_000, 0)));
        assert_eq!(delay(&reports(30, &[&|_| 2_000]), 0), None, "there is nobody to compare with");
        let mut ended = reports(20, &[&|_| 0, &|_| 2_000]);
        ended.begin_life(0, false);
        assert_eq!(delay(&ended, 1), None, "it reads files now");
        ended.begin_life(1, true);
        assert!(
            ended.note(1, 0, start()),
            "a new life begins anew, also where its clock is behind"
        );
    }

    #[test]
    fn what_is_no_news_is_not_compared() {
        let mut reports = reports(12, &[&|_| 0, &|_| 500]);
        let before = delay(&reports, 1);
        for closed in [11, 3, 0] {
            assert!(!reports.note(1, closed * SECOND_NS, start()));
        }
        assert!(!reports.note(7, 99, start()), "it is not live");
        assert_eq!(delay(&reports, 1), before);
    }

    /// Reports that waited in a topic come all at once, whichever clock stamped them.
    #[test]
    fn reports_that_had_waited_say_nothing() {
        let begin = start();
        let mut reports = CloseReports::default();
        for probe in [0, 1] {
            reports.begin_life(probe, true);
            for second in 0..40 {
                let came = begin + Duration::from_millis(probe as u64 * 5_000 + second as u64);
                reports.note(probe, second * SECOND_NS, came);
            }
        }
        assert_eq!([0, 1].map(|probe| delay(&reports, probe)), [None; 2]);
    }

    #[test]
    fn the_least_delay_of_eight_windows_counts() {
        let late = |second| [3_000, 2_500, 2_800][second as usize % 3];
        assert_eq!(delay(&reports(12, &[&|_| 0, &late]), 1), Some((2_500, 0)));
        // Once messages take less again, that is seen.
        let late = |second: i64| if second < 15 { 3_000 } else { 100 };
        let after = |seconds| delay(&reports(seconds, &[&|_| 0, &late]), 1);
        assert_eq!([15, 17, 19, 30].map(after), [3_000, 3_000, 100, 100].map(|ms| Some((ms, 0))));
    }

    fn head(probe: &str, max_error_us: Option<Option<u64>>) -> ProbeHead {
        ProbeHead {
            probe: probe.to_owned(),
            epoch: 1,
            weir: "0".to_owned(),
            fingerprint: "0".to_owned(),
            rules: PacketRules { headers: "outer".to_owned(), fragments: false, lateness_ns: 0 },
            resumes: false,
            clock: max_error_us.map(|max_error_us| ProbeClock { max_error_us }),
        }
    }

    #[test]
    fn clocks_may_differ_by_their_errors_together() {
        let check = |errors: &[(&str, Option<Option<u64>>)], most| {
            let mut clocks = ClockErrors::new(Duration::from_micros(most));
            let mut add = |(probe, error): &(&str, _)| {
                clocks.add(&format!("{probe}.wps"), &head(probe, *error))
            };
            errors.iter().try_for_each(&mut add).map_err(|fault| fault.to_string())
        };
        let known = |error| Some(Some(error));
        assert_eq!(check(&[("a", known(5)), ("b", known(7)), ("c", None)], 12), Ok(()));
        let apart = check(&[("a", known(5)), ("b", known(1)), ("c", known(8))], 12);
        let expected = "c.wps: the clock of its probe is off by up to 8µs, as the kernel there \
                        says, and that of a.wps by up to 5µs";
        assert!(apart.as_ref().is_err_and(|why| why.starts_with(expected)), "{apart:?}");
        let unsynchronised = check(&[("a", None), ("b", Some(None))], u64::MAX);
        assert!(unsynchronised.is_err_and(|why| why.starts_with("b.wps: ")));
        let most = u64::MAX;
        assert_eq!(check(&[("a", known(most)), ("b", None)], 1), Ok(()), "it has nobody beside it");
        assert!(check(&[("a", known(most)), ("b", known(most))], most).is_err());
        // Lives of one probe have one clock, whose larger error counts.
        assert_eq!(check(&[("a", known(8)), ("a", known(9)), ("a", known(2))], 10), Ok(()));
        assert!(
            check(&[("a", known(8)), ("a", known(9)), ("a", known(2)), ("b", known(2))], 10)
                .is_err()
        );
    }
}
