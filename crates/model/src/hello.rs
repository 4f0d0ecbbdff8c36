//! `hello` of the naive model: every byte of a hello stands by itself, under its place in the
//! stream, and everything is read anew with each packet.
//!
//! The decryption of an Initial packet and the reader of a hello are those of `packet`, which tests
//! compare with published packets and with tshark.

use super::context::StageContext;
use super::row::{Mark, Row, set_cell};
use super::transport::TransportBytes;
use std::collections::BTreeMap;
use weir_packet::limits::HELLO_MAX;
use weir_packet::quic::initial::{ClientKeys, CryptoFrames, initials};
use weir_packet::text::Text;
use weir_packet::time::NO_TIME;
use weir_packet::tls::Hello as TlsHello;
use weir_packet::tls::ja4::{Carrier, ja4};
use weir_plan::limits::HELLO_PACKETS_MAX;
use weir_plan::{Hello, Value};

/// A flow.
pub(super) struct HelloFlow {
    last: i64,
    /// Larger for the one that took in a packet later.
    turn: u64,
    stream: Stream,
    /// Bytes of the hello by their place in it, and the packets that brought them.
    came: BTreeMap<u64, u8>,
    packets: u32,
    first: i64,
    /// It is to be forgotten.
    is_over: bool,
}

#[derive(Clone)]
enum Stream {
    /// From which sequence number on a hello is awaited.
    Tcp(u32),
    /// Where one began that was complete, and how long it was.
    TcpDone(u32, u32),
    /// The keys, the offset from which on a hello is awaited, and how many packets were decrypted.
    Quic(ClientKeys, u64, u32),
}

/// The start of a stream.
enum Start {
    Other,
    TooLong,
    Part,
    /// The message, and where it ends in the stream.
    Whole(Vec<u8>, u64),
}

/// Reads a stream of handshake messages.
fn message(bytes: &[u8]) -> Start {
    let other = |at: usize, wanted: u8| bytes.get(at).is_some_and(|byte| *byte != wanted);
    if other(0, 1) || other(1, 0) || other(4, 3) {
        return Start::Other;
    }
    if bytes.len() < 4 {
        return Start::Part;
    }
    let len = 4 + 256 * usize::from(bytes[2]) + usize::from(bytes[3]);
    if len < 38 {
        Start::Other
    } else if len > HELLO_MAX {
        Start::TooLong
    } else if len > bytes.len() {
        Start::Part
    } else {
        Start::Whole(bytes[..len].to_vec(), len as u64)
    }
}

/// Reads a stream of records: takes away their headers, byte by byte, and notes where each byte of
/// the messages ended.
fn records(bytes: &[u8]) -> Start {
    let (mut messages, mut ends) = (Vec::new(), Vec::new());
    let mut header: Vec<u8> = Vec::new();
    let mut left = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if left > 0 {
            left -= 1;
            messages.push(byte);
            ends.push(at as u64 + 1);
            continue;
        }
        // Nothing comes after the hello.
        if let done @ (Start::Other | Start::TooLong | Start::Whole(..)) = message(&messages) {
            return of_records(done, &ends);
        }
        header.push(byte);
        let fits = match header[..] {
            [kind] => kind == 22,
            [.., major] if header.len() == 2 => major == 3,
            [.., minor] if header.len() == 3 => minor <= 4,
            [.., a, b] if header.len() == 5 => {
                left = 256 * usize::from(a) + usize::from(b);
                header.clear();
                (1..=(1 << 14) + 2048).contains(&left)
            }
            _ => true,
        };
        if !fits {
            return Start::Other;
        }
    }
    of_records(message(&messages), &ends)
}

fn of_records(start: Start, ends: &[u64]) -> Start {
    match start {
        Start::Whole(message, len) => Start::Whole(message, ends[len as usize - 1]),
        start => start,
    }
}

impl HelloFlow {
    fn new(stream: Stream, now: i64) -> HelloFlow {
        let (came, is_over) = (BTreeMap::new(), false);
        HelloFlow { last: now, turn: 0, stream, came, packets: 0, first: 0, is_over }
    }

    /// The bytes from the start on without a gap.
    fn front(&self) -> Vec<u8> {
        (0..).map_while(|at| self.came.get(&at).copied()).collect()
    }

    fn is_begun(&self) -> bool {
        self.front().len() >= 6
    }

    fn forget_bytes(&mut self) {
        self.came.clear();
        self.packets = 0;
    }

    /// Adds bytes whose first has this place; says whether there were new ones.
    fn add(&mut self, place: i128, data: &[u8]) -> bool {
        let before = self.came.len();
        for (at, byte) in (place..).zip(data) {
            if (0..HELLO_MAX as i128).contains(&at) {
                self.came.entry(at as u64).or_insert(*byte);
            }
        }
        self.came.len() > before
    }
}

