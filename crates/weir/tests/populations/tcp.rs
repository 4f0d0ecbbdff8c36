//! TCP: SYNs, FINs and data that are sent again, keep-alives with a byte, connections of one side,
//! and such as are reset in a later window than they began in.

use crate::{MS, Own, Packet, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use weir_packet::craft::Frame;
use weir_packet::tcp::{ACK, FIN, RST, SYN};

const MINUTE: i64 = 60 * SECOND;

/// A connection in the making.
struct Talk {
    client: (Ipv4Addr, u16),
    server: (Ipv4Addr, u16),
    /// Which sides were captured.
    sides: [bool; 2],
    packets: Vec<Packet>,
}

impl Talk {
    fn new(client: (u8, u16), server: (u8, u16), sides: [bool; 2]) -> Talk {
        let client = (Ipv4Addr::new(192, 0, 2, client.0), client.1);
        let server = (Ipv4Addr::new(198, 51, 100, server.0), server.1);
        Talk { client, server, sides, packets: Vec::new() }
    }

    /// A segment of the client (0) or the server (1); numbers count from 0 on each side.
    fn send(&mut self, at: i64, side: usize, flags: u16, (seq, ack): (u32, u32), data: usize) {
        let ends = [self.client, self.server];
        let (from, to) = (ends[side], ends[1 - side]);
        let frame = Frame::ethernet().ipv4(from.0, to.0).tcp(from.1, to.1).flags(flags).seq(seq);
        let frame = frame.ackno(ack).window(60_000).payload(&vec![b'x'; data]);
        if self.sides[side] {
            let mut packet = Packet::new(at, (from.0, to.0), 6, &frame);
            (packet.ports, packet.flags) = (Some((from.1, to.1)), flags);
            packet.data = data as i64;
            self.packets.push(packet);
        }
    }

    /// The last packet was sent before.
    fn again(&mut self) {
        if let Some(last) = self.packets.last_mut() {
            last.again = true;
        }
    }

    fn open(&mut self, at: i64, syns: i64) {
        for n in 0..syns {
            self.send(at + n * SECOND, 0, SYN, (0, 0), 0);
            if n > 0 && self.sides[0] {
                self.again();
            }
        }
        let at = at + (syns - 1) * SECOND;
        self.send(at + 20 * MS, 1, SYN | ACK, (0, 1), 0);
        self.send(at + 40 * MS, 0, ACK, (1, 1), 0);
    }

    /// Segments of data, of which those that `again` names are sent once more, half a second later,
    /// and each that `late` names comes a millisecond after the next.
    fn says(&mut self, at: i64, side: usize, n: u32, again: &[u32], late: &[u32]) {
        let mut order: Vec<u32> = (0..n).collect();
        for &i in late {
            order.swap(i as usize, i as usize + 1);
        }
        for (turn, i) in order.into_iter().enumerate() {
            let number = (1 + 100 * i, 1);
            // A late segment came a millisecond after the one that overtook it.
            let near = if late.contains(&i) { 49 * MS } else { 0 };
            self.send(at + turn as i64 * 50 * MS - near, side, ACK, number, 100);
        }
        for (turn, &i) in again.iter().enumerate() {
            self.send(at + 5 * SECOND + turn as i64 * 10 * MS, side, ACK, (1 + 100 * i, 1), 100);
            if self.sides[side] {
                self.again();
            }
        }
    }

    /// Keep-alives of one byte, which was sent before and is no data.
    fn keeps_alive(&mut self, at: i64, side: usize, next: u32, n: i64) {
        for turn in 0..n {
            self.send(at + turn * 500 * MS, side, ACK, (next - 1, 1), 1);
            if let Some(last) = self.packets.last_mut().filter(|_| self.sides[side]) {
                last.data = 0;
            }
        }
    }

    fn close(&mut self, at: i64, seq: u32, fins: i64) {
        for n in 0..fins {
            self.send(at + n * SECOND, 0, FIN | ACK, (seq, 1), 0);
            if n > 0 && self.sides[0] {
                self.again();
            }
        }
        self.send(at + fins * SECOND, 1, FIN | ACK, (1, seq + 1), 0);
    }
}

pub(crate) fn packets() -> Vec<Packet> {
    let mut all = Vec::new();
    let both = [true, true];
    // SYNs and FINs again, and no data again; then some, also out of order; then the server's.
    for (n, again, late) in [(0u8, &[][..], &[][..]), (1, &[3, 4], &[7]), (2, &[], &[1, 12])] {
        let mut talk = Talk::new((10 + n, 40_000), (1, 80), both);
        talk.open(n as i64 * SECOND, 4);
        talk.says(10 * SECOND, 0, 20, again, late);
        talk.keeps_alive(16 * SECOND, 0, 2001, 5);
        talk.close(20 * SECOND, 2001, 3);
        all.extend(talk.packets);
    }
    let mut talk = Talk::new((20, 41_000), (1, 443), both);
    talk.open(SECOND, 1);
    talk.says(2 * SECOND, 1, 30, &[0, 29], &[]);
    all.extend(talk.packets);
    // One side only: the client's, the server's; without data, and with.
    for n in 0..6u16 {
        let sides = [n % 2 == 0, n % 2 == 1];
        let mut talk = Talk::new((30, 42_000 + n), (2, 80), sides);
        talk.open(n as i64 * 100 * MS, if n == 2 { 3 } else { 1 });
        talk.says(10 * SECOND, 0, 4, if n == 4 { &[2] } else { &[] }, &[]);
        all.extend(talk.packets);
    }
    let mut talk = Talk::new((31, 42_000), (2, 80), both);
    talk.open(5 * SECOND, 1);
    all.extend(talk.packets);
    // Connections of a minute ago are reset beside new ones, and one of these is.
    for n in 0..4u16 {
        let mut talk = Talk::new((40, 43_000 + n), (3, 50_000), both);
        talk.open(n as i64 * SECOND, 1);
        talk.send(MINUTE + n as i64 * SECOND, 1, RST | ACK, (1, 1), 0);
        all.extend(talk.packets);
    }
    for n in 0..7u16 {
        let mut talk = Talk::new((41, 44_000 + n), (3, 50_000), both);
        talk.open(MINUTE + n as i64 * SECOND, 1);
        match n {
            0 => talk.send(MINUTE + 9 * SECOND, 1, RST | ACK, (1, 1), 0),
            1 => {}
            _ => talk.close(MINUTE + 20 * SECOND, 1, 1),
        }
        all.extend(talk.packets);
    }
    // Answered in the next minute only.
    let mut talk = Talk::new((42, 45_000), (3, 50_000), both);
    talk.send(2 * MINUTE - 10 * MS, 0, SYN, (0, 0), 0);
    talk.send(2 * MINUTE + 10 * MS, 1, SYN | ACK, (0, 1), 0);
    all.extend(talk.packets);
    all.sort_by_key(|packet| packet.at);
    all
}

/// The segments and connections of a server that were seen in a minute.
#[derive(Default)]
struct Server {
    data: i64,
    again: i64,
    /// Connections that began, ended or turned round then, those of them whose both directions were
    /// seen, and those that were reset.
    turned: BTreeSet<[(Ipv4Addr, u16); 2]>,
    both: BTreeSet<[(Ipv4Addr, u16); 2]>,
    reset: BTreeSet<[(Ipv4Addr, u16); 2]>,
}

/// By window, server and port.
fn servers(packets: &[Packet]) -> BTreeMap<Vec<String>, Server> {
    let mut servers: BTreeMap<_, Server> = BTreeMap::new();
    let mut directions: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for p in packets {
        let (sport, dport) = p.ports.expect("TCP");
        // All servers are in one network.
        let at_server = p.src.octets()[0] == 198;
        let (server, port) = if at_server { (p.src, sport) } else { (p.dst, dport) };
        let mut ends = [(p.src, sport), (p.dst, dport)];
        ends.sort();
        let seen = directions.entry(ends).or_default();
        let is_new = seen.insert(p.src);
        let keys = vec![p.window(MINUTE), server.to_string(), port.to_string()];
        let of = servers.entry(keys).or_default();
        of.data += i64::from(p.data > 0);
        of.again += i64::from(p.data > 0 && p.again);
        if is_new || p.flags & (SYN | FIN | RST) != 0 {
            of.turned.insert(ends);
            if seen.len() == 2 {
                of.both.insert(ends);
            }
            if p.flags & RST != 0 {
                of.reset.insert(ends);
            }
        }
    }
    servers
}

/// A share of each server and minute that the detector looks at: it leaves minutes out in which
/// nothing began, ended or carried data.
fn shares(packets: &[Packet], share: fn(&Server) -> (i64, i64), all: bool) -> Own {
    let servers = servers(packets).into_iter();
    let seen = servers.filter(|(_, s)| all || s.data > 0 || !s.turned.is_empty());
    let row = |(keys, server): (Vec<String>, Server)| {
        let (part, whole) = share(&server);
        (keys, vec![if whole > 0 { part as f64 / whole as f64 } else { 0.0 }])
    };
    seen.map(row).collect()
}

pub(crate) fn retransmitting(packets: &[Packet]) -> Own {
    shares(packets, |s| (s.again, s.data), false)
}

pub(crate) fn again_shares(packets: &[Packet]) -> Own {
    shares(packets, |s| (s.again, s.data), true)
}

pub(crate) fn resets(packets: &[Packet]) -> Own {
    shares(packets, |s| (s.reset.len() as i64, s.turned.len() as i64), false)
}

pub(crate) fn one_way(packets: &[Packet]) -> Own {
    shares(packets, |s| ((s.turned.len() - s.both.len()) as i64, s.turned.len() as i64), false)
}
