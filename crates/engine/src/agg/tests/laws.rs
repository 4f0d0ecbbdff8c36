//! The laws of aggregates, tested for each: identity, merging, order, encoding.

use super::fuzz::argument;
use super::{Aggregate, Cells, CellsRef, Finish, Input, build};
use crate::functions::{Functions, UserState};
use crate::ops::testing::field;
use crate::peers::{BuildContext, Peers};
use crate::rows::{Arena, cell, set_cell};
use crate::table::HashKey;
use proptest::prelude::*;
use weir_packet::bits::Bits;
use weir_packet::column::Column;
use weir_plan::aggregates::{AGGREGATES, RowOrder};
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
    Bytes(Vec<u8>),
    Mac(u64),
    Time(i64),
    Duration(i64),
    Tuple(Vec<Given>),
}

impl Given {
    fn value(&self) -> Value {
        match self {
            Given::Absent => Value::Absent,
            Given::Bool(b) => Value::Bool(*b),
            Given::Int(n) => Value::Int(*n),
            // Of a column, where 0 has no sign.
            Given::Float(f) => Value::Float(*f + 0.0),
            Given::Str(s) => Value::Str(s.as_str().into()),
            Given::Ip(a) => Value::Ip(*a),
            Given::Bytes(b) => Value::Bytes(b.as_slice().into()),
            Given::Mac(a) => Value::Mac(*a),
            Given::Time(n) => Value::Time(*n),
            Given::Duration(n) => Value::Duration(*n),
            // A tuple is there where any of its parts is.
            Given::Tuple(parts) => match parts.iter().map(Given::value).collect::<Vec<_>>() {
                parts if parts.iter().any(Value::exists) => Value::Tuple(parts),
                _ => Value::Absent,
            },
        }
    }
}

/// The groups of one aggregate: that of number 0, to which the laws apply, and one beside it, so
/// that a value which gets into the wrong group is seen.
struct Group {
    agg: Box<dyn Aggregate>,
    cells: Vec<u64>,
    ty: Type,
}

/// How many groups there are.
const GROUPS: usize = 2;

/// The aggregate of an argument.
fn plan(func: AggFunc, arg: &Expr) -> Agg {
    let ty = match func {
        AggFunc::User(_) => Type::Int,
        func => func.result(Some(&arg.ty)).expect("it takes this argument"),
    };
    Agg { name: "a".into(), func, arg: Some(arg.clone()), cond: None, ty }
}

impl Group {
    fn new(func: AggFunc, arg: &Expr) -> Group {
        let plan = plan(func, arg);
        let functions = &functions();
        let with =
            BuildContext { functions, hash_key: HashKey::random(), peers: Peers::None, room: None };
        let agg = build(std::slice::from_ref(&plan), with, true);
        let words = agg.cells();
        let mut cells = vec![0; words * GROUPS];
        (0..GROUPS).for_each(|group| agg.fresh(&mut cells[words * group..][..words]));
        Group { agg, cells, ty: plan.ty }
    }

    /// Takes rows that have the given numbers.
    fn update(&mut self, ty: &Type, rows: &[(u64, Given)]) {
        let both: Vec<_> = rows.iter().cloned().map(|row| (row, 0)).collect();
        self.update_both(ty, &both);
    }

