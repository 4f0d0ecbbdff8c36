//! The counts of a port, and the losses among them.

use weir_packet::source::Lost;

/// The counts of a port since it was made; as in the C.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    /// Frames for which its rings had no room.
    pub(crate) missed: u64,
    /// Frames that were faulty.
    pub(crate) errors: u64,
    /// How often there was no buffer.
    pub(crate) no_buffer: u64,
}

/// The counts of a port since it was opened, however often its counters are set to zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// The last values of its counters.
    last: Counts,
    total: Counts,
}

impl Tally {
    /// From counters that say this now.
    pub(crate) fn new(now: Counts) -> Tally {
        Tally { last: now, total: Counts::default() }
    }

    /// Adds what has been counted since; counters that have less than they had began anew.
    pub(crate) fn add(&mut self, now: Counts) {
        let more = |now: u64, last: u64| if now < last { now } else { now - last };
        let (total, last) = (&mut self.total, self.last);
        for (total, now, last) in [
            (&mut total.received, now.received, last.received),
            (&mut total.missed, now.missed, last.missed),
            (&mut total.errors, now.errors, last.errors),
            (&mut total.no_buffer, now.no_buffer, last.no_buffer),
        ] {
            *total = total.saturating_add(more(now, last));
        }
        self.last = now;
    }

    /// The frames that were lost, with so many that the source could not read.
    pub(crate) fn lost(&self, unread: u64) -> Lost {
        let Counts { missed, errors, no_buffer, .. } = self.total;
        let (interface, ring) = (errors.saturating_add(unread), missed.saturating_add(no_buffer));
        Lost { interface, kernel: 0, ring }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_by_place_and_since_the_start() {
        let mut tally = Tally::new(Counts { received: 9, missed: 100, errors: 10, no_buffer: 1 });
        assert_eq!(tally.lost(0), Lost::default());
        tally.add(Counts { received: 50, missed: 107, errors: 13, no_buffer: 3 });
        assert_eq!(tally.lost(2), Lost { interface: 5, kernel: 0, ring: 9 });
        // Counters that were set to zero meanwhile, and go on.
        tally.add(Counts { received: 1, missed: 4, errors: 0, no_buffer: 3 });
        assert_eq!(tally.lost(2), Lost { interface: 5, kernel: 0, ring: 13 });
        tally.add(Counts { received: 1, missed: 5, errors: 1, no_buffer: 3 });
        assert_eq!(tally.lost(2), Lost { interface: 6, kernel: 0, ring: 14 });
    }
}
