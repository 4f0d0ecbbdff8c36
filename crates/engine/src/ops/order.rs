//! The order of groups: their keys, a window's at a time.
//!
//! Of a key only the bits in which the groups differ are sorted by. They are gathered, most
//! significant first, above the row's number into one integer a group, which is sorted by radix:
//! 32 bits of key in 64, or 96 in 128 where that is not enough. Keys that agree in those, and
//! texts, are compared in full afterwards. All memory is kept for the next window.

use crate::expr::Class;
use crate::key::{Layout, Pool};
use crate::radix::{self, Entry};
use crate::table::Table;
use weir_packet::limits::BATCH;

/// How often in a row a sort may need less than an eighth of the memory before it is given back.
const SMALL_SORTS_MAX: u32 = 16;

/// Bits between two that differ which are not worth a piece of their own.
const GAP: u32 = 4;

/// Sorts groups; keeps its memory between windows.
#[derive(Default)]
pub(super) struct Sorter {
    pieces: Vec<Piece>,
    /// Of each word of the keys: in which bits they differ.
    differ: Vec<u64>,
    short: Buffers<u64>,
    long: Buffers<u128>,
    aside: Vec<u64>,
    times: Vec<(i64, u64)>,
}

#[derive(Default)]
struct Buffers<E> {
    entries: Vec<E>,
    other: Vec<E>,
    /// Sorts in a row that used little of it.
    small: u32,
}

/// Some bits of a key.
#[derive(Clone, Copy, Debug)]
struct Piece {
    word: usize,
    shift: u32,
    bits: u32,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// As they stand.
    Plain,
    /// The highest of them is a sign.
    Signed,
    /// The whole of a float.
    Float,
    /// The handle of a text, of which the first bytes are taken.
    Text,
}

impl Sorter {
    /// Memory for sorting by time.
    pub(super) fn times(&mut self) -> &mut Vec<(i64, u64)> {
        &mut self.times
    }

    /// Memory for merging what was sorted.
    pub(super) fn aside(&mut self) -> &mut Vec<u64> {
        &mut self.aside
    }

    /// Appends the rows of a table to `out`, in the order of their keys, each with `tag` added.
    pub(super) fn sort(
        &mut self,
        table: &Table,
        layout: &Layout,
        pool: &Pool,
        tag: u64,
        out: &mut Vec<u64>,
    ) {
        let n = table.len();
        if n == 0 {
            return;
        }
        differing(table, &mut self.differ);
        let whole = pieces(layout, &self.differ, &mut self.pieces);
        let bits: u32 = self.pieces.iter().map(|p| p.bits).sum();
        let compare =
            |a: u32, b: u32| layout.compare(table.key(a), pool, layout, table.key(b), pool);
        out.reserve(n);
        if bits <= u64::PREFIX {
            let sorted = self.short.sort(table, &self.pieces, pool, (!whole).then_some(&compare));
            out.extend(sorted.iter().map(|e| tag | e.row() as u64));
        } else {
            let cut = cut(&mut self.pieces, u128::PREFIX);
            let whole = whole && !cut;
            let sorted = self.long.sort(table, &self.pieces, pool, (!whole).then_some(&compare));
            out.extend(sorted.iter().map(|e| tag | e.row() as u64));
        }
    }
}

impl<E: Entry> Buffers<E> {
    /// The entries of all rows in order; `ties` says how those compare whose prefixes are equal.
    fn sort(
        &mut self,
        table: &Table,
        pieces: &[Piece],
        pool: &Pool,
        ties: Option<&dyn Fn(u32, u32) -> std::cmp::Ordering>,
    ) -> &[E] {
        let n = table.len();
        self.small = if n * 8 < self.entries.capacity() { self.small + 1 } else { 0 };
        if self.small > SMALL_SORTS_MAX {
            *self = Buffers::default();
        }
        self.entries.clear();
        self.entries.reserve(n);
        for first in (0..n).step_by(BATCH) {
            self.gather(table, pieces, pool, first);
        }
        if self.other.len() < n {
            self.other.resize(n, E::default());
        }
        radix::sort(&mut self.entries, &mut self.other[..n]);
        if let Some(compare) = ties {
            for run in self.entries.chunk_by_mut(|a, b| a.prefix() == b.prefix()) {
                if run.len() > 1 {
                    run.sort_unstable_by(|a, b| compare(a.row(), b.row()));
                }
            }
        }
        &self.entries
    }

