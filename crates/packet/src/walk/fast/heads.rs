//! The heads of some frames side by side, and a look at all of them at once.

use crate::limits::BATCH;
use crate::processor::wide;
use crate::walk::layers::Layers;
use crate::walk::look::{Look, Window};
use crate::{ethernet, ipv4, ipv6, tcp, udp};

/// Frames that are looked at together.
pub(crate) const HEADS: usize = 32;

/// The bytes that a look at frames goes by, as they stand in the frames: one plane for each four
/// bytes, so that the loop over them takes several frames with an instruction. The numbers are
/// little-endian on every machine.
pub(crate) struct Heads {
    /// The start of the IP header, and the type that announces it.
    start: [u32; HEADS],
    /// The length of the packet, high byte first, in the lower half.
    length: [u32; HEADS],
    /// The flags and the offset of a fragment in the lower half; the protocol in the highest byte.
    protocol: [u32; HEADS],
    /// The length of a UDP datagram, high byte first, in the upper half.
    datagram: [u32; HEADS],
    /// The data offset of TCP in the upper half of the third byte.
    offset: [u32; HEADS],
    /// The results of the last look.
    pub(crate) looks: [Look; HEADS],
}

/// The form of the heads of a family's plain packets.
pub(super) struct Form {
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

impl Form {
    /// Of IPv4 that starts at `l3`: the first byte of the header, and the EtherType where that
    /// stands right before.
    pub(super) const fn ipv4(l3: usize) -> Form {
        Form {
            mask: 0x00ff_ffff,
            start: u32::from_le_bytes([8, 0, USUAL, 0]),
            counted: ipv4::HEADER_LEN as i32,
            before: l3 as i32,
            l4: (l3 + ipv4::HEADER_LEN) as i32,
        }
    }

    /// Of IPv6 that starts at `l3`.
    const fn ipv6(l3: usize) -> Form {
        let l4 = (l3 + ipv6::HEADER_LEN) as i32;
        Form { mask: 0xf0, start: 0x60, counted: 0, before: l4, l4 }
    }
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
    pub(super) fn put_none(&mut self, i: usize) {
        self.start[i] = WRONG;
    }

    /// Lane `i` holds a frame with an Ethernet header and no tag.
    #[inline(always)]
    pub(crate) fn put_ethernet(&mut self, i: usize, w: &Window) {
        const L3: usize = ethernet::HEADER_LEN;
        self.put_with_start::<L3>(i, w, four(w, L3 - 2));
    }

    /// Lane `i` holds a frame whose IP header starts at `L3`, `announced` if as IPv4.
    #[inline(always)]
    pub(super) fn put4<const L3: usize>(&mut self, i: usize, w: &Window, announced: bool) {
        let start = u32::from_le_bytes([8, 0, w[L3], 0]);
        self.put_with_start::<L3>(i, w, if announced { start } else { WRONG });
    }

    /// Lane `i` holds a frame whose IPv4 header starts at `L3`, and so.
    #[inline(always)]
    fn put_with_start<const L3: usize>(&mut self, i: usize, w: &Window, start: u32) {
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
    pub(super) fn look(&mut self, form: &Form, caplens: &[u32], lens: &[u32]) {
        match (caplens.first_chunk(), lens.first_chunk()) {
            (Some(caplens), Some(lens)) => self.look_at_lanes(form, caplens, lens),
            _ => {
                let (mut all_caplens, mut all_lens) = ([0; HEADS], [0; HEADS]);
                all_caplens[..caplens.len()].copy_from_slice(caplens);
                all_lens[..lens.len()].copy_from_slice(lens);
                self.look_at_lanes(form, &all_caplens, &all_lens);
            }
        }
    }

    /// The same of Ethernet frames without a tag.
    pub(crate) fn look_ethernet(&mut self, caplens: &[u32], lens: &[u32]) {
        self.look(&Form::ipv4(ethernet::HEADER_LEN), caplens, lens);
    }

    fn look_at_lanes(&mut self, form: &Form, caplens: &[u32; HEADS], lens: &[u32; HEADS]) {
        wide(
            #[inline(always)]
            || self.look_at_each(form, caplens, lens),
        );
    }

    /// Nothing is branched on, and every number has 32 bits: several frames at once. Frames whose
    /// lengths say 2 GiB or more may be left to the slow walk.
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
            self.looks[i] = Look::of_bits(plain & (u32::from(Look::PLAIN) | tcp));
        }
    }
}

/// Frames that may be plain TCP or UDP over IPv6, gathered from a batch.
pub(super) struct Six {
    heads: Heads,
    /// Which frames of the batch they are.
    rows: [u8; HEADS],
    caplens: [u32; HEADS],
    lens: [u32; HEADS],
    len: usize,
}

impl Six {
    pub(super) fn new() -> Six {
        let none = [0; HEADS];
        Six { heads: Heads::new(), rows: [0; HEADS], caplens: none, lens: none, len: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == HEADS
    }

    #[inline(always)]
    pub(super) fn put<const L3: usize>(
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
    pub(super) fn drain<const L3: usize>(
        &mut self,
        looks: &mut [Look; BATCH],
        layers: &mut Layers,
    ) {
        if self.len == 0 {
            return;
        }
        self.heads.look_at_lanes(&Form::ipv6(L3), &self.caplens, &self.lens);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The loop as it is compiled for any processor, and for this one.
        #[test]
        fn every_processor_sees_the_same(
            words in proptest::collection::vec(any::<[u32; 5]>(), HEADS),
            usual in any::<u32>(),
            lens in any::<[u32; HEADS]>(),
            caplens in proptest::array::uniform32(0u32..200),
            six in any::<bool>(),
        ) {
            let form = if six { Form::ipv6(14) } else { Form::ipv4(14) };
            let mut heads = Heads::new();
            for (i, [start, length, protocol, datagram, offset]) in words.into_iter().enumerate() {
                // Half of them begin as plain packets do, or none would pass for one.
                let begins = usual >> i & 1 != 0;
                heads.start[i] = if begins { form.start } else { start };
                heads.length[i] = if begins { 40 << 8 } else { length };
                let protocols = [tcp::PROTOCOL, udp::PROTOCOL].map(|p| u32::from(p) << 24);
                heads.protocol[i] =
                    if begins { protocols[usize::from(start & 1 != 0)] } else { protocol };
                heads.datagram[i] = if begins { 20 << 24 } else { datagram };
                heads.offset[i] = if begins { 0x50_0000 } else { offset };
            }
            let lens = lens.map(|len| if len & 1 == 0 { len % 200 } else { len });
            heads.look_at_each(&form, &caplens, &lens);
            let one_by_one = heads.looks;
            heads.looks = [Look::NONE; HEADS];
            heads.look_at_lanes(&form, &caplens, &lens);
            prop_assert_eq!(one_by_one, heads.looks);
        }
    }
}
