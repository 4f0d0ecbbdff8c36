//! The rows that a reader works on: loads that can't fail, and the loops over rows.

mod loads;

use crate::bits::Bits;
use crate::column::Column;
use crate::limits::BATCH;
use crate::source::FrameBatch;
use crate::tcp::Tcp;
use crate::text::Text;
use crate::udp::Udp;
use crate::walk::{Layer, Layers};
use crate::{ipv4, ipv6};
use weir_base::address::{V4, words_of_v6};

/// A batch, its layers, and the rows that are wanted of it.
pub(crate) struct Rows<'a> {
    pub(crate) frames: &'a FrameBatch,
    pub(crate) layers: &'a Layers,
    bytes: &'a [u8],
    offsets: &'a [u32],
    l3: &'a [u16; BATCH],
    l4: &'a [u16; BATCH],
    /// The wanted rows, all of them frames of the batch.
    wanted: Bits,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(frames: &'a FrameBatch, layers: &'a Layers, rows: Bits) -> Rows<'a> {
        let wanted = rows.and(Bits::first(frames.len()));
        let (bytes, offsets) = (frames.bytes(), frames.offsets());
        Rows { frames, layers, bytes, offsets, l3: &layers.l3, l4: &layers.l4, wanted }
    }

    /// The wanted rows.
    pub(crate) fn wanted(&self) -> Bits {
        self.wanted
    }

    /// The wanted rows that have a layer.
    #[inline(always)]
    pub(crate) fn has(&self, layer: Layer) -> Bits {
        self.layers.has(layer).and(self.wanted)
    }

    /// The wanted rows that are IP packets.
    #[inline(always)]
    pub(crate) fn ip(&self) -> Bits {
        self.has(Layer::Ipv4).or(self.has(Layer::Ipv6))
    }

    /// The wanted rows that are later fragments whose ports are known all the same.
    pub(crate) fn late(&self) -> Bits {
        self.frames.with_ports().and(self.wanted).minus(self.layers.has(Layer::Ports))
    }

    /// `N` bytes of row `i`, `at` bytes from the start of the frame: zeros where the chunk has no
    /// such bytes. The bytes count only if the row has the layer that starts there.
    #[inline(always)]
    pub(crate) fn load<const N: usize>(&self, i: usize, at: usize) -> [u8; N] {
        self.bytes_at(self.offsets[i] as usize + at)
    }

    #[inline(always)]
    fn bytes_at<const N: usize>(&self, start: usize) -> [u8; N] {
        match self.bytes.get(start..start + N).and_then(|b| b.first_chunk()) {
            Some(bytes) => *bytes,
            None => [0; N],
        }
    }

    #[inline(always)]
    pub(crate) fn be16(&self, i: usize, at: usize) -> u64 {
        be16(self.load(i, at))
    }

    #[inline(always)]
    pub(crate) fn be32(&self, i: usize, at: usize) -> u64 {
        be32(self.load(i, at))
    }

    #[inline(always)]
    pub(crate) fn be64(&self, i: usize, at: usize) -> u64 {
        u64::from_be_bytes(self.load(i, at))
    }

    /// The link address `at` bytes from the start of row `i`, which has two bytes or more after it.
    #[inline(always)]
    pub(crate) fn mac(&self, i: usize, at: usize) -> u64 {
        self.be64(i, at) >> 16
    }

    /// Start of the ARP or IP header of row `i`.
    #[inline(always)]
    pub(crate) fn l3(&self, i: usize) -> usize {
        self.l3[i].into()
    }

    /// Start of the transport header of row `i`.
    #[inline(always)]
    pub(crate) fn l4(&self, i: usize) -> usize {
        self.l4[i].into()
    }

    /// Length of the IP packet of row `i`, from its header; if that leaves it open, to where the
    /// walk found its end.
    #[inline(always)]
    pub(crate) fn ip_len(&self, i: usize, six: bool) -> u64 {
        let l3 = self.l3(i);
        let (len, open) = if six {
            let word = self.be32(i, l3 + ipv6::PAYLOAD_LENGTH);
            let (payload, next) = (word >> 16, (word >> 8) as u8);
            (payload + ipv6::HEADER_LEN as u64, payload == 0 && next != ipv6::NO_NEXT_HEADER)
        } else {
            let total = self.be16(i, l3 + ipv4::TOTAL_LENGTH);
            (total, total == 0)
        };
        if open { self.open_len(i) } else { len }
    }

    /// Length of the IP packet of row `i`, which is not plain: no packet of open length is.
    #[cold]
    #[inline(never)]
    fn open_len(&self, i: usize) -> u64 {
        u64::from(self.layers.below[i].end).saturating_sub(self.l3(i) as u64)
    }

    /// The rows of `doubtful` of which the bytes `at..at + n` of the transport header were
    /// captured and belong to the packet, not to padding after it.
    #[cold]
    #[inline(never)]
    pub(crate) fn reach(&self, doubtful: Bits, at: usize, n: usize) -> Bits {
        let reaches =
            |&i: &usize| self.l4(i) + at + n <= self.packet_end(i).min(self.frames.frame(i).len());
        doubtful.iter().filter(reaches).collect()
    }

    /// The captured bytes of the IP packet of row `i` from the transport header on, without what
    /// follows the packet.
    pub(crate) fn body(&self, i: usize) -> &'a [u8] {
        let frame = self.frames.frame(i);
        frame.get(self.l4(i)..self.packet_end(i).min(frame.len())).unwrap_or(&[])
    }

    /// The payload of row `i`, which has a whole TCP header.
    pub(crate) fn tcp_payload(&self, i: usize) -> &'a [u8] {
        Tcp::new(self.body(i)).map_or(&[], |tcp| tcp.payload())
    }

    /// The payload of row `i`, which has a UDP header.
    pub(crate) fn udp_payload(&self, i: usize) -> &'a [u8] {
        Udp::new(self.body(i)).map_or(&[], |udp| udp.payload())
    }

    /// Where the IP packet of row `i` ends on the wire, counted from the start of the frame: never
    /// after the end of the layer that carries it.
    pub(crate) fn packet_end(&self, i: usize) -> usize {
        let plain = self.layers.plain;
        match plain.four.or(plain.six).has(i) {
            true => self.l3(i) + self.ip_len(i, plain.six.has(i)) as usize,
            false => self.layers.below[i].end as usize,
        }
    }

    /// The wanted rows that have a layer, and one of these ports at either end.
    pub(crate) fn on_ports(&self, layer: Layer, ports: &[u16]) -> Bits {
        let on = |&i: &usize| {
            let both = self.be32(i, self.l4(i));
            ports.iter().any(|&port| both >> 16 == port.into() || both & 0xffff == port.into())
        };
        self.has(layer).iter().filter(on).collect()
    }

    /// Sets the rows among `have` of a word column for which there is a value.
    pub(crate) fn some_words(
        &self,
        out: &mut Column,
        have: Bits,
        mut f: impl FnMut(usize) -> Option<u64>,
    ) {
        let words = out.word_mut();
        let mut found = Bits::NONE;
        have.and(self.wanted).each(|i| {
            if let Some(word) = f(i) {
                words[i] = word;
                found.set(i);
            }
        });
        out.present = out.present.or(found);
    }

    /// Sets the rows among `have` of an address column for which there is an address.
    pub(crate) fn some_pairs(
        &self,
        out: &mut Column,
        have: Bits,
        f: impl Fn(usize) -> Option<u128>,
    ) {
        let mut found = Bits::NONE;
        let (hi, lo) = out.pair_mut();
        have.and(self.wanted).each(|i| {
            if let Some(address) = f(i) {
                (hi[i], lo[i]) = ((address >> 64) as u64, address as u64);
                found.set(i);
            }
        });
        out.present = out.present.or(found);
    }

    /// The same with IPv4 addresses.
    pub(crate) fn some_v4(&self, out: &mut Column, have: Bits, f: impl Fn(usize) -> Option<u32>) {
        self.some_pairs(out, have, |i| Some(u128::from(V4 | u64::from(f(i)?))));
    }

    /// Sets the rows among `have` of a boolean column for which there is a truth.
    pub(crate) fn some_bits(
        &self,
        out: &mut Column,
        have: Bits,
        f: impl Fn(usize) -> Option<bool>,
    ) {
        let (mut found, mut truth) = (Bits::NONE, Bits::NONE);
        have.and(self.wanted).each(|i| {
            if let Some(holds) = f(i) {
                found.set(i);
                truth.put(i, holds);
            }
        });
        self.truth(out, found, truth);
    }

    /// Sets the rows among `have` of a text column for which `write` writes a text: to what `put`
    /// makes of it.
    pub(crate) fn texts(
        &self,
        out: &mut Column,
        have: Bits,
        put: &mut impl FnMut(&[u8]) -> u64,
        write: impl Fn(usize, &mut Text) -> bool,
    ) {
        let have = have.and(self.wanted);
        if have.is_empty() {
            return;
        }
        let mut text = Text::new();
        self.some_words(out, have, |i| {
            text.clear();
            write(i, &mut text).then(|| put(text.bytes()))
        });
    }

    /// Sets the rows `have` of a word column.
    #[inline(always)]
    pub(crate) fn words(&self, out: &mut Column, have: Bits, f: impl Fn(usize) -> u64) {
        let have = self.provide(out, have);
        let words = out.word_mut();
        self.each(have, |i| words[i] = f(i));
    }

    /// Sets the rows `have` of a word column and touches no other.
    pub(crate) fn few(&self, out: &mut Column, have: Bits, f: impl Fn(usize) -> u64) {
        let have = self.provide(out, have);
        let words = out.word_mut();
        have.each(|i| words[i] = f(i));
    }

    /// Sets all wanted rows of a word column from what the batch has of each frame.
    #[inline(always)]
    pub(crate) fn all<T>(&self, out: &mut Column, from: &[T], f: impl Fn(&T) -> u64) {
        let have = self.provide(out, Bits::ALL);
        let words = out.word_mut();
        if let Some(n) = self.prefix(have) {
            // A loop over slices is one that the compiler makes vectors of.
            words.iter_mut().zip(&from[..n]).for_each(|(word, from)| *word = f(from));
        } else {
            have.each(|i| words[i] = f(&from[i]));
        }
    }

    /// Sets the rows `have` of a boolean column to whether they are in `truth`.
    pub(crate) fn truth(&self, out: &mut Column, have: Bits, truth: Bits) {
        let have = self.provide(out, have);
        out.truth = out.truth.minus(have).or(truth.and(have));
    }

    /// Sets the rows `have` of a boolean column.
    #[inline(always)]
    pub(crate) fn bits(&self, out: &mut Column, have: Bits, f: impl Fn(usize) -> bool) {
        let have = have.and(self.wanted);
        let mut truth = Bits::NONE;
        if let Some(n) = self.prefix(have) {
            for start in (0..n).step_by(64) {
                let end = n.min(start + 64);
                let mut word = 0;
                for i in start..end {
                    word = word >> 1 | u64::from(f(i)) << 63;
                }
                truth.0[start / 64] = word >> (start + 64 - end);
            }
        } else {
            let (list, n) = list(have);
            for &i in &list[..n] {
                truth.put(usize::from(i), f(usize::from(i)));
            }
        }
        self.truth(out, have, truth);
    }

    /// Sets the rows `have` of a word column, all of them IP packets; `f` is told whether the row
    /// is IPv6.
    #[inline(always)]
    pub(crate) fn ip_words(&self, out: &mut Column, have: Bits, f: impl Fn(usize, bool) -> u64) {
        let have = self.provide(out, have);
        let words = out.word_mut();
        self.each_ip(have, |i, six| words[i] = f(i, six));
    }

    /// The high and the low word of the address `at` bytes from the start of the IP header of row
    /// `i`, of IPv4 or of IPv6.
    #[inline(always)]
    pub(crate) fn address(&self, i: usize, six: bool, at: [usize; 2]) -> (u64, u64) {
        let at = self.l3(i) + at[usize::from(six)];
        if six { self.v6(i, at) } else { (0, V4 | self.be32(i, at)) }
    }

    /// The high and the low word of the number of the IPv6 address at byte `at` of row `i`.
    #[inline(always)]
    pub(crate) fn v6(&self, i: usize, at: usize) -> (u64, u64) {
        words_of_v6(self.be64(i, at), self.be64(i, at + 8))
    }

    /// Sets the rows of an address column that are IP packets: `f` gives the high and the low word.
    #[inline(always)]
    pub(crate) fn ip_pairs(&self, out: &mut Column, f: impl Fn(usize, bool) -> (u64, u64)) {
        let have = self.provide(out, self.has(Layer::Ipv4).or(self.has(Layer::Ipv6)));
        let (hi, lo) = out.pair_mut();
        self.each_ip(have, |i, six| (hi[i], lo[i]) = f(i, six));
    }

    /// Sets the rows `have` of an address column and touches no other: `f` gives the high and the
    /// low word.
    pub(crate) fn pairs(&self, out: &mut Column, have: Bits, f: impl Fn(usize) -> (u64, u64)) {
        let have = self.provide(out, have);
        let (hi, lo) = out.pair_mut();
        have.each(|i| (hi[i], lo[i]) = f(i));
    }

    /// Sets the rows `have` of an address column to the IPv4 addresses that `f` gives.
    #[inline(always)]
    pub(crate) fn v4_pairs(&self, out: &mut Column, have: Bits, f: impl Fn(usize) -> u64) {
        let have = self.provide(out, have);
        let (hi, lo) = out.pair_mut();
        self.each(have, |i| (hi[i], lo[i]) = (0, V4 | f(i)));
    }

    /// Marks the wanted ones of the rows `have` present.
    #[inline(always)]
    fn provide(&self, out: &mut Column, have: Bits) -> Bits {
        let have = have.and(self.wanted);
        out.present = out.present.or(have);
        have
    }

    /// `n` if the wanted rows are `0..n` and most of them are in `have`: then a plain loop over
    /// all of them is faster than one that picks, and what it leaves in the others is unspecified.
    #[inline(always)]
    fn prefix(&self, have: Bits) -> Option<usize> {
        let n = self.wanted.count().min(BATCH);
        (self.wanted == Bits::first(n) && have.count() * 2 > n && n <= self.offsets.len())
            .then_some(n)
    }

    /// Calls `f` with the rows `have`, and where that is faster with other wanted rows too. `f` is
    /// called in two places only, so that it is compiled into both loops.
    #[inline(always)]
    fn each(&self, have: Bits, mut f: impl FnMut(usize)) {
        if let Some(n) = self.prefix(have) {
            for i in 0..n {
                f(i);
            }
        } else {
            let (list, n) = list(have);
            for &i in &list[..n] {
                f(usize::from(i));
            }
        }
    }

    /// The same for IP packets, with whether the row is IPv6: one family after the other. One call
    /// of `f` only, as these are larger.
    #[inline(always)]
    fn each_ip(&self, have: Bits, mut f: impl FnMut(usize, bool)) {
        let (four, six) = (have.and(self.has(Layer::Ipv4)), have.and(self.has(Layer::Ipv6)));
        let mut both = [0; BATCH];
        let (rows, fours) = match self.prefix(have) {
            Some(n) if six.is_empty() => (&IDENTITY[..n], n),
            Some(n) if four.is_empty() => (&IDENTITY[..n], 0),
            _ => {
                let (four_rows, fours) = list(four);
                let (six_rows, sixes) = list(six);
                both[..fours].copy_from_slice(&four_rows[..fours]);
                both[fours..fours + sixes].copy_from_slice(&six_rows[..sixes]);
                (&both[..fours + sixes], fours)
            }
        };
        for (k, &i) in rows.iter().enumerate() {
            f(usize::from(i), k >= fours);
        }
    }
}

/// Two bytes as a number, the high one first.
#[inline(always)]
pub(crate) fn be16(bytes: [u8; 2]) -> u64 {
    u16::from_be_bytes(bytes).into()
}

/// Four bytes as a number, the highest first.
#[inline(always)]
pub(crate) fn be32(bytes: [u8; 4]) -> u64 {
    u32::from_be_bytes(bytes).into()
}

/// All row numbers.
static IDENTITY: [u8; BATCH] = {
    let mut rows = [0; BATCH];
    let mut i = 0;
    while i < BATCH {
        rows[i] = i as u8;
        i += 1;
    }
    rows
};

/// The row numbers of a set, and how many they are.
fn list(rows: Bits) -> ([u8; BATCH], usize) {
    let (mut list, mut n) = ([0; BATCH], 0);
    rows.each(|i| {
        list[n] = i as u8;
        n += 1;
    });
    (list, n)
}
