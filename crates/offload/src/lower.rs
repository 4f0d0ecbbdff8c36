//! From the expressions of a plan to those that the kernel can evaluate, or why it can't.

use crate::field::field;
use crate::range::{of_neg, of_op};
use crate::value::{Addr, Cmp, Lowered, Num, NumKind, NumOp, Test};
use weir_packet::dns;
use weir_packet::fields::FieldId;
use weir_plan::address::IPV4;
use weir_plan::print;
use weir_plan::stage::Schema;
use weir_plan::{BinaryOp, Expr, ExprKind, Func, Member, Type, UnaryOp, Value, address};

/// The most ranges of values that a set may have: the program compares with them.
const RANGES_MAX: usize = 1024;

/// The columns of a stage's input.
#[derive(Clone, Default, Debug)]
pub(crate) struct Columns {
    /// Their names.
    pub(crate) schema: Schema,
    /// Their values, or why the kernel can't evaluate them.
    pub(crate) values: Vec<Result<Lowered, String>>,
    /// By which interface packets come, if all come by one.
    pub(crate) interface: Option<String>,
    /// The values of the states of a `scan` before the row, in its expressions.
    pub(crate) states: Vec<Lowered>,
}

impl Columns {
    /// An expression over them, as a query would write it.
    fn text(&self, e: &Expr) -> String {
        print::expr(e, &self.schema, &[])
    }

    fn overflows(&self, e: &Expr) -> String {
        format!("`{}` could overflow, which user space counts", self.text(e))
    }

    fn unsupported(&self, e: &Expr) -> String {
        format!("the kernel level has no `{}`", self.text(e))
    }
}

/// Why a column is not read.
pub(crate) fn no_column() -> Result<Lowered, String> {
    Err("it reads a column that the kernel level does not have".to_owned())
}

/// An expression, or why the kernel can't evaluate it: one clause.
pub(crate) fn lower(e: &Expr, columns: &Columns) -> Result<Lowered, String> {
    let of = |e: &Expr| lower(e, columns);
    match &e.kind {
        ExprKind::Const(value) => constant(value, &e.ty),
        ExprKind::Field(id) => field(*id),
        ExprKind::Column(i) => match columns.values.get(*i) {
            Some(column) => column.clone(),
            None => no_column(),
        },
        ExprKind::State(i) => match columns.states.get(*i) {
            Some(state) => Ok(state.clone()),
            None => Err("it reads the state of a scan".to_owned()),
        },
        ExprKind::Unary(op, a) => unary(*op, of(a)?, e, columns),
        ExprKind::Binary(op, a, b) => match of_interface(*op, [a, b], columns) {
            Some(holds) => Ok(Lowered::Test(Test::Const(Some(holds)))),
            None => binary(*op, of(a)?, of(b)?, (e, columns)),
        },
        ExprKind::If(condition, a, b) => {
            let condition = Box::new(test(of(condition)?)?);
            Ok(match pair(of(a)?, of(b)?)? {
                Pair::Num(a, b) => {
                    let range = a.range.or(b.range);
                    let kind = NumKind::If(condition, Box::new(a), Box::new(b));
                    Lowered::Num(Num { kind, range })
                }
                Pair::Addr(a, b) => Lowered::Addr(Addr::If(condition, Box::new(a), Box::new(b))),
                Pair::Test(a, b) => Lowered::Test(Test::If(condition, Box::new(a), Box::new(b))),
            })
        }
        ExprKind::In(a, members) => within(of(a)?, members),
        ExprKind::Call(f, args) => call(f, args, columns, e),
        ExprKind::Tuple(_) => Err("the kernel level does not compare several values".to_owned()),
    }
}

/// Whether packets come by an interface that is compared with a name, where that is known.
fn of_interface(op: BinaryOp, sides: [&Expr; 2], columns: &Columns) -> Option<bool> {
    const INTERFACE: FieldId = FieldId::named("interface");
    let mine = columns.interface.as_ref()?;
    let name = match [&sides[0].kind, &sides[1].kind] {
        [ExprKind::Field(INTERFACE), ExprKind::Const(Value::Str(name))]
        | [ExprKind::Const(Value::Str(name)), ExprKind::Field(INTERFACE)] => name,
        _ => return None,
    };
    match op {
        BinaryOp::Eq => Some(name.as_bytes() == mine.as_bytes()),
        BinaryOp::Ne => Some(name.as_bytes() != mine.as_bytes()),
        _ => None,
    }
}

