//! Any bytes as the partial result of an aggregate.

use super::{Aggregate, Cells, CellsRef, Finish, build};
use crate::functions::Functions;
use crate::peers::{BuildContext, Peers};
use crate::rows::{Arena, cell};
use crate::table::HashKey;
use std::sync::LazyLock;
use weir_packet::column::Column;
use weir_plan::aggregates::{AGGREGATES, BuiltinAggregate};
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type, Value};

/// Every built-in aggregate of an argument, with every type of one.
static ALL: LazyLock<Vec<(AggFunc, Type)>> = LazyLock::new(|| {
    let types = |row: &BuiltinAggregate| row.argument_types().into_iter();
    AGGREGATES.iter().flat_map(|row| types(row).map(|ty| (row.func, ty))).collect()
});

/// An argument that is no packet field: any value of its type may come.
pub(super) fn argument(ty: &Type) -> Expr {
    let Type::Tuple(parts) = ty else { return Expr::column(0, ty.clone()) };
    let parts = parts.iter().enumerate().map(|(i, ty)| Expr::column(i, ty.clone()));
    Expr { ty: ty.clone(), kind: ExprKind::Tuple(parts.collect()) }
}

/// Takes the first byte as an aggregate, the second as where to cut, and the rest as one or two
/// partial results of it. Bytes that are refused leave a group as it was; bytes that are taken give
/// a result, and the group that is written has the same result and is read whole. Panics where that
/// is not so.
pub fn fuzz_partial(data: &[u8]) {
    let Some((&[which, cut], bytes)) = data.split_first_chunk() else { return };
    let (func, arg) = &ALL[usize::from(which) % ALL.len()];
    let (first, second) = bytes.split_at(usize::from(cut).min(bytes.len()));
    let mut group = Group::new(*func, arg);
    for part in [first, second] {
        let (before, mut rest) = (group.written(), part);
        if !group.read(&mut rest) {
            assert_eq!(group.written(), before, "{func:?}: refused, and changed");
            continue;
        }
        let written = group.written();
        let (mut again, mut rest) = (Group::new(*func, arg), &written[..]);
        assert!(again.read(&mut rest) && rest.is_empty(), "{func:?}: not read back");
        let (result, of_again) = (group.result(), again.result());
        assert!(same(&result, &of_again), "{func:?}: {result} became {of_again}");
    }
}

/// Whether two results are the same: also where both are no number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b || a.is_nan() && b.is_nan(),
        (a, b) => a == b,
    }
}

/// One group of one aggregate.
struct Group {
    agg: Box<dyn Aggregate>,
    cells: Vec<u64>,
    ty: Type,
}

impl Group {
    fn new(func: AggFunc, arg: &Type) -> Group {
        let ty = func.result(Some(arg)).expect("it takes this argument");
        let arg = Some(argument(arg));
        let plan = Agg { name: String::new(), func, arg, cond: None, ty: ty.clone() };
        let functions = &Functions::default();
        let with = BuildContext {
            functions,
            hash_key: HashKey::new(7, 9),
            peers: Peers::None,
            room: None,
        };
        let agg = build(&[plan], with, true);
        let mut cells = vec![0; agg.cells()];
        agg.fresh(&mut cells);
        Group { agg, cells, ty }
    }

    fn read(&mut self, bytes: &mut &[u8]) -> bool {
        let stride = self.cells.len();
        self.agg.decode(&mut Cells { rows: &mut self.cells, stride, at: 0 }, 0, bytes)
    }

    fn written(&self) -> Vec<u8> {
        let mut out = super::States::default();
        let cells = CellsRef { rows: &self.cells, stride: self.cells.len(), at: 0 };
        self.agg.encode(cells, &[0], &mut out);
        out.bytes
    }

