//! `distinct(x, limit)`: how many different values, exactly up to a limit, by a sketch beyond it.
//!
//! | | |
//! |---|---|
//! | Syntax | `distinct(x, limit)`, `distinct((x, y), limit)`, each also with `where condition` |
//! | Takes | any type, tuples too; a tuple counts where any of its parts has a value |
//! | Type | int; and a bool: a column `NAME_exact` says whether the row is within the limit, and so exact |
//! | Over nothing | 0 |
//! | Full | beyond 256 Mi values of all groups together a new one is left out, and counted as evicted; a group beyond the limit that finds no room among 1 Mi sketches is counted exactly on |
//! | State | 16 bytes a group, 14 to 64 bytes a different value up to the limit, and at most 4.2 KB for a group beyond it |
//! | Merge | union; sketches register by register, the larger |
//! | Exact? | exact up to the limit; beyond as `approx_distinct`, and above the limit in any case |
//!
//! A group counts as `distinct` does until it has more values than the limit; from then on further
//! values go to its sketch. The values it had are added at the end. So the sketch is that of all
//! values, whichever came first, and neither their order nor the number of workers can matter.

use super::approx_distinct::{ApproxDistinct, DENSE_BYTES, estimate, read_sketch, sketch, union};
use super::bytes::{read_bytes, write_bytes};
use super::distinct::Distinct;
use super::{Aggregate, Cells, CellsRef, Finish, Hints, Input, StateKind, States};
use crate::key::KeyPart;
use crate::limits::SKETCHES_MAX;
use crate::table::{HashKey, NO_ROW};
use datasketches::hll::HllSketch;
use std::any::Any;
use weir_packet::bits::Bits;
use weir_packet::limits::BATCH;
use weir_plan::Expr;

/// Cells: how many values `exact` holds of the group; one more than the number of its sketch, 0 as
/// long as it has none.
pub(super) struct DistinctUpTo {
    limit: u64,
    exact: Distinct,
    /// Says what goes into a sketch for a value.
    approx: ApproxDistinct,
    sketches: Vec<HllSketch>,
}

impl DistinctUpTo {
    pub(super) fn new(limit: u64, parts: &[&Expr], hash_key: HashKey) -> DistinctUpTo {
        DistinctUpTo {
            limit,
            exact: Distinct::new(parts.iter().map(|part| KeyPart::of(part)).collect(), hash_key),
            approx: ApproxDistinct::new(parts.iter().map(|part| part.ty.clone())),
            sketches: Vec::new(),
        }
    }

    /// Gives a group that has passed the limit a sketch.
    #[inline(always)]
    fn watch(&mut self, [count, number]: &mut [u64; 2]) {
        if *count > self.limit && *number == 0 {
            self.keep(number, sketch());
        }
    }

    #[cold]
    fn keep(&mut self, number: &mut u64, new: HllSketch) {
        if self.sketches.len() < SKETCHES_MAX {
            self.put(number, new);
        }
    }

    fn put(&mut self, number: &mut u64, new: HllSketch) {
        self.sketches.push(new);
        *number = self.sketches.len() as u64;
    }

    /// Takes another worker's sketch in, beyond the bound too: it holds values that stand nowhere
    /// else, and each worker held to the bound.
    fn take_sketch(&mut self, number: &mut u64, theirs: &HllSketch) {
        match number.checked_sub(1) {
            None => self.put(number, theirs.clone()),
            Some(at) => {
                let mine = &mut self.sketches[at as usize];
                *mine = union(mine, theirs);
            }
        }
    }
}

/// The rows that count, those of groups without and with a sketch.
fn apart(input: &Input<'_>, cells: &mut Cells<'_>) -> [Bits; 2] {
    let mut rows = [Bits::NONE; 2];
    input.each(|group, i| rows[(cells.of::<2>(group)[1] > 0) as usize].set(i));
    rows
}

impl Aggregate for DistinctUpTo {
    fn cells(&self) -> usize {
        2
    }

    fn fresh(&self, cells: &mut [u64]) {
        cells.fill(0);
    }

    fn update(&mut self, input: &Input<'_>, cells: &mut Cells<'_>) {
        let [exact, beyond] = apart(input, cells);
        let of = |rows| Input { counted: Some(rows), ..*input };
        if !exact.is_empty() {
            let input = of(exact);
            self.exact.update(&input, cells);
            input.each(|group, _| self.watch(cells.of(group)));
        }
        if !beyond.is_empty() {
            let (input, mut items) = (of(beyond), [0; BATCH]);
            self.approx.items(&input, &mut items);
            input.each(|group, i| {
                let at = cells.of::<2>(group)[1] as usize - 1;
                self.sketches[at].update(items[i & (BATCH - 1)]);
            });
        }
    }