/// A condition.
pub(crate) fn lower_test(e: &Expr, columns: &Columns) -> Result<Test, String> {
    lower(e, columns).and_then(test)
}

/// A condition that the kernel can evaluate, and that holds wherever this one does, if one is
/// known.
pub(crate) fn upper_bound(e: &Expr, columns: &Columns) -> Option<Test> {
    let bound = |e: &Expr| upper_bound(e, columns);
    match &e.kind {
        _ if can_fault(e) => None,
        ExprKind::Binary(BinaryOp::And, a, b) => match (bound(a), bound(b)) {
            (Some(a), Some(b)) => Some(Test::And(Box::new(a), Box::new(b))),
            (a, b) => a.or(b),
        },
        ExprKind::Binary(BinaryOp::Or, a, b) => {
            Some(Test::Or(Box::new(bound(a)?), Box::new(bound(b)?)))
        }
        ExprKind::Field(id) if id.name() == "dns" => dns_ports(),
        _ => lower_test(e, columns).ok(),
    }
}

/// Whether a port is one of those of DNS.
fn dns_ports() -> Option<Test> {
    let ports = dns::PORTS.map(|port| (i64::from(port), i64::from(port)));
    let is_one = |name| match field(FieldId::named(name)) {
        Ok(Lowered::Num(num)) => Some(Test::Within(num, ports.to_vec())),
        _ => None,
    };
    Some(Test::Or(Box::new(is_one("sport")?), Box::new(is_one("dport")?)))
}

/// Whether evaluating an expression could have a fault that is counted.
pub(crate) fn can_fault(e: &Expr) -> bool {
    let mut can = false;
    e.visit(&mut |e| {
        can |= match &e.kind {
            ExprKind::Binary(op, ..) => {
                !op.is_comparison() && !matches!(op, BinaryOp::And | BinaryOp::Or)
            }
            ExprKind::Unary(op, _) => *op == UnaryOp::Neg,
            ExprKind::Call(f, _) => !matches!(
                f,
                Func::Exists
                    | Func::Coalesce
                    | Func::Contains
                    | Func::StartsWith
                    | Func::EndsWith
                    | Func::Matches
                    | Func::Lower
                    | Func::Upper
                    | Func::StrLen
                    | Func::BytesLen
                    | Func::IsIpv4
                    | Func::IsIpv6
                    | Func::IsIn(_)
                    | Func::Prefix { .. }
            ),
            _ => false,
        };
    });
    can
}

fn test(of: Lowered) -> Result<Test, String> {
    match of {
        Lowered::Test(test) => Ok(test),
        _ => Err("it is no condition".to_owned()),
    }
}

fn constant(value: &Value, ty: &Type) -> Result<Lowered, String> {
    Ok(match value {
        Value::Bool(b) => Lowered::Test(Test::Const(Some(*b))),
        Value::Int(n) => Lowered::Num(Num::constant(*n)),
        Value::Mac(mac) => Lowered::Num(Num::constant(*mac as i64)),
        Value::Ip(addr) => Lowered::Addr(Addr::Const(*addr)),
        Value::Absent if *ty == Type::Bool => Lowered::Test(Test::Const(None)),
        _ => return Err(format!("the kernel level has no values of type {ty}")),
    })
}

fn unary(op: UnaryOp, a: Lowered, e: &Expr, columns: &Columns) -> Result<Lowered, String> {
    match (op, a) {
        (UnaryOp::Not, Lowered::Test(test)) => Ok(Lowered::Test(Test::Not(Box::new(test)))),
        (UnaryOp::BitNot, Lowered::Num(num)) => {
            let range = crate::value::Range { min: !num.range.max, max: !num.range.min };
            Ok(Lowered::Num(Num { kind: NumKind::Not(Box::new(num)), range }))
        }
        (UnaryOp::Neg, Lowered::Num(num)) => {
            let range = of_neg(num.range).ok_or_else(|| columns.overflows(e))?;
            Ok(Lowered::Num(Num { kind: NumKind::Neg(Box::new(num)), range }))
        }
        _ => Err(columns.unsupported(e)),
    }
}

/// Two operands of one kind.
enum Pair {
    Num(Num, Num),
    Addr(Addr, Addr),
    Test(Test, Test),
}

