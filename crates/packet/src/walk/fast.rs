//! The walk over plain traffic: a whole batch, without branches that depend on the packets.
//!
//! Almost every frame is TCP or UDP over IPv4 without options or IPv6 without extension headers,
//! not a fragment, sound, and captured well into its transport header. Those have their fields at
//! fixed offsets. A first pass decides for each frame whether it is such an IPv4 packet, a second
//! pass over the others whether it is such an IPv6 packet, and the rest is left to
//! [`super::slow`].

mod heads;

use super::{Layer, Layers, PlainFrames};
use crate::bits::Bits;
use crate::limits::BATCH;
use crate::prefetch::Ahead;
use crate::source::FrameBatch;
use crate::{ethernet, ipv4, tcp, udp};
use heads::{Form, Six};

pub(crate) use heads::{HEADS, Heads};

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
            let ahead = Ahead::classify(frames.span());
            let mut heads = Heads::new();
            for from in (0..n).step_by(HEADS) {
                let lanes = from..(from + HEADS).min(n);
                for i in lanes.clone() {
                    ahead.ask(bytes, offsets[i] as usize);
                    match window(i) {
                        Some(w) => heads.put4::<L3>(i - from, w, family(w).0),
                        None => heads.put_none(i - from),
                    }
                }
                heads.look(&Form::ipv4(L3), &caplens[lanes.clone()], &lens[lanes.clone()]);
                own[lanes.clone()].copy_from_slice(&heads.looks[..lanes.len()]);
            }
            &own
        }
    };
    let plain4 = with_bit(looks, Look::PLAIN).and(Bits::first(n));
    let mut tcp = with_bit(looks, Look::TCP);
    for (proto, look) in layers.proto.iter_mut().zip(looks) {
        *proto = look.proto();
    }
    let others = Bits::first(n).minus(plain4);
    let mut plain6 = Bits::NONE;
    if !others.is_empty() {
        let (mut six, mut looks6) = (Six::new(), [Look::NONE; BATCH]);
        for i in others.iter() {
            if let Some(w) = window(i) {
                six.put::<L3>(i, w, family(w).1, caplens[i], lens[i]);
            }
            if six.is_full() {
                six.drain::<L3>(&mut looks6, layers);
            }
        }
        six.drain::<L3>(&mut looks6, layers);
        plain6 = with_bit(&looks6, Look::PLAIN);
        tcp = tcp.or(with_bit(&looks6, Look::TCP));
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
    layers.plain = PlainFrames { four: plain4, six: plain6, l3: L3 as u8 };
    plain
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
