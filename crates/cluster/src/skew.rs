//! How far the clocks of probes are apart: by what their kernels say, and by when their windows
//! come.
//!
//! Every probe says of each window that it has passed its end, by its clock. What comes between the
//! first such word and that of another probe is the difference of their clocks, and of the times
//! that messages take. The least of several windows is told: a message may be late for once.

use crate::head::ProbeHead;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

/// Words of a probe that are compared with those of the others; all have to agree.
const COMPARED: usize = 8;

/// Words of a probe that are kept.
const KEPT: usize = 64;

/// What a probe said.
#[derive(Clone, Copy)]
struct Word {
    /// Its windows are closed up to this time, in nanoseconds since 1970.
    closed: i64,
    came: Instant,
    /// It came as time went. Otherwise it had waited, such as in a topic, and when it comes says
    /// nothing about a clock.
    is_prompt: bool,
}

/// What live probes said.
#[derive(Default)]
pub(crate) struct Words {
    probes: BTreeMap<u128, VecDeque<Word>>,
}

impl Words {
    /// Whether a probe captures now, so that its clock goes with those of others.
    pub(crate) fn set_live(&mut self, probe: u128, is_live: bool) {
        if is_live {
            self.probes.entry(probe).or_default();
        } else {
            self.probes.remove(&probe);
        }
    }

    /// A message came, after which this is how far the windows of a probe are closed.
    pub(crate) fn note(&mut self, probe: u128, closed: i64, came: Instant) {
        let Some(words) = self.probes.get_mut(&probe) else { return };
        let is_prompt = match words.back() {
            Some(last) if closed <= last.closed => return,
            Some(last) if last.closed > i64::MIN => {
                let passed = closed.saturating_sub(last.closed);
                let between = came.saturating_duration_since(last.came);
                between >= Duration::from_nanos(passed.unsigned_abs() / 2)
            }
            _ => false,
        };
        if words.len() == KEPT {
            words.pop_front();
        }
        words.push_back(Word { closed, came, is_prompt });
    }

    /// By how much later than the first of the other probes this one says that windows are closed,
    /// at least; `None` as long as too little is known. Its last word is left out, since those of
    /// others may not have been taken yet that came before.
    pub(crate) fn behind(&self, probe: u128) -> Option<Duration> {
        let words = self.probes.get(&probe)?;
        let judged = words.iter().rev().skip(1).take(COMPARED);
        let mut least: Option<Duration> = None;
        let mut compared = 0;
        for word in judged.take_while(|word| word.is_prompt) {
            let others = self.probes.iter().filter(|(other, _)| **other != probe);
            let first = others.filter_map(|(_, words)| {
                let at = words.partition_point(|other| other.closed < word.closed);
                // What was said before the words that are kept is not known.
                (at > 0).then(|| words.get(at).map(|other| other.came))?
            });
            let behind = word.came.saturating_duration_since(first.min()?);
            least = Some(least.map_or(behind, |least| least.min(behind)));
            compared += 1;
        }
        least.filter(|_| compared == COMPARED)
    }
}

/// Why the clocks of probes may be further apart than they are to be.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClockFault {
    /// Nothing keeps the clock of the machine on which this stream was written.
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

