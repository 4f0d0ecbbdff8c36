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
use crate::processor::wide;
use crate::source::FrameBatch;
use crate::{ethernet, ipv4, ipv6, tcp, udp};

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
                heads.look(&V4::<L3>::FORM, &caplens[lanes.clone()], &lens[lanes.clone()]);
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
    layers.plain = Plain { four: plain4, six: plain6, l3: L3 as u8 };
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

/// Frames that are looked at together.
pub(crate) const HEADS: usize = 32;

/// What a look at frames goes by, as it stands in them: one plane for each four bytes, so that the
/// loop over them takes several frames with an instruction. The numbers are little-endian on every
/// machine.
pub(crate) struct Heads {
    /// What the IP header begins with, and what announces it.
    start: [u32; HEADS],
    /// The length of the packet, high byte first, in the lower half.
    length: [u32; HEADS],
    /// The flags and the offset of a fragment in the lower half; the protocol in the highest byte.
    protocol: [u32; HEADS],
    /// The length of a UDP datagram, high byte first, in the upper half.
    datagram: [u32; HEADS],
    /// The data offset of TCP in the upper half of the third byte.
    offset: [u32; HEADS],
    /// What the last look showed.
    pub(crate) looks: [Look; HEADS],
}

/// What the heads of a family's plain packets look like.
struct Form {
    /// Bits of the start that count, and what they are to be.
    mask: u32,
    start: u32,
    /// Bytes of the IP header that the packet's length counts.
    counted: i32,
    /// Bytes before what the packet's length counts.
    before: i32,
    /// Bytes before the transport header.
    l4: i32,
}

/// A start that is never as it should be.
const WRONG: u32 = u32::MAX;
/// The first byte of an IPv4 header of five words.
const USUAL: u8 = 0x45;

/// IPv4 that starts at `L3`.
struct V4<const L3: usize>;

impl<const L3: usize> V4<L3> {
    /// The first byte of the header; the EtherType where it stands right before.
    const FORM: Form = Form {
        mask: 0x00ff_ffff,
        start: u32::from_le_bytes([8, 0, USUAL, 0]),
        counted: ipv4::HEADER_LEN as i32,
        before: L3 as i32,
        l4: (L3 + ipv4::HEADER_LEN) as i32,
    };
}

/// IPv6 that starts at `L3`.
struct V6<const L3: usize>;

impl<const L3: usize> V6<L3> {
    const FORM: Form = Form {
        mask: 0xf0,
        start: 0x60,
        counted: 0,
        before: (L3 + ipv6::HEADER_LEN) as i32,
        l4: (L3 + ipv6::HEADER_LEN) as i32,
    };
}

impl Heads {
    pub(crate) fn new() -> Heads {
        let none = [0; HEADS];
        Heads {
            start: none,
            length: none,
            protocol: none,
            datagram: none,
            offset: none,
            looks: [Look::NONE; HEADS],
        }
    }

    /// Lane `i` holds a frame that is not plain.
    fn put_none(&mut self, i: usize) {
        self.start[i] = WRONG;
    }

    /// Lane `i` holds a frame with an Ethernet header and no tag.
    #[inline(always)]
    pub(crate) fn put_ethernet(&mut self, i: usize, w: &Window) {
        self.put_ipv4::<{ ethernet::HEADER_LEN }>(i, w, four(w, ethernet::HEADER_LEN - 2));
    }

    /// Lane `i` holds a frame whose IP header starts at `L3`, `announced` if as IPv4.
    #[inline(always)]
    fn put4<const L3: usize>(&mut self, i: usize, w: &Window, announced: bool) {
        let start = u32::from_le_bytes([8, 0, w[L3], 0]);
        self.put_ipv4::<L3>(i, w, if announced { start } else { WRONG });
    }

    #[inline(always)]
    fn put_ipv4<const L3: usize>(&mut self, i: usize, w: &Window, start: u32) {
        self.start[i] = start;
        self.length[i] = four(w, L3 + ipv4::TOTAL_LENGTH);
        self.protocol[i] = four(w, L3 + ipv4::FRAGMENT);
        self.put_transport(i, w, L3 + ipv4::HEADER_LEN);
    }

    /// Lane `i` holds a frame whose IP header starts at `L3`, `announced` if as IPv6.
    #[inline(always)]
    fn put6<const L3: usize>(&mut self, i: usize, w: &Window, announced: bool) {
        self.start[i] = if announced { u32::from(w[L3]) } else { WRONG };
        // The next header is the third byte of the four. There are no fragments.
        let word = four(w, L3 + ipv6::PAYLOAD_LENGTH);
        self.length[i] = word;
        self.protocol[i] = word << 8 & 0xff00_0000;
        self.put_transport(i, w, L3 + ipv6::HEADER_LEN);
    }

    #[inline(always)]
    fn put_transport(&mut self, i: usize, w: &Window, l4: usize) {
        self.datagram[i] = four(w, l4 + udp::LENGTH - 2);
        self.offset[i] = four(w, l4 + tcp::DATA_OFFSET - 2);
    }

