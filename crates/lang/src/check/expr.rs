//! Expressions, what stages want of them, and arithmetic.

use super::Checker;
use super::words::{Side, a, mismatch_help, say};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::limits::{NODES_MAX, TERMS_MAX};
use crate::lower;
use crate::names::Scope;
use crate::tree::{Expr as TreeExpr, ExprKind as Tree, Spanned};
use weir_plan::limits::DEPTH_MAX;
use weir_plan::{BinaryOp, Expr, ExprKind, Type, UnaryOp, Value};

/// Expressions as stages want them.
impl<'t> Checker<'t> {
    /// Any expression, within the limits.
    pub(super) fn root(&mut self, scope: &Scope, e: &TreeExpr) -> Option<Expr> {
        (self.nodes, self.nesting) = (0, 0);
        let out = self.expr(scope, e)?;
        if lower::depth(&out) > DEPTH_MAX {
            let message =
                format!("this is more than {DEPTH_MAX} levels deep once it is worked out");
            let d = Diagnostic::new(Code::TooLarge, e.span, message);
            self.report(d.help("compute a part of it in an `extend` before"));
            return None;
        }
        self.fits(lower::size(&out), e.span).then_some(out)
    }

    /// Whether an expression of so many nodes is within the limit; reports it if not.
    pub(super) fn fits(&mut self, nodes: usize, span: Span) -> bool {
        if nodes > NODES_MAX {
            let message = format!("this is more than {NODES_MAX} operations once it is worked out");
            let d = Diagnostic::new(Code::TooLarge, span, message);
            self.report(d.help("compute a part of it in an `extend` before"));
        }
        nodes <= NODES_MAX
    }

    /// Whether `e` is small enough to be put in place `copies` times more; reports it if not.
    pub(super) fn fits_copies(&mut self, e: &Expr, copies: usize, span: Span) -> bool {
        let members = lower::members(e).saturating_mul(copies);
        let nodes = lower::size(e).saturating_mul(copies);
        self.fits(nodes, span) && self.count_members(members, span).is_some()
    }

    /// An expression that a column can hold.
    pub(super) fn scalar(&mut self, scope: &Scope, e: &TreeExpr) -> Option<Expr> {
        let out = self.root(scope, e)?;
        self.one_value(out, e.span)
    }

    /// `e`, if a column can hold it.
    pub(super) fn one_value(&mut self, e: Expr, span: Span) -> Option<Expr> {
        let shown = say(self.text, span);
        let d = match &e.ty {
            Type::Net => {
                let message = format!("{shown} is a network, which a column cannot hold");
                Diagnostic::new(Code::NotAColumn, span, message)
                    .help("a network stands on the right of `in`")
            }
            Type::Tuple(parts) => {
                let message = format!("{shown} is {} values, where one is needed", parts.len());
                Diagnostic::new(Code::NotAColumn, span, message)
                    .help("give each part a column of its own, or compare the tuple as a whole")
            }
            _ => return Some(e),
        };
        self.report(d);
        None
    }

