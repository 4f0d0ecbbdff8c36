//! Random well-typed expressions.

use crate::choices::Choices;
use std::sync::Arc;
use weir_packet::fields::{FieldId, Header, HeaderBytes};
use weir_plan::address::{Block, mask};
use weir_plan::functions::{Math, Part, Rounding, Secret};
use weir_plan::table::{SharedTable, Table};
use weir_plan::{BinaryOp, Expr, ExprKind, Func, Member, Schema, Type, UnaryOp, Value};

/// The fields, columns and states that an expression may refer to.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Whether rows are packets still.
    pub(crate) fields: bool,
    /// The columns.
    pub(crate) schema: Schema,
    /// The types of the states, in the update of a scan.
    pub(crate) states: Vec<Type>,
}

/// The types that columns have here, those of more fields more often.
const SCALARS: [Type; 16] = [
    Type::Int,
    Type::Int,
    Type::Int,
    Type::Int,
    Type::Ip,
    Type::Ip,
    Type::Ip,
    Type::Bool,
    Type::Bool,
    Type::Time,
    Type::Time,
    Type::Float,
    Type::Str,
    Type::Duration,
    Type::Mac,
    Type::Bytes,
];

/// Fields that most packets have.
const COMMON: [&str; 21] = [
    "len",
    "ip.src",
    "ip.dst",
    "sport",
    "dport",
    "ip.proto",
    "ts",
    "number",
    "tcp",
    "udp",
    "ip.ttl",
    "tcp.flags",
    "tcp.window",
    "tcp.seq",
    "ip.id",
    "tcp.syn",
    "hosts.a",
    "conn.forward",
    "eth.src",
    "dns.qname",
    "http.host",
];

/// The type of a column.
pub(crate) fn scalar(c: &mut Choices) -> Type {
    c.pick(&SCALARS).clone()
}

/// As [`scalar`], with an order.
pub(crate) fn ordered(c: &mut Choices) -> Type {
    Some(scalar(c)).filter(Type::is_ordered).unwrap_or(Type::Int)
}

/// An expression of type `ty`, no deeper than `depth`.
pub(crate) fn expr(c: &mut Choices, scope: &Scope, ty: &Type, depth: usize) -> Expr {
    if depth == 0 || c.below(3) == 0 {
        return leaf(c, scope, ty);
    }
    let d = depth - 1;
    if c.once_in(5) {
        return anything(c, scope, ty, d);
    }
    match ty {
        Type::Bool => boolean(c, scope, d),
        Type::Int => int(c, scope, d),
        Type::Float => float(c, scope, d),
        Type::Str => text(c, scope, d),
        Type::Time => time(c, scope, d),
        Type::Duration => duration(c, scope, d),
        Type::Ip => address(c, scope, d),
        Type::Bytes => bytes(c, scope, d),
        Type::Mac => anything(c, scope, ty, d),
        Type::Net | Type::Tuple(_) => unreachable!("no column has the type {ty}"),
    }
}

/// A field, column, state or constant of type `ty`.
pub(crate) fn leaf(c: &mut Choices, scope: &Scope, ty: &Type) -> Expr {
    let mut leaves: Vec<Expr> = Vec::new();
    let of_type = |(i, t): (usize, &Type)| (t == ty).then_some(i);
    let columns = scope.schema.columns.iter().map(|c| &c.ty).enumerate().filter_map(of_type);
    leaves.extend(columns.map(|i| Expr::column(i, ty.clone())));
    let states = scope.states.iter().enumerate().filter_map(of_type);
    leaves.extend(states.map(|i| Expr { ty: ty.clone(), kind: ExprKind::State(i) }));
    if scope.fields && (leaves.is_empty() || c.below(2) == 0) {
        let any = c.once_in(3);
        let fields = FieldId::all().filter(|id| {
            Type::from(id.info().ty) == *ty && (any || COMMON.contains(&id.info().name))
        });
        leaves.extend(fields.map(Expr::field));
        let (_, header) = c.pick(&Header::ALL);
        let (offset, size) = (c.below(60) as u16, 1 + c.below(9));
        let bytes = HeaderBytes::new(*header, offset, size).expect("a few bytes");
        let bytes = Expr::field(FieldId::of_bytes(bytes));
        leaves.extend((bytes.ty == *ty).then_some(bytes));
    }
    let made = match ty {
        Type::Str => Some(Func::ToStr),
        Type::Float => Some(Func::ToFloat),
        Type::Duration => Some(Func::ToDuration),
        _ => None,
    };
    match made {
        _ if c.once_in(6) => node(ty.clone(), ExprKind::Const(constant(c, ty))),
        _ if !leaves.is_empty() => c.pick(&leaves).clone(),
        // Few fields are of these types, or none.
        Some(f) => node(ty.clone(), ExprKind::Call(f, vec![leaf(c, scope, &Type::Int)])),
        None => node(ty.clone(), ExprKind::Const(constant(c, ty))),
    }
}

