//! Which ring of a group gets a frame, as a program of classic BPF (PACKET_FANOUT_CBPF).
//!
//! Both directions of a flow come by one ring: the program joins addresses and ports by exclusive
//! or, for which it does not matter which of them sends. It finds them after two VLAN tags and
//! after PPPoE. Frames that are not IP come by the first ring.
//!
//! To the program, a frame that was received begins with its network header, and one that is sent
//! with its link header. Of a received frame it loads by plain offsets, which the kernel follows
//! into all buffers of the frame; of a sent one by offsets that the kernel counts from the network
//! header.

use crate::cbpf::Instruction;

/// Offsets from the network header (`SKF_NET_OFF`), and facts that are no bytes (`SKF_AD_OFF`).
const NETWORK: u32 = libc::SKF_NET_OFF as u32;
const PROTOCOL: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL) as u32;
const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TAGS: [u32; 2] = [0x8100, 0x88a8];
const PPPOE: u32 = 0x8864;
/// The protocol numbers in a PPP header before IPv4 and IPv6.
const PPP_IPV4: u32 = 0x0021;
const PPP_IPV6: u32 = 0x0057;
/// Transport protocols whose headers begin with two ports: TCP, UDP, SCTP.
const WITH_PORTS: [u32; 3] = [6, 17, 132];
/// Of an IPv4 header, whether it begins a fragment.
const FRAGMENT: u32 = 0x3fff;

// Operations.
const LOAD_WORD: u16 = 0x20;
const LOAD_WORD_X: u16 = 0x40;
const LOAD_HALF_X: u16 = 0x48;
const LOAD_BYTE_X: u16 = 0x50;
const LOAD_CONST: u16 = 0x00;
const LOAD_CELL: u16 = 0x60;
const X_CELL: u16 = 0x61;
const STORE: u16 = 0x02;
const ADD: u16 = 0x04;
const ADD_X: u16 = 0x0c;
const MULTIPLY: u16 = 0x24;
const AND: u16 = 0x54;
const SHIFT_LEFT: u16 = 0x64;
const SHIFT_RIGHT: u16 = 0x74;
const MODULO: u16 = 0x94;
const XOR_X: u16 = 0xac;
const A_TO_X: u16 = 0x07;
const GOTO: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;
const RETURN_A: u16 = 0x16;

// Cells of scratch memory: the hash so far, a value, and where the header starts.
const HASH: u32 = 0;
const VALUE: u32 = 1;
const START: u32 = 2;

/// An odd number whose bits are spread: 2^32 over the golden ratio.
const SPREAD: u32 = 0x9e37_79b1;

/// The program for some rings of a group, from number `first` on.
pub(super) fn spread(first: usize, rings: usize) -> Vec<Instruction> {
    let (first, rings) = (first as u32, rings as u32);
    if rings <= 1 {
        return vec![op(RETURN, first)];
    }
    let (received, sent) = (by_flow(0, first, rings), by_flow(NETWORK, first, rings));
    let unless_sent = Instruction { code: IF_EQUAL, jt: 0, jf: 1, k: libc::PACKET_OUTGOING as u32 };
    let which = [op(LOAD_WORD, PACKET_TYPE), unless_sent, op(GOTO, received.len() as u32)];
    which.into_iter().chain(received).chain(sent).collect()
}

/// The program where the network header is at `base`.
fn by_flow(base: u32, first: u32, rings: u32) -> Vec<Instruction> {
    let mut code = Code::default();
    code.add(&[(LOAD_CONST, 0), (STORE, START), (A_TO_X, 0), (LOAD_WORD, PROTOCOL)]);
    for (tag, next) in [(Place::Tag, Place::Tagged), (Place::SecondTag, Place::TwiceTagged)] {
        TAGS.iter().for_each(|&tpid| code.go_if(IF_EQUAL, tpid, tag));
        code.go_if(GOTO, 0, next);
        code.here(tag);
        code.add(&[(LOAD_HALF_X, base.wrapping_add(2))]);
        code.advance(4);
        code.here(next);
    }
    code.go_if(IF_EQUAL, IPV4, Place::Ipv4);
    code.go_if(IF_EQUAL, IPV6, Place::Ipv6);
    code.go_if(IF_EQUAL, PPPOE, Place::Pppoe);
    code.add(&[(RETURN, first)]);
    code.here(Place::Pppoe);
    code.add(&[(LOAD_HALF_X, base.wrapping_add(6))]);
    code.advance(8);
    code.go_if(IF_EQUAL, PPP_IPV4, Place::Ipv4);
    code.go_if(IF_EQUAL, PPP_IPV6, Place::Ipv6);
    code.add(&[(RETURN, first)]);
    code.here(Place::Ipv4);
    ipv4(&mut code, base);
    code.here(Place::Ipv6);
    ipv6(&mut code, base);
    code.here(Place::Ports);
    code.add(&[(LOAD_HALF_X, base), (STORE, VALUE), (LOAD_HALF_X, base.wrapping_add(2))]);
    code.add(&[(X_CELL, VALUE), (XOR_X, 0), (MULTIPLY, SPREAD)]);
    code.add(&[(X_CELL, HASH), (XOR_X, 0), (STORE, HASH)]);
    code.here(Place::End);
    code.add(&[(LOAD_CELL, HASH), (MULTIPLY, SPREAD), (SHIFT_RIGHT, 16), (MODULO, rings)]);
    code.add(&[(ADD, first), (RETURN_A, 0)]);
    code.done()
}

