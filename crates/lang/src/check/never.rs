//! Comparisons of a field of packets with a constant that it can never have: a port above 65535, a
//! number with a fraction. Only constants that the query writes out count: a param may be given so
//! that a condition never holds.

use super::Checker;
use super::words::say;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::foreign;
use crate::lower;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Member as TreeMember, Spanned};
use weir_packet::fields::FieldType;
use weir_plan::{BinaryOp, Expr, ExprKind, Member, Value};

/// A field that is a whole number, and the largest one that it holds; the smallest is 0.
struct Bounded {
    most: i64,
}

impl Bounded {
    /// The field that `e` is, if its bounds are known.
    fn of(e: &Expr) -> Option<Bounded> {
        let ExprKind::Field(id) = e.kind else { return None };
        let info = id.info();
        let known = info.ty == FieldType::Int && (1..64).contains(&info.bits);
        known.then(|| Bounded { most: ((1u64 << info.bits) - 1) as i64 })
    }

    /// The answer of `op` for the field and `n`, if it is the same for all values of the field.
    fn answer(&self, op: BinaryOp, n: f64) -> Option<bool> {
        let most = self.most as f64;
        let (below, above) = (n < 0.0, n > most);
        let outside = below || above || n.fract() != 0.0;
        match op {
            BinaryOp::Eq if outside => Some(false),
            BinaryOp::Ne if outside => Some(true),
            BinaryOp::Gt if n >= most => Some(false),
            BinaryOp::Ge if above => Some(false),
            BinaryOp::Lt if n <= 0.0 => Some(false),
            BinaryOp::Le if below => Some(false),
            _ => None,
        }
    }

    fn range(&self) -> String {
        format!("a whole number from 0 to {}", self.most)
    }
}

impl<'t> Checker<'t> {
    /// Warns of a comparison whose answer does not depend on the packet.
    pub(super) fn warn_of_one_answer(
        &mut self,
        op: &Spanned<BinaryOp>,
        (a, a_tree): (&Expr, &TreeExpr),
        (b, b_tree): (&Expr, &TreeExpr),
    ) {
        let (op, span) = (op.node, a_tree.span.to(b_tree.span));
        if is_written(b_tree) {
            self.field_and_constant((op, span), (a, a_tree), (b, b_tree));
        } else if is_written(a_tree) {
            self.field_and_constant((op.mirrored(), span), (b, b_tree), (a, a_tree));
        }
    }

    fn field_and_constant(
        &mut self,
        (op, span): (BinaryOp, Span),
        (field, field_tree): (&Expr, &TreeExpr),
        (constant, constant_tree): (&Expr, &TreeExpr),
    ) {
        let ExprKind::Const(value) = &constant.kind else { return };
        let name = say(self.text, field_tree.span);
        if let Some(help) = version_help(field_tree, value) {
            let message = format!("{name} is a number of the protocol, never {value}");
            let d = Diagnostic::new(Code::OneAnswer, span, message);
            return self.report(d.help(help));
        }
        let Some(bounded) = Bounded::of(field) else { return };
        let Some(answer) = number(value).and_then(|n| bounded.answer(op, n)) else { return };
        let message = match answer {
            true if lower::exists(field).is_some() => {
                format!("this comparison is true wherever {name} has a value")
            }
            true => "this comparison is always true".to_owned(),
            false => "this comparison is never true".to_owned(),
        };
        let label = format!("{name} is {}", bounded.range());
        let d = Diagnostic::new(Code::OneAnswer, span, message).label(label);
        self.report(d.maybe_help(range_help(self.text, constant_tree)));
    }

    /// Warns of a member of a set that the value can never be.
    pub(super) fn warn_of_no_member(
        &mut self,
        (field, field_tree): (&Expr, &TreeExpr),
        member: (&Member, &TreeMember),
    ) {
        let Some(bounded) = Bounded::of(field) else { return };
        let (low, high, written_out) = match member {
            (Member::Value(v), TreeMember::Value(tree)) => (v, v, is_written(tree)),
            (Member::Range(low, high), TreeMember::Range(a, b)) => {
                (low, high, is_written(a) && is_written(b))
            }
            _ => return,
        };
        let (Some(least), Some(most)) = (number(low), number(high)) else { return };
        let within =
            most >= 0.0 && least <= bounded.most as f64 && (least != most || least.fract() == 0.0);
        if within || !written_out {
            return;
        }
        let name = say(self.text, field_tree.span);
        let place = member.1.span();
        let message = format!("{name} is never {}", say(self.text, place));
        let d = Diagnostic::new(Code::OneAnswer, place, message);
        let d = d.label(format!("it is {}", bounded.range()));
        self.report(d.maybe_help(version_help(field_tree, low)));
    }

    /// Refuses a range written with a hyphen: the difference of two values, as a member of a set.
    pub(super) fn not_a_difference(&mut self, e: &TreeExpr) -> Option<()> {
        let Some(difference) = Difference::of(e) else { return Some(()) };
        let shown = say(self.text, e.span);
        let message = format!("{shown} is a subtraction, not a range");
        let d = Diagnostic::new(Code::BadSet, e.span, message);
        self.report(d.help(match difference.has_net {
            true => "a range goes from address to address: `192.0.2.1..192.0.2.9`".to_owned(),
            false => format!("a range is written `{}`", difference.range()),
        }));
        None
    }
}

/// The difference of two ints or addresses that stand there, which was to be a range.
struct Difference<'e> {
    /// The smaller and the larger one, as written.
    ends: (&'e str, &'e str),
    /// Whether one of them is a network.
    has_net: bool,
}

impl<'e> Difference<'e> {
    /// The parts of `e`, if it is such a difference.
    fn of(e: &'e TreeExpr) -> Option<Difference<'e>> {
        let Tree::Chain { first, rest } = &e.node else { return None };
        let [(op, last)] = &rest[..] else { return None };
        let Tree::Literal { value: a, text: first } = &first.node else { return None };
        let Tree::Literal { value: b, text: last } = &last.node else { return None };
        let address = |v: &Value| matches!(v, Value::Ip(_) | Value::Net(..));
        let ints = matches!((a, b), (Value::Int(_), Value::Int(_)));
        if op.node != BinaryOp::Sub || !(ints || address(a) && address(b)) {
            return None;
        }
        let net = |v: &Value| matches!(v, Value::Net(..));
        let ends = if a > b { (&**last, &**first) } else { (&**first, &**last) };
        Some(Difference { ends, has_net: net(a) || net(b) })
    }

    /// The range that was meant.
    fn range(&self) -> String {
        format!("{}..{}", self.ends.0, self.ends.1)
    }
}

/// The text to write instead of a range with a hyphen on the right of a comparison.
fn range_help(text: &str, e: &TreeExpr) -> Option<String> {
    let range = Difference::of(e)?.range();
    let shown = say(text, e.span);
    Some(format!("{shown} is a subtraction; a range is asked for by `in {range}`"))
}

/// Whether an expression is made of numbers that stand there.
fn is_written(e: &TreeExpr) -> bool {
    match &e.node {
        Tree::Literal { .. } => true,
        Tree::Unary(_, e) | Tree::Paren(e) => is_written(e),
        Tree::Chain { first, rest } => is_written(first) && rest.iter().all(|(_, e)| is_written(e)),
        _ => false,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    }
}

/// The number of the version of TLS that was meant by a fraction.
fn version_help(field: &TreeExpr, value: &Value) -> Option<String> {
    let (Tree::Name(name), Value::Float(x)) = (field.node.unbracketed(), value) else {
        return None;
    };
    foreign::value(name, &format!("{x:.1}"))
}
