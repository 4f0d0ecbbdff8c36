//! Counting keys of one word by sorting them.
//!
//! Keys are only written down as they come, which misses no cache, and are counted when many have
//! gathered: sorted by radix, and merged into the counts so far. As many gather as there are
//! different keys by then, so that a key is merged a few times however many there are. The counts
//! are sorted by group and by value, as a reader wants them.

use crate::key::Layout;
use crate::radix::sort_words;

/// Keys that gather at least before they are counted: their sorting stays in the second cache.
const GATHER: usize = 1 << 16;

/// Bits of a group's number.
const GROUP: u32 = 32;

/// How the words of a layout become words whose high part is the group, and back.
#[derive(Clone, Copy)]
struct Shape {
    /// How far to turn a key left until its group stands on top.
    turn: u32,
    /// Bits below its value that are always zero.
    low: u32,
}

impl Shape {
    /// `None` where a key has more than one word, or the value stands on both sides of its group.
    fn of(layout: &Layout) -> Option<Shape> {
        let group = layout.parts() - 1;
        let shift = layout.place(group).0.shift;
        if layout.words != 1 || layout.text_parts().next().is_some() || !shift.is_multiple_of(GROUP)
        {
            return None;
        }
        let turn = GROUP - shift;
        let place = |p: usize| layout.place(p).0;
        let lowest = (0..group).flat_map(|p| {
            let present = place(p).present.map(|(_, bit)| bit);
            [Some(place(p).shift), present].into_iter().flatten()
        });
        let low = lowest.map(|bit| (bit + turn) % u64::BITS).min()?;
        Some(Shape { turn, low })
    }

    /// Bits of the value.
    fn width(self) -> u32 {
        GROUP - self.low
    }

    #[inline(always)]
    fn shaped(self, key: u64) -> u64 {
        let key = key.rotate_left(self.turn);
        key >> GROUP << self.width() | (key & u32::MAX as u64) >> self.low
    }

    #[inline(always)]
    fn key(self, shaped: u64) -> u64 {
        let value = shaped & ((1 << self.width()) - 1);
        (self.group(shaped) << GROUP | value << self.low).rotate_right(self.turn)
    }

    #[inline(always)]
    fn group(self, shaped: u64) -> u64 {
        shaped >> self.width()
    }
}

/// A key of the log, and how often it came.
pub(super) type Counted = (u64, u64);

/// Keys of one word, and how often each came.
pub(super) struct Log {
    shape: Shape,
    /// Most different keys.
    max: usize,
    /// Keys that were not counted yet, in the order that they came.
    seen: Vec<u64>,
    /// Keys that came from elsewhere with their counts, in no order.
    received: Vec<Counted>,
    /// Different keys in their order, with their counts.
    counts: Vec<Counted>,
    /// Times that a key found no room.
    refused: u64,
    /// Where in `counts` each group starts; one more for the end.
    starts: Vec<u32>,
    /// Scratch: memory to sort in, new counts, and memory to merge in.
    aside: Vec<u64>,
    new: Vec<Counted>,
    merged: Vec<Counted>,
}

impl Log {
    /// A log for keys of this layout, if they are of a kind that can be sorted so.
    pub(super) fn new(layout: &Layout, max: u64) -> Option<Log> {
        Some(Log {
            shape: Shape::of(layout)?,
            max: usize::try_from(max).unwrap_or(usize::MAX),
            seen: Vec::new(),
            received: Vec::new(),
            counts: Vec::new(),
            refused: 0,
            starts: Vec::new(),
            aside: Vec::new(),
            new: Vec::new(),
            merged: Vec::new(),
        })
    }

    /// Takes keys, each once.
    pub(super) fn extend(&mut self, keys: &[u64]) {
        let shape = self.shape;
        self.seen.extend(keys.iter().map(|&key| shape.shaped(key)));
        if self.seen.len() >= GATHER.max(self.counts.len()) {
            self.count();
        }
    }

    /// Takes a key that came so often.
    pub(super) fn put(&mut self, key: u64, times: u64) {
        self.received.push((self.shape.shaped(key), times));
        if self.received.len() >= GATHER.max(self.counts.len()) {
            self.count();
        }
    }