fn pair(a: Lowered, b: Lowered) -> Result<Pair, String> {
    match (a, b) {
        (Lowered::Num(a), Lowered::Num(b)) => Ok(Pair::Num(a, b)),
        (Lowered::Addr(a), Lowered::Addr(b)) => Ok(Pair::Addr(a, b)),
        (Lowered::Test(a), Lowered::Test(b)) => Ok(Pair::Test(a, b)),
        _ => Err("its operands are of two kinds".to_owned()),
    }
}

/// An expression, and the columns that it is over.
type Over<'a> = (&'a Expr, &'a Columns);

fn binary(op: BinaryOp, a: Lowered, b: Lowered, over: Over<'_>) -> Result<Lowered, String> {
    let (e, columns) = over;
    let cmp = match op {
        BinaryOp::Eq => Some(Cmp::Eq),
        BinaryOp::Ne => Some(Cmp::Ne),
        BinaryOp::Lt => Some(Cmp::Lt),
        BinaryOp::Le => Some(Cmp::Le),
        BinaryOp::Gt => Some(Cmp::Gt),
        BinaryOp::Ge => Some(Cmp::Ge),
        _ => None,
    };
    let operands = pair(a, b)?;
    if let Some(cmp) = cmp {
        return Ok(Lowered::Test(match operands {
            Pair::Num(a, b) => Test::Compare(cmp, a, b),
            Pair::Addr(a, b) => Test::CompareAddr(cmp, a, b),
            Pair::Test(a, b) => Test::Compare(cmp, Num::truth(a), Num::truth(b)),
        }));
    }
    let op = match (op, operands) {
        (BinaryOp::And, Pair::Test(a, b)) => {
            return Ok(Lowered::Test(Test::And(Box::new(a), Box::new(b))));
        }
        (BinaryOp::Or, Pair::Test(a, b)) => {
            return Ok(Lowered::Test(Test::Or(Box::new(a), Box::new(b))));
        }
        (op, Pair::Num(a, b)) if e.ty == Type::Int => {
            let op = match op {
                BinaryOp::Add => NumOp::Add,
                BinaryOp::Sub => NumOp::Sub,
                BinaryOp::Mul => NumOp::Mul,
                BinaryOp::Div => NumOp::Div,
                BinaryOp::Rem => NumOp::Rem,
                BinaryOp::BitAnd => NumOp::And,
                BinaryOp::BitOr => NumOp::Or,
                BinaryOp::BitXor => NumOp::Xor,
                BinaryOp::Shl => NumOp::Shl,
                BinaryOp::Shr => NumOp::Shr,
                _ => return Err(columns.unsupported(e)),
            };
            (op, a, b)
        }
        _ => return Err(columns.unsupported(e)),
    };
    operation(op, over)
}

fn operation((op, a, b): (NumOp, Num, Num), (e, columns): Over<'_>) -> Result<Lowered, String> {
    let range =
        of_op(op, a.range, b.range).map_err(|fault| format!("`{}` {fault}", columns.text(e)))?;
    Ok(Lowered::Num(Num { kind: NumKind::Op(op, Box::new(a), Box::new(b)), range }))
}

/// `in`: the members as sorted, disjoint ranges.
fn within(a: Lowered, members: &[Member]) -> Result<Lowered, String> {
    let wrong = || "the kernel level does not have this kind of set".to_owned();
    Ok(Lowered::Test(match a {
        Lowered::Num(num) => {
            let mut ranges = Vec::new();
            for member in members {
                let int = |value: &Value| match value {
                    Value::Int(n) => Ok(i128::from(*n)),
                    Value::Mac(mac) => Ok(i128::from(*mac)),
                    _ => Err(wrong()),
                };
                ranges.push(match member {
                    Member::Value(value) => (int(value)?, int(value)?),
                    Member::Range(first, last) => (int(first)?, int(last)?),
                    Member::Net(_) => return Err(wrong()),
                });
            }
            let ranges = merged(ranges, |last| last.checked_add(1))?;
            Test::Within(num, ranges.iter().map(|&(a, b)| (a as i64, b as i64)).collect())
        }
        Lowered::Addr(addr) => {
            let mut ranges = Vec::new();
            for member in members {
                let ip = |value: &Value| match value {
                    Value::Ip(addr) => Ok(*addr),
                    _ => Err(wrong()),
                };
                match member {
                    Member::Value(value) => ranges.push((ip(value)?, ip(value)?)),
                    Member::Range(first, last) => ranges.push((ip(first)?, ip(last)?)),
                    Member::Net(Value::Net(addr, len)) => {
                        ranges.extend(address::ranges((*addr, *len)));
                    }
                    Member::Net(_) => return Err(wrong()),
                }
            }
            Test::AddrWithin(addr, merged(ranges, |last: u128| last.checked_add(1))?)
        }
        Lowered::Test(of) => {
            let has = |wanted: bool| {
                members.iter().any(|m| matches!(m, Member::Value(Value::Bool(b)) if *b == wanted))
            };
            let ranges: Vec<_> =
                [(false, 0), (true, 1)].iter().filter(|x| has(x.0)).map(|x| (x.1, x.1)).collect();
            Test::Within(Num::truth(of), ranges)
        }
    }))
}

