//! The state of one direction of a connection.

use super::segment::{Segment, after};

/// Words that a side takes.
pub(super) const WORDS: usize = 6;

/// Words that its time stamps take.
pub(super) const STAMP_WORDS: usize = 2;

/// One direction: what its sender has shown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct HalfConnection {
    /// The sequence number after all that was sent, and when it came to be that.
    pub(super) next: Option<u32>,
    pub(super) next_time: i64,
    /// The end of what was sent without a gap, but for gaps that were told as acknowledged.
    pub(super) contiguous: Option<u32>,
    /// The number that was acknowledged last, by the latest segment.
    pub(super) acked: Option<u32>,
    /// When the latest segment came.
    pub(super) last_time: i64,
    /// The window of the latest segment.
    pub(super) window: Option<u16>,
    /// Whether that was a SYN's, which is not scaled.
    pub(super) of_syn: bool,
    pub(super) scale: Scale,
    /// Duplicates of the latest acknowledgment so far, as far as can be counted.
    pub(super) duplicates: u16,
    /// The sequence number of its SYN, or the one before the first segment; and whether that was a
    /// SYN.
    pub(super) base: Option<u32>,
    pub(super) saw_syn: bool,
    /// When that was sent, or whatever else takes the number after it, until it is acknowledged or
    /// sent again.
    pub(super) opening: Option<i64>,
    /// The kind of the latest segment.
    pub(super) latest: Latest,
    /// Whether something was lost since the other side's latest acknowledgment, so that what is in
    /// flight is not known.
    pub(super) in_doubt: bool,
}

/// The time stamps of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Stamps {
    /// The largest.
    pub(super) newest: Option<u32>,
    /// One whose echo is waited for, and when it was sent.
    pub(super) pending: Option<u32>,
    pub(super) sent: i64,
}

/// How windows are scaled.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Scale {
    /// The handshake was not seen.
    #[default]
    Unknown,
    /// They are not.
    Off,
    /// By so many bits.
    By(u8),
}

/// The kind of the latest segment of a direction, as far as the answer to it depends on that.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Latest {
    #[default]
    Other,
    KeepAlive,
    ZeroWindowProbe,
}

/// The largest shift count (RFC 7323, 2.3).
const SCALE_MAX: u8 = 14;

/// Where things stand in the word that has no number of its own.
const WINDOW: u32 = 0;
const DUPLICATES: u32 = 16;
const SCALE: u32 = 32;
const LATEST: u32 = 40;
const FLAGS: u32 = 48;

/// Shift counts that are none.
const UNKNOWN: u64 = 0xff;
const OFF: u64 = 0xfe;

impl HalfConnection {
    #[inline(always)]
    pub(super) fn load(words: &[u64; WORDS]) -> HalfConnection {
        let more = words[2];
        let flag = |bit: u32| more >> (FLAGS + bit) & 1 == 1;
        let high = |word: u64, bit: u32| flag(bit).then_some((word >> 32) as u32);
        let low = |word: u64, bit: u32| flag(bit).then_some(word as u32);
        let scale = match more >> SCALE & 0xff {
            UNKNOWN => Scale::Unknown,
            OFF => Scale::Off,
            bits => Scale::By(bits as u8),
        };
        let latest = match more >> LATEST & 0xff {
            1 => Latest::KeepAlive,
            2 => Latest::ZeroWindowProbe,
            _ => Latest::Other,
        };
        HalfConnection {
            next: high(words[0], 0),
            contiguous: low(words[0], 1),
            acked: high(words[1], 2),
            base: low(words[1], 3),
            window: flag(5).then_some((more >> WINDOW) as u16),
            duplicates: (more >> DUPLICATES) as u16,
            scale,
            latest,
            of_syn: flag(6),
            saw_syn: flag(7),
            in_doubt: flag(8),
            next_time: words[3] as i64,
            last_time: words[4] as i64,
            opening: flag(4).then_some(words[5] as i64),
        }
    }

    #[inline(always)]
    pub(super) fn store(&self, words: &mut [u64; WORDS]) {
        let pair = |high: Option<u32>, low: Option<u32>| {
            u64::from(high.unwrap_or(0)) << 32 | u64::from(low.unwrap_or(0))
        };
        let flags = [
            self.next.is_some(),
            self.contiguous.is_some(),
            self.acked.is_some(),
            self.base.is_some(),
            self.opening.is_some(),
            self.window.is_some(),
            self.of_syn,
            self.saw_syn,
            self.in_doubt,
        ];
        let flags = flags.iter().rev().fold(0, |bits, &on| bits << 1 | u64::from(on));
        let scale = match self.scale {
            Scale::Unknown => UNKNOWN,
            Scale::Off => OFF,
            Scale::By(bits) => bits.into(),
        };
        words[0] = pair(self.next, self.contiguous);
        words[1] = pair(self.acked, self.base);
        words[2] = u64::from(self.window.unwrap_or(0)) << WINDOW
            | u64::from(self.duplicates) << DUPLICATES
            | scale << SCALE
            | (self.latest as u64) << LATEST
            | flags << FLAGS;
        words[3] = self.next_time as u64;
        words[4] = self.last_time as u64;
        words[5] = self.opening.unwrap_or(0) as u64;
    }

