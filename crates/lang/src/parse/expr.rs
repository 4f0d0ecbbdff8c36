//! Expressions, by precedence climbing. From the loosest: `or`; `and`; `not`; comparisons and
//! `in`, which do not chain; `|` (in brackets); `^`; `&`; `<<` `>>`; `+` `-`; `*` `/` `%`; and the
//! prefixes `-` `~`.

use super::Parser;
use super::words::RESERVED;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::excerpt::one_line;
use crate::lex::Kind;
use crate::limits::NESTING_MAX;
use crate::tree::{Arm, Expr, ExprKind, Member, Name, Set, Spanned};
use weir_plan::{BinaryOp, UnaryOp};

/// Levels of precedence, loosest first.
pub(super) const OR: u8 = 1;
pub(super) const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
/// The loosest level that binds tighter than comparisons: what a bound of a range or a pattern is.
pub(super) const OPERAND: u8 = 5;
/// The level of a prefix and its operand, which nothing joins.
pub(super) const PREFIX: u8 = 11;

/// An operator between two operands.
pub(super) enum Infix {
    Op(BinaryOp, u8),
    Compare(BinaryOp),
    /// `in`, or `not in`.
    In {
        negated: bool,
    },
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Option<Expr> {
        self.expr_from(OR)
    }

    /// A part within brackets, a call or a match, or after a prefix: one level deeper. An
    /// operator's operands are no deeper than it is, so at most a few calls lie between levels.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.nesting >= NESTING_MAX {
            let message = format!("this is nested more than {NESTING_MAX} levels deep");
            let d = Diagnostic::new(Code::TooLarge, self.span(), message);
            self.report(
                d.help("name a part of it with `let`, or compute it in an `extend` before"),
            );
            return None;
        }
        self.nesting += 1;
        let out = part(self);
        self.nesting = self.nesting.saturating_sub(1);
        out
    }

    /// An expression whose operators all bind at least as tight as `level`.
    pub(super) fn expr_from(&mut self, level: u8) -> Option<Expr> {
        let mut left = self.prefix()?;
        loop {
            if level <= COMPARISON && self.at_between() {
                left = self.between(&left)?;
                continue;
            }
            if level <= COMPARISON
                && let Some(word) = self.text_operator()
            {
                left = self.text_comparison(left, word)?;
                continue;
            }
            left = match self.infix() {
                Some((Infix::Op(_, at), _)) if at >= level => self.chain(left, at)?,
                Some((Infix::Compare(op), tokens)) if COMPARISON >= level => {
                    let op = Spanned::new(op, self.take(tokens));
                    let right = self.expr_from(OPERAND)?;
                    let span = left.span.to(right.span);
                    let kind = ExprKind::Compare(Box::new(left), op, Box::new(right));
                    self.end_comparison(Expr::new(kind, span))?
                }
                Some((Infix::In { negated }, tokens)) if COMPARISON >= level => {
                    self.take(tokens);
                    let set = self.set()?;
                    let span = left.span.to(set.span);
                    let kind = ExprKind::In { value: Box::new(left), negated, set };
                    self.end_comparison(Expr::new(kind, span))?
                }
                _ => return Some(left),
            };
        }
    }

    fn take(&mut self, tokens: usize) -> Span {
        let span = self.bump();
        (1..tokens).fold(span, |span, _| span.to(self.bump()))
    }

    /// `left` and all operands that operators of one level join to it.
    fn chain(&mut self, left: Expr, level: u8) -> Option<Expr> {
        let mut rest = Vec::new();
        while let Some((Infix::Op(op, at), tokens)) = self.infix() {
            if at != level {
                break;
            }
            let op = Spanned::new(op, self.take(tokens));
            rest.push((op, self.expr_from(level + 1)?));
        }
        let end = rest.last().map_or(left.span, |(_, e)| e.span);
        let span = left.span.to(end);
        Some(Expr::new(ExprKind::Chain { first: Box::new(left), rest }, span))
    }

    /// The operator at the current token and how many tokens it has. One of another language is
    /// reported, and taken for ours.
    fn infix(&mut self) -> Option<(Infix, usize)> {
        use BinaryOp::*;
        let (sign, word) = match &self.token().kind {
            Kind::Sign(s) => (*s, ""),
            Kind::Name => ("", self.word()),
            _ => return None,
        };
        let op = match (sign, word) {
            ("|", _) if self.at_pipe() => return None,
            ("|", _) => Infix::Op(BitOr, 5),
            ("^", _) => Infix::Op(BitXor, 6),
            ("&", _) => Infix::Op(BitAnd, 7),
            ("<<", _) => Infix::Op(Shl, 8),
            (">>", _) => Infix::Op(Shr, 8),
            ("+", _) => Infix::Op(Add, 9),
            ("-", _) => Infix::Op(Sub, 9),
            ("*", _) => Infix::Op(Mul, 10),
            ("/", _) => Infix::Op(Div, 10),
            ("%", _) => Infix::Op(Rem, 10),
            ("==", _) => Infix::Compare(Eq),
            ("!=", _) => Infix::Compare(Ne),
            ("<", _) => Infix::Compare(Lt),
            ("<=", _) => Infix::Compare(Le),
            (">", _) => Infix::Compare(Gt),
            (">=", _) => Infix::Compare(Ge),
            ("=" | "<>" | "&&" | "||", _) => self.foreign(sign),
            (_, "AND" | "OR" | "IN") => self.foreign(word),
            (_, "or") => Infix::Op(Or, OR),
            (_, "and") => Infix::Op(And, AND),
            (_, "in") => Infix::In { negated: false },
            (_, "not") if self.word_ahead(1) == "in" => {
                return Some((Infix::In { negated: true }, 2));
            }
            _ => return None,
        };
        Some((op, 1))
    }

    /// A comparison, after which no other may follow. The first that does is reported.
    fn end_comparison(&mut self, left: Expr) -> Option<Expr> {
        let mut all = left;
        let mut reported = false;
        while let Some((Infix::Compare(_) | Infix::In { .. }, tokens)) = self.infix() {
            let op = self.take(tokens);
            let right = self.expr_from(OPERAND)?;
            if !reported {
                self.chained_comparison(&all, op, &right);
            }
            reported = true;
            all = self.error_expr(all.span.to(right.span));
        }
        Some(all)
    }

    fn chained_comparison(&mut self, left: &Expr, op: Span, right: &Expr) {
        let shown = |span: Span| one_line(span.of(self.text));
        let middle = match &left.node {
            ExprKind::Compare(_, _, b) => shown(b.span),
            ExprKind::In { value, .. } => shown(value.span),
            _ => "…".to_owned(),
        };
        let d = Diagnostic::new(Code::ChainedComparison, op, "comparisons do not chain")
            .label("a second comparison")
            .note_at(left.span, "this is true or false")
            .help(format!(
                "write `{} and {middle} {} {}`",
                shown(left.span),
                shown(op),
                shown(right.span)
            ));
        self.report(d);
    }

    fn prefix(&mut self) -> Option<Expr> {
        let (op, level) = match (&self.token().kind, self.word()) {
            (_, "not") => (UnaryOp::Not, NOT + 1),
            (Kind::Sign("-"), _) => (UnaryOp::Neg, PREFIX),
            (Kind::Sign("~"), _) => (UnaryOp::BitNot, PREFIX),
            (Kind::Sign("!"), _) => {
                let d =
                    Diagnostic::new(Code::ForeignWord, self.span(), "`!` is not an operator here");
                self.report(d.help("write `not`"));
                (UnaryOp::Not, PREFIX)
            }
            _ => return self.primary(),
        };
        let start = self.bump();
        let operand = self.nested(|p| p.expr_from(level))?;
        let span = start.to(operand.span);
        Some(Expr::new(ExprKind::Unary(op, Box::new(operand)), span))
    }

    fn primary(&mut self) -> Option<Expr> {
        let span = self.span();
        match &self.token().kind {
            Kind::Literal(value) => {
                let kind =
                    ExprKind::Literal { value: value.clone(), text: span.of(self.text).to_owned() };
                self.bump();
                Some(Expr::new(kind, span))
            }
            Kind::Bad => {
                self.bump();
                Some(self.error_expr(span))
            }
            Kind::Sign("(") => self.bracketed(),
            Kind::Name if self.word() == "match" => self.match_expr(),
            Kind::Name if self.at_case_when() => self.case_when(),
            Kind::Name if matches!(self.ahead(1).kind, Kind::Sign("(")) && self.callable() => {
                self.call()
            }
            Kind::Name if !RESERVED.contains(&self.word()) => {
                let name = self.name();
                if self.is_sign("[") {
                    return self.bytes(name);
                }
                Some(Expr::new(ExprKind::Name(name.node), span))
            }
            _ => {
                let d = self.expected("a value");
                let d = match (&self.token().kind, self.word()) {
                    (Kind::Sign("{"), _) => d.help("a set in braces stands on the right of `in`"),
                    (_, "if") => d.help("a choice is written `if(condition, then, else)`"),
                    (_, "_") => d.help("`_` stands for anything, in the patterns of a `match`"),
                    _ => d,
                };
                self.unexpected(d);
                None
            }
        }
    }

    fn callable(&self) -> bool {
        self.word() == "if" || !RESERVED.contains(&self.word())
    }

    /// `header[offset]` or `header[offset:size]`.
    fn bytes(&mut self, header: Name) -> Option<Expr> {
        let open = self.open();
        let inside = self.nested(Parser::place);
        let end = self.close(open, "]", inside.is_some())?;
        let span = header.span.to(end);
        let Some((offset, size)) = inside else { return Some(self.error_expr(span)) };
        let (offset, size) = (Box::new(offset), size.map(Box::new));
        Some(Expr::new(ExprKind::Bytes { header, offset, size }, span))
    }

    /// `offset`, or `offset:size`.
    fn place(&mut self) -> Option<(Expr, Option<Expr>)> {
        let offset = self.expr()?;
        let size = if self.eat(":") { Some(self.expr()?) } else { None };
        Some((offset, size))
    }

    /// `(expr)`, or a tuple.
    fn bracketed(&mut self) -> Option<Expr> {
        let open = self.open();
        let parts = self.nested(|p| p.list(Parser::expr));
        let whole = parts.is_some();
        let end = self.close(open, ")", whole)?;
        let span = open.to(end);
        let Some(mut parts) = parts else { return Some(self.error_expr(span)) };
        let kind = match parts.len() {
            1 => ExprKind::Paren(Box::new(parts.remove(0))),
            _ => ExprKind::Tuple(parts),
        };
        Some(Expr::new(kind, span))
    }

    fn call(&mut self) -> Option<Expr> {
        let func = self.name();
        let open = self.open();
        if self.is_sign("*") && matches!(self.ahead(1).kind, Kind::Sign(")")) {
            let d = Diagnostic::new(Code::ForeignWord, self.span(), "`*` is no argument");
            self.report(d.help("`count()` counts rows"));
            self.bump();
        }
        let args = match self.is_sign(")") {
            true => Some(Vec::new()),
            false => self.nested(|p| p.list(Parser::expr)),
        };
        let end = self.close(open, ")", args.is_some())?;
        let span = func.span.to(end);
        let Some(args) = args else { return Some(self.error_expr(span)) };
        Some(Expr::new(ExprKind::Call { func, args }, span))
    }

    fn match_expr(&mut self) -> Option<Expr> {
        let start = self.bump();
        let value = Box::new(self.nested(Parser::expr)?);
        if !self.is_sign("{") {
            let d = self.expected("`{` and the cases");
            self.unexpected(d.help("as in `match dport { 22 => \"ssh\", _ => \"other\" }`"));
            return None;
        }
        let open = self.open();
        let arms = self.nested(|p| p.braced(Parser::match_case));
        let end = self.close(open, "}", arms.is_some())?;
        let span = start.to(end);
        let Some(arms) = arms else { return Some(self.error_expr(span)) };
        Some(Expr::new(ExprKind::Match { value, arms }, span))
    }

    /// `pattern => expr`
    fn match_case(&mut self) -> Option<Arm> {
        let pattern = self.pattern()?;
        self.expect("=>", "after the pattern")?;
        Some(Arm { pattern, body: self.expr()? })
    }

    /// One or more of `part`, separated by commas, up to the closing brace; a comma may stand
    /// before it.
    pub(super) fn braced<T>(
        &mut self,
        mut part: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut out = vec![part(self)?];
        while self.eat(",") && !self.is_sign("}") {
            out.push(part(self)?);
        }
        Some(out)
    }

    /// The set on the right of `in`.
    fn set(&mut self) -> Option<Spanned<Set>> {
        let start = self.span();
        if !self.is_sign("{") {
            if self.is_sign("[") {
                return self.set_in_brackets();
            }
            let member = self.member()?;
            let span = member.span();
            return Some(Spanned::new(Set::One(Box::new(member)), span));
        }
        if matches!(self.ahead(1).kind, Kind::Sign("}")) {
            let d = Diagnostic::new(Code::BadSet, start, "nothing is in an empty set");
            self.report(d.help("name its members: `{22, 80}`"));
        }
        self.braced_set()
    }

    /// A set in braces; it may be empty.
    pub(super) fn braced_set(&mut self) -> Option<Spanned<Set>> {
        let open = self.open();
        let members = if self.is_sign("}") {
            Some(Vec::new())
        } else {
            self.nested(|p| p.braced(Parser::member))
        };
        let end = self.close(open, "}", members.is_some())?;
        Some(Spanned::new(Set::Braces(members?), open.to(end)))
    }

    /// A value or a range.
    pub(super) fn member(&mut self) -> Option<Member> {
        let low = self.expr_from(OPERAND)?;
        if !self.eat("..") {
            return Some(Member::Value(low));
        }
        Some(Member::Range(low, self.expr_from(OPERAND)?))
    }
}
