//! The form of expressions in JSON. Each says its type, unless that is plain.

use super::error::{Mistake, Unwritable};
use super::wire::{Members, Reader, Wire, Writer, expected};
use crate::expr::{BinaryOp, Expr, ExprKind, Member, UnaryOp};
use crate::functions::{self, Func};
use crate::types::Type;
use crate::value::Value;
use serde_json::{Map, Value as Json};

/// Sets with more members stand in the list of sets.
const SET_INLINE: usize = 16;

const BINARY: [BinaryOp; 18] = {
    use BinaryOp::*;
    [Add, Sub, Mul, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge, And, Or]
};

const UNARY: [(&str, UnaryOp); 4] = [
    ("not", UnaryOp::Not),
    ("neg", UnaryOp::Neg),
    ("~", UnaryOp::BitNot),
    ("to_float", UnaryOp::ToFloat),
];

impl Wire for Expr {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        let ty = &self.ty;
        to.members(|to, object| match &self.kind {
            ExprKind::Const(value) => {
                to.member(object, "const", value)?;
                to.member(object, "type", &(value.ty().as_ref() != Some(ty)).then(|| ty.clone()))
            }
            ExprKind::Field(id) => to.member(object, "field", id),
            ExprKind::Column(i) => {
                to.member(object, "column", i)?;
                to.member(object, "type", ty)
            }
            ExprKind::State(i) => {
                to.member(object, "state", i)?;
                to.member(object, "type", ty)
            }
            ExprKind::Unary(op, a) => {
                let (name, _) = UNARY.iter().find(|(_, o)| o == op).expect("all are there");
                operation(to, object, name, &[a], ty)
            }
            ExprKind::Binary(op, a, b) => operation(to, object, op.symbol(), &[a, b], ty),
            ExprKind::If(a, b, c) => operation(to, object, "if", &[a, b, c], ty),
            ExprKind::Tuple(parts) => {
                operation(to, object, "tuple", &parts.iter().collect::<Vec<_>>(), ty)
            }
            ExprKind::In(a, members) => {
                to.member(object, "in", &**a)?;
                if members.len() <= SET_INLINE {
                    return to.member(object, "set", members);
                }
                let found = to.sets.iter().position(|set| set == members);
                let number = found.unwrap_or_else(|| {
                    to.sets.push(members.clone());
                    to.sets.len() - 1
                });
                to.member(object, "set", &number)
            }
            ExprKind::Call(func, args) => {
                write_func(func, to, object)?;
                to.member(object, "args", args)?;
                to.member(object, "type", ty)
            }
        })
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Expr, Mistake> {
        let all = ["const", "field", "column", "state", "op", "in", "call", "registered"];
        let object = json.as_object().ok_or_else(|| expected("an expression", json))?;
        let kind = all.iter().copied().find(|key| object.contains_key(*key));
        let kind = kind.ok_or_else(|| Mistake::new("an expression has one of const, field, …"))?;
        let members = |more: &[&str]| Members::new(json, &[&[kind][..], more].concat());
        match kind {
            "const" => {
                let object = members(&["type"])?;
                let value: Value = object.read("const", from)?;
                let ty: Option<Type> = object.read("type", from)?;
                let ty = ty.or_else(|| value.ty());
                let ty = ty.ok_or_else(|| Mistake::new("an absent constant needs a type"))?;
                Ok(Expr { ty, kind: ExprKind::Const(value) })
            }
            "field" => Ok(Expr::field(members(&[])?.read("field", from)?)),
            "column" | "state" => {
                let object = members(&["type"])?;
                let (number, ty) = (object.read(kind, from)?, object.read("type", from)?);
                let kind = if kind == "column" { ExprKind::Column } else { ExprKind::State };
                Ok(Expr { ty, kind: kind(number) })
            }
            "in" => {
                let object = members(&["set"])?;
                let Set(set) = object.read("set", from)?;
                let a = Box::new(object.read("in", from)?);
                Ok(Expr { ty: Type::Bool, kind: ExprKind::In(a, set) })
            }
            "op" => {
                let object = members(&["args", "type"])?;
                let (op, args): (String, Vec<Expr>) =
                    (object.read("op", from)?, object.read("args", from)?);
                Ok(Expr { ty: object.read("type", from)?, kind: operator(&op, args)? })
            }
            _ => {
                let object = members(&["args", "type", "v4", "v6", "seed", "table", "zone"])?;
                let func = read_func(kind, &object, from)?;
                let args = object.read("args", from)?;
                Ok(Expr { ty: object.read("type", from)?, kind: ExprKind::Call(func, args) })
            }
        }
    }
}

fn operation(
    to: &mut Writer<'_>,
    object: &mut Map<String, Json>,
    op: &str,
    args: &[&Expr],
    ty: &Type,
) -> Result<(), Unwritable> {
    object.insert("op".into(), op.into());
    let args = to.list(args.iter().copied())?;
    object.insert("args".into(), args);
    to.member(object, "type", ty)
}