impl StageContext<'_> {
    /// Takes in a packet; says whether it completes a hello, whose columns are then in the row.
    pub(super) fn hello(
        &mut self,
        h: &Hello,
        flows: &mut BTreeMap<Vec<Value>, HelloFlow>,
        watermark: Mark,
        row: &mut Row,
    ) -> bool {
        let packet = row.packet.clone().expect("the row is a packet");
        let Some(segment) = &packet.segment else { return false };
        let key: Vec<_> = h.keys.iter().map(|k| self.eval.eval(k, row, &[])).collect();
        let ts = row.ts.unwrap_or(NO_TIME);
        let now = match watermark {
            Mark::At(watermark) => ts.max(watermark),
            Mark::End => ts,
        };
        let concerns = match segment {
            TransportBytes::Tcp { syn: true, ack, .. } => !ack,
            TransportBytes::Tcp { data, .. } => !data.is_empty(),
            TransportBytes::Udp(data) => initials(data).next().is_some(),
        };
        if !concerns {
            return false;
        }
        let is_idle = |flow: &HelloFlow| now.saturating_sub(flow.last) >= h.idle_ns;
        let mut flow = flows.remove(&key);
        if flow.as_ref().is_some_and(is_idle) {
            self.unfinished += u64::from(flow.take().is_some_and(|flow| flow.is_begun()));
        }
        let is_new = flow.is_none();
        let started = flow.or_else(|| Some(HelloFlow::new(start(segment)?, now)));
        let Some(mut flow) = started else { return false };
        if is_new && flows.len() as u64 >= h.max_flows {
            let oldest = flows.iter().min_by_key(|(_, flow)| flow.turn).map(|(key, _)| key.clone());
            let gone = flows.remove(&oldest.expect("a stage may hold a flow")).expect("is there");
            let count = if is_idle(&gone) { &mut self.unfinished } else { &mut self.evicted };
            *count += u64::from(gone.is_begun());
        }
        let (taken, given_up) = match segment {
            TransportBytes::Tcp { seq, syn, data, .. } => of_tcp(&mut flow, (*seq, *syn), data, ts),
            TransportBytes::Udp(data) => of_quic(&mut flow, data, ts),
        };
        self.unfinished += given_up;
        if taken {
            self.turn += 1;
            (flow.turn, flow.last) = (self.turn, flow.last.max(now));
        }
        let is_complete = taken && !flow.came.is_empty() && self.completes(h, &mut flow, row);
        if !flow.is_over {
            flows.insert(key, flow);
        }
        is_complete
    }

    /// The outcome of the bytes of a flow: whether they are a hello, whose columns are then in the
    /// row.
    fn completes(&mut self, h: &Hello, flow: &mut HelloFlow, row: &mut Row) -> bool {
        let front = flow.front();
        let found = match flow.stream {
            Stream::Quic(..) => message(&front),
            _ => records(&front),
        };
        let is_full = flow.packets >= HELLO_PACKETS_MAX || front.len() >= HELLO_MAX;
        match found {
            Start::Other => flow.is_over = true,
            Start::TooLong => {
                self.unfinished += 1;
                flow.is_over = true;
            }
            Start::Part if is_full => {
                self.unfinished += u64::from(flow.is_begun());
                flow.is_over = true;
            }
            Start::Part => {}
            Start::Whole(hello, end) => {
                columns(h, flow, &hello, row);
                flow.stream = match flow.stream.clone() {
                    Stream::Tcp(start) => Stream::TcpDone(start, end as u32),
                    Stream::Quic(keys, base, n) => Stream::Quic(keys, base + end, n),
                    done @ Stream::TcpDone(..) => done,
                };
                flow.forget_bytes();
                return true;
            }
        }
        false
    }
}

/// Bytes of a whole ChangeCipherSpec record that starts a segment; 0 where there is none. A hello
/// may stand after it.
fn change_of_cipher(data: &[u8]) -> usize {
    let fits = |(at, byte): (usize, u8)| match at {
        2 => byte <= 4,
        _ => byte == [20, 3, 0, 0, 1, 1][at],
    };
    let fitting = (0..6).zip(data).filter(|&(at, &byte)| fits((at, byte))).count();
    if fitting == 6 { 6 } else { 0 }
}

/// Whether a payload may start a stream.
fn begins(data: &[u8]) -> bool {
    let data = &data[change_of_cipher(data)..];
    !data.is_empty() && !matches!(records(data), Start::Other)
}

/// The flow that begins with a packet.
fn start(segment: &TransportBytes) -> Option<Stream> {
    match segment {
        TransportBytes::Tcp { seq, syn: true, .. } => Some(Stream::Tcp(seq.wrapping_add(1))),
        TransportBytes::Tcp { seq, data, .. } => begins(data).then_some(Stream::Tcp(*seq)),
        TransportBytes::Udp(data) => {
            let own = initials(data).map(|header| (ClientKeys::new(&header), header));
            let mut own = own.filter(|(keys, header)| keys.decrypt(header, &mut vec![]).is_some());
            own.next().map(|(keys, _)| Stream::Quic(keys, 0, 0))
        }
    }
}

