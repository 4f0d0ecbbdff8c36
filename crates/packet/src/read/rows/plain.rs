//! Readers of bytes at fixed places: where all wanted rows are plain IPv4 packets these are the same
//! places in all, and the loop holds a load and little else.

use super::{MAPPED, Rows};
use crate::bits::Bits;
use crate::column::Column;
use crate::ipv4;
use crate::walk::Layer;

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
    /// Sets the rows `have` of a word column, all of them IP packets: to what `f` makes of the bytes
    /// `at` from the start of the IP header, of IPv4 or of IPv6.
    #[inline(always)]
    pub(in crate::read) fn ip_loads<const N: usize>(
        &self,
        out: &mut Column,
        have: Bits,
        at: [usize; 2],
        f: impl Fn([u8; N]) -> u64,
    ) -> bool {
        if let Some(starts) = self.plain4(have) {
            self.provide(out, have);
            let words = out.word_mut().iter_mut();
            words.zip(starts.offsets).for_each(|(word, &start)| {
                *word = f(self.bytes_at(start as usize + starts.l3 + at[0]));
            });
            return true;
        }
        self.ip_words(out, have, |i, six| f(self.load(i, self.l3(i) + at[usize::from(six)])))
    }

    /// Sets the rows `have` of a word column to what `f` makes of the bytes `at` from the start of
    /// the transport header.
    #[inline(always)]
    pub(in crate::read) fn loads<const N: usize>(
        &self,
        out: &mut Column,
        have: Bits,
        at: usize,
        f: impl Fn([u8; N]) -> u64,
    ) -> bool {
        if let Some(starts) = self.plain4(have) {
            self.provide(out, have);
            let words = out.word_mut().iter_mut();
            words.zip(starts.offsets).for_each(|(word, &start)| {
                *word = f(self.bytes_at(start as usize + starts.l4() + at));
            });
            return true;
        }
        self.words(out, have, |i| f(self.load(i, self.l4(i) + at)))
    }

    /// Sets the rows of an address column that are IP packets: to the addresses `at` bytes from the
    /// start of the IP header, of IPv4 or of IPv6.
    #[inline(always)]
    pub(in crate::read) fn ip_addresses(&self, out: &mut Column, at: [usize; 2]) -> bool {
        let have = self.has(Layer::Ipv4).or(self.has(Layer::Ipv6));
        if let Some(starts) = self.plain4(have) {
            self.provide(out, have);
            let (hi, lo) = out.pair_mut();
            hi[..starts.offsets.len()].fill(0);
            lo.iter_mut().zip(starts.offsets).for_each(|(word, &start)| {
                let address = self.bytes_at(start as usize + starts.l3 + at[0]);
                *word = MAPPED | u64::from(u32::from_be_bytes(address));
            });
            return true;
        }
        self.ip_pairs(out, |i, six| self.address(i, six, at))
    }

    /// Sets the rows `have` of a boolean column to what `f` makes of the bytes `at` from the start
    /// of the transport header.
    #[inline(always)]
    pub(in crate::read) fn loads_bits<const N: usize>(
        &self,
        out: &mut Column,
        have: Bits,
        at: usize,
        f: impl Fn([u8; N]) -> bool,
    ) -> bool {
        let Some(starts) = self.plain4(have) else {
            return self.bits(out, have, |i| f(self.load(i, self.l4(i) + at)));
        };
        let mut truth = Bits::NONE;
        for (word, some) in truth.0.iter_mut().zip(starts.offsets.chunks(64)) {
            for (bit, &start) in some.iter().enumerate() {
                *word |= u64::from(f(self.bytes_at(start as usize + starts.l4() + at))) << bit;
            }
        }
        self.truth(out, have.and(self.wanted), truth)
    }

    /// Where the wanted rows start, if a plain loop over them is best and all of them are plain IPv4
    /// packets, whose headers all stand at the same places.
    #[inline(always)]
    fn plain4(&self, have: Bits) -> Option<Starts<'_>> {
        let n = self.prefix(have.and(self.wanted))?;
        let plain = &self.layers.plain;
        let (offsets, l3) = (&self.offsets[..n], usize::from(plain.l3));
        self.wanted.minus(plain.four).is_empty().then_some(Starts { offsets, l3 })
    }
}