    fn merge(
        &mut self,
        cells: &mut Cells<'_>,
        other: &dyn Aggregate,
        theirs: CellsRef<'_>,
        map: &[u32],
    ) {
        let other = other.as_any().downcast_ref::<Self>().expect("the same aggregate");
        self.exact.merge(cells, &other.exact, theirs, map);
        for (there, &here) in map.iter().enumerate().filter(|(_, here)| **here != NO_ROW) {
            if let Some(at) = theirs.of::<2>(there as u32)[1].checked_sub(1) {
                self.take_sketch(&mut cells.of::<2>(here)[1], &other.sketches[at as usize]);
            }
            self.watch(cells.of(here));
        }
    }

    fn hints(&self) -> Hints {
        Hints::TABLE
    }

    fn settle(&mut self, cells: CellsRef<'_>) {
        let DistinctUpTo { exact, sketches, .. } = self;
        if !sketches.is_empty() {
            exact.each_item(|group, item| {
                if let Some(at) = cells.of::<2>(group)[1].checked_sub(1) {
                    sketches[at as usize].update(item);
                }
            });
        }
    }

    fn finish(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut Finish<'_>) {
        let counts = out.column.word_mut();
        for (result, &group) in counts.iter_mut().zip(groups) {
            let &[count, number] = cells.of::<2>(group);
            *result = match number.checked_sub(1) {
                None => count,
                Some(at) => estimate(&self.sketches[at as usize]).max(self.limit + 1),
            };
        }
        out.column.present = out.column.present.or(Bits::first(groups.len()));
    }

    fn kind(&self) -> StateKind {
        StateKind::ValuesOrSketch
    }

    fn encode(&self, cells: CellsRef<'_>, groups: &[u32], out: &mut States) {
        self.exact.gathered(groups).write(false, out, |place, out| {
            let number = cells.of::<2>(groups[place])[1].checked_sub(1);
            let bytes = number.map(|at| self.sketches[at as usize].serialize());
            write_bytes(&bytes.unwrap_or_default(), out);
        });
    }

    fn decode(&mut self, cells: &mut Cells<'_>, group: u32, from: &mut &[u8]) -> bool {
        let mut rest = *from;
        let Some(bytes) = read_bytes(&mut rest) else { return false };
        let read = match bytes.is_empty() {
            true => None,
            false => match read_sketch(bytes) {
                None => return false,
                read => read,
            },
        };
        if !self.exact.decode(cells, group, &mut rest) {
            return false;
        }
        *from = rest;
        if let Some(read) = read {
            self.take_sketch(&mut cells.of::<2>(group)[1], &read);
        }
        self.watch(cells.of(group));
        true
    }

    fn clear(&mut self) {
        self.exact.clear();
        self.sketches.clear();
    }

    fn aside(&self) -> usize {
        self.exact.aside() + self.sketches.len() * DENSE_BYTES
    }

    fn evicted(&self) -> u64 {
        self.exact.evicted()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::agg::laws::{Given, check, fuzz_decode, split};
    use crate::ops::testing::{agg, field, summarize};
    use crate::tests::check_stages;
    use weir_plan::{AggFunc, Type, Value, Window};

    #[test]
    fn exact_up_to_the_limit_and_above_it_beyond() {
        let d = AggFunc::DistinctUpTo;
        let rows: Vec<Given> = (0..60).map(|i| Given::Int(i % 20)).collect();
        for limit in [5, 19, 20, 1000] {
            check(d(limit), &Type::Int, &rows, Value::Int(20));
        }
        check(d(5), &Type::Int, &[], Value::Int(0));
        let names = ["a", "b", "a", "c", "d"].map(|s| Given::Str(s.into()));
        check(d(2), &Type::Str, &names, Value::Int(4));
        let ips = [1, 1 << 90, 0xffff_0a00_0001, 0xffff_0a00_0001].map(Given::Ip);
        check(d(1), &Type::Ip, &ips, Value::Int(3));
        fuzz_decode(d(5), &Type::Int, &rows);
    }

    #[test]
    fn it_is_the_sketch_of_all_values_however_they_are_split() {
        let rows: Vec<Given> = (0..50_000).map(Given::Int).collect();
        let all = split(AggFunc::ApproxDistinct, &Type::Int, &rows, &[]);
        for limit in [10, 1_000, 30_000] {
            for cuts in [&[][..], &[5], &[900, 20_000], &[25_000]] {
                assert_eq!(split(AggFunc::DistinctUpTo(limit), &Type::Int, &rows, cuts), all);
            }
        }
        let exact = split(AggFunc::DistinctUpTo(50_000), &Type::Int, &rows, &[7]);
        assert_eq!(exact, Value::Int(50_000));
    }

    #[test]
    fn any_number_of_workers_gives_the_model() {
        for window in [Window::All, Window::Tumbling(1_000_000_000)] {
            for key in [&["dport"][..], &[]] {
                let of = |limit, name| agg(AggFunc::DistinctUpTo(limit), Some(field(name)));
                let aggs = vec![of(4, "len"), of(1, "ip.src"), of(100, "len"), of(1, "tcp.syn")];
                check_stages(vec![summarize(key, aggs, window)]);
            }
        }
    }
}