    /// Takes rows of several groups.
    fn update_both(&mut self, ty: &Type, rows: &[((u64, Given), u32)]) {
        for batch in rows.chunks(200) {
            let types = match ty {
                Type::Tuple(types) => &types[..],
                one => std::slice::from_ref(one),
            };
            let mut columns: Vec<_> = types.iter().map(|ty| Column::new(ty.repr())).collect();
            let (mut seq, mut arena) = ([0; 200], Arena::default());
            for (i, ((number, given), _)) in batch.iter().enumerate() {
                let parts = match given {
                    Given::Tuple(parts) => &parts[..],
                    one => std::slice::from_ref(one),
                };
                for (column, part) in columns.iter_mut().zip(parts) {
                    set_cell(column, i, &part.value(), &mut arena);
                }
                seq[i] = *number;
            }
            let columns: Vec<&Column> = columns.iter().collect();
            let present = columns.iter().fold(Bits::NONE, |any, column| any.or(column.present));
            let positions: Vec<u16> = (0..batch.len() as u16).collect();
            let groups: Vec<u32> = batch.iter().map(|(_, group)| *group).collect();
            let input = Input {
                rows: &positions,
                groups: &groups,
                columns: &columns,
                counted: Some(present.and(Bits::first(batch.len()))),
                seq: &seq,
                frames: None,
                arena: &arena,
                // Where there is one group, an aggregate may rely on it or not.
                lone: batch.len() % 2 == 0 && groups.iter().all(|group| *group == 0),
            };
            let stride = self.stride();
            self.agg.update(&input, &mut Cells { rows: &mut self.cells, stride, at: 0 });
        }
    }

    fn stride(&self) -> usize {
        self.cells.len() / GROUPS
    }

    fn cells(&self) -> CellsRef<'_> {
        CellsRef { rows: &self.cells, stride: self.stride(), at: 0 }
    }

    fn merge(&mut self, other: &Group) {
        let stride = self.stride();
        let mut cells = Cells { rows: &mut self.cells, stride, at: 0 };
        self.agg.merge(&mut cells, &*other.agg, other.cells(), &[0, 1]);
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = super::States::default();
        self.agg.encode(self.cells(), &[0], &mut out);
        out.bytes
    }

    fn decode(&mut self, mut bytes: &[u8]) -> bool {
        let stride = self.stride();
        let mut cells = Cells { rows: &mut self.cells, stride, at: 0 };
        self.agg.decode(&mut cells, 0, &mut bytes) && bytes.is_empty()
    }

    fn result(&mut self) -> Value {
        self.result_of(0)
    }

    fn result_of(&mut self, group: u32) -> Value {
        let (mut column, mut arena) = (Column::new(self.ty.repr()), Arena::default());
        let stride = self.stride();
        self.agg.settle(CellsRef { rows: &self.cells, stride, at: 0 });
        let mut undefined = 0;
        let mut out =
            Finish { column: &mut column, arena: &mut arena, undefined: &mut undefined, result: 0 };
        self.agg.finish(self.cells(), &[group], &mut out);
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
            // `-0.0` would be another key, and is written otherwise.
            (*a != 0.0 || *b != 0.0 || a.to_bits() == b.to_bits())
                && (a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0))
        }
        _ => a == b,
    }
}

fn whole(func: AggFunc, arg: &Expr, rows: &[(u64, Given)]) -> Group {
    let mut group = Group::new(func, arg);
    group.update(&arg.ty, rows);
    group
}

/// The aggregate of `rows`, in this order, is `want`; and the laws hold for them.
pub(crate) fn check(func: AggFunc, ty: &Type, rows: &[Given], want: Value) {
    let rows: Vec<(u64, Given)> = (0..).zip(rows.iter().cloned()).collect();
    assert_eq!(whole(func, &argument(ty), &rows).result(), want, "{func:?} of {rows:?}");
    laws(func, &argument(ty), &rows, rows.len() / 2);
}

/// The result of `rows` cut at these places, each part by itself, all merged.
pub(crate) fn split(func: AggFunc, ty: &Type, rows: &[Given], cuts: &[usize]) -> Value {
    let rows: Vec<(u64, Given)> = (0..).zip(rows.iter().cloned()).collect();
    let arg = &argument(ty);
    let mut all = Group::new(func, arg);
    let ends = cuts.iter().copied().chain([rows.len()]);
    ends.fold(0, |start, end| {
        all.merge(&whole(func, arg, &rows[start..end]));
        end
    });
    all.result()
}

