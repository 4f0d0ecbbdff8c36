//! What a port counts, and what of it was lost.

use weir_packet::source::Lost;

/// What a port has counted since it was made; as in the C.
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

impl Counts {
    /// What was lost since `before`, and by a source that could not read so many frames.
    pub(crate) fn lost_since(self, before: Counts, foreign: u64) -> Lost {
        let missed = self.missed.saturating_sub(before.missed);
        let no_buffer = self.no_buffer.saturating_sub(before.no_buffer);
        Lost {
            interface: self.errors.saturating_sub(before.errors).saturating_add(foreign),
            kernel: 0,
            ring: missed.saturating_add(no_buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_by_place_and_since_the_start() {
        let before = Counts { received: 9, missed: 100, errors: 10, no_buffer: 1 };
        let now = Counts { received: 50, missed: 107, errors: 13, no_buffer: 3 };
        assert_eq!(now.lost_since(before, 2), Lost { interface: 5, kernel: 0, ring: 9 });
        assert_eq!(before.lost_since(before, 0), Lost::default());
        // Counters that were set to zero meanwhile.
        assert_eq!(Counts::default().lost_since(now, 0), Lost::default());
    }
}
