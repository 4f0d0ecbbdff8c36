//! The walk over plain traffic: a whole batch, without branches that depend on the packets.
//!
//! Almost every frame is TCP or UDP over IPv4 without options or IPv6 without extension headers,
//! not a fragment, sound, and captured well into its transport header. Those have their fields at
//! fixed offsets. A first pass decides for each frame whether it is such an IPv4 packet, a second
//! pass over the others whether it is such an IPv6 packet, and the rest is left to
//! [`super::slow`].

use super::{Layer, Layers, Plain};
use crate::bits::Bits;
use crate::limits::BATCH;
use crate::prefetch::Ahead;
use crate::source::FrameBatch;
use crate::{ethernet, ipv4, ipv6, tcp, udp};
use std::hint::select_unpredictable;

/// Bytes looked at from the start of a frame: up to the data offset of TCP over IPv6 behind the
/// longest link header. A frame closer than this to the end of its chunk is left to the slow walk.
pub(crate) const WINDOW: usize = 80;

/// The first bytes of a frame; those beyond what was captured belong to something else.
pub(super) type Window = [u8; WINDOW];

/// What one look at a frame shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look(u8);

impl Look {
    /// A frame that is not plain, or was not looked at.
    pub(crate) const NONE: Look = Look(0);
    /// Bit of a plain frame.
    const PLAIN: u8 = 1;
    /// Bit of a plain frame that is TCP; without it is UDP.
    const TCP: u8 = 2;

    /// The protocol of a plain frame.
    fn proto(self) -> u8 {
        if self.0 & Look::TCP == 0 { udp::PROTOCOL } else { tcp::PROTOCOL }
    }
}

/// Bytes of the smallest header of each protocol: more than any packet has of all but TCP and UDP.
static LEAST: [i32; 256] = {
    let mut least = [1 << 20; 256];
    least[tcp::PROTOCOL as usize] = tcp::HEADER_LEN as i32;
    least[udp::PROTOCOL as usize] = udp::HEADER_LEN as i32;
    least
};

/// Fills `layers` for the plain frames of a batch and returns which they are. The IP header starts
/// at `L3`, behind `vlan_depth` tags; `family` says whether the link header announces IPv4, IPv6.
#[inline(always)]
pub(super) fn classify<const L3: usize>(
    frames: &FrameBatch,
    layers: &mut Layers,
    vlan_depth: u8,
    family: impl Fn(&Window) -> (bool, bool),
) -> Bits {
    let bytes = frames.bytes();
    let n = frames.len().min(BATCH);
    let (offsets, caplens, lens) =
        (&frames.offsets()[..n], &frames.caplens()[..n], &frames.lens()[..n]);
    let window = |i: usize| {
        let at = offsets[i] as usize;
        bytes.get(at..at + WINDOW).and_then(|w| w.first_chunk::<WINDOW>())
    };
    layers.vlan_depth.fill(vlan_depth);
    layers.l3.fill(L3 as u16);
    layers.l4.fill((L3 + ipv4::HEADER_LEN) as u16);

    let mut own = [Look::NONE; BATCH];
    let looks = match frames.looks() {
        Some(looks) if L3 == ethernet::HEADER_LEN => looks,
        _ => {
            let ahead = Ahead::classify(span(offsets, caplens));
            for i in 0..n {
                ahead.ask(bytes, offsets[i] as usize);
                if let Some(w) = window(i) {
                    let differs = u32::from(w[L3] ^ USUAL) | u32::from(!family(w).0);
                    own[i] = look4::<L3>(w, differs, caplens[i], lens[i]);
                }
            }
            &own
        }
    };
    for (proto, look) in layers.proto.iter_mut().zip(looks) {
        *proto = look.proto();
    }
    let plain4 = with_bit(looks, Look::PLAIN).and(Bits::first(n));
    let mut tcp = with_bit(looks, Look::TCP);

    let mut plain6 = Bits::NONE;
    for (w, mut others) in Bits::first(n).minus(plain4).0.into_iter().enumerate() {
        while others != 0 {
            let bit = others.trailing_zeros() as usize;
            others &= others - 1;
            let i = w * 64 + bit;
            let look = match window(i) {
                Some(w) => look6::<L3>(w, family(w).1, caplens[i], lens[i]),
                None => Look::NONE,
            };
            layers.proto[i] = look.proto();
            layers.l4[i] = (L3 + ipv6::HEADER_LEN) as u16;
            plain6.0[w] |= u64::from(look.0 & Look::PLAIN) << bit;
            tcp.0[w] |= u64::from(look.0 / Look::TCP) << bit;
        }
    }

    let plain = plain4.or(plain6);
    let mut set = |layer: Layer, rows: Bits| layers.has[layer as usize] = rows;
    set(Layer::Ipv4, plain4);
    set(Layer::Ipv6, plain6);
    set(Layer::Ports, plain);
    set(Layer::Tcp, plain.and(tcp));
    set(Layer::TcpWhole, plain.and(tcp));
    set(Layer::Udp, plain.minus(tcp));
    layers.proto_known = plain;
    layers.plain = Plain { four: plain4, six: plain6, l3: L3 as u8 };
    plain
}

