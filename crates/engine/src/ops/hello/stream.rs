//! The state of one flow: the start of the stream in which a hello is awaited.

use weir_packet::limits::HELLO_MAX;
use weir_packet::pieces::Pieces;
use weir_packet::quic::initial::{ClientKeys, CryptoFrames, initials};
use weir_packet::tcp::{SYN, Tcp};
use weir_packet::tls::after_change_cipher_spec;
use weir_packet::tls::ja4::Carrier;
use weir_packet::tls::records::{Start, client_hello, handshake};
use weir_plan::limits::HELLO_PACKETS_MAX;

/// Bytes after which the start of a stream counts as that of a hello: a record's header and the
/// type of the first message.
const BEGUN: usize = 6;

/// Scratch for all flows: the hello that was found, and what is decrypted.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) message: Vec<u8>,
    plain: Vec<u8>,
}

/// When a packet came.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// Its time.
    pub(super) time: i64,
    /// The time that idle flows are judged by.
    pub(super) clock: i64,
}

/// A hello that is complete, but for its bytes.
pub(super) struct CompleteHello {
    pub(super) carrier: Carrier,
    pub(super) packets: u32,
    pub(super) first: i64,
}

/// The outcome of a packet. The numbers are of hellos that were given up for it, 0 or 1.
pub(super) enum Intake {
    /// It has nothing to do with what is awaited; the flow is as if it had not come.
    Ignored,
    /// It was taken in.
    Taken(u64),
    /// It completed a hello.
    Complete(CompleteHello, u64),
    /// The bytes that were awaited are no hello, or cannot be completed: the flow is to be
    /// forgotten.
    Over(u64),
}

/// One flow.
pub(super) enum Stream {
    Tcp(Segments),
    Quic(Box<Initials>),
}

/// The pieces of what may be a hello.
#[derive(Default)]
struct HelloPieces {
    pieces: Pieces,
    /// Packets that brought new bytes, ...
    packets: u32,
    /// ... and the time of the first of them.
    first: i64,
}

/// A TCP flow in which a hello is awaited, or was complete.
pub(super) struct Segments {
    /// The sequence number of the first byte of the hello.
    start: u32,
    state: SegmentState,
}

enum SegmentState {
    /// Nothing came but a SYN.
    Empty,
    Holds(Box<HelloPieces>),
    /// The hello had so many bytes.
    Done(u32),
}

/// A QUIC flow in which a hello is awaited, or was complete.
pub(super) struct Initials {
    keys: ClientKeys,
    /// The offset of the first byte of the hello: 0, or where the one before ended.
    base: u64,
    /// Initial packets that were decrypted with these keys.
    decrypted: u32,
    held: HelloPieces,
}

/// Whether a payload may start a stream with a hello.
fn begins(payload: &[u8], scratch: &mut Scratch) -> bool {
    let payload = after_change_cipher_spec(payload);
    !payload.is_empty() && client_hello(payload, &mut scratch.message) != Start::Other
}

impl Stream {
    /// The TCP flow that begins with this segment, if one does, before the segment is taken in.
    pub(super) fn of_segment(tcp: &Tcp<'_>, scratch: &mut Scratch) -> Option<Stream> {
        let is_syn = tcp.flags() & SYN != 0;
        if !is_syn && !begins(tcp.payload(), scratch) {
            return None;
        }
        let start = tcp.seq().wrapping_add(u32::from(is_syn));
        Some(Stream::Tcp(Segments { start, state: SegmentState::Empty }))
    }

    /// The QUIC flow that begins with this datagram, if a client protected an Initial packet in
    /// it, before the datagram is taken in.
    pub(super) fn of_datagram(payload: &[u8], scratch: &mut Scratch) -> Option<Stream> {
        let keys = initials(payload).find_map(|header| {
            let keys = ClientKeys::new(&header);
            keys.decrypt(&header, &mut scratch.plain).is_some().then_some(keys)
        })?;
        let held = HelloPieces::default();
        Some(Stream::Quic(Box::new(Initials { keys, base: 0, decrypted: 0, held })))
    }

    fn pieces(&self) -> Option<&HelloPieces> {
        match self {
            Stream::Tcp(tcp) => tcp.pieces(),
            Stream::Quic(quic) => Some(&quic.held),
        }
    }

    /// Whether it holds the start of a hello.
    pub(super) fn is_begun(&self) -> bool {
        self.pieces().is_some_and(HelloPieces::is_begun)
    }

    /// Bytes of memory for pieces.
    pub(super) fn held(&self) -> usize {
        self.pieces().map_or(0, |held| held.pieces.held())
    }
}

impl HelloPieces {
    /// Counts a packet that had new bytes.
    fn brought(&mut self, time: i64) {
        if self.packets == 0 {
            self.first = time;
        }
        self.packets += 1;
    }

    fn is_begun(&self) -> bool {
        self.pieces.front().len() >= BEGUN
    }

    /// The outcome of a packet after which the pieces are so; `None` where they are a hello.
    fn unless_whole(&self, start: Start, given_up: u64) -> Option<Intake> {
        let is_full = self.packets >= HELLO_PACKETS_MAX || self.pieces.front().len() >= HELLO_MAX;
        match start {
            Start::Other => Some(Intake::Over(given_up)),
            Start::TooLong => Some(Intake::Over(given_up + 1)),
            Start::Partial if is_full => Some(Intake::Over(given_up + u64::from(self.is_begun()))),
            Start::Partial => Some(Intake::Taken(given_up)),
            Start::Whole(_) => None,
        }
    }
}