    /// The end of a SYN at the first sequence number, if that is known.
    fn opening_end(&self) -> Option<u32> {
        self.base.map(|base| base.wrapping_add(1))
    }

    /// Takes note of a segment that this side sends, which takes sequence numbers; `is_new`: beyond
    /// all others.
    #[inline(always)]
    pub(super) fn sends(&mut self, s: &Segment, is_new: bool) {
        let end = self.opening_end();
        if is_new && end == Some(s.end()) {
            self.opening = Some(s.time);
        } else if !is_new && end.is_some_and(|end| after(end, s.seq)) {
            // It is not known which of the two an acknowledgment answers.
            self.opening = None;
        }
    }

    /// Takes note of what the other side acknowledges: whether that is the SYN of this one, and
    /// when it was sent, if that is known.
    #[inline(always)]
    pub(super) fn is_acknowledged(&mut self, ack: u32) -> (bool, Option<i64>) {
        let Some(end) = self.opening_end() else { return (false, None) };
        let sent = if after(end, ack) { None } else { self.opening.take() };
        (self.saw_syn && end == ack, sent.filter(|_| end == ack))
    }

    /// Learns of a SYN of this side how windows are scaled: only if both sides say how (RFC 7323,
    /// 2.2).
    pub(super) fn learn_scale(&mut self, other: &mut HalfConnection, syn: &Segment) {
        match syn.wscale {
            None => (self.scale, other.scale) = (Scale::Off, Scale::Off),
            Some(_) if syn.ack() && other.scale == Scale::Off => self.scale = Scale::Off,
            Some(bits) => self.scale = Scale::By(bits.min(SCALE_MAX)),
        }
    }

    /// The window of the latest segment in bytes, if it is known.
    pub(super) fn scaled_window(&self) -> Option<u32> {
        let window = u32::from(self.window?);
        match self.scale {
            Scale::Unknown => None,
            Scale::By(bits) if !self.of_syn => Some(window << bits),
            Scale::Off | Scale::By(_) => Some(window),
        }
    }
}

impl Stamps {
    /// Takes them out of their words; `seen`: two bits that say which of them are there.
    #[inline(always)]
    pub(super) fn load(&[both, sent]: &[u64; STAMP_WORDS], seen: u64) -> Stamps {
        Stamps {
            newest: (seen & 1 != 0).then_some((both >> 32) as u32),
            pending: (seen & 2 != 0).then_some(both as u32),
            sent: sent as i64,
        }
    }

    /// When the time stamp was sent whose first echo this segment is.
    pub(super) fn echoed(&mut self, s: &Segment) -> Option<i64> {
        let echo = s.tsecr.filter(|_| s.ack())?;
        let pending = self.pending?;
        if after(pending, echo) {
            return None;
        }
        // A later one was echoed: that of the one before was not captured.
        self.pending = None;
        (pending == echo).then_some(self.sent)
    }

    /// Waits for the echo of this segment's time stamp: a new one, of a segment that is answered.
    pub(super) fn sends(&mut self, s: &Segment) {
        let Some(stamp) = s.tsval.filter(|_| s.len > 0 || s.syn()) else { return };
        if self.newest.is_some_and(|newest| !after(stamp, newest)) {
            return;
        }
        self.newest = Some(stamp);
        if self.pending.is_none() {
            (self.pending, self.sent) = (Some(stamp), s.time);
        }
    }

    /// Puts them into their words; returns which of them are there.
    #[inline(always)]
    pub(super) fn store(&self, words: &mut [u64; STAMP_WORDS]) -> u64 {
        let [newest, pending] = [self.newest, self.pending].map(|n| u64::from(n.unwrap_or(0)));
        *words = [newest << 32 | pending, self.sent as u64];
        u64::from(self.newest.is_some()) | u64::from(self.pending.is_some()) << 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_come_back_as_they_were() {
        let edges = [None, Some(0), Some(1), Some(u32::MAX - 1), Some(u32::MAX)];
        let mut words = [u64::MAX; WORDS];
        for (i, edge) in edges.into_iter().enumerate() {
            let other = edges[(i + 1) % edges.len()];
            let on = i % 2 == 0;
            let side = HalfConnection {
                next: edge,
                next_time: i64::MIN,
                contiguous: other,
                acked: other,
                last_time: -1,
                window: edge.map(|n| n as u16),
                of_syn: on,
                scale: [Scale::Unknown, Scale::Off, Scale::By(0), Scale::By(14)][i % 4],
                duplicates: other.unwrap_or(0) as u16,
                base: edge,
                saw_syn: on,
                latest: [Latest::Other, Latest::KeepAlive, Latest::ZeroWindowProbe][i % 3],
                in_doubt: !on,
                opening: [None, Some(i64::MIN), Some(0), Some(i64::MAX)][i % 4],
            };
            side.store(&mut words);
            assert_eq!(HalfConnection::load(&words), side);
            let (mut words, stamps) =
                ([u64::MAX; STAMP_WORDS], Stamps { newest: edge, pending: other, sent: i64::MIN });
            let seen = stamps.store(&mut words);
            assert_eq!(Stamps::load(&words, seen), stamps);
        }
        HalfConnection::default().store(&mut words);
        assert_eq!(HalfConnection::load(&words), HalfConnection::default());
    }
}
