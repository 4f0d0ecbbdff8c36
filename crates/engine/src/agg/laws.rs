//! The laws of aggregates, tested for each: identity, merging, order, encoding.

use super::{Aggregate, Cells, CellsRef, Finish, Input, build};
use crate::functions::{Functions, UserState};
use crate::rows::{Arena, cell, set_cell};
use proptest::prelude::*;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_plan::{Agg, AggFunc, Expr, ExprKind, Type, Value};

/// A value given to an aggregate, or none.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Absent,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Ip(u128),
    Duration(i64),
}

impl Given {
    fn value(&self) -> Value {
        match self {
            Given::Absent => Value::Absent,
            Given::Bool(b) => Value::Bool(*b),
            Given::Int(n) => Value::Int(*n),
            Given::Float(f) => Value::Float(*f),
            Given::Str(s) => Value::Str(s.as_str().into()),
            Given::Ip(a) => Value::Ip(*a),
            Given::Duration(n) => Value::Duration(*n),
        }
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
        let ty = match func {
            AggFunc::Count
            | AggFunc::Distinct
            | AggFunc::DistinctUpTo(_)
            | AggFunc::ApproxDistinct => Type::Int,
            AggFunc::Rate(_) | AggFunc::Variance | AggFunc::Entropy => Type::Float,
            AggFunc::Frequent(_) | AggFunc::Histogram => Type::Str,
            AggFunc::Avg | AggFunc::Stddev if *arg != Type::Duration => Type::Float,
            _ => arg.clone(),
        };
        let arg = Some(Expr { ty: arg.clone(), kind: ExprKind::Column(0) });
        let plan = Agg { name: "a".into(), func, arg, cond: None, ty: ty.clone() };
        let agg = build(std::slice::from_ref(&plan), &functions(), true);
        let mut cells = vec![0; agg.cells()];
        agg.fresh(&mut cells);
        Group { agg, cells, ty }
    }

    /// Takes rows that have the given numbers.
    fn update(&mut self, arg: &Type, rows: &[(u64, Given)]) {
        for batch in rows.chunks(200) {
            let (mut column, mut arena) = (Column::new(arg.repr()), Arena::default());
            let mut seq = [0; 200];
            for (i, (number, given)) in batch.iter().enumerate() {
                set_cell(&mut column, i, &given.value(), &mut arena);
                seq[i] = *number;
            }
            let positions: Vec<u16> = (0..batch.len() as u16).collect();
            let input = Input {
                rows: &positions,
                groups: &vec![0; batch.len()],
                columns: &[&column],
                counted: Some(column.present.and(Bits::first(batch.len()))),
                seq: &seq,
                arena: &arena,
                // There is one group; an aggregate may rely on it or not.
                lone: batch.len() % 2 == 0,
            };
            let stride = self.cells.len();
            self.agg.update(&input, &mut Cells { rows: &mut self.cells, stride, at: 0 });
        }
    }

    fn cells(&self) -> CellsRef<'_> {
        CellsRef { rows: &self.cells, stride: self.cells.len(), at: 0 }
    }

    fn merge(&mut self, other: &Group) {
        let stride = self.cells.len();
        let mut cells = Cells { rows: &mut self.cells, stride, at: 0 };
        self.agg.merge(&mut cells, &*other.agg, other.cells(), &[0]);
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.agg.encode(self.cells(), 0, &mut out);
        out
    }

    fn decode(&mut self, mut bytes: &[u8]) -> bool {
        let stride = self.cells.len();
        let mut cells = Cells { rows: &mut self.cells, stride, at: 0 };
        self.agg.decode(&mut cells, 0, &mut bytes) && bytes.is_empty()
    }

    fn result(&mut self) -> Value {
        let (mut column, mut arena) = (Column::new(self.ty.repr()), Arena::default());
        let stride = self.cells.len();
        self.agg.settle(CellsRef { rows: &self.cells, stride, at: 0 });
        let mut undefined = 0;
        let mut out = Finish { column: &mut column, arena: &mut arena, undefined: &mut undefined };
        self.agg.finish(self.cells(), &[0], &mut out);
        cell(&column, 0, &self.ty, &arena)
    }
}

/// A registered aggregate: the product modulo a prime.
struct Product(u64);

const PRIME: u64 = 1_000_003;

impl UserState for Product {
    fn update(&mut self, value: &Value) {
        if let Value::Int(n) = value {
            self.0 = self.0 * n.unsigned_abs().rem_euclid(PRIME) % PRIME;
        }
    }

    fn merge(&mut self, other: &dyn UserState) {
        let other = other.as_any().downcast_ref::<Product>().expect("a product");
        self.0 = self.0 * other.0 % PRIME;
    }

    fn finish(&self) -> Value {
        Value::Int(self.0 as i64)
    }

    fn encode(&self) -> Vec<u8> {
        self.0.to_le_bytes().into()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        bytes.try_into().map(|b| self.0 = u64::from_le_bytes(b)).is_ok()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn functions() -> Functions {
    let mut functions = Functions::default();
    functions.aggregate("product", Type::Int, Type::Int, || Box::new(Product(1)));
    functions
}

/// Whether two results are equal; floats up to rounding.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => {
            a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        }
        _ => a == b,
    }
}

fn whole(func: AggFunc, ty: &Type, rows: &[(u64, Given)]) -> Group {
    let mut group = Group::new(func, ty);
    group.update(ty, rows);
    group
}

