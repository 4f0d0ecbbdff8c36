//! Warnings of arithmetic that computes something else than was meant: sums of sequence numbers,
//! which start again at 0, and shares of whole numbers, which have no fraction.

use super::Checker;
use super::words::say;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::lower;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Member as TreeMember, Spanned};
use weir_plan::{BinaryOp, Expr, ExprKind, Member, Type, UnaryOp, Value};

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

    /// Takes such a warning of `a` or `b` back where the operator brings the number below 2^32
    /// again. A negative number is not brought there by `%`.
    pub(super) fn wraps_sequence_numbers(
        &mut self,
        (a_tree, a): (&TreeExpr, &Expr),
        op: &Spanned<BinaryOp>,
        (b_tree, b): (&TreeExpr, &Expr),
    ) {
        let is = |e: &Expr, n: i64| matches!(lower::constant(e), Some(Value::Int(x)) if x == n);
        let inner = match op.node {
            BinaryOp::Rem if is(b, 1 << 32) && never_negative(a) => a_tree.span,
            BinaryOp::BitAnd if is(b, u32::MAX.into()) => a_tree.span,
            BinaryOp::BitAnd if is(a, u32::MAX.into()) => b_tree.span,
            _ => return,
        };
        self.diagnostics.retain(|d| {
            let within = inner.start <= d.span.start && d.span.end <= inner.end;
            d.code != Code::SequenceNumber || !within
        });
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
        // A `float(a / b)` has its warning already.
        let new = quotient && !matches!(e.kind, ExprKind::Unary(UnaryOp::ToFloat, _));
        scope.set_quotient(name, new.then_some(tree.span).or(of_column));
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
        let span = a_tree.span.to(b_tree.span);
        for (side, other) in [((a, a_tree), b), ((b, b_tree), a)] {
            if lower::constant(other).is_some_and(|value| is_fraction(&value)) {
                self.warn_of_whole_with_fraction(scope, side, span);
            }
        }
    }

    /// Warns of a quotient of whole numbers that is looked for in a set with fractions.
    pub(super) fn warn_of_whole_member(
        &mut self,
        scope: &Scope,
        value: (&Expr, &TreeExpr),
        (member, tree): (&Member, &TreeMember),
    ) {
        let with_fraction = match member {
            Member::Value(v) => is_fraction(v),
            Member::Range(low, high) => is_fraction(low) || is_fraction(high),
            Member::Net(_) => false,
        };
        if with_fraction {
            self.warn_of_whole_with_fraction(scope, value, value.1.span.to(tree.span()));
        }
    }

    /// Warns of `float(a / b)`, which makes a float of the quotient and not of what is divided.
    pub(super) fn warn_of_whole_in_float(&mut self, e: &Expr, tree: &TreeExpr) {
        if quotient(e).is_some() {
            let name = say(self.text, tree.span);
            let message = format!("{name} is a quotient of whole numbers, without its fraction");
            self.whole(tree.span, message, tree);
        }
    }

    /// Warns of `e`, which is compared with a fraction in `span`, if it is a quotient of whole
    /// numbers.
    fn warn_of_whole_with_fraction(
        &mut self,
        scope: &Scope,
        (e, tree): (&Expr, &TreeExpr),
        span: Span,
    ) {
        let column = match tree.node.unbracketed() {
            Tree::Name(name) => scope.quotient(name),
            _ => None,
        };
        if quotient(e).is_none() && column.is_none() || self.told_of_whole(tree) {
            return;
        }
        let name = say(self.text, tree.span);
        let message = format!("{name} is a quotient of whole numbers, without its fraction");
        match column {
            Some(at) => {
                let d = Diagnostic::new(Code::WholeQuotient, span, message);
                let d = d.note_at(at, "divided here");
                self.report(d.help("make one side a float there: `float(a) / b`"));
            }
            None => self.whole(span, message, tree),
        }
    }

    /// Whether there is such a warning of it already: of another member of the same set, or of a
    /// `float(a / b)` within.
    fn told_of_whole(&self, tree: &TreeExpr) -> bool {
        let place = tree.span.start..tree.span.end;
        let of_it = |d: &Diagnostic| d.code == Code::WholeQuotient && place.contains(&d.span.start);
        self.diagnostics.iter().any(of_it)
    }

    fn whole(&mut self, span: Span, message: String, tree: &TreeExpr) {
        if self.told_of_whole(tree) {
            return;
        }
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

fn is_fraction(value: &Value) -> bool {
    matches!(value, Value::Float(x) if x.fract() != 0.0)
}

/// Whether a number is a sum of fields and of constants that are not negative.
fn never_negative(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Field(id) => (1..64).contains(&id.info().bits),
        ExprKind::Const(Value::Int(n)) => *n >= 0,
        ExprKind::Binary(BinaryOp::Add, a, b) => never_negative(a) && never_negative(b),
        _ => false,
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