/// Whether clocks are certain to differ by no more than `most`; streams have names. Probes that
/// read files have no clock.
pub(crate) fn check<'a>(
    heads: impl Iterator<Item = (&'a str, &'a ProbeHead)>,
    most: Duration,
) -> Result<(), ClockFault> {
    let mut largest: Option<(&str, Duration)> = None;
    for (stream, head) in heads {
        let Some(clock) = head.clock else { continue };
        let Some(error) = clock.max_error() else {
            return Err(ClockFault::Unsynchronised { stream: stream.to_owned() });
        };
        if let Some((first, other)) = largest
            && other + error > most
        {
            let streams = [first.to_owned(), stream.to_owned()];
            return Err(ClockFault::Apart { streams, errors: [other, error] });
        }
        if largest.is_none_or(|(_, other)| other < error) {
            largest = Some((stream, error));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{PacketRules, ProbeClock};

    const SECOND_NS: i64 = 1_000_000_000;

    /// Probes whose words come so many milliseconds after the moment that they speak of.
    fn words(late_ms: &[u64], seconds: std::ops::Range<i64>) -> Words {
        let begin = start();
        let mut words = Words::default();
        (0..late_ms.len()).for_each(|probe| words.set_live(probe as u128, true));
        for second in seconds.clone() {
            for (probe, late) in late_ms.iter().enumerate() {
                let at = begin + Duration::from_secs((second - seconds.start) as u64);
                let came = at + Duration::from_millis(*late);
                words.note(probe as u128, second * SECOND_NS, came);
            }
        }
        words
    }

    #[expect(clippy::disallowed_methods, reason = "some moment, from which the test counts")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_clock_that_is_behind_is_seen() {
        let words = words(&[20, 2_300, 0], 5..25);
        let behind = |probe| words.behind(probe).map(|behind| behind.as_millis());
        assert_eq!([0, 1, 2].map(behind), [Some(20), Some(2_300), Some(0)]);
        assert_eq!(behind(9), None, "nobody has told of this one");
    }

    /// Times before 1970 and at the ends of the scale are times like others.
    #[test]
    fn words_at_the_ends_of_time_are_compared() {
        let (first, second) = (i64::MIN + 1, i64::MAX);
        let mut words = Words::default();
        let begin = start();
        for probe in [0, 1] {
            words.set_live(probe, true);
            for closed in [i64::MIN, first, -1, 0, 1, second, second] {
                words.note(probe, closed, begin);
            }
            assert_eq!(words.behind(probe), None);
        }
    }

    #[test]
    fn few_words_say_nothing() {
        assert_eq!(words(&[0, 2_000], 0..9).behind(1), None);
        assert!(words(&[0, 2_000], 0..11).behind(1).is_some());
        assert_eq!(words(&[2_000], 0..30).behind(0), None, "there is nobody to compare with");
    }

    /// What waited in a topic comes at once, whichever clock stamped it.
    #[test]
    fn words_that_had_waited_say_nothing() {
        let mut words = words(&[0, 0], 0..20);
        let late = start() + Duration::from_secs(60);
        for probe in [1, 0] {
            for second in 20..40 {
                let came = late + Duration::from_millis(u64::from(probe == 0) * 5_000);
                words.note(probe, second * SECOND_NS, came);
            }
        }
        assert_eq!([0, 1].map(|probe| words.behind(probe)), [None; 2]);
    }

    /// One late message is no clock.
    #[test]
    fn the_least_of_several_windows_is_told() {
        let mut words = words(&[0, 3_000], 0..20);
        let at = |second: u64, ms: u64| {
            let first = words.probes[&0][0].came;
            first + Duration::from_secs(second) + Duration::from_millis(ms)
        };
        let came = [at(20, 0), at(20, 100), at(21, 0), at(21, 3_000)];
        for (probe, second, came) in
            [(0, 20, came[0]), (1, 20, came[1]), (0, 21, came[2]), (1, 21, came[3])]
        {
            words.note(probe, second * SECOND_NS, came);
        }
        // The word that came early had waited for none, and breaks the row of those that agree.
        assert_eq!(words.behind(1), None);
    }

    fn head(max_error_us: Option<Option<u64>>) -> ProbeHead {
        ProbeHead {
            probe: "p".to_owned(),
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
        let check = |errors: &[Option<Option<u64>>], most| {
            let heads: Vec<ProbeHead> = errors.iter().map(|error| head(*error)).collect();
            let named = ["a", "b", "c"].into_iter().zip(&heads);
            check(named, Duration::from_micros(most)).map_err(|fault| fault.to_string())
        };
        assert_eq!(check(&[Some(Some(5)), Some(Some(7)), None], 12), Ok(()));
        let apart = check(&[Some(Some(5)), Some(Some(1)), Some(Some(8))], 12);
        let expected = "c: the clock of its probe is off by up to 8µs, as the kernel there says, \
                        and that of a by up to 5µs";
        assert!(apart.as_ref().is_err_and(|why| why.starts_with(expected)), "{apart:?}");
        let nobody_knows = check(&[None, Some(None)], u64::MAX);
        assert!(nobody_knows.is_err_and(|why| why.starts_with("b: ")));
        assert_eq!(check(&[Some(Some(u64::MAX)), None], 1), Ok(()), "one clock differs from none");
        assert!(check(&[Some(Some(u64::MAX)), Some(Some(u64::MAX))], u64::MAX).is_err());
    }
}