/// A constant, rarely an absent one.
fn constant(c: &mut Choices, ty: &Type) -> Value {
    if c.once_in(12) { Value::Absent } else { present(c, ty) }
}

fn present(c: &mut Choices, ty: &Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(c.below(2) == 1),
        Type::Int => {
            let ints = [1, 0, 2, 6, 17, 53, 80, -1, 64, 63, 1500, i64::MAX, i64::MIN];
            Value::Int(*c.pick(&ints))
        }
        Type::Float => {
            Value::Float(*c.pick(&[0.0, -0.0, 1.0, -2.5, 1e300, 1e-300, -5e-324, 9.3e18]))
        }
        Type::Str => Value::Str((*c.pick(&["", "a", "10.0", "É", "true", "1"])).into()),
        Type::Bytes => Value::Bytes((*c.pick(&[&b""[..], b"a", b"\xff\x00"])).into()),
        Type::Ip => {
            let addresses =
                ["10.0.0.1", "10.0.0.3", "::ffff:10.0.0.3", "fd00::2", "::", "10.1.0.0"];
            Value::ip(c.pick(&addresses).parse().expect("an address"))
        }
        Type::Mac => Value::Mac(*c.pick(&[0x0200_0000_0001, 0, 0xffff_ffff_ffff])),
        Type::Time => Value::Time(*c.pick(&[crate::traffic::START_NS, 0, i64::MAX])),
        Type::Duration => {
            Value::Duration(*c.pick(&[1_000_000, 0, 1_000_000_000, -7, 86_400_000_000_000]))
        }
        Type::Net | Type::Tuple(_) => unreachable!("no constant here has the type {ty}"),
    }
}

fn node(ty: Type, kind: ExprKind) -> Expr {
    Expr { ty, kind }
}

fn unary(op: UnaryOp, ty: Type, a: Expr) -> Expr {
    node(ty, ExprKind::Unary(op, Box::new(a)))
}

fn binary(op: BinaryOp, ty: Type, a: Expr, b: Expr) -> Expr {
    node(ty, ExprKind::Binary(op, Box::new(a), Box::new(b)))
}

/// An expression of a kind that there is for any type.
fn anything(c: &mut Choices, scope: &Scope, ty: &Type, d: usize) -> Expr {
    let (a, b) = (expr(c, scope, ty, d), expr(c, scope, ty, d));
    let choices = if ty.is_ordered() { 5 } else { 2 };
    let kind = match c.below(choices) {
        0 => ExprKind::Call(Func::Coalesce, vec![a, b]),
        1 => {
            let cond = expr(c, scope, &Type::Bool, d);
            ExprKind::If(Box::new(cond), Box::new(a), Box::new(b))
        }
        2 => ExprKind::Call(Func::MinOf, vec![a, b]),
        3 => {
            let high = expr(c, scope, ty, d);
            ExprKind::Call(Func::Clamp, vec![a, b, high])
        }
        _ => ExprKind::Call(Func::MaxOf, vec![a, b]),
    };
    node(ty.clone(), kind)
}