    /// Appends the entries of a batch of rows.
    fn gather(&mut self, table: &Table, pieces: &[Piece], pool: &Pool, first: usize) {
        let n = BATCH.min(table.len() - first);
        let stride = table.stride();
        let rows = &table.rows()[first * stride..][..n * stride];
        let mut prefixes = [E::default(); BATCH];
        for piece in pieces {
            let Piece { word, shift, bits, kind } = *piece;
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let words = rows.chunks_exact(stride).map(|row| row[word]);
            let into = prefixes.iter_mut().zip(words);
            match kind {
                Kind::Plain => into.for_each(|(e, w)| *e = e.append(w >> shift & mask, bits)),
                Kind::Signed => {
                    let sign = 1 << (bits - 1);
                    into.for_each(|(e, w)| *e = e.append(w >> shift & mask ^ sign, bits));
                }
                Kind::Float => {
                    let value = |w| Class::Float.ordered(w) >> shift & mask;
                    into.for_each(|(e, w)| *e = e.append(value(w), bits));
                }
                Kind::Text => into.for_each(|(e, handle)| {
                    let text = pool.get(handle);
                    let mut head = [0; 8];
                    let n = text.len().min(8);
                    head[..n].copy_from_slice(&text[..n]);
                    *e = e.append(u64::from_be_bytes(head) >> shift, bits);
                }),
            }
        }
        let rows = prefixes[..n].iter().zip(first as u32..);
        self.entries.extend(rows.map(|(e, row)| e.with_row(row)));
    }
}

/// In which bits the keys of a table differ, word by word.
fn differing(table: &Table, differ: &mut Vec<u64>) {
    let (words, stride) = (table.key_words(), table.stride());
    differ.clear();
    differ.resize(words, 0);
    // All words of some rows after the other, so that a large table is read only once.
    for rows in table.rows().chunks(BATCH * stride) {
        for (w, differ) in differ.iter_mut().enumerate() {
            let first = table.rows()[w];
            *differ = rows[w..].iter().step_by(stride).fold(*differ, |d, word| d | (word ^ first));
        }
    }
}

/// The pieces of a key that differ, most significant first; says whether they are all of the key.
fn pieces(layout: &Layout, differ: &[u64], out: &mut Vec<Piece>) -> bool {
    out.clear();
    for p in 0..layout.parts() {
        let (place, class) = layout.place(p);
        if let Some((word, shift)) = place.present {
            runs(word, shift, 1, false, differ, out);
        }
        let all = |bits, kind| Piece { word: place.word, shift: 64 - bits, bits, kind };
        match class {
            Class::Text if differ[place.word] == 0 => {}
            Class::Text => {
                let used: u32 = out.iter().map(|p| p.bits).sum();
                // As much of the text as still fits in an entry, if any does.
                let room = if used < u64::PREFIX { u64::PREFIX - used } else { 64 };
                out.push(all(room, Kind::Text));
                return false;
            }
            Class::Float if differ[place.word] == 0 => {}
            Class::Float => out.push(all(64, Kind::Float)),
            Class::Pair if place.bits == 128 => {
                runs(place.word, 0, 64, false, differ, out);
                runs(place.word + 1, 0, 64, false, differ, out);
            }
            _ => {
                let signed = class == Class::Signed && place.bits == 64;
                runs(place.word, place.shift, place.bits, signed, differ, out);
            }
        }
    }
    true
}

/// The runs of bits that differ among `bits` of a word from `shift` on.
fn runs(word: usize, shift: u32, bits: u32, signed: bool, differ: &[u64], out: &mut Vec<Piece>) {
    let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << shift };
    let mut left = differ[word] & mask;
    while left != 0 {
        let high = 63 - left.leading_zeros();
        let mut low = high;
        loop {
            let below = left & ((1 << low) - 1);
            let next = 63u32.saturating_sub(below.leading_zeros());
            if below == 0 || low - next > GAP {
                break;
            }
            low = next;
        }
        left &= (1 << low) - 1;
        let kind = if signed && high == 63 { Kind::Signed } else { Kind::Plain };
        out.push(Piece { word, shift: low, bits: high - low + 1, kind });
    }
}

