//! Sorting integers that carry a row number in their low half, by radix.
//!
//! Few entries are left to the standard library. Entries that differ in few bits are sorted from
//! the lowest digit up; others, and those that do not fit in the cache, are first spread by their
//! highest digit. Either way only bits that differ are looked at.

/// Entries below this many are sorted by comparing.
const COMPARE_MAX: usize = 64;

/// Whole words below this many are sorted by comparing.
const WORDS_COMPARE_MAX: usize = 1 << 11;

/// Bytes of entries beyond which they are spread before they are sorted.
const CACHED_BYTES: usize = 1 << 20;

/// Bits of a digit.
const DIGIT: u32 = 11;

/// Passes over all entries from the lowest digit up.
const PASSES_MAX: u32 = 4;

/// Bits that differ beyond which entries are spread before they are sorted.
const WIDTH_MAX: u32 = 33;

/// A key's prefix above a row number.
pub(crate) trait Entry: Copy + Ord + Default {
    /// Bits of the prefix.
    const PREFIX: u32;

    /// The bits above the row.
    fn prefix(self) -> Self;

    /// The row.
    fn row(self) -> u32;

    /// Appends bits to a prefix under construction.
    fn append(self, value: u64, bits: u32) -> Self;

    /// A whole prefix with its row.
    fn with_row(self, row: u32) -> Self;

    /// The bits of either in which this differs from another.
    fn differing(self, differ: Self, other: Self) -> Self;

    /// Leading and trailing zeros of the prefix; the prefix is not zero.
    fn zeros(self) -> (u32, u32);

    /// A digit.
    fn digit(self, shift: u32, mask: usize) -> usize;
}

macro_rules! entry {
    ($t:ty) => {
        impl Entry for $t {
            const PREFIX: u32 = <$t>::BITS - 32;

            #[inline(always)]
            fn prefix(self) -> Self {
                self >> 32
            }

            #[inline(always)]
            fn row(self) -> u32 {
                self as u32
            }

            #[inline(always)]
            fn append(self, value: u64, bits: u32) -> Self {
                self << bits | value as $t
            }

            #[inline(always)]
            fn with_row(self, row: u32) -> Self {
                self << 32 | row as $t
            }

            #[inline(always)]
            fn differing(self, differ: Self, other: Self) -> Self {
                differ | (self ^ other)
            }

            #[inline(always)]
            fn zeros(self) -> (u32, u32) {
                (self.leading_zeros(), self.trailing_zeros())
            }

            #[inline(always)]
            fn digit(self, shift: u32, mask: usize) -> usize {
                (self >> shift) as usize & mask
            }
        }
    };
}

entry!(u64);
entry!(u128);

/// Sorts entries by prefix; `other` is memory for as many.
pub(crate) fn sort<E: Entry>(entries: &mut [E], other: &mut [E]) {
    let n = entries.len();
    if n <= COMPARE_MAX {
        entries.sort_unstable();
        return;
    }
    let first = entries[0];
    let differ = entries.iter().fold(E::default(), |d, e| e.differing(d, first)).prefix();
    if differ == E::default() {
        return;
    }
    let (leading, low) = differ.zeros();
    // The prefix was moved down by 32, so it has that many leading zeros more.
    let width = E::PREFIX + 32 - leading - low;
    let shift = 32 + low;
    let few = size_of_val(entries) <= CACHED_BYTES;
    if width <= DIGIT || few && width <= WIDTH_MAX {
        // Four passes with small digits are faster than three and a copy back.
        let passes = if width > 27 { PASSES_MAX } else { width.div_ceil(DIGIT) };
        from_lowest(entries, other, shift, width.div_ceil(passes), passes);
    } else {
        // Buckets of a few, as far as keys are spread evenly.
        let bits = (n.ilog2() - 3).clamp(4, DIGIT);
        from_highest(entries, other, shift + width - bits, bits);
    }
}

/// Sorts whole words; `other` is memory for as many.
pub(crate) fn sort_words(words: &mut [u64], other: &mut [u64]) {
    if words.len() < WORDS_COMPARE_MAX {
        words.sort_unstable();
        return;
    }
    let first = words[0];
    let differ = words.iter().fold(0, |differ, word| differ | (word ^ first));
    if differ == 0 {
        return;
    }
    let low = differ.trailing_zeros();
    let width = u64::BITS - differ.leading_zeros() - low;
    let passes = width.div_ceil(DIGIT);
    let bits = width.div_ceil(passes);
    if passes <= PASSES_MAX {
        return from_lowest(words, other, low, bits, passes);
    }
    let (first, rest) = (PASSES_MAX, passes - PASSES_MAX);
    from_lowest(words, other, low, bits, first);
    from_lowest(words, other, low + first * bits, bits, rest);
}