    /// Looks at the first frames, of so many captured bytes and such lengths on the wire: TCP or
    /// UDP, no fragment, lengths that agree, and enough captured.
    fn look(&mut self, form: &Form, caplens: &[u32], lens: &[u32]) {
        match (caplens.first_chunk(), lens.first_chunk()) {
            (Some(caplens), Some(lens)) => self.look_at_all(form, caplens, lens),
            _ => {
                let (mut all_caplens, mut all_lens) = ([0; HEADS], [0; HEADS]);
                all_caplens[..caplens.len()].copy_from_slice(caplens);
                all_lens[..lens.len()].copy_from_slice(lens);
                self.look_at_all(form, &all_caplens, &all_lens);
            }
        }
    }

    /// The same of Ethernet frames without a tag.
    pub(crate) fn look_ethernet(&mut self, caplens: &[u32], lens: &[u32]) {
        self.look(&V4::<{ ethernet::HEADER_LEN }>::FORM, caplens, lens);
    }

    fn look_at_all(&mut self, form: &Form, caplens: &[u32; HEADS], lens: &[u32; HEADS]) {
        wide(
            #[inline(always)]
            || self.look_at_each(form, caplens, lens),
        );
    }

    /// Nothing is branched on, and every number has 32 bits: several frames at once. A frame whose
    /// length says more than 2 GiB does not pass for plain.
    #[inline(always)]
    fn look_at_each(&mut self, form: &Form, caplens: &[u32; HEADS], lens: &[u32; HEADS]) {
        const FRAGMENT: u32 = (ipv4::MORE_FRAGMENTS | ipv4::OFFSET_BITS).swap_bytes() as u32;
        let all = |condition: bool| u32::from(condition).wrapping_neg();
        for i in 0..HEADS {
            let protocol = self.protocol[i] >> 24;
            let is_tcp = all(protocol == u32::from(tcp::PROTOCOL));
            let is_udp = all(protocol == u32::from(udp::PROTOCOL));
            let differs = (self.start[i] & form.mask ^ form.start)
                | self.protocol[i] & FRAGMENT
                | !(is_tcp | is_udp);
            let ip_len = (self.length[i] << 8 & 0xff00 | self.length[i] >> 8 & 0xff) as i32;
            // The packet must have room for TCP's header, and for all of a UDP datagram.
            let tcp_claims = self.offset[i] >> 18 & 0x3c;
            let udp_claims = self.datagram[i] >> 8 & 0xff00 | self.datagram[i] >> 24;
            let claimed = (tcp_claims & is_tcp | udp_claims & is_udp) as i32;
            let least = (tcp::HEADER_LEN as u32 & is_tcp | udp::HEADER_LEN as u32 & is_udp) as i32;
            // Each is negative where something is too short, and so is the union.
            let room = (claimed - least)
                | (ip_len - form.counted - claimed)
                | (lens[i] as i32).wrapping_sub(form.before + ip_len)
                | (caplens[i] as i32).wrapping_sub(form.l4 + least);
            let plain = all(differs | (room >> 31) as u32 == 0);
            let tcp = u32::from(Look::TCP) & is_tcp;
            self.looks[i] = Look((plain & (u32::from(Look::PLAIN) | tcp)) as u8);
        }
    }
}

/// Frames that may be plain TCP or UDP over IPv6, gathered from a batch.
struct Six {
    heads: Heads,
    /// Which frames of the batch they are.
    rows: [u8; HEADS],
    caplens: [u32; HEADS],
    lens: [u32; HEADS],
    len: usize,
}

impl Six {
    fn new() -> Six {
        let none = [0; HEADS];
        Six { heads: Heads::new(), rows: [0; HEADS], caplens: none, lens: none, len: 0 }
    }

    fn is_full(&self) -> bool {
        self.len == HEADS
    }

    #[inline(always)]
    fn put<const L3: usize>(
        &mut self,
        row: usize,
        w: &Window,
        announced: bool,
        caplen: u32,
        len: u32,
    ) {
        let i = self.len % HEADS;
        self.heads.put6::<L3>(i, w, announced);
        (self.rows[i], self.caplens[i], self.lens[i]) = (row as u8, caplen, len);
        self.len = i + 1;
    }

    /// Looks at them, notes for each row what that showed, its protocol and where its transport
    /// header starts, and forgets them.
    fn drain<const L3: usize>(&mut self, looks: &mut [Look; BATCH], layers: &mut Layers) {
        self.heads.look_at_all(&V6::<L3>::FORM, &self.caplens, &self.lens);
        for (&row, &look) in self.rows.iter().zip(&self.heads.looks).take(self.len) {
            let row = usize::from(row);
            (looks[row], layers.proto[row]) = (look, look.proto());
            layers.l4[row] = (L3 + ipv6::HEADER_LEN) as u16;
        }
        self.len = 0;
    }
}

#[inline(always)]
fn four(w: &Window, at: usize) -> u32 {
    u32::from_le_bytes([w[at], w[at + 1], w[at + 2], w[at + 3]])
}
