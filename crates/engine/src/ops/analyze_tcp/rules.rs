//! The rules: what a segment is among those before it.
//!
//! They are those of Wireshark 4.0 (User's Guide, section 7.5), with these differences: sequence
//! numbers are compared modulo 2^32 everywhere and 0 is one of them; an acknowledgment needs the
//! ACK flag; a reset does not move the next number; and what was sent twice is not timed.

use super::findings::{ACK_RTT, CLIENT_RTT, Finding, INITIAL_RTT, SERVER_RTT, Symptom, TSVAL_RTT};
use super::segment::{Segment, after};
use super::side::{HalfConnection, Latest, STAMP_WORDS, Stamps};
use super::timed::Timed;
use super::tracked::{ConnectionWords, Tracked};

/// A fast retransmission comes so soon after the acknowledgment that asks for it: 20 ms.
const FAST_NS: i64 = 20_000_000;

/// A segment that is out of order comes so soon after the highest one, where the round-trip time
/// is not known: 3 ms.
const OVERTAKEN_NS: i64 = 3_000_000;

/// Duplicate acknowledgments that ask for a fast retransmission.
const FAST_DUPLICATES: u16 = 2;

/// A connection, taken out of its words.
#[derive(Clone, Copy, Default)]
struct Connection {
    /// The direction of the segment at hand, and the other one.
    this: HalfConnection,
    other: HalfConnection,
    /// When the latest SYN came, and the time from then to the first acknowledgment.
    syn_time: Option<i64>,
    initial_rtt: Option<i64>,
}

/// The findings for a segment; the connection's words, those of `tracked`, are taken to be what
/// they are after it.
pub(crate) fn analyze(words: &mut [u64], tracked: Tracked, fresh: bool, s: &Segment) -> Finding {
    if fresh {
        clear(words, tracked);
    }
    let mut found = Finding::default();
    let [a, b] = sides(s.forward);
    let mut c = load(&tracked.parts(words), a, b);
    if begins_anew(&c.this, s) {
        clear(words, tracked);
        c = Connection::default();
        found.mark(Symptom::ReusedPorts);
    }
    let mut parts = tracked.parts(words);
    let is_new = c.this.window.is_none();
    if answers_anew(&c.this, s) {
        c.this = HalfConnection::default();
        parts.shared[2] &= !(0xff << (8 * a) | STAMPS_SEEN << (STAMPS + 2 * a));
        found.mark(Symptom::ReusedPorts);
    }
    if is_new {
        found.note(Symptom::NewDirection);
        if c.other.window.is_none() {
            found.note(Symptom::NewConnection);
        }
    }
    c.begin(s);
    c.look(s, &mut found);
    c.time(s, &mut found, &mut parts, [a, b]);
    c.remember(s, &mut found);
    store(&mut parts, a, b, &c);
    found
}

/// Which of the two sides sent, and which is the other.
fn sides(forward: bool) -> [usize; 2] {
    if forward { [0, 1] } else { [1, 0] }
}

/// A connection of which nothing is known.
fn clear(words: &mut [u64], tracked: Tracked) {
    words.fill(0);
    for side in tracked.parts(words).sides {
        HalfConnection::default().store(side);
    }
}

/// Bits of the third shared word, below which stand the numbers of timed segments; above, two for
/// the time stamps of each side.
const SYN_SEEN: u64 = 1 << 32;
const INITIAL_SEEN: u64 = 1 << 33;
const STAMPS: usize = 34;
const STAMPS_SEEN: u64 = 3;

fn load(parts: &ConnectionWords<'_>, this: usize, other: usize) -> Connection {
    let (sides, shared) = (&parts.sides, &parts.shared);
    let at = |i: usize, bit: u64| (shared[2] & bit != 0).then_some(shared[i] as i64);
    Connection {
        this: HalfConnection::load(&*sides[this]),
        other: HalfConnection::load(&*sides[other]),
        syn_time: at(0, SYN_SEEN),
        initial_rtt: at(1, INITIAL_SEEN),
    }
}

fn store(parts: &mut ConnectionWords<'_>, this: usize, other: usize, c: &Connection) {
    let ConnectionWords { sides, shared, .. } = parts;
    c.this.store(sides[this]);
    c.other.store(sides[other]);
    shared[0] = c.syn_time.unwrap_or(0) as u64;
    shared[1] = c.initial_rtt.unwrap_or(0) as u64;
    let bit = |on: bool, bit: u64| if on { bit } else { 0 };
    shared[2] = shared[2] & !(SYN_SEEN | INITIAL_SEEN)
        | bit(c.syn_time.is_some(), SYN_SEEN)
        | bit(c.initial_rtt.is_some(), INITIAL_SEEN);
}

/// Whether a SYN is not that of the connection which is known between these ports.
fn begins_anew(this: &HalfConnection, s: &Segment) -> bool {
    s.syn() && !s.ack() && this.base.is_some_and(|base| base != s.seq)
}