/// Ranges in order, those that touch joined; `after` gives the next value.
fn merged<T: Ord + Copy>(
    mut ranges: Vec<(T, T)>,
    after: impl Fn(T) -> Option<T>,
) -> Result<Vec<(T, T)>, String> {
    ranges.retain(|(first, last)| first <= last);
    ranges.sort_unstable();
    let mut out: Vec<(T, T)> = Vec::new();
    for (first, last) in ranges {
        match out.last_mut() {
            Some(open) if after(open.1).is_none_or(|next| first <= next) => {
                open.1 = open.1.max(last);
            }
            _ => out.push((first, last)),
        }
    }
    if out.len() > RANGES_MAX {
        return Err(format!("the set has {} ranges, more than {RANGES_MAX}", out.len()));
    }
    Ok(out)
}

fn call(f: &Func, args: &[Expr], columns: &Columns, e: &Expr) -> Result<Lowered, String> {
    let arg = |i: usize| match args.get(i) {
        Some(arg) => lower(arg, columns),
        None => Err(columns.unsupported(e)),
    };
    let address = |i: usize| match arg(i)? {
        Lowered::Addr(addr) => Ok(addr),
        _ => Err(columns.unsupported(e)),
    };
    match f {
        Func::Exists => {
            if let Some(field) = rare_text(args) {
                return Err(format!("`{}` is not at a fixed place", field.name()));
            }
            Ok(Lowered::Test(match arg(0)? {
                Lowered::Num(num) => Test::NumExists(num),
                Lowered::Addr(addr) => Test::AddrExists(addr),
                Lowered::Test(test) => Test::Whether(Box::new(test)),
            }))
        }
        Func::Coalesce => Ok(match pair(arg(0)?, arg(1)?)? {
            Pair::Num(a, b) => {
                let range = a.range.or(b.range);
                Lowered::Num(Num { kind: NumKind::Either(Box::new(a), Box::new(b)), range })
            }
            Pair::Addr(a, b) => Lowered::Addr(Addr::Either(Box::new(a), Box::new(b))),
            Pair::Test(a, b) => Lowered::Test(Test::Either(Box::new(a), Box::new(b))),
        }),
        Func::MinOf | Func::MaxOf => match pair(arg(0)?, arg(1)?)? {
            Pair::Num(a, b) => operation(
                (if *f == Func::MinOf { NumOp::Min } else { NumOp::Max }, a, b),
                (e, columns),
            ),
            _ => Err(columns.unsupported(e)),
        },
        Func::ToInt => match arg(0)? {
            Lowered::Num(num) => Ok(Lowered::Num(num)),
            Lowered::Test(test) => Ok(Lowered::Num(Num::truth(test))),
            Lowered::Addr(_) => Err(columns.unsupported(e)),
        },
        Func::IsIpv4 => Ok(Lowered::Test(Test::AddrWithin(address(0)?, vec![IPV4]))),
        Func::IsIpv6 => {
            let others = vec![(0, IPV4.0 - 1), (IPV4.1 + 1, u128::MAX)];
            Ok(Lowered::Test(Test::AddrWithin(address(0)?, others)))
        }
        Func::IsIn(block) => Ok(Lowered::Test(Test::AddrWithin(address(0)?, block.ranges()))),
        Func::Prefix { v4, v6 } => {
            Ok(Lowered::Addr(Addr::Prefix { of: Box::new(address(0)?), v4: *v4, v6: *v6 }))
        }
        _ => Err(columns.unsupported(e)),
    }
}

/// The text field that is the only argument.
fn rare_text(args: &[Expr]) -> Option<FieldId> {
    match args {
        [Expr { ty: Type::Str | Type::Bytes, kind: ExprKind::Field(id) }] => Some(*id),
        _ => None,
    }
}
