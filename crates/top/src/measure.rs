//! Packets and bytes so far, and how many by second.

use crate::limits::RATE_SECONDS;

/// Nanoseconds of a second.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// Packets and bytes, so far and of the last seconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Measure {
    /// Packets so far.
    pub(crate) packets: u64,
    /// Bytes so far.
    pub(crate) bytes: u64,
    recent: [Second; RATE_SECONDS as usize],
}

/// The packets and bytes of one second.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Second {
    /// Seconds since 1970.
    second: i64,
    packets: u64,
    bytes: u64,
}

/// Packets and bytes of a row, so far and by second.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Rates {
    /// Packets so far.
    pub packets: u64,
    /// Bytes so far.
    pub bytes: u64,
    /// Packets by second.
    pub packets_per_s: f64,
    /// Bits by second.
    pub bits_per_s: f64,
}

/// The time that rates are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// The seconds up to this one, at most [`RATE_SECONDS`], and so many of them.
    Last {
        /// Seconds since 1970.
        second: i64,
        /// How many seconds there were so far.
        seconds: i64,
    },
    /// All, which took so many nanoseconds.
    All {
        /// The length of the capture.
        ns: i64,
    },
}

impl Measure {
    /// Adds packets and bytes of the window that starts at this time.
    pub(crate) fn add(&mut self, ts: i64, packets: u64, bytes: u64) {
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes);
        let second = ts.div_euclid(SECOND_NS);
        let slot = &mut self.recent[second.rem_euclid(RATE_SECONDS) as usize];
        if slot.second > second {
            return;
        }
        if slot.second < second {
            *slot = Second { second, ..Second::default() };
        }
        slot.packets = slot.packets.saturating_add(packets);
        slot.bytes = slot.bytes.saturating_add(bytes);
    }

    /// The packets and bytes, so far and by second.
    pub(crate) fn rates(&self, over: Over) -> Rates {
        let (packets, bytes, seconds) = match over {
            Over::All { ns } => (self.packets, self.bytes, ns as f64 / SECOND_NS as f64),
            Over::Last { second, seconds } => {
                let since = second.saturating_sub(RATE_SECONDS);
                let recent = self.recent.iter().filter(|s| s.second > since && s.second <= second);
                let sum = recent.fold((0_u64, 0_u64), |(packets, bytes), s| {
                    (packets.saturating_add(s.packets), bytes.saturating_add(s.bytes))
                });
                (sum.0, sum.1, seconds.clamp(1, RATE_SECONDS) as f64)
            }
        };
        let by_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        Rates {
            packets: self.packets,
            bytes: self.bytes,
            packets_per_s: by_second(packets),
            bits_per_s: by_second(bytes) * 8.0,
        }
    }
}

impl Rates {
    /// Both together.
    pub(crate) fn plus(self, other: Rates) -> Rates {
        Rates {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
            packets_per_s: self.packets_per_s + other.packets_per_s,
            bits_per_s: self.bits_per_s + other.bits_per_s,
        }
    }

    /// The rest without the others.
    pub(crate) fn minus(self, other: Rates) -> Rates {
        // Differences of floats may be a little off zero.
        let left = |a: f64, b: f64| if a - b < 1e-6 * a { 0.0 } else { a - b };
        Rates {
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes.saturating_sub(other.bytes),
            packets_per_s: left(self.packets_per_s, other.packets_per_s),
            bits_per_s: left(self.bits_per_s, other.bits_per_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(measure: &Measure, second: i64, seconds: i64) -> (f64, f64) {
        let rates = measure.rates(Over::Last { second, seconds });
        (rates.packets_per_s, rates.bits_per_s)
    }

    #[test]
    fn rates_are_of_the_last_seconds() {
        let mut measure = Measure::default();
        for second in 10..20 {
            measure.add(second * SECOND_NS, 2, 100);
        }
        assert_eq!((measure.packets, measure.bytes), (20, 1000));
        assert_eq!(rate(&measure, 19, 10), (2.0, 800.0));
        // The last two of five are silent.
        assert_eq!(rate(&measure, 21, 12), (1.2, 480.0));
        assert_eq!(rate(&measure, 30, 20), (0.0, 0.0));
        // A run that began in this second has no five of them.
        let mut young = Measure::default();
        young.add(7 * SECOND_NS + 5, 3, 10);
        young.add(7 * SECOND_NS + 6, 1, 10);
        assert_eq!(rate(&young, 7, 1), (4.0, 160.0));
        assert_eq!(rate(&young, 7, 0), (4.0, 160.0));
        let all = young.rates(Over::All { ns: 2 * SECOND_NS });
        assert_eq!((all.packets_per_s, all.bits_per_s), (2.0, 80.0));
        assert_eq!(young.rates(Over::All { ns: 0 }).packets_per_s, 0.0);
    }

    #[test]
    fn times_at_the_edges_and_back() {
        let mut measure = Measure::default();
        for ts in [i64::MIN, -1, 0, i64::MAX, 0, i64::MIN] {
            measure.add(ts, u64::MAX, u64::MAX);
        }
        assert_eq!(measure.packets, u64::MAX);
        let rates = measure.rates(Over::Last { second: i64::MIN, seconds: 9 });
        assert_eq!(rates.packets_per_s, 0.0);
        let now = i64::MAX.div_euclid(SECOND_NS);
        assert!(rate(&measure, now, 1).0 > 0.0);
    }

    #[test]
    fn sums_agree() {
        let rates = |n: u64| Rates {
            packets: n,
            bytes: n,
            packets_per_s: n as f64 / 3.0,
            bits_per_s: n as f64 / 7.0,
        };
        assert_eq!(rates(3).plus(rates(4)).packets, 7);
        assert_eq!(rates(7).minus(rates(7)), Rates::default());
        assert_eq!(rates(1).minus(rates(2)), Rates::default());
    }
}
