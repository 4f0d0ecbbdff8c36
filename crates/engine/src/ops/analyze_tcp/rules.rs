//! The rules: what a segment is among those before it.
//!
//! They are those of Wireshark 4.0 (User's Guide, section 7.5), with these differences: sequence
//! numbers are compared modulo 2^32 everywhere and 0 is one of them; an acknowledgment needs the
//! ACK flag; a reset does not move the next number; and what was sent twice is not timed.

use super::findings::{ACK_RTT, CLIENT_RTT, Finding, INITIAL_RTT, SERVER_RTT, Symptom, TSVAL_RTT};
use super::segment::{Segment, after};
use super::side::{HalfConnection, Latest, WORDS as HALF};
use super::timed::{self, Timed};

/// Words that both directions share.
const SHARED_WORDS: usize = 3;

/// Words that a connection takes.
pub(crate) const WORDS: usize = 2 * HALF + SHARED_WORDS + 2 * timed::WORDS;

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

/// What a segment is; the connection's words are taken to be what they are after it.
pub(crate) fn analyze(words: &mut [u64; WORDS], fresh: bool, s: &Segment) -> Finding {
    if fresh {
        clear(words);
    }
    let mut found = Finding::default();
    let [a, b] = sides(s.forward);
    let mut c = load(words, a, b);
    if begins_anew(&c.this, s) {
        clear(words);
        c = load(words, a, b);
        found.mark(Symptom::ReusedPorts);
    }
    let is_new = c.this.window.is_none();
    if answers_anew(&c.this, s) {
        c.this = HalfConnection::default();
        words[2 * HALF + 2] &= !(0xff << (8 * a));
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
    let (shared, timed) = words[2 * HALF..].split_at_mut(SHARED_WORDS);
    c.time(s, &mut found, Lists { words: timed, lens: &mut shared[2], this: a, other: b });
    c.remember(s, &mut found);
    store(words, a, b, &c);
    found
}

/// Which of the two sides sent, and which is the other.
fn sides(forward: bool) -> [usize; 2] {
    if forward { [0, 1] } else { [1, 0] }
}

/// A connection of which nothing is known.
fn clear(words: &mut [u64]) {
    words.fill(0);
    for side in [0, 1] {
        HalfConnection::default().store(side_mut(words, side));
    }
}

fn side_mut(words: &mut [u64], side: usize) -> &mut [u64; HALF] {
    (&mut words[side * HALF..][..HALF]).try_into().expect("so many words")
}

/// Bits of the third shared word, below which stand the numbers of timed segments.
const SYN_SEEN: u64 = 1 << 32;
const INITIAL_SEEN: u64 = 1 << 33;

fn load(words: &mut [u64], this: usize, other: usize) -> Connection {
    let side = |words: &mut [u64], n| HalfConnection::load(side_mut(words, n));
    let (this, other) = (side(words, this), side(words, other));
    let shared = &words[2 * HALF..];
    let at = |i: usize, bit: u64| (shared[2] & bit != 0).then_some(shared[i] as i64);
    Connection { this, other, syn_time: at(0, SYN_SEEN), initial_rtt: at(1, INITIAL_SEEN) }
}

fn store(words: &mut [u64], this: usize, other: usize, c: &Connection) {
    c.this.store(side_mut(words, this));
    c.other.store(side_mut(words, other));
    let shared = &mut words[2 * HALF..];
    shared[0] = c.syn_time.unwrap_or(0) as u64;
    shared[1] = c.initial_rtt.unwrap_or(0) as u64;
    let bit = |on: bool, bit: u64| if on { bit } else { 0 };
    shared[2] = shared[2] & 0xffff
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

/// The segments that are timed, of both directions.
struct Lists<'a> {
    words: &'a mut [u64],
    /// How many they are: a byte for each.
    lens: &'a mut u64,
    this: usize,
    other: usize,
}

impl Lists<'_> {
    /// Does something with the list of a direction.
    fn with<T>(&mut self, side: usize, f: impl FnOnce(Timed<'_>) -> T) -> T {
        let shift = 8 * side;
        let mut len = (*self.lens >> shift) as u8;
        let words = &mut self.words[side * timed::WORDS..][..timed::WORDS];
        let out = f(Timed::new(words, &mut len));
        *self.lens = *self.lens & !(0xff << shift) | u64::from(len) << shift;
        out
    }
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

    /// What the segment is.
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
            // What is acknowledged is told once.
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

    /// Round-trip times.
    fn time(&mut self, s: &Segment, found: &mut Finding, mut lists: Lists<'_>) {
        let since = |then: i64| s.time.checked_sub(then).filter(|&rtt| rtt >= 0);
        if let Some(ack) = s.acknowledges() {
            let rtt = lists.with(lists.other, |mut timed| timed.acknowledged(ack)).and_then(since);
            found.rtts[ACK_RTT] = rtt;
            let of_syn =
                self.other.saw_syn && self.other.base.map(|b| b.wrapping_add(1)) == Some(ack);
            if of_syn && s.syn() {
                found.rtts[SERVER_RTT] = rtt;
            } else if of_syn && self.this.saw_syn {
                found.rtts[CLIENT_RTT] = rtt;
            }
        }
        if s.takes_room() && !found.has(Symptom::ZeroWindowProbe) {
            let is_new = self.this.next.is_none_or(|next| !after(next, s.seq));
            lists.with(lists.this, |mut timed| match is_new {
                true => timed.sent(s.end(), s.time),
                false => timed.sent_again(s.seq),
            });
        }
        if s.syn() && !s.ack() {
            self.syn_time = Some(s.time);
        } else if s.ack() && !s.syn() && self.initial_rtt.is_none() {
            self.initial_rtt = self.syn_time.and_then(since);
        }
        found.rtts[INITIAL_RTT] = self.initial_rtt;
        found.rtts[TSVAL_RTT] = self.echo(s).and_then(since);
        self.stamp(s);
    }

    /// When the time stamp was sent whose first echo this is.
    fn echo(&mut self, s: &Segment) -> Option<i64> {
        let echo = s.tsecr.filter(|_| s.ack())?;
        let pending = self.other.pending_tsval?;
        if after(pending, echo) {
            return None;
        }
        // A later one was echoed: that of the one before was not captured.
        self.other.pending_tsval = None;
        (pending == echo).then_some(self.other.tsval_time)
    }

    /// Waits for the echo of a time stamp: a new one, of a segment that is answered.
    fn stamp(&mut self, s: &Segment) {
        let Some(tsval) = s.tsval.filter(|_| s.len > 0 || s.syn()) else { return };
        if self.this.newest_tsval.is_some_and(|newest| !after(tsval, newest)) {
            return;
        }
        self.this.newest_tsval = Some(tsval);
        if self.this.pending_tsval.is_none() {
            (self.this.pending_tsval, self.this.tsval_time) = (Some(tsval), s.time);
        }
    }

    /// What the next segments are compared with.
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