/// From an IPv4 header to its ports.
fn ipv4(code: &mut Code, base: u32) {
    let at = |offset: u32| base.wrapping_add(offset);
    code.add(&[(LOAD_WORD_X, at(12)), (STORE, HASH), (LOAD_WORD_X, at(16))]);
    code.add(&[(X_CELL, HASH), (XOR_X, 0), (STORE, HASH), (X_CELL, START)]);
    code.add(&[(LOAD_HALF_X, at(6))]);
    code.go_if(IF_BITS, FRAGMENT, Place::End);
    code.add(&[(LOAD_BYTE_X, at(9))]);
    WITH_PORTS.iter().for_each(|&protocol| code.go_if(IF_EQUAL, protocol, Place::Options));
    code.go_if(GOTO, 0, Place::End);
    code.here(Place::Options);
    code.add(&[(LOAD_BYTE_X, at(0)), (AND, 15), (SHIFT_LEFT, 2), (ADD_X, 0), (A_TO_X, 0)]);
    code.go_if(GOTO, 0, Place::Ports);
}

/// From an IPv6 header to its ports, where no other header is before them.
fn ipv6(code: &mut Code, base: u32) {
    let at = |offset: u32| base.wrapping_add(offset);
    code.add(&[(LOAD_CONST, 0), (STORE, HASH)]);
    for word in 0..4 {
        let (from, to) = (at(8 + 4 * word), at(24 + 4 * word));
        code.add(&[(LOAD_WORD_X, from), (STORE, VALUE), (LOAD_WORD_X, to), (X_CELL, VALUE)]);
        code.add(&[(XOR_X, 0), (STORE, VALUE), (LOAD_CELL, HASH), (MULTIPLY, SPREAD)]);
        code.add(&[(X_CELL, VALUE), (XOR_X, 0), (STORE, HASH), (X_CELL, START)]);
    }
    code.add(&[(LOAD_BYTE_X, at(6))]);
    WITH_PORTS.iter().for_each(|&protocol| code.go_if(IF_EQUAL, protocol, Place::Fixed));
    code.go_if(GOTO, 0, Place::End);
    code.here(Place::Fixed);
    code.add(&[(LOAD_CELL, START), (ADD, 40), (A_TO_X, 0)]);
}

/// Where jumps of the program lead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Tag,
    Tagged,
    SecondTag,
    TwiceTagged,
    Pppoe,
    Ipv4,
    Options,
    Ipv6,
    Fixed,
    Ports,
    End,
}

/// A program that is being written. A jump leads forward to a place that comes later.
#[derive(Default)]
struct Code {
    code: Vec<Instruction>,
    /// Jumps whose place did not come yet.
    jumps: Vec<(usize, Place)>,
}

impl Code {
    fn add(&mut self, operations: &[(u16, u32)]) {
        self.code.extend(operations.iter().map(|&(code, k)| op(code, k)));
    }

    /// Goes to a place if what was loaded is `k`, or has bits of it; in any case by [`GOTO`].
    fn go_if(&mut self, test: u16, k: u32, to: Place) {
        self.jumps.push((self.code.len(), to));
        self.code.push(op(test, k));
    }

    /// The registers stay as they are, and the header starts so many bytes later.
    fn advance(&mut self, bytes: u32) {
        self.add(&[(STORE, VALUE), (LOAD_CELL, START), (ADD, bytes), (STORE, START)]);
        self.add(&[(A_TO_X, 0), (LOAD_CELL, VALUE)]);
    }

    /// The place that jumps before it lead to.
    fn here(&mut self, place: Place) {
        let here = self.code.len();
        for (at, _) in self.jumps.extract_if(.., |(_, to)| *to == place) {
            let (jump, skipped) = (&mut self.code[at], here - at - 1);
            if jump.code == GOTO {
                jump.k = skipped as u32;
            } else {
                jump.jt = u8::try_from(skipped).expect("a program of less than 256 instructions");
            }
        }
    }

