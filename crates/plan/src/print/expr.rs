//! Expressions as a query would write them.

use super::text::list;
use crate::expr::{BinaryOp, Expr, ExprKind, Member, UnaryOp};
use crate::functions::Func;
use crate::stage::{ScanState, Schema};

/// An expression as a query would write it, with no more parentheses than it needs. `input` names
/// the columns, `states` the states of a scan.
pub fn expr(e: &Expr, input: &Schema, states: &[ScanState]) -> String {
    Printer { input, states }.expr(e, LOOSEST)
}

/// How tightly the parts of an expression bind: larger is tighter.
const LOOSEST: u8 = 0;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const SIGN: u8 = 11;
const TIGHTEST: u8 = 12;

fn binding(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        op if op.is_comparison() => COMPARISON,
        BinaryOp::BitOr => 5,
        BinaryOp::BitXor => 6,
        BinaryOp::BitAnd => 7,
        BinaryOp::Shl | BinaryOp::Shr => 8,
        BinaryOp::Add | BinaryOp::Sub => 9,
        _ => 10,
    }
}

fn is_bit_or(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Binary(BinaryOp::BitOr, ..))
}

struct Printer<'a> {
    input: &'a Schema,
    states: &'a [ScanState],
}

impl Printer<'_> {
    /// `e`, in parentheses if it binds less tightly than `least`.
    fn expr(&self, e: &Expr, least: u8) -> String {
        let (own, text) = self.bare(e);
        // Outside brackets a `|` starts the next stage.
        if own < least || is_bit_or(e) { format!("({text})") } else { text }
    }

    /// How tightly the text of `e` binds, and the text.
    fn bare(&self, e: &Expr) -> (u8, String) {
        match &e.kind {
            ExprKind::Const(v) => {
                let text = v.to_string();
                (if text.starts_with('-') { SIGN } else { TIGHTEST }, text)
            }
            ExprKind::Field(id) => (TIGHTEST, id.name().into_owned()),
            ExprKind::Column(i) => (TIGHTEST, self.input.columns[*i].name.clone()),
            ExprKind::State(i) => (TIGHTEST, self.states[*i].name.clone()),
            ExprKind::Unary(UnaryOp::Not, a) => (NOT, format!("not {}", self.expr(a, NOT))),
            ExprKind::Unary(UnaryOp::Neg, a) => (SIGN, format!("-{}", self.expr(a, TIGHTEST))),
            ExprKind::Unary(UnaryOp::BitNot, a) => (SIGN, format!("~{}", self.expr(a, SIGN))),
            // The checker put it there; a query leaves it out.
            ExprKind::Unary(UnaryOp::ToFloat, a) => self.bare(a),
            ExprKind::Binary(op, a, b) => {
                let own = binding(*op);
                // Operators of one level group from the left; comparisons do not chain at all.
                let left = if op.is_comparison() { own + 1 } else { own };
                let a = match *op == BinaryOp::BitOr && is_bit_or(a) {
                    true => self.bare(a).1,
                    false => self.expr(a, left),
                };
                let b = self.expr(b, own + 1);
                (own, format!("{a} {} {b}", op.symbol()))
            }
            ExprKind::If(cond, yes, no) => {
                let [cond, yes, no] = [cond, yes, no].map(|part| self.expr(part, LOOSEST));
                (TIGHTEST, format!("if({cond}, {yes}, {no})"))
            }
            ExprKind::In(a, members) => {
                let a = self.expr(a, COMPARISON + 1);
                (COMPARISON, format!("{a} in {}", set(members)))
            }
            ExprKind::Call(Func::Lookup(table), args) => {
                let (key, table) = (self.parts(args), &table.0);
                (TIGHTEST, format!("lookup({:?}, {key}, {:?})", table.file, table.column))
            }
            ExprKind::Call(f, args) => {
                (TIGHTEST, format!("{}({}{})", name(f), self.parts(args), constants(f)))
            }
            ExprKind::Tuple(parts) => (TIGHTEST, format!("({})", self.parts(parts))),
        }
    }

    fn parts(&self, parts: &[Expr]) -> String {
        list(parts, |part| self.expr(part, LOOSEST))
    }
}

/// Members of a set that are shown; those of a file are many.
const SHOWN: usize = 16;

fn set(members: &[Member]) -> String {
    let mut text = list(&members[..members.len().min(SHOWN)], |member| match member {
        Member::Value(v) | Member::Net(v) => v.to_string(),
        Member::Range(from, to) => format!("{from}..{to}"),
    });
    if members.len() > SHOWN {
        text += &format!(", … {} more", members.len() - SHOWN);
    }
    match members {
        [Member::Range(..) | Member::Net(_)] => text,
        _ => format!("{{{text}}}"),
    }
}

fn name(f: &Func) -> String {
    match (f, f.builtin()) {
        (Func::User(i), _) => format!("user_{i}"),
        (Func::LocalTime(_), _) => "local_time".to_owned(),
        (Func::LocalBin(_), _) => "bin".to_owned(),
        (_, Some(row)) => row.name().to_owned(),
        (f, None) => unreachable!("{f:?} has a name"),
    }
}

/// The arguments that a plan keeps with the function, each after a comma.
fn constants(f: &Func) -> String {
    match f {
        Func::Prefix { v4, v6 } if v4 == v6 => format!(", {v4}"),
        Func::Prefix { v4, v6 } => format!(", {v4}, {v6}"),
        Func::CommunityId { seed } if *seed != 0 => format!(", {seed}"),
        Func::Anonymize(_) => ", …".to_owned(),
        Func::LocalTime(zone) | Func::LocalBin(zone) => format!(", {:?}", zone.name()),
        _ => String::new(),
    }
}
