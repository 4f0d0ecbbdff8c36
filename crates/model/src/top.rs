//! `top` of the naive model.

use super::context::StageContext;
use super::row::{Mark, Row};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::{Order, Per, SortKey, Value};

impl StageContext<'_> {
    /// The values that a `top` sorts a row by, its key first; `None`, and counted, if there is no
    /// room for that key.
    pub(super) fn top_keys(
        &mut self,
        (by, per): (&[SortKey], Option<&Per>),
        windowed: bool,
        held: &[(Vec<Value>, Row)],
        row: &Row,
    ) -> Option<Vec<Value>> {
        let keys = per.iter().flat_map(|per| &per.keys).chain(by.iter().map(|k| &k.expr));
        let keys: Vec<_> = keys.map(|k| self.eval.eval(k, row, &[])).collect();
        if let Some(per) = per {
            let parts = per.keys.len();
            let known: BTreeSet<_> = held
                .iter()
                .filter(|(_, other)| !windowed || other.ts == row.ts)
                .map(|(keys, _)| &keys[..parts])
                .collect();
            if !known.contains(&keys[..parts]) && known.len() as u64 >= per.max_keys {
                self.evicted += 1;
                return None;
            }
        }
        Some(keys)
    }
}

/// The first `n` of each key in the order of the sort keys, by key.
pub(super) fn top_of_keys(
    n: u64,
    by: &[SortKey],
    per: Option<&Per>,
    held: Vec<(Vec<Value>, Row)>,
) -> Vec<Row> {
    let Some(per) = per else { return top(n, by, held) };
    let mut groups: BTreeMap<Vec<Value>, Vec<(Vec<Value>, Row)>> = BTreeMap::new();
    for (mut keys, row) in held {
        let rest = keys.split_off(per.keys.len());
        groups.entry(keys).or_default().push((rest, row));
    }
    groups.into_values().flat_map(|rows| top(n, by, rows)).collect()
}

/// The first `n` in the order of the sort keys, else in the order they came.
fn top(n: u64, by: &[SortKey], mut held: Vec<(Vec<Value>, Row)>) -> Vec<Row> {
    held.sort_by(|(a, _), (b, _)| {
        let parts = by.iter().zip(a.iter().zip(b));
        parts.fold(Ordering::Equal, |so_far, (key, (a, b))| {
            so_far.then(match (a.exists() && b.exists(), key.order) {
                (true, Order::Ascending) => a.cmp(b),
                _ => b.cmp(a), // absent is the least value, so here it comes last
            })
        })
    });
    held.into_iter().take(n.try_into().unwrap_or(usize::MAX)).map(|(_, row)| row).collect()
}

/// Takes out the windows that start before the watermark, and the first `n` of each.
pub(super) fn top_of_windows(
    n: u64,
    by: &[SortKey],
    per: Option<&Per>,
    held: &mut Vec<(Vec<Value>, Row)>,
    mark: Mark,
) -> Vec<Row> {
    let mut windows: BTreeMap<Option<i64>, Vec<(Vec<Value>, Row)>> = BTreeMap::new();
    for (keys, row) in std::mem::take(held) {
        let start = row.ts;
        match mark == Mark::End || start.is_some_and(|start| Mark::At(start) < mark) {
            true => windows.entry(start).or_default().push((keys, row)),
            false => held.push((keys, row)),
        }
    }
    windows.into_values().flat_map(|rows| top_of_keys(n, by, per, rows)).collect()
}
