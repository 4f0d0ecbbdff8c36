//! A set of row numbers within one batch.

use crate::limits::BATCH;

const WORDS: usize = BATCH / 64;

/// A set of row numbers `0..BATCH`, one bit each: selections, presence of values, and the values
/// of boolean columns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Bits(pub [u64; WORDS]);

impl Bits {
    /// The empty set.
    pub const NONE: Bits = Bits([0; WORDS]);

    /// All row numbers of a full batch.
    pub const ALL: Bits = Bits([u64::MAX; WORDS]);

    /// The rows `0..n`. `n` above [`BATCH`] counts as [`BATCH`].
    pub fn first(n: usize) -> Bits {
        Bits(std::array::from_fn(|w| match n.saturating_sub(w * 64) {
            0 => 0,
            k if k >= 64 => u64::MAX,
            k => (1 << k) - 1,
        }))
    }

    /// The rows `from..to`.
    pub fn range(from: usize, to: usize) -> Bits {
        Bits::first(to).minus(Bits::first(from))
    }

    /// The rows `i < n` for which `f(i)` holds.
    #[inline(always)]
    pub fn from_fn(n: usize, mut f: impl FnMut(usize) -> bool) -> Bits {
        let mut out = Bits::NONE;
        for w in 0..WORDS {
            let mut word = 0u64;
            let start = w * 64;
            for b in 0..64.min(n.saturating_sub(start)) {
                word |= (f(start + b) as u64) << b;
            }
            out.0[w] = word;
        }
        out
    }

    /// Whether row `i` is in the set; `false` for rows outside a batch.
    #[inline(always)]
    pub fn has(&self, i: usize) -> bool {
        i < BATCH && self.0[i / 64] >> (i % 64) & 1 == 1
    }

    /// Adds row `i`. Panics if `i` is not below [`BATCH`].
    #[inline(always)]
    pub fn set(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// Adds row `i` if `on`, removes it if not. Panics if `i` is not below [`BATCH`].
    #[inline(always)]
    pub fn put(&mut self, i: usize, on: bool) {
        let w = &mut self.0[i / 64];
        *w = *w & !(1 << (i % 64)) | (on as u64) << (i % 64);
    }

    /// Rows in both sets.
    #[inline(always)]
    #[must_use]
    pub fn and(self, o: Bits) -> Bits {
        Bits(std::array::from_fn(|w| self.0[w] & o.0[w]))
    }

    /// Rows in either set.
    #[inline(always)]
    #[must_use]
    pub fn or(self, o: Bits) -> Bits {
        Bits(std::array::from_fn(|w| self.0[w] | o.0[w]))
    }

    /// Rows in this set and not in the other.
    #[inline(always)]
    #[must_use]
    pub fn minus(self, o: Bits) -> Bits {
        Bits(std::array::from_fn(|w| self.0[w] & !o.0[w]))
    }

    /// How many rows are in the set.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Whether the set holds no row.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Whether every row of `o` is in this set.
    #[inline(always)]
    pub fn covers(&self, o: Bits) -> bool {
        o.minus(*self).is_empty()
    }

    /// Calls `f` with each row number, ascending.
    #[inline(always)]
    pub fn each(self, mut f: impl FnMut(usize)) {
        for w in 0..WORDS {
            let mut word = self.0[w];
            if word == u64::MAX {
                for b in 0..64 {
                    f(w * 64 + b);
                }
                continue;
            }
            while word != 0 {
                f(w * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    }

    /// The row numbers, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..WORDS).flat_map(move |w| {
            let mut word = self.0[w];
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let b = word.trailing_zeros() as usize;
                    word &= word - 1;
                    w * 64 + b
                })
            })
        })
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<T: IntoIterator<Item = usize>>(rows: T) -> Bits {
        let mut out = Bits::NONE;
        rows.into_iter().for_each(|i| out.set(i));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn first_is_a_prefix() {
        for n in [0, 1, 63, 64, 65, 255, 256] {
            assert_eq!(Bits::first(n).count(), n);
            assert_eq!(Bits::first(n).iter().collect::<Vec<_>>(), (0..n).collect::<Vec<_>>());
        }
        assert_eq!(Bits::first(1000), Bits::ALL);
        assert_eq!(Bits::range(10, 12).iter().collect::<Vec<_>>(), [10, 11]);
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(a in proptest::collection::btree_set(0usize..BATCH, 0..80),
                              b in proptest::collection::btree_set(0usize..BATCH, 0..80)) {
            let (x, y): (Bits, Bits) = (a.iter().copied().collect(), b.iter().copied().collect());
            let set = |bits: Bits| bits.iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(set(x.and(y)), a.intersection(&b).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(set(x.or(y)), a.union(&b).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(set(x.minus(y)), a.difference(&b).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(x.covers(y), b.is_subset(&a));
            let mut seen = Vec::new();
            x.each(|i| seen.push(i));
            prop_assert_eq!(seen, a.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(Bits::from_fn(BATCH, |i| a.contains(&i)), x);
        }
    }
}