/// Takes in a segment: whether it was taken in, and how many hellos were given up for it.
fn of_tcp(flow: &mut HelloFlow, (seq, syn): (u32, bool), data: &[u8], ts: i64) -> (bool, u64) {
    let seq = if syn { seq.wrapping_add(1) } else { seq };
    // From the start of what is awaited to the segment, the shorter way around.
    let way = |start: u32| i64::from(seq.wrapping_sub(start) as i32);
    let change = change_of_cipher(data);
    let anew = match flow.stream {
        Stream::Tcp(start) | Stream::TcpDone(start, _) if syn => way(start) != 0,
        Stream::Tcp(start) => way(start) >= HELLO_MAX as i64 || way(start) + data.len() as i64 <= 0,
        Stream::TcpDone(start, len) => {
            let place = way(start) + change as i64;
            place < 0 || place >= i64::from(len)
        }
        Stream::Quic(..) => unreachable!("another protocol is another flow"),
    };
    let mut given_up = 0;
    if anew {
        if !syn && !begins(data) {
            return (false, 0);
        }
        given_up = u64::from(flow.is_begun());
        flow.forget_bytes();
        flow.stream = Stream::Tcp(seq);
    }
    if let Stream::Tcp(start) = &mut flow.stream {
        // The hello starts after the record, if nothing came of it yet.
        if flow.came.is_empty() && way(*start) == 0 {
            *start = start.wrapping_add(change as u32);
        }
    }
    match flow.stream {
        Stream::Tcp(start) => {
            if flow.add(way(start).into(), data) {
                flow.first = if flow.packets == 0 { ts } else { flow.first };
                flow.packets += 1;
            }
            (true, given_up)
        }
        // Once more what came before.
        _ => (true, given_up),
    }
}

/// Takes in a datagram, as [`of_tcp`] does a segment.
fn of_quic(flow: &mut HelloFlow, data: &[u8], ts: i64) -> (bool, u64) {
    let (mut taken, mut given_up, mut new) = (false, 0, false);
    for header in initials(data) {
        let Stream::Quic(keys, base, mut decrypted) = flow.stream.clone() else {
            unreachable!("another protocol is another flow")
        };
        let own = ClientKeys::new(&header);
        let (mut with_known, mut with_own) = (Vec::new(), Vec::new());
        let known = keys.decrypt(&header, &mut with_known).is_some();
        let frames = match known {
            true => with_known,
            false if own != keys && own.decrypt(&header, &mut with_own).is_some() => {
                let after_retry = !header.token().is_empty();
                given_up += u64::from(flow.is_begun() && !after_retry);
                flow.forget_bytes();
                (new, decrypted) = (false, 0);
                flow.stream = Stream::Quic(own, if after_retry { base } else { 0 }, 0);
                with_own
            }
            false => continue,
        };
        if decrypted >= HELLO_PACKETS_MAX {
            break;
        }
        taken = true;
        let Stream::Quic(_, base, count) = &mut flow.stream else { unreachable!("see above") };
        *count += 1;
        let base = i128::from(*base);
        for (offset, data) in CryptoFrames::new(&frames) {
            new |= flow.add(i128::from(offset) - base, data);
        }
    }
    if new {
        flow.first = if flow.packets == 0 { ts } else { flow.first };
        flow.packets += 1;
    }
    (taken, given_up)
}

/// Puts the columns of a hello into a row.
fn columns(h: &Hello, flow: &HelloFlow, message: &[u8], row: &mut Row) {
    let hello = TlsHello::new(message).expect("it starts like one");
    let (carrier, name) = match flow.stream {
        Stream::Quic(..) => (Carrier::Quic, "quic"),
        _ => (Carrier::Tcp, "tcp"),
    };
    let shown = |write: &dyn Fn(&mut Text) -> bool| {
        let mut text = Text::new();
        let there = write(&mut text);
        let string = || Value::Str(String::from_utf8_lossy(text.bytes()).into());
        if there { string() } else { Value::Absent }
    };
    let absent = Value::Absent;
    let values = [
        Value::Str(name.into()),
        hello.version().map_or(absent.clone(), |version| Value::Int(version.into())),
        shown(&|text| text.write_host(hello.server_name())),
        shown(&|text| text.write_list(hello.protocols())),
        shown(&|text| ja4(&hello, carrier).is_some_and(|ja4| text.push(&ja4))),
        hello.has_ech().map_or(absent, Value::Bool),
        Value::Int(flow.packets.into()),
        Value::Time(flow.first),
    ];
    for (&at, value) in h.columns.iter().zip(values) {
        set_cell(&mut row.cells, at, value);
    }
}

/// Hellos that still are not complete.
pub(super) fn unfinished(flows: &BTreeMap<Vec<Value>, HelloFlow>) -> u64 {
    flows.values().filter(|flow| flow.is_begun()).count() as u64
}
