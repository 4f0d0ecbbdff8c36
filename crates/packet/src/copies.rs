//! The bytes that copies of one packet share, as SPAN ports and several taps deliver such copies.

use crate::source::FrameBatch;
use crate::walk::{Layer, Layers};
use crate::{ipv4, ipv6};

/// Bytes of a cut packet that are compared from its transport header on.
const CUT_TRANSPORT_LEN: usize = 20;

/// The parts of a frame that are compared: of an IP packet its bytes without TTL or hop limit, and
/// without the checksum of an IPv4 header. Bytes around the packet are left out: link headers,
/// tags, labels, padding, with `--headers inner` the tunnel. Of a packet that was cut only its
/// headers and 20 bytes from its transport header on are compared, so that a tag does not change
/// how much is left of it. A frame without an IP packet is compared whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared<'a> {
    /// The kind of frame or packet.
    pub kind: ComparedKind,
    /// Bytes on the wire.
    pub len: u32,
    /// The bytes, without those that copies need not share. The places of the gaps depend on the
    /// kind only.
    pub parts: [&'a [u8]; 3],
}

/// The kind of frame or packet that is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ComparedKind {
    /// A frame, from its first byte on.
    Frame,
    /// An IPv4 packet.
    Ipv4,
    /// An IPv6 packet.
    Ipv6,
    /// The start of an IPv4 packet that was cut.
    CutIpv4,
    /// The same of IPv6.
    CutIpv6,
}

/// The compared parts of frame `i`; `layers` is what [`crate::walk::classify`] said of `frames`.
pub fn compared<'a>(frames: &'a FrameBatch, layers: &Layers, i: usize) -> Compared<'a> {
    let (frame, wire) = (frames.frame(i), frames.lens()[i].max(frames.frame(i).len() as u32));
    let at = usize::from(layers.l3[i]);
    let is_four = layers.has(Layer::Ipv4).has(i);
    let header_len = if is_four { ipv4::HEADER_LEN } else { ipv6::HEADER_LEN };
    let is_packet = is_four || layers.has(Layer::Ipv6).has(i);
    let Some(header) = frame.get(at..at + header_len).filter(|_| is_packet) else {
        return Compared { kind: ComparedKind::Frame, len: wire, parts: [frame, &[], &[]] };
    };
    let word = |place: usize| usize::from(u16::from_be_bytes([header[place], header[place + 1]]));
    let stated = match is_four {
        true => word(ipv4::TOTAL_LENGTH),
        false => Some(word(ipv6::PAYLOAD_LENGTH)).filter(|n| *n > 0).map_or(0, |n| n + header_len),
    };
    // Of a header that leaves the length open, or lies, the packet ends with the frame.
    let room = (wire as usize).saturating_sub(at);
    let len = if (header_len..=room).contains(&stated) { stated } else { room };
    let is_cut = at + len > frame.len();
    let transport = match layers.proto_known.has(i) {
        true => usize::from(layers.l4[i]),
        false => at + header_len,
    };
    let end = match is_cut {
        true => frame.len().min(transport + CUT_TRANSPORT_LEN),
        false => at + len,
    };
    let packet = &frame[at..end.max(at + header_len)];
    let (kind, parts) = match (is_four, is_cut) {
        (true, false) => (ComparedKind::Ipv4, four(packet)),
        (true, true) => (ComparedKind::CutIpv4, four(packet)),
        (false, false) => (ComparedKind::Ipv6, six(packet)),
        (false, true) => (ComparedKind::CutIpv6, six(packet)),
    };
    Compared { kind, len: len as u32, parts }
}

fn four(packet: &[u8]) -> [&[u8]; 3] {
    let (protocol, after) = (ipv4::PROTOCOL, ipv4::CHECKSUM + 2);
    [&packet[..ipv4::TTL], &packet[protocol..protocol + 1], &packet[after..]]
}