fn boolean(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    let kind = match c.below(11) {
        0 | 1 => return comparison(c, scope, d),
        2 => return membership(c, scope, d),
        3 => ExprKind::Call(Func::Exists, {
            let ty = scalar(c);
            vec![expr(c, scope, &ty, d)]
        }),
        4 => {
            let a = expr(c, scope, &Type::Bool, d);
            return unary(UnaryOp::Not, Type::Bool, a);
        }
        5 | 6 => {
            let op = *c.pick(&[BinaryOp::And, BinaryOp::Or]);
            let (a, b) = (expr(c, scope, &Type::Bool, d), expr(c, scope, &Type::Bool, d));
            return binary(op, Type::Bool, a, b);
        }
        7 => {
            use Block::{Global, LinkLocal, Loopback, Multicast, Private};
            let kinds = [Global, LinkLocal, Loopback, Multicast, Private];
            let f = match c.below(4) {
                0 => Func::IsIpv4,
                1 => Func::IsIpv6,
                _ => Func::IsIn(*c.pick(&kinds)),
            };
            ExprKind::Call(f, vec![expr(c, scope, &Type::Ip, d)])
        }
        8 | 9 => {
            let f = c.pick(&[Func::Contains, Func::StartsWith, Func::EndsWith]).clone();
            let ty = c.pick(&[Type::Str, Type::Str, Type::Bytes]);
            ExprKind::Call(f, vec![expr(c, scope, ty, d), expr(c, scope, ty, d)])
        }
        _ => {
            let ty = c.pick(&[Type::Str, Type::Str, Type::Bytes]);
            let text = expr(c, scope, ty, d);
            ExprKind::Call(Func::Matches, vec![text, pattern(c)])
        }
    };
    node(Type::Bool, kind)
}

fn pattern(c: &mut Choices) -> Expr {
    Expr::constant(Value::Str((*c.pick(&["^1", "0+", "[a-z]$", "(.)\\.(1*)", ""])).into()))
}

fn address(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    let kind = match c.below(4) {
        0 => return anything(c, scope, &Type::Ip, d),
        1 => ExprKind::Call(Func::ToIp, vec![expr(c, scope, &Type::Str, d)]),
        _ => {
            if c.once_in(4) {
                let key = Func::Anonymize(Secret([7; 32]));
                return node(Type::Ip, ExprKind::Call(key, vec![expr(c, scope, &Type::Ip, d)]));
            }
            let (v4, v6) = *c.pick(&[(24, 64), (8, 8), (0, 0), (32, 128), (17, 33)]);
            ExprKind::Call(Func::Prefix { v4, v6 }, vec![expr(c, scope, &Type::Ip, d)])
        }
    };
    node(Type::Ip, kind)
}

fn bytes(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    match c.below(4) {
        0 => anything(c, scope, &Type::Bytes, d),
        1 => slice(c, scope, &Type::Bytes, d),
        _ => {
            let text = expr(c, scope, &Type::Str, d);
            node(Type::Bytes, ExprKind::Call(Func::ToBytes, vec![text]))
        }
    }
}

fn lookup(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    let ty = c.pick(&[Type::Ip, Type::Ip, Type::Int, Type::Str, Type::Mac]);
    let mut entries: Vec<(Value, u32)> = Vec::new();
    for n in 0..c.below(5) as u32 {
        let key = match (present(c, ty), c.below(2)) {
            (Value::Ip(a), 0) => {
                let len = *c.pick(&[0u8, 32, 104, 126]);
                Value::Net(a & mask(len), len)
            }
            (key, _) => key,
        };
        if entries.iter().all(|(known, _)| *known != key) {
            entries.push((key, n % 3));
        }
    }
    let texts = ["", "a", "É"].map(Box::from).to_vec();
    let table = Table { file: "f.csv".into(), column: "c".into(), entries, texts };
    let f = Func::Lookup(SharedTable(Arc::new(table)));
    node(Type::Str, ExprKind::Call(f, vec![expr(c, scope, ty, d)]))
}