/// Decodes the encoded state of `rows` with each of its first bytes changed: whatever it is taken
/// for, nothing panics.
pub(crate) fn fuzz_decode(func: AggFunc, ty: &Type, rows: &[Given]) {
    let rows: Vec<(u64, Given)> = (0..).zip(rows.iter().cloned()).collect();
    let arg = &argument(ty);
    let bytes = whole(func, arg, &rows).encode();
    for at in 0..bytes.len().min(200) {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let mut group = whole(func, arg, &rows[..rows.len() / 2]);
            group.decode(&changed);
            group.result();
        }
    }
}

/// The result of the naive model for the rows.
fn naive(func: AggFunc, arg: &Expr, rows: &[(u64, Given)]) -> Value {
    let values = rows.iter().map(|(_, given)| given.value()).filter(Value::exists);
    weir_model::aggregate(&plan(func, arg), &functions(), &values.collect::<Vec<_>>())
}

fn laws(func: AggFunc, arg: &Expr, rows: &[(u64, Given)], cut: usize) {
    let want = whole(func, arg, rows).result();
    let same = |got: Value, law: &str| {
        assert!(equal(&got, &want), "{law}: {func:?} of {rows:?} gave {got}, not {want}");
    };
    same(naive(func, arg, rows), "in the naive model");
    let (a, b) = rows.split_at(cut.min(rows.len()));
    let (left, right) = (whole(func, arg, a), whole(func, arg, b));

    let mut apart = Group::new(func, arg);
    let number = |(i, row): (usize, &(u64, Given))| (row.clone(), u32::from(i >= a.len()));
    let both: Vec<_> = rows.iter().enumerate().map(number).collect();
    apart.update_both(&arg.ty, &both);
    for (group, own) in [(0, a), (1, b)] {
        let (got, want) = (apart.result_of(group), whole(func, arg, own).result());
        assert!(equal(&got, &want), "beside others: {func:?} of {own:?} gave {got}, not {want}");
    }

    let mut split = whole(func, arg, a);
    split.merge(&right);
    same(split.result(), "split and merged");

    let mut swapped = whole(func, arg, b);
    swapped.merge(&left);
    same(swapped.result(), "merged the other way round");

    let mut with_nothing = Group::new(func, arg);
    with_nothing.merge(&whole(func, arg, rows));
    with_nothing.merge(&Group::new(func, arg));
    same(with_nothing.result(), "merged with nothing");

    let mut decoded = Group::new(func, arg);
    assert!(decoded.decode(&left.encode()), "decoding what was encoded");
    assert!(decoded.decode(&right.encode()), "decoding what was encoded");
    same(decoded.result(), "encoded and decoded");

    let bytes = left.encode();
    if func == AggFunc::Distinct {
        // Each state hashes with a secret of its own, of which bytes tell nothing.
        assert_eq!(whole(func, arg, a).encode(), bytes, "the same values, and other bytes");
    }
    for n in 0..bytes.len() {
        assert!(!Group::new(func, arg).decode(&bytes[..n]), "{func:?}: a cut encoding");
    }
}

/// Values of an argument, those at the edges of its width as often as others.
fn given(func: AggFunc, arg: &Expr) -> BoxedStrategy<Given> {
    if let ExprKind::Tuple(parts) = &arg.kind {
        let parts: Vec<_> = parts.iter().map(|part| given(func, part)).collect();
        return parts.prop_map(Given::Tuple).boxed();
    }
    let some = match (&arg.ty, &arg.kind) {
        (Type::Bool, _) => any::<bool>().prop_map(Given::Bool).boxed(),
        (Type::Int, ExprKind::Field(id)) => {
            field_values(id.info().bits).prop_map(Given::Int).boxed()
        }
        (Type::Int, _) => words().prop_map(Given::Int).boxed(),
        // An aggregate that adds floats up rounds, and may leave their range in one order and not
        // in another.
        (Type::Float, _) if func.order() == RowOrder::Rounds => {
            (-1e6..1e6f64).prop_map(Given::Float).boxed()
        }
        (Type::Float, _) => floats().prop_map(Given::Float).boxed(),
        (Type::Str, _) => "[ab]{0,3}".prop_map(Given::Str).boxed(),
        (Type::Ip, _) => prop_oneof![
            (0u128..3).prop_map(|n| Given::Ip(0xffff_0a00_0000 + n)),
            (0u128..3).prop_map(|n| Given::Ip(n << 90)),
            proptest::sample::select(vec![
                Given::Ip(0),
                Given::Ip(0xffff_0000_0000),
                Given::Ip(0xffff_ffff_ffff),
                Given::Ip(0x1_0000_0000_0000),
                Given::Ip(u128::MAX - 1),
                Given::Ip(u128::MAX),
            ]),
        ]
        .boxed(),
        (Type::Duration, _) => prop_oneof![-100i64..100, words()].prop_map(Given::Duration).boxed(),
        (Type::Time, _) => prop_oneof![-100i64..100, words()].prop_map(Given::Time).boxed(),
        (Type::Mac, _) => field_values(48).prop_map(|n| Given::Mac(n as u64)).boxed(),
        (Type::Bytes, _) => proptest::collection::vec(0u8..3, 0..3).prop_map(Given::Bytes).boxed(),
        (other, _) => panic!("no values of {other} here"),
    };
    prop_oneof![1 => Just(Given::Absent), 4 => some].boxed()
}