/// Cuts the pieces to `room` bits; says whether anything was cut off.
fn cut(pieces: &mut Vec<Piece>, room: u32) -> bool {
    let mut free = room;
    for i in 0..pieces.len() {
        let piece = &mut pieces[i];
        if piece.bits <= free {
            free -= piece.bits;
            continue;
        }
        let off = piece.bits - free;
        piece.shift += off;
        piece.bits = free;
        // The sign of a number is its highest bit, so that it is cut off last.
        let keep = if free > 0 { i + 1 } else { i };
        pieces.truncate(keep);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyPart;
    use crate::table::{HashKey, Keys};
    use proptest::prelude::*;
    use weir_packet::fields::by_name;
    use weir_plan::{Expr, Type};

    fn sorted(layout: &Layout, table: &Table, pool: &Pool) -> Vec<u32> {
        let (mut sorter, mut out) = (Sorter::default(), Vec::new());
        sorter.sort(table, layout, pool, 0, &mut out);
        // A second sort finds memory that was used before.
        let mut again = Vec::new();
        sorter.sort(table, layout, pool, 1 << 32, &mut again);
        assert!(out.iter().zip(&again).all(|(a, b)| a | 1 << 32 == *b));
        out.iter().map(|&r| r as u32).collect()
    }

    /// A key as [`crate::key::pack`] leaves it: bits of no part, and parts that are absent, are
    /// zero; a text is one of `texts`.
    fn like_packed(layout: &Layout, random: &[u64], texts: &[u64]) -> Vec<u64> {
        let mut key = vec![0; layout.words];
        for p in 0..layout.parts() {
            let Some(value) = layout.part(random, p) else { continue };
            let (place, class) = layout.place(p);
            if let Some((word, shift)) = place.present {
                key[word] |= 1 << shift;
            }
            match class {
                _ if place.bits == 128 => {
                    (key[place.word], key[place.word + 1]) = ((value >> 64) as u64, value as u64);
                }
                Class::Text => layout.replace(&mut key, p, texts[value as usize % texts.len()]),
                _ => layout.replace(&mut key, p, value as u64),
            }
        }
        key
    }

    /// Checks the order of keys made of random words, thinned out by `masks`.
    fn check(layout: &Layout, words: &[u64], masks: &[u64], pool: &Pool, texts: &[u64]) {
        let mut table = Table::new(layout.words, 1, u64::MAX, HashKey::random());
        let mut keys = Keys::new(layout.words);
        for (j, key) in words.chunks_exact(layout.words).take(BATCH).enumerate() {
            let random: Vec<u64> = key.iter().zip(masks).map(|(w, m)| w & m).collect();
            let key = like_packed(layout, &random, texts);
            keys.words.iter_mut().zip(&key).for_each(|(plane, w)| plane[j] = *w);
            keys.len = j + 1;
        }
        table.lookup_words(&mut keys, &[0], &mut [0; BATCH]);
        let order = sorted(layout, &table, pool);
        assert_eq!(order.len(), table.len());
        for pair in order.windows(2) {
            let (a, b) = (table.key(pair[0]), table.key(pair[1]));
            assert!(layout.compare(a, pool, layout, b, pool).is_lt(), "{a:x?} before {b:x?}");
        }
    }

    fn part(field: &str) -> KeyPart {
        KeyPart::of(&Expr::field(by_name(field).expect("a field")))
    }

    proptest! {
        #[test]
        fn rows_come_in_the_order_of_keys(
            words in proptest::collection::vec(any::<u64>(), 6..2000),
            masks in proptest::collection::vec(any::<u64>(), 16),
            wide: bool,
            chosen in proptest::collection::vec(0usize..7, 1..5),
            texts in proptest::collection::vec("[ab]{0,12}", 1..20),
        ) {
            let all = [
                part("ip.src"), part("dport"), part("ts"), part("eth.src"), part("tcp.syn"),
                KeyPart::of(&Expr::column(0, Type::Float)), KeyPart::of(&Expr::column(0, Type::Str)),
            ];
            let parts: Vec<KeyPart> = chosen.iter().map(|&c| all[c].clone()).collect();
            let (narrow, other) = Layout::both(&parts);
            let layout = if wide { other.unwrap_or(narrow) } else { narrow };
            let mut pool = Pool::default();
            let texts: Vec<u64> = texts.iter().map(|t| pool.intern(t.as_bytes())).collect();
            check(&layout, &words, &masks, &pool, &texts);
        }
    }
}
