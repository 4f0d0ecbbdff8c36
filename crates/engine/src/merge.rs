//! Merging batches of rows into one order: which of them goes on, and how far.
//!
//! Each batch is in order by itself. The next rows are those of the batch whose next row comes
//! first, up to where that of another batch does: a *run*. A heap knows both, so that a run costs
//! the logarithm of the number of batches, however many there are.

use crate::rows::Rows;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Batches that are being merged, each with what its next row is ordered by. Of batches whose next
/// rows are equal, the one of the smaller number comes first.
pub(crate) struct Merge<K>(BinaryHeap<Reverse<(K, usize)>>);

impl<K: Ord> Default for Merge<K> {
    fn default() -> Merge<K> {
        Merge(BinaryHeap::new())
    }
}

impl<K: Ord + Copy> Merge<K> {
    /// Lets a batch take part whose next row is ordered by `next`.
    pub(crate) fn add(&mut self, batch: usize, next: K) {
        self.0.push(Reverse((next, batch)));
    }

    /// Takes out the batch that goes on, and says up to and with what: by what the first row of the
    /// others is ordered, if there is any. It may be added again.
    pub(crate) fn next(&mut self) -> Option<(usize, Option<K>)> {
        let Reverse((_, batch)) = self.0.pop()?;
        Some((batch, self.0.peek().map(|Reverse((bound, _))| *bound)))
    }
}

/// How many of a batch's next rows come before what others have, these being numbered so, and
/// ordered by what `key` makes of their numbers. One at least, of the batch that goes on.
pub(crate) fn run<K: Ord>(order: &[u64], bound: Option<K>, key: impl Fn(u64) -> K) -> usize {
    match bound {
        None => order.len(),
        Some(bound) => order.iter().take_while(|&&number| key(number) <= bound).count(),
    }
}

/// A batch of rows that waits for others. Rows of the same packet are ordered by `id`.
pub(crate) struct WaitingBatch<I> {
    pub(crate) id: I,
    pub(crate) rows: Rows,
    /// Rows of it that went on.
    done: usize,
}

impl<I: Ord + Copy> WaitingBatch<I> {
    /// A batch of which no row went on.
    pub(crate) fn new(id: I, rows: Rows) -> WaitingBatch<I> {
        WaitingBatch { id, rows, done: 0 }
    }

    /// The order of its next row: its packet, then `id`. `None` at its end.
    fn next(&self) -> Option<(u64, I)> {
        (self.done < self.rows.len).then(|| (self.rows.order[self.done], self.id))
    }
}

/// Hands on the rows of all batches in the order of their packets, in runs as long as that allows.
pub(crate) fn hand_on<I: Ord + Copy>(
    batches: &mut [WaitingBatch<I>],
    merge: &mut Merge<(u64, I)>,
    mut out: impl FnMut(I, &Rows, Range<usize>),
) {
    for (at, batch) in batches.iter().enumerate() {
        batch.next().into_iter().for_each(|next| merge.add(at, next));
    }
    while let Some((at, bound)) = merge.next() {
        let batch = &mut batches[at];
        let (id, from) = (batch.id, batch.done);
        batch.done += run(&batch.rows.order[from..], bound, |order| (order, id));
        batch.next().into_iter().for_each(|next| merge.add(at, next));
        out(id, &batch.rows, from..batch.done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// Merges batches; the numbers with that of their batch, in the order they come.
    fn merged(batches: &[Vec<u64>]) -> Vec<(u64, usize)> {
        let (mut merge, mut at, mut out) = (Merge::default(), vec![0; batches.len()], Vec::new());
        for (l, batch) in batches.iter().enumerate().filter(|(_, batch)| !batch.is_empty()) {
            merge.add(l, batch[0]);
        }
        while let Some((l, bound)) = merge.next() {
            let n = run(&batches[l][at[l]..], bound, |number| number);
            assert!(n > 0, "a run of nothing");
            out.extend(batches[l][at[l]..at[l] + n].iter().map(|&number| (number, l)));
            at[l] += n;
            if let Some(&next) = batches[l].get(at[l]) {
                merge.add(l, next);
            }
        }
        out
    }

    #[test]
    fn runs_go_as_far_as_they_can() {
        assert_eq!(merged(&[]), []);
        let batches = [vec![1, 2, 7], vec![], vec![2, 3, 3], vec![3, 9]];
        let expected = [(1, 0), (2, 0), (2, 2), (3, 2), (3, 2), (3, 3), (7, 0), (9, 3)];
        assert_eq!(merged(&batches), expected);
    }

    /// A number that says how often it was compared.
    #[derive(Clone, Copy)]
    struct Counted<'a>(u64, &'a Cell<u64>);

    impl PartialEq for Counted<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted<'_> {}

    impl PartialOrd for Counted<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Counted<'_> {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            self.1.set(self.1.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    /// Batches whose rows alternate, so that each run has one row.
    #[test]
    fn many_batches_cost_little_more_than_few() {
        const BATCHES: u64 = 4096;
        const ROWS: u64 = 4;
        let compared = Cell::new(0);
        let mut merge = Merge::default();
        (0..BATCHES).for_each(|batch| merge.add(batch as usize, Counted(batch, &compared)));
        let mut out = 0;
        while let Some((batch, _)) = merge.next() {
            let row = out / BATCHES;
            assert_eq!(batch as u64, out % BATCHES);
            if row + 1 < ROWS {
                merge.add(batch, Counted(BATCHES * (row + 1) + batch as u64, &compared));
            }
            out += 1;
        }
        assert_eq!(out, BATCHES * ROWS);
        let each = compared.get() / out;
        assert!(each < 60, "{each} comparisons for each of {out} rows of {BATCHES} batches");
    }

    proptest! {
        #[test]
        fn all_rows_come_in_order(batches in proptest::collection::vec(
            proptest::collection::vec(0u64..30, 0..12), 0..12,
        )) {
            let mut batches = batches;
            batches.iter_mut().for_each(|batch| batch.sort_unstable());
            let got = merged(&batches);
            prop_assert!(got.is_sorted_by_key(|&(number, _)| number));
            for (l, batch) in batches.iter().enumerate() {
                let of_batch = got.iter().filter(|(_, of)| *of == l).map(|(number, _)| *number);
                prop_assert_eq!(&of_batch.collect::<Vec<_>>(), batch);
            }
        }
    }
}