/// Whether a SYN-ACK begins with another number than what was taken for the first of its side: that
/// was of an earlier connection.
fn answers_anew(this: &HalfConnection, s: &Segment) -> bool {
    s.syn() && s.ack() && this.base.is_some_and(|base| base != s.seq)
}

/// Does something with the timed segments of a direction; `lens` has a byte for the number of each.
fn timed<T>(words: &mut [u64], lens: &mut u64, side: usize, f: impl FnOnce(Timed<'_>) -> T) -> T {
    let shift = 8 * side;
    let mut len = (*lens >> shift) as u8;
    let out = f(Timed::new(words, &mut len));
    *lens = *lens & !(0xff << shift) | u64::from(len) << shift;
    out
}

/// Does something with the time stamps of a direction; `seen` has two bits for each.
fn stamps<T>(
    words: &mut [u64; STAMP_WORDS],
    seen: &mut u64,
    side: usize,
    f: impl FnOnce(&mut Stamps) -> T,
) -> T {
    let shift = STAMPS + 2 * side;
    let mut stamps = Stamps::load(words, *seen >> shift);
    let out = f(&mut stamps);
    *seen = *seen & !(STAMPS_SEEN << shift) | stamps.store(words) << shift;
    out
}

impl Connection {
    /// Notes where sequence numbers begin, if that is not known yet.
    fn begin(&mut self, s: &Segment) {
        if self.this.base.is_none() {
            self.this.base = Some(if s.syn() { s.seq } else { s.seq.wrapping_sub(1) });
        }
        self.this.saw_syn |= s.syn() && self.this.base == Some(s.seq);
        if let Some(ack) = s.acknowledges() {
            self.other.base.get_or_insert(ack.wrapping_sub(1));
            self.other.in_doubt = false;
        }
    }

    /// The symptoms of the segment.
    fn look(&mut self, s: &Segment, found: &mut Finding) {
        let is_next = self.this.next == Some(s.seq);
        if s.len == 1 && is_next && self.other.window == Some(0) {
            found.mark(Symptom::ZeroWindowProbe);
        } else {
            self.look_at_numbers(s, found);
            self.look_at_repeated(s, found);
        }
        if s.acknowledges() != self.this.acked {
            self.this.duplicates = 0;
        }
        self.look_at_ack(s, found);
        if s.takes_room() && !found.has(Symptom::KeepAlive) {
            self.look_at_sent_again(s, found);
        }
    }

    /// By its own sequence number and window.
    fn look_at_numbers(&mut self, s: &Segment, found: &mut Finding) {
        if s.window == 0 && s.is_plain() {
            found.mark(Symptom::ZeroWindow);
        }
        if self.this.next.is_some_and(|next| after(s.seq, next)) && !s.rst() {
            found.mark(Symptom::LostSegment);
            self.this.in_doubt = true;
        }
        let below = self.this.next.map(|next| next.wrapping_sub(1));
        if s.len <= 1 && below == Some(s.seq) && s.is_plain() {
            found.mark(Symptom::KeepAlive);
        }
        let edge = self.other.scaled_window().zip(self.other.acked);
        let edge = edge.map(|(window, acked)| acked.wrapping_add(window));
        if s.len > 0 && s.is_plain() && edge == Some(s.data_end()) {
            found.mark(Symptom::WindowFull);
        }
    }

    /// By what it repeats of the segment before it: the number and what is acknowledged.
    fn look_at_repeated(&mut self, s: &Segment, found: &mut Finding) {
        let repeats = s.len == 0
            && s.is_plain()
            && s.ack()
            && self.this.next == Some(s.seq)
            && self.this.acked == Some(s.ackno);
        if !repeats {
            return;
        }
        if self.this.window != Some(s.window) {
            if s.window > 0 {
                found.mark(Symptom::WindowUpdate);
            }
        } else if s.window == 0 {
            if self.other.latest == Latest::ZeroWindowProbe {
                found.mark(Symptom::ZeroWindowProbeAck);
            }
        } else if self.other.latest == Latest::KeepAlive {
            found.mark(Symptom::KeepAliveAck);
        } else {
            found.mark(Symptom::DuplicateAck);
            self.this.duplicates = self.this.duplicates.saturating_add(1);
            found.duplicate_ack_num = Some(self.this.duplicates.into());
        }
    }

    /// Whether it acknowledges what was not captured.
    fn look_at_ack(&mut self, s: &Segment, found: &mut Finding) {
        let Some((ack, contiguous)) = s.acknowledges().zip(self.other.contiguous) else { return };
        if after(ack, contiguous) {
            found.mark(Symptom::AckLostSegment);
            // Lost bytes that are acknowledged are marked once.
            let next = self.other.next.filter(|&next| after(next, ack));
            self.other.contiguous = Some(next.unwrap_or(ack));
        }
    }

    /// Of a segment that takes sequence numbers: whether they were sent before.
    fn look_at_sent_again(&mut self, s: &Segment, found: &mut Finding) {
        if s.len > 0 && self.other.acked.is_some_and(|acked| !after(s.data_end(), acked)) {
            found.mark(Symptom::Retransmission);
            return found.mark(Symptom::SpuriousRetransmission);
        }
        let Some(next) = self.this.next.filter(|&next| after(next, s.seq)) else { return };
        if s.len > 1 && next.wrapping_sub(1) == s.seq {
            // It begins with the byte of a probe.
            return;
        }
        let within = |since: i64, ns: i64| {
            s.time.checked_sub(since).is_some_and(|elapsed| (0..ns).contains(&elapsed))
        };
        let asked = self.other.duplicates >= FAST_DUPLICATES && self.other.acked == Some(s.seq);
        let overtaken = self.initial_rtt.filter(|&rtt| rtt > 0).unwrap_or(OVERTAKEN_NS);
        if asked && within(self.other.last_time, FAST_NS) {
            found.mark(Symptom::Retransmission);
            found.mark(Symptom::FastRetransmission);
        } else if within(self.this.next_time, overtaken) && s.end() != next {
            found.mark(Symptom::OutOfOrder);
        } else {
            found.mark(Symptom::Retransmission);
        }
    }

    /// Round-trip times; `a` is the side of the segment at hand, `b` the other one.
    fn time(
        &mut self,
        s: &Segment,
        found: &mut Finding,
        parts: &mut ConnectionWords<'_>,
        [a, b]: [usize; 2],
    ) {
        let ConnectionWords { shared: [.., bits], segments, stamps: all_stamps, .. } = parts;
        let since = |then: i64| s.time.checked_sub(then).filter(|&rtt| rtt >= 0);
        if let Some(ack) = s.acknowledges() {
            if let Some(segments) = segments {
                let sent = timed(segments[b], bits, b, |mut timed| timed.acknowledged(ack));
                found.rtts[ACK_RTT] = sent.and_then(since);
            }
            let (of_syn, sent) = self.other.is_acknowledged(ack);
            if of_syn && s.syn() {
                found.rtts[SERVER_RTT] = sent.and_then(since);
            } else if of_syn && self.this.saw_syn {
                found.rtts[CLIENT_RTT] = sent.and_then(since);
            }
        }
        if s.takes_room() && !found.has(Symptom::ZeroWindowProbe) {
            let is_new = self.this.next.is_none_or(|next| !after(next, s.seq));
            self.this.sends(s, is_new);
            if let Some(segments) = segments {
                timed(segments[a], bits, a, |mut timed| match is_new {
                    true => timed.sent(s.end(), s.time),
                    false => timed.sent_again(s.seq),
                });
            }
        }
        if s.syn() && !s.ack() {
            self.syn_time = Some(s.time);
        } else if s.ack() && !s.syn() && self.initial_rtt.is_none() {
            self.initial_rtt = self.syn_time.and_then(since);
        }
        found.rtts[INITIAL_RTT] = self.initial_rtt;
        if let Some(words) = all_stamps {
            let sent = stamps(words[b], bits, b, |theirs| theirs.echoed(s));
            found.rtts[TSVAL_RTT] = sent.and_then(since);
            stamps(words[a], bits, a, |mine| mine.sends(s));
        }
    }

    /// The state that the next segments are compared with.
    fn remember(&mut self, s: &Segment, found: &mut Finding) {
        let Connection { this, other, .. } = self;
        let is_probe = found.has(Symptom::ZeroWindowProbe);
        // The number of a reset is what the other side expects, whatever was sent.
        if !is_probe && !s.rst() {
            if this.next.is_none_or(|next| after(s.end(), next)) {
                (this.next, this.next_time) = (Some(s.end()), s.time);
            }
            if this.contiguous.is_none_or(|end| end == s.seq) {
                this.contiguous = this.next;
            }
        }
        if s.syn() {
            this.learn_scale(other, s);
        }
        (this.window, this.of_syn) = (Some(s.window), s.syn());
        (this.acked, this.last_time) = (s.acknowledges(), s.time);
        this.latest = match () {
            () if found.has(Symptom::KeepAlive) => Latest::KeepAlive,
            () if is_probe => Latest::ZeroWindowProbe,
            () => Latest::Other,
        };
        let from = other.acked.or(this.base.map(|base| base.wrapping_add(1)));
        if let Some((next, from)) = this.next.zip(from)
            && s.len > 0
            && !this.in_doubt
            && after(next, from)
        {
            let virtual_bytes = u32::from(s.syn() || s.fin());
            found.bytes_in_flight = Some(next.wrapping_sub(from) - virtual_bytes);
        }
    }
}