fn slice(c: &mut Choices, scope: &Scope, ty: &Type, d: usize) -> Expr {
    let whole = expr(c, scope, ty, d);
    let [start, length] = [(); 2].map(|()| match c.below(3) {
        0 => expr(c, scope, &Type::Int, d),
        _ => Expr::constant(Value::Int(*c.pick(&[0, 1, 2, 5, -1, -3]))),
    });
    node(ty.clone(), ExprKind::Call(Func::Slice, vec![whole, start, length]))
}

fn comparison(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    use BinaryOp::*;
    let types: Vec<Type> = (0..1 + c.below(3)).map(|_| scalar(c)).collect();
    let ops: &[BinaryOp] = match types.iter().all(Type::is_ordered) {
        true => &[Eq, Ne, Lt, Le, Gt, Ge],
        false => &[Eq, Ne],
    };
    let op = *c.pick(ops);
    let [a, b] = [(); 2].map(|()| tuple_of(types.iter().map(|t| expr(c, scope, t, d)).collect()));
    binary(op, Type::Bool, a, b)
}

/// Several expressions as one; one stays itself.
pub(crate) fn tuple_of(mut parts: Vec<Expr>) -> Expr {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let ty = Type::Tuple(parts.iter().map(|p| p.ty.clone()).collect());
    node(ty, ExprKind::Tuple(parts))
}

fn membership(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    if c.once_in(4) {
        let types = [c.pick(&SCALARS), c.pick(&SCALARS)];
        let left = tuple_of(types.map(|t| expr(c, scope, t, d)).to_vec());
        let member =
            |c: &mut Choices| Member::Value(Value::Tuple(types.map(|t| present(c, t)).to_vec()));
        let members = (0..1 + c.below(3)).map(|_| member(c)).collect();
        return node(Type::Bool, ExprKind::In(Box::new(left), members));
    }
    let ty = &scalar(c);
    let left = expr(c, scope, ty, d);
    let members = (0..1 + c.below(4)).map(|_| match c.below(4) {
        2 if ty.is_ordered() && !matches!(ty, Type::Str | Type::Bytes) => {
            let (a, b) = (present(c, ty), present(c, ty));
            Member::Range(a.clone().min(b.clone()), a.max(b))
        }
        3 if *ty == Type::Ip => {
            let Value::Ip(net) = Value::ip([10, 0, 0, 0].into()) else { unreachable!() };
            let len = *c.pick(&[104, 128, 126, 0]);
            Member::Net(Value::Net(net & mask(len), len))
        }
        _ => Member::Value(present(c, ty)),
    });
    node(Type::Bool, ExprKind::In(Box::new(left), members.collect()))
}

