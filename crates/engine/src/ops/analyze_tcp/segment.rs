//! A TCP segment, as far as the analysis reads it, and sequence numbers.

/// A segment.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Segment {
    /// When it came, in nanoseconds.
    pub(crate) time: i64,
    /// Which of the two directions it goes.
    pub(crate) forward: bool,
    pub(crate) seq: u32,
    /// The field; whether it means anything is in `flags`.
    pub(crate) ackno: u32,
    pub(crate) flags: u16,
    /// As sent, not scaled.
    pub(crate) window: u16,
    /// Bytes of data.
    pub(crate) len: u32,
    /// The shift count of a window scale option.
    pub(crate) wscale: Option<u8>,
    /// The two values of a time stamp option.
    pub(crate) tsval: Option<u32>,
    pub(crate) tsecr: Option<u32>,
}

const FIN: u16 = 1;
const SYN: u16 = 2;
const RST: u16 = 4;
const ACK: u16 = 16;

impl Segment {
    pub(super) fn syn(&self) -> bool {
        self.flags & SYN != 0
    }

    pub(super) fn fin(&self) -> bool {
        self.flags & FIN != 0
    }

    pub(super) fn rst(&self) -> bool {
        self.flags & RST != 0
    }

    pub(super) fn ack(&self) -> bool {
        self.flags & ACK != 0
    }

    /// None of the flags that begin or end a connection.
    pub(super) fn is_plain(&self) -> bool {
        self.flags & (SYN | FIN | RST) == 0
    }

    /// The number that it acknowledges.
    pub(super) fn acknowledges(&self) -> Option<u32> {
        self.ack().then_some(self.ackno)
    }

    /// Whether it takes sequence numbers: data, a SYN or a FIN do.
    pub(super) fn takes_room(&self) -> bool {
        self.len > 0 || self.syn() || self.fin()
    }

    /// The sequence number after its data.
    pub(super) fn data_end(&self) -> u32 {
        self.seq.wrapping_add(self.len)
    }

    /// The sequence number after all of it: a SYN or a FIN takes one.
    pub(super) fn end(&self) -> u32 {
        self.data_end().wrapping_add(u32::from(self.syn() || self.fin()))
    }
}

/// Whether the sequence number `a` comes after `b`, modulo 2^32.
pub(super) fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