    /// A condition.
    pub(super) fn condition(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<Expr> {
        let out = self.root(scope, e)?;
        self.bool(out, e, whose)
    }

    /// `out`, if it is a bool.
    pub(super) fn bool(&mut self, out: Expr, e: &TreeExpr, whose: &str) -> Option<Expr> {
        if out.ty == Type::Bool {
            return Some(out);
        }
        let shown = say(self.text, e.span);
        let message = format!("{whose} needs a condition, and {shown} is {}", a(&out.ty));
        let d = Diagnostic::new(Code::NotBool, e.span, message);
        self.report(match (&e.node, &out.ty) {
            (Tree::Chain { .. }, Type::Int) => d.help(format!(
                "compare it with a number: `{} != 0`",
                one_line(e.span.of(self.text))
            )),
            (Tree::Name(name), Type::Int | Type::Float) => d.help(format!(
                "compare it: `{name} > 0`; or ask whether it is there: `exists({name})`"
            )),
            (Tree::Name(name), _) => d.help(format!("ask whether it is there: `exists({name})`")),
            _ => d,
        });
        None
    }

    /// The value of a constant expression.
    pub(super) fn constant(&mut self, scope: &Scope, e: &TreeExpr, whose: &str) -> Option<Value> {
        let out = self.root(scope, e)?;
        self.constant_value(&out, e.span, whose)
    }

    /// The value of a checked expression, which must be constant.
    pub(super) fn constant_value(&mut self, out: &Expr, span: Span, whose: &str) -> Option<Value> {
        if let Some(value) = lower::constant(out) {
            return Some(value);
        }
        let mut varies = false;
        out.visit(&mut |e| {
            varies |= matches!(
                e.kind,
                ExprKind::Field(_) | ExprKind::Column(_) | ExprKind::State(_) | ExprKind::Call(..)
            );
        });
        let shown = say(self.text, span);
        // A warning of the same is not needed on top.
        let told = |d: &Diagnostic| {
            d.code == Code::AlwaysAbsent && (span.start..span.end).contains(&d.span.start)
        };
        self.diagnostics.retain(|d| !told(d));
        self.report(if varies {
            let message = format!("{whose} must be constant, and {shown} is not");
            Diagnostic::new(Code::NotConstant, span, message)
                .help("use a literal, a param, or a `let` of those")
        } else {
            let message = format!("{shown} has no constant value here");
            Diagnostic::new(Code::BadConstant, span, message)
                .note("it leaves 64 bits, divides by zero, or is not plain arithmetic")
        });
        None
    }
}

/// Nodes.
impl<'t> Checker<'t> {
    pub(super) fn expr(&mut self, scope: &Scope, mut e: &TreeExpr) -> Option<Expr> {
        while let Tree::Paren(inner) = &e.node {
            e = inner;
        }
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            // The first one over the limit tells; the others follow from it.
            if self.nodes == NODES_MAX + 1 {
                self.fits(self.nodes, e.span);
            }
            return None;
        }
        if self.nesting >= DEPTH_MAX {
            let message =
                format!("this is more than {DEPTH_MAX} levels deep once lets are put in place");
            let d = Diagnostic::new(Code::TooLarge, e.span, message);
            self.report(d.help("compute a part of it in an `extend` before"));
            return None;
        }
        self.nesting += 1;
        let out = self.node(scope, e);
        self.nesting -= 1;
        out
    }

    /// The value of a literal: a date is its midnight in the time zone of the query.
    pub(super) fn literal(&self, value: &Value, text: &str) -> Value {
        match (value, self.rules.zone) {
            (Value::Time(midnight), Some(zone)) if !text.contains(['T', 't']) => {
                Value::Time(zone.when(*midnight))
            }
            _ => value.clone(),
        }
    }

    fn node(&mut self, scope: &Scope, e: &TreeExpr) -> Option<Expr> {
        match &e.node {
            Tree::Literal { value, text } => Some(Expr::constant(self.literal(value, text))),
            Tree::Name(name) => self.name(scope, name, e.span),
            Tree::Unary(op, operand) => self.unary(scope, *op, operand),
            Tree::Chain { first, rest } => self.chain(scope, first, rest, e.span),
            Tree::Compare(a, op, b) => self.compare(scope, a, op, b),
            Tree::In { value, negated, set } => self.membership(scope, value, *negated, set),
            Tree::Call { func, args } => self.call(scope, func, args, e.span),
            Tree::Bytes { header, offset, size } => {
                self.bytes(scope, header, offset, size.as_deref())
            }
            Tree::Match { value, arms } => self.match_expr(scope, value, arms, e.span),
            Tree::Tuple(parts) => {
                let parts: Vec<_> = parts.iter().map(|p| (self.expr(scope, p), p.span)).collect();
                self.tuple(parts)
            }
            // Brackets are left out before.
            Tree::Paren(_) | Tree::Error => None,
        }
    }