    fn result(&mut self) -> Value {
        let cells = CellsRef { rows: &self.cells, stride: self.cells.len(), at: 0 };
        self.agg.settle(cells);
        let (mut column, mut arena) = (Column::new(self.ty.repr()), Arena::default());
        let mut undefined = 0;
        let mut out =
            Finish { column: &mut column, arena: &mut arena, undefined: &mut undefined, result: 0 };
        let cells = CellsRef { rows: &self.cells, stride: self.cells.len(), at: 0 };
        self.agg.finish(cells, &[0], &mut out);
        cell(&column, 0, &self.ty, &arena)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Class;
    use proptest::prelude::*;

    /// Counts of integers as bytes: how many there are, then of each its count and its value.
    fn counts(values: &[(u64, i64)]) -> Vec<u8> {
        let mut bytes = (values.len() as u32).to_le_bytes().to_vec();
        for &(times, value) in values {
            bytes.extend_from_slice(&times.to_le_bytes());
            bytes.push(1);
            bytes.extend_from_slice(&Class::Signed.ordered(value as u64).to_be_bytes());
        }
        bytes
    }

    fn group(func: AggFunc, bytes: &[u8]) -> Option<Group> {
        let mut group = Group::new(func, &Type::Int);
        let mut rest = bytes;
        (group.read(&mut rest) && rest.is_empty()).then_some(group)
    }

    /// The least and the greatest value, then counts.
    fn rounded(least: i64, most: i64, values: &[(u64, i64)]) -> Vec<u8> {
        let head = [least, most].map(|n| Class::Signed.ordered(n as u64).to_le_bytes());
        [&head.concat()[..], &counts(values)].concat()
    }

    #[test]
    fn counts_too_large_to_add_up() {
        let half = 1 << 63;
        let values = [(half, 4), (half, 5)];
        let result = |func, bytes: &[u8]| group(func, bytes).map(|mut g| g.result());
        assert!(result(AggFunc::Entropy, &counts(&values)).is_some());
        let median = result(AggFunc::Quantile(500_000), &rounded(4, 5, &values));
        assert_eq!(median, Some(Value::Int(4)));
    }

    #[test]
    fn a_quantile_beside_its_minimum_and_maximum() {
        let takes = |least: i64, most: i64, values: &[i64]| {
            let values: Vec<_> = values.iter().map(|&v| (1, v)).collect();
            let bytes = rounded(least, most, &values);
            group(AggFunc::Quantile(500_000), &bytes).is_some()
        };
        assert!(takes(-3, 70_000, &[-3, 5, 69_952, 70_016]));
        assert!(!takes(-3, 4, &[-3, 5]) && !takes(-2, 5, &[-3, 5]), "values outside");
        assert!(!takes(0, 70_000, &[5, 69_999]), "a value that is not rounded");
        assert!(!takes(5, 4, &[5]) && !takes(0, 0, &[]), "none of a group");
        assert!(takes(i64::MAX, i64::MIN, &[]), "those of an empty one");
    }

    #[test]
    fn values_that_are_never_written_so() {
        let takes = |values: &[(u64, i64)]| group(AggFunc::Histogram, &counts(values)).is_some();
        assert!(takes(&[(7, 5)]) && takes(&[(7, -5), (1, 5)]));
        assert!(!takes(&[(0, 5)]), "a value that never came");
        assert!(!takes(&[(7, 5), (1, 5)]), "one value twice");
        assert!(!takes(&[(7, 5), (1, -5)]), "values that fall");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: ProptestConfig::default().cases.max(2000),
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_bytes_hold(
            which in 0..ALL.len() as u8,
            cut: u8,
            words in proptest::collection::vec(
                prop_oneof![0u64..4, any::<u64>(), Just(f64::NAN.to_bits()), Just(1 << 63)], 0..12,
            ),
            tail in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let words = words.iter().flat_map(|word| word.to_le_bytes());
            fuzz_partial(&[which, cut].into_iter().chain(words).chain(tail).collect::<Vec<_>>());
        }

        #[test]
        fn any_numbers_of_small_bytes_hold(
            which in 0..ALL.len() as u8,
            cut: u8,
            bytes in proptest::collection::vec(prop_oneof![3 => 0u8..5, 1 => any::<u8>()], 0..90),
        ) {
            fuzz_partial(&[&[which, cut][..], &bytes].concat());
        }
    }
}