fn six(packet: &[u8]) -> [&[u8]; 3] {
    [&packet[..ipv6::HOP_LIMIT], &packet[ipv6::HOP_LIMIT + 1..], &[]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::{Frame, batch};
    use crate::link_type::LinkType;
    use crate::walk::classify;
    use crate::walk::samples::{A, A6, B, B6};

    /// Whether two frames, captured up to so many bytes each, are copies.
    fn same(a: (&Frame, usize), b: (&Frame, usize)) -> bool {
        let [a, b] = [a, b].map(|(frame, captured)| {
            let bytes = frame.bytes();
            let len = bytes.len() as u32;
            (frame.link(), bytes[..captured.min(bytes.len())].to_vec(), len)
        });
        let one = |(link, bytes, len): (LinkType, Vec<u8>, u32)| {
            let frames = batch(link, &[(bytes, len)]);
            let mut layers = Layers::new();
            classify(&frames, &mut layers);
            let Compared { kind, len, parts } = compared(&frames, &layers, 0);
            (kind, len, parts.concat())
        };
        one(a) == one(b)
    }

    const ALL: usize = usize::MAX;

    #[test]
    fn what_is_around_a_packet_and_what_routers_change_is_left_out() {
        let packet = |frame: Frame, ttl: u8| {
            frame.ipv4(A, B).put(ipv4::TTL, &[ttl]).tcp(1, 2).payload(b"data")
        };
        let plain = packet(Frame::ethernet(), 64);
        for other in [
            packet(Frame::ethernet(), 63),
            packet(Frame::ethernet().mac([2; 6], [4; 6]), 64),
            packet(Frame::ethernet().vlan(7), 64),
            packet(Frame::ethernet().vlan(7).vlan(8), 1),
            packet(Frame::raw(), 64),
            Frame::raw().ipv4(A, B).put(ipv4::CHECKSUM, &[1, 2]).tcp(1, 2).payload(b"data"),
        ] {
            assert!(same((&plain, ALL), (&other, ALL)), "{other:?}");
        }
        let six = |hops: u8| Frame::ethernet().ipv6(A6, B6).put(ipv6::HOP_LIMIT, &[hops]).udp(1, 2);
        assert!(same((&six(1), ALL), (&six(255), ALL)));
    }

    #[test]
    fn another_packet_is_no_copy() {
        let packet = |id: u16, data: &[u8]| Frame::raw().ipv4(A, B).id(id).udp(1, 2).payload(data);
        let one = packet(7, b"data");
        for other in [packet(8, b"data"), packet(7, b"date"), packet(7, b"dat"), packet(7, b"")] {
            assert!(!same((&one, ALL), (&other, ALL)), "{other:?}");
        }
        let fragment = |offset| Frame::raw().ipv4(A, B).id(7).fragment(offset, true);
        let [first, second] = [0, 64].map(|at| fragment(at).payload(&[0; 64]));
        assert!(!same((&first, ALL), (&second, ALL)));
    }

    #[test]
    fn of_a_cut_packet_the_headers_decide() {
        let packet = |frame: Frame, data: u8| frame.ipv4(A, B).tcp(1, 2).payload(&[data; 200]);
        let plain = packet(Frame::ethernet(), 1);
        let tagged = packet(Frame::ethernet().vlan(7), 1);
        assert!(same((&plain, 96), (&tagged, 96)));
        assert!(same((&plain, 60), (&tagged, 96)));
        assert!(!same((&plain, ALL), (&tagged, 96)), "one is whole");
        let longer = Frame::ethernet().ipv4(A, B).tcp(1, 2).payload(&[1; 201]);
        assert!(!same((&plain, 96), (&longer, 96)));
    }

    #[test]
    fn frames_without_a_packet_are_compared_whole() {
        let arp = |mac: u8| Frame::ethernet().mac([mac; 6], [4; 6]).put(12, &[8, 6]);
        assert!(same((&arp(2), ALL), (&arp(2), ALL)));
        assert!(!same((&arp(2), ALL), (&arp(6), ALL)));
        let empty = Frame::of(LinkType::ETHERNET, &[]);
        assert!(same((&empty, ALL), (&empty, 0)));
    }
}