    /// A tuple of the parts; a part that is a tuple itself (`flow`) counts as its parts.
    pub(super) fn tuple(&mut self, parts: Vec<(Option<Expr>, Span)>) -> Option<Expr> {
        let mut out = Vec::new();
        let mut sound = true;
        for (part, span) in parts {
            match part {
                Some(Expr { kind: ExprKind::Tuple(inner), .. }) => out.extend(inner),
                Some(part) => match self.one_value(part, span) {
                    Some(part) => out.push(part),
                    None => sound = false,
                },
                None => sound = false,
            }
        }
        let ty = Type::Tuple(out.iter().map(|e| e.ty.clone()).collect());
        sound.then_some(Expr { ty, kind: ExprKind::Tuple(out) })
    }

    fn unary(&mut self, scope: &Scope, op: UnaryOp, operand: &TreeExpr) -> Option<Expr> {
        let e = self.expr(scope, operand)?;
        let (fits, wants) = match op {
            UnaryOp::Not => return Some(lower::not(self.bool(e, operand, "`not`")?)),
            UnaryOp::BitNot => (e.ty == Type::Int, "`~` takes an int"),
            UnaryOp::Neg | UnaryOp::ToFloat => {
                (e.ty.is_numeric(), "`-` takes an int, a float or a duration")
            }
        };
        if !fits {
            let message = format!("{wants}, and {} is {}", say(self.text, operand.span), a(&e.ty));
            let d = Diagnostic::new(Code::TypeMismatch, operand.span, message);
            let not = op == UnaryOp::BitNot && e.ty == Type::Bool;
            self.report(if not { d.help("the opposite of a condition is `not`") } else { d });
            return None;
        }
        Some(lower::fold(lower::unary(op, e.ty.clone(), e)))
    }

    /// Operands joined by operators of one level.
    fn chain(
        &mut self,
        scope: &Scope,
        first: &TreeExpr,
        rest: &[(Spanned<BinaryOp>, TreeExpr)],
        span: Span,
    ) -> Option<Expr> {
        let op = rest.first().map_or(BinaryOp::And, |(op, _)| op.node);
        let logical = matches!(op, BinaryOp::And | BinaryOp::Or);
        if !logical && rest.len() >= TERMS_MAX {
            let message = format!("a computation has at most {TERMS_MAX} terms");
            self.report(Diagnostic::new(Code::TooLarge, span, message));
            return None;
        }
        let trees = || std::iter::once(first).chain(rest.iter().map(|(_, e)| e));
        let mut operands = Vec::new();
        for tree in trees() {
            let e = self.expr(scope, tree);
            operands.push(match logical {
                true => e.and_then(|e| self.bool(e, tree, &format!("`{}`", op.symbol()))),
                false => e,
            });
        }
        let operands: Vec<Expr> = operands.into_iter().collect::<Option<_>>()?;
        if logical {
            return Some(lower::balanced(op, operands));
        }
        let mut operands = operands.into_iter();
        let mut left = operands.next()?;
        let mut left_tree = first.clone();
        for ((op, tree), right) in rest.iter().zip(operands) {
            left = self.arithmetic((&left_tree, left), op, (tree, right))?;
            left_tree = Spanned::new(Tree::Error, first.span.to(tree.span));
        }
        Some(left)
    }