fn int(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    use BinaryOp::*;
    let int = Type::Int;
    let kind = match c.below(11) {
        0..=2 => {
            let op = *c.pick(&[Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr]);
            let (a, b) = (expr(c, scope, &int, d), expr(c, scope, &int, d));
            return binary(op, int, a, b);
        }
        3 => {
            let op = *c.pick(&[UnaryOp::Neg, UnaryOp::BitNot]);
            let a = expr(c, scope, &int, d);
            return unary(op, int, a);
        }
        4 => {
            use Type::{Bool, Duration, Float, Mac, Str, Time};
            let from = c.pick(&[Bool, Float, Duration, Time, Str, Mac]);
            ExprKind::Call(Func::ToInt, vec![expr(c, scope, from, d)])
        }
        5 => match c.below(2) {
            0 => ExprKind::Call(Func::StrLen, vec![expr(c, scope, &Type::Str, d)]),
            _ => ExprKind::Call(Func::BytesLen, vec![expr(c, scope, &Type::Bytes, d)]),
        },
        7 => {
            use Rounding::{Ceil, Floor, Nearest};
            let f = Func::Round(*c.pick(&[Floor, Ceil, Nearest]));
            ExprKind::Call(f, vec![expr(c, scope, &Type::Float, d)])
        }
        8 => {
            use Part::{Day, Hour, Minute, Month, Second, Weekday, Year};
            let part = *c.pick(&[Year, Month, Day, Weekday, Hour, Minute, Second]);
            let time = expr(c, scope, &Type::Time, d);
            let time = match crate::window::zone(c) {
                Some(zone) => node(Type::Time, ExprKind::Call(Func::LocalTime(zone), vec![time])),
                None => time,
            };
            ExprKind::Call(Func::Part(part), vec![time])
        }
        9 => {
            let (a, b) = (expr(c, scope, &int, d), expr(c, scope, &int, d));
            let f = c.pick(&[Func::SeqDiff, Func::SeqAdd]).clone();
            ExprKind::Call(f, vec![a, b])
        }
        6 => {
            let f = c.pick(&[Func::Abs, Func::User(0)]).clone();
            ExprKind::Call(f, vec![expr(c, scope, &int, d)])
        }
        _ => ExprKind::Call(Func::Bin, vec![expr(c, scope, &int, d), expr(c, scope, &int, d)]),
    };
    node(int, kind)
}

fn float(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    use BinaryOp::*;
    let float = Type::Float;
    match c.below(9) {
        8 => {
            let from = c.pick(&[Type::Str, Type::Bytes]);
            node(float, ExprKind::Call(Func::EntropyOf, vec![expr(c, scope, from, d)]))
        }
        6 => {
            use Math::{Exp, Ln, Log2, Log10, Sqrt};
            let f = Func::Math(*c.pick(&[Sqrt, Exp, Ln, Log2, Log10]));
            node(float.clone(), ExprKind::Call(f, vec![expr(c, scope, &float, d)]))
        }
        7 => {
            let (a, b) = (expr(c, scope, &float, d), expr(c, scope, &float, d));
            node(float, ExprKind::Call(Func::Pow, vec![a, b]))
        }
        0 => {
            let a = expr(c, scope, &Type::Int, d);
            unary(UnaryOp::ToFloat, float, a)
        }
        1 | 2 => {
            let op = *c.pick(&[Add, Sub, Mul, Div]);
            let (a, b) = (expr(c, scope, &float, d), expr(c, scope, &float, d));
            binary(op, float, a, b)
        }
        3 => {
            let spans = [(); 2].map(|()| expr(c, scope, &Type::Duration, d));
            let [a, b] = spans;
            binary(Div, float, a, b)
        }
        4 => {
            let from = c.pick(&[Type::Int, Type::Duration, Type::Str]);
            node(float, ExprKind::Call(Func::ToFloat, vec![expr(c, scope, from, d)]))
        }
        _ => {
            let a = expr(c, scope, &float, d);
            match c.below(2) {
                0 => unary(UnaryOp::Neg, float, a),
                _ => node(float, ExprKind::Call(Func::Abs, vec![a])),
            }
        }
    }
}

