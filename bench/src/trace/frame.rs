//! One frame of a trace: Ethernet, IPv4 or IPv6, TCP or UDP, and a payload of zeros.

use super::draw::mix;
use std::io::{self, Write};

pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// Bytes of a frame that may differ from zero: the longest headers are 14 + 40 + 20.
const HEAD: usize = 74;

const ZEROS: [u8; 2048] = [0; 2048];

/// The role of a packet in its conversation.
pub(super) struct Segment {
    flags: u8,
    /// Which way it must go; `None`: at random.
    pub(super) backward: Option<bool>,
    /// A packet of the handshake or the end, without payload.
    pub(super) control: bool,
}

impl Segment {
    /// A datagram: the first asks, the second answers.
    pub(super) fn datagram(position: u32) -> Segment {
        let backward = (position < 2).then_some(position == 1);
        Segment { flags: 0, backward, control: false }
    }

    /// A segment of a TCP conversation of `total` packets, that ends with a reset or with FINs.
    pub(super) fn tcp(position: u32, total: u32, reset: bool) -> Segment {
        let control = |flags, backward| Segment { flags, backward, control: true };
        let left = total - position;
        match position {
            0 => control(SYN, Some(false)),
            1 => control(SYN | ACK, Some(true)),
            2 => control(ACK, Some(false)),
            _ if total >= 7 && !reset && left == 3 => control(FIN | ACK, Some(false)),
            _ if total >= 7 && !reset && left == 2 => control(FIN | ACK, Some(true)),
            _ if total >= 7 && !reset && left == 1 => control(ACK, Some(false)),
            _ if total >= 5 && reset && left == 1 => control(RST | ACK, None),
            _ => Segment { flags: PSH | ACK, backward: None, control: false },
        }
    }
}

/// Protocols and direction of a frame, and where its sender and receiver stand.
pub(super) struct FrameSpec {
    pub(super) ipv6: bool,
    pub(super) udp: bool,
    pub(super) backward: bool,
    pub(super) seq: u32,
    pub(super) ack: u32,
}

/// A frame: its headers, and how many zeros follow.
pub(super) struct Frame {
    head: [u8; HEAD],
    pub(super) wire_len: u32,
    pub(super) payload_len: u32,
    pub(super) flags: u8,
    pub(super) backward: bool,
}

impl Frame {
    /// Packet number `position` of conversation `number`. `detail` are 64 random bits of the
    /// conversation, `lengths` those of the frame and of its payload.
    pub(super) fn build(
        seed: u64,
        number: u32,
        detail: u64,
        position: u32,
        segment: &Segment,
        lengths: (u32, u32),
        spec: FrameSpec,
    ) -> Frame {
        let (wire_len, payload_len) = lengths;
        // A TCP segment that carries nothing does not push.
        let bare = !spec.udp && payload_len == 0 && segment.flags == PSH | ACK;
        let flags = if bare { ACK } else { segment.flags };
        let mut head = [0; HEAD];
        let (link, rest) = head.split_at_mut(14);
        ethernet(link, &spec);
        let l4_len = if spec.udp { 8 } else { 20 } + payload_len as u16;
        let (l3, l4) = rest.split_at_mut(if spec.ipv6 { 40 } else { 20 });
        let addresses = match spec.ipv6 {
            true => ipv6(l3, seed, number, l4_len, &spec),
            false => ipv4(l3, seed, number, position as u16, l4_len, &spec),
        };
        let pseudo = addresses + u32::from(spec.protocol()) + u32::from(l4_len);
        transport(l4, detail, flags, l4_len, pseudo, &spec);
        Frame { head, wire_len, payload_len, flags, backward: spec.backward }
    }

    /// Writes the frame as a pcap record, cut at `snaplen` bytes.
    pub(super) fn write(&self, ts_ns: u64, snaplen: u32, out: &mut impl Write) -> io::Result<()> {
        let caplen = self.wire_len.min(snaplen);
        let mut record = [0; 16];
        put_le(&mut record, 0, (ts_ns / 1_000_000_000) as u32);
        put_le(&mut record, 4, (ts_ns % 1_000_000_000 / 1_000) as u32);
        put_le(&mut record, 8, caplen);
        put_le(&mut record, 12, self.wire_len);
        out.write_all(&record)?;
        let head = HEAD.min(caplen as usize);
        out.write_all(&self.head[..head])?;
        out.write_all(&ZEROS[..caplen as usize - head])
    }
}

impl FrameSpec {
    fn protocol(&self) -> u8 {
        if self.udp { 17 } else { 6 }
    }

