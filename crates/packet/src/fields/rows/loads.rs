//! Readers of bytes at fixed places: where all wanted rows are plain IPv4 packets these are the
//! same places in all, and the loop holds a load and little else.

use super::{Rows, be32};
use crate::bits::Bits;
use crate::column::Column;
use crate::ipv4;
use crate::limits::BATCH;
use crate::walk::Layer;
use weir_base::address::{V4, words_of_v6};

/// Where plain IPv4 packets start, and behind how many bytes their IP header.
struct Starts<'a> {
    offsets: &'a [u32],
    l3: usize,
}

impl Starts<'_> {
    /// Behind how many bytes the transport header starts.
    fn l4(&self) -> usize {
        self.l3 + ipv4::HEADER_LEN
    }
}

impl Rows<'_> {
    /// Sets the rows `have` of a word column, all of them IP packets: to what `f` makes of the
    /// bytes `at` from the start of the IP header, of IPv4 or of IPv6.
    #[inline(always)]
    pub(crate) fn ip_loads<const N: usize>(
        &self,
        out: &mut Column,
        have: Bits,
        at: [usize; 2],
        f: impl Fn([u8; N]) -> u64,
    ) {
        if let Some(starts) = self.starts4(have) {
            self.provide(out, have);
            self.load_all(&starts, starts.l3 + at[0], out.word_mut(), f);
            return;
        }
        self.ip_words(out, have, |i, six| f(self.load(i, self.l3(i) + at[usize::from(six)])));
    }

    /// Sets the rows `have` of a word column to what `f` makes of the bytes `at` from the start of
    /// the transport header.
    #[inline(always)]
    pub(crate) fn loads<const N: usize>(
        &self,
        out: &mut Column,
        have: Bits,
        at: usize,
        f: impl Fn([u8; N]) -> u64,
    ) {
        if let Some(starts) = self.starts4(have) {
            self.provide(out, have);
            self.load_all(&starts, starts.l4() + at, out.word_mut(), f);
            return;
        }
        self.words(out, have, |i| f(self.load(i, self.l4(i) + at)));
    }

    /// Sets the rows of an address column that are IP packets: to the addresses `at` bytes from the
    /// start of the IP header, of IPv4 or of IPv6.
    #[inline(always)]
    pub(crate) fn ip_addresses(&self, out: &mut Column, at: [usize; 2]) {
        let have = self.ip();
        if let Some(starts) = self.starts4(have) {
            self.provide(out, have);
            let (hi, lo) = out.pair_mut();
            hi[..starts.offsets.len()].fill(0);
            self.load_all(&starts, starts.l3 + at[0], lo, |address| V4 | be32(address));
            return;
        }
        let have = self.provide(out, have);
        let (hi, lo) = out.pair_mut();
        // Hardly any IPv6 address begins with 64 zeros, so that its number is its bytes.
        let mut is_rare = false;
        self.each_ip(have, |i, six| {
            let at = self.l3(i) + at[usize::from(six)];
            (hi[i], lo[i]) = match six {
                true => (self.be64(i, at), self.be64(i, at + 8)),
                false => (0, V4 | self.be32(i, at)),
            };
            is_rare |= six & (hi[i] == 0);
        });
        if is_rare {
            let six = have.and(self.has(Layer::Ipv6));
            six.each(|i| (hi[i], lo[i]) = words_of_v6(hi[i], lo[i]));
        }
    }

    /// Sets the rows `have` of a boolean column to what `f` makes of the bytes `at` from the start
    /// of the transport header.
    #[inline(always)]
    pub(crate) fn bit_loads<const N: usize>(
        &self,
        out: &mut Column,
        have: Bits,
        at: usize,
        f: impl Fn([u8; N]) -> bool,
    ) {
        let Some(starts) = self.starts4(have) else {
            return self.bits(out, have, |i| f(self.load(i, self.l4(i) + at)));
        };
        let mut truth = Bits::NONE;
        for (word, some) in truth.0.iter_mut().zip(starts.offsets.chunks(64)) {
            for (bit, &start) in some.iter().enumerate() {
                *word |= u64::from(f(self.bytes_at(start as usize + starts.l4() + at))) << bit;
            }
        }
        self.truth(out, have.and(self.wanted), truth);
    }

    /// Sets the first words to what `f` makes of the bytes `at` from the start of each frame.
    #[inline(always)]
    fn load_all<const N: usize>(
        &self,
        starts: &Starts<'_>,
        at: usize,
        words: &mut [u64; BATCH],
        f: impl Fn([u8; N]) -> u64,
    ) {
        for (word, &start) in words.iter_mut().zip(starts.offsets) {
            *word = f(self.bytes_at(start as usize + at));
        }
    }

    /// Where the wanted rows start, if one loop over all of them is best and they are plain IPv4
    /// packets, whose headers all stand at the same places.
    #[inline(always)]
    fn starts4(&self, have: Bits) -> Option<Starts<'_>> {
        let n = self.prefix(have.and(self.wanted))?;
        let plain = &self.layers.plain;
        let (offsets, l3) = (&self.offsets[..n], usize::from(plain.l3));
        self.wanted.minus(plain.four).is_empty().then_some(Starts { offsets, l3 })
    }
}

