//! A column: the values of one field or expression for the rows of one batch.

use crate::bits::Bits;
use crate::limits::BATCH;
use std::ops::Range;

/// How the values of a type are stored in a [`Column`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repr {
    /// One bit in [`Column::truth`]: `bool`.
    Bit,
    /// One 64-bit word: `int` and `time` and `duration` (two's complement), `float` (IEEE bits),
    /// `mac` (48 bits, first byte highest), `string` and `bytes` (a handle given by the engine).
    Word,
    /// Two words, the high 64 bits first: `ip`. An IPv4 address `a.b.c.d` is `::ffff:a.b.c.d`.
    Pair,
}

impl Repr {
    /// Words stored per row.
    pub fn words(self) -> usize {
        match self {
            Repr::Bit => 0,
            Repr::Word => 1,
            Repr::Pair => 2,
        }
    }
}

/// Values of one type for the rows of a batch. A row outside `present` has no value; what its
/// words and truth bit hold is unspecified.
#[derive(Clone, Debug)]
pub struct Column {
    repr: Repr,
    /// Word planes: all rows' first words, then all rows' second words.
    words: Box<[u64]>,
    /// The values of a boolean column; unused otherwise.
    pub truth: Bits,
    /// The rows that have a value.
    pub present: Bits,
}

impl Column {
    /// An empty column for values stored as `repr`.
    pub fn new(repr: Repr) -> Column {
        Column {
            repr,
            words: vec![0; repr.words() * BATCH].into_boxed_slice(),
            truth: Bits::NONE,
            present: Bits::NONE,
        }
    }

    /// How this column stores its values.
    pub fn repr(&self) -> Repr {
        self.repr
    }

    /// The first (or only) words, one per row. Panics on a boolean column.
    #[inline(always)]
    pub fn word(&self) -> &[u64; BATCH] {
        self.words[..BATCH].try_into().expect("a word column has one plane")
    }

    /// The first (or only) words, writable. Panics on a boolean column.
    #[inline(always)]
    pub fn word_mut(&mut self) -> &mut [u64; BATCH] {
        (&mut self.words[..BATCH]).try_into().expect("a word column has one plane")
    }

    /// The high and the low words. Panics unless the column stores pairs.
    #[inline(always)]
    pub fn pair(&self) -> (&[u64; BATCH], &[u64; BATCH]) {
        let (hi, lo) = self.words.split_at(BATCH);
        (
            hi.try_into().expect("a pair column has two planes"),
            lo.try_into().expect("a pair column has two planes"),
        )
    }

    /// The high and the low words, writable. Panics unless the column stores pairs.
    #[inline(always)]
    pub fn pair_mut(&mut self) -> (&mut [u64; BATCH], &mut [u64; BATCH]) {
        let (hi, lo) = self.words.split_at_mut(BATCH);
        (
            hi.try_into().expect("a pair column has two planes"),
            lo.try_into().expect("a pair column has two planes"),
        )
    }

    /// Makes this column equal to another of the same representation, without allocating.
    pub fn copy_from(&mut self, other: &Column) {
        self.words.copy_from_slice(&other.words);
        self.truth = other.truth;
        self.present = other.present;
    }

    /// Makes this column the first `n` rows of another of the same representation.
    pub fn copy_first(&mut self, from: &Column, n: usize) {
        self.present = from.present.and(Bits::first(n));
        self.copy_cells(0, from, 0..n);
    }

    /// Makes this column the given rows of another of the same representation, one after the
    /// other.
    pub fn gather(&mut self, from: &Column, rows: &Picked) {
        if rows.is_prefix() {
            return self.copy_first(from, rows.list().len());
        }
        self.present = rows.pack(from.present);
        match self.repr {
            Repr::Bit => self.truth = rows.pack(from.truth),
            Repr::Word => pick(from.word(), rows.list(), self.word_mut()),
            Repr::Pair => {
                let ((hi, lo), (to_hi, to_lo)) = (from.pair(), self.pair_mut());
                pick(hi, rows.list(), to_hi);
                pick(lo, rows.list(), to_lo);
            }
        }
    }