impl Segments {
    /// Takes in the SYN of a client, or a segment with data.
    pub(super) fn take_in(&mut self, tcp: &Tcp<'_>, at: Arrival, scratch: &mut Scratch) -> Intake {
        let is_syn = tcp.flags() & SYN != 0;
        let (seq, payload) = (tcp.seq().wrapping_add(u32::from(is_syn)), tcp.payload());
        // A record that comes before a hello in its segment, and is none of it.
        let before_hello = payload.len() - after_change_cipher_spec(payload).len();
        let mut offset = i64::from(seq.wrapping_sub(self.start) as i32);
        let begins_anew = match self.state {
            _ if is_syn => offset != 0,
            SegmentState::Done(len) => {
                !(0..i64::from(len)).contains(&(offset + before_hello as i64))
            }
            _ => offset >= HELLO_MAX as i64 || offset + payload.len() as i64 <= 0,
        };
        let mut given_up = 0;
        if begins_anew {
            if !is_syn && !begins(payload, scratch) {
                return Intake::Ignored;
            }
            given_up = u64::from(self.pieces().is_some_and(HelloPieces::is_begun));
            *self = Segments { start: seq, state: SegmentState::Empty };
            offset = 0;
        }
        if offset == 0 && matches!(self.state, SegmentState::Empty) {
            self.start = self.start.wrapping_add(before_hello as u32);
            offset -= before_hello as i64;
        }
        // Bytes before the place where the hello starts are none of it.
        let before = usize::try_from(-offset).unwrap_or(0);
        let place = usize::try_from(offset).unwrap_or(0);
        match &payload[before..] {
            [] => Intake::Taken(given_up),
            data => self.piece(place, data, at, scratch, given_up),
        }
    }

    fn pieces(&self) -> Option<&HelloPieces> {
        match &self.state {
            SegmentState::Holds(held) => Some(held),
            SegmentState::Empty | SegmentState::Done(_) => None,
        }
    }

    /// Takes in a piece of the stream.
    fn piece(
        &mut self,
        place: usize,
        data: &[u8],
        at: Arrival,
        scratch: &mut Scratch,
        given_up: u64,
    ) -> Intake {
        if let SegmentState::Empty = self.state {
            self.state = SegmentState::Holds(Box::default());
        }
        let SegmentState::Holds(held) = &mut self.state else {
            // The bytes of a complete hello are sent again.
            return Intake::Taken(given_up);
        };
        if held.pieces.put(place, data) == 0 {
            return Intake::Taken(given_up);
        }
        held.brought(at.time);
        let start = client_hello(held.pieces.front(), &mut scratch.message);
        if let Some(outcome) = held.unless_whole(start, given_up) {
            return outcome;
        }
        let (packets, first) = (held.packets, held.first);
        let Start::Whole(end) = start else { unreachable!("neither a part nor another stream") };
        self.state = SegmentState::Done(end as u32);
        Intake::Complete(CompleteHello { carrier: Carrier::Tcp, packets, first }, given_up)
    }
}

impl Initials {
    /// Takes in a datagram.
    pub(super) fn take_in(&mut self, payload: &[u8], at: Arrival, scratch: &mut Scratch) -> Intake {
        let (mut given_up, mut taken, mut new) = (0, false, false);
        for header in initials(payload) {
            if self.keys.decrypt(&header, &mut scratch.plain).is_none() {
                let keys = ClientKeys::new(&header);
                if keys == self.keys || keys.decrypt(&header, &mut scratch.plain).is_none() {
                    continue;
                }
                let after_retry = !header.token().is_empty();
                given_up += u64::from(!after_retry && self.held.is_begun());
                self.restart(keys, after_retry);
                new = false;
            }
            if self.decrypted >= HELLO_PACKETS_MAX {
                break;
            }
            (taken, self.decrypted) = (true, self.decrypted + 1);
            for (offset, data) in CryptoFrames::new(&scratch.plain) {
                new |= self.crypto(offset, data);
            }
        }
        if !new {
            return if taken { Intake::Taken(given_up) } else { Intake::Ignored };
        }
        self.held.brought(at.time);
        self.outcome(given_up, scratch)
    }

    /// Goes on with other keys: of the same connection, whose hello comes again after a Retry
    /// packet, or of another one between the same ports.
    fn restart(&mut self, keys: ClientKeys, after_retry: bool) {
        let base = if after_retry { self.base } else { 0 };
        *self = Initials { keys, base, decrypted: 0, held: HelloPieces::default() };
    }

    /// Takes in the data of a CRYPTO frame; says whether it had new bytes of the hello.
    fn crypto(&mut self, offset: u64, data: &[u8]) -> bool {
        let before = usize::try_from(self.base.saturating_sub(offset)).unwrap_or(usize::MAX);
        let place = usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX);
        data.get(before..).is_some_and(|data| self.held.pieces.put(place, data) > 0)
    }

    /// The outcome of the pieces.
    fn outcome(&mut self, given_up: u64, scratch: &mut Scratch) -> Intake {
        let start = handshake(self.held.pieces.front());
        if let Some(outcome) = self.held.unless_whole(start, given_up) {
            return outcome;
        }
        let held = std::mem::take(&mut self.held);
        let Start::Whole(end) = start else { unreachable!("neither a part nor another stream") };
        scratch.message.clear();
        scratch.message.extend_from_slice(&held.pieces.front()[..end]);
        self.base += end as u64;
        let HelloPieces { packets, first, .. } = held;
        Intake::Complete(CompleteHello { carrier: Carrier::Quic, packets, first }, given_up)
    }
}