    /// Counts what has gathered.
    fn count(&mut self) {
        if !self.seen.is_empty() {
            let n = self.seen.len();
            self.aside.resize(n.max(self.aside.len()), 0);
            sort_words(&mut self.seen, &mut self.aside[..n]);
            runs(&self.seen, &mut self.new);
            self.seen.clear();
            self.add_new();
        }
        if !self.received.is_empty() {
            std::mem::swap(&mut self.new, &mut self.received);
            self.new.sort_unstable_by_key(|&(key, _)| key);
            self.new.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                if same {
                    kept.1 = kept.1.saturating_add(next.1);
                }
                same
            });
            self.add_new();
        }
    }

    /// Adds the new counts to those so far; what finds no room is counted.
    fn add_new(&mut self) {
        let Log { counts, new, merged, max, refused, .. } = self;
        if counts.len() + new.len() > *max {
            *refused = refused.saturating_add(refuse(counts, new, *max));
        }
        if counts.is_empty() {
            std::mem::swap(counts, new);
        } else {
            merge(counts, new, merged);
            std::mem::swap(counts, merged);
        }
        new.clear();
    }

    /// Counts everything and finds where groups start.
    pub(super) fn settle(&mut self) {
        self.count();
        let Log { shape, counts, starts, .. } = self;
        starts.clear();
        for (at, &(key, _)) in counts.iter().enumerate() {
            let group = shape.group(key) as usize;
            if group >= starts.len() {
                starts.resize(group + 1, at as u32);
            }
        }
        starts.push(counts.len() as u32);
    }

    /// The values of a group, as they rise, once all is settled.
    pub(super) fn of(&self, group: usize) -> &[Counted] {
        match self.starts.get(group..group + 2) {
            Some(&[start, end]) => &self.counts[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The key that stands in the log so.
    #[inline(always)]
    pub(super) fn key(&self, logged: u64) -> u64 {
        self.shape.key(logged)
    }

    /// Calls `f` with each key and how often it came; with some several times.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.seen) + size_of_val(&*self.received) + size_of_val(&*self.counts)
    }

    pub(super) fn each(&self, mut f: impl FnMut(u64, u64)) {
        self.seen.iter().for_each(|&key| f(self.shape.key(key), 1));
        let counted = self.received.iter().chain(&self.counts);
        counted.for_each(|&(key, times)| f(self.shape.key(key), times));
    }

    /// Forgets everything; the memory stays.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
        self.received.clear();
        self.counts.clear();
        self.starts.clear();
        self.refused = 0;
    }

    /// Times that a key found no room.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

/// Counts the runs of equal keys. No branch asks whether a key is another than the last, since
/// nobody could guess it.
fn runs(sorted: &[u64], out: &mut Vec<Counted>) {
    out.clear();
    out.resize(sorted.len(), (0, 0));
    let (mut n, mut last, mut times) = (0, !sorted.first().unwrap_or(&0), 0);
    for &key in sorted {
        let same = (key == last) as u64;
        times = times * same + 1;
        n += 1 - same as usize;
        out[n - 1] = (key, times);
        last = key;
    }
    out.truncate(n);
}

/// Adds sorted counts into `out`, again without a branch for each.
fn merge(a: &[Counted], b: &[Counted], out: &mut Vec<Counted>) {
    out.clear();
    out.resize(a.len() + b.len(), (0, 0));
    let (mut i, mut j, mut n) = (0, 0, 0);
    while let (Some(&(x, in_a)), Some(&(y, in_b))) = (a.get(i), b.get(j)) {
        let (from_a, from_b) = ((x <= y) as u64, (y <= x) as u64);
        let times = (in_a & from_a.wrapping_neg()).saturating_add(in_b & from_b.wrapping_neg());
        out[n] = (x.min(y), times);
        (i, j, n) = (i + from_a as usize, j + from_b as usize, n + 1);
    }
    out.truncate(n);
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
}

/// Leaves out new keys that find no room beside those that are there; returns how often they came.
#[cold]
fn refuse(counts: &[Counted], new: &mut Vec<Counted>, max: usize) -> u64 {
    let (mut room, mut refused) = (max.saturating_sub(counts.len()), 0);
    new.retain(|&(key, times)| {
        if counts.binary_search_by_key(&key, |&(there, _)| there).is_ok() {
            return true;
        }
        let fits = room > 0;
        room -= fits as usize;
        refused = u64::saturating_add(refused, if fits { 0 } else { times });
        fits
    });
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agg::grouped::parts_and_layouts;
    use crate::key::KeyPart;
    use crate::ops::testing::field;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The narrow layout of keys of these fields and a group.
    fn layout(names: &[&str]) -> Layout {
        let parts = names.iter().map(|name| KeyPart::of(&field(name))).collect();
        let (_, mut layouts) = parts_and_layouts(parts);
        layouts.next().expect("there is a narrow one")
    }

    #[test]
    fn which_keys_it_takes() {
        let takes = |names: &[&str]| Log::new(&layout(names), 10).is_some();
        assert!(takes(&["sport"]) && takes(&["ip.src"]) && takes(&["len"]) && takes(&["tcp.syn"]));
        assert!(takes(&["sport", "ip.ttl"]));
        assert!(!takes(&["eth.src"]) && !takes(&["ip.src", "ip.dst"]) && !takes(&["dns.qname"]));
    }

    /// A key of these values of its parts.
    fn key(layout: &Layout, values: &[u64], group: u32) -> u64 {
        let mut key = [0];
        for (p, &value) in values.iter().chain([&group.into()]).enumerate() {
            layout.replace(&mut key, p, value);
            if let Some((_, bit)) = layout.place(p).0.present {
                key[0] |= 1 << bit;
            }
        }
        key[0]
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let layout = layout(&["sport"]);
        let mut log = Log::new(&layout, 3).expect("one word");
        log.extend(&[5, 1, 5, 9].map(|port| key(&layout, &[port], 0)));
        log.settle();
        log.extend(&[7, 1, 7, 5].map(|port| key(&layout, &[port], 0)));
        log.put(key(&layout, &[8], 1), 10);
        log.settle();
        let counts: Vec<u64> = log.of(0).iter().map(|c| c.1).collect();
        assert_eq!((counts, log.refused()), (vec![2, 3, 1], 12));
        assert!(log.of(1).is_empty() && log.of(7).is_empty());
        log.clear();
        log.settle();
        assert!(log.of(0).is_empty());
    }

    proptest! {
        #[test]
        fn counts_as_a_map_does(
            names in prop_oneof![
                Just(vec!["sport"]), Just(vec!["ip.src"]), Just(vec!["tcp.syn"]),
                Just(vec!["sport", "ip.ttl"]),
            ],
            keys in proptest::collection::vec((0u64..40, 0u64..3, 0u32..6), 0..900),
            times in 1u64..5,
            settled in 0usize..900,
        ) {
            let layout = layout(&names);
            let mut log = Log::new(&layout, 1 << 20).expect("one word");
            let mut model: BTreeMap<(u32, u64), u64> = BTreeMap::new();
            for (i, &(a, b, group)) in keys.iter().enumerate() {
                let a = if names[0] == "tcp.syn" { a % 2 } else { a };
                let values = [a, b];
                let key = key(&layout, &values[..names.len()], group);
                if i % 3 == 0 { log.put(key, times) } else { log.extend(&[key]) }
                *model.entry((group, key)).or_default() += if i % 3 == 0 { times } else { 1 };
                if i == settled {
                    log.settle();
                }
            }
            let mut told: BTreeMap<(u32, u64), u64> = BTreeMap::new();
            let group = layout.parts() - 1;
            let of = |key: u64| layout.part(&[key], group).expect("always there") as u32;
            log.each(|key, times| *told.entry((of(key), key)).or_default() += times);
            prop_assert_eq!(&told, &model);
            log.settle();
            for group in 0..7 {
                let got: Vec<_> = log.of(group as usize).iter().map(|c| (log.key(c.0), c.1)).collect();
                let mut want: Vec<_> = model.range((group, 0)..=(group, u64::MAX))
                    .map(|((_, key), times)| (*key, *times)).collect();
                // As values rise, not as keys do.
                want.sort_by_key(|(key, _)| log.shape.shaped(*key));
                prop_assert_eq!(got, want);
            }
        }
    }
}
