//! Sending by a port, as outlets do it.

use crate::clock::pause;
use crate::limits::{DRAIN_MS, PAUSE_NS, SENT_AGE_NS};
use crate::sys::sender::Sender;
use weir_capture::live::clock::steady;
use weir_capture::send::Transmit;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// A port that frames are sent by, and what became of them.
pub(crate) struct Sending {
    port: Sender,
    /// Frames that the port took.
    taken: u64,
    /// The values of its counters at the start, of frames sent and not sent.
    before: (u64, u64),
    /// Frames that it threw away, by its counters when they were last asked, ...
    thrown: u64,
    /// ... how many of them were reported, ...
    reported: u64,
    /// ... and when that was.
    asked: i64,
}

impl Sending {
    pub(crate) fn new(port: Sender) -> Sending {
        let before = port.counts().unwrap_or_default();
        Sending { port, taken: 0, before, thrown: 0, reported: 0, asked: steady() }
    }

    /// Asks how many frames were thrown away, and says how many are on their way.
    fn ask(&mut self) -> u64 {
        self.asked = steady();
        let Ok((sent, failed)) = self.port.counts() else { return 0 };
        let sent = sent.saturating_sub(self.before.0);
        let failed = failed.saturating_sub(self.before.1);
        let (on_their_way, thrown) = left(self.taken, sent, failed);
        self.thrown = self.thrown.max(thrown);
        on_their_way
    }
}

/// Of so many frames that a port took, and so many that it counts as sent, and as failed: how many
/// are on their way, and how many were thrown away.
///
/// A card counts a frame when it has left, some time after it was taken. Some drivers count among
/// those that failed what they had no room for, and gave back: so neither number is enough.
fn left(taken: u64, sent: u64, failed: u64) -> (u64, u64) {
    let rest = taken.saturating_sub(sent);
    let thrown = rest.min(failed);
    (rest - thrown, thrown)
}

impl Transmit for Sending {
    fn len_max(&self) -> usize {
        self.port.on().mtu() as usize + ETHERNET
    }

    fn send(&mut self, frames: &[&[u8]]) -> usize {
        let n = self.port.send(frames);
        self.taken += n as u64;
        n
    }

    fn is_up(&self) -> bool {
        !self.port.on().is_removed() && self.port.on().is_up() != Some(false)
    }

    fn thrown_away(&mut self, most: u64) -> u64 {
        if steady() - self.asked >= SENT_AGE_NS {
            self.ask();
        }
        let more = (self.thrown - self.reported).min(most);
        self.reported += more;
        more
    }

    fn drain(&mut self) {
        let since = steady();
        while self.ask() > 0 && steady() - since < i64::from(DRAIN_MS) * 1_000_000 {
            pause(PAUSE_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::left;

    #[test]
    fn what_was_thrown_away_is_neither_sent_nor_on_its_way() {
        // On their way, sent, thrown away.
        assert_eq!(left(10, 4, 0), (6, 0));
        assert_eq!(left(10, 10, 0), (0, 0));
        assert_eq!(left(10, 7, 3), (0, 3));
        assert_eq!(left(10, 4, 1), (5, 1));
        // Five were given back, and counted as failed.
        assert_eq!(left(10, 10, 5), (0, 0));
        // By others, too.
        assert_eq!(left(10, 12, 0), (0, 0));
    }
}