    /// Makes this column the given rows of another of the same representation, which may come
    /// several times each; at most a batch of them.
    pub fn repeat(&mut self, from: &Column, rows: &[u8]) {
        (self.present, self.truth) = (Bits::NONE, Bits::NONE);
        for (to, &i) in rows.iter().enumerate() {
            self.present.put(to, from.present.has(i.into()));
        }
        match self.repr {
            Repr::Bit => {
                for (to, &i) in rows.iter().enumerate() {
                    self.truth.put(to, from.truth.has(i.into()));
                }
            }
            Repr::Word => pick(from.word(), rows, self.word_mut()),
            Repr::Pair => {
                let ((hi, lo), (to_hi, to_lo)) = (from.pair(), self.pair_mut());
                pick(hi, rows, to_hi);
                pick(lo, rows, to_lo);
            }
        }
    }

    /// Copies rows of another column of the same representation, from row `at` on. Panics unless
    /// there is room for them.
    pub fn append(&mut self, at: usize, from: &Column, rows: Range<usize>) {
        let to = Bits::range(at, at + rows.len());
        let present = shifted(from.present, rows.start, at).and(to);
        self.present = self.present.minus(to).or(present);
        self.copy_cells(at, from, rows);
    }

    /// Copies the values of rows, not which of them are present.
    fn copy_cells(&mut self, at: usize, from: &Column, rows: Range<usize>) {
        let end = at + rows.len();
        match self.repr {
            Repr::Bit => {
                let to = Bits::range(at, end);
                let truth = shifted(from.truth, rows.start, at).and(to);
                self.truth = self.truth.minus(to).or(truth);
            }
            Repr::Word => self.word_mut()[at..end].copy_from_slice(&from.word()[rows]),
            Repr::Pair => {
                let ((hi, lo), (to_hi, to_lo)) = (from.pair(), self.pair_mut());
                to_hi[at..end].copy_from_slice(&hi[rows.clone()]);
                to_lo[at..end].copy_from_slice(&lo[rows]);
            }
        }
    }

    /// The value of row `i` as a 128-bit number: a pair, a word, or a truth bit. Meaningless where
    /// `i` is not present.
    #[inline]
    pub fn raw(&self, i: usize) -> u128 {
        match self.repr {
            Repr::Bit => self.truth.has(i) as u128,
            Repr::Word => self.word()[i] as u128,
            Repr::Pair => (self.pair().0[i] as u128) << 64 | self.pair().1[i] as u128,
        }
    }

    /// Sets row `i` from [`Column::raw`]'s form and marks it present.
    #[inline]
    pub fn set_raw(&mut self, i: usize, v: u128) {
        match self.repr {
            Repr::Bit => self.truth.put(i, v != 0),
            Repr::Word => self.word_mut()[i] = v as u64,
            Repr::Pair => {
                let (hi, lo) = self.pair_mut();
                (hi[i], lo[i]) = ((v >> 64) as u64, v as u64);
            }
        }
        self.present.set(i);
    }
}

// So that a row number fits the list's bytes, and no byte is outside a plane of a full batch.
const _: () = assert!(BATCH <= 1 << u8::BITS);

/// A set of rows as a list: made once where several columns give up the same rows.
#[derive(Clone, Debug)]
pub struct Picked {
    rows: Bits,
    list: [u8; BATCH],
    len: usize,
}

impl Picked {
    /// Lists rows.
    pub fn new(rows: Bits) -> Picked {
        let (mut list, mut len) = ([0; BATCH], 0);
        rows.each(|i| {
            list[len] = i as u8;
            len += 1;
        });
        Picked { rows, list, len }
    }

    /// The row numbers, ascending.
    #[inline(always)]
    pub fn list(&self) -> &[u8] {
        &self.list[..self.len]
    }

    /// Whether these are the first rows of the batch.
    fn is_prefix(&self) -> bool {
        self.list().last().is_none_or(|&last| last as usize + 1 == self.len)
    }

    /// The set of the places in the list whose rows are in `set`.
    pub fn pack(&self, set: Bits) -> Bits {
        let set = set.and(self.rows);
        if set == self.rows {
            return Bits::first(self.len);
        }
        if set.is_empty() || self.is_prefix() {
            return set;
        }
        let (mut out, mut at) = (Bits::NONE, 0);
        for (&word, &mask) in set.0.iter().zip(&self.rows.0) {
            let packed = compress(word, mask);
            let (w, bit) = (at / 64, at % 64);
            if packed != 0 {
                out.0[w] |= packed << bit;
                if bit != 0 && packed >> (64 - bit) != 0 {
                    out.0[w + 1] |= packed >> (64 - bit);
                }
            }
            at += mask.count_ones() as usize;
        }
        out
    }
}

