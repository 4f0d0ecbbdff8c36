//! Sequence numbers: gaps in them are losses, but for those of exporters that started again.

use crate::limits::GAP_MAX;

/// The meaning of the number of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It follows the one before, or is the first.
    Next,
    /// So many units before it did not come.
    Gap(u32),
    /// It comes late: others overtook it. So many of its units were counted as lost, and are not;
    /// none where it came before.
    Late(u32),
    /// The exporter started again, or its numbers did.
    Restart,
}

/// Gaps that late datagrams may still fill; older ones are losses for good.
const GAPS_OPEN: usize = 8;

/// Units that did not come: the first number, and how many.
type MissingUnits = (u32, u32);

/// The numbers of one exporter.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sequence {
    /// The latest gaps, of which the next takes the place of the oldest.
    missing: [MissingUnits; GAPS_OPEN],
    next_gap: usize,

    /// The number that the next datagram should have, where that is known.
    expected: Option<u32>,
    /// The number of the latest datagram in order.
    latest: u32,
    /// Whether numbers are known to leave out the datagram that bears them, as they should. The
    /// numbers of softflowd's IPFIX count it, too.
    leaves_out_itself: bool,
    /// The uptime, or the time of the export, of the latest datagram in order.
    clock: u32,
}

/// The number of a datagram, and what surrounds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u32,
    /// The units by which the next number is higher; `None` where that is not known.
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
        let later = if is_back { 0 } else { n.clock.wrapping_sub(self.clock) };
        // Numbers that begin again, sent later than those before, or that go back long after these:
        // late datagrams were sent earlier.
        let begins = !n.is_uptime
            && ahead != 0
            && (n.number == 0 && later > 0 || back <= n.late_max && later > LATE_S);
        let counts_itself =
            n.units.is_some_and(|units| n.number.wrapping_sub(units) == self.latest);
        self.leaves_out_itself |= ahead == 0 && !counts_itself;
        let step = if ahead == 0 || counts_itself && !self.leaves_out_itself {
            Step::Next
        } else if back <= n.late_max && !begins {
            // An uptime that fell to almost nothing is that of a new life.
            match n.is_uptime && is_back && self.clock.wrapping_sub(n.clock) > LATE_MS {
                true => Step::Restart,
                false => Step::Late(self.fill(n.number, n.units.unwrap_or(0))),
            }
        } else if begins || ahead > GAP_MAX || n.is_uptime && is_back {
            Step::Restart
        } else {
            Step::Gap(ahead)
        };
        match step {
            Step::Late(_) => return step,
            Step::Gap(units) => self.open((expected, units)),
            Step::Restart => self.missing = Default::default(),
            Step::Next => {}
        }
        self.follow(n);
        step
    }

    fn open(&mut self, gap: MissingUnits) {
        self.missing[self.next_gap % GAPS_OPEN] = gap;
        self.next_gap += 1;
    }

    /// Takes units out of the gaps that they were missing in; how many those were.
    fn fill(&mut self, number: u32, units: u32) -> u32 {
        let mut found = 0;
        for i in 0..GAPS_OPEN {
            let (first, len) = self.missing[i];
            let from = i64::from(number.wrapping_sub(first).cast_signed());
            let until = (from + i64::from(units)).min(len.into());
            let from = from.max(0);
            if from >= until {
                continue;
            }
            // Both lie within the gap.
            let (from, until) = (from as u32, until as u32);
            found += until - from;
            let (before, after) = ((first, from), (first.wrapping_add(until), len - until));
            self.missing[i] = if from > 0 { before } else { after };
            if from > 0 && until < len {
                self.open(after);
            }
        }
        found
    }

    fn follow(&mut self, n: Numbered) {
        self.expected = n.units.map(|units| n.number.wrapping_add(units));
        (self.latest, self.clock) = (n.number, n.clock);
    }
}

/// Datagrams don't overtake others by more than these milliseconds, or seconds.
const LATE_MS: u32 = 2000;
const LATE_S: u32 = LATE_MS / 1000;

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
            (by_uptime(102, 1, 5001), Step::Late(1)),
            // It came before, and the other one of that gap did not.
            (by_uptime(102, 1, 5001), Step::Late(0)),
            (by_uptime(104, 1, 5002), Step::Late(0)),
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
            (by_time(60, 30, 1000), Step::Late(30)),
            (by_time(0, 30, 1002), Step::Restart),
            (by_time(30 + GAP_MAX, 1, 1003), Step::Gap(GAP_MAX)),
            (by_time(32 + 2 * GAP_MAX, 1, 1003), Step::Restart),
        ]);
    }

    #[test]
    fn restarts_without_an_uptime_show_by_the_time_of_the_export() {
        check(&[
            (by_time(30, 30, 1000), Step::Next),
            // The first two changed places, and then it starts again: its first message is lost.
            (by_time(0, 30, 1000), Step::Late(0)),
            (by_time(60, 30, 1000), Step::Next),
            (by_time(50, 10, 1060), Step::Restart),
            (by_time(60, 10, 1061), Step::Next),
        ]);
    }

    #[test]
    fn numbers_may_count_the_datagram_that_bears_them() {
        // As softflowd 1.1.0 numbers its messages.
        let all = [(24, 24), (56, 32), (88, 32), (120, 32), (141, 21)];
        check(&all.map(|(number, units)| (by_time(number, units, 1), Step::Next)));
        // Its losses are seen, as far as sizes are alike.
        check(&[
            (by_time(10, 10, 1), Step::Next),
            (by_time(30, 20, 1), Step::Next),
            (by_time(70, 20, 1), Step::Gap(20)),
        ]);
        // Of those that number as they should, one gap is not explained away.
        check(&[
            (by_time(0, 10, 1), Step::Next),
            (by_time(10, 20, 1), Step::Next),
            (by_time(50, 40, 1), Step::Gap(20)),
        ]);
    }

    #[test]
    fn gaps_are_filled_part_by_part() {
        let at = |number, units| Numbered { late_max: 100, ..by_time(number, units, 1) };
        check(&[
            (at(0, 10), Step::Next),
            (at(70, 10), Step::Gap(60)),
            (at(30, 10), Step::Late(10)),
            (at(25, 20), Step::Late(10)),
            (at(10, 15), Step::Late(15)),
            (at(45, 30), Step::Late(25)),
            (at(10, 60), Step::Late(0)),
        ]);
    }

    #[test]
    fn numbers_and_uptimes_wrap() {
        check(&[
            (by_uptime(u32::MAX, 1, u32::MAX), Step::Next),
            (by_uptime(0, 1, 5), Step::Next),
            (by_uptime(2, 1, 6), Step::Gap(1)),
            (by_uptime(u32::MAX, 1, u32::MAX), Step::Late(0)),
            (by_uptime(1, 1, 5), Step::Late(1)),
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
