//! The walk over plain traffic: a whole batch, without branches that depend on the packets.
//!
//! Almost every frame is TCP or UDP over IPv4 without options or IPv6 without extension headers,
//! not a fragment, sound, and captured well into its transport header. Such frames have their
//! fields at fixed offsets. A first pass decides for each frame whether it is such an IPv4 packet,
//! a second pass over the others whether it is such an IPv6 packet, and the rest is left to
//! [`super::slow`].

mod heads;

use super::layers::{Layer, Layers, PlainFrames};
use super::look::{Look, WINDOW, Window};
use crate::bits::Bits;
use crate::limits::BATCH;
use crate::prefetch::Ahead;
use crate::source::FrameBatch;
use crate::{ethernet, ipv4};
use heads::{Form, Six};

pub(crate) use heads::{HEADS, Heads};

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
    let plain4 = Look::plain(looks).and(Bits::first(n));
    let mut tcp = Look::tcp(looks);
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
        plain6 = Look::plain(&looks6);
        tcp = tcp.or(Look::tcp(&looks6));
    }

    note_plain(layers, plain4, plain6, tcp, L3 as u8)
}

/// Writes down which frames are plain IPv4, IPv6 and which of these TCP; returns the plain ones.
#[inline(always)]
fn note_plain(layers: &mut Layers, four: Bits, six: Bits, tcp: Bits, l3: u8) -> Bits {
    let plain = four.or(six);
    let mut set = |layer: Layer, rows: Bits| layers.has[layer as usize] = rows;
    set(Layer::Ipv4, four);
    set(Layer::Ipv6, six);
    set(Layer::Ports, plain);
    set(Layer::Tcp, plain.and(tcp));
    set(Layer::TcpWhole, plain.and(tcp));
    set(Layer::Udp, plain.minus(tcp));
    layers.proto_known = plain;
    layers.plain = PlainFrames { four, six, l3 };
    plain
}
