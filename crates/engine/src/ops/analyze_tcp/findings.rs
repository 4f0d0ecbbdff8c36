//! The findings of the analysis for a segment.

/// The findings for a segment.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Finding {
    /// Which of the columns hold that are true or false, by their position among them.
    pub(crate) marks: u32,
    pub(crate) duplicate_ack_num: Option<u32>,
    pub(crate) bytes_in_flight: Option<u32>,
    /// `ack_rtt`, `initial_rtt`, `server_rtt`, `client_rtt`, `tsval_rtt`, in nanoseconds.
    pub(crate) rtts: [Option<i64>; RTTS],
}

/// How many columns are round-trip times.
pub(crate) const RTTS: usize = 5;

/// Their positions.
pub(super) const ACK_RTT: usize = 0;
pub(super) const INITIAL_RTT: usize = 1;
pub(super) const SERVER_RTT: usize = 2;
pub(super) const CLIENT_RTT: usize = 3;
pub(super) const TSVAL_RTT: usize = 4;

/// A column that is true or false, by its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Symptom {
    /// Any of the others.
    Flags,
    Retransmission,
    FastRetransmission,
    SpuriousRetransmission,
    OutOfOrder,
    LostSegment,
    AckLostSegment,
    DuplicateAck,
    KeepAlive,
    KeepAliveAck,
    ZeroWindow,
    ZeroWindowProbe,
    ZeroWindowProbeAck,
    WindowUpdate,
    WindowFull,
    ReusedPorts,
    /// These two are not among the flags.
    NewConnection,
    NewDirection,
}

impl Finding {
    pub(super) fn mark(&mut self, mark: Symptom) {
        self.note(mark);
        self.note(Symptom::Flags);
    }

    /// The same of what is no flag.
    pub(super) fn note(&mut self, mark: Symptom) {
        self.marks |= 1 << mark as u32;
    }

    pub(super) fn has(&self, mark: Symptom) -> bool {
        self.marks >> mark as u32 & 1 == 1
    }
}