/// The kind of expression that an operator of that name makes of these.
fn operator(op: &str, args: Vec<Expr>) -> Result<ExprKind, Mistake> {
    if op == "tuple" {
        return Ok(ExprKind::Tuple(args));
    }
    let count = args.len();
    let mut args = args.into_iter().map(Box::new);
    let mut next = || args.next().expect("counted");
    let unary = UNARY.iter().find(|(name, _)| *name == op);
    let binary = BINARY.iter().find(|o| o.symbol() == op);
    match (op, count, unary, binary) {
        ("if", 3, ..) => Ok(ExprKind::If(next(), next(), next())),
        (_, 1, Some((_, op)), _) => Ok(ExprKind::Unary(*op, next())),
        (_, 2, _, Some(op)) => Ok(ExprKind::Binary(*op, next(), next())),
        _ => Err(Mistake::new(format!("there is no operator `{op}` of {count} arguments"))),
    }
}

/// A function by its name, and the arguments that a plan keeps with it.
fn write_func(
    func: &Func,
    to: &mut Writer<'_>,
    object: &mut Map<String, Json>,
) -> Result<(), Unwritable> {
    let name = match func {
        Func::User(i) => {
            let found = to.signatures.scalars.get(*i);
            let name = &found.ok_or(Unwritable::Unregistered(*i))?.name;
            object.insert("registered".into(), name.as_str().into());
            return Ok(());
        }
        Func::Anonymize(_) => return Err(Unwritable::Key),
        Func::LocalTime(zone) | Func::LocalBin(zone) => {
            to.member(object, "zone", zone)?;
            if matches!(func, Func::LocalBin(_)) { "local_bin" } else { "local_time" }
        }
        Func::Prefix { v4, v6 } => {
            to.member(object, "v4", v4)?;
            to.member(object, "v6", v6)?;
            "prefix"
        }
        Func::CommunityId { seed } => {
            to.member(object, "seed", seed)?;
            "community_id"
        }
        Func::Lookup(table) => {
            let found = to.tables.iter().position(|other| other == table);
            let number = found.unwrap_or_else(|| {
                to.tables.push(table.clone());
                to.tables.len() - 1
            });
            to.member(object, "table", &number)?;
            "lookup"
        }
        func => func.builtin().expect("every function has a name").name(),
    };
    object.insert("call".into(), name.into());
    Ok(())
}

fn read_func(kind: &str, object: &Members<'_>, from: &Reader<'_>) -> Result<Func, Mistake> {
    let name: String = object.read(kind, from)?;
    if kind == "registered" {
        let found = from.signatures.scalars.iter().position(|f| f.name == name);
        let unknown = || Mistake::new(format!("no function `{name}` is registered here"));
        return found.map(Func::User).ok_or_else(unknown);
    }
    match name.as_str() {
        "prefix" => Ok(Func::Prefix { v4: object.read("v4", from)?, v6: object.read("v6", from)? }),
        "community_id" => Ok(Func::CommunityId { seed: object.read("seed", from)? }),
        "local_time" => object.read("zone", from).map(Func::LocalTime),
        "local_bin" => object.read("zone", from).map(Func::LocalBin),
        "lookup" => {
            let number: usize = object.read("table", from)?;
            let table = from.tables.get(number).cloned();
            table.map(Func::Lookup).ok_or_else(|| Mistake::new(format!("no table {number}")))
        }
        "anonymize" => Err(Mistake::new("a plan with a key of `anonymize` is not read from JSON")),
        name => {
            let unknown = || Mistake::new(format!("there is no function `{name}`"));
            functions::by_name(name).map(|row| row.func.clone()).ok_or_else(unknown)
        }
    }
}

/// The members of a set, or its number.
struct Set(Vec<Member>);

impl Wire for Set {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        self.0.write(to)
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Set, Mistake> {
        let Some(number) = json.as_u64() else { return Vec::read(json, from).map(Set) };
        let set = usize::try_from(number).ok().and_then(|number| from.sets.get(number));
        let set = set.ok_or_else(|| Mistake::new(format!("there is no set {number}")))?;
        let left = from.members_left.get().checked_sub(set.len());
        from.members_left.set(left.ok_or_else(|| Mistake::new("sets are used too often"))?);
        Ok(Set(set.clone()))
    }
}

impl Wire for Member {
    fn write(&self, to: &mut Writer<'_>) -> Result<Json, Unwritable> {
        match self {
            Member::Value(value) | Member::Net(value) => value.write(to),
            Member::Range(from, until) => to.members(|to, object| {
                to.member(object, "from", from)?;
                to.member(object, "to", until)
            }),
        }
    }

    fn read(json: &Json, from: &Reader<'_>) -> Result<Member, Mistake> {
        if json.get("from").is_some() {
            let object = Members::new(json, &["from", "to"])?;
            return Ok(Member::Range(object.read("from", from)?, object.read("to", from)?));
        }
        Ok(match Value::read(json, from)? {
            value @ Value::Net(..) => Member::Net(value),
            value => Member::Value(value),
        })
    }
}
