//! Warnings of arithmetic that computes something else than was meant: sums of sequence numbers,
//! which start again at 0, and shares of whole numbers, which have no fraction.

use super::Checker;
use super::words::say;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Spanned};
use weir_plan::{BinaryOp, Expr, ExprKind, Type, UnaryOp, Value};

/// Fields that are sequence numbers of 32 bits.
const SEQUENCE_NUMBERS: [&str; 6] =
    ["tcp.seq", "tcp.ackno", "tcp.sack_left", "tcp.sack_right", "esp.seq", "ah.seq"];

/// Parts of names of columns that are shares.
const SHARES: [&str; 5] = ["share", "ratio", "percent", "pct", "fraction"];

/// A constant factor from which on a quotient of whole numbers has digits that count.
const SCALED: i64 = 10;

impl<'t> Checker<'t> {
    /// Warns of a sum or difference with a sequence number.
    pub(super) fn warn_of_sequence_numbers(
        &mut self,
        (a_tree, a): (&TreeExpr, &Expr),
        op: &Spanned<BinaryOp>,
        (b_tree, b): (&TreeExpr, &Expr),
    ) {
        let number = |e: &Expr| match e.kind {
            ExprKind::Field(id) => SEQUENCE_NUMBERS.contains(&id.info().name),
            _ => false,
        };
        let is_sum = match op.node {
            BinaryOp::Add => true,
            BinaryOp::Sub => false,
            _ => return,
        };
        let (first, second) = (number(a), number(b));
        if !first && !second {
            return;
        }
        let field = if first { a_tree } else { b_tree };
        let name = say(self.text, field.span);
        let message = format!("{name} starts again at 0 after 4294967295, and this does not");
        let d = Diagnostic::new(Code::SequenceNumber, a_tree.span.to(b_tree.span), message);
        let shown = |e: &TreeExpr| match e.span.of(self.text) {
            "" => "…".to_owned(),
            text => crate::excerpt::one_line(text),
        };
        let constant = lower::constant(b).is_some();
        let help = match (is_sum, first) {
            (true, true) => format!("write `seq_add({}, {})`", shown(a_tree), shown(b_tree)),
            (true, false) => format!("write `seq_add({}, {})`", shown(b_tree), shown(a_tree)),
            (false, true) if constant => {
                format!("write `seq_add({}, 0 - {})`", shown(a_tree), shown(b_tree))
            }
            (false, _) => format!("write `seq_diff({}, {})`", shown(a_tree), shown(b_tree)),
        };
        self.report(d.help(help));
    }

    /// Warns of a column that is called a share and has no fraction. Notes which columns are
    /// quotients of whole numbers.
    pub(super) fn warn_of_whole_share(
        &mut self,
        scope: &mut Scope,
        name: &str,
        (e, tree): (&Expr, &TreeExpr),
    ) {
        let of_column = match tree.node.unbracketed() {
            Tree::Name(name) => scope.quotient(name),
            _ => None,
        };
        let quotient = quotient(e).is_some();
        scope.set_quotient(name, quotient.then_some(tree.span).or(of_column));
        let called = name.to_ascii_lowercase();
        if quotient && SHARES.iter().any(|share| called.contains(share)) {
            let message = format!("`{name}` is a quotient of whole numbers, without its fraction");
            self.whole(tree.span, message, tree);
        }
    }

    /// Warns of a quotient of whole numbers that is compared with a fraction.
    pub(super) fn warn_of_whole_compared(
        &mut self,
        scope: &Scope,
        (a, a_tree): (&Expr, &TreeExpr),
        (b, b_tree): (&Expr, &TreeExpr),
    ) {
        let fraction =
            |e: &Expr| matches!(lower::constant(e), Some(Value::Float(x)) if x.fract() != 0.0);
        for ((e, tree), other) in [((a, a_tree), b), ((b, b_tree), a)] {
            let column = match tree.node.unbracketed() {
                Tree::Name(name) => scope.quotient(name),
                _ => None,
            };
            if !fraction(other) || quotient(e).is_none() && column.is_none() {
                continue;
            }
            let name = say(self.text, tree.span);
            let message = format!("{name} is a quotient of whole numbers, without its fraction");
            let span = a_tree.span.to(b_tree.span);
            match column {
                Some(at) => {
                    let d = Diagnostic::new(Code::WholeQuotient, span, message);
                    let d = d.note_at(at, "divided here");
                    self.report(d.help("make one side a float there: `float(a) / b`"));
                }
                None => self.whole(span, message, tree),
            }
        }
    }

    fn whole(&mut self, span: Span, message: String, tree: &TreeExpr) {
        let d = Diagnostic::new(Code::WholeQuotient, span, message);
        let help = match tree.node.unbracketed() {
            Tree::Chain { first, rest } if rest[0].0.node == BinaryOp::Div => {
                let dividend = crate::excerpt::one_line(first.span.of(self.text));
                let dividend = dividend.trim_start_matches('(').trim_end_matches(')');
                let divisor = crate::excerpt::one_line(rest[0].1.span.of(self.text));
                format!("write `float({dividend}) / {divisor}`")
            }
            _ => "make one side a float: `float(a) / b`".to_owned(),
        };
        self.report(d.help(help));
    }
}

/// The quotient of two ints that an expression is, or a multiple of it. One whose dividend was
/// multiplied before, as in `100 * a / b`, is meant to be a whole number; so is one that is divided
/// by a constant.
fn quotient(e: &Expr) -> Option<&Expr> {
    let constant = |e: &Expr| matches!(e.kind, ExprKind::Const(_));
    match &e.kind {
        ExprKind::Unary(UnaryOp::ToFloat, a) => quotient(a),
        ExprKind::Binary(BinaryOp::Mul, a, b) if constant(b) => quotient(a),
        ExprKind::Binary(BinaryOp::Mul, a, b) if constant(a) => quotient(b),
        ExprKind::Binary(BinaryOp::Div, a, b) if e.ty == Type::Int && !constant(b) => {
            (!is_scaled(a)).then_some(e)
        }
        _ => None,
    }
}

/// Whether a number was multiplied with a constant that makes room for digits.
fn is_scaled(e: &Expr) -> bool {
    let large = |e: &Expr| matches!(e.kind, ExprKind::Const(Value::Int(SCALED..)));
    match &e.kind {
        ExprKind::Binary(BinaryOp::Mul, a, b) => {
            large(a) || large(b) || is_scaled(a) || is_scaled(b)
        }
        _ => false,
    }
}
