//! Sequence numbers: gaps in them are losses, but for those of exporters that started again.

use crate::limits::GAP_MAX;

/// What the number of a datagram says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It follows the one before, or is the first.
    Next,
    /// So many units before it did not come.
    Gap(u32),
    /// It comes late: others overtook it, so its units were counted as lost, and are not.
    Late,
    /// The exporter started again, or its numbers did.
    Restart,
}

/// The numbers of one exporter.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sequence {
    /// The number that the next datagram should have, where that is known.
    expected: Option<u32>,
    /// The uptime, or the time of the export, of the latest datagram in order.
    clock: u32,
}

/// The number of a datagram, and what surrounds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    /// What the next number is higher by; `None` where that is not known.
    pub(crate) units: Option<u32>,
    /// How far back a number may be and still be late.
    pub(crate) late_max: u32,
    /// The uptime of the exporter in milliseconds, or the time of the export in seconds.
    pub(crate) clock: u32,
    /// Whether the clock is an uptime, which goes back when the exporter starts again.
    pub(crate) is_uptime: bool,
}

impl Sequence {
    /// Takes the number of a datagram.
    pub(crate) fn step(&mut self, n: Numbered) -> Step {
        let Some(expected) = self.expected else {
            self.follow(n);
            return Step::Next;
        };
        let (ahead, back) = (n.number.wrapping_sub(expected), expected.wrapping_sub(n.number));
        let is_back = self.clock.wrapping_sub(n.clock) < 1 << 31 && n.clock != self.clock;
        // Numbers that begin again, sent later than those before: late datagrams were sent earlier.
        let begins = !n.is_uptime && n.number == 0 && ahead != 0 && !is_back;
        let step = if ahead == 0 {
            Step::Next
        } else if back <= n.late_max && !begins {
            // An uptime that fell to almost nothing is that of a new life.
            match n.is_uptime && is_back && self.clock.wrapping_sub(n.clock) > LATE_MS {
                true => Step::Restart,
                false => Step::Late,
            }
        } else if begins || ahead > GAP_MAX || n.is_uptime && is_back {
            Step::Restart
        } else {
            Step::Gap(ahead)
        };
        if step != Step::Late {
            self.follow(n);
        }
        step
    }

    fn follow(&mut self, n: Numbered) {
        self.expected = n.units.map(|units| n.number.wrapping_add(units));
        self.clock = n.clock;
    }
}

/// Datagrams don't overtake others by more than these milliseconds.
const LATE_MS: u32 = 2000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_uptime(number: u32, units: u32, clock: u32) -> Numbered {
        Numbered { number, units: Some(units), late_max: 64, clock, is_uptime: true }
    }

    fn by_time(number: u32, units: u32, clock: u32) -> Numbered {
        Numbered { is_uptime: false, ..by_uptime(number, units, clock) }
    }

    fn check(steps: &[(Numbered, Step)]) {
        let mut sequence = Sequence::default();
        for (i, (n, expected)) in steps.iter().enumerate() {
            assert_eq!(sequence.step(*n), *expected, "step {i} of {steps:?}");
        }
    }

    #[test]
    fn gaps_late_ones_and_restarts_are_told_apart() {
        check(&[
            (by_uptime(100, 1, 5000), Step::Next),
            (by_uptime(101, 1, 5001), Step::Next),
            (by_uptime(104, 1, 5002), Step::Gap(2)),
            (by_uptime(102, 1, 5001), Step::Late),
            (by_uptime(105, 1, 5003), Step::Next),
            // A new life that begins with 1, and one with any number.
            (by_uptime(1, 1, 10), Step::Restart),
            (by_uptime(2, 1, 500_000), Step::Next),
            (by_uptime(1, 1, 3), Step::Restart),
            (by_uptime(9000, 1, 2), Step::Restart),
        ]);
        check(&[
            (by_time(0, 30, 1000), Step::Next),
            (by_time(30, 30, 1000), Step::Next),
            (by_time(90, 30, 1001), Step::Gap(30)),
            (by_time(60, 30, 1000), Step::Late),
            (by_time(0, 30, 1002), Step::Restart),
            (by_time(30 + GAP_MAX, 1, 1003), Step::Gap(GAP_MAX)),
            (by_time(32 + 2 * GAP_MAX, 1, 1003), Step::Restart),
        ]);
    }

    #[test]
    fn numbers_and_uptimes_wrap() {
        check(&[
            (by_uptime(u32::MAX, 1, u32::MAX), Step::Next),
            (by_uptime(0, 1, 5), Step::Next),
            (by_uptime(2, 1, 6), Step::Gap(1)),
            (by_uptime(u32::MAX, 1, u32::MAX), Step::Late),
        ]);
        check(&[(by_time(u32::MAX - 9, 10, 1), Step::Next), (by_time(0, 10, 1), Step::Next)]);
    }

    #[test]
    fn unknown_units_are_no_gap() {
        let mut sequence = Sequence::default();
        let unknown = Numbered { units: None, ..by_time(5, 0, 1) };
        assert_eq!(sequence.step(unknown), Step::Next);
        assert_eq!(sequence.step(by_time(500, 1, 1)), Step::Next);
        assert_eq!(sequence.step(by_time(502, 1, 1)), Step::Gap(1));
    }

    proptest! {
        /// Datagrams of which some are lost: the gaps add up to what is missing.
        #[test]
        fn gaps_add_up(
            start in any::<u32>(),
            units in 1u32..40,
            kept in proptest::collection::vec(any::<bool>(), 2..80),
        ) {
            let mut sequence = Sequence::default();
            let (mut lost, mut pending, mut begun) = (0u32, 0u32, false);
            let mut missing = 0;
            for (i, kept) in kept.iter().enumerate() {
                if !kept {
                    pending += units;
                    continue;
                }
                let number = start.wrapping_add(i as u32 * units);
                // Later datagrams bear later times, so that 0 after a wrap is no new life.
                if let Step::Gap(n) = sequence.step(by_uptime(number, units, 1000 + i as u32)) {
                    lost += n;
                }
                missing += if begun { pending } else { 0 };
                (pending, begun) = (0, true);
            }
            prop_assert_eq!(lost, missing);
        }
    }
}