/// The aggregate of `rows`, in this order, is `want`; and the laws hold for them.
pub(crate) fn check(func: AggFunc, ty: &Type, rows: &[Given], want: Value) {
    let rows: Vec<(u64, Given)> = (0..).zip(rows.iter().cloned()).collect();
    assert_eq!(whole(func, ty, &rows).result(), want, "{func:?} of {rows:?}");
    laws(func, ty, &rows, rows.len() / 2);
}

/// The result of `rows` cut at these places, each part by itself, all merged.
pub(crate) fn split(func: AggFunc, ty: &Type, rows: &[Given], cuts: &[usize]) -> Value {
    let rows: Vec<(u64, Given)> = (0..).zip(rows.iter().cloned()).collect();
    let mut all = Group::new(func, ty);
    let ends = cuts.iter().copied().chain([rows.len()]);
    ends.fold(0, |start, end| {
        all.merge(&whole(func, ty, &rows[start..end]));
        end
    });
    all.result()
}

/// Decodes the encoded state of `rows` with each of its first bytes changed: whatever it is taken
/// for, nothing panics.
pub(crate) fn fuzz_decode(func: AggFunc, ty: &Type, rows: &[Given]) {
    let rows: Vec<(u64, Given)> = (0..).zip(rows.iter().cloned()).collect();
    let bytes = whole(func, ty, &rows).encode();
    for at in 0..bytes.len().min(200) {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let mut group = whole(func, ty, &rows[..rows.len() / 2]);
            group.decode(&changed);
            group.result();
        }
    }
}

fn laws(func: AggFunc, ty: &Type, rows: &[(u64, Given)], cut: usize) {
    let want = whole(func, ty, rows).result();
    let same = |got: Value, law: &str| {
        assert!(equal(&got, &want), "{law}: {func:?} of {rows:?} gave {got}, not {want}");
    };
    let (a, b) = rows.split_at(cut.min(rows.len()));
    let (left, right) = (whole(func, ty, a), whole(func, ty, b));

    let mut split = whole(func, ty, a);
    split.merge(&right);
    same(split.result(), "split and merged");

    let mut swapped = whole(func, ty, b);
    swapped.merge(&left);
    same(swapped.result(), "merged the other way round");

    let mut with_nothing = Group::new(func, ty);
    with_nothing.merge(&whole(func, ty, rows));
    with_nothing.merge(&Group::new(func, ty));
    same(with_nothing.result(), "merged with nothing");

    let mut decoded = Group::new(func, ty);
    assert!(decoded.decode(&left.encode()), "decoding what was encoded");
    assert!(decoded.decode(&right.encode()), "decoding what was encoded");
    same(decoded.result(), "encoded and decoded");

    let bytes = left.encode();
    for n in 0..bytes.len() {
        assert!(!Group::new(func, ty).decode(&bytes[..n]), "{func:?}: a cut encoding");
    }
}

fn given(ty: &Type) -> BoxedStrategy<Given> {
    let some = match ty {
        Type::Bool => any::<bool>().prop_map(Given::Bool).boxed(),
        Type::Int => prop_oneof![-3i64..3, any::<i64>()].prop_map(Given::Int).boxed(),
        Type::Float => (-1e6..1e6f64).prop_map(Given::Float).boxed(),
        Type::Str => "[ab]{0,3}".prop_map(Given::Str).boxed(),
        Type::Ip => prop_oneof![
            (0u128..3).prop_map(|n| Given::Ip(0xffff_0a00_0000 + n)),
            (0u128..3).prop_map(|n| Given::Ip(n << 90)),
        ]
        .boxed(),
        Type::Duration => (-100i64..100).prop_map(Given::Duration).boxed(),
        other => panic!("no values of {other} here"),
    };
    prop_oneof![1 => Just(Given::Absent), 4 => some].boxed()
}

/// Every aggregate with every kind of argument it takes.
fn all() -> Vec<(AggFunc, Type)> {
    use AggFunc::*;
    let every = [Type::Bool, Type::Int, Type::Float, Type::Str, Type::Ip, Type::Duration];
    let ordered = &every[1..];
    let numeric = [Type::Int, Type::Float, Type::Duration];
    let with = |f: AggFunc, types: &[Type]| -> Vec<(AggFunc, Type)> {
        types.iter().map(|t| (f, t.clone())).collect()
    };
    [
        with(Count, &every),
        with(First, &every),
        with(Last, &every),
        with(Distinct, &every),
        with(ApproxDistinct, &every),
        with(DistinctUpTo(3), &every),
        with(Entropy, &every),
        with(Frequent(2), &every),
        with(Histogram, &every[1..2]),
        with(Quantile(500_000), &numeric),
        with(Quantile(990_000), &numeric),
        with(Min, ordered),
        with(Max, ordered),
        with(Sum, &numeric),
        with(Avg, &numeric),
        with(Variance, &numeric[..2]),
        with(Stddev, &numeric),
        with(Rate(2_000_000_000), &every[1..2]),
        with(Any, &every[..1]),
        with(All, &every[..1]),
        with(BitOr, &every[1..2]),
        with(User(0), &every[1..2]),
    ]
    .concat()
}

proptest! {
    #[test]
    fn the_laws_hold(
        (func, ty, rows, cut) in proptest::sample::select(all()).prop_flat_map(|(func, ty)| {
            let rows = proptest::collection::vec(given(&ty), 0..40);
            (Just(func), Just(ty), rows, 0usize..40)
        }),
    ) {
        let rows: Vec<(u64, Given)> = (0..).zip(rows).collect();
        laws(func, &ty, &rows, cut);
    }

    #[test]
    fn decoding_any_bytes_is_harmless(
        (func, ty) in proptest::sample::select(all()),
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        Group::new(func, &ty).decode(&bytes);
    }
}
