//! Updating several aggregates of a row in one loop.
//!
//! Most aggregates keep one cell and change it by one instruction. A loop for each of them loads
//! the row number and computes the address again; one loop for two or four of them does so once.

use super::Cells;
use weir_packet::limits::BATCH;

/// The change that a row that counts makes to the cell of an aggregate of one cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CellStep {
    /// Adds one.
    One,
    /// Adds the value, up to the largest number.
    Add,
    /// Keeps the smaller one of the cell and the value with these bits flipped.
    Least(u64),
}

/// A step with its values.
trait Update: Copy {
    fn update(self, cell: &mut u64, i: usize);
}

#[derive(Clone, Copy)]
struct One;

#[derive(Clone, Copy)]
struct Add<'a>(&'a [u64; BATCH]);

#[derive(Clone, Copy)]
struct Least<'a>(&'a [u64; BATCH], u64);

impl Update for One {
    #[inline(always)]
    fn update(self, cell: &mut u64, _: usize) {
        *cell = cell.wrapping_add(1);
    }
}

impl Update for Add<'_> {
    #[inline(always)]
    fn update(self, cell: &mut u64, i: usize) {
        *cell = cell.saturating_add(self.0[i]);
    }
}

impl Update for Least<'_> {
    #[inline(always)]
    fn update(self, cell: &mut u64, i: usize) {
        *cell = (*cell).min(self.0[i] ^ self.1);
    }
}

/// A step, and the values it takes.
pub(crate) type Taken<'a> = (CellStep, &'a [u64; BATCH]);

/// How many aggregates one loop takes at most.
pub(crate) const FUSED_MAX: usize = 4;

/// Updates the cells of the first aggregates, which stand side by side from `cells.at` on: for each
/// of the rows `rows`, those of its group. Returns how many aggregates it took; none where one loop
/// each is as good.
pub(crate) fn update(
    steps: &[Taken<'_>],
    rows: &[u16],
    groups: &[u32],
    cells: &mut Cells<'_>,
) -> usize {
    match (steps, cells.stride) {
        (
            [
                (CellStep::One, _),
                (CellStep::Add, x),
                (CellStep::Least(f), y),
                (CellStep::Least(g), z),
            ],
            8 | 16,
        ) => {
            let (first, second) = (Least(y, *f), Least(z, *g));
            let all = |[a, b, c, d]: &mut [u64; 4], i: usize| {
                One.update(a, i);
                Add(x).update(b, i);
                first.update(c, i);
                second.update(d, i);
            };
            match cells.stride {
                8 => each::<8, 4>(rows, groups, cells, all),
                _ => each::<16, 4>(rows, groups, cells, all),
            }
            4
        }
        ([first, second, ..], 4 | 8 | 16) => {
            match *first {
                (CellStep::One, _) => with(One, *second, rows, groups, cells),
                (CellStep::Add, x) => with(Add(x), *second, rows, groups, cells),
                (CellStep::Least(flip), x) => with(Least(x, flip), *second, rows, groups, cells),
            }
            2
        }
        _ => 0,
    }
}

fn with(
    first: impl Update,
    second: Taken<'_>,
    rows: &[u16],
    groups: &[u32],
    cells: &mut Cells<'_>,
) {
    match second {
        (CellStep::One, _) => two(first, One, rows, groups, cells),
        (CellStep::Add, x) => two(first, Add(x), rows, groups, cells),
        (CellStep::Least(flip), x) => two(first, Least(x, flip), rows, groups, cells),
    }
}

fn two(
    first: impl Update,
    second: impl Update,
    rows: &[u16],
    groups: &[u32],
    cells: &mut Cells<'_>,
) {
    let both = |[a, b]: &mut [u64; 2], i: usize| {
        first.update(a, i);
        second.update(b, i);
    };
    match cells.stride {
        4 => each::<4, 2>(rows, groups, cells, both),
        8 => each::<8, 2>(rows, groups, cells, both),
        _ => each::<16, 2>(rows, groups, cells, both),
    }
}

/// Calls `f` with `N` cells of each row's group, in table rows of `S` words, and the row.
#[inline(always)]
fn each<const S: usize, const N: usize>(
    rows: &[u16],
    groups: &[u32],
    cells: &mut Cells<'_>,
    f: impl Fn(&mut [u64; N], usize),
) {
    let n = groups.len().min(rows.len()).min(BATCH);
    let (rows, groups) = (&rows[..n], &groups[..n]);
    // Two loops: most batches are taken whole.
    if rows.last().is_some_and(|&last| usize::from(last) + 1 == n) {
        each_of::<S, N>(groups, |j| j, cells, f);
    } else {
        each_of::<S, N>(groups, |j| usize::from(rows[j]) & (BATCH - 1), cells, f);
    }
}

#[inline(always)]
fn each_of<const S: usize, const N: usize>(
    groups: &[u32],
    row: impl Fn(usize) -> usize,
    cells: &mut Cells<'_>,
    f: impl Fn(&mut [u64; N], usize),
) {
    let at = cells.at.min(S - N);
    let (table, _) = cells.rows.as_chunks_mut::<S>();
    for j in 0..groups.len().min(BATCH) {
        if let Some(cells) = table[groups[j] as usize][at..].first_chunk_mut::<N>() {
            f(cells, row(j));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step() -> impl Strategy<Value = CellStep> {
        prop_oneof![
            Just(CellStep::One),
            Just(CellStep::Add),
            any::<u64>().prop_map(CellStep::Least)
        ]
    }

    proptest! {
        #[test]
        fn together_or_one_by_one(
            mut steps in proptest::collection::vec(step(), 2..=4),
            flow_meter in any::<bool>(),
            chosen in proptest::collection::btree_set(0u16..BATCH as u16, 1..40),
            dense in any::<bool>(),
            (stride, at) in prop_oneof![Just((4, 1)), Just((8, 2)), Just((16, 5))],
            seed in any::<u64>(),
        ) {
            if flow_meter {
                steps = vec![CellStep::One, CellStep::Add, CellStep::Least(seed), CellStep::Least(!seed)];
            }
            let rows: Vec<u16> =
                if dense { (0..40).collect() } else { chosen.into_iter().collect() };
            let number = |n: u64| (n + 1).wrapping_mul(seed | 1) >> (n % 60);
            let groups: Vec<u32> = (0..rows.len() as u64).map(|j| (number(j) % 7) as u32).collect();
            let columns: Vec<[u64; BATCH]> = (0..steps.len() as u64)
                .map(|s| std::array::from_fn(|i| number(s * 1000 + i as u64)))
                .collect();
            let taken: Vec<Taken<'_>> = steps.iter().copied().zip(&columns).collect();
            // After a key of some words, as many steps as have room.
            let taken = &taken[..taken.len().min(stride - at)];
            let mut table: Vec<u64> = (0..7 * stride as u64).map(number).collect();
            let mut model = table.clone();
            let mut cells = Cells { rows: &mut table, stride, at };
            let n = update(taken, &rows, &groups, &mut cells);
            prop_assert!(n >= 2 && n <= taken.len());
            for (s, (step, values)) in taken[..n].iter().enumerate() {
                for (&i, &group) in rows.iter().zip(&groups) {
                    let cell = &mut model[group as usize * stride + at + s];
                    let value = values[i as usize];
                    *cell = match step {
                        CellStep::One => cell.wrapping_add(1),
                        CellStep::Add => cell.saturating_add(value),
                        CellStep::Least(flip) => (*cell).min(value ^ flip),
                    };
                }
            }
            prop_assert_eq!(table, model);
        }
    }
}