/// Values of a field of so many bits.
fn field_values(bits: u8) -> impl Strategy<Value = i64> {
    let most = (1i64 << bits) - 1;
    let edges = [0, 1, most / 2, most / 2 + 1, most - 1, most];
    prop_oneof![proptest::sample::select(edges.to_vec()), 0..=most, Just(most)]
}

/// Words with a sign.
fn words() -> impl Strategy<Value = i64> {
    let edges = [0, 1, 65_535, 65_536, 1 << 32, 1 << 52, i64::MAX - 1, i64::MAX];
    let both = edges.into_iter().flat_map(|n| [n, -n]).chain([i64::MIN]).collect::<Vec<_>>();
    prop_oneof![-3i64..3, any::<i64>(), proptest::sample::select(both)]
}

/// Floats of every size, none infinite.
fn floats() -> impl Strategy<Value = f64> {
    let edges = [0.0, 1.0, 2047.0, 2049.0, f64::MIN_POSITIVE, 5e-324, 1e300, f64::MAX];
    let both = edges.into_iter().flat_map(|f| [f, -f]).collect::<Vec<_>>();
    prop_oneof![-1e6..1e6f64, proptest::sample::select(both)]
}

/// Every aggregate with every kind of argument it takes, and with fields of several widths.
fn all() -> Vec<(AggFunc, Expr)> {
    let fields = ["ip.ttl", "tcp.window", "tcp.flags", "ipv6.flow_label", "tcp.seq", "ip.src"];
    let fields = fields.map(field);
    let mut all = vec![(AggFunc::User(0), argument(&Type::Int))];
    for row in AGGREGATES {
        let funcs = match row.func {
            AggFunc::Quantile(q) => {
                vec![q, 0, 1_000_000].into_iter().map(AggFunc::Quantile).collect()
            }
            AggFunc::DistinctUpTo(_) => vec![AggFunc::DistinctUpTo(3)],
            func => vec![func],
        };
        for func in funcs {
            let fits = |field: &&Expr| row.result(Some(&field.ty)).is_some();
            all.extend(row.argument_types().iter().map(|ty| (func, argument(ty))));
            all.extend(fields.iter().filter(fits).map(|field| (func, field.clone())));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(2000),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_laws_hold(
        (func, arg, rows, cut) in proptest::sample::select(all()).prop_flat_map(|(func, arg)| {
            let rows = proptest::collection::vec(given(func, &arg), 0..40);
            (Just(func), Just(arg), rows, 0usize..40)
        }),
    ) {
        let rows: Vec<(u64, Given)> = (0..).zip(rows).collect();
        laws(func, &arg, &rows, cut);
    }

    #[test]
    fn decoding_any_bytes_is_harmless(
        (func, arg) in proptest::sample::select(all()),
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        Group::new(func, &arg).decode(&bytes);
    }
}