#[cfg(test)]
mod tests {
    use crate::bits::Bits;
    use crate::column::Column;
    use crate::craft::{Frame, batch};
    use crate::fields::FieldId;
    use crate::read::read_field;
    use crate::source::LinkType;
    use crate::tcp;
    use crate::walk::{Layers, classify};

    const FIELDS: [FieldId; 9] = [
        FieldId::named("tcp.flags"),
        FieldId::named("tcp.syn"),
        FieldId::named("tcp.ack"),
        FieldId::named("tcp.seq"),
        FieldId::named("sport"),
        FieldId::named("dport"),
        FieldId::named("ip.src"),
        FieldId::named("ip.dst"),
        FieldId::named("ip.ttl"),
    ];

    /// Every third is UDP, the others TCP of different flags.
    fn frames(n: usize, vlan: bool, six_last: bool) -> Vec<(Vec<u8>, u32)> {
        let frame = |i: usize| {
            let frame = Frame::ethernet();
            let frame = if vlan { frame.vlan(1) } else { frame };
            let (a, b) = ([10, 0, i as u8, 1], [10, 1, 0, i as u8]);
            let frame = match six_last && i + 1 == n {
                true => frame.ipv6([0x20; 16], [0x21; 16]),
                false => frame.ipv4(a, b),
            };
            let frame = frame.ttl(i as u8);
            let bytes = match i % 3 {
                0 => frame.udp(i as u16, 53).bytes(),
                _ => frame.tcp(i as u16, 80).flags([tcp::SYN, tcp::ACK][i / 3 % 2]).bytes(),
            };
            let len = bytes.len() as u32;
            (bytes, len)
        };
        // Memory goes on behind the frames, or the last would not be plain.
        (0..n).map(frame).chain([(vec![0; 100], 100)]).collect()
    }

    /// Each value, or that there is none, read with these rows wanted; others stay as they are.
    fn values(id: FieldId, frames: &[(Vec<u8>, u32)], rows: Bits) -> Vec<Option<u128>> {
        let (frames, mut layers) = (batch(LinkType::ETHERNET, frames), Layers::new());
        classify(&frames, &mut layers);
        let mut column = Column::new(id.info().ty.repr());
        (0..crate::limits::BATCH).for_each(|i| column.set_raw(i, 1));
        read_field(id, &frames, &layers, rows, &mut column);
        let others = Bits::ALL.minus(rows);
        others.each(|i| assert!(column.present.has(i) && column.raw(i) == 1, "{} {i}", id.name()));
        rows.iter().map(|i| column.present.has(i).then(|| column.raw(i))).collect()
    }

    #[test]
    fn one_by_one_or_together() {
        for n in [1, 2, 63, 64, 65, 129, 255] {
            for (vlan, six_last) in [(false, false), (true, false), (false, true)] {
                let frames = frames(n, vlan, six_last);
                for id in FIELDS {
                    let name = id.name();
                    let one = |i| values(id, &frames, Bits::range(i, i + 1))[0];
                    let each: Vec<_> = (0..n).map(one).collect();
                    assert_eq!(values(id, &frames, Bits::first(n)), each, "{name} of {n}");
                    let most = values(id, &frames, Bits::first(n - 1));
                    assert_eq!(most, each[..n - 1], "{name} of {n}");
                    let rest = values(id, &frames, Bits::range(1, n));
                    assert_eq!(rest, each[1..], "{name} of {n}");
                    let of_tcp = matches!(&*name, "tcp.flags" | "tcp.syn" | "tcp.seq");
                    let absent = (0..n).filter(|&i| each[i].is_none());
                    let expected = if of_tcp { n.div_ceil(3) } else { 0 };
                    assert!(name == "tcp.ack" || absent.count() == expected, "{name} of {n}");
                }
            }
        }
    }
}