    /// Hops left: the two ends are at different distances.
    fn ttl(&self) -> u8 {
        if self.backward { 57 } else { 63 }
    }

    /// Source and destination, of what client and server have.
    fn order<T>(&self, client: T, server: T) -> (T, T) {
        if self.backward { (server, client) } else { (client, server) }
    }
}

fn ethernet(p: &mut [u8], spec: &FrameSpec) {
    let (src, dst) = spec.order(1, 2);
    (p[0], p[5], p[6], p[11]) = (2, dst, 2, src);
    put(p, 12, if spec.ipv6 { 0x86dd } else { 0x0800 });
}

/// Writes the header; returns the sum of the addresses for the pseudo header.
fn ipv4(p: &mut [u8], seed: u64, number: u32, id: u16, l4_len: u16, spec: &FrameSpec) -> u32 {
    let client = 0x0a00_0000 | mix(seed ^ 1, number) as u32 & 0x00ff_ffff;
    let server = 0xc000_0000 | mix(seed ^ 2, number) as u32 & 0x1fff_ffff;
    let (src, dst) = spec.order(client, server);
    p[0] = 0x45;
    put(p, 2, 20 + l4_len);
    put(p, 4, id);
    (p[6], p[8], p[9]) = (0x40, spec.ttl(), spec.protocol());
    p[12..16].copy_from_slice(&src.to_be_bytes());
    p[16..20].copy_from_slice(&dst.to_be_bytes());
    let checksum = fold(sum(p));
    put(p, 10, checksum);
    sum(&p[12..20])
}

/// Writes the header; returns the sum of the addresses for the pseudo header.
fn ipv6(p: &mut [u8], seed: u64, number: u32, l4_len: u16, spec: &FrameSpec) -> u32 {
    let (a, b) = (mix(seed ^ 3, number), mix(seed ^ 4, number));
    let (mut client, mut server) = ([0; 16], [0; 16]);
    client[..8].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 1, (a >> 3) as u8, 0]);
    client[8..].copy_from_slice(&a.to_le_bytes());
    server[..8].copy_from_slice(&[0x26, 7, 0xf8, 0xb0, 0x40, 5, (b >> 3) as u8, (b >> 11) as u8]);
    server[8..].copy_from_slice(&b.to_le_bytes());
    let (src, dst) = spec.order(client, server);
    p[0] = 0x60;
    put(p, 4, l4_len);
    (p[6], p[7]) = (spec.protocol(), spec.ttl());
    p[8..24].copy_from_slice(&src);
    p[24..40].copy_from_slice(&dst);
    sum(&p[8..40])
}

/// Writes the transport header. `pseudo` is the sum of the pseudo header.
fn transport(p: &mut [u8], detail: u64, flags: u8, len: u16, pseudo: u32, spec: &FrameSpec) {
    let (sport, dport) = spec.order(client_port(detail), server_port(detail, spec.udp));
    put(p, 0, sport);
    put(p, 2, dport);
    if spec.udp {
        put(p, 4, len);
        // A checksum of 0 would say that there is none (RFC 768).
        let checksum = match fold(pseudo + sum(&p[..8])) {
            0 => 0xffff,
            checksum => checksum,
        };
        put(p, 6, checksum);
        return;
    }
    let ack = if flags & ACK == 0 { 0 } else { spec.ack };
    p[4..8].copy_from_slice(&spec.seq.to_be_bytes());
    p[8..12].copy_from_slice(&ack.to_be_bytes());
    (p[12], p[13]) = (5 << 4, flags);
    put(p, 14, 0xffff);
    let checksum = fold(pseudo + sum(&p[..20]));
    put(p, 16, checksum);
}

fn client_port(detail: u64) -> u16 {
    1024 + ((detail & 0xffff) % 64_000) as u16
}

fn server_port(detail: u64, udp: bool) -> u16 {
    const KNOWN: [u16; 8] = [443, 443, 443, 80, 53, 8080, 22, 25];
    if udp && detail >> 40 & 1 == 1 {
        443
    } else if detail >> 19 & 7 == 0 {
        1024 + ((detail >> 24) % 60_000) as u16
    } else {
        KNOWN[(detail >> 16 & 7) as usize]
    }
}

fn put(p: &mut [u8], at: usize, value: u16) {
    p[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put_le(p: &mut [u8], at: usize, value: u32) {
    p[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The sum of 16-bit words (RFC 1071).
fn sum(p: &[u8]) -> u32 {
    p.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