/// Moves the bits of `word` under `mask` together at the low end: in steps of 1, 2, 4 and so on,
/// each bit by what its distance has in common with the step.
fn compress(word: u64, mut mask: u64) -> u64 {
    let mut out = word & mask;
    // Places with an odd number of gaps below are those whose distance has the step in it.
    let mut gaps = !mask << 1;
    for step in 0..6 {
        let mut odd = gaps;
        for k in 0..6 {
            odd ^= odd << (1 << k);
        }
        let moves = odd & mask;
        mask = mask ^ moves | moves >> (1 << step);
        let moved = out & moves;
        out = out ^ moved | moved >> (1 << step);
        gaps &= !odd;
    }
    out
}

/// The set with each row `from + i` at `to + i`; rows that would be outside a batch are lost.
fn shifted(set: Bits, from: usize, to: usize) -> Bits {
    let down = from.max(to) == from;
    let by = from.abs_diff(to);
    let (words, bits) = (by / 64, by % 64);
    let word = |w: Option<usize>| w.and_then(|w| set.0.get(w)).copied().unwrap_or(0);
    Bits(std::array::from_fn(|w| {
        let (near, far) = match down {
            true => (word(Some(w + words)), word(Some(w + words + 1))),
            false => (word(w.checked_sub(words)), word(w.checked_sub(words + 1))),
        };
        match (bits, down) {
            (0, _) => near,
            (_, true) => near >> bits | far << (64 - bits),
            (_, false) => near << bits | far >> (64 - bits),
        }
    }))
}

#[inline(always)]
fn pick(from: &[u64; BATCH], list: &[u8], to: &mut [u64; BATCH]) {
    for (to, &i) in to.iter_mut().zip(list) {
        *to = from[i as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits() -> impl Strategy<Value = Bits> {
        let word =
            || prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), any::<u8>().prop_map(u64::from)];
        proptest::array::uniform4(word()).prop_map(Bits)
    }

    fn column(repr: Repr, salt: u128, present: Bits) -> Column {
        let mut column = Column::new(repr);
        for i in 0..BATCH {
            let n = (i as u128 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            column.set_raw(i, if repr == Repr::Bit { n >> 77 & 1 } else { n });
        }
        column.present = present;
        column
    }

    fn cells(column: &Column, rows: impl Iterator<Item = usize>) -> Vec<Option<u128>> {
        rows.map(|i| column.present.has(i).then(|| column.raw(i))).collect()
    }

    proptest! {
        #[test]
        fn gathered_rows_are_those_picked(rows in bits(), present in bits(), old in bits()) {
            for repr in [Repr::Bit, Repr::Word, Repr::Pair] {
                let (from, mut to) = (column(repr, 1, present), column(repr, 2, old));
                to.gather(&from, &Picked::new(rows));
                let mut want = cells(&from, rows.iter());
                want.resize(BATCH, None);
                prop_assert_eq!(cells(&to, 0..BATCH), want);
            }
        }

        #[test]
        fn repeated_rows_are_those_listed(
            rows in proptest::collection::vec(any::<u8>(), 0..=BATCH), present in bits(), old in bits()
        ) {
            for repr in [Repr::Bit, Repr::Word, Repr::Pair] {
                let (from, mut to) = (column(repr, 1, present), column(repr, 2, old));
                to.repeat(&from, &rows);
                let mut want = cells(&from, rows.iter().map(|&i| i.into()));
                want.resize(BATCH, None);
                prop_assert_eq!(cells(&to, 0..BATCH), want);
            }
        }

        #[test]
        fn appended_rows_follow_those_there(
            present in bits(), old in bits(), a in 0..=BATCH, b in 0..=BATCH, room in 0..=BATCH
        ) {
            let (start, end) = (a.min(b), a.max(b));
            let at = room.min(BATCH - (end - start));
            for repr in [Repr::Bit, Repr::Word, Repr::Pair] {
                let (from, mut to) = (column(repr, 1, present), column(repr, 2, old));
                let mut want = cells(&to, 0..BATCH);
                want[at..at + (end - start)].copy_from_slice(&cells(&from, start..end));
                to.append(at, &from, start..end);
                prop_assert_eq!(cells(&to, 0..BATCH), want);
            }
        }
    }
}