/// Counts made into places: how many entries there are before each digit.
fn places(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
}

/// Sorts by `passes` digits of `bits` each from `shift` on.
fn from_lowest<E: Entry>(entries: &mut [E], other: &mut [E], shift: u32, bits: u32, passes: u32) {
    let mask = (1 << bits) - 1;
    let mut counts = [[0u32; 1 << DIGIT]; PASSES_MAX as usize];
    for e in entries.iter() {
        for (pass, counts) in (0..passes).zip(&mut counts) {
            counts[e.digit(shift + pass * bits, mask) & ((1 << DIGIT) - 1)] += 1;
        }
    }
    let (mut from, mut to) = (&mut *entries, &mut *other);
    for (pass, counts) in (0..passes).zip(&mut counts) {
        places(&mut counts[..=mask]);
        spread(from, to, counts, shift + pass * bits, mask);
        (from, to) = (to, from);
    }
    if passes % 2 == 1 {
        to.copy_from_slice(from);
    }
}

/// Sorts by the digit of `bits` at `shift`, then each run of equal ones by itself.
fn from_highest<E: Entry>(entries: &mut [E], other: &mut [E], shift: u32, bits: u32) {
    let mask = (1 << bits) - 1;
    let mut counts = [0u32; 1 << DIGIT];
    entries.iter().for_each(|e| counts[e.digit(shift, mask) & ((1 << DIGIT) - 1)] += 1);
    places(&mut counts[..=mask]);
    spread(entries, other, &mut counts, shift, mask);
    entries.copy_from_slice(other);
    let mut from = 0;
    for &end in &counts[..=mask] {
        let end = end as usize;
        if end - from > 1 {
            sort(&mut entries[from..end], &mut other[from..end]);
        }
        from = end;
    }
}

/// Moves entries to the places of their digits; afterwards a place is where its digit ends.
#[inline(always)]
fn spread<E: Entry>(
    from: &[E],
    to: &mut [E],
    places: &mut [u32; 1 << DIGIT],
    shift: u32,
    mask: usize,
) {
    for e in from {
        let place = &mut places[e.digit(shift, mask) & ((1 << DIGIT) - 1)];
        to[*place as usize] = *e;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<E: Entry + std::fmt::Debug>(prefixes: impl Iterator<Item = E>) {
        let entries = prefixes.zip(0..).map(|(p, row)| p.with_row(row));
        let mut entries: Vec<E> = entries.collect();
        let mut expected = entries.clone();
        expected.sort_unstable_by_key(|e| (e.prefix(), e.row()));
        let mut other = vec![E::default(); entries.len()];
        sort(&mut entries, &mut other);
        // Ties may come in any order of rows.
        entries.chunk_by_mut(|a, b| a.prefix() == b.prefix()).for_each(|run| run.sort_unstable());
        assert!(entries == expected);
    }

    /// Numbers with one seed, the same in every run.
    fn numbers(n: usize, seed: u64) -> impl Iterator<Item = u64> {
        (0..n as u64).map(move |i| crate::table::HashKey::KNOWN.hash([i, seed]))
    }

    #[test]
    fn many_entries() {
        for n in [0, 1, COMPARE_MAX + 1, 20_000, 300_000] {
            for mask in [u64::MAX, 0xff, 0xffff_0000, 0x8000_0000_0000_0001, 0] {
                check(numbers(n, 1).map(|v| v & mask & 0xffff_ffff));
                let wide = |v: u64| (v as u128 * v as u128) & (mask as u128 | (mask as u128) << 32);
                check(numbers(n, 2).map(|v| wide(v) & (u128::MAX >> 32)));
                // Most in one bucket, some far away.
                check(numbers(n, 3).map(|v| if v % 97 == 0 { v >> 32 } else { v & 0x3fff }));
            }
        }
    }

    #[test]
    fn whole_words() {
        for n in [0, 1, WORDS_COMPARE_MAX, 30_000] {
            for mask in [u64::MAX, 0xff, 0xffff_0000_0000, 0x8000_0000_0000_0001, 0] {
                let mut words: Vec<u64> = numbers(n, 4).map(|v| v & mask | 1 << 40).collect();
                let mut expected = words.clone();
                expected.sort_unstable();
                sort_words(&mut words, &mut vec![0; n]);
                assert!(words == expected, "{n} words of {mask:#x}");
            }
        }
    }

    proptest! {
        #[test]
        fn sorts(values in proptest::collection::vec(any::<u64>(), 0..2000), mask: u32) {
            check(values.iter().map(|v| v & mask as u64));
            check(values.iter().map(|v| (*v as u128) << 32 & ((mask as u128) << 40 | 0xfff)));
        }
    }
}