fn text(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    let kind = match c.below(12) {
        11 => registered_domain(c, scope, d),
        10 => return lookup(c, scope, d),
        4 => return slice(c, scope, &Type::Str, d),
        5 => ExprKind::Call(Func::Trim, vec![expr(c, scope, &Type::Str, d)]),
        6 => {
            let args = [(); 3].map(|()| expr(c, scope, &Type::Str, d));
            ExprKind::Call(Func::Replace, args.into())
        }
        7 => {
            let (a, n) = (expr(c, scope, &Type::Str, d), expr(c, scope, &Type::Int, d));
            let by = Expr::constant(Value::Str((*c.pick(&[".", "0", "", ":"])).into()));
            ExprKind::Call(Func::Split, vec![a, by, n])
        }
        8 => {
            let text = expr(c, scope, &Type::Str, d);
            ExprKind::Call(Func::Extract, vec![text, pattern(c)])
        }
        9 => match c.below(4) {
            3 => {
                use Type::{Int, Ip};
                let types = [Ip, Int, Ip, Int, Int, Int, Int];
                let types = if c.below(2) == 0 { &types[..] } else { &types[..5] };
                let args = types.iter().map(|ty| leaf(c, scope, ty)).collect();
                ExprKind::Call(Func::CommunityId { seed: c.below(2) as u16 }, args)
            }
            0 => ExprKind::Call(Func::Hex, vec![expr(c, scope, &Type::Int, d)]),
            1 => ExprKind::Call(Func::Hex, vec![expr(c, scope, &Type::Bytes, d)]),
            _ => ExprKind::Call(Func::ToText, vec![expr(c, scope, &Type::Bytes, d)]),
        },
        0 | 1 => {
            let (f, from) = (c.pick(&[Func::ToStr, Func::Short]).clone(), scalar(c));
            ExprKind::Call(f, vec![expr(c, scope, &from, d)])
        }
        2 => {
            let f = c.pick(&[Func::Lower, Func::Upper]).clone();
            ExprKind::Call(f, vec![expr(c, scope, &Type::Str, d)])
        }
        _ => {
            let (a, b) = (expr(c, scope, &Type::Str, d), expr(c, scope, &Type::Str, d));
            ExprKind::Call(Func::Concat, vec![a, b])
        }
    };
    node(Type::Str, kind)
}

/// Of any text, or of one with a public suffix.
fn registered_domain(c: &mut Choices, scope: &Scope, d: usize) -> ExprKind {
    let name = expr(c, scope, &Type::Str, d);
    let end =
        *c.pick(&["", ".test", ".CO.uk", ".a.kobe.jp.", "\\.uk", ".x.ck", ".www.ck", "..com"]);
    let end = Expr::constant(Value::Str(end.into()));
    let name = node(Type::Str, ExprKind::Call(Func::Concat, vec![name, end]));
    ExprKind::Call(Func::RegisteredDomain, vec![name])
}

fn time(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    let (a, span) = (expr(c, scope, &Type::Time, d), expr(c, scope, &Type::Duration, d));
    match c.below(4) {
        3 => {
            let n = expr(c, scope, &Type::Int, d);
            node(Type::Time, ExprKind::Call(Func::ToTime, vec![n]))
        }
        0 => binary(BinaryOp::Add, Type::Time, a, span),
        1 => binary(BinaryOp::Sub, Type::Time, a, span),
        _ => {
            let bin = crate::window::zone(c).map_or(Func::Bin, Func::LocalBin);
            node(Type::Time, ExprKind::Call(bin, vec![a, span]))
        }
    }
}

fn duration(c: &mut Choices, scope: &Scope, d: usize) -> Expr {
    use BinaryOp::*;
    let ty = Type::Duration;
    match c.below(6) {
        0 => {
            let (a, b) = (expr(c, scope, &Type::Time, d), expr(c, scope, &Type::Time, d));
            binary(Sub, ty, a, b)
        }
        1 => {
            let op = *c.pick(&[Add, Sub, Rem]);
            let (a, b) = (expr(c, scope, &ty, d), expr(c, scope, &ty, d));
            binary(op, ty, a, b)
        }
        2 => {
            let op = *c.pick(&[Mul, Div]);
            let (a, b) = (expr(c, scope, &ty, d), expr(c, scope, &Type::Int, d));
            binary(op, ty, a, b)
        }
        3 => {
            let a = expr(c, scope, &Type::Int, d);
            node(ty, ExprKind::Call(Func::ToDuration, vec![a]))
        }
        4 => {
            let (a, b) = (expr(c, scope, &ty, d), expr(c, scope, &ty, d));
            node(ty, ExprKind::Call(Func::Bin, vec![a, b]))
        }
        _ => {
            let a = expr(c, scope, &ty, d);
            match c.below(2) {
                0 => unary(UnaryOp::Neg, ty, a),
                _ => node(ty, ExprKind::Call(Func::Abs, vec![a])),
            }
        }
    }
}