/// Bytes from the start of the batch's memory to the end of its last frame.
fn span(offsets: &[u32], caplens: &[u32]) -> usize {
    match (offsets, caplens) {
        ([.., last], [.., caplen]) => *last as usize + *caplen as usize,
        _ => 0,
    }
}

/// The rows whose look has a bit.
fn with_bit(looks: &[Look; BATCH], bit: u8) -> Bits {
    // The lowest bit of each of eight bytes, gathered in the highest byte of a product.
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let mut bytes = looks.as_chunks::<8>().0.iter().map(|eight| {
        let eight = u64::from_le_bytes(eight.map(|look| look.0)) >> bit.trailing_zeros() & LOWEST;
        eight.wrapping_mul(GATHER) >> 56
    });
    Bits(std::array::from_fn(|_| {
        bytes.by_ref().take(8).fold(0, |word, byte| word >> 8 | byte << 56)
    }))
}

/// The first byte of an IPv4 header of five words.
const USUAL: u8 = 0x45;

/// Whether a frame with an Ethernet header and no tag is plain TCP or UDP over IPv4.
#[inline(always)]
pub(crate) fn look_ethernet(w: &[u8; WINDOW], caplen: u32, len: u32) -> Look {
    // The EtherType and the first byte behind it, at once.
    const START: u32 = (ethernet::IPV4 as u32) << 16 | (USUAL as u32) << 8;
    let start = u32::from_be_bytes(four(w, ethernet::HEADER_LEN - 2));
    look4::<{ ethernet::HEADER_LEN }>(w, (start ^ START) >> 8, caplen, len)
}

/// Whether a frame is plain TCP or UDP over IPv4; `differs` is 0 if it begins so.
#[inline(always)]
fn look4<const L3: usize>(w: &Window, differs: u32, caplen: u32, len: u32) -> Look {
    // No more fragments, no offset; two bytes on is the protocol.
    const FRAGMENT: u32 = ((ipv4::MORE_FRAGMENTS | ipv4::OFFSET_BITS) as u32) << 16;
    let word = u32::from_be_bytes(four(w, L3 + ipv4::FRAGMENT));
    let ip_len = i64::from(u16::from_be_bytes(two(w, L3 + ipv4::TOTAL_LENGTH)));
    look::<L3>(w, ipv4::HEADER_LEN, differs | word & FRAGMENT, ip_len, word as u8, caplen, len)
}

/// Whether a frame is plain TCP or UDP over IPv6.
#[inline(always)]
fn look6<const L3: usize>(w: &Window, announced: bool, caplen: u32, len: u32) -> Look {
    let differs = u32::from(w[L3] >> 4 ^ 6) | u32::from(!announced);
    // A payload length of 0 makes an empty packet here, with no room for a header.
    let payload = u16::from_be_bytes(two(w, L3 + ipv6::PAYLOAD_LENGTH));
    let ip_len = i64::from(payload) + ipv6::HEADER_LEN as i64;
    look::<L3>(w, ipv6::HEADER_LEN, differs, ip_len, w[L3 + ipv6::NEXT_HEADER], caplen, len)
}

/// The checks that both families share: TCP or UDP, lengths that agree, and enough captured.
/// `differs` is 0 if the IP header is as it should be. Nothing is branched on.
#[inline(always)]
fn look<const L3: usize>(
    w: &Window,
    ip_header: usize,
    differs: u32,
    ip_len: i64,
    proto: u8,
    caplen: u32,
    len: u32,
) -> Look {
    let tcp = proto == tcp::PROTOCOL;
    let least = i64::from(LEAST[usize::from(proto)]);
    let l4 = L3 + ip_header;
    // The packet must have room for TCP's header, and for all of a UDP datagram.
    let tcp_claims = i64::from(w[l4 + tcp::DATA_OFFSET] >> 4) * 4;
    let udp_claims = i64::from(u16::from_be_bytes(two(w, l4 + udp::LENGTH)));
    let claimed = select_unpredictable(tcp, tcp_claims, udp_claims);
    // Each is negative where something is too short, and so is the union.
    let room = (claimed - least)
        | (ip_len - ip_header as i64 - claimed)
        | (i64::from(len) - L3 as i64 - ip_len)
        | (i64::from(caplen) - l4 as i64 - least);
    let plain = (room >> 63) as u64 | u64::from(differs) == 0;
    Look(select_unpredictable(plain, Look::PLAIN | (u8::from(tcp) * Look::TCP), 0))
}

#[inline(always)]
fn two(w: &Window, at: usize) -> [u8; 2] {
    [w[at], w[at + 1]]
}

#[inline(always)]
fn four(w: &Window, at: usize) -> [u8; 4] {
    [w[at], w[at + 1], w[at + 2], w[at + 3]]
}