    fn arithmetic(
        &mut self,
        (a_tree, a): (&TreeExpr, Expr),
        op: &Spanned<BinaryOp>,
        (b_tree, b): (&TreeExpr, Expr),
    ) -> Option<Expr> {
        use BinaryOp::*;
        use Type::{Duration, Float, Int, Time};
        let span = a_tree.span.to(b_tree.span);
        self.wraps_sequence_numbers((a_tree, &a), op, (b_tree, &b));
        self.warn_of_sequence_numbers((a_tree, &a), op, (b_tree, &b));
        let float = |e: Expr| match e.ty {
            Float => e,
            _ => lower::fold(lower::unary(UnaryOp::ToFloat, Float, e)),
        };
        let (a, b, ty) = match (op.node, &a.ty, &b.ty) {
            (Add | Sub | Mul | Div | Rem | BitAnd | BitOr | BitXor | Shl | Shr, Int, Int) => {
                (a, b, Int)
            }
            (Add | Sub | Mul | Div, Int | Float, Int | Float) => (float(a), float(b), Float),
            (Add | Sub | Rem, Duration, Duration) | (Mul | Div, Duration, Int) => (a, b, Duration),
            (Mul, Int, Duration) => (b, a, Duration),
            (Div, Duration, Duration) => (a, b, Float),
            (Add | Sub, Time, Duration) => (a, b, Time),
            (Add, Duration, Time) => (b, a, Time),
            (Sub, Time, Time) => (a, b, Duration),
            _ => {
                let sides = (Side { tree: a_tree, ty: &a.ty }, Side { tree: b_tree, ty: &b.ty });
                self.no_arithmetic(op, sides);
                return None;
            }
        };
        let out = lower::fold(lower::binary(op.node, ty, a, b));
        if let ExprKind::Binary(_, a, b) = &out.kind {
            let zero = matches!(&b.kind, ExprKind::Const(Value::Int(0) | Value::Duration(0)));
            let both = lower::constant(a).is_some() && lower::constant(b).is_some();
            if (zero && matches!(op.node, Div | Rem)) || both {
                let message = format!("{} never has a value", say(self.text, span));
                let by = |kind: &ExprKind| matches!(kind, ExprKind::Const(Value::Int(0..64)));
                let why = match op.node {
                    _ if zero => "it divides by zero",
                    Shl | Shr if !by(&b.kind) => "it shifts by less than 0 or more than 63",
                    _ => "it leaves 64 bits",
                };
                self.report(Diagnostic::new(Code::AlwaysAbsent, span, message).label(why));
            }
        }
        Some(out)
    }

    fn no_arithmetic(&mut self, op: &Spanned<BinaryOp>, (left, right): (Side<'_>, Side<'_>)) {
        let symbol = op.node.symbol();
        let message = format!(
            "{} is {} and {} {}: `{symbol}` does not take them",
            say(self.text, left.tree.span),
            a(left.ty),
            say(self.text, right.tree.span),
            a(right.ty),
        );
        let d = Diagnostic::new(Code::TypeMismatch, op.span, message)
            .label("not of these")
            .note_at(left.tree.span, a(left.ty))
            .note_at(right.tree.span, a(right.ty));
        let help = match (op.node, left.ty, right.ty) {
            (BinaryOp::BitAnd, Type::Bool, Type::Bool) => Some("write `and`".to_owned()),
            (BinaryOp::BitOr, Type::Bool, Type::Bool) => Some("write `or`".to_owned()),
            (BinaryOp::Add, Type::Str, _) => Some("texts are joined by `concat(a, b)`".to_owned()),
            (BinaryOp::Add, Type::Time, Type::Time) => {
                Some("times are subtracted, which gives a duration".to_owned())
            }
            (BinaryOp::Add | BinaryOp::Sub, Type::Time | Type::Duration, Type::Int) => {
                mismatch_help(&Side { ty: &Type::Duration, ..left }, &right)
            }
            (BinaryOp::Div | BinaryOp::BitAnd, Type::Ip, _) => Some(format!(
                "a prefix is `prefix({0}, 24)`; one network is asked for by `{0} in 10.0.0.0/8`",
                left.tree.span.of(self.text)
            )),
            (BinaryOp::Mul | BinaryOp::Div, Type::Duration, Type::Float) => {
                Some("`float(d)` is a duration in seconds, as a number".to_owned())
            }
            (_, Type::Bool, _) | (_, _, Type::Bool) => {
                Some("`int(x)` is 1 for true and 0 for false".to_owned())
            }
            _ => None,
        };
        self.report(d.maybe_help(help));
    }
}