    fn done(self) -> Vec<Instruction> {
        debug_assert!(self.jumps.is_empty(), "every jump leads somewhere");
        self.code
    }
}

const fn op(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cbpf::ClassicProgram;
    use std::collections::BTreeSet;
    use weir_packet::craft::Frame;

    const RINGS: u32 = 8;

    /// The ring of a frame that was received, by its type and what comes after that.
    fn ring(kind: u16, packet: &[u8]) -> u32 {
        let mut code = by_flow(0, 1, RINGS);
        // An interpreter does not know what the kernel says of a frame.
        let asks = |op: &Instruction| op.code == LOAD_WORD && op.k == PROTOCOL;
        let at = code.iter().position(asks).expect("it asks for the type");
        code[at] = op(LOAD_CONST, kind.into());
        ClassicProgram::new(&code).expect("a program").run(packet, packet.len() as u32)
    }

    /// The same of an Ethernet frame.
    fn ring_of(frame: &[u8]) -> u32 {
        ring(u16::from_be_bytes([frame[12], frame[13]]), &frame[14..])
    }

    /// A frame of one of many flows, one way or the other.
    fn frame(flow: u8, back: bool, six: bool, tcp: bool) -> Vec<u8> {
        let (here, there) = ([10, 0, flow, 1], [192, 0, 2, flow]);
        let (from, to) = if back { (there, here) } else { (here, there) };
        let frame = match six {
            true => {
                let wide =
                    |a: [u8; 4]| -> [u8; 16] { std::array::from_fn(|i| a[i % 4] ^ (i / 4) as u8) };
                Frame::ethernet().ipv6(wide(from), wide(to))
            }
            false => Frame::ethernet().ipv4(from, to),
        };
        let (a, b) = if back { (443, 1000) } else { (1000, 443) };
        if tcp { frame.tcp(a, b).bytes() } else { frame.udp(a, b).bytes() }
    }

    #[test]
    fn both_directions_of_a_flow_come_by_one_ring_and_flows_by_all() {
        for (six, tcp) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut rings = BTreeSet::new();
            for flow in 0..100 {
                let plain = frame(flow, false, six, tcp);
                let there = ring_of(&plain);
                assert_eq!(there, ring_of(&frame(flow, true, six, tcp)), "{flow} {six} {tcp}");
                // After tags, and in PPPoE.
                let kind = [plain[12], plain[13]];
                let tagged = [&[0, 5], &kind[..], &plain[14..]].concat();
                assert_eq!(ring(0x8100, &tagged), there);
                let twice = [&[0, 6, 0x81, 0][..], &tagged].concat();
                assert_eq!(ring(0x88a8, &twice), there);
                let ppp: [u8; 2] = if six { [0, 0x57] } else { [0, 0x21] };
                let pppoe = [&[0x11, 0, 0, 1, 0, 99][..], &ppp, &plain[14..]].concat();
                assert_eq!(ring(0x8864, &pppoe), there);
                assert_eq!(ring(0x8100, &[&[0, 5, 0x88, 0x64][..], &pppoe].concat()), there);
                rings.insert(there);
            }
            assert_eq!(rings, (1..=RINGS).collect(), "{six} {tcp}");
        }
    }

    #[test]
    fn ports_count_where_there_are_some() {
        let of = |a, b| Frame::ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(a, b).bytes();
        let rings: BTreeSet<u32> = (1..200).map(|port| ring_of(&of(port, 53))).collect();
        assert_eq!(rings.len(), RINGS as usize);
        // Fragments have ports in the first only.
        let fragment = |port| {
            let mut frame = of(port, 53);
            frame[14 + 6] |= 0x20;
            ring_of(&frame)
        };
        assert!((1..200).all(|port| fragment(port) == fragment(1)));
    }

    #[test]
    fn what_is_not_ip_comes_by_the_first_ring() {
        assert_eq!(ring(0x0806, &[0; 28]), 1);
        assert_eq!(ring(0x8864, &[0x11, 0, 0, 1, 0, 99, 0xc0, 0x21, 1]), 1);
        // A frame that is cut short is refused by the load: the ring of all.
        assert_eq!(ring(0x0800, &[0x45; 10]), 0);
    }

    #[test]
    fn one_ring_takes_all() {
        assert_eq!(spread(1, 1), [op(RETURN, 1)]);
        assert!(spread(0, 64).len() < 4096, "the kernel takes no longer program");
    }
}
