//! A column: the values of one field or expression for the rows of one batch.

use crate::bits::Bits;
use crate::limits::BATCH;

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

    /// Makes this column the given rows of another of the same representation, one after the
    /// other.
    pub fn gather(&mut self, from: &Column, rows: Bits) {
        let present = from.present;
        if rows == Bits::first(rows.count()) {
            self.copy_from(from);
            self.present = present.and(rows);
            return;
        }
        let mut j = 0;
        self.present = Bits::NONE;
        rows.each(|i| {
            if present.has(i) {
                self.set_raw(j, from.raw(i));
            }
            j += 1;
        });
    }

    /// The value of row `i` as a 128-bit number: a pair, a word, or a truth bit. Meaningless where
    /// `i` is not present.
    pub fn raw(&self, i: usize) -> u128 {
        match self.repr {
            Repr::Bit => self.truth.has(i) as u128,
            Repr::Word => self.word()[i] as u128,
            Repr::Pair => (self.pair().0[i] as u128) << 64 | self.pair().1[i] as u128,
        }
    }

    /// Sets row `i` from [`Column::raw`]'s form and marks it present.
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
